//! A server's refusal by HTTP: the status, and any words.

use reqwest::{Response, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};

use reveille_base::words::one_line;

use super::{ClientError, http::read_body, pin::clean_text, talk::read_error};
use crate::mcp::RpcError;

/// Maximum bytes read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Maximum characters shown of a refusal.
const MAX_WORDS_CHARS: usize = 300;
/// The codes of session errors: servers' own, and that of an invalid request.
const SESSION_CODES: [i64; 3] = [-32_000, -32_001, RpcError::INVALID];

/// A response with an error status.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    /// A protocol error in the body.
    error: Option<RpcError>,
    /// Words in another form, on one line; may be empty.
    words: String,
    /// The requested delay, as sent.
    retry_after: Option<String>,
}

/// Reads the server's refusal of a request.
pub(super) async fn read_refusal(response: Response) -> HttpRefusal {
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(|after| clean_text(after, 40));
    let body = read_body(response, MAX_REFUSAL_BYTES).await.ok().flatten().unwrap_or_default();
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(&body) else {
        let is_page = body.trim_start().starts_with('<');
        let words = if is_page { String::new() } else { clean_text(&one_line(&body), MAX_WORDS_CHARS) };
        return HttpRefusal { status, error: None, words, retry_after };
    };
    let is_rpc = object.contains_key("jsonrpc");
    let error = object.get("error").filter(|error| is_rpc && !error.is_null()).map(read_error);
    let said = ["error_description", "detail", "message", "error"].iter().find_map(|key| object.get(*key));
    let words = said.map(|said| read_error(&json!({"message": said})).message).unwrap_or_default();
    HttpRefusal { status, error, words: clean_text(&one_line(&words), MAX_WORDS_CHARS), retry_after }
}

impl HttpRefusal {
    /// Classifies the refusal. `has_session` is true if the request named a session.
    pub(super) fn into_error(self, has_session: bool) -> ClientError {
        let (status, words) = (self.status, self.words);
        let said = self.error.as_ref().map_or(words.as_str(), |error| &error.message);
        // Some servers answer 400 for an unknown session.
        if has_session
            && (status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && is_about_session(said)))
        {
            return ClientError::SessionOver;
        }
        let told = match (status, self.error) {
            (StatusCode::UNAUTHORIZED, _) => {
                "it wants a sign-in: put the token that it gives you into headers in mcp.toml".to_owned()
            }
            (StatusCode::FORBIDDEN, _) => "it doesn't allow this with the token in headers in mcp.toml".to_owned(),
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) => match self.retry_after {
                Some(after) if after.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("it is too busy now and asks to wait {after} s")
                }
                _ => "it is too busy now".to_owned(),
            },
            (_, Some(error)) => return ClientError::Refused(error),
            (StatusCode::NOT_FOUND, None) => "there is no MCP server at its url".to_owned(),
            (StatusCode::METHOD_NOT_ALLOWED, None) => {
                "its url accepts no messages by POST: servers with the older HTTP+SSE transport aren't supported"
                    .to_owned()
            }
            _ => "it answered with an error".to_owned(),
        };
        let words = if words.is_empty() { words } else { format!(": {words}") };
        ClientError::Unreachable(format!("{told} (HTTP {}){words}", status.as_u16()))
    }
}

/// Returns true if an error sent as an answer reports the end of a session.
pub(super) fn is_session_error(error: &RpcError) -> bool {
    SESSION_CODES.contains(&error.code) && is_about_session(&error.message)
}

/// Returns true if an error is about a missing or ended session.
fn is_about_session(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    let is_gone =
        ["not found", "expired", "invalid", "terminated", "unknown", "no valid", "does not exist", "not exist"];
    words.contains("session") && is_gone.iter().any(|gone| words.contains(gone))
}
