//! Why a call to the Bot API failed, sorted by what the caller should do.
//!
//! The great divide is between what surely wasn't done and what may have been: there is no idempotency key for sending,
//! so a message whose answer was lost can only be sent again with a mark that says so.

use std::{error::Error as _, time::Duration};

use serde::Deserialize;

use crate::outside::{Origin, Outside};

/// Waited for when a 429 names no time.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(30);
/// The longest wait that is taken for one: whoever answers with more isn't Telegram, or is mistaken.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// What Telegram says when it has no such topic, or lets nobody write there any more, in lower case.
const TOPIC_GONE: [&str; 3] = ["message thread not found", "topic_closed", "topic_deleted"];
/// The longest description that is kept, in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// Why a call failed. No text holds the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelegramError {
    /// Too many calls: not done, and none should be made before this has passed.
    #[error("Telegram asks to wait {} s before the next call", .0.as_secs())]
    RetryAfter(Duration),
    /// Something else fetches this bot's messages: another poller, or a webhook.
    #[error(
        "something else fetches this bot's messages: {}. Stop the other program that uses this token, or remove its \
         webhook; if you can't find it, get a new token from @BotFather. Nothing is lost: fetching is tried again", said(.0)
    )]
    Conflict(String),
    /// The token isn't valid (any more): a person must set another.
    #[error(
        "Telegram doesn't accept the bot's token ({}). Check TELEGRAM_BOT_TOKEN, or get a new one from @BotFather", said(.0)
    )]
    Unauthorized(String),
    /// Not sent, because the text's formatting couldn't be read: send it as plain text.
    #[error("Telegram couldn't read the formatting: {}", said(.0))]
    BadFormatting(String),
    /// Not sent, because the forum topic was closed or deleted: send it to the chat without one.
    #[error("the topic is closed or gone: {}", said(.0))]
    TopicGone(String),
    /// Not sent, because the group has become a supergroup with this id.
    #[error("the group has become a supergroup, its id is now {0}: put that into ALLOWED_CHAT_IDS")]
    MigratedTo(i64),
    /// Nothing can be sent to this chat: the person blocked the bot, or the chat doesn't exist for it.
    #[error("this chat can't be written to: {}. The person has to write to the bot first, or unblock it", said(.0))]
    ChatGone(String),
    /// Telegram won't do this, and asking again is no use.
    #[error("Telegram refused the call ({code}): {}", said(description))]
    Rejected {
        /// The error's code, mostly an HTTP status.
        code: i64,
        /// Telegram's own words.
        description: String,
    },
    /// The call surely wasn't done: it may be made again at any time.
    #[error("Telegram can't be reached: {why}")]
    NotSent {
        /// What happened.
        why: String,
    },
    /// No usable answer came: the call may have been done or not.
    #[error("Telegram didn't confirm the call: {why}")]
    Ambiguous {
        /// What happened.
        why: String,
    },
}

/// Its words as they are told.
fn said(description: &str) -> Outside {
    Outside::new(Origin::Telegram, description)
}

