//! Errors of Bot API calls, sorted by the caller's next step.
//!
//! The main distinction is between calls that certainly weren't executed and calls that may have been. Sending has no idempotency
//! key, so a message whose answer was lost can only be repeated with a mark.

use std::{error::Error as _, time::Duration};

use serde_json::Value;

use reveille_base::words::first_chars;
use reveille_memory::outside::{Origin, Outside};

use super::refusal::parse_demanded_wait;

/// The wait after an answer with code 429 that states no time.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(30);
/// The longest wait accepted from a server. A longer one is a mistake, or doesn't come from Telegram.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum length of a kept description in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// The reason for a failed call. Texts don't contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelegramError {
    /// Too many calls: not executed; no call may be made before this time has passed.
    #[error("Telegram asks me to wait {} s before the next call", .0.as_secs())]
    RetryAfter(Duration),
    /// Another poller or a webhook fetches this bot's messages.
    #[error(
        "something else is fetching this bot's messages: {}. Stop the other program that uses this token, or remove \
         its webhook; if you can't find it, get a new token from @BotFather. Nothing is lost: I keep trying", wrap_description(.0)
    )]
    Conflict(String),
    /// The token is invalid: a person must set another.
    #[error(
        "Telegram doesn't accept the bot's token ({}). Check TELEGRAM_BOT_TOKEN, or get a new one from @BotFather", wrap_description(.0)
    )]
    Unauthorized(String),
    /// Not sent: the group has become a supergroup with this id.
    #[error("the group has become a supergroup with the id {0}: add that to ALLOWED_CHAT_IDS")]
    MigratedTo(i64),
    /// The chat is closed: the person blocked the bot, or the chat doesn't exist for it.
    #[error("the bot can't write to this chat: {}. The person has to write to the bot first, or unblock it", wrap_description(.0))]
    ChatGone(String),
    /// Telegram refuses the call, so repeating it is useless. `refusal` interprets the words for messages.
    #[error("Telegram refused the call ({code}): {}", wrap_description(description))]
    Rejected {
        /// The code of the error, mostly an HTTP status.
        code: i64,
        /// Telegram's own words.
        description: String,
    },
    /// The call certainly wasn't executed and may be repeated at any time.
    #[error("Telegram can't be reached: {why}")]
    NotSent {
        /// The reason.
        why: String,
    },
    /// No usable answer: the call may have been executed.
    #[error("Telegram didn't confirm the call: {why}")]
    Ambiguous {
        /// The reason.
        why: String,
    },
}

/// Wraps a description as untrusted text for messages.
fn wrap_description(description: &str) -> Outside {
    Outside::new(Origin::Telegram, description)
}

/// The machine-readable part of a failed answer.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl Parameters {
    /// Parses leniently, because proxies may write an empty object as a list, or a number as text.
    pub(super) fn parse(parameters: &Value) -> Self {
        let number = |name: &str| {
            let value = parameters.get(name)?;
            value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        // Round up, because half a second too early is refused again.
        let seconds = |value: &Value| value.as_f64().map(|seconds| seconds.ceil().max(0.0) as u64);
        let retry_after = number("retry_after").and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            retry_after: retry_after.or_else(|| parameters.get("retry_after").and_then(seconds)),
            migrate_to_chat_id: number("migrate_to_chat_id"),
        }
    }
}

impl TelegramError {
    /// Creates the error from a failed answer of the Bot API.
    pub(super) fn from_answer(code: i64, description: &str, parameters: &Parameters) -> Self {
        let description = first_chars(description, DESCRIPTION_CHARS_MAX).to_owned();
        if let Some(chat_id) = parameters.migrate_to_chat_id {
            return Self::MigratedTo(chat_id);
        }
        let said = description.to_ascii_lowercase();
        match code {
            420 | 429 => {
                let asked =
                    parameters.retry_after.map(Duration::from_secs).or_else(|| parse_demanded_wait(&description));
                // fault: telegrams-retry-heard
                Self::RetryAfter(asked.unwrap_or(RETRY_AFTER_DEFAULT).min(RETRY_AFTER_MAX))
            }
            409 => Self::Conflict(description),
            401 => Self::Unauthorized(description),
            404 if !said.contains("method not found") => Self::Unauthorized(description),
            403 => Self::ChatGone(description),
            400 if said.contains("chat not found") || said.contains("user not found") => Self::ChatGone(description),
            500.. => Self::Ambiguous { why: format!("server error {code}: {description}") },
            _ => Self::Rejected { code, description },
        }
    }

    /// Creates the error from an answer that doesn't come from the Bot API, but from a proxy or a server other than Telegram.
    pub(super) fn from_foreign_answer(status: u16) -> Self {
        let why = format!("HTTP status {status} without a Bot API answer");
        match status {
            429 => Self::RetryAfter(RETRY_AFTER_DEFAULT),
            300..=499 => Self::NotSent { why: format!("{why}. Check TELEGRAM_API_URL and any proxy") },
            _ => Self::Ambiguous { why },
        }
    }

