//! A message in the library's types, and beside it what these would lose or stumble over.
//!
//! The library reads a message as one of 44 kinds, of which most lose what stands around the content: whose words a forwarded
//! dice was, what it answers. And one field that isn't as it expects costs the whole: formatting of a new kind, a file without
//! a media type, an answer to a text of another chat. So what stands around is taken out first, each field read by itself and
//! in the library's type where it has one that holds. That something was forwarded or quoted never depends on whether it
//! could be read. Names and quotes are bounded and put on one line: they are other people's words.

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

/// The longest name that is kept, in characters.
const NAME_CHARS_MAX: usize = 128;
/// The longest quotation that is kept, in characters.
const QUOTE_CHARS_MAX: usize = 1000;
/// The id of a forum's general topic, which is written to without one.
const GENERAL_TOPIC: i64 = 1;
/// Whose words it was, where Telegram doesn't say, or not in a way that is known.
const SOMEONE: &str = "someone";
/// The fields that carry a file with a media type, which whoever sends it writes at will.
const FILES: [&str; 5] = ["voice", "video", "animation", "audio", "document"];
/// What else stands around a message, and isn't used.
const UNUSED: [&str; 5] =
    ["reply_markup", "link_preview_options", "sender_business_bot", "direct_messages_topic", "suggested_post_info"];

/// A message; of what the library can't read, who sent it and where.
#[derive(Debug)]
pub(super) struct ReadMessage {
    pub(super) chat: Option<Chat>,
    pub(super) from: Option<User>,
    /// Whether who speaks may be another than who sent it, or where may be elsewhere: it was sent in the name of a chat (by an
    /// anonymous administrator, a channel, or forwarded by itself), or the chat is of a kind that isn't known.
    pub(super) is_disguised: bool,
    pub(super) date: DateTime<Utc>,
    /// Its content; `Empty` where the library knows none.
    pub(super) kind: MessageKind,
    pub(super) around: Surroundings,
    /// What is left when `around` is taken out of it.
    rest: Value,
}

/// What stands around a message's content.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Whose words these are, if not the sender's own: forwarded, or written by an inline bot.
    pub(super) forwarded_from: Option<String>,
    pub(super) caption: Option<String>,
    /// The media type of its file.
    pub(super) mime: Option<String>,
    entities: Vec<MessageEntity>,
    reply: Option<Box<ReadMessage>>,
    /// The message of another chat that is answered, and whose words it is.
    external: Option<(String, Box<ReadMessage>)>,
    story: Option<String>,
    picked: Option<String>,
    task: Option<i32>,
}

impl ReadMessage {
    /// Reads a message that stands in another one.
    pub(super) fn read(mut message: Value) -> Self {
        let around = Surroundings::take_out_of(&mut message);
        Self::new(read(&message), around, message)
    }

    /// A message, if the library could read it, with what was taken out of it and what was left.
    pub(super) fn new(message: Option<Message>, around: Surroundings, rest: Value) -> Self {
        if let Some(Message { chat, from, sender_chat, date, kind, .. }) = message {
            return Self { chat: Some(chat), from, is_disguised: sender_chat.is_some(), date, kind, around, rest };
        }
        // A button's press carries its chat in the message with the button.
        let place = rest.get("chat").or_else(|| rest.pointer("/message/chat"));
        let chat = place.and_then(read);
        let part = |name: &str| rest.get(name).filter(|part| !part.is_null());
        let in_the_name_of = ["sender_chat", "actor_chat", "voter_chat"].into_iter().find_map(part);
        let at = part("date").and_then(Value::as_i64).and_then(|at| DateTime::from_timestamp(at, 0));
        Self {
            is_disguised: place.is_some() && chat.is_none() || in_the_name_of.is_some(),
            chat,
            from: part("from").or(part("user")).and_then(read),
            date: at.unwrap_or_default(),
            kind: MessageKind::Empty {},
            around,
            rest,
        }
    }

    /// A message of another chat. The library's own type for it knows no texts, and wants an id that is often missing.
    fn external(mut message: Value) -> (String, Box<Self>) {
        let origin = message.get("origin").map_or_else(|| SOMEONE.to_owned(), origin_name);
        if let Some(fields) = message.as_object_mut() {
            fields.remove("origin");
            let elsewhere = json!({"message_id": 0, "date": 0, "chat": {"id": 0, "type": "private"}});
            fields.extend(elsewhere.as_object().cloned().unwrap_or_default());
        }
        (origin, Box::new(Self::read(message)))
    }

