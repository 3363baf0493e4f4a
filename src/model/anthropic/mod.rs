//! The model behind the Claude Messages API: one streamed HTTP request per turn.
//!
//! The request is the conversation's raw JSON between a few constant fields: the bytes of earlier turns can't change on
//! the way. Signed thinking is bound to them, and the prompt cache finds its prefix by them. Retries, budgets and the journal are the caller's; [`retry`] and [`price`] help with them.

mod block;
mod error;
mod look_up;
pub mod price;
pub mod retry;
pub mod stream;

use std::{
    error::Error as _,
    fmt,
    ops::Deref,
    sync::{OnceLock, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use reqwest::{
    Client, Response, Url,
    header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};

pub(super) use block::object_fields;

use super::{Conversation, Model, ModelError, Progress, Turn, TurnFuture};
use crate::{
    redact::{Redactor, Secret},
    types::Usage,
};

/// The version of the API that this program speaks.
const API_VERSION: &str = "2023-06-01";

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait, after a complete turn, for the end of the HTTP body: only a body read to its end leaves the
/// connection free for the next turn.
const END_OF_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// How hard the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the API's own words, from least to most")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

/// What [`Anthropic`] needs to know. It can't be printed: the address may hold a password.
#[derive(Clone)]
pub struct AnthropicOptions {
    /// Where the API is, such as `https://api.anthropic.com`.
    pub base_url: String,
    /// The account's key.
    pub api_key: Secret,
    /// The model's id.
    pub model: String,
    /// The longest answer, in tokens, thinking included.
    pub max_tokens: u64,
    /// How long the server may be silent, before and within an answer.
    pub idle_timeout: Duration,
    /// How long one turn may take in all.
    pub total_timeout: Duration,
    /// How hard to think; `None` leaves it to the model's default.
    pub effort: Option<Effort>,
}

/// Why a model can't be made of these options: each names what to correct.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The address is no http(s) URL.
    #[error(
        "ANTHROPIC_BASE_URL must be a URL that begins with https:// (or http://), such as https://api.anthropic.com"
    )]
    BaseUrl,
    /// The key can't be sent in a header.
    #[error(
        "ANTHROPIC_API_KEY is empty or has characters that a key can't have; copy it again from console.anthropic.com"
    )]
    ApiKey,
    /// The model has no name.
    #[error("MODEL is empty; name a Claude model such as claude-sonnet-5-5")]
    Model,
}

/// A Claude model.
pub struct Anthropic {
    url: Url,
    headers: HeaderMap,
    model: String,
    max_tokens: u64,
    idle_timeout: Duration,
    total_timeout: Duration,
    effort: Option<Effort>,
    redactor: Redactor,
    /// Made when first needed: a wake that asks nothing pays for no TLS set-up.
    client: OnceLock<Client>,
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anthropic({})", self.model)
    }
}

impl Anthropic {
    /// Checks the options. Nothing is connected yet.
    ///
    /// # Errors
    /// An option that can't work.
    pub fn new(options: AnthropicOptions) -> Result<Self, OptionsError> {
        let url = Url::parse(&format!("{}/v1/messages", options.base_url.trim_end_matches('/')))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or(OptionsError::BaseUrl)?;
        if options.model.trim().is_empty() {
            return Err(OptionsError::Model);
        }
        let password = url.password().map(Secret::new);
        Ok(Self {
            headers: headers(&options.api_key)?,
            redactor: Redactor::new([&options.api_key].into_iter().chain(&password)),
            url,
            model: options.model,
            max_tokens: options.max_tokens,
            idle_timeout: options.idle_timeout,
            total_timeout: options.total_timeout,
            effort: options.effort,
            client: OnceLock::new(),
        })
    }

