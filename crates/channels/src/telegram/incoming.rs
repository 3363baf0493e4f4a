//! Interprets an update and checks its sender. Does no I/O.
//!
//! Nothing from an allowed person is dropped: unknown content becomes a message that says so, with its raw JSON ([`RawUpdate::raw`]).
//! Updates of strangers are only counted.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Deserialize as _;
use serde_json::{Map, Value, json, value::RawValue};
use teloxide_core::types::{AllowedUpdate, CallbackQuery, Chat, Update, UpdateKind};

use reveille_base::types::{ButtonChoice, ChatRef};
use reveille_store::{NewAttachment, Tap};

use super::{
    Me, RawUpdate, attachment,
    command::{self, Command, ParsedCommand},
    content::{self, MessageContent},
    said::{ReadMessage, Surroundings, is_group, one_line, user_id, user_name},
};

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;

/// The ids of senders that stand for others: the anonymous administrator of a group, a channel in a group, Telegram itself.
const STAND_INS: [i64; 3] = [1_087_968_824, 136_817_688, 777_000];

/// The maximum length of a shown field name in characters.
const FIELD_CHARS_MAX: usize = 64;

/// The people who may speak to the bot.
#[derive(Debug, Clone)]
pub struct Speakers {
    /// The allowed ids of people and groups. In a group, both the group and the sender must be allowed.
    pub allowed: BTreeSet<i64>,
    /// The bot itself.
    pub me: Me,
}

/// The meaning of an update.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadUpdate {
    /// A message to be stored. One addressed to others (see [`NewMessage::is_for_us`]) is kept only in case it becomes part of a message
    /// to the assistant.
    Message(NewMessage),
    /// A command that the bot answers.
    Command {
        /// The command.
        command: Command,
        /// The text after the command.
        args: String,
        /// The message with the command.
        message: NewMessage,
    },
    /// A new version of an earlier message with the same [`NewMessage::telegram_message_id`]. Never a command.
    Edited(NewMessage),
    /// The press of a button under a message of ours.
    Tapped(Tap),
    /// Unknown content from an allowed person, to be stored with a text that says so.
    Unsupported(NewMessage),
    /// A group has a new id.
    Migrated(Migration),
    /// An update of a stranger or a disguised sender: only counted.
    Stranger,
    /// An update without a message for the assistant; holds the reason.
    Ignored(&'static str),
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The chat of the message.
    pub chat: ChatRef,
    /// The forum topic for the answer; `None` for the general topic and outside forums.
    pub thread_id: Option<i64>,
    /// Telegram's id of the message in its chat; `None` for an unknown update without an id.
    pub telegram_message_id: Option<i64>,
    /// The id of the sender.
    pub sender_id: i64,
    /// The sender's name, which anyone may choose at will.
    pub sender_name: String,
    /// The text, or a description of other content.
    pub text: String,
    /// `text`, `voice`, `photo` and so on, as named by the Bot API; else `unsupported`.
    pub kind: &'static str,
    /// The message that this message replies to.
    pub reply_to: Option<Quoted>,
    /// The author of the text if other than the sender.
    pub forwarded_from: Option<String>,
    /// The id that all pictures of an album share.
    pub album: Option<String>,
    /// The attached file.
    pub attachment: Option<NewAttachment>,
    /// True if the message addresses the assistant, which isn't always so in a group.
    pub is_for_us: bool,
    /// The time of sending.
    pub date: DateTime<Utc>,
}

/// The message replied to, or the words quoted from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    /// The id, if in the same chat.
    pub message_id: Option<i64>,
    /// The sender, if in the same chat.
    pub sender_id: Option<i64>,
    /// The shortened text, or the quoted words.
    pub text: String,
    /// True if the text is only a description of other content.
    pub is_description: bool,
    /// True if forwarded into this chat, or part of another chat.
    pub is_from_elsewhere: bool,
}

/// The move of a group to a supergroup, with a new id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The old id.
    pub from: i64,
    /// The new id, to be allowed from now on.
    pub to: i64,
    /// The group's name, which its members may choose at will.
    pub title: String,
}

