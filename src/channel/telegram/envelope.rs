//! Who sent a message, where, when and in answer to what, read from the raw JSON.
//!
//! Who may speak must never depend on whether a library knows the message's content, so the envelope has one reader for
//! every update, known or not. Names and quotes are bounded and put on one line: they are other people's words.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    Me,
    content::{self, MessageContent},
    incoming::{Migration, Quoted},
};

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

    /// Whose words these are, if not the sender's own: forwarded, or written by an inline bot.
    pub(super) fn forwarded_from(self) -> Option<String> {
        let origin = &self.0["forward_origin"];
        if !origin.is_null() {
            return Some(origin_name(origin));
        }
        let via = &self.0["via_bot"];
        (!via.is_null()).then(|| person_name(via))
    }

    /// The message that this one answers.
    pub(super) fn reply_to(self) -> Option<Quoted> {
        let (original, external) = (Envelope(&self.0["reply_to_message"]), Envelope(&self.0["external_reply"]));
        let story = &self.0["reply_to_story"];
        let picked = self.0.pointer("/quote/text").and_then(Value::as_str).or_else(|| self.checklist_task(original));
        let answered = if original.0.is_null() { external } else { original };
        // In a forum every message "answers" the one that opened its topic.
        let nothing_said = answered.0.is_null() || !answered.0["forum_topic_created"].is_null();
        if nothing_said && picked.is_none() && story.is_null() {
            return None;
        }
        let (text, is_description) = match (picked, content::read(answered.0)) {
            (Some(picked), _) => (picked.to_owned(), false),
            (None, _) if nothing_said => (format!("[story of {}]", person_name(&story["chat"])), true),
            (None, MessageContent::Said { kind, text }) => (text, kind != "text"),
            (None, _) => (answered.content_name().map(|name| format!("[{name}]")).unwrap_or_default(), true),
        };
        // Words from another chat: whose they are is all that tells where they come from.
        let whose = (!external.0.is_null()).then(|| origin_name(&external.0["origin"]));
        let text = whose.map_or(text.clone(), |whose| format!("{whose}: {text}"));
        Some(Quoted {
            message_id: original.message_id(),
            sender_id: original.sender_id(),
            text: text.chars().take(QUOTE_CHARS_MAX).collect(),
            is_description,
            is_from_elsewhere: !external.0.is_null() || !story.is_null() || original.forwarded_from().is_some(),
        })
    }

    /// The task of a checklist that is answered.
    fn checklist_task(self, original: Envelope<'a>) -> Option<&'a str> {
        let id = self.0["reply_to_checklist_task_id"].as_i64()?;
        let tasks = list(original.0.pointer("/checklist/tasks")?);
        tasks.iter().find(|task| task["id"] == id)?["text"].as_str()
    }

    /// What a service message says of a group's new id, in the old group or in the new one.
    pub(super) fn migration(self) -> Option<Migration> {
        let here = self.chat_id()?;
        let other = |field: &str| self.0[field].as_i64();
        let (from, to) = other("migrate_to_chat_id")
            .map(|to| (here, to))
            .or_else(|| Some((other("migrate_from_chat_id")?, here)))?;
        // People's ids are positive.
        (from < 0 && to < 0).then(|| Migration { from, to, title: person_name(self.chat()) })
    }

    /// Whether it is said to the bot. In a private chat everything is; in a group what names the bot, or answers it.
    pub(super) fn is_said_to(self, me: &Me) -> bool {
        let answered = Envelope(&self.0["reply_to_message"]);
        let answers_me = answered.sender_id() == Some(me.id) && answered.0["forum_topic_created"].is_null();
        self.chat_type() != ChatType::Group
            || answers_me
            || [("text", "entities"), ("caption", "caption_entities")].into_iter().any(|(text, entities)| {
                let text = self.0[text].as_str().unwrap_or_default();
                begins_with_name(text, me) || list(&self.0[entities]).iter().any(|entity| is_of(entity, text, me))
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

/// Whose words were forwarded: a person's, who may hide, a group's or a channel's.
fn origin_name(origin: &Value) -> String {
    let hidden = one_line(origin["sender_user_name"].as_str().unwrap_or_default(), NAME_CHARS_MAX);
    let people = [&origin["sender_user"], &origin["sender_chat"], &origin["chat"]];
    let named = people.into_iter().find(|who| !who.is_null()).map_or(hidden, person_name);
    let author = one_line(origin["author_signature"].as_str().unwrap_or_default(), NAME_CHARS_MAX);
    match (named.is_empty(), author.is_empty()) {
        (true, true) => "someone".to_owned(),
        (true, false) => author,
        (false, true) => named,
        (false, false) => format!("{named} ({author})"),
    }
}

/// Whether a text begins with the bot's name, as in "Reveille, what's due?".
fn begins_with_name(text: &str, me: &Me) -> bool {
    let begins_with = |name: &str| {
        let mut rest = text.trim_start().chars();
        !name.is_empty()
            && name.chars().all(|c| rest.next().is_some_and(|other| other.to_lowercase().eq(c.to_lowercase())))
            && !rest.next().is_some_and(|next| next.is_alphanumeric() || next == '_')
    };
    begins_with(&me.first_name) || begins_with(&me.username)
}

/// Whether an entity of a text mentions the bot. Its place is counted in UTF-16 units.
fn is_of(entity: &Value, text: &str, me: &Me) -> bool {
    let place = |field: &str| entity[field].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
    match entity["type"].as_str() {
        Some("text_mention") => entity.pointer("/user/id").and_then(Value::as_i64) == Some(me.id),
        Some("mention") => {
            let units = text.encode_utf16().skip(place("offset")).take(place("length"));
            let mention: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
            !me.username.is_empty()
                && mention.strip_prefix('@').is_some_and(|name| name.eq_ignore_ascii_case(&me.username))
        }
        _ => false,
    }
}

/// The items of a list; none where it isn't one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A person's, bot's or chat's name as people see it.
pub(super) fn person_name(who: &Value) -> String {
    let field = |name: &str| who[name].as_str().unwrap_or_default();
    let full = format!("{} {}", field("first_name"), field("last_name"));
    let names = [full.as_str(), field("title"), field("username")];
    let name = names.into_iter().map(str::trim).find(|name| !name.is_empty()).unwrap_or_default();
    one_line(name, NAME_CHARS_MAX)
}

pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
