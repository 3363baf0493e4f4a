//! Interprets refusals of the Bot API by their words, because almost all of them share one code.
//!
//! Some refusals are sentences of the Bot API server; others are names in capitals from the servers behind it. As both change over time,
//! each list holds only the part that refusals of one kind have in common.

use std::time::Duration;

use reveille_store::RichRefusal;

use super::error::{RETRY_AFTER_MAX, TelegramError};

/// An element of a message that Telegram refused and that can be left out. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The formatting: plain text may be accepted.
    Formatting,
    /// The length: send as a file.
    Length,
    /// The reference to the message replied to.
    Reply,
    /// The target topic.
    Topic,
    /// The buttons.
    Buttons,
}

/// The reaction that a refusal calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageRefusal {
    /// Send another form of the message.
    Misfit(Misfit),
    /// Wait this long; `None` leaves the time to the caller.
    Wait(Option<Duration>),
    /// The bot can't write to the chat any more.
    ChatGone,
    /// A person must grant permission.
    NotAllowed,
    /// The words match no list.
    Unknown,
}

/// The element of a rich message that was refused. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RichMisfit {
    /// The reference to the message replied to.
    Reply,
    /// The rich message itself.
    Message(RichRefusal),
}

/// Signs of a chat that can't have rich messages.
const NO_RICH_MESSAGES: [&str; 4] = ["unsupported", "not supported", "not available", "rich_message_forbidden"];

/// Signs of a server that is too busy, so that nothing was sent.
const BUSY: [&str; 5] = ["timeout", "timed out", "msg_wait", "try again", "busy"];
/// Signs of a missing chat, or one closed to the bot.
const CHAT_GONE: [&str; 14] = [
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "chat_id",
    "channel_invalid",
    "channel_private",
    "deactivated",
    "user_is_blocked",
    "blocked by the user",
    "user_is_bot",
    "to bots",
    "kicked",
    "not a member",
    "upgraded to a supergroup",
];
/// Signs of a chat that forbids this message to the bot or to anybody.
const NOT_ALLOWED: [&str; 8] =
    ["rights", "forbidden", "admin_required", "administrator", "restricted", "banned", "payment_required", "privacy"];
const BUTTONS: [&str; 4] = ["reply markup", "reply_markup", "keyboard", "button"];
const TOPIC: [&str; 3] = ["topic", "thread", "forum"];
/// Signs of a bad reply, including a missing message and wrong quoted words.
const REPLY: [&str; 6] = ["reply", "replied", "quote", "message_id_invalid", "message identifier", "story_id"];
const FORMATTING: [&str; 14] = [
    "entit",
    "can't parse",
    "parse mode",
    "parse_mode",
    "start tag",
    "end tag",
    "is empty",
    "_empty",
    "non-empty",
    "utf-8",
    "webpage",
    "web page",
    "url",
    "emoji",
];
const LENGTH: [&str; 5] = ["too long", "too_long", "too big", "too large", "length"];

/// Derives the next step from the code and the words of a refusal.
pub(super) fn sort_refusal(code: i64, description: &str) -> MessageRefusal {
    let words = description.to_ascii_lowercase();
    let has = |signs: &[&str]| signs.iter().any(|sign| words.contains(sign));
    if let Some(wait) = parse_demanded_wait(&words) {
        return MessageRefusal::Wait(Some(wait));
    }
    match code {
        413 => MessageRefusal::Misfit(Misfit::Length),
        400 if has(&CHAT_GONE) => MessageRefusal::ChatGone,
        // Checked before `NOT_ALLOWED`: optional elements may be forbidden too.
        400 if has(&TOPIC) => MessageRefusal::Misfit(Misfit::Topic),
        400 if has(&BUTTONS) => MessageRefusal::Misfit(Misfit::Buttons),
        400 if has(&NOT_ALLOWED) => MessageRefusal::NotAllowed,
        400 if has(&REPLY) => MessageRefusal::Misfit(Misfit::Reply),
        400 if has(&FORMATTING) => MessageRefusal::Misfit(Misfit::Formatting),
        400 if has(&BUSY) => MessageRefusal::Wait(None),
        400 if has(&LENGTH) => MessageRefusal::Misfit(Misfit::Length),
        _ => MessageRefusal::Unknown,
    }
}