/// What a failed answer adds for programs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl TelegramError {
    /// A failure in the Bot API's own words.
    pub(super) fn from_answer(code: i64, description: &str, parameters: &Parameters) -> Self {
        let description: String = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        if let Some(chat_id) = parameters.migrate_to_chat_id {
            return Self::MigratedTo(chat_id);
        }
        let said = description.to_ascii_lowercase();
        match code {
            429 => {
                let asked = parameters.retry_after.map_or(RETRY_AFTER_DEFAULT, Duration::from_secs);
                Self::RetryAfter(asked.min(RETRY_AFTER_MAX))
            }
            409 => Self::Conflict(description),
            401 => Self::Unauthorized(description),
            404 if !said.contains("method not found") => Self::Unauthorized(description),
            403 => Self::ChatGone(description),
            400 if said.contains("can't parse entities") => Self::BadFormatting(description),
            400 if TOPIC_GONE.iter().any(|words| said.contains(words)) => Self::TopicGone(description),
            400 if said.contains("chat not found") || said.contains("user not found") => Self::ChatGone(description),
            500.. => Self::Ambiguous { why: format!("server error {code}: {description}") },
            _ => Self::Rejected { code, description },
        }
    }

    /// An answer that isn't the Bot API's: something between us and Telegram, or a server that isn't Telegram.
    pub(super) fn from_foreign_answer(status: u16) -> Self {
        let why = format!("HTTP status {status} without a Bot API answer");
        match status {
            429 => Self::RetryAfter(RETRY_AFTER_DEFAULT),
            300..=499 => Self::NotSent { why: format!("{why}. Check TELEGRAM_API_URL and any proxy") },
            _ => Self::Ambiguous { why },
        }
    }

    /// A call that no answer came to. reqwest's connector fails before a byte of the request has left; anything
    /// later may have reached Telegram.
    pub(super) fn from_transport(error: reqwest::Error) -> Self {
        let surely_not_sent = error.is_connect() || error.is_builder();
        let why = describe(error);
        if surely_not_sent { Self::NotSent { why } } else { Self::Ambiguous { why } }
    }

    /// The error with each of its texts passed through `scrub`.
    pub(super) fn map_text(self, scrub: impl Fn(&str) -> String) -> Self {
        match self {
            Self::RetryAfter(_) | Self::MigratedTo(_) => self,
            Self::Conflict(text) => Self::Conflict(scrub(&text)),
            Self::Unauthorized(text) => Self::Unauthorized(scrub(&text)),
            Self::BadFormatting(text) => Self::BadFormatting(scrub(&text)),
            Self::TopicGone(text) => Self::TopicGone(scrub(&text)),
            Self::ChatGone(text) => Self::ChatGone(scrub(&text)),
            Self::Rejected { code, description } => Self::Rejected { code, description: scrub(&description) },
            Self::NotSent { why } => Self::NotSent { why: scrub(&why) },
            Self::Ambiguous { why } => Self::Ambiguous { why: scrub(&why) },
        }
    }
}

/// What an HTTP client's error says, causes included, without the address, which holds the token.
fn describe(error: reqwest::Error) -> String {
    let timed_out = error.is_timeout();
    // Of a connection that wasn't made only the deepest cause says something.
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
    fn answers_are_sorted_by_what_to_do() {
        let wait = Parameters { retry_after: Some(3600), migrate_to_chat_id: None };
        assert_eq!(
            TelegramError::from_answer(429, "Too Many Requests: retry after 3600", &wait),
            TelegramError::RetryAfter(Duration::from_secs(3600))
        );
        let absurd = Parameters { retry_after: Some(u64::MAX), migrate_to_chat_id: None };
        let wait = TelegramError::from_answer(429, "Too Many Requests", &absurd);
        assert_eq!(wait, TelegramError::RetryAfter(RETRY_AFTER_MAX), "no time can be reckoned with more");
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
        assert!(matches!(said(400, "Bad Request: can't parse entities: x"), TelegramError::BadFormatting(_)));
        for gone in ["message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED"] {
            assert!(matches!(said(400, &format!("Bad Request: {gone}")), TelegramError::TopicGone(_)));
        }
        assert!(matches!(said(400, "Bad Request: message is too long"), TelegramError::Rejected { code: 400, .. }));
        assert!(matches!(said(502, "Bad Gateway"), TelegramError::Ambiguous { .. }));
    }

    #[test]
    fn a_foreign_answer_below_500_was_no_delivery() {
        for (status, sure) in [(302, true), (403, true), (404, true), (200, false), (502, false)] {
            let not_sent = matches!(TelegramError::from_foreign_answer(status), TelegramError::NotSent { .. });
            assert_eq!(not_sent, sure, "{status}");
        }
    }
}
