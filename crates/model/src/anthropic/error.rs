//! Turns a server's refusal or complaint into an error for the caller.
//!
//! Errors contain only the server's own short message: no URL, no header, no request body.

use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use reveille_base::{types::Usage, words::capitalize};
use reveille_memory::outside::{Origin, Outside};

use super::route::{API_WORDS, RouteWords};
use crate::{ModelError, TOO_LONG, complaint::Complaint};

/// Bytes read of an error's body.
pub(super) const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// Smallest answer limit worth obeying, in tokens.
const SHORTEST_ANSWER: u64 = 256;

/// An answer with a status other than 200.
#[derive(Debug, Default)]
pub(super) struct ErrorAnswer<'a> {
    pub(super) words: RouteWords,
    pub(super) status: u16,
    /// The headers `retry-after`, `date` and `request-id`, if present.
    pub(super) retry_after: Option<&'a str>,
    pub(super) date: Option<&'a str>,
    pub(super) request_id: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Default for RouteWords {
    fn default() -> Self {
        API_WORDS
    }
}

/// The `error` object of a body or a stream event.
#[derive(Default, Debug)]
struct ErrorObject {
    kind: String,
    message: String,
    details: Value,
    /// Google's name for the kind of error, used in place of `kind`.
    status: String,
}

impl ErrorObject {
    fn parse(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let details = error.get("details").cloned().unwrap_or_default();
        Self { kind: text("type"), message: text("message"), details, status: text("status") }
    }
}

#[derive(Default)]
struct ErrorBody {
    error: ErrorObject,
    request_id: Option<String>,
}

impl ErrorBody {
    /// Parses a body. Google's servers wrap streamed errors in a list.
    fn parse(body: &[u8], complaint: &Complaint) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        let mut error = value.get("error").map(ErrorObject::parse).unwrap_or_default();
        // A cloud's own front end words errors differently from the API.
        if error.message.is_empty() {
            error.message = complaint.said.clone().unwrap_or_default();
        }
        Self { error, request_id: value.get("request_id").and_then(Value::as_str).map(str::to_owned) }
    }
}

/// The caller's next act.
#[derive(Clone, Copy)]
enum Remedy {
    Wait,
    AskPerson,
    GiveUp(u16),
}

impl ErrorAnswer<'_> {
    /// Returns the answer length that the server allows, in tokens, if it complains that `asked` is too much.
    pub(super) fn longest_answer(&self, asked: u64) -> Option<u64> {
        let complaint = Complaint::parse_body(self.body);
        let said = complaint.said.as_deref().filter(|said| said.contains("max_tokens") && !complaint.is_too_long())?;
        let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
        numbers.filter(|number| (SHORTEST_ANSWER..asked).contains(number)).min()
    }

    /// Builds the error for this answer.
    pub(super) fn into_error(self) -> ModelError {
        let complaint = Complaint::parse_body(self.body);
        let body = ErrorBody::parse(self.body, &complaint);
        let status = self.status;
        let request_id = self.request_id.or(body.request_id.as_deref());
        let why = format!(
            "{}{}",
            describe_error(&self.words, &body.error, status),
            request_id.map_or(String::new(), |id| format!(" (request {})", Outside::new(Origin::Model, id)))
        );
        let remedy = match status {
            429 if is_spending_limit(&body.error) => Remedy::AskPerson,
            413 => Remedy::GiveUp(TOO_LONG),
            400 | 404 | 422 | 429 | 500..=599 if complaint.is_too_long() => Remedy::GiveUp(TOO_LONG),
            // An exhausted prepaid balance may be reported as a bad request, too.
            400 if body.error.message.contains("credit balance is too low") => Remedy::AskPerson,
            400 if complaint.is_of_key() => Remedy::AskPerson,
            408 | 409 | 424 | 425 | 429 | 499 | 500..=599 => Remedy::Wait,
            401..=403 => Remedy::AskPerson,
            // The text isn't the API's: a proxy or a sign-in page answered, and the conversation is still valid.
            _ if body.error.kind.is_empty() => Remedy::AskPerson,
            other => Remedy::GiveUp(other),
        };
        // fault: claudes-retry-heard
        let waits = self.retry_after.and_then(|value| parse_retry_after(value, self.date)).or(complaint.wait);
        build_error(remedy, why, waits, Usage::default())
    }
}

