//! From what a server answers instead of a turn to what the caller should do about it. Servers say it in many forms.
//!
//! Only the server's own short message goes into an error: no URL, no header, no request body.

use std::time::Duration;

use serde_json::Value;

use super::encode::Wording;
use crate::{
    model::{ModelError, TOO_LONG, anthropic::retry_after},
    outside::{Origin, Outside},
    types::Usage,
};

/// Words by which servers say that a conversation is longer than the model's window.
const OVERFLOW: [&str; 9] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "available context size",
    "context window",
    "context length",
    "prompt is too long",
    "input is too long",
    "too many tokens",
];
/// Words by which they say that an answer may not be as long.
const TOO_LARGE: [&str; 5] = ["too large", "too high", "less than or equal", "at most", "valid range"];
/// Words by which they say that they don't have a model.
const NO_MODEL: [&str; 6] =
    ["model_not_found", "not found", "does not exist", "not a valid model", "unknown model", "invalid model"];
/// Words by which they say that a picture can't be read, under whatever status.
const NO_PICTURES: [&str; 3] = ["image input is not supported", "does not support image", "not a multimodal model"];
/// Words by which they say that the account has no money left.
const NO_MONEY: [&str; 3] = ["insufficient_quota", "insufficient credits", "billing"];

/// An answer with another status than 200.
#[derive(Debug, Default)]
pub(super) struct ServerRefusal {
    status: u16,
    retry_after: Option<Duration>,
    /// What the server says; none: these aren't the words of such a server.
    said: Option<String>,
    /// Its kinds and codes, and what it says, in small letters.
    words: String,
}

/// What the caller should do.
enum Remedy {
    Wait,
    AskPerson,
    GiveUp(u16),
}

impl ServerRefusal {
    /// Reads an answer. `retry_after` and `date` are its headers.
    pub(super) fn read(status: u16, retry_after_said: Option<&str>, date: Option<&str>, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let retry_after = retry_after_said.and_then(|value| retry_after(value, date));
        Self { status, retry_after, ..Self::of(&body) }
    }

    /// Of a body, or of an event in the middle of a stream.
    fn of(body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        // FastAPI's `detail` alone may be of a path that isn't there.
        let said = error.as_str().or_else(|| text("message")).map(str::to_owned);
        let named = ["type", "code", "param"].into_iter().filter_map(text).chain(said.as_deref());
        let detail = body.get("detail").map(Value::to_string).unwrap_or_default();
        let words = format!("{} {detail}", named.collect::<Vec<_>>().join(" ")).to_lowercase();
        Self { said, words, ..Self::default() }
    }

    fn says_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    /// What of our request the server doesn't know, where that is what it complains of.
    pub(super) fn wording(&self) -> Option<Wording> {
        if !matches!(self.status, 400 | 422 | 500 | 501) {
            return None;
        }
        let is_of_length = self.says_any(&["max_tokens", "max_completion_tokens"]);
        // Before what a conversation is too long for: a shorter answer may leave it room.
        if is_of_length && self.words.contains("is too large") {
            return Some(Wording::TooLarge);
        }
        if self.says_any(&OVERFLOW) {
            return None;
        }
        if self.words.contains("stream_options") {
            Some(Wording::StreamOptions)
        } else if is_of_length && self.says_any(&TOO_LARGE) {
            Some(Wording::TooLarge)
        } else if is_of_length {
            Some(Wording::MaxTokens)
        } else if self.says_any(&["response_format", "json_schema", "json schema", "grammar"]) {
            Some(Wording::Format)
        } else if self.words.replace("upstream", "").contains("stream") {
            Some(Wording::Stream)
        } else {
            None
        }
    }

    /// The error for this answer. `model` as `MODEL` has it, `server` by its host.
    pub(super) fn into_error(self, model: &str, server: &str) -> ModelError {
        let status = self.status;
        let said = self.said.as_deref().map(|said| format!(": {}", Outside::new(Origin::Model, said)));
        let said = said.unwrap_or_default();
        let is_of_model = self.says_any(&NO_MODEL) && self.words.contains("model") && !model.is_empty();
        let what = |what: &str| format!("{server} {what} (HTTP {status}){said}");
        let (remedy, why) = match status {
            300..=399 => {
                let why = "answered with a redirect, which isn't followed: it would carry the key elsewhere. Check OPENAI_BASE_URL";
                (Remedy::AskPerson, what(why))
            }
            400 | 413 | 422 | 500 if self.says_any(&OVERFLOW) => {
                (Remedy::GiveUp(TOO_LONG), what("can't take this conversation: it is longer than the model's window"))
            }
            413 => (Remedy::GiveUp(TOO_LONG), what("can't take this conversation: it is too large")),
            401 => (Remedy::AskPerson, what("refused the key, please check OPENAI_API_KEY")),
            402 => (Remedy::AskPerson, what("wants to be paid")),
            400 | 404 | 422 if is_of_model => {
                (Remedy::GiveUp(404), format!("{server} has no model {model} (HTTP {status}){said}"))
            }
            403 => (Remedy::AskPerson, what("doesn't allow this")),
            429 if self.says_any(&NO_MONEY) => (Remedy::AskPerson, what("has no quota left for this key")),
            _ if self.says_any(&NO_PICTURES) => {
                (Remedy::GiveUp(400), what("can't read the pictures in this conversation"))
            }
            408 | 409 | 425 | 429 | 500..=599 => (Remedy::Wait, what("can't answer now")),
            // Not such a server's own words: the address is another's, or a sign-in page stands between.
            _ if self.said.is_none() || status == 404 => (
                Remedy::AskPerson,
                what("doesn't speak as OpenAI's API does. Check OPENAI_BASE_URL, which often ends in /v1"),
            ),
            other => (Remedy::GiveUp(other), what("refused the request")),
        };
        match remedy {
            Remedy::Wait => ModelError::Transient { why, retry_after: self.retry_after, spent: Usage::default() },
            Remedy::AskPerson => ModelError::Account { why },
            Remedy::GiveUp(status) => ModelError::Rejected { status, why },
        }
    }
}

