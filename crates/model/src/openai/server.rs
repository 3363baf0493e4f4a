//! The HTTP client for one server, with limits on its answers. Redirects aren't followed: the key and the conversation are for the
//! configured server only.

use std::{
    error::Error as _,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use reqwest::{
    Client, Response, Url,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};

use reveille_base::{
    redact::{Redactor, Secret},
    types::Usage,
};

use super::error::ServerRefusal;
use crate::ModelError;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the end of the body after a complete turn. Reading a body to its end keeps the connection reusable.
const END_OF_BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes read of an error's body.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Bytes read of a list of models.
const MAX_LIST_BYTES: usize = 1024 * 1024;
/// Longest time for a list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// OpenAI's own server.
const OPENAI_HOST: &str = "api.openai.com";

/// A chat server.
pub(super) struct ChatServer {
    /// The API's address, ending in a slash.
    base: Url,
    headers: HeaderMap,
    idle_timeout: Duration,
    total_timeout: Duration,
    redactor: Redactor,
    /// Created at the first request.
    client: OnceLock<Client>,
}

impl ChatServer {
    pub(super) fn new(
        base_url: &str,
        key: Option<&Secret>,
        (idle_timeout, total_timeout): (Duration, Duration),
    ) -> Result<Self, String> {
        let base = Url::parse(&format!("{}/", base_url.trim_end_matches('/')))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or("OPENAI_BASE_URL must be a URL such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1")?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let unsendable = |_| "OPENAI_API_KEY has characters that a key can't have; copy it again".to_owned();
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(unsendable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let redactor = Redactor::new(key);
        Ok(Self { base, headers, idle_timeout, total_timeout, redactor, client: OnceLock::new() })
    }

    /// Returns the host, with a port if the address has one.
    pub(super) fn name(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// True if the address is this machine's. The models behind it may still run elsewhere.
    pub(super) fn is_local(&self) -> bool {
        reveille_config::is_loopback(self.base.host_str().unwrap_or_default())
    }

    /// True for OpenAI's own server.
    pub(super) fn is_openai(&self) -> bool {
        self.base.host_str() == Some(OPENAI_HOST)
    }

    /// Sends a request and sets `sent_flag` before its first byte leaves.
    pub(super) async fn post(
        &self,
        path: &str,
        body: String,
        sent_flag: Arc<AtomicBool>,
    ) -> Result<Response, ModelError> {
        let length = body.len();
        // The frame is requested once a connection is ready for it.
        let body = Full::<Bytes>::from(body).map_frame(move |frame| {
            sent_flag.store(true, Ordering::Release);
            frame
        });
        let request = self.client()?.post(self.build_url(path)?).headers(self.headers.clone());
        let request = request.header(CONTENT_LENGTH, length).timeout(self.total_timeout);
        self.within_idle_timeout(request.body(reqwest::Body::wrap(body)).send()).await
    }

    /// Requests short JSON under a short time limit. `path` is relative to the API's address, or to the server if it begins with a slash.
    pub(super) async fn get(&self, path: &str) -> Result<serde_json::Value, ModelError> {
        let request = self.client()?.get(self.build_url(path)?).headers(self.headers.clone()).timeout(LIST_TIMEOUT);
        let mut response = self.within_idle_timeout(request.send()).await?;
        if response.status().as_u16() != 200 {
            let answer = self.read_refusal(response).await;
            return Err(self.redact_error(answer.into_error("", &self.name())));
        }
        let mut body = Vec::new();
        while let Some(bytes) = self.within_idle_timeout(response.chunk()).await? {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_LIST_BYTES {
                return Err(build_transient(format!("{} answered with more than {MAX_LIST_BYTES} bytes", self.name())));
            }
        }
        let unreadable = |_| build_transient(format!("{} answered with something that isn't JSON", self.name()));
        serde_json::from_slice(&body).map_err(unreadable)
    }

    fn build_url(&self, path: &str) -> Result<Url, ModelError> {
        self.base.join(path).map_err(|_| build_transient("OPENAI_BASE_URL can't be used".to_owned()))
    }

    /// Reads a refusal (any status but 200) with as much of its body as arrives.
    pub(super) async fn read_refusal(&self, mut response: Response) -> ServerRefusal {
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.within_idle_timeout(response.chunk()).await {
            let room = MAX_ERROR_BODY_BYTES.saturating_sub(body.len());
            body.extend(bytes.iter().take(room));
            if bytes.len() >= room {
                break;
            }
        }
        ServerRefusal::parse(
            response.status().as_u16(),
            find_header(&response, RETRY_AFTER.as_str()),
            find_header(&response, DATE.as_str()),
            &body,
        )
    }

    /// Waits for the server, up to the idle time-out.
    pub(super) async fn within_idle_timeout<T>(
        &self,
        answer: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, ModelError> {
        match tokio::time::timeout(self.idle_timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.redact_error(build_transient(self.describe_fault(&error)))),
            Err(_) => Err(build_transient(format!("{} sent nothing for {:?}", self.name(), self.idle_timeout))),
        }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")));
        if self.is_local() {
            // Traffic within this machine bypasses the proxy.
            builder = builder.no_proxy();
        }
        let client =
            builder.build().map_err(|error| self.redact_error(build_transient(self.describe_fault(&error))))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Masks the key, which a server or a proxy may have quoted.
    pub(super) fn redact_error(&self, error: ModelError) -> ModelError {
        error.redact(&self.redactor)
    }

    /// Describes a connection error in our own words, with the innermost cause. The error's own text would print its URL.
    fn describe_fault(&self, error: &reqwest::Error) -> String {
        let name = self.name();
        let what = match (error.is_connect(), error.is_timeout()) {
            (true, _) if self.is_local() => format!("nothing answers at {name}: is the model's server running there?"),
            (true, _) => format!("{name} can't be reached"),
            (false, true) => format!("{name} took longer than a turn may take"),
            (false, false) => format!("the connection to {name} broke"),
        };
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(std::error::Error::source) {
            cause = Some(deeper);
        }
        cause.map_or_else(|| what.clone(), |cause| format!("{what}: {cause}"))
    }
}

/// Reads a body to its end if that comes soon. The turn doesn't depend on the outcome.
pub(super) async fn drain_body(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    drop(tokio::time::timeout(END_OF_BODY_TIMEOUT, rest).await);
}

/// Returns a header of an answer as text.
pub(super) fn find_header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

pub(super) fn build_transient(why: String) -> ModelError {
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}