    /// Whoever sent it is known by their id alone, if need be.
    pub(super) fn sender_id(&self) -> Option<i64> {
        self.from.as_ref().and_then(id_of).or_else(|| self.number("/from/id"))
    }

    pub(super) fn is_in_a_group(&self) -> bool {
        self.chat.as_ref().is_some_and(is_group)
    }

    /// Its id, which can be beyond the library's.
    pub(super) fn message_id(&self) -> Option<i64> {
        self.number("/message_id")
    }

    /// The forum topic; none outside forums, where the field names a chain of replies, and for the general topic.
    pub(super) fn thread_id(&self) -> Option<i64> {
        let is_topic = self.rest.get("is_topic_message") == Some(&Value::Bool(true));
        self.number("/message_thread_id").filter(|id| is_topic && *id != GENERAL_TOPIC)
    }

    fn number(&self, pointer: &str) -> Option<i64> {
        self.rest.pointer(pointer)?.as_i64()
    }

    /// The words, whether the library could read what stands beside them or not.
    pub(super) fn text(&self) -> Option<&str> {
        self.rest.get("text")?.as_str()
    }

    /// What the pictures of one album have in common.
    pub(super) fn album(&self) -> Option<String> {
        read(self.rest.get("media_group_id")?)
    }

    /// The name of the first of its fields for which `wanted` holds.
    pub(super) fn field(&self, wanted: impl Fn(&str, &Value) -> bool) -> Option<&str> {
        let mut fields = self.rest.as_object().into_iter().flatten();
        fields.find(|(name, value)| wanted(name, value)).map(|(name, _)| name.as_str())
    }

