//! A server's refusal by HTTP: the status, and whatever words come with it.

use reqwest::{Response, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};

use reveille_base::words::one_line;

use super::{ClientError, http::read, pin::clean, talk::read_error};
use crate::mcp::RpcError;

/// How much of a refusal is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// How much of one is told, in characters.
const MAX_WORDS_CHARS: usize = 300;
/// The numbers that servers give to an error about a session: their own, and that of an invalid request.
const SESSION_CODES: [i64; 3] = [-32_000, -32_001, RpcError::INVALID];

/// An answer with a status that isn't a success.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    /// An error of the protocol.
    error: Option<RpcError>,
    /// What it says in another form, on one line; empty if nothing.
    words: String,
    /// How long it wants to be left alone, as it says it.
    retry_after: Option<String>,
}

/// Reads what a server says to a request that it refuses.
pub(super) async fn read_refusal(response: Response) -> HttpRefusal {
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()).map(|after| clean(after, 40));
    let body = read(response, MAX_REFUSAL_BYTES).await.ok().flatten().unwrap_or_default();
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(&body) else {
        let is_page = body.trim_start().starts_with('<');
        let words = if is_page { String::new() } else { clean(&one_line(&body), MAX_WORDS_CHARS) };
        return HttpRefusal { status, error: None, words, retry_after };
    };
    let is_rpc = object.contains_key("jsonrpc");
    let error = object.get("error").filter(|error| is_rpc && !error.is_null()).map(read_error);
    let said = ["error_description", "detail", "message", "error"].iter().find_map(|key| object.get(*key));
    let words = said.map(|said| read_error(&json!({"message": said})).message).unwrap_or_default();
    HttpRefusal { status, error, words: clean(&one_line(&words), MAX_WORDS_CHARS), retry_after }
}

impl HttpRefusal {
    /// The error that it is. `has_session`: whether the request named a session.
    pub(super) fn into_error(self, has_session: bool) -> ClientError {
        let (status, words) = (self.status, self.words);
        let said = self.error.as_ref().map_or(words.as_str(), |error| &error.message);
        // Some answer 400 to a session that they don't know.
        if has_session
            && (status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && is_about_session(said)))
        {
            return ClientError::SessionOver;
        }
        let told = match (status, self.error) {
            (StatusCode::UNAUTHORIZED, _) => {
                "it wants a sign-in: a token that it gives you belongs into headers in mcp.toml".to_owned()
            }
            (StatusCode::FORBIDDEN, _) => "it doesn't allow this to the token in headers in mcp.toml".to_owned(),
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) => match self.retry_after {
                Some(after) if after.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("it is too busy now and asks to wait {after} s")
                }
                _ => "it is too busy now".to_owned(),
            },
            (_, Some(error)) => return ClientError::Refused(error),
            (StatusCode::NOT_FOUND, None) => "there is no MCP server at its url".to_owned(),
            (StatusCode::METHOD_NOT_ALLOWED, None) => {
                "its url takes no messages by POST: a server with the older HTTP+SSE transport isn't spoken with"
                    .to_owned()
            }
            _ => "it answered with an error".to_owned(),
        };
        let words = if words.is_empty() { words } else { format!(": {words}") };
        ClientError::Unreachable(format!("{told} (HTTP {}){words}", status.as_u16()))
    }
}

/// Whether an error that came as an answer says that a session is over.
pub(super) fn is_session_error(error: &RpcError) -> bool {
    SESSION_CODES.contains(&error.code) && is_about_session(&error.message)
}

/// Whether an error says that a session is missing or over.
fn is_about_session(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    let is_gone =
        ["not found", "expired", "invalid", "terminated", "unknown", "no valid", "does not exist", "not exist"];
    words.contains("session") && is_gone.iter().any(|gone| words.contains(gone))
}
