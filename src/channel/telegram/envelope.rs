//! Who sent a message, where, when and in answer to what, read from the raw JSON.
//!
//! Who may speak must never depend on whether a library knows the message's content, so the envelope has one reader for
//! every update, known or not. Names and quotes are bounded and put on one line: they are other people's words.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::incoming::Quoted;

/// The longest name that is kept, in characters.
const NAME_CHARS_MAX: usize = 128;
/// The longest quotation that is kept, in characters.
const QUOTE_CHARS_MAX: usize = 1000;
/// The id of a forum's general topic, which is written to without one.
const GENERAL_TOPIC: i64 = 1;

/// An object of an update: mostly a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a>(pub(super) &'a Value);

/// What kind of chat it is, as far as access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatType {
    Private,
    Group,
    Other,
}

impl<'a> Envelope<'a> {
    fn chat(self) -> &'a Value {
        // A button's press carries its chat in the message with the button.
        self.0.get("chat").or_else(|| self.0.pointer("/message/chat")).unwrap_or(&Value::Null)
    }

    pub(super) fn chat_id(self) -> Option<i64> {
        self.chat()["id"].as_i64()
    }

    pub(super) fn chat_type(self) -> ChatType {
        match self.chat()["type"].as_str() {
            Some("private") => ChatType::Private,
            Some("group" | "supergroup") => ChatType::Group,
            _ => ChatType::Other,
        }
    }

    fn sender(self) -> &'a Value {
        match &self.0["from"] {
            Value::Null => &self.0["user"],
            from => from,
        }
    }

    pub(super) fn sender_id(self) -> Option<i64> {
        self.sender()["id"].as_i64()
    }

    /// Whether it was sent in the name of a chat: by an anonymous administrator, a channel, or forwarded by itself.
    pub(super) fn is_in_the_name_of_a_chat(self) -> bool {
        ["sender_chat", "actor_chat", "voter_chat"].iter().any(|field| !self.0[*field].is_null())
    }

    pub(super) fn sender_name(self) -> String {
        person_name(self.sender())
    }

    pub(super) fn message_id(self) -> Option<i64> {
        self.0["message_id"].as_i64()
    }

    /// The forum topic; none outside forums, where the field names a chain of replies, and for the general topic.
    pub(super) fn thread_id(self) -> Option<i64> {
        let topic = self.0["message_thread_id"].as_i64().filter(|id| *id != GENERAL_TOPIC);
        topic.filter(|_| self.0["is_topic_message"] == Value::Bool(true))
    }

    pub(super) fn date(self) -> DateTime<Utc> {
        self.time("date").unwrap_or_default()
    }

    pub(super) fn edited_at(self) -> Option<DateTime<Utc>> {
        self.time("edit_date")
    }

    fn time(self, field: &str) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.0[field].as_i64()?, 0)
    }

    pub(super) fn album(self) -> Option<String> {
        self.0["media_group_id"].as_str().map(str::to_owned)
    }

    pub(super) fn text(self) -> Option<&'a str> {
        self.0["text"].as_str()
    }

    pub(super) fn caption(self) -> Option<&'a str> {
        self.0["caption"].as_str()
    }

    /// Whose words these are, if not the sender's own: forwarded, or written by an inline bot.
    pub(super) fn forwarded_from(self) -> Option<String> {
        let origin = &self.0["forward_origin"];
        if !origin.is_null() {
            let people = [&origin["sender_user"], &origin["sender_chat"], &origin["chat"]];
            let name = match &origin["sender_user_name"] {
                Value::String(name) => one_line(name, NAME_CHARS_MAX),
                _ => people.into_iter().find(|who| !who.is_null()).map_or_else(String::new, person_name),
            };
            return Some(if name.is_empty() { "someone".to_owned() } else { name });
        }
        let via = &self.0["via_bot"];
        (!via.is_null()).then(|| person_name(via))
    }

    /// The message that this one answers.
    pub(super) fn reply_to(self) -> Option<Quoted> {
        let (original, external) = (Envelope(&self.0["reply_to_message"]), Envelope(&self.0["external_reply"]));
        let picked = self.0.pointer("/quote/text").and_then(Value::as_str);
        let answered = if original.0.is_null() { external } else { original };
        // In a forum every message "answers" the one that opened its topic.
        let nothing_said = answered.0.is_null() || !answered.0["forum_topic_created"].is_null();
        if nothing_said && picked.is_none() {
            return None;
        }
        let whole = || answered.text().or(answered.caption()).map(str::to_owned);
        let text = picked.map(str::to_owned).or_else(whole).or_else(|| Some(format!("[{}]", answered.content_name()?)));
        Some(Quoted {
            message_id: original.message_id(),
            sender_id: original.sender_id(),
            text: text.unwrap_or_default().chars().take(QUOTE_CHARS_MAX).collect(),
        })
    }

    /// The name of the field that carries a message's content, for content that isn't known.
    pub(super) fn content_name(self) -> Option<&'a str> {
        const AROUND: [&str; 16] = [
            "chat",
            "from",
            "sender_chat",
            "origin",
            "forward_origin",
            "reply_to_message",
            "external_reply",
            "reply_to_story",
            "quote",
            "via_bot",
            "sender_business_bot",
            "entities",
            "caption_entities",
            "link_preview_options",
            "reply_markup",
            "direct_messages_topic",
        ];
        let fields = self.0.as_object()?.iter();
        let mut contents =
            fields.filter(|(name, value)| (value.is_object() || value.is_array()) && !AROUND.contains(&name.as_str()));
        contents.next().map(|(name, _)| name.as_str())
    }
}

/// A person's, bot's or chat's name as people see it.
fn person_name(who: &Value) -> String {
    let field = |name: &str| who[name].as_str().unwrap_or_default();
    let full = format!("{} {}", field("first_name"), field("last_name"));
    let names = [full.as_str(), field("title"), field("username")];
    let name = names.into_iter().map(str::trim).find(|name| !name.is_empty()).unwrap_or_default();
    one_line(name, NAME_CHARS_MAX)
}

fn one_line(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