/// Builds the error of a complaint within a stream, after `spent` tokens. `None` if the event isn't a complaint.
pub(super) fn from_event(event: &Value, spent: Usage) -> Option<ModelError> {
    let complaint = Complaint::parse_in_stream(event)?;
    let mut said = event.get("error").map(ErrorObject::parse).unwrap_or_default();
    if said.message.is_empty() {
        said.message = complaint.said.clone().unwrap_or_default();
    }
    let remedy = match (said.kind.as_str(), complaint.status) {
        ("request_too_large", _) | (_, Some(413)) => Remedy::GiveUp(TOO_LONG),
        _ if complaint.is_too_long() => Remedy::GiveUp(TOO_LONG),
        ("authentication_error" | "billing_error" | "permission_error", _) | (_, Some(401..=403)) => Remedy::AskPerson,
        ("rate_limit_error", _) if is_spending_limit(&said) => Remedy::AskPerson,
        ("invalid_request_error", _) => Remedy::GiveUp(400),
        ("not_found_error", _) => Remedy::GiveUp(404),
        _ => Remedy::Wait,
    };
    let why = format!("Claude broke off its answer: {}", quote_server(&said));
    Some(build_error(remedy, why, complaint.wait, spent))
}

fn build_error(remedy: Remedy, why: String, retry_after: Option<Duration>, spent: Usage) -> ModelError {
    match remedy {
        Remedy::Wait => ModelError::Transient { why, retry_after, spent },
        Remedy::AskPerson => ModelError::Account { why },
        Remedy::GiveUp(status) => ModelError::Rejected { status, why },
    }
}

fn is_spending_limit(said: &ErrorObject) -> bool {
    said.details.get("error_code").and_then(|code| code.as_str()) == Some("enforced_spend_limit_reached")
}

fn describe_error(words: &RouteWords, said: &ErrorObject, status: u16) -> String {
    let what = match status {
        300..=399 => {
            let (server, setting) = (capitalize(words.server), words.address);
            return format!(
                "{server} answered with a redirect (HTTP {status}), which isn't followed because it would carry the key \
                 elsewhere. Check {setting}."
            );
        }
        401 => words.unknown.to_owned(),
        402 => words.unpaid.to_owned(),
        403 => words.forbidden.to_owned(),
        429 => format!("{} asks to slow down", capitalize(words.server)),
        529 => "Claude is overloaded".to_owned(),
        500..=599 => format!("{} is having trouble", capitalize(words.server)),
        _ => format!("{} refused the request", capitalize(words.server)),
    };
    match format!("{}{}{}", said.kind, said.status, said.message).trim() {
        "" => format!("{what} (HTTP {status})"),
        _ => format!("{what} (HTTP {status}): {}", quote_server(said)),
    }
}

/// Quotes the server's kind and message.
fn quote_server(said: &ErrorObject) -> Outside {
    let kind = if said.kind.is_empty() { &said.status } else { &said.kind };
    // Some servers repeat the kind in the message.
    let said =
        if said.message.starts_with(kind.as_str()) { said.message.clone() } else { format!("{kind} {}", said.message) };
    Outside::new(Origin::Model, said.trim_start())
}

