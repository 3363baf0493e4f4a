//! Models behind an OpenAI-compatible server (Chat Completions): OpenAI itself, Ollama, llama.cpp, vLLM, OpenRouter, LM Studio.
//!
//! A turn is one streamed HTTP request. `encode` builds the request message by message, so that each request only adds bytes and the
//! server's prefix cache holds. `stream` assembles the answer and tolerates missing parts of the protocol. `written` finds calls that a
//! model wrote as text. `small` is another encoding for small local models, with answers constrained by a JSON schema. The key is sent to
//! the configured address alone: redirects aren't followed.

mod call_ids;
mod encode;
mod error;
mod look_up;
mod server;
mod small;
mod stream;
mod written;

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use reveille_base::{
    growing_json::GrowingField,
    redact::Secret,
    types::{Usage, VerbGroup},
};
use reveille_config as config;

pub(super) use self::call_ids::CallIds;
pub use self::look_up::ServedModel;
use self::{
    encode::Dialect,
    server::ChatServer,
    stream::{ChatStream, Finishing},
};
use super::{Conversation, Model, ModelError, Progress, TOO_LONG, Turn, TurnFuture, anthropic::price};

/// Prefix of these models' names in `MODEL`.
pub const PREFIX: &str = "openai:";
/// Maximum tokens of an answer, thinking included: an amount that remote servers accept for any model.
const MAX_TOKENS: u64 = 8_192;
/// Maximum tokens of an answer from this machine, where models have short windows.
const MAX_TOKENS_HERE: u64 = 2_048;
/// Maximum tokens of a small model's answer: it has little to say, or else it goes round in circles.
const MAX_TOKENS_SMALL: u64 = 1_024;
/// Assumed window of a remote server in tokens: the minimum among today's models.
const WINDOW: u64 = 128_000;
/// Assumed window of a server on this machine in tokens, until the server reports another.
const WINDOW_HERE: u64 = 8_192;
/// Models with fewer parameters are small, in billions.
const SMALL_BELOW_BILLIONS: f64 = 20.0;
/// Maximum attempts to reword a request that the server refuses.
const MAX_DIALECTS: usize = 10;
/// Longest wait after a complete turn for its token count and the stream's end.
const END_OF_STREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// The settings of [`OpenAi`].
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// Base URL of the API, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The API key, if the server needs one.
    pub api_key: Option<Secret>,
    /// The model's name in `MODEL`, with or without [`PREFIX`].
    pub model: String,
    /// Price away from this machine, in US dollars for a million input and output tokens. `None` if unknown.
    pub usd_per_million: Option<(f64, f64)>,
    /// Longest silence of the server, before and during an answer.
    pub idle_timeout: Duration,
    /// Longest duration of a turn.
    pub total_timeout: Duration,
}

/// A model of an OpenAI-compatible server.
pub struct OpenAi {
    /// The name in `MODEL`.
    name: String,
    /// The name at the server.
    model: String,
    usd_per_million: Option<(f64, f64)>,
    server: ChatServer,
    /// True if the model runs on this machine. A local address alone isn't enough, since a local proxy may pass requests on.
    is_here: bool,
    is_small: bool,
    /// The dialect learnt from the server's refusals.
    dialect: Cell<Dialect>,
    /// The window that the server reported. The outer `None` means that the server hasn't been asked.
    window: RefCell<Option<Option<u64>>>,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAi({})", self.name)
    }
}

/// True if a model of this name, served on this machine, is small. Names tell the size (`qwen3:8b`, `SmolLM2-135M`); a name without a size
/// counts as small.
fn is_small(model: &str) -> bool {
    parse_billions(model).is_none_or(|billions| billions < SMALL_BELOW_BILLIONS)
}

