//! JSON-RPC 2.0 as MCP uses it: one message a text, in both directions. Values in, values out.

use serde_json::{Map, Value, json};

use crate::json::has_key_twice;

/// The revision of the protocol that we ask for.
pub const LATEST: &str = "2025-11-25";
/// The revisions whose parts that we use are the same.
pub(super) const KNOWN: [&str; 4] = [LATEST, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Whether we can speak this revision.
pub(super) fn is_known(revision: &str) -> bool {
    KNOWN.contains(&revision)
}

/// An error as the protocol carries it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// JSON-RPC's or the application's number.
    pub code: i64,
    /// What is wrong.
    pub message: String,
}

impl RpcError {
    /// It isn't JSON.
    pub(super) const PARSE: i64 = -32_700;
    /// It isn't a message.
    pub(super) const INVALID: i64 = -32_600;
    /// There is no such method.
    pub(super) const NO_METHOD: i64 = -32_601;
    /// Its parameters don't fit.
    pub(super) const PARAMETERS: i64 = -32_602;
    /// It couldn't be carried out.
    pub(super) const INTERNAL: i64 = -32_603;
    /// There is no such resource (MCP's own).
    pub(super) const NO_RESOURCE: i64 = -32_002;

    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A message that came.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// Wants an answer.
    Request { id: Value, method: String, params: Value },
    /// Wants one, and can't be taken: this is the answer.
    Refused { id: Value, why: RpcError },
    /// Wants none.
    Notification { method: String },
    /// Is one.
    Response { id: Value, result: Result<Value, RpcError> },
}

/// Reads a message.
pub(super) fn parse(text: &str) -> Result<Message, RpcError> {
    let value: Value = serde_json::from_str(text).map_err(|error| RpcError::new(RpcError::PARSE, error.to_string()))?;
    let invalid = |what: &str| RpcError::new(RpcError::INVALID, what);
    let Value::Object(mut object) = value else {
        return Err(invalid("not a single JSON-RPC message"));
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("not JSON-RPC 2.0"));
    }
    let id = object.remove("id").filter(|id| id.is_string() || id.is_number());
    match (object.remove("method"), id) {
        // What one reader would be shown another might not do.
        (Some(_), Some(id)) if has_key_twice(text) => Ok(Message::Refused {
            id,
            why: invalid("a key stands twice in this message, so that it can be read in two ways"),
        }),
        (Some(Value::String(method)), Some(id)) => {
            Ok(Message::Request { id, method, params: object.remove("params").unwrap_or_default() })
        }
        (Some(Value::String(method)), None) => Ok(Message::Notification { method }),
        (None, Some(id)) => Ok(Message::Response { id, result: outcome(object)? }),
        _ => Err(invalid("neither a request, a notification nor a response")),
    }
}

fn outcome(mut object: Map<String, Value>) -> Result<Result<Value, RpcError>, RpcError> {
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

pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(super) fn notification(method: &str) -> String {
    json!({"jsonrpc": "2.0", "method": method}).to_string()
}

/// The answer to a request; without its id when that couldn't be read.
pub(super) fn response(id: Option<&Value>, result: &Result<Value, RpcError>) -> String {
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

    #[test]
    fn each_kind_of_message_is_told_by_what_it_has() {
        let is = |text: &str| parse(text).unwrap();
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
        let Message::Refused { id, why } = parse(text).unwrap() else { panic!() };
        assert_eq!((id, why.code), (7.into(), RpcError::INVALID));
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        for (text, code) in [
            ("{", RpcError::PARSE),
            ("[]", RpcError::INVALID),
            (r#"{"id":1,"method":"ping"}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","id":1}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, RpcError::INVALID),
            (r#"{"jsonrpc":"2.0","method":7,"id":1}"#, RpcError::INVALID),
        ] {
            assert_eq!(parse(text).unwrap_err().code, code, "{text}");
        }
    }

    #[test]
    fn an_answer_carries_the_id_as_it_came() {
        let answer = response(Some(&"x".into()), &Ok(json!({})));
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
    }
}
