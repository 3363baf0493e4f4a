//! Sends one JSON request to an embedding server. Redirects aren't followed: the key and the texts are only for the configured server.

use std::{error::Error as _, sync::OnceLock, time::Duration};

use reqwest::{
    Client, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use reveille_base::redact::Secret;
use reveille_memory::outside::{Origin, Outside};

use super::EmbedError;

/// The maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time of a whole request.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of an answer, in bytes: a full batch of the longest vectors in decimal.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// An embedding server with the headers of each request.
pub(super) struct EmbedServer {
    url: Url,
    headers: HeaderMap,
    /// Created on first use.
    client: OnceLock<Client>,
}

impl EmbedServer {
    /// Creates a server without connecting. `key` is a header and its value.
    pub(super) fn new(url: &str, key: Option<(HeaderName, Secret)>) -> Result<Self, EmbedError> {
        let url = Url::parse(url).map_err(|_| EmbedError::SetUp("its address isn't a URL".to_owned()))?;
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = key {
            let unsendable = |_| EmbedError::SetUp("its key has characters that keys can't have".to_owned());
            let mut value = HeaderValue::from_str(value.expose()).map_err(unsendable)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self { url, headers, client: OnceLock::new() })
    }

    /// Returns the host, with an explicit port.
    pub(super) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns whether the server is on this machine.
    pub(super) fn is_here(&self) -> bool {
        reveille_config::is_loopback(self.url.host_str().unwrap_or_default())
    }

    /// Sends a request and parses its answer.
    pub(super) async fn send_request<T: DeserializeOwned>(&self, body: &impl Serialize) -> Result<T, EmbedError> {
        let request = self.client()?.post(self.url.clone()).headers(self.headers.clone()).json(body);
        let response = request.timeout(TOTAL_TIMEOUT).send().await.map_err(|error| self.to_embed_error(&error))?;
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body = self.read_body(response).await;
        if status != 200 {
            return Err(self.error_for_status(status, retry_after, &body.unwrap_or_default()));
        }
        // The request was processed, even if the answer is unusable.
        serde_json::from_slice(&body?)
            .map_err(|_| EmbedError::cut_off(format!("{} answered with something other than embeddings", self.host())))
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, EmbedError> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.to_embed_error(&error))? {
            if body.len() + bytes.len() > MAX_ANSWER_BYTES {
                return Err(EmbedError::cut_off(format!(
                    "{} answered with more than {MAX_ANSWER_BYTES} bytes",
                    self.host()
                )));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    fn client(&self) -> Result<&Client, EmbedError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| self.to_embed_error(&error))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Converts a failed HTTP status to an error.
    fn error_for_status(&self, status: u16, retry_after: Option<u64>, body: &[u8]) -> EmbedError {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.pointer("/error/message").or_else(|| body.pointer("/error")).and_then(Value::as_str);
        let said = error.map_or_else(String::new, |said| format!(": {}", Outside::new(Origin::Model, said)));
        let why = format!("{} refused to embed (HTTP {status}){said}", self.host());
        let code = body.pointer("/error/code").and_then(Value::as_str);
        match status {
            // A used-up balance won't recover by waiting.
            429 if code == Some("insufficient_quota") => EmbedError::SetUp(why),
            408 | 409 | 425 | 429 | 500..=599 => {
                EmbedError::Later { why, retry_after: retry_after.map(Duration::from_secs), may_have_cost: false }
            }
            400 | 413 | 422 if code != Some("model_not_found") && !is_key_invalid(&body) => EmbedError::Refused(why),
            _ => EmbedError::SetUp(why),
        }
    }

    /// Describes a connection failure in our words with the deepest cause. The error itself would reveal its URL.
    fn to_embed_error(&self, error: &reqwest::Error) -> EmbedError {
        let host = self.host();
        let what = match (error.is_connect(), error.is_timeout()) {
            (true, _) => format!("{host} can't be reached"),
            (false, true) => format!("{host} took longer than a request may take"),
            (false, false) => format!("the connection to {host} broke"),
        };
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(std::error::Error::source) {
            cause = Some(deeper);
        }
        let why = cause.map_or_else(|| what.clone(), |cause| format!("{what}: {cause}"));
        if error.is_connect() || error.is_builder() { EmbedError::later(why) } else { EmbedError::cut_off(why) }
    }
}

/// Returns whether the key is at fault: Gemini reports a wrong key as a bad request.
fn is_key_invalid(body: &Value) -> bool {
    let details = body.pointer("/error/details").and_then(Value::as_array);
    details.is_some_and(|details| details.iter().any(|detail| detail["reason"] == "API_KEY_INVALID"))
}