/// Parses `retry-after`, in seconds or as a date. A date is compared with the answer's own `date`, so our clock doesn't matter.
pub(crate) fn parse_retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = DateTime::parse_from_rfc2822(value).ok()?;
    let now = DateTime::parse_from_rfc2822(date?.trim()).ok()?;
    Some((until - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> ModelError {
        ErrorAnswer { status, body: body.as_bytes(), ..ErrorAnswer::default() }.into_error()
    }

    #[test]
    fn each_status_says_what_to_do() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529, 599] {
            assert!(matches!(refused(status, "<html>"), ModelError::Transient { .. }), "{status}");
        }
        for status in [401, 402, 403] {
            assert!(matches!(refused(status, ""), ModelError::Account { .. }), "{status}");
        }
        let own = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
        for status in [400, 404, 405, 413, 418, 422] {
            assert!(matches!(refused(status, own), ModelError::Rejected { status: s, .. } if s == status), "{status}");
        }
    }

    #[test]
    fn too_long_a_conversation_is_told_from_every_other_refusal() {
        let said = |message: &str| format!(r#"{{"error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        for (name, status, body) in [
            ("the API's words", 400, said("prompt is too long: 207791 tokens > 200000 maximum")),
            (
                "with the answer",
                400,
                said("input length and `max_tokens` exceed context limit: 195000 + 20000 > 200000"),
            ),
            ("a proxy's page", 413, "<html>413 Request Entity Too Large</html>".to_owned()),
            ("Bedrock", 400, r#"{"message":"Input is too long for requested model."}"#.to_owned()),
            ("Vertex", 400, r#"[{"error":{"code":400,"message":"Prompt is too long"}}]"#.to_owned()),
        ] {
            assert!(matches!(refused(status, &body), ModelError::Rejected { status: TOO_LONG, .. }), "{name}");
        }
        let busy = r#"{"message":"Too many tokens, please wait before trying again."}"#;
        assert!(matches!(refused(429, busy), ModelError::Transient { .. }));
        assert!(matches!(refused(400, &said("image exceeds 5 MB maximum")), ModelError::Rejected { status: 400, .. }));
    }

    #[test]
    fn the_longest_answer_that_a_server_allows_is_read_from_its_complaint() {
        for (said, wanted) in [
            ("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m", Some(8_192)),
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", Some(8_192)),
            ("input length and `max_tokens` exceed context limit: 9000 + 32000 > 20000", None),
            ("max_tokens: must be at least 1", None),
            ("temperature: 2 > 1000", None),
        ] {
            let body = format!(r#"{{"error":{{"type":"invalid_request_error","message":"{said}"}}}}"#);
            let refused = ErrorAnswer { status: 400, body: body.as_bytes(), ..ErrorAnswer::default() };
            assert_eq!(refused.longest_answer(32_000), wanted, "{said}");
        }
    }

    #[test]
    fn what_stands_between_us_and_the_api_condemns_no_conversation() {
        for status in [301, 302, 307, 400, 404, 407, 451] {
            for body in ["", "{}", "<html>Sign in</html>"] {
                assert!(matches!(refused(status, body), ModelError::Account { .. }), "{status} {body}");
            }
        }
    }

    #[test]
    fn what_the_clouds_say_themselves_is_told_and_condemns_no_conversation() {
        let told = |body: &str| match refused(403, body) {
            ModelError::Account { why } => reveille_memory::outside::strip_marks(&why).into_owned(),
            other => panic!("{other:?}"),
        };
        let aws = told(r#"{"message":"The security token included in the request is invalid."}"#);
        assert!(aws.ends_with("`The security token included in the request is invalid.`"), "{aws}");
        assert!(told(r#"{"Message":"User is not authorized"}"#).ends_with("`User is not authorized`"));
        let google = r#"{"error":{"code":403,"message":"No.","status":"PERMISSION_DENIED"}}"#;
        assert!(told(google).ends_with("`PERMISSION_DENIED No.`"));
        assert!(told(&format!("[{google}]")).ends_with("`PERMISSION_DENIED No.`"));
        assert!(matches!(refused(404, &google.replace("403", "404")), ModelError::Account { .. }));
    }

    #[test]
    fn a_spent_limit_or_balance_needs_a_person() {
        let limit = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Limit","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        assert!(matches!(refused(429, limit), ModelError::Account { .. }));
        let balance = r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#;
        assert!(matches!(refused(400, balance), ModelError::Account { .. }));
    }

    #[test]
    fn the_message_is_the_servers_on_one_bounded_line() {
        let body = r#"{"error":{"type":"overloaded_error","message":"Over\nloaded"},"request_id":"req_1"}"#;
        assert_eq!(
            reveille_memory::outside::strip_marks(&refused(529, body).to_string()),
            "Claude is overloaded (HTTP 529): `overloaded_error Over loaded` (request `req_1`)"
        );
        let twice = r#"{"error":{"type":"overloaded_error","message":"overloaded_error"}}"#;
        assert_eq!(
            reveille_memory::outside::strip_marks(&refused(529, twice).to_string()),
            "Claude is overloaded (HTTP 529): `overloaded_error`"
        );
        let long = format!(r#"{{"error":{{"type":"x","message":"{}"}}}}"#, "ü".repeat(9000));
        assert!(refused(400, &long).to_string().chars().count() < 600);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_beside_the_servers_own() {
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(parse_retry_after("17", None), Some(Duration::from_secs(17)));
        assert_eq!(parse_retry_after(" 0.5 ", None), Some(Duration::from_millis(500)));
        assert_eq!(parse_retry_after("Wed, 21 Oct 2026 07:30:00 GMT", Some(date)), Some(Duration::from_secs(120)));
        assert_eq!(parse_retry_after("Wed, 21 Oct 2026 07:27:00 GMT", Some(date)), Some(Duration::ZERO));
        for (value, date) in [("-3", None), ("NaN", None), ("soon", Some(date)), (date, None), ("1e300", None)] {
            assert_eq!(parse_retry_after(value, date), None, "{value}");
        }
    }
}
