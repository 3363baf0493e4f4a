//! Reads a message into the library's types, and next to them the parts that these types would lose or fail on.
//!
//! The library knows 44 kinds of messages, most of which lose the context of the content: the origin of a forwarded dice, the message
//! it replies to. A single unexpected field also fails the whole message: a new kind of formatting, a file without a media type, a
//! reply to a text of another chat. So the context is taken out first, each field parsed by itself, in the library's type where that
//! is robust. A forward or a quote is recognised even if unreadable. Names and quotes are shortened to one line, because they are
//! untrusted text.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use teloxide_core::types::{
    Chat, ChatMigration, MediaKind, Message, MessageEntity, MessageEntityKind, MessageKind, MessageOrigin, Story, User,
};

use reveille_base::{types::ChatRef, words::first_chars};

use super::{
    Me,
    content::{self, MessageContent},
    incoming::{Migration, Quoted},
};

/// The maximum length of a kept name in characters.
const NAME_CHARS_MAX: usize = 128;
/// The maximum length of a kept quotation in characters.
const QUOTE_CHARS_MAX: usize = 1000;
/// The id of a forum's general topic, which must be omitted when sending.
const GENERAL_TOPIC: i64 = 1;
/// The name for an unknown author.
const SOMEONE: &str = "someone";
/// The fields for files with a media type, which the sender can choose at will.
const FILES: [&str; 5] = ["voice", "video", "animation", "audio", "document"];
/// Further context fields, which aren't used.
const UNUSED: [&str; 5] =
    ["reply_markup", "link_preview_options", "sender_business_bot", "direct_messages_topic", "suggested_post_info"];

/// A message. Of an unreadable one, only sender and chat.
#[derive(Debug)]
pub(super) struct ReadMessage {
    pub(super) chat: Option<Chat>,
    pub(super) from: Option<User>,
    /// True if the apparent sender or chat may be wrong: sent in the name of a chat (by an anonymous administrator, a channel, or an
    /// automatic forward), or in a chat of unknown kind.
    pub(super) is_disguised: bool,
    pub(super) date: DateTime<Utc>,
    /// The content; `Empty` if unknown to the library.
    pub(super) kind: MessageKind,
    pub(super) around: Surroundings,
    /// The rest of the message without `around`.
    rest: Value,
}

/// The context of a message's content.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// The author of the text if other than the sender: of a forward, or an inline bot.
    pub(super) forwarded_from: Option<String>,
    pub(super) caption: Option<String>,
    /// The media type of the file.
    pub(super) mime: Option<String>,
    entities: Vec<MessageEntity>,
    reply: Option<Box<ReadMessage>>,
    /// The message of another chat that is replied to, with its author.
    external: Option<(String, Box<ReadMessage>)>,
    story: Option<String>,
    picked: Option<String>,
    task: Option<i32>,
}

impl ReadMessage {
    /// Reads a message inside another.
    pub(super) fn from_value(mut message: Value) -> Self {
        let around = Surroundings::take_from(&mut message);
        Self::new(parse_value(&message), around, message)
    }

    /// Combines the library's message, if readable, with its context and the rest.
    pub(super) fn new(message: Option<Message>, around: Surroundings, rest: Value) -> Self {
        if let Some(Message { chat, from, sender_chat, date, kind, .. }) = message {
            return Self { chat: Some(chat), from, is_disguised: sender_chat.is_some(), date, kind, around, rest };
        }
        // The press of a button has its chat in the message with the button.
        let place = rest.get("chat").or_else(|| rest.pointer("/message/chat"));
        let chat = place.and_then(parse_value);
        let part = |name: &str| rest.get(name).filter(|part| !part.is_null());
        let in_the_name_of = ["sender_chat", "actor_chat", "voter_chat"].into_iter().find_map(part);
        let at = part("date").and_then(Value::as_i64).and_then(|at| DateTime::from_timestamp(at, 0));
        Self {
            is_disguised: place.is_some() && chat.is_none() || in_the_name_of.is_some(),
            chat,
            from: part("from").or(part("user")).and_then(parse_value),
            date: at.unwrap_or_default(),
            kind: MessageKind::Empty {},
            around,
            rest,
        }
    }

    /// Reads a message of another chat. The library's own type for these has no text, and requires an id that is often missing.
    fn read_external(mut message: Value) -> (String, Box<Self>) {
        let origin = message.get("origin").map_or_else(|| SOMEONE.to_owned(), origin_name);
        if let Some(fields) = message.as_object_mut() {
            fields.remove("origin");
            let elsewhere = json!({"message_id": 0, "date": 0, "chat": {"id": 0, "type": "private"}});
            fields.extend(elsewhere.as_object().cloned().unwrap_or_default());
        }
        (origin, Box::new(Self::from_value(message)))
    }

    /// The id of the sender, also if nothing else of the sender is readable.
    pub(super) fn sender_id(&self) -> Option<i64> {
        self.from.as_ref().and_then(user_id).or_else(|| self.find_number("/from/id"))
    }

    pub(super) fn is_in_a_group(&self) -> bool {
        self.chat.as_ref().is_some_and(is_group)
    }