/// Parses the largest number of parameters in a name, in billions.
fn parse_billions(model: &str) -> Option<f64> {
    let words = model.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let size = |word: &str| {
        let word = word.to_ascii_lowercase();
        let (number, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
        let number: f64 = number.parse().ok()?;
        match unit {
            "b" => Some(number),
            "m" => Some(number / 1_000.0),
            _ => None,
        }
    };
    words.filter_map(size).reduce(f64::max)
}

impl OpenAi {
    /// Checks the options and connects to nothing yet.
    ///
    /// # Errors
    /// A message naming the unusable setting.
    pub fn new(options: OpenAiOptions) -> Result<Self, String> {
        let OpenAiOptions { base_url, api_key, model, usd_per_million, idle_timeout, total_timeout } = options;
        let model = model.strip_prefix(PREFIX).map_or(model.clone(), str::to_owned);
        if model.is_empty() {
            return Err("MODEL names no model: write openai:NAME, such as openai:qwen3:8b".to_owned());
        }
        let server = ChatServer::new(&base_url, api_key.as_ref(), (idle_timeout, total_timeout))?;
        let is_here = config::runs_on_this_machine(&base_url, &model, api_key.is_some());
        let is_small = is_here && is_small(&model);
        let dialect = Dialect { counts_thinking: server.is_openai(), ..Dialect::default() };
        let name = format!("{PREFIX}{model}");
        let (dialect, window) = (Cell::new(dialect), RefCell::default());
        Ok(Self { name, model, usd_per_million, server, is_here, is_small, dialect, window })
    }

    /// True if the model runs on this machine: nothing leaves the machine and nothing is paid.
    pub fn is_here(&self) -> bool {
        self.is_here
    }

    /// True if requests use the form of `small`: for a small model, or a server without tools.
    fn is_in_form(&self, dialect: Dialect) -> bool {
        self.is_small || !dialect.knows_tools
    }

    fn max_tokens(&self) -> u64 {
        match (self.is_small, self.is_here()) {
            (true, _) => MAX_TOKENS_SMALL,
            (false, true) => MAX_TOKENS_HERE,
            (false, false) => MAX_TOKENS,
        }
    }

    async fn run_request(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        for _ in 1..MAX_DIALECTS {
            match self.ask_so(conversation, progress, AskAttempt::Repeatable).await {
                Err(Refused::Wording(dialect)) => self.dialect.set(dialect),
                Err(Refused::For(error)) => {
                    if matches!(error, ModelError::Rejected { status: TOO_LONG, .. }) {
                        self.look_for_window().await;
                    }
                    return Err(error);
                }
                Ok(turn) => {
                    self.look_for_window().await;
                    return Ok(turn);
                }
            }
        }
        self.ask_so(conversation, progress, AskAttempt::Last).await.map_err(|refused| match refused {
            Refused::For(error) => error,
            Refused::Wording(_) => error::build_malformed(&self.server.name()),
        })
    }

    /// Sends one request in the server's dialect as far as known.
    async fn ask_so(
        &self,
        conversation: &Conversation,
        progress: &Progress,
        attempt: AskAttempt,
    ) -> Result<Turn, Refused> {
        let dialect = self.dialect.get();
        let body = if self.is_in_form(dialect) {
            small::build_body(&self.model, conversation, dialect, self.max_tokens())
        } else {
            encode::build_body(&self.model, conversation, dialect, self.max_tokens())
        };
        let sent_flag = progress.sent_flag();
        // Reset, since an earlier refused attempt cost nothing.
        sent_flag.store(false, Ordering::Release);
        let answer = self.server.post("chat/completions", body, Arc::clone(&sent_flag)).await;
        let response = answer.map_err(|error| match error {
            // The request was sent, so the server may have worked on it.
            ModelError::Transient { why, retry_after, .. } if sent_flag.load(Ordering::Acquire) => {
                let spent = price::estimated_prompt(price::prompt_bytes(conversation));
                ModelError::Transient { why, retry_after, spent }
            }
            error => error,
        })?;
        let status = response.status().as_u16();
        if status != 200 {
            let answer = self.server.read_refusal(response).await;
            if let Some(other) = answer
                .find_wording()
                .and_then(|wording| dialect.without_feature(wording, self.max_tokens()))
                .filter(|_| attempt == AskAttempt::Repeatable)
            {
                tracing::info!(model = %self.name, "the server refused the wording of a request; it is asked in other words");
                return Err(Refused::Wording(other));
            }
            return Err(Refused::For(self.server.redact_error(answer.into_error(&self.name, &self.server.name()))));
        }
        Ok(self.read_turn(response, conversation, progress).await?)
    }

    async fn read_turn(
        &self,
        mut response: Response,
        conversation: &Conversation,
        progress: &Progress,
    ) -> Result<Turn, ModelError> {
        let request_id = server::find_header(&response, "x-request-id").map(str::to_owned);
        let mut stream = ChatStream::new(self.server.name(), &self.name, price::prompt_bytes(conversation));
        let mut end_by = None;
        let mut spoken = self.is_in_form(self.dialect.get()).then(|| GrowingField::new(small::SAY));
        loop {
            let piece = self.server.within_idle_timeout(response.chunk());
            let piece = if stream.has_ended() {
                let end_by = *end_by.get_or_insert_with(|| Instant::now() + END_OF_STREAM_TIMEOUT);
                // The turn is complete, so later faults are harmless.
                timeout_at(end_by, piece).await.ok().and_then(Result::ok).flatten()
            } else {
                piece.await.map_err(|error| stream.build_error(&error.to_string()))?
            };
            let Some(bytes) = piece else { break };
            let is_over = stream.push(&bytes).map_err(|error| self.server.redact_error(error))?;
            progress.record_usage(stream.usage());
            let pieces = stream.take_pieces();
            progress.show(match &mut spoken {
                Some(spoken) => small::list_spoken(spoken, pieces),
                None => pieces,
            });
            if is_over {
                server::drain_body(&mut response).await;
                break;
            }
        }
        stream.end_body().map_err(|error| self.server.redact_error(error))?;
        let mut offered: Vec<String> = conversation.tool_definitions().into_iter().map(|tool| tool.name).collect();
        // A tool may be called by its own name instead of its group's.
        let verbs = offered.iter().filter_map(|name| VerbGroup::find_by_name(name)).flat_map(|group| group.verbs);
        let verbs: Vec<String> = verbs.map(|(_, tool)| (*tool).to_owned()).collect();
        offered.extend(verbs);
        let finishing = Finishing {
            ids: CallIds::for_conversation(conversation),
            offered: &offered,
            reads_text: !conversation.is_tainted,
            is_small: self.is_in_form(self.dialect.get()),
            is_bound: self.is_in_form(self.dialect.get()) && self.dialect.get().binds,
            request_id,
        };
        stream.finish(finishing).map_err(|error| self.server.redact_error(error))
    }

    /// Asks a server on this machine for its window after the first answer. Elsewhere the list of models can be long.
    async fn look_for_window(&self) {
        if self.server.is_local() && self.window.borrow().is_none() {
            let window = self.find_local_window().await;
            self.window.replace(Some(window));
        }
    }
}

/// Whether a request may be repeated in another dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskAttempt {
    Repeatable,
    Last,
}