/// Derives the next step from the refusal of a rich message. `None` if the error isn't about the message: it is handled like that of any
/// other message.
pub(super) fn sort_rich_refusal(error: &TelegramError) -> Option<RichMisfit> {
    let (code, description) = match error {
        TelegramError::Rejected { code, description } => (*code, description.as_str()),
        // Older servers say only "Not Found" of a method. If it is the token, the plain message is refused too.
        TelegramError::Unauthorized(words) if !words.to_ascii_lowercase().starts_with("unauthorized") => {
            (404, words.as_str())
        }
        _ => return None,
    };
    let words = description.to_ascii_lowercase();
    let message = |refusal| Some(RichMisfit::Message(refusal));
    match (code, sort_refusal(code, description)) {
        (404, _) => message(RichRefusal::MethodMissing),
        (_, MessageRefusal::Wait(_) | MessageRefusal::ChatGone) => None,
        // "Unsupported start tag" is about this text alone.
        (_, MessageRefusal::Misfit(Misfit::Formatting | Misfit::Length)) => message(RichRefusal::Content),
        _ if NO_RICH_MESSAGES.iter().any(|sign| words.contains(sign)) => message(RichRefusal::Unsupported),
        (_, MessageRefusal::Misfit(Misfit::Reply)) => Some(RichMisfit::Reply),
        _ => message(RichRefusal::Content),
    }
}

