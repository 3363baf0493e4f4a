//! The model behind the Claude Messages API: one streamed HTTP request per turn.
//!
//! A request is the conversation's raw JSON between a few constant fields, so that the bytes of earlier turns never change. Signed thinking
//! and the prompt cache's prefix depend on these bytes. Retries, budgets and the journal are the caller's, with help from [`retry`] and
//! [`price`].

mod block;
mod error;
mod google;
mod ids;
mod look_up;
mod mark;
pub mod price;
pub mod retry;
mod route;
mod sigv4;
pub mod stream;

use std::{
    borrow::Cow,
    cell::Cell,
    error::Error as _,
    fmt,
    sync::{OnceLock, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use reqwest::{
    Client, Response,
    header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER},
    redirect,
};
use tokio::time::{Instant, timeout_at};

use reveille_base::{redact::Redactor, types::Usage};

pub(super) use block::object_fields;
pub(super) use error::parse_retry_after;
pub use google::login_secrets;
use route::Route;
pub use route::{BedrockLogin, ClaudeRoute};
pub use sigv4::AwsKeys;

use super::{Conversation, Model, ModelError, Progress, Turn, TurnFuture};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for the end of the HTTP body after a complete turn. Reading a body to its end keeps the connection reusable.
const END_OF_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// The model's thinking effort before an answer.
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

/// The settings of [`Anthropic`]. Without `Debug`, since the address may contain a password.
#[derive(Clone)]
pub struct AnthropicOptions {
    /// The server and the credentials.
    pub route: ClaudeRoute,
    /// The name in `MODEL`: the model's id, prefixed by `bedrock:` or `vertex:` on those routes.
    pub model: String,
    /// Maximum tokens of an answer, thinking included.
    pub max_tokens: u64,
    /// Longest silence of the server, before and during an answer.
    pub idle_timeout: Duration,
    /// Longest duration of a turn.
    pub total_timeout: Duration,
    /// Thinking effort. `None` for the model's default.
    pub effort: Option<Effort>,
}

/// An unusable option; the message names the setting to correct.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The address isn't an http(s) URL.
    #[error("{setting} must be a URL that begins with https:// (or http://), such as https://api.anthropic.com")]
    BaseUrl {
        /// The setting of the address.
        setting: &'static str,
    },
    /// The key has characters that a header can't carry.
    #[error("{setting} is empty or has characters that a key can't have; copy it again")]
    ApiKey {
        /// The setting of the key.
        setting: &'static str,
    },
    /// The model's name is empty.
    #[error("MODEL is empty; name a Claude model such as claude-sonnet-5-5")]
    Model,
}

/// A Claude model.
pub struct Anthropic {
    route: Route,
    model: String,
    /// Lowered if the server allows less.
    max_tokens: Cell<u64>,
    idle_timeout: Duration,
    total_timeout: Duration,
    effort: Option<Effort>,
    /// Created at the first request, so that a wake without requests is spared the TLS set-up.
    client: OnceLock<Client>,
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anthropic({})", self.model)
    }
}

impl Anthropic {
    /// Checks the options and connects to nothing yet.
    ///
    /// # Errors
    /// An unusable option.
    pub fn new(options: AnthropicOptions) -> Result<Self, OptionsError> {
        let id = match &options.route {
            ClaudeRoute::Api { .. } => options.model.as_str(),
            ClaudeRoute::Bedrock { .. } | ClaudeRoute::Vertex { .. } => {
                options.model.split_once(':').map_or(options.model.as_str(), |(_, id)| id)
            }
        };
        if id.trim().is_empty() {
            return Err(OptionsError::Model);
        }
        Ok(Self {
            route: Route::new(options.route, id)?,
            model: options.model,
            max_tokens: Cell::new(options.max_tokens),
            idle_timeout: options.idle_timeout,
            total_timeout: options.total_timeout,
            effort: options.effort,
            client: OnceLock::new(),
        })
    }