/// An update that isn't kept.
enum NotKept {
    Stranger,
    Ignored(&'static str),
}

impl From<NotKept> for ReadUpdate {
    fn from(not_kept: NotKept) -> Self {
        match not_kept {
            NotKept::Stranger => Self::Stranger,
            NotKept::Ignored(why) => Self::Ignored(why),
        }
    }
}

impl Speakers {
    /// Returns the chat and the sender's id if the sender may speak, else why the update isn't kept. Without a chat (as in an inline
    /// query), the sender's private chat is used.
    fn admit_sender(
        &self,
        chat: Option<&Chat>,
        sender_id: Option<i64>,
        is_disguised: bool,
    ) -> Result<(ChatRef, i64), NotKept> {
        let sender_id = match sender_id {
            Some(id) if id == self.me.id => return Err(NotKept::Ignored("the bot's own message")),
            Some(id) => id,
            None if is_disguised => return Err(NotKept::Stranger),
            None => return Err(NotKept::Ignored("an update that names no sender")),
        };
        let chat_id = chat.map_or(sender_id, |chat| chat.id.0);
        let listed = |id: i64| self.allowed.contains(&id);
        let admitted = !is_disguised
            && !STAND_INS.contains(&sender_id)
            && match chat {
                // fault: listed-group-anybody-heard
                Some(chat) if is_group(chat) => listed(chat_id) && listed(sender_id),
                Some(chat) if !chat.is_private() => false,
                Some(_) | None => chat_id == sender_id && listed(sender_id),
            };
        if admitted { Ok((ChatRef::from_telegram(chat_id), sender_id)) } else { Err(NotKept::Stranger) }
    }
}

/// The content of an update, before its sender is checked.
pub(super) enum MessageBody {
    Tap(Box<CallbackQuery>),
    /// A message, or an update of another kind, of which at most the sender and the chat are known.
    Said(Box<ReadMessage>),
}

/// Splits an update into its field name in the Bot API and its content; `None` if empty.
pub(super) fn parse(raw: &RawValue) -> Option<(String, MessageBody)> {
    let mut fields = parse_fields(raw)?;
    // An update holds a single item; look for a message even next to new fields.
    let known = ["message", "edited_message"].into_iter().find(|kind| fields.contains_key(*kind));
    let kind = known.or_else(|| Some(fields.iter().find(|(_, value)| value.is_object())?.0))?.to_owned();
    let mut item = fields.remove(&kind)?;
    let around = Surroundings::take_from(&mut item);
    // Zero replaces the update's id, which may be too large for the library's type.
    let update = Update::deserialize(&json!({ "update_id": 0, kind.as_str(): item })).ok();
    let message = match update.map(|update| update.kind) {
        Some(UpdateKind::CallbackQuery(query)) => return Some((kind, MessageBody::Tap(Box::new(query)))),
        Some(UpdateKind::Message(message) | UpdateKind::EditedMessage(message)) => Some(message),
        _ => None,
    };
    Some((kind, MessageBody::Said(Box::new(ReadMessage::new(message, around, item)))))
}

/// Interprets an update.
pub fn read_update(update: &RawUpdate, speakers: &Speakers) -> ReadUpdate {
    let (kind, said) = match parse(&update.raw) {
        None => return ReadUpdate::Ignored("an empty update"),
        Some((_, MessageBody::Tap(query))) => return interpret_tap(&query, speakers).unwrap_or_else(ReadUpdate::from),
        Some((kind, MessageBody::Said(said))) => (kind, said),
    };
    let is_listed =
        |migration: &Migration| [migration.from, migration.to].iter().any(|id| speakers.allowed.contains(id));
    if let Some(migration) = said.migration().filter(is_listed) {
        return ReadUpdate::Migrated(migration);
    }
    let ids = match speakers.admit_sender(said.chat.as_ref(), said.sender_id(), said.is_disguised) {
        Ok(ids) => ids,
        Err(why) => return why.into(),
    };
    let is_for_us = said.is_addressed_to(&speakers.me);
    let message = |kind, text| new_message(&said, ids, is_for_us, kind, text);
    match (kind.as_str(), content::read(&said)) {
        ("message" | "edited_message", MessageContent::Service) => ReadUpdate::Ignored("a service message"),
        // A live location sends each step as an edit.
        ("edited_message", MessageContent::Said { kind: "location", .. }) => {
            ReadUpdate::Ignored("a live location that moved")
        }
        ("edited_message", MessageContent::Said { kind, text }) => ReadUpdate::Edited(message(kind, text)),
        ("message", MessageContent::Said { kind: "text", text }) => {
            interpret_text(message("text", text), said.is_in_a_group(), &speakers.me)
        }
        ("message", MessageContent::Said { kind, text }) => ReadUpdate::Message(message(kind, text)),
        ("message" | "edited_message", MessageContent::Unknown) if !is_for_us => ReadUpdate::Ignored("said to others"),
        ("message", MessageContent::Unknown) => {
            ReadUpdate::Unsupported(message("unsupported", describe_unknown(&said)))
        }
        ("edited_message", MessageContent::Unknown) => {
            ReadUpdate::Edited(message("unsupported", describe_unknown(&said)))
        }
        (other, _) if is_known_kind(other) => ReadUpdate::Ignored("a kind of update that wasn't requested"),
        _ if !is_for_us => ReadUpdate::Ignored("said to others"),
        (other, _) => ReadUpdate::Unsupported(message(
            "unsupported",
            format!("[unsupported update: {}]", format_field_name(other)),
        )),
    }
}

/// Parses the fields of an update. An empty object replaces a field that can't be read (an out-of-range number, half a character,
/// excessive depth), so that the rest of the message survives. The raw update is kept anyway.
fn parse_fields(raw: &RawValue) -> Option<Map<String, Value>> {
    if let Ok(Value::Object(fields)) = serde_json::from_str(raw.get()) {
        return Some(fields);
    }
    let read_value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    let read_fields = |raw: &RawValue| {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let fields =
            fields.into_iter().map(|(name, raw)| (name, read_value(&raw).unwrap_or(Value::Object(Map::new()))));
        Some(Value::Object(fields.collect()))
    };
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
    let each =
        fields.into_iter().filter_map(|(name, raw)| Some((name, read_value(&raw).or_else(|| read_fields(&raw))?)));
    Some(each.collect())
}

/// The text for unknown content.
fn describe_unknown(said: &ReadMessage) -> String {
    let name = format_field_name(content::find_unknown_field(said).unwrap_or("empty"));
    content::format_description(&format!("unsupported message: {name}"), said.around.caption.as_deref())
}

/// Shortens a field's name for display. Telegram's own names are short.
fn format_field_name(field: &str) -> String {
    one_line(field, FIELD_CHARS_MAX)
}

/// Interprets a text. It is a command if the sender wrote it (not forwarded it) and we know the command.
fn interpret_text(message: NewMessage, is_in_a_group: bool, me: &Me) -> ReadUpdate {
    if message.forwarded_from.is_some() {
        return ReadUpdate::Message(message);
    }
    match command::parse(&message.text, &me.username) {
        // In a group, a misspelt command may be meant for others.
        ParsedCommand::Ours(Command::Mistyped(_), _) if is_in_a_group => ReadUpdate::Message(message),
        ParsedCommand::Ours(command, args) => ReadUpdate::Command { command, args: args.to_owned(), message },
        ParsedCommand::ForAnother if is_in_a_group => ReadUpdate::Ignored("a command for another bot"),
        ParsedCommand::NotACommand if command::is_addressed_to(&message.text, &me.username) => {
            ReadUpdate::Message(NewMessage { is_for_us: true, ..message })
        }
        ParsedCommand::ForAnother | ParsedCommand::NotACommand => ReadUpdate::Message(message),
    }
}

/// Interprets the press of a button. Buttons that aren't ours, and buttons whose message Telegram no longer names, are ignored.
fn interpret_tap(query: &CallbackQuery, speakers: &Speakers) -> Result<ReadUpdate, NotKept> {
    let message = query.message.as_ref();
    let (chat, sender_id) =
        speakers.admit_sender(message.map(|message| message.chat()), user_id(&query.from), false)?;
    let choice = query.data.as_deref().and_then(ButtonChoice::parse);
    let Some((choice, message)) = choice.zip(message) else {
        return Err(NotKept::Ignored("a button that isn't known"));
    };
    Ok(ReadUpdate::Tapped(Tap {
        callback_id: query.id.0.clone(),
        choice,
        chat,
        message_id: message.id().0.into(),
        message_date: message.regular_message().map(|message| message.date),
        sender_id,
    }))
}

/// Returns true for a kind of update known to the library.
fn is_known_kind(kind: &str) -> bool {
    AllowedUpdate::deserialize(&Value::from(kind)).is_ok()
}

fn new_message(
    said: &ReadMessage,
    (chat, sender_id): (ChatRef, i64),
    is_for_us: bool,
    kind: &'static str,
    text: String,
) -> NewMessage {
    NewMessage {
        chat,
        thread_id: said.thread_id(),
        telegram_message_id: said.message_id(),
        sender_id,
        sender_name: said.from.as_ref().map(user_name).unwrap_or_default(),
        text,
        kind,
        reply_to: said.reply_to(),
        forwarded_from: said.around.forwarded_from.clone(),
        album: said.album_id(),
        attachment: attachment::read_attachment(said),
        is_for_us,
        date: said.date,
    }
}