    /// The id of the message, which may exceed the library's type.
    pub(super) fn message_id(&self) -> Option<i64> {
        self.find_number("/message_id")
    }

    /// The forum topic. `None` for the general topic, and outside forums, where the field names a chain of replies.
    pub(super) fn thread_id(&self) -> Option<i64> {
        let is_topic = self.rest.get("is_topic_message") == Some(&Value::Bool(true));
        self.find_number("/message_thread_id").filter(|id| is_topic && *id != GENERAL_TOPIC)
    }

    fn find_number(&self, pointer: &str) -> Option<i64> {
        self.rest.pointer(pointer)?.as_i64()
    }

    /// The text, also if other fields are unreadable.
    pub(super) fn text(&self) -> Option<&str> {
        self.rest.get("text")?.as_str()
    }

    /// The common id of the pictures of an album.
    pub(super) fn album_id(&self) -> Option<String> {
        parse_value(self.rest.get("media_group_id")?)
    }

    /// The name of the first field for which `wanted` returns true.
    pub(super) fn find_field(&self, wanted: impl Fn(&str, &Value) -> bool) -> Option<&str> {
        let mut fields = self.rest.as_object().into_iter().flatten();
        fields.find(|(name, value)| wanted(name, value)).map(|(name, _)| name.as_str())
    }

    /// The message that this message replies to.
    pub(super) fn reply_to(&self) -> Option<Quoted> {
        let Surroundings { reply, external, story, .. } = &self.around;
        let answered = reply.as_deref().or(external.as_ref().map(|(_, said)| &**said));
        // In a forum every message "replies" to the message that opened its topic.
        let answered = answered.filter(|said| !said.opens_a_topic());
        let picked = self.around.picked.as_deref().or_else(|| self.checklist_task());
        let (text, is_description) = match (picked, answered, story) {
            (Some(picked), ..) => (picked.to_owned(), false),
            (None, Some(answered), _) => match content::read(answered) {
                MessageContent::Said { kind, text } => (text, kind != "text"),
                _ => (content::find_unknown_field(answered).map(|name| format!("[{name}]")).unwrap_or_default(), true),
            },
            (None, None, Some(whose)) => (format!("[story of {whose}]"), true),
            (None, None, None) => return None,
        };
        // Text of another chat: its author is the only hint at its origin.
        let text = external.as_ref().map_or(text.clone(), |(whose, _)| format!("{whose}: {text}"));
        let is_forwarded = reply.as_ref().is_some_and(|said| said.around.forwarded_from.is_some());
        Some(Quoted {
            message_id: reply.as_ref().and_then(|said| said.message_id()),
            sender_id: reply.as_ref().and_then(|said| said.sender_id()),
            text: first_chars(&text, QUOTE_CHARS_MAX).to_owned(),
            is_description,
            is_from_elsewhere: external.is_some() || story.is_some() || is_forwarded,
        })
    }

    fn opens_a_topic(&self) -> bool {
        matches!(self.kind, MessageKind::ForumTopicCreated(_))
    }

    /// The task of a checklist that is replied to.
    fn checklist_task(&self) -> Option<&str> {
        let MediaKind::Checklist(list) = self.around.reply.as_ref()?.media()? else { return None };
        let id = self.around.task?;
        list.checklist.tasks.iter().find(|task| task.id.0 == id).map(|task| task.text.as_str())
    }

    /// The content of the most common kinds.
    pub(super) fn media(&self) -> Option<&MediaKind> {
        match &self.kind {
            MessageKind::Common(common) => Some(&common.media_kind),
            _ => None,
        }
    }

    /// The change of a group's id from a service message, in the old or the new group.
    pub(super) fn migration(&self) -> Option<Migration> {
        let MediaKind::Migration(migration) = self.media()? else { return None };
        let chat = self.chat.as_ref()?;
        let (from, to) = match migration {
            ChatMigration::To { chat_id } => (chat.id.0, chat_id.0),
            ChatMigration::From { chat_id } => (chat_id.0, chat.id.0),
        };
        let groups = [from, to].into_iter().all(|id| ChatRef::from_telegram(id).is_group());
        groups.then(|| Migration { from, to, title: chat_name(chat) })
    }

    /// Returns true if the message addresses the bot: any in a private chat; in a group, a mention of the bot or a reply to it.
    pub(super) fn is_addressed_to(&self, me: &Me) -> bool {
        let reply = self.around.reply.as_ref();
        let words = self.text().or(self.around.caption.as_deref()).unwrap_or_default();
        !self.is_in_a_group()
            || reply.is_some_and(|said| said.sender_id() == Some(me.id) && !said.opens_a_topic())
            || begins_with_name(words, me)
            || self.around.entities.iter().any(|entity| is_mention_of(entity, words, me))
    }
}