/// The error of an event in the middle of a stream, after `spent` tokens.
pub(super) fn from_event(error: &Value, server: &str, spent: Usage) -> ModelError {
    let answer = ServerRefusal::of(error);
    let said = Outside::new(Origin::Model, answer.said.as_deref().unwrap_or("no reason given"));
    let why = format!("{server} broke off its answer: {said}");
    if answer.says_any(&OVERFLOW) {
        return ModelError::Rejected { status: TOO_LONG, why };
    }
    ModelError::Transient { why, retry_after: None, spent }
}

/// An answer that isn't what was asked for.
pub(super) fn malformed(server: &str) -> ModelError {
    let why = format!("{server} answered something that isn't a chat completion");
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        ServerRefusal::read(status, None, None, body.as_bytes()).into_error("openai:qwen3:8b", "127.0.0.1:11434")
    }

    #[test]
    fn too_long_a_conversation_is_recognised_in_every_servers_words() {
        for (status, body) in [
            (
                400,
                r#"{"error":{"code":400,"message":"request (7530 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":7530,"n_ctx":4096}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}"#,
            ),
            (413, "{}"),
        ] {
            assert!(matches!(refused(status, body), ModelError::Rejected { status: TOO_LONG, .. }), "{status} {body}");
        }
    }

    #[test]
    fn an_unknown_model_is_named_and_an_unknown_path_is_the_address() {
        for (status, body) in [
            (404, r#"{"error":{"message":"model \"qwen3:8b\" not found, try pulling it first","type":"api_error"}}"#),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
            ),
            (400, r#"{"error":{"message":"x/y is not a valid model ID","code":400}}"#),
        ] {
            let ModelError::Rejected { status: 404, why } = refused(status, body) else { panic!("{body}") };
            assert!(why.contains("openai:qwen3:8b"), "{why}");
        }
        for body in [
            "<html>",
            r#"{"detail":"Not Found"}"#,
            r#"{"error":{"message":"File Not Found","type":"not_found_error","code":404}}"#,
        ] {
            let ModelError::Account { why } = refused(404, body) else { panic!("{body}") };
            assert!(why.contains("OPENAI_BASE_URL"), "{why}");
        }
    }

    #[test]
    fn each_fault_says_what_to_do() {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            assert!(matches!(refused(status, "<html>"), ModelError::Transient { .. }), "{status}");
        }
        assert!(matches!(
            refused(503, r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#),
            ModelError::Transient { .. }
        ));
        for (status, body) in [
            (401, "{}"),
            (402, r#"{"error":{"message":"Insufficient credits"}}"#),
            (403, "{}"),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}"#,
            ),
            (302, ""),
            (400, "<html>sign in</html>"),
        ] {
            assert!(matches!(refused(status, body), ModelError::Account { .. }), "{status} {body}");
        }
        let picture = r#"{"error":{"code":500,"message":"image input is not supported - hint: provide the mmproj","type":"server_error"}}"#;
        assert!(matches!(refused(500, picture), ModelError::Rejected { status: 400, .. }));
        let own = r#"{"error":{"message":"no","type":"invalid_request_error"}}"#;
        assert!(matches!(refused(422, own), ModelError::Rejected { status: 422, .. }));
        let slow = ServerRefusal::read(429, Some("7"), None, b"{}").into_error("m", "s");
        assert!(matches!(slow, ModelError::Transient { retry_after: Some(wait), .. } if wait.as_secs() == 7));
    }

    #[test]
    fn what_a_server_does_not_know_is_found_out() {
        let wording = |status: u16, said: &str| {
            ServerRefusal::read(status, None, None, format!(r#"{{"error":{{"message":"{said}"}}}}"#).as_bytes())
                .wording()
        };
        let cases = [
            (
                400,
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some(Wording::MaxTokens),
            ),
            (422, "Extra inputs are not permitted: stream_options", Some(Wording::StreamOptions)),
            (500, "Cannot use tools with stream", Some(Wording::Stream)),
            (400, "failed to parse grammar", Some(Wording::Format)),
            (
                400,
                "max_tokens is too large: 8192. This model supports at most 4096 completion tokens",
                Some(Wording::TooLarge),
            ),
            (
                400,
                "'max_tokens' is too large: 8192. This model's maximum context length is 9000",
                Some(Wording::TooLarge),
            ),
            (400, "`max_tokens` must be less than or equal to `4096`", Some(Wording::TooLarge)),
            (400, "max_tokens: the maximum context length is 4096", None),
            (401, "stream", None),
            (500, "upstream error", None),
            (400, "something else", None),
        ];
        for (status, said, wanted) in cases {
            assert_eq!(wording(status, said), wanted, "{said}");
        }
        let detail = r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs"}]}"#;
        assert_eq!(ServerRefusal::read(422, None, None, detail.as_bytes()).wording(), Some(Wording::StreamOptions));
    }
}
