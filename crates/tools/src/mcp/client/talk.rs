//! The client's half of a conversation: recognizes the awaited answer among a server's messages.
//!
//! Only one request is open at a time, so an answer is recognized even under a wrong id. Malformed messages are
//! accepted if their meaning is clear. An unreadable message ends the wait with a reason; other text is kept as a hint
//! in case the answer never comes. This module does no I/O, and its state is bounded.

use serde_json::{Map, Value, json};

use reveille_base::json::mend;

use super::{ClientError, MAX_MESSAGE_BYTES, pin::clean_text, refusal::is_session_error};
use crate::mcp::{
    RpcError,
    message::{render_request, render_response},
};

/// Maximum number of a server's requests answered during one of ours, against a flood.
const MAX_REPLIES: usize = 64;
/// Maximum length of a request id that is sent back, in bytes of JSON.
const MAX_ID_BYTES: usize = 256;
/// Maximum length of a hint, in characters.
const MAX_HINT_CHARS: usize = 300;
/// Maximum length of an error message, in characters.
const MAX_ERROR_CHARS: usize = 4_000;

/// A request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerMethod {
    Initialize,
    ListTools,
    CallTool,
}

impl ServerMethod {
    fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
        }
    }

    fn is_ours(method: &str) -> bool {
        [Self::Initialize, Self::ListTools, Self::CallTool].iter().any(|ours| ours.name() == method)
    }

    /// Returns true if a result can be the answer to this request.
    fn fits(self, result: &Value) -> bool {
        self != Self::ListTools || result.get("tools").is_some()
    }
}

/// A conversation with one server.
#[derive(Debug)]
pub(super) struct ServerTalk {
    /// Set if the transport itself pairs answers with requests, as HTTP does.
    is_paired: bool,
    method: ServerMethod,
    last_id: u64,
    /// Set once the server has answered under a wrong id.
    ignores_ids: bool,
    /// Set once the server has answered our notification, which expects no answer.
    has_answered_notification: bool,
    has_changed_tools: bool,
    replies: usize,
    /// The received part of a message spread over several lines.
    open_lines: String,
    hint: String,
}

/// The reaction to a server's text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TalkStep {
    /// The awaited answer.
    pub(super) answer: Option<Result<Value, ClientError>>,
    /// Messages to send to the server.
    pub(super) replies: Vec<String>,
}

/// A message of a server.
enum ServerMessage {
    Request {
        id: Value,
        method: String,
    },
    Notification {
        method: String,
    },
    Response {
        id: Option<Value>,
        result: Result<Value, RpcError>,
    },
    /// Meant as an answer, but without a result or an error.
    Empty {
        id: Value,
    },
}

/// The relation of a message's id to the open request.
enum IdMatch {
    Right,
    /// The id of an earlier, answered request.
    Earlier,
    Wrong,
}

impl ServerTalk {
    pub(super) fn new(is_paired: bool) -> Self {
        Self {
            is_paired,
            method: ServerMethod::Initialize,
            last_id: 0,
            ignores_ids: false,
            has_answered_notification: false,
            has_changed_tools: false,
            replies: 0,
            open_lines: String::new(),
            hint: String::new(),
        }
    }

    /// Opens a request and returns its text.
    pub(super) fn open_request(&mut self, method: ServerMethod, params: &Value) -> String {
        self.last_id += 1;
        self.method = method;
        self.replies = 0;
        self.hint.clear();
        self.open_lines.clear();
        render_request(self.last_id, method.name(), params)
    }