    async fn ask(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let body = self.body(conversation);
        let (length, leaving) = (body.len(), progress.leaving());
        // Asked for once a connection is there to send it on.
        let body = Full::<Bytes>::from(body).map_frame(move |frame| {
            leaving.store(true, Ordering::Release);
            frame
        });
        let request = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_LENGTH, length)
            .timeout(self.total_timeout)
            .body(reqwest::Body::wrap(body));
        let response = self.unless_silent(request.send()).await?;
        if response.status().as_u16() != 200 {
            return Err(self.refused(response).await);
        }
        if !header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let why =
                "Something other than the Claude API answered (no event stream): a proxy or a sign-in page, perhaps";
            return Err(transient(why.to_owned()));
        }
        self.read(response, progress).await
    }

    /// The request's body: the conversation's own bytes between constant fields. The top-level `cache_control` lets the
    /// server cache the growing conversation by itself.
    fn body(&self, conversation: &Conversation) -> String {
        let size: usize = conversation.messages.iter().map(|message| message.len() + 1).sum();
        let mut body = String::with_capacity(size + conversation.system.len() + conversation.tools.len() + 256);
        body.push_str(&format!(
            r#"{{"model":{},"max_tokens":{},"stream":true"#,
            serde_json::Value::from(self.model.as_str()),
            self.max_tokens
        ));
        if let Some(effort) = self.effort {
            body.push_str(&format!(r#","output_config":{{"effort":"{}"}}"#, effort.as_str()));
        }
        for (name, raw) in [("system", &conversation.system), ("tools", &conversation.tools)] {
            if !matches!(raw.trim(), "" | "[]") {
                body.push_str(&format!(r#","{name}":{raw}"#));
            }
        }
        body.push_str(r#","messages":["#);
        body.push_str(&conversation.messages.join(","));
        body.push_str(r#"],"cache_control":{"type":"ephemeral"}}"#);
        body
    }

    async fn read(&self, mut response: Response, progress: &Progress) -> Result<Turn, ModelError> {
        let request_id = header(&response, "request-id").map(str::to_owned);
        let mut stream = stream::TurnStream::default();
        while let Some(bytes) = self.next_piece(&mut response, &stream).await? {
            let is_whole = stream.push(&bytes).map_err(|error| self.redacted(error))?;
            progress.tell(stream.usage());
            if is_whole {
                let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                // Whether the body ended in time makes no difference to the turn.
                drop(tokio::time::timeout(END_OF_BODY_TIMEOUT, rest).await);
                break;
            }
        }
        let hour_tokens = stream.hour_tokens();
        let turn = stream.finish(request_id)?;
        let priced = || price::cost_with_hour_usd(&self.model, &turn.usage, hour_tokens);
        Ok(Turn { cost_usd: (hour_tokens > 0).then(priced), ..turn })
    }

    /// The next bytes of the answer; a fault counts what the turn has cost so far.
    async fn next_piece(
        &self,
        response: &mut Response,
        stream: &stream::TurnStream,
    ) -> Result<Option<impl Deref<Target = [u8]> + use<>>, ModelError> {
        self.unless_silent(response.chunk()).await.map_err(|fault| stream.broken(&fault.to_string()))
    }

    /// The error of an answer other than 200, from as much of its body as can be had.
    async fn refused(&self, mut response: Response) -> ModelError {
        let mut body = Vec::new();
        while let Ok(Some(bytes)) = self.unless_silent(response.chunk()).await {
            let room = error::MAX_ERROR_BODY_BYTES.saturating_sub(body.len());
            body.extend(bytes.iter().take(room));
            if bytes.len() >= room {
                break;
            }
        }
        let refused = error::ErrorAnswer {
            status: response.status().as_u16(),
            retry_after: header(&response, RETRY_AFTER.as_str()),
            date: header(&response, DATE.as_str()),
            request_id: header(&response, "request-id"),
            body: &body,
        };
        self.redacted(refused.into_error())
    }

    /// Waits for the server, at most for the idle time-out.
    async fn unless_silent<T>(&self, answer: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match tokio::time::timeout(self.idle_timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.redacted(transient(connection_fault(&error)))),
            Err(_) => Err(transient(format!("Claude was silent for {:?}", self.idle_timeout))),
        }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| self.redacted(transient(connection_fault(&error))))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The last gate: a server or a proxy may have quoted the key.
    fn redacted(&self, error: ModelError) -> ModelError {
        error.redacted(&self.redactor)
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.model
    }

    fn most_usd(&self, conversation: &Conversation) -> f64 {
        price::estimate_max_cost(&self.model, price::prompt_bytes(conversation), self.max_tokens)
    }

    fn cost_usd(&self, usage: &Usage) -> f64 {
        price::cost_usd(&self.model, usage)
    }

    fn context_window(&self) -> Option<u64> {
        Some(price::context_window(&self.model))
    }

    fn turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        Box::pin(self.ask(conversation, progress))
    }
}

fn headers(api_key: &Secret) -> Result<HeaderMap, OptionsError> {
    let key = api_key.expose().trim();
    let mut key = HeaderValue::from_str(key).ok().filter(|_| !key.is_empty()).ok_or(OptionsError::ApiKey)?;
    key.set_sensitive(true);
    Ok(HeaderMap::from_iter([
        (reqwest::header::HeaderName::from_static("x-api-key"), key),
        (reqwest::header::HeaderName::from_static("anthropic-version"), HeaderValue::from_static(API_VERSION)),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ]))
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn transient(why: String) -> ModelError {
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}

/// What went wrong with the connection: our words and the deepest cause. The error itself would print its URL.
fn connection_fault(error: &reqwest::Error) -> String {
    let what = match (error.is_connect(), error.is_timeout()) {
        (true, _) => "No connection to the Claude API",
        (false, true) => "Claude took longer than a turn may take",
        (false, false) => "The connection to the Claude API broke",
    };
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AnthropicOptions {
        AnthropicOptions {
            base_url: "https://api.anthropic.com/".into(),
            api_key: Secret::new("sk-ant-key-for-tests"),
            model: "claude-sonnet-5-5".into(),
            max_tokens: 100,
            idle_timeout: Duration::from_secs(1),
            total_timeout: Duration::from_secs(2),
            effort: None,
        }
    }

    fn conversation() -> Conversation {
        Conversation {
            system: r#"[{"type":"text", "text":"S"}]"#.into(),
            tools: "[]".into(),
            messages: vec![r#"{"role":"user","content":[ ]}"#.into(), r#"{"x":1.0}"#.into()],
        }
    }

    #[test]
    fn the_body_is_the_conversation_byte_for_byte() {
        let body = Anthropic::new(options()).unwrap().body(&conversation());
        assert_eq!(
            body,
            concat!(
                r#"{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"system":[{"type":"text", "text":"S"}],"#,
                r#""messages":[{"role":"user","content":[ ]},{"x":1.0}],"cache_control":{"type":"ephemeral"}}"#
            )
        );
        let eager = AnthropicOptions { effort: Some(Effort::Low), ..options() };
        let tools = Conversation { tools: r#"[{"name":"a"}]"#.into(), ..conversation() };
        let body = Anthropic::new(eager).unwrap().body(&tools);
        assert!(
            body.contains(r#""output_config":{"effort":"low"}"#) && body.contains(r#""tools":[{"name":"a"}],"#),
            "{body}"
        );
    }

    #[test]
    fn options_that_cannot_work_are_named() {
        let made = |change: fn(&mut AnthropicOptions)| {
            let mut options = options();
            change(&mut options);
            Anthropic::new(options).map(|_| ()).unwrap_err()
        };
        assert_eq!(made(|o| o.base_url = "api.anthropic.com".into()), OptionsError::BaseUrl);
        assert_eq!(made(|o| o.base_url = "file:///etc".into()), OptionsError::BaseUrl);
        assert_eq!(made(|o| o.api_key = Secret::new(" \n")), OptionsError::ApiKey);
        assert_eq!(made(|o| o.api_key = Secret::new("a\nb")), OptionsError::ApiKey);
        assert_eq!(made(|o| o.model = String::new()), OptionsError::Model);
    }
}