/// The reason for a failed request.
enum Refused {
    /// The server rejects a field; the request can be repeated in this dialect.
    Wording(Dialect),
    /// Any other error.
    For(ModelError),
}

impl From<ModelError> for Refused {
    fn from(error: ModelError) -> Self {
        Self::For(error)
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    fn most_usd(&self, conversation: &Conversation) -> f64 {
        let input = price::most_tokens(price::prompt_bytes(conversation));
        self.cost_usd(&Usage { input, output: self.max_tokens(), ..Usage::default() })
    }

    /// Cached tokens are charged in full, since discounts differ between servers. An unknown price counts as the highest known.
    fn cost_usd(&self, usage: &Usage) -> f64 {
        if self.is_here() {
            return 0.0;
        }
        let (input, output) = self.usd_per_million.unwrap_or(price::DEAREST_USD);
        (usage.input + usage.cache_read + usage.cache_write) as f64 * input / 1e6 + usage.output as f64 * output / 1e6
    }

    fn context_window(&self) -> Option<u64> {
        let told = self.window.borrow().flatten();
        told.or(Some(if self.is_here() { WINDOW_HERE } else { WINDOW }))
    }

    fn is_small(&self) -> bool {
        self.is_small
    }

    fn request_turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        Box::pin(self.run_request(conversation, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(base_url: &str, name: &str) -> OpenAi {
        OpenAi::new(OpenAiOptions {
            base_url: base_url.to_owned(),
            api_key: None,
            model: name.to_owned(),
            usd_per_million: None,
            idle_timeout: Duration::from_secs(1),
            total_timeout: Duration::from_secs(2),
        })
        .unwrap()
    }

    #[test]
    fn a_small_model_is_known_by_its_name_and_by_where_it_runs() {
        for name in ["qwen3:8b", "SmolLM2-135M-Instruct", "gemma-3-12b-it", "mystery", "llama3.2", "phi-4-mini:3.8b"] {
            assert!(model("http://127.0.0.1:1/v1", name).is_small(), "{name}");
            assert!(!model("https://example.org/v1", name).is_small(), "{name}");
        }
        for name in ["qwen3:32b", "gpt-oss-120b", "qwen3-30b-a3b", "openai/llama-3.3-70B"] {
            assert!(!model("http://localhost:1/v1", name).is_small(), "{name}");
        }
    }

    #[test]
    fn what_runs_here_costs_nothing_and_an_unknown_price_is_the_dearest() {
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        let here = model("http://[::1]:1/v1", "openai:qwen3:8b");
        assert_eq!((here.most_usd(&Conversation::default()), here.cost_usd(&usage)), (0.0, 0.0));
        assert_eq!((here.name(), here.model.as_str()), ("openai:qwen3:8b", "qwen3:8b"));
        for name in ["gpt-oss:120b-cloud", "glm-4.6:cloud", "Kimi-K2:1T-Cloud"] {
            let passed_on = model("http://[::1]:1/v1", name);
            assert!(!passed_on.is_here() && !passed_on.is_small() && passed_on.cost_usd(&usage) > 0.0, "{name}");
        }
        let there = model("https://example.org/v1", "qwen3:8b");
        assert!((there.cost_usd(&usage) - price::DEAREST_USD.0).abs() < 1e-9);
        assert!(there.most_usd(&Conversation::default()) > 0.0);
        let priced = OpenAi { usd_per_million: Some((0.28, 0.42)), ..there };
        let usage = Usage { cache_read: 500_000, output: 100_000, ..Usage { input: 500_000, ..Usage::default() } };
        assert!((priced.cost_usd(&usage) - 0.322).abs() < 1e-9);
        let there = model("https://example.org/v1", "qwen3:8b");
        assert_eq!((here.context_window(), there.context_window()), (Some(WINDOW_HERE), Some(WINDOW)));
    }

    #[test]
    fn no_name_is_no_model() {
        let options = |model: &str| OpenAiOptions {
            base_url: "https://example.org".to_owned(),
            api_key: Some(Secret::new("k\n")),
            model: model.to_owned(),
            usd_per_million: None,
            idle_timeout: Duration::ZERO,
            total_timeout: Duration::ZERO,
        };
        assert!(OpenAi::new(options("openai:")).unwrap_err().contains("openai:NAME"));
        assert!(OpenAi::new(options("openai:x")).unwrap_err().contains("OPENAI_API_KEY"));
    }
}