    /// Takes and resets the flag that the server has announced changed tools.
    pub(super) fn take_tools_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed_tools)
    }

    /// Returns true if the server has announced changed tools.
    pub(super) fn has_changed_tools(&self) -> bool {
        self.has_changed_tools
    }

    /// Returns the server's last text that wasn't an answer, on one line; may be empty.
    pub(super) fn hint(&self) -> &str {
        &self.hint
    }

    /// Processes a line, a body or an event.
    pub(super) fn process_text(&mut self, text: &str) -> TalkStep {
        let mut heard = TalkStep::default();
        match self.parse_messages(text) {
            Ok(messages) => {
                for said in messages {
                    self.process_message(said, &mut heard);
                }
            }
            Err(error) => heard.answer = Some(Err(error)),
        }
        heard
    }

    fn process_message(&mut self, said: ServerMessage, heard: &mut TalkStep) {
        match said {
            // Some servers echo our requests.
            ServerMessage::Request { method, .. } if ServerMethod::is_ours(&method) => {
                self.set_hint(&format!("our own {method}"));
            }
            ServerMessage::Request { id, method } => {
                self.replies += 1;
                if self.replies <= MAX_REPLIES && id.to_string().len() <= MAX_ID_BYTES {
                    let answer = match method.as_str() {
                        "ping" => Ok(json!({})),
                        other => Err(RpcError::new(
                            RpcError::NO_METHOD,
                            format!("{} is not supported", clean_text(other, 100)),
                        )),
                    };
                    heard.replies.push(render_response(Some(&id), &answer));
                }
            }
            ServerMessage::Notification { method } => {
                self.has_changed_tools |= method == "notifications/tools/list_changed";
            }
            ServerMessage::Empty { id } => {
                if matches!(self.classify_id(Some(&id)), IdMatch::Right) && heard.answer.is_none() {
                    let error = ClientError::Protocol("its answer holds neither a result nor an error".to_owned());
                    heard.answer = Some(Err(error));
                }
            }
            ServerMessage::Response { id, result } => {
                if heard.answer.is_none() && self.is_answer(id.as_ref(), &result) {
                    // An error with an id is the result of the call. A session error without one preceded the call, so nothing was done.
                    let has_no_id = id.as_ref().is_none_or(Value::is_null);
                    heard.answer = Some(result.map_err(|error| match has_no_id && is_session_error(&error) {
                        true => ClientError::SessionOver,
                        false => ClientError::Refused(error),
                    }));
                } else {
                    self.set_hint(&format!("an answer to something else, with the id {}", id.unwrap_or_default()));
                }
            }
        }
    }

    /// Returns true if the response answers the open request.
    fn is_answer(&mut self, id: Option<&Value>, result: &Result<Value, RpcError>) -> bool {
        let id_match = self.classify_id(id);
        if self.is_paired || matches!(id_match, IdMatch::Right) {
            return true;
        }
        let is_earlier = matches!(id_match, IdMatch::Earlier);
        let is_answer = match result {
            Ok(result) if self.ignores_ids => self.method.fits(result),
            // A repeated answer must not pass for the next call's answer; a tool list is unmistakable.
            Ok(result) => self.method.fits(result) && (!is_earlier || self.method == ServerMethod::ListTools),
            Err(_) if is_earlier && !self.ignores_ids => false,
            Err(error) => !self.is_about_notification(error),
        };
        self.ignores_ids |= is_answer;
        is_answer
    }

    /// Returns true if an error without an id answers our notification after the handshake, as many servers do.
    fn is_about_notification(&mut self, error: &RpcError) -> bool {
        let names = |word: &str| error.message.contains(word);
        let is_unknown_method = [RpcError::NO_METHOD, RpcError::INVALID].contains(&error.code);
        let is_about_it = names("notifications/")
            || (is_unknown_method
                && self.method == ServerMethod::ListTools
                && !names("tools/")
                && !self.has_answered_notification);
        self.has_answered_notification |= is_about_it;
        is_about_it
    }

    fn classify_id(&self, id: Option<&Value>) -> IdMatch {
        let number = match id {
            Some(Value::Number(number)) => number.as_u64().or_else(|| to_integer(number.as_f64()?)),
            Some(Value::String(text)) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if number == self.last_id => IdMatch::Right,
            Some(number) if (1..self.last_id).contains(&number) => IdMatch::Earlier,
            _ => IdMatch::Wrong,
        }
    }

    fn parse_messages(&mut self, text: &str) -> Result<Vec<ServerMessage>, ClientError> {
        let trimmed = text.trim_start_matches('\u{feff}').trim();
        let is_inner = !self.open_lines.is_empty() && text.starts_with([' ', '\t']);
        let error = match parse_values(trimmed) {
            _ if is_inner => None,
            Ok(values) => {
                let said: Vec<ServerMessage> = values
                    .into_iter()
                    .flat_map(split_batch)
                    .filter_map(|value| classify_message(value, self.is_paired))
                    .collect();
                if said.is_empty() {
                    self.set_hint(trimmed);
                } else {
                    self.open_lines.clear();
                }
                return Ok(said);
            }
            Err(error) => Some(error),
        };
        if self.take_open_line(text, error.as_ref()) {
            if is_end(text)
                && let Ok(whole) = parse_values(&self.open_lines)
            {
                self.open_lines.clear();
                return Ok(whole
                    .into_iter()
                    .flat_map(split_batch)
                    .filter_map(|value| classify_message(value, self.is_paired))
                    .collect());
            }
            return Ok(Vec::new());
        }
        // Text before the message on its line.
        if let Some(said) = trimmed.find("{\"jsonrpc\"").filter(|start| *start > 0) {
            return self.parse_messages(trimmed.get(said..).unwrap_or_default());
        }
        let is_framed = |word: &str| trimmed.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        if !self.is_paired && is_framed("content-length:") {
            return Err(ClientError::Protocol(
                "it puts \"Content-Length\" before its messages, as language servers do; an MCP server sends one message per line"
                    .to_owned(),
            ));
        }
        if trimmed.starts_with('{') && trimmed.contains("\"jsonrpc\"") {
            let why = error.map(|error| error.to_string()).unwrap_or_default();
            return Err(ClientError::Protocol(format!("it sent a message that can't be read: {why}")));
        }
        self.set_hint(trimmed);
        Ok(Vec::new())
    }

    /// Keeps a line of a message spread over several lines; returns false for other lines.
    fn take_open_line(&mut self, line: &str, error: Option<&serde_json::Error>) -> bool {
        if self.is_paired {
            return false;
        }
        let begins = line.starts_with('{') && error.is_some_and(serde_json::Error::is_eof);
        if begins {
            self.open_lines.clear();
        } else if self.open_lines.is_empty() {
            return false;
        }
        if self.open_lines.len() + line.len() > MAX_MESSAGE_BYTES {
            self.open_lines.clear();
            return false;
        }
        self.open_lines.push_str(line);
        self.set_hint(line);
        true
    }

    fn set_hint(&mut self, text: &str) {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        if let Some(line) = line {
            self.hint = clean_text(line, MAX_HINT_CHARS);
        }
    }
}

