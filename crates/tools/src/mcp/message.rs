//! JSON-RPC 2.0 as used by MCP: one message per text, in both directions. Values in, values out.

use serde_json::{Map, Value, json};

use reveille_base::json::has_repeated_key;

/// The requested revision of the protocol.
pub const LATEST: &str = "2025-11-25";
/// The supported revisions, which agree in the parts used here.
pub(super) const KNOWN: [&str; 4] = [LATEST, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Returns true for a supported revision.
pub(super) fn is_known(revision: &str) -> bool {
    KNOWN.contains(&revision)
}

/// A protocol error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The number, from JSON-RPC or the application.
    pub code: i64,
    /// The description.
    pub message: String,
}

impl RpcError {
    /// Invalid JSON.
    pub(super) const PARSE: i64 = -32_700;
    /// Not a message.
    pub(super) const INVALID: i64 = -32_600;
    /// An unknown method.
    pub(super) const NO_METHOD: i64 = -32_601;
    /// Invalid parameters.
    pub(super) const PARAMETERS: i64 = -32_602;
    /// An internal failure.
    pub(super) const INTERNAL: i64 = -32_603;
    /// An unknown resource (MCP's own number).
    pub(super) const NO_RESOURCE: i64 = -32_002;

    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A received message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// A request, which expects an answer.
    Request { id: Value, method: String, params: Value },
    /// An invalid request, with its answer.
    Refused { id: Value, why: RpcError },
    /// A notification, which expects no answer.
    Notification { method: String },
    /// An answer.
    Response { id: Value, result: Result<Value, RpcError> },
}

/// Maximum number of messages in a batch; a longer batch is refused.
const MAX_BATCH: usize = 64;

/// The content of one text: a message, or a batch of an older revision.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    One(Result<Message, RpcError>),
    Batch(Vec<Result<Message, RpcError>>),
}

/// Parses a text.
pub(super) fn parse(text: &str) -> Received {
    let text = text.trim_start_matches('\u{feff}');
    match serde_json::from_str(text) {
        Ok(Value::Array(values)) if (1..=MAX_BATCH).contains(&values.len()) => {
            let is_ambiguous = has_repeated_key(text);
            Received::Batch(values.into_iter().map(|value| read_message(value, &|| is_ambiguous)).collect())
        }
        Ok(value) => Received::One(read_message(value, &|| has_repeated_key(text))),
        Err(error) => Received::One(Err(RpcError::new(RpcError::PARSE, error.to_string()))),
    }
}

/// Parses a message. `is_ambiguous` returns true if its text contains a duplicate key.
fn read_message(value: Value, is_ambiguous: &dyn Fn() -> bool) -> Result<Message, RpcError> {
    let invalid = |what: &str| RpcError::new(RpcError::INVALID, what);
    let Value::Object(mut object) = value else {
        return Err(invalid("not a JSON-RPC message, nor a batch of some"));
    };
    let said_id = object.remove("id");
    let has_other_id = said_id.as_ref().is_some_and(|id| !id.is_string() && !id.is_number());
    let id = said_id.filter(|id| id.is_string() || id.is_number());
    let is_of_version = object.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    match (object.remove("method"), id) {
        // The answer uses the request's id, so that the client doesn't wait.
        (Some(_), Some(id)) if !is_of_version => Ok(Message::Refused { id, why: invalid("not JSON-RPC 2.0") }),
        _ if !is_of_version => Err(invalid("not JSON-RPC 2.0")),
        // With a duplicate key, the displayed and the executed message could differ.
        (Some(_), Some(id)) if is_ambiguous() => {
            Ok(Message::Refused { id, why: invalid("a key occurs twice in this message, so it is ambiguous") })
        }
        (Some(Value::String(method)), Some(id)) => {
            Ok(Message::Request { id, method, params: object.remove("params").unwrap_or_default() })
        }
        (Some(_), Some(id)) => Ok(Message::Refused { id, why: invalid("the method isn't a string") }),
        (Some(Value::String(method)), None) if has_other_id && !method.starts_with("notifications/") => {
            Err(invalid("the id of a request is a text or a number"))
        }
        (Some(Value::String(method)), None) => Ok(Message::Notification { method }),
        (None, Some(id)) => Ok(Message::Response { id, result: parse_outcome(object)? }),
        _ => Err(invalid("neither a request, a notification nor a response")),
    }
}

fn parse_outcome(mut object: Map<String, Value>) -> Result<Result<Value, RpcError>, RpcError> {
    match (object.remove("result"), object.remove("error")) {
        (Some(result), None) => Ok(Ok(result)),
        (None, Some(error)) => {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(RpcError::INTERNAL);
            let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without words");
            Ok(Err(RpcError::new(code, message)))
        }
        _ => Err(RpcError::new(RpcError::INVALID, "neither a result nor an error")),
    }
}

pub(super) fn render_request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(super) fn render_notification(method: &str) -> String {
    json!({"jsonrpc": "2.0", "method": method}).to_string()
}

/// Builds the answer to a request, without an id if that couldn't be read.
pub(super) fn render_response(id: Option<&Value>, result: &Result<Value, RpcError>) -> String {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Message, RpcError> {
        match parse(text) {
            Received::One(message) => message,
            Received::Batch(_) => panic!("{text} is a batch"),
        }
    }

    #[test]
    fn each_kind_of_message_is_told_by_what_it_has() {
        let is = |text: &str| one(text).unwrap();
        assert!(
            matches!(is(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Message::Request { method, .. } if method == "ping")
        );
        assert!(matches!(
            is(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            Message::Notification { .. }
        ));
        let failed = is(r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}}"#);
        assert_eq!(failed, Message::Response { id: "a".into(), result: Err(RpcError::new(-1, "no")) });
    }

    #[test]
    fn a_request_that_can_be_read_in_two_ways_is_answered_with_why() {
        let text = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"a":1,"a":2}}}"#;
        let Message::Refused { id, why } = one(text).unwrap() else { panic!() };
        assert_eq!((id, why.code), (7.into(), RpcError::INVALID));
        for text in [r#"{"id":7,"method":"ping"}"#, r#"{"jsonrpc":"2.0","method":7,"id":7}"#] {
            let Message::Refused { id, .. } = one(text).unwrap() else { panic!("{text}") };
            assert_eq!(id, 7, "whoever asked is answered under their id");
        }
    }

    #[test]
    fn a_batch_is_its_messages_and_a_mark_at_the_beginning_is_none() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let Received::Batch(messages) = parse(&format!("\u{feff}[{ping},7]")) else { panic!() };
        assert!(matches!(messages.as_slice(), [Ok(Message::Request { .. }), Err(_)]), "{messages:?}");
        assert!(one(&format!("[{}]", [ping; MAX_BATCH + 1].join(","))).is_err());
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        for (text, code) in [
            ("{", RpcError::PARSE),
            ("[]", RpcError::INVALID),
            (r#"{"method":"ping"}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","id":1}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","method":7}"#, RpcError::INVALID),
        ] {
            assert_eq!(one(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn an_answer_carries_the_id_as_it_came() {
        let answer = render_response(Some(&"x".into()), &Ok(json!({})));
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
    }
}