impl Surroundings {
    /// Takes the context out of a message.
    pub(super) fn take_from(message: &mut Value) -> Self {
        let Some(fields) = message.as_object_mut() else { return Self::default() };
        let mut take = |name: &str| fields.remove(name).filter(|value| !value.is_null());
        for name in UNUSED {
            take(name);
        }
        let via_bot = take("via_bot").map(|bot| parse_value(&bot).map_or(SOMEONE.to_owned(), |bot| user_name(&bot)));
        let story =
            |story: Value| parse_value(&story).map_or(SOMEONE.to_owned(), |story: Story| chat_name(&story.chat));
        let (of_text, of_caption) = (take("entities"), take("caption_entities"));
        let mut around = Self {
            // fault: words-forward-brings-librarys
            forwarded_from: take("forward_origin").map(|origin| origin_name(&origin)).or(via_bot),
            caption: take("caption").and_then(|caption| parse_value(&caption)),
            reply: take("reply_to_message").map(|message| Box::new(ReadMessage::from_value(message))),
            external: take("external_reply").map(ReadMessage::read_external),
            story: take("reply_to_story").map(story),
            picked: take("quote").and_then(|quote| parse_value(quote.get("text")?)),
            task: take("reply_to_checklist_task_id").and_then(|id| parse_value(&id)),
            ..Self::default()
        };
        let entities = if fields.contains_key("text") { of_text } else { of_caption };
        around.entities = entities.iter().flat_map(|all| all.as_array()).flatten().filter_map(parse_value).collect();
        around.mime = FILES.iter().find_map(|name| parse_value(fields.get(*name)?.get("mime_type")?));
        // Of a button's message, only its place matters.
        if let Some(Value::Object(button)) = fields.get_mut("message") {
            button.retain(|name, _| ["message_id", "chat", "date"].contains(&name.as_str()));
        }
        fields.values_mut().for_each(remove_strict_fields);
        around
    }
}

/// Removes the fields that the library parses too strictly: formatting, which gets new kinds, and media types, which the library
/// requires of files.
fn remove_strict_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("entities"));
            if fields.contains_key("file_id") {
                fields.insert("mime_type".to_owned(), Value::Null);
            }
            fields.values_mut().for_each(remove_strict_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_strict_fields),
        _ => {}
    }
}

fn parse_value<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// Returns true if a text begins with the bot's name, as in "Reveille, what's due?".
fn begins_with_name(text: &str, me: &Me) -> bool {
    let begins_with = |name: &str| {
        let mut rest = text.trim_start().chars();
        !name.is_empty()
            && name.chars().all(|c| rest.next().is_some_and(|other| other.to_lowercase().eq(c.to_lowercase())))
            && !rest.next().is_some_and(|next| next.is_alphanumeric() || next == '_')
    };
    begins_with(&me.first_name) || begins_with(&me.username)
}

/// Returns true if an entity of a text mentions the bot. Its offset counts UTF-16 units.
fn is_mention_of(entity: &MessageEntity, text: &str, me: &Me) -> bool {
    match &entity.kind {
        MessageEntityKind::TextMention { user } => user_id(user) == Some(me.id),
        MessageEntityKind::Mention => {
            let units = text.encode_utf16().skip(entity.offset).take(entity.length);
            let mention: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
            !me.username.is_empty()
                && mention.strip_prefix('@').is_some_and(|name| name.eq_ignore_ascii_case(&me.username))
        }
        _ => false,
    }
}

/// The name of a forward's author: a person, possibly hidden, a group or a channel.
fn origin_name(origin: &Value) -> String {
    let (named, author) = match parse_value(origin) {
        Some(MessageOrigin::User { sender_user, .. }) => (user_name(&sender_user), None),
        Some(MessageOrigin::HiddenUser { sender_user_name, .. }) => (name(&[&sender_user_name]), None),
        Some(
            MessageOrigin::Chat { sender_chat: chat, author_signature, .. }
            | MessageOrigin::Channel { chat, author_signature, .. },
        ) => (chat_name(&chat), author_signature),
        None => (String::new(), None),
    };
    let author = author.map(|author| name(&[&author])).unwrap_or_default();
    match (named.is_empty(), author.is_empty()) {
        (true, true) => SOMEONE.to_owned(),
        (true, false) => author,
        (false, true) => named,
        (false, false) => format!("{named} ({author})"),
    }
}

/// The id of a person or bot; `None` if it exceeds `i64`.
pub(super) fn user_id(user: &User) -> Option<i64> {
    i64::try_from(user.id.0).ok()
}

pub(super) fn is_group(chat: &Chat) -> bool {
    chat.is_group() || chat.is_supergroup()
}

/// The displayed name of a person or bot.
pub(super) fn user_name(user: &User) -> String {
    name(&[&user.full_name(), user.username.as_deref().unwrap_or_default()])
}

/// The displayed name of a chat.
pub(super) fn chat_name(chat: &Chat) -> String {
    let field = Option::unwrap_or_default;
    let full = format!("{} {}", field(chat.first_name()), field(chat.last_name()));
    name(&[&full, field(chat.title()), field(chat.username())])
}

/// The first name that isn't empty.
pub(super) fn name(names: &[&str]) -> String {
    let name = names.iter().map(|name| name.trim()).find(|name| !name.is_empty());
    one_line(name.unwrap_or_default(), NAME_CHARS_MAX)
}

pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    first_chars(text, chars_max).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