/// Returns true for a line that can end a message spread over several lines.
fn is_end(line: &str) -> bool {
    matches!(line.trim_end(), "}" | "]")
}

/// Parses the consecutive values in a text. Noise after them is ignored.
fn parse_values(text: &str) -> serde_json::Result<Vec<Value>> {
    let read = |text: &str| {
        let (mut values, mut error) = (Vec::new(), None);
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            match value {
                Ok(value) => values.push(value),
                Err(why) => {
                    error = Some(why);
                    break;
                }
            }
        }
        match error {
            Some(error) if !values.iter().any(|value| value.is_object() || value.is_array()) => Err(error),
            _ => Ok(values),
        }
    };
    read(text).or_else(|error| match mend(text) {
        Some(mended) => read(&mended).map_err(|_| error),
        None => Err(error),
    })
}

/// Returns the messages of a batch, or a single message.
fn split_batch(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values,
        other => vec![other],
    }
}

/// Classifies a message; `None` for other values. `is_paired` means that the transport marks the value as an answer.
fn classify_message(value: Value, is_paired: bool) -> Option<ServerMessage> {
    let Value::Object(mut object) = value else { return None };
    let id = object.shift_remove("id").filter(|id| id.is_string() || id.is_number());
    if let Some(Value::String(method)) = object.get("method") {
        let method = method.clone();
        return Some(match id {
            Some(id) => ServerMessage::Request { id, method },
            None => ServerMessage::Notification { method },
        });
    }
    // Log lines may have an "error" too.
    let is_ours = is_paired || object.contains_key("jsonrpc") || id.is_some();
    match take_outcome(object).filter(|_| is_ours) {
        Some(result) => Some(ServerMessage::Response { id, result }),
        None => id.map(|id| ServerMessage::Empty { id }),
    }
}

/// Returns a result or an error; `None` if there is neither.
fn take_outcome(mut object: Map<String, Value>) -> Option<Result<Value, RpcError>> {
    let is_error = |error: &Value| !matches!(error, Value::Null | Value::Bool(false)) && *error != json!("");
    match (object.shift_remove("result"), object.shift_remove("error").filter(is_error)) {
        (_, Some(error)) => Some(Err(read_error(&error))),
        (Some(result), None) => Some(Ok(result)),
        (None, None) => None,
    }
}

/// Parses an error of any form.
pub(super) fn read_error(error: &Value) -> RpcError {
    let code = match error.get("code") {
        Some(Value::Number(code)) => code.as_i64(),
        Some(Value::String(code)) => code.trim().parse().ok(),
        _ => None,
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let words = match (error.get("message"), error.get("data").filter(|data| !data.is_null())) {
        (Some(message), None) => text(message),
        (Some(message), Some(data)) => format!("{}: {}", text(message), text(data)),
        (None, _) => text(error),
    };
    let words = if words.trim().is_empty() { "an error without words".to_owned() } else { words };
    RpcError::new(code.unwrap_or(RpcError::INTERNAL), clean_text(&words, MAX_ERROR_CHARS))
}

fn to_integer(number: f64) -> Option<u64> {
    format!("{number:.0}").parse().ok().filter(|_| number.fract() == 0.0)
}

#[cfg(test)]
mod tests;
