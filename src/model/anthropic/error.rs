//! From what the server answers instead of a turn to what the caller should do about it.
//!
//! Only the server's own short message goes into an error: no URL, no header, no request body.

use std::time::Duration;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::{API_WORDS, RouteWords};
use crate::{
    model::ModelError,
    outside::{Origin, Outside},
    types::Usage,
};

/// How much of an error's body is read, in bytes.
pub(super) const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// An answer with another status than 200.
#[derive(Debug, Default)]
pub(super) struct ErrorAnswer<'a> {
    pub(super) words: RouteWords,
    pub(super) status: u16,
    /// The headers `retry-after`, `date` and `request-id`, if they were sent.
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
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct ErrorObject {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    details: serde_json::Value,
    /// How Google calls a kind. It isn't the API's own word.
    status: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    error: ErrorObject,
    request_id: Option<String>,
    /// AWS's own words, from before the API is reached.
    #[serde(alias = "Message")]
    message: String,
}

impl ErrorBody {
    /// Google's servers put what they stream into a list.
    fn read(body: &[u8]) -> Self {
        let list = serde_json::from_slice::<Vec<Self>>(body).ok().and_then(|list| list.into_iter().next());
        let mut read = list.or_else(|| serde_json::from_slice(body).ok()).unwrap_or_default();
        if read.error.message.is_empty() {
            read.error.message = std::mem::take(&mut read.message);
        }
        read
    }
}

/// What the caller should do.
#[derive(Clone, Copy)]
enum Remedy {
    Wait,
    AskPerson,
    GiveUp(u16),
}

impl ErrorAnswer<'_> {
    /// The error for this answer.
    pub(super) fn into_error(self) -> ModelError {
        let body = ErrorBody::read(self.body);
        let status = self.status;
        let request_id = self.request_id.or(body.request_id.as_deref());
        let why = format!(
            "{}{}",
            told(&self.words, &body.error, status),
            request_id.map_or(String::new(), |id| format!(" (request {})", Outside::new(Origin::Model, id)))
        );
        let remedy = match status {
            429 if is_spending_limit(&body.error) => Remedy::AskPerson,
            // An exhausted prepaid balance has been reported as a bad request, too.
            400 if body.error.message.contains("credit balance is too low") => Remedy::AskPerson,
            408 | 409 | 429 | 500..=599 => Remedy::Wait,
            401..=403 => Remedy::AskPerson,
            // Not the API's own words: a proxy or a sign-in page stands between, and the conversation is as good as before.
            _ if body.error.kind.is_empty() => Remedy::AskPerson,
            other => Remedy::GiveUp(other),
        };
        error(remedy, why, self.retry_after.and_then(|value| retry_after(value, self.date)), Usage::default())
    }
}

/// The error for an `error` event in the middle of a stream, after `spent` tokens.
pub(super) fn from_event(raw: Option<&RawValue>, spent: Usage) -> ModelError {
    let said: ErrorObject = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let remedy = match said.kind.as_str() {
        "authentication_error" | "billing_error" | "permission_error" => Remedy::AskPerson,
        "rate_limit_error" if is_spending_limit(&said) => Remedy::AskPerson,
        "invalid_request_error" => Remedy::GiveUp(400),
        "not_found_error" => Remedy::GiveUp(404),
        "request_too_large" => Remedy::GiveUp(413),
        _ => Remedy::Wait,
    };
    let why = format!("Claude broke off its answer: {}", said_by(&said));
    error(remedy, why, None, spent)
}

fn error(remedy: Remedy, why: String, retry_after: Option<Duration>, spent: Usage) -> ModelError {
    match remedy {
        Remedy::Wait => ModelError::Transient { why, retry_after, spent },
        Remedy::AskPerson => ModelError::Account { why },
        Remedy::GiveUp(status) => ModelError::Rejected { status, why },
    }
}

fn is_spending_limit(said: &ErrorObject) -> bool {
    said.details.get("error_code").and_then(|code| code.as_str()) == Some("enforced_spend_limit_reached")
}

fn told(words: &RouteWords, said: &ErrorObject, status: u16) -> String {
    let what = match status {
        300..=399 => {
            let (server, setting) = (capital(words.server), words.address);
            return format!(
                "{server} answered with a redirect (HTTP {status}), which isn't followed because it would carry the key \
                 elsewhere. Check {setting}."
            );
        }
        401 => words.unknown.to_owned(),
        402 => words.unpaid.to_owned(),
        403 => words.forbidden.to_owned(),
        429 => format!("{} asks to slow down", capital(words.server)),
        529 => "Claude is overloaded".to_owned(),
        500..=599 => format!("{} is having trouble", capital(words.server)),
        _ => format!("{} refused the request", capital(words.server)),
    };
    match format!("{}{}{}", said.kind, said.status, said.message).trim() {
        "" => format!("{what} (HTTP {status})"),
        _ => format!("{what} (HTTP {status}): {}", said_by(said)),
    }
}

/// The server's kind and message.
fn said_by(said: &ErrorObject) -> Outside {
    let kind = if said.kind.is_empty() { &said.status } else { &said.kind };
    Outside::new(Origin::Model, format!("{kind} {}", said.message).trim_start())
}

/// As a sentence begins.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Reads `retry-after`: seconds, or a date. A date is measured against the answer's own `date`, so that no clock is
/// needed and a wrong one does no harm.
pub(in crate::model) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
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
            ModelError::Account { why } => crate::outside::unmarked(&why).into_owned(),
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
            crate::outside::unmarked(&refused(529, body).to_string()),
            "Claude is overloaded (HTTP 529): `overloaded_error Over loaded` (request `req_1`)"
        );
        let long = format!(r#"{{"error":{{"type":"x","message":"{}"}}}}"#, "ü".repeat(9000));
        assert!(refused(400, &long).to_string().chars().count() < 600);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_beside_the_servers_own() {
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(retry_after("17", None), Some(Duration::from_secs(17)));
        assert_eq!(retry_after(" 0.5 ", None), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Wed, 21 Oct 2026 07:30:00 GMT", Some(date)), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Wed, 21 Oct 2026 07:27:00 GMT", Some(date)), Some(Duration::ZERO));
        for (value, date) in [("-3", None), ("NaN", None), ("soon", Some(date)), (date, None), ("1e300", None)] {
            assert_eq!(retry_after(value, date), None, "{value}");
        }
    }
}