    /// The message that this one answers.
    pub(super) fn reply_to(&self) -> Option<Quoted> {
        let Surroundings { reply, external, story, .. } = &self.around;
        let answered = reply.as_deref().or(external.as_ref().map(|(_, said)| &**said));
        // In a forum every message "answers" the one that opened its topic.
        let answered = answered.filter(|said| !said.opens_a_topic());
        let picked = self.around.picked.as_deref().or_else(|| self.checklist_task());
        let (text, is_description) = match (picked, answered, story) {
            (Some(picked), ..) => (picked.to_owned(), false),
            (None, Some(answered), _) => match content::read(answered) {
                MessageContent::Said { kind, text } => (text, kind != "text"),
                _ => (content::unknown_field(answered).map(|name| format!("[{name}]")).unwrap_or_default(), true),
            },
            (None, None, Some(whose)) => (format!("[story of {whose}]"), true),
            (None, None, None) => return None,
        };
        // Words from another chat: whose they are is all that tells where they come from.
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

    /// The task of a checklist that is answered.
    fn checklist_task(&self) -> Option<&str> {
        let MediaKind::Checklist(list) = self.around.reply.as_ref()?.media()? else { return None };
        let id = self.around.task?;
        list.checklist.tasks.iter().find(|task| task.id.0 == id).map(|task| task.text.as_str())
    }

    /// Its content, of the kinds that hold most of what people send.
    pub(super) fn media(&self) -> Option<&MediaKind> {
        match &self.kind {
            MessageKind::Common(common) => Some(&common.media_kind),
            _ => None,
        }
    }

    /// What a service message says of a group's new id, in the old group or in the new one.
    pub(super) fn migration(&self) -> Option<Migration> {
        let MediaKind::Migration(migration) = self.media()? else { return None };
        let chat = self.chat.as_ref()?;
        let (from, to) = match migration {
            ChatMigration::To { chat_id } => (chat.id.0, chat_id.0),
            ChatMigration::From { chat_id } => (chat_id.0, chat.id.0),
        };
        let groups = [from, to].into_iter().all(|id| ChatRef::telegram(id).is_group());
        groups.then(|| Migration { from, to, title: chat_name(chat) })
    }

    /// Whether it is said to the bot. In a private chat everything is; in a group what names the bot, or answers it.
    pub(super) fn is_said_to(&self, me: &Me) -> bool {
        let reply = self.around.reply.as_ref();
        let words = self.text().or(self.around.caption.as_deref()).unwrap_or_default();
        !self.is_in_a_group()
            || reply.is_some_and(|said| said.sender_id() == Some(me.id) && !said.opens_a_topic())
            || begins_with_name(words, me)
            || self.around.entities.iter().any(|entity| is_of(entity, words, me))
    }
}

impl Surroundings {
    /// Takes what stands around a message out of it.
    pub(super) fn take_out_of(message: &mut Value) -> Self {
        let Some(fields) = message.as_object_mut() else { return Self::default() };
        let mut take = |name: &str| fields.remove(name).filter(|value| !value.is_null());
        for name in UNUSED {
            take(name);
        }
        let via_bot = take("via_bot").map(|bot| read(&bot).map_or(SOMEONE.to_owned(), |bot| user_name(&bot)));
        let story = |story: Value| read(&story).map_or(SOMEONE.to_owned(), |story: Story| chat_name(&story.chat));
        let (of_text, of_caption) = (take("entities"), take("caption_entities"));
        let mut around = Self {
            // fault: words-forward-brings-librarys
            forwarded_from: take("forward_origin").map(|origin| origin_name(&origin)).or(via_bot),
            caption: take("caption").and_then(|caption| read(&caption)),
            reply: take("reply_to_message").map(|message| Box::new(ReadMessage::read(message))),
            external: take("external_reply").map(ReadMessage::external),
            story: take("reply_to_story").map(story),
            picked: take("quote").and_then(|quote| read(quote.get("text")?)),
            task: take("reply_to_checklist_task_id").and_then(|id| read(&id)),
            ..Self::default()
        };
        let entities = if fields.contains_key("text") { of_text } else { of_caption };
        around.entities = entities.iter().flat_map(|all| all.as_array()).flatten().filter_map(read).collect();
        around.mime = FILES.iter().find_map(|name| read(fields.get(*name)?.get("mime_type")?));
        // Of a button's message, where it is is all that counts.
        if let Some(Value::Object(button)) = fields.get_mut("message") {
            button.retain(|name, _| ["message_id", "chat", "date"].contains(&name.as_str()));
        }
        fields.values_mut().for_each(loosen);
        around
    }
}

/// Takes out of whatever stands in a value what the library reads too strictly: the formatting of texts, of which new kinds
/// come, and files' media types, without which it knows no file.
fn loosen(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("entities"));
            if fields.contains_key("file_id") {
                fields.insert("mime_type".to_owned(), Value::Null);
            }
            fields.values_mut().for_each(loosen);
        }
        Value::Array(items) => items.iter_mut().for_each(loosen),
        _ => {}
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
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
fn is_of(entity: &MessageEntity, text: &str, me: &Me) -> bool {
    match &entity.kind {
        MessageEntityKind::TextMention { user } => id_of(user) == Some(me.id),
        MessageEntityKind::Mention => {
            let units = text.encode_utf16().skip(entity.offset).take(entity.length);
            let mention: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
            !me.username.is_empty()
                && mention.strip_prefix('@').is_some_and(|name| name.eq_ignore_ascii_case(&me.username))
        }
        _ => false,
    }
}

/// Whose words were forwarded: a person's, who may hide, a group's or a channel's.
fn origin_name(origin: &Value) -> String {
    let (named, author) = match read(origin) {
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

/// A person's or bot's id; none if it is beyond ours.
pub(super) fn id_of(user: &User) -> Option<i64> {
    i64::try_from(user.id.0).ok()
}

pub(super) fn is_group(chat: &Chat) -> bool {
    chat.is_group() || chat.is_supergroup()
}

/// A person's or bot's name as people see it.
pub(super) fn user_name(user: &User) -> String {
    name(&[&user.full_name(), user.username.as_deref().unwrap_or_default()])
}

/// A chat's name as people see it.
pub(super) fn chat_name(chat: &Chat) -> String {
    let field = Option::unwrap_or_default;
    let full = format!("{} {}", field(chat.first_name()), field(chat.last_name()));
    name(&[&full, field(chat.title()), field(chat.username())])
}

/// The first of these names that isn't empty.
pub(super) fn name(names: &[&str]) -> String {
    let name = names.iter().map(|name| name.trim()).find(|name| !name.is_empty());
    one_line(name.unwrap_or_default(), NAME_CHARS_MAX)
}

pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    first_chars(text, chars_max).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
