//! Turns a server's refusal or complaint into an error for the caller. Servers word them in many forms.
//!
//! Errors contain only the server's own short message: no URL, no header, no request body.

use std::time::Duration;

use serde_json::Value;

use reveille_base::types::Usage;
use reveille_memory::outside::{Origin, Outside};

use super::encode::Wording;
use crate::{ModelError, TOO_LONG, anthropic::parse_retry_after, complaint::Complaint};

/// Wordings for a requested answer that is too long.
const TOO_LARGE: [&str; 6] =
    ["too large", "too high", "less than or equal", "at most", "valid range", "range of max_tokens"];
/// Wordings for a request that is too long only because of the answer's length.
const WITH_ANSWER: [&str; 5] =
    ["in the completion", "in the output", "for the completion", "output tokens and", "output tokens. however"];
/// Wordings for an unknown model.
const NO_MODEL: [&str; 8] = [
    "model_not_found",
    "not found",
    "does not exist",
    "not a valid model",
    "unknown model",
    "invalid model",
    "no such model",
    "unsupported model",
];
/// Wordings for unsupported pictures, under any status.
const NO_PICTURES: [&str; 5] = [
    "image input is not supported",
    "does not support image",
    "not a multimodal model",
    "support image input",
    "image_url is not supported",
];
/// Wordings for a model without tools.
const NO_TOOLS: [&str; 13] = [
    "does not support tools",
    "doesn't support tools",
    "does not support tool",
    "tool choice requires",
    "tools is not supported",
    "tools are not supported",
    "tool use is not supported",
    "support tool use",
    "tool calling is not supported",
    "does not support function calling",
    "function calling is not supported",
    "function calling is not enabled",
    "tools param requires",
];
/// Wordings by which a model's template rejects a system message.
const NO_SYSTEM: [&str; 6] = [
    "system role not supported",
    "system role is not supported",
    "roles must alternate",
    "does not support 'system'",
    "got system",
    "developer instruction is not enabled",
];
/// Wordings for an unsupported temperature.
const NO_TEMPERATURE: [&str; 4] =
    ["'temperature'", "`temperature`", "temperature is not supported", "temperature is deprecated"];
/// An answer with a status other than 200.
#[derive(Debug, Default)]
pub(super) struct ServerRefusal {
    status: u16,
    retry_after: Option<Duration>,
    complaint: Complaint,
    /// Plain text from something other than such a server, perhaps a proxy.
    plain: Option<String>,
}

/// The caller's next act.
enum Remedy {
    Wait,
    AskPerson,
    GiveUp(u16),
}

impl ServerRefusal {
    /// Parses an answer; `retry_after_said` and `date` are headers.
    pub(super) fn parse(status: u16, retry_after_said: Option<&str>, date: Option<&str>, body: &[u8]) -> Self {
        let complaint = Complaint::parse_body(body);
        let waits = retry_after_said.and_then(|value| parse_retry_after(value, date)).or(complaint.wait);
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let is_plain = complaint.said.is_none() && !text.is_empty() && !text.starts_with(['<', '{', '[']);
        let plain = is_plain.then(|| text.to_owned());
        Self { status, retry_after: waits, complaint, plain }
    }

    fn says_any(&self, words: &[&str]) -> bool {
        self.complaint.says_any(words)
    }