    /// Creates the error from a call without an answer. If reqwest can't connect, no byte of the request was sent. After a later failure,
    /// the request may have reached Telegram.
    pub(super) fn from_transport(error: reqwest::Error) -> Self {
        // fault: answer-got-lost-taken
        let surely_not_sent = error.is_connect() || error.is_builder();
        let why = describe_error(error);
        if surely_not_sent { Self::NotSent { why } } else { Self::Ambiguous { why } }
    }

    /// Passes each text of the error through `scrub`.
    pub(super) fn map_text(self, scrub: impl Fn(&str) -> String) -> Self {
        match self {
            Self::RetryAfter(_) | Self::MigratedTo(_) => self,
            Self::Conflict(text) => Self::Conflict(scrub(&text)),
            Self::Unauthorized(text) => Self::Unauthorized(scrub(&text)),
            Self::ChatGone(text) => Self::ChatGone(scrub(&text)),
            Self::Rejected { code, description } => Self::Rejected { code, description: scrub(&description) },
            Self::NotSent { why } => Self::NotSent { why: scrub(&why) },
            Self::Ambiguous { why } => Self::Ambiguous { why: scrub(&why) },
        }
    }
}

/// Describes an HTTP client's error with its causes, without the address, which holds the token.
fn describe_error(error: reqwest::Error) -> String {
    let timed_out = error.is_timeout();
    // Of a failed connection, only the deepest cause is informative.
    let is_connect = error.is_connect();
    let error = error.without_url();
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if is_connect {
            why = said;
        } else if !why.contains(&said) {
            why = format!("{why}: {said}");
        }
        cause = error.source();
    }
    if timed_out && !why.contains("timed out") {
        why.push_str(": timed out");
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: i64, description: &str) -> TelegramError {
        TelegramError::from_answer(code, description, &Parameters::default())
    }

    #[test]
    fn failed_answers_are_sorted_by_the_next_step() {
        let wait = Parameters { retry_after: Some(3600), migrate_to_chat_id: None };
        assert_eq!(
            TelegramError::from_answer(429, "Too Many Requests: retry after 3600", &wait),
            TelegramError::RetryAfter(Duration::from_secs(3600))
        );
        let absurd = Parameters { retry_after: Some(u64::MAX), migrate_to_chat_id: None };
        let wait = TelegramError::from_answer(429, "Too Many Requests", &absurd);
        assert_eq!(wait, TelegramError::RetryAfter(RETRY_AFTER_MAX), "an absurd wait is shortened to the maximum");
        let moved = Parameters { retry_after: None, migrate_to_chat_id: Some(-1001) };
        assert_eq!(
            TelegramError::from_answer(400, "Bad Request: group chat was upgraded to a supergroup chat", &moved),
            TelegramError::MigratedTo(-1001)
        );
        assert!(matches!(said(401, "Unauthorized"), TelegramError::Unauthorized(_)));
        assert!(matches!(said(404, "Not Found"), TelegramError::Unauthorized(_)));
        assert!(matches!(said(404, "Not Found: method not found"), TelegramError::Rejected { code: 404, .. }));
        assert!(matches!(said(409, "Conflict: terminated by other getUpdates request"), TelegramError::Conflict(_)));
        assert!(matches!(said(403, "Forbidden: bot was blocked by the user"), TelegramError::ChatGone(_)));
        assert!(matches!(said(400, "Bad Request: chat not found"), TelegramError::ChatGone(_)));
        assert!(matches!(said(400, "Bad Request: can't parse entities: x"), TelegramError::Rejected { code: 400, .. }));
        for (code, words) in [(429, "Too Many Requests: retry after 37"), (420, "FLOOD_WAIT_37")] {
            assert_eq!(
                said(code, words),
                TelegramError::RetryAfter(Duration::from_secs(37)),
                "the wait is read from the description"
            );
        }
        assert!(matches!(said(400, "Bad Request: message is too long"), TelegramError::Rejected { code: 400, .. }));
        assert!(matches!(said(502, "Bad Gateway"), TelegramError::Ambiguous { .. }));
    }

    #[test]
    fn parameters_are_read_in_any_notation() {
        use serde_json::json;
        for (parameters, wait, moved) in [
            (json!({"retry_after": 5}), Some(5), None),
            (json!({"retry_after": 4.2}), Some(5), None),
            (json!({"retry_after": "5"}), Some(5), None),
            (json!({"retry_after": -1}), Some(0), None),
            (json!({"migrate_to_chat_id": "-1001"}), None, Some(-1001)),
            (json!([]), None, None),
            (json!("none"), None, None),
            (json!({"retry_after": null, "migrate_to_chat_id": {}}), None, None),
        ] {
            let read = Parameters::parse(&parameters);
            assert_eq!((read.retry_after, read.migrate_to_chat_id), (wait, moved), "{parameters}");
        }
    }

    #[test]
    fn a_foreign_error_below_500_means_not_sent() {
        for (status, sure) in [(302, true), (403, true), (404, true), (200, false), (502, false)] {
            let not_sent = matches!(TelegramError::from_foreign_answer(status), TelegramError::NotSent { .. });
            assert_eq!(not_sent, sure, "{status}");
        }
    }
}
