//! One server by its address: requests, and the bounds on its answers. No redirect is followed: the key and the conversation are for
//! the server that the settings name.

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

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait, after a complete turn, for the end of the body: only one that is read to its end leaves its connection free.
const END_OF_BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of an error's body is read, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// How much of a list of models is read, in bytes.
const MAX_LIST_BYTES: usize = 1024 * 1024;
/// How long such a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// OpenAI's own.
const OPENAI_HOST: &str = "api.openai.com";

/// A server.
pub(super) struct ChatServer {
    /// Ends in a slash.
    base: Url,
    headers: HeaderMap,
    idle_timeout: Duration,
    total_timeout: Duration,
    redactor: Redactor,
    /// Made when first needed.
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

    /// Its host, and its port if it has one of its own.
    pub(super) fn name(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether its address is this machine's, wherever its models work.
    pub(super) fn is_beside(&self) -> bool {
        reveille_config::is_loopback(self.base.host_str().unwrap_or_default())
    }

    /// Whether it is OpenAI's own.
    pub(super) fn is_openai(&self) -> bool {
        self.base.host_str() == Some(OPENAI_HOST)
    }

    /// Sends a request. `leaving` is set before its first byte leaves.
    pub(super) async fn post(
        &self,
        path: &str,
        body: String,
        leaving: Arc<AtomicBool>,
    ) -> Result<Response, ModelError> {
        let length = body.len();
        // Asked for once a connection is there to send it on.
        let body = Full::<Bytes>::from(body).map_frame(move |frame| {
            leaving.store(true, Ordering::Release);
            frame
        });
        let request = self.client()?.post(self.url(path)?).headers(self.headers.clone());
        let request = request.header(CONTENT_LENGTH, length).timeout(self.total_timeout);
        self.unless_silent(request.body(reqwest::Body::wrap(body)).send()).await
    }

    /// Gets a JSON answer, soon and short. `path` is below the API's address, or, with a slash at its beginning, the server's.
    pub(super) async fn get(&self, path: &str) -> Result<serde_json::Value, ModelError> {
        let request = self.client()?.get(self.url(path)?).headers(self.headers.clone()).timeout(LIST_TIMEOUT);
        let mut response = self.unless_silent(request.send()).await?;
        if response.status().as_u16() != 200 {
            let answer = self.error_of(response).await;
            return Err(self.redacted(answer.into_error("", &self.name())));
        }
        let mut body = Vec::new();
        while let Some(bytes) = self.unless_silent(response.chunk()).await? {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_LIST_BYTES {
                return Err(transient(format!("{} answered more than {MAX_LIST_BYTES} bytes", self.name())));
            }
        }
        let unreadable = |_| transient(format!("{} answered something that isn't JSON", self.name()));
        serde_json::from_slice(&body).map_err(unreadable)
    }

    fn url(&self, path: &str) -> Result<Url, ModelError> {
        self.base.join(path).map_err(|_| transient("OPENAI_BASE_URL can't be used".to_owned()))
    }

    /// An answer other than 200, from as much of its body as can be had.
    pub(super) async fn error_of(&self, mut response: Response) -> ServerRefusal {
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.unless_silent(response.chunk()).await {
            let room = MAX_ERROR_BODY_BYTES.saturating_sub(body.len());
            body.extend(bytes.iter().take(room));
            if bytes.len() >= room {
                break;
            }
        }
        ServerRefusal::read(
            response.status().as_u16(),
            header(&response, RETRY_AFTER.as_str()),
            header(&response, DATE.as_str()),
            &body,
        )
    }

    /// Waits for the server, at most for the idle time-out.
    pub(super) async fn unless_silent<T>(
        &self,
        answer: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, ModelError> {
        match tokio::time::timeout(self.idle_timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.redacted(transient(self.fault(&error)))),
            Err(_) => Err(transient(format!("{} was silent for {:?}", self.name(), self.idle_timeout))),
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
        if self.is_beside() {
            // What is for this machine takes no way through another.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| self.redacted(transient(self.fault(&error))))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The last gate: a server or a proxy may have quoted the key.
    pub(super) fn redacted(&self, error: ModelError) -> ModelError {
        error.redacted(&self.redactor)
    }

    /// What went wrong with the connection: our words and the deepest cause. The error itself would print its URL.
    fn fault(&self, error: &reqwest::Error) -> String {
        let name = self.name();
        let what = match (error.is_connect(), error.is_timeout()) {
            (true, _) if self.is_beside() => format!("nothing answers at {name}: is the model's server running there?"),
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

/// Reads a body to its end, if that comes soon. Whether it does makes no difference to the turn.
pub(super) async fn drain(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    drop(tokio::time::timeout(END_OF_BODY_TIMEOUT, rest).await);
}

/// A header of an answer.
pub(super) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

pub(super) fn transient(why: String) -> ModelError {
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}