    /// Returns the part of our request that the server doesn't support. `None` for any other complaint.
    pub(super) fn find_wording(&self) -> Option<Wording> {
        if !matches!(self.status, 400 | 404 | 422 | 500 | 501) {
            return None;
        }
        let is_of_length = self.says_any(&["max_tokens", "max_completion_tokens", "max_output_tokens"]);
        // Checked before the conversation's length: a shorter answer may leave enough room.
        if is_of_length && self.says_any(&["is too large"]) {
            return Some(Wording::TooLarge);
        }
        if self.complaint.is_too_long() {
            return self.says_any(&WITH_ANSWER).then_some(Wording::TooLarge);
        }
        if self.says_any(&["stream_options"]) {
            Some(Wording::StreamOptions)
        } else if is_of_length && self.says_any(&TOO_LARGE) {
            Some(Wording::TooLarge)
        } else if self.status != 404 && is_of_length {
            Some(Wording::MaxTokens)
        } else if self.says_any(&NO_TOOLS) {
            Some(Wording::Tools)
        } else if self.says_any(&NO_SYSTEM) {
            Some(Wording::System)
        } else if self.status == 404 {
            None
        } else if self.says_any(&NO_TEMPERATURE) {
            Some(Wording::Temperature)
        } else if self.says_any(&["response_format", "json_schema", "json schema", "grammar"]) {
            Some(Wording::Format)
        } else if self.complaint.says_any_without("upstream", "stream") {
            Some(Wording::Stream)
        } else {
            None
        }
    }

    /// Builds the error. `model` is the name in `MODEL`, `server` the host.
    pub(super) fn into_error(self, model: &str, server: &str) -> ModelError {
        let status = self.status;
        let is_own = self.complaint.said.is_some();
        let said = self.complaint.said.as_deref().or(self.plain.as_deref());
        let said = said.map(|said| format!(": {}", quote_server(said))).unwrap_or_default();
        let complaint = &self.complaint;
        let is_of_model = self.says_any(&NO_MODEL) && self.says_any(&["model"]) && !model.is_empty();
        let what = |what: &str| format!("{server} {what} (HTTP {status}){said}");
        let (remedy, why) = match status {
            300..=399 => {
                let why = "answered with a redirect, which isn't followed: it would carry the key elsewhere. Check OPENAI_BASE_URL";
                (Remedy::AskPerson, what(why))
            }
            400 | 404 | 413 | 422 | 429 | 500..=599 if complaint.is_too_long() => {
                (Remedy::GiveUp(TOO_LONG), what("can't take this conversation: it is longer than the model's window"))
            }
            413 => (Remedy::GiveUp(TOO_LONG), what("can't take this conversation: it is too large")),
            401 => (Remedy::AskPerson, what("refused the key, please check OPENAI_API_KEY")),
            402 => (Remedy::AskPerson, what("needs payment")),
            400 | 403 | 422 | 429 if complaint.is_of_money() => {
                (Remedy::AskPerson, what("has no quota left for this key"))
            }
            400 | 403 | 404 | 422 | 500 if complaint.is_of_key() => {
                (Remedy::AskPerson, what("refused the key, please check OPENAI_API_KEY"))
            }
            400 | 404 | 422 if is_of_model => {
                (Remedy::GiveUp(404), format!("{server} has no model {model} (HTTP {status}){said}"))
            }
            400 | 403 | 404 | 422 if complaint.is_busy() => (Remedy::Wait, what("can't answer now")),
            403 => (Remedy::AskPerson, what("doesn't allow this")),
            _ if self.says_any(&NO_PICTURES) => {
                (Remedy::GiveUp(400), what("can't read the pictures in this conversation"))
            }
            400 | 422 if complaint.is_miscalled() => (Remedy::Wait, what("couldn't read a call of its model")),
            408 | 409 | 424 | 425 | 429 | 499 | 500..=599 => (Remedy::Wait, what("can't answer now")),
            // The text isn't such a server's: the address is wrong, or a sign-in page answered.
            _ if !is_own || status == 404 => (
                Remedy::AskPerson,
                what("doesn't answer like OpenAI's API. Check OPENAI_BASE_URL, which often ends in /v1"),
            ),
            other => (Remedy::GiveUp(other), what("refused the request")),
        };
        self.build_error(&remedy, why, Usage::default())
    }

    fn build_error(&self, remedy: &Remedy, why: String, spent: Usage) -> ModelError {
        match remedy {
            Remedy::Wait => ModelError::Transient { why, retry_after: self.retry_after, spent },
            Remedy::AskPerson => ModelError::Account { why },
            Remedy::GiveUp(status) => ModelError::Rejected { status: *status, why },
        }
    }
}

