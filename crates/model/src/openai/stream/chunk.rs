//! The fields of a chunk, parsed leniently: a field of the wrong type counts as missing and leaves the others intact.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use reveille_base::types::Usage;

/// Upper limit for a token count; larger counts are clamped to it.
const MOST_TOKENS: u64 = 1 << 40;

/// An event of a stream, or an entire answer.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatChunk {
    #[serde(deserialize_with = "lenient")]
    pub(super) choices: Option<Vec<Lenient<ChatChoice>>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Counts>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<Value>,
    /// Groq's place for token counts.
    #[serde(deserialize_with = "lenient")]
    pub(super) x_groq: Option<Groq>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Groq {
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Counts>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatChoice {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) delta: Option<ChatSaid>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<ChatSaid>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
    /// Moonshot's place for token counts.
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Counts>,
    /// OpenRouter's place for the error of a choice.
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ChatSaid {
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) refusal: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_content: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_details: Option<Value>,
    tool_calls: Option<Box<RawValue>>,
    /// The older form, from before several calls were possible.
    #[serde(deserialize_with = "lenient")]
    function_call: Option<RawFunction>,
}

impl ChatSaid {
    /// Takes the calls, or pieces of calls.
    pub(super) fn take_calls(&mut self) -> Vec<RawCall> {
        let raw = self.tool_calls.take();
        let raw = raw.as_ref().map_or("", |raw| raw.get());
        let listed = read_leniently::<Vec<Lenient<RawCall>>>(raw);
        let calls: Vec<RawCall> = match listed {
            Some(listed) => listed.into_iter().filter_map(|call| call.0).collect(),
            None => read_leniently(raw).into_iter().collect(),
        };
        let old = self.function_call.take().filter(|_| calls.is_empty());
        old.map_or(calls, |function| vec![RawCall { function: Some(function), ..RawCall::default() }])
    }

    /// True if there is no content besides the role.
    pub(super) fn is_empty(&self) -> bool {
        let is_blank = |value: &Option<Value>| value.as_ref().is_none_or(|value| value.is_null() || value == "");
        let Self { content, refusal, reasoning_content, reasoning, reasoning_details, tool_calls, function_call } =
            self;
        [content, reasoning_content, reasoning, reasoning_details].into_iter().all(is_blank)
            && refusal.is_none()
            && tool_calls.as_ref().is_none_or(|calls| matches!(calls.get(), "null" | "[]"))
            && function_call.is_none()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawCall {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<CallName>,
    #[serde(deserialize_with = "lenient")]
    pub(super) function: Option<RawFunction>,
    /// Extra data that Gemini's server wants back with a call.
    #[serde(deserialize_with = "lenient")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RawFunction {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
}

/// A text, or a number in its place.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum CallName {
    Text(String),
    Number(u64),
}

impl CallName {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Counts {
    #[serde(deserialize_with = "lenient")]
    prompt_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens: Option<f64>,
    /// The names of the Responses API.
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    prompt_tokens_details: Option<PromptCounts>,
    /// DeepSeek's name for cached tokens.
    #[serde(deserialize_with = "lenient")]
    prompt_cache_hit_tokens: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptCounts {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<f64>,
}

impl Counts {
    /// Returns the token counts. `None` if the prompt's count is missing or zero, as some servers send.
    pub(super) fn usage(&self) -> Option<Usage> {
        let prompt = parse_count(self.prompt_tokens.or(self.input_tokens)).filter(|tokens| *tokens > 0)?;
        let details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cached = parse_count(details.or(self.prompt_cache_hit_tokens)).unwrap_or(0).min(prompt);
        let output = parse_count(self.completion_tokens.or(self.output_tokens)).unwrap_or(0);
        Some(Usage { input: prompt - cached, output, cache_read: cached, cache_write: 0 })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is brought within bounds before")]
fn parse_count(tokens: Option<f64>) -> Option<u64> {
    tokens.filter(|tokens| tokens.is_finite()).map(|tokens| tokens.clamp(0.0, MOST_TOKENS as f64) as u64)
}

/// A list item that may have a different type from its neighbours.
pub(super) struct Lenient<T>(pub(super) Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient(deserializer).map(Self)
    }
}

/// Deserializes a field; a wrong type counts as missing.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(read_leniently(raw.get()))
}

/// Parses JSON; of a duplicate key the last value counts. `None` for a wrong type.
pub(super) fn read_leniently<T: DeserializeOwned>(raw: &str) -> Option<T> {
    let read = serde_json::from_str(raw).ok();
    read.or_else(|| serde_json::from_str(&serde_json::from_str::<Value>(raw).ok()?.to_string()).ok())
}