    async fn run_request(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let body = Bytes::from(self.build_body(conversation, self.max_tokens.get()));
        let mut response = self.send(body.clone(), conversation, progress).await?;
        // A token may be revoked early; a refused request costs nothing.
        if response.status().as_u16() == 401 && self.route.discard_token() {
            progress.sent_flag().store(false, Ordering::Release);
            response = self.send(body, conversation, progress).await?;
        }
        if response.status().as_u16() == 400 {
            let (error, longest) = self.read_refusal(response).await;
            let Some(longest) = longest.filter(|longest| *longest < self.max_tokens.get()) else { return Err(error) };
            tracing::info!(model = %self.model, longest, "the server allows only shorter answers; trying again with its limit");
            progress.sent_flag().store(false, Ordering::Release);
            response = self.send(Bytes::from(self.build_body(conversation, longest)), conversation, progress).await?;
            // Kept only after success: a number from an unrelated error would cut off every later answer.
            if response.status().as_u16() == 200 {
                self.max_tokens.set(longest);
            }
        }
        if response.status().as_u16() != 200 {
            return Err(self.read_refusal(response).await.0);
        }
        // An HTML page is neither a turn nor an API error. Other content is detected from its bytes, since proxies send wrong types.
        if find_header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("text/html")) {
            return Err(build_transient(format!(
                "Something other than {} answered (a page): a proxy or a sign-in page, perhaps",
                self.route.words.server
            )));
        }
        self.read_turn(response, conversation, progress).await
    }

    async fn send(
        &self,
        body: Bytes,
        conversation: &Conversation,
        progress: &Progress,
    ) -> Result<Response, ModelError> {
        let client = self.client()?;
        let (length, sent_flag) = (body.len(), progress.sent_flag());
        let head = self.route.build_headers(&body, client).await?;
        // The frame is requested once a connection is ready for it.
        let body = Full::new(body).map_frame(move |frame| {
            sent_flag.store(true, Ordering::Release);
            frame
        });
        let request = client
            .post(self.route.url.clone())
            .headers(head)
            .header(CONTENT_LENGTH, length)
            .timeout(self.total_timeout)
            .body(reqwest::Body::wrap(body));
        let sent = self.within_idle_timeout(request.send()).await;
        sent.map_err(|error| match error {
            // The request was sent, so the server may have worked on it.
            ModelError::Transient { why, retry_after, .. } if progress.sent_flag().load(Ordering::Acquire) => {
                let spent = price::estimated_prompt(price::prompt_bytes(conversation));
                ModelError::Transient { why, retry_after, spent }
            }
            error => error,
        })
    }

    /// Builds the request body: the conversation's own bytes between constant fields. The top-level `cache_control` lets the server cache
    /// the growing conversation by itself. For servers without that field, the last block is marked instead, which leaves signed blocks and
    /// everything before them unchanged.
    fn build_body(&self, conversation: &Conversation, max_tokens: u64) -> String {
        let size: usize = conversation.messages.iter().map(|message| message.len() + 1).sum();
        let mut body = String::with_capacity(size + conversation.system.len() + conversation.tools.len() + 256);
        body.push_str(&format!(r#"{{{},"max_tokens":{max_tokens},"stream":true"#, self.route.first_fields,));
        if let Some(effort) = self.effort {
            body.push_str(&format!(r#","output_config":{{"effort":"{}"}}"#, effort.as_str()));
        }
        for (name, raw) in [("system", &conversation.system), ("tools", &conversation.tools)] {
            if !matches!(raw.trim(), "" | "[]") {
                let raw = if self.route.caches_by_itself { Cow::from(raw) } else { mark::shorten_marks(raw) };
                body.push_str(&format!(r#","{name}":{raw}"#));
            }
        }
        body.push_str(r#","messages":["#);
        for (at, message) in conversation.messages.iter().enumerate() {
            body.push_str(if at > 0 { "," } else { "" });
            body.push_str(&if self.route.caches_by_itself {
                Cow::from(message)
            } else {
                mark::shorten_message_marks(message)
            });
        }
        if self.route.caches_by_itself {
            body.push_str(&format!("]{}}}", mark::CACHE_MARK));
        } else {
            mark::mark_last_block(&mut body);
            body.push_str("]}");
        }
        body
    }

    async fn read_turn(
        &self,
        mut response: Response,
        conversation: &Conversation,
        progress: &Progress,
    ) -> Result<Turn, ModelError> {
        let request_id = find_header(&response, "request-id").map(str::to_owned);
        let mut stream = stream::TurnStream::default();
        let mut end_by = None;
        loop {
            let piece = if stream.has_ended() {
                let end_by = *end_by.get_or_insert_with(|| Instant::now() + END_OF_BODY_TIMEOUT);
                // The turn is complete, so later faults are harmless.
                timeout_at(end_by, response.chunk()).await.ok().and_then(Result::ok).flatten()
            } else {
                self.within_idle_timeout(response.chunk())
                    .await
                    .map_err(|fault| stream.build_error(&fault.to_string()))?
            };
            let Some(bytes) = piece else { break };
            let is_whole = stream.push(&bytes).map_err(|error| self.redact_error(error))?;
            progress.record_usage(stream.usage());
            progress.show(stream.take_pieces());
            if is_whole {
                let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                // The turn doesn't depend on the outcome.
                drop(tokio::time::timeout(END_OF_BODY_TIMEOUT, rest).await);
                break;
            }
        }
        stream.end_body().map_err(|error| self.redact_error(error))?;
        let hour_tokens = stream.hour_tokens();
        let turn = stream.finish(request_id).map_err(|error| self.redact_error(error))?;
        let turn = Turn { content: ids::with_own_ids(turn.content, conversation), ..turn };
        let priced = || price::cost_with_hour_cache_usd(&self.model, &turn.usage, hour_tokens);
        Ok(Turn { cost_usd: (hour_tokens > 0).then(priced), ..turn })
    }

    /// Reads a refusal (any status but 200) with as much of its body as arrives. Also returns the maximum answer length in tokens if the
    /// server states one in its error.
    async fn read_refusal(&self, mut response: Response) -> (ModelError, Option<u64>) {
        let read = read_bounded(&mut response, error::MAX_ERROR_BODY_BYTES);
        let body = tokio::time::timeout(self.idle_timeout, read).await.unwrap_or_default();
        let refused = error::ErrorAnswer {
            words: self.route.words,
            status: response.status().as_u16(),
            retry_after: find_header(&response, RETRY_AFTER.as_str()),
            date: find_header(&response, DATE.as_str()),
            request_id: find_header(&response, "request-id"),
            body: &body,
        };
        let longest = refused.longest_answer(self.max_tokens.get());
        (self.redact_error(refused.into_error()), longest)
    }

    /// Waits for the server, up to the idle time-out.
    async fn within_idle_timeout<T>(&self, answer: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match tokio::time::timeout(self.idle_timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                Err(self.redact_error(build_transient(connection_fault(self.route.words.server, &error))))
            }
            Err(_) => Err(build_transient(format!("Claude sent nothing for {:?}", self.idle_timeout))),
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
            .map_err(|error| self.redact_error(build_transient(connection_fault(self.route.words.server, &error))))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Masks the key, which a server or a proxy may have quoted.
    fn redact_error(&self, error: ModelError) -> ModelError {
        error.redact(&Redactor::new(&self.route.secrets()))
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.model
    }

    fn most_usd(&self, conversation: &Conversation) -> f64 {
        price::estimate_max_cost(&self.model, price::prompt_bytes(conversation), self.max_tokens.get())
    }

    fn cost_usd(&self, usage: &Usage) -> f64 {
        price::cost_usd(&self.model, usage)
    }

    fn context_window(&self) -> Option<u64> {
        Some(price::context_window(&self.model))
    }

    fn request_turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        Box::pin(self.run_request(conversation, progress))
    }
}

/// Reads as much of a body as arrives, up to `max_bytes`.
async fn read_bounded(response: &mut Response, max_bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        let room = max_bytes.saturating_sub(body.len());
        body.extend(bytes.iter().take(room));
        if bytes.len() >= room {
            break;
        }
    }
    body
}

fn find_header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn build_transient(why: String) -> ModelError {
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}

/// Describes a connection error in our own words, with the innermost cause. The error's own text would print its URL.
fn connection_fault(server: &str, error: &reqwest::Error) -> String {
    let what = match (error.is_connect(), error.is_timeout()) {
        (true, _) => format!("No connection to {server}"),
        (false, true) => "Claude took longer than a turn may take".to_owned(),
        (false, false) => format!("The connection to {server} broke"),
    };
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    match cause {
        Some(cause) => format!("{what}: {cause}"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use reveille_base::{clock::FixedClock, redact::Secret};

    fn api(base_url: &str, api_key: &str) -> ClaudeRoute {
        ClaudeRoute::Api { base_url: base_url.into(), api_key: Secret::new(api_key) }
    }

    fn options() -> AnthropicOptions {
        AnthropicOptions {
            route: api("https://api.anthropic.com/", "sk-ant-key-for-tests"),
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
            is_tainted: false,
        }
    }

    #[test]
    fn the_body_is_the_conversation_byte_for_byte() {
        let body = Anthropic::new(options()).unwrap().build_body(&conversation(), 100);
        assert_eq!(
            body,
            concat!(
                r#"{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"system":[{"type":"text", "text":"S"}],"#,
                r#""messages":[{"role":"user","content":[ ]},{"x":1.0}],"cache_control":{"type":"ephemeral"}}"#
            )
        );
        let eager = AnthropicOptions { effort: Some(Effort::Low), ..options() };
        let tools = Conversation { tools: r#"[{"name":"a"}]"#.into(), ..conversation() };
        let body = Anthropic::new(eager).unwrap().build_body(&tools, 100);
        assert!(
            body.contains(r#""output_config":{"effort":"low"}"#) && body.contains(r#""tools":[{"name":"a"}],"#),
            "{body}"
        );
    }

    #[test]
    fn in_the_clouds_the_conversation_is_the_same_and_its_last_block_is_marked() {
        let clock = || Arc::new(FixedClock(chrono::DateTime::UNIX_EPOCH));
        let login = BedrockLogin::Bearer(Secret::new("key"));
        let bedrock = ClaudeRoute::Bedrock { region: "eu-west-1".into(), base_url: None, login, clock: clock() };
        let vertex = |workspace: Option<&str>| ClaudeRoute::Vertex {
            project: "p".into(),
            location: "global".into(),
            workspace: workspace.map(str::to_owned),
            base_url: None,
            login: "/nowhere".into(),
            clock: clock(),
        };
        let signed = r#"{"role":"assistant","content":[{"type":"thinking", "signature":"x" }]}"#;
        let conversation = Conversation {
            messages: vec![signed.into(), r#"{"role":"user","content":[{"type":"text","text":"}]}"}]}"#.into()],
            ..conversation()
        };
        let body = |route: ClaudeRoute, model: &str| {
            Anthropic::new(AnthropicOptions { route, model: model.into(), ..options() })
                .unwrap()
                .build_body(&conversation, 100)
        };
        let middle = concat!(
            r#","max_tokens":100,"stream":true,"system":[{"type":"text", "text":"S"}],"messages":["#,
            r#"{"role":"assistant","content":[{"type":"thinking", "signature":"x" }]},"#,
            r#"{"role":"user","content":[{"type":"text","text":"}]}""#
        );
        let (marked, bare) =
            (r#","cache_control":{"type":"ephemeral"}}]}]}"#, r#"}]}],"cache_control":{"type":"ephemeral"}}"#);
        let id = r#"{"model":"anthropic.claude-sonnet-5-5""#;
        assert_eq!(body(bedrock, "bedrock:anthropic.claude-sonnet-5-5"), format!("{id}{middle}{marked}"));
        let version = r#"{"anthropic_version":"vertex-2023-10-16""#;
        assert_eq!(body(vertex(None), "vertex:claude-sonnet-5-5"), format!("{version}{middle}{marked}"));
        let id = r#"{"model":"claude-sonnet-5-5""#;
        assert_eq!(body(vertex(Some("w")), "vertex:claude-sonnet-5-5"), format!("{id}{middle}{bare}"));
    }

    #[test]
    fn options_that_cannot_work_are_named() {
        let made = |change: fn(&mut AnthropicOptions)| {
            let mut options = options();
            change(&mut options);
            Anthropic::new(options).map(|_| ()).unwrap_err()
        };
        let (url, key) = ("https://api.anthropic.com", "k");
        let wrong_url = OptionsError::BaseUrl { setting: "ANTHROPIC_BASE_URL" };
        let wrong_key = OptionsError::ApiKey { setting: "ANTHROPIC_API_KEY" };
        for (url, key, error) in [
            ("api.anthropic.com", key, &wrong_url),
            ("file:///etc", key, &wrong_url),
            (url, " \n", &wrong_key),
            (url, "a\nb", &wrong_key),
        ] {
            let options = AnthropicOptions { route: api(url, key), ..options() };
            assert_eq!(&Anthropic::new(options).map(|_| ()).unwrap_err(), error);
        }
        assert_eq!(made(|o| o.model = String::new()), OptionsError::Model);
    }
}