/// Builds the error of a complaint within a stream, after `spent` tokens. `model` is the name in `MODEL`.
pub(super) fn from_event(event: &Value, server: &str, model: &str, spent: Usage) -> ModelError {
    let complaint = Complaint::parse(event);
    let said = quote_server(complaint.said.as_deref().unwrap_or("no reason given"));
    let refusal = ServerRefusal { retry_after: complaint.wait, complaint, ..ServerRefusal::default() };
    let (complaint, status) = (&refusal.complaint, refusal.complaint.status);
    let is_refused = status
        .is_some_and(|status| matches!(status, 400..=499) && !matches!(status, 408 | 409 | 424 | 425 | 429 | 499));
    let is_invalid = is_refused || status.is_none() && complaint.says_any(&["invalid_request_error"]);
    let is_of_model = refusal.says_any(&NO_MODEL) && refusal.says_any(&["model"]);
    let what = |what: &str| format!("{server} {what}: {said}");
    let broke_off = "broke off its answer";
    let (remedy, why) = if complaint.is_too_long() {
        (Remedy::GiveUp(TOO_LONG), what("can't take this conversation, which is longer than the model's window"))
    } else if status == Some(401) || (is_invalid || status.is_none()) && complaint.is_of_key() {
        (Remedy::AskPerson, what("refused the key, please check OPENAI_API_KEY"))
    } else if status == Some(402) || complaint.is_of_money() {
        (Remedy::AskPerson, what("has no quota left for this key"))
    } else if complaint.is_busy() || complaint.is_miscalled() {
        (Remedy::Wait, what(broke_off))
    } else if is_invalid && is_of_model {
        (Remedy::GiveUp(404), format!("{server} has no model {model}: {said}"))
    } else if status == Some(403) {
        (Remedy::AskPerson, what("doesn't allow this"))
    } else if is_invalid {
        (Remedy::GiveUp(400), what("refused the request"))
    } else {
        (Remedy::Wait, what(broke_off))
    };
    refusal.build_error(&remedy, why, spent)
}

/// Quotes a server's words as one bounded line.
pub(super) fn quote_server(said: &str) -> Outside {
    Outside::new(Origin::Model, said)
}