/// Parses the demanded wait: `retry after 5`, `FLOOD_WAIT_5`, `SLOWMODE_WAIT_5`.
pub(super) fn parse_demanded_wait(words: &str) -> Option<Duration> {
    let words = words.to_ascii_lowercase();
    let (_, after) = ["retry after ", "_wait_"].iter().find_map(|sign| words.split_once(sign))?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?;
    Some(Duration::from_secs(digits.parse().unwrap_or(u64::MAX)).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To cover a newly reported refusal, add a line.
    #[test]
    fn every_reported_refusal_is_sorted_by_the_next_step() {
        use MessageRefusal::{ChatGone, NotAllowed, Unknown, Wait};
        use Misfit::{Buttons, Formatting, Length, Reply, Topic};
        let seconds = |n| Wait(Some(Duration::from_secs(n)));
        let as_misfits: [(Misfit, &[&str]); 5] = [
            (
                Formatting,
                &[
                    "can't parse entities: Can't find end of the entity starting at byte offset 291",
                    "can't parse entities: Unsupported start tag \"u1\" at byte offset 3",
                    "can't parse entities in message text: Unexpected end of name token at byte offset 81",
                    "can't parse message text: Can't find end tag corresponding to start tag b",
                    "can't parse message caption entities",
                    "unsupported parse_mode",
                    "ENTITIES_TOO_LONG",
                    "entities too long",
                    "ENTITY_BOUNDS_INVALID",
                    "ENTITY_TEXT_INVALID",
                    "ENTITY_MENTION_USER_INVALID",
                    "ENTITY_DATE_INVALID",
                    "message text is empty",
                    "Message text is empty",
                    "text must be non-empty",
                    "MESSAGE_EMPTY",
                    "strings must be encoded in UTF-8",
                    "text must be encoded in UTF-8",
                    "wrong HTTP URL specified",
                    "can't parse URL",
                    "failed to get HTTP URL content",
                    "wrong type of the web page content",
                    "webpage can't be previewed",
                    "WEBPAGE_CURL_FAILED",
                    "WEBPAGE_MEDIA_EMPTY",
                    "WEBPAGE_NOT_FOUND",
                    "WEBPAGE_URL_INVALID",
                    "URL_INVALID",
                    "EXTERNAL_URL_INVALID",
                    "CUSTOM_EMOJI_INVALID",
                ],
            ),
            (
                Length,
                &[
                    "message is too long",
                    "MESSAGE_TOO_LONG",
                    "message caption is too long",
                    "MEDIA_CAPTION_TOO_LONG",
                    "file is too big",
                ],
            ),
            (
                Reply,
                &[
                    "reply message not found",
                    "replied message not found",
                    "message to be replied not found",
                    "message to reply not found",
                    "REPLY_MESSAGE_ID_INVALID",
                    "REPLY_TO_INVALID",
                    "MESSAGE_ID_INVALID",
                    "message identifier is not specified",
                    "QUOTE_TEXT_INVALID",
                    "quoted text not found",
                    "can't parse reply parameters",
                ],
            ),
            (
                Topic,
                &[
                    "message thread not found",
                    "TOPIC_CLOSED",
                    "TOPIC_DELETED",
                    "TOPIC_ID_INVALID",
                    "topic not found",
                    "not enough rights to write in the closed topic",
                    "CHANNEL_FORUM_MISSING",
                    "the chat is not a forum",
                ],
            ),
            (
                Buttons,
                &[
                    "BUTTON_DATA_INVALID",
                    "BUTTON_URL_INVALID",
                    "BUTTON_TYPE_INVALID",
                    "BUTTON_TEXT_INVALID",
                    "BUTTON_USER_PRIVACY_RESTRICTED",
                    "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
                    "can't parse InlineKeyboardButton: Text buttons are not allowed in the inline keyboard",
                    "inline keyboard expected",
                    "object expected as reply markup",
                    "reply markup is too long",
                    "REPLY_MARKUP_INVALID",
                ],
            ),
        ];
        for (misfit, descriptions) in as_misfits {
            for description in descriptions {
                let sorted = sort_refusal(400, &format!("Bad Request: {description}"));
                assert_eq!(sorted, MessageRefusal::Misfit(misfit), "{description}");
            }
        }
        for (code, description, expected) in [
            (413, "Request Entity Too Large", MessageRefusal::Misfit(Length)),
            (400, "Bad Request: chat not found", ChatGone),
            (400, "Bad Request: PEER_ID_INVALID", ChatGone),
            (400, "Bad Request: CHANNEL_PRIVATE", ChatGone),
            (400, "Bad Request: USER_IS_BLOCKED", ChatGone),
            (400, "Bad Request: INPUT_USER_DEACTIVATED", ChatGone),
            (400, "Bad Request: group is deactivated", ChatGone),
            (400, "Bad Request: group chat was deactivated", ChatGone),
            (400, "Bad Request: group chat was upgraded to a supergroup chat", ChatGone),
            (400, "Bad Request: CHAT_WRITE_FORBIDDEN", NotAllowed),
            (400, "Bad Request: CHAT_RESTRICTED", NotAllowed),
            (400, "Bad Request: CHAT_SEND_PLAIN_FORBIDDEN", NotAllowed),
            (400, "Bad Request: CHAT_GUEST_SEND_FORBIDDEN", NotAllowed),
            (400, "Bad Request: USER_BANNED_IN_CHANNEL", NotAllowed),
            (400, "Bad Request: CHAT_ADMIN_REQUIRED", NotAllowed),
            (400, "Bad Request: ALLOW_PAYMENT_REQUIRED_5", NotAllowed),
            (400, "Bad Request: have no rights to send a message", NotAllowed),
            (400, "Bad Request: not enough rights to send text messages to the chat", NotAllowed),
            (400, "Bad Request: not enough rights to send documents to the chat", NotAllowed),
            (400, "Bad Request: need administrator rights in the channel chat", NotAllowed),
            (420, "FLOOD_WAIT_17", seconds(17)),
            (400, "retry after 99999999999999999999", seconds(24 * 60 * 60)),
            (400, "Bad Request: SLOWMODE_WAIT_30", seconds(30)),
            (429, "Too Many Requests: retry after 5", seconds(5)),
            (400, "Bad Request: MSG_WAIT_FAILED", Wait(None)),
            (400, "Bad Request: WORKER_BUSY_TOO_LONG_RETRY", Wait(None)),
            (400, "Bad Request: SOMETHING_NEW", Unknown),
            (429, "Too Many Requests", Unknown),
        ] {
            assert_eq!(sort_refusal(code, description), expected, "{code} {description}");
        }
    }

    #[test]
    fn a_refused_rich_message_goes_as_plain_ones_unless_the_refusal_is_about_something_else() {
        use RichRefusal::{Content, MethodMissing, Unsupported};
        let rejected = |description: &str| TelegramError::Rejected { code: 400, description: description.to_owned() };
        for (error, expected) in [
            (
                TelegramError::Rejected { code: 404, description: "Not Found: method not found".to_owned() },
                Some(RichMisfit::Message(MethodMissing)),
            ),
            (TelegramError::Unauthorized("Not Found".to_owned()), Some(RichMisfit::Message(MethodMissing))),
            (TelegramError::Unauthorized("Unauthorized".to_owned()), None),
            (rejected("Bad Request: RICH_MESSAGE_UNSUPPORTED"), Some(RichMisfit::Message(Unsupported))),
            (rejected("Bad Request: rich messages are not supported"), Some(RichMisfit::Message(Unsupported))),
            (
                rejected("Bad Request: can't parse rich message: Unsupported start tag \"u1\""),
                Some(RichMisfit::Message(Content)),
            ),
            (rejected("Bad Request: can't parse rich message"), Some(RichMisfit::Message(Content))),
            (rejected("Bad Request: SOMETHING_NEW"), Some(RichMisfit::Message(Content))),
            (rejected("Bad Request: BUTTON_DATA_INVALID"), Some(RichMisfit::Message(Content))),
            (rejected("Bad Request: message to be replied not found"), Some(RichMisfit::Reply)),
            (rejected("Bad Request: chat not found"), None),
            (rejected("FLOOD_WAIT_17"), None),
            (TelegramError::RetryAfter(Duration::from_secs(5)), None),
            (TelegramError::Ambiguous { why: "reset".to_owned() }, None),
            (TelegramError::NotSent { why: "no route".to_owned() }, None),
        ] {
            assert_eq!(sort_rich_refusal(&error), expected, "{error}");
        }
    }
}