/// Builds the error for an answer of an unexpected kind.
pub(super) fn build_malformed(server: &str) -> ModelError {
    let why = format!("{server} answered with something that isn't a chat completion");
    ModelError::Transient { why, retry_after: None, spent: Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        ServerRefusal::parse(status, None, None, body.as_bytes()).into_error("openai:qwen3:8b", "127.0.0.1:11434")
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

    /// Refusals as servers send them. A new report is one line: the server, the status, its bytes, the required action.
    #[test]
    fn each_servers_refusal_says_what_to_do() {
        for (server, status, body, wanted, words) in [
            (
                "Gemini",
                400,
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
                "person",
                "API key not valid",
            ),
            (
                "a proxy",
                403,
                r#"{"error":{"message":"Invalid token","type":"one_api_error"}}"#,
                "person",
                "OPENAI_API_KEY",
            ),
            ("a proxy", 500, r#"{"error":{"message":"Incorrect API key provided"}}"#, "person", "OPENAI_API_KEY"),
            (
                "one-api",
                403,
                r#"{"error":{"message":"user quota is not enough","code":"insufficient_user_quota"}}"#,
                "person",
                "quota",
            ),
            (
                "Gemini",
                429,
                r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 26s.","status":"RESOURCE_EXHAUSTED"}}]"#,
                "wait 26",
                "retry in 26s",
            ),
            (
                "OpenAI",
                429,
                r#"{"error":{"message":"Rate limit reached. Please try again in 1.5s.","code":"rate_limit_exceeded"}}"#,
                "wait 1",
                "try again",
            ),
            (
                "OpenAI",
                429,
                r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run successfully.","code":"rate_limit_exceeded"}}"#,
                "too long",
                "",
            ),
            ("a proxy", 400, r#"{"error":{"message":"rate limit exceeded, try again later"}}"#, "wait", "rate limit"),
            (
                "Groq",
                400,
                r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","code":"tool_use_failed","failed_generation":"x"}}"#,
                "wait",
                "call of its model",
            ),
            (
                "OpenRouter",
                400,
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"bad schema\"}}"}}}"#,
                "give up 400",
                "bad schema",
            ),
            (
                "vLLM",
                400,
                r#"{"object":"error","message":"no such thing","type":"BadRequestError","code":400}"#,
                "give up 400",
                "no such thing",
            ),
            ("FastAPI", 422, r#"{"detail":"a field is missing"}"#, "give up 422", "a field is missing"),
            ("nginx", 413, "<html>413 Request Entity Too Large</html>", "too long", ""),
            (
                "Envoy",
                503,
                "upstream connect error or disconnect/reset before headers",
                "wait",
                "upstream connect error",
            ),
            ("Cloudflare", 524, "<html>timeout</html>", "wait", "524"),
            ("a page", 400, "<html>sign in</html>", "person", "OPENAI_BASE_URL"),
            ("words", 400, "No such path", "person", "No such path"),
            ("an event", 400, "data: {\"error\":{\"message\":\"prompt is too long\"}}\n\n", "too long", ""),
            ("no one", 404, r#"{"detail":"Not Found"}"#, "person", "OPENAI_BASE_URL"),
        ] {
            let (got, why) = match refused(status, body) {
                ModelError::Transient { why, retry_after: Some(wait), .. } => (format!("wait {}", wait.as_secs()), why),
                ModelError::Transient { why, retry_after: None, .. } => ("wait".to_owned(), why),
                ModelError::Account { why } => ("person".to_owned(), why),
                ModelError::Rejected { status: TOO_LONG, why } => ("too long".to_owned(), why),
                ModelError::Rejected { status, why } => (format!("give up {status}"), why),
            };
            assert!(
                got == wanted && why.contains(words),
                "{server} {status} {body}: {wanted} was wanted, {got} came: {why}"
            );
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
        let slow = ServerRefusal::parse(429, Some("7"), None, b"{}").into_error("m", "s");
        assert!(matches!(slow, ModelError::Transient { retry_after: Some(wait), .. } if wait.as_secs() == 7));
    }

    #[test]
    fn what_a_server_does_not_know_is_found_out() {
        let wording = |status: u16, said: &str| {
            ServerRefusal::parse(status, None, None, format!(r#"{{"error":{{"message":"{said}"}}}}"#).as_bytes())
                .find_wording()
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
            (400, "Range of max_tokens should be [1, 8192]", Some(Wording::TooLarge)),
            (
                400,
                "maximum context length is 4097 tokens. However, you requested 4431 tokens (3431 in the messages, 1000 in the completion)",
                Some(Wording::TooLarge),
            ),
            (400, "registry.ollama.ai/library/x does not support tools", Some(Wording::Tools)),
            (
                400,
                "'auto' tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
                Some(Wording::Tools),
            ),
            (404, "No endpoints found that support tool use", Some(Wording::Tools)),
            (500, "tools param requires --jinja flag", Some(Wording::Tools)),
            (400, "System role not supported", Some(Wording::System)),
            (
                500,
                "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...",
                Some(Wording::System),
            ),
            (400, "Unsupported value: 'temperature' does not support 0 with this model.", Some(Wording::Temperature)),
            (404, "The model does not exist", None),
            (401, "stream", None),
            (500, "upstream error", None),
            (400, "something else", None),
        ];
        for (status, said, wanted) in cases {
            assert_eq!(wording(status, said), wanted, "{said}");
        }
        let detail = r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs"}]}"#;
        assert_eq!(
            ServerRefusal::parse(422, None, None, detail.as_bytes()).find_wording(),
            Some(Wording::StreamOptions)
        );
    }
}
