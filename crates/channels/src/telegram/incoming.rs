//! What an update means to us, and whether its sender may speak: values in, a value out.
//!
//! Nothing that a listed person sends is dropped: what isn't understood becomes a message that says so, its raw JSON kept
//! beside it ([`RawUpdate::raw`]). Of anyone else nothing is kept but a count.

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
    said::{ReadMessage, Surroundings, id_of, is_group, one_line, user_name},
};

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;

/// Senders that stand for someone else: the anonymous administrator of a group, a channel in a group, Telegram itself.
const STAND_INS: [i64; 3] = [1_087_968_824, 136_817_688, 777_000];

/// The longest name of an unknown field that is shown, in characters.
const FIELD_CHARS_MAX: usize = 64;

/// Who may speak to the bot.
#[derive(Debug, Clone)]
pub struct Speakers {
    /// The listed ids: people, and groups. In a group both the group and the sender must be listed.
    pub allowed: BTreeSet<i64>,
    /// The bot itself.
    pub me: Me,
}

/// What an update is.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadUpdate {
    /// Something said to the assistant: to be stored. What was said to others ([`NewMessage::is_for_us`]) is kept only if it
    /// is a part of something that was said to the assistant.
    Message(NewMessage),
    /// A command that the bot answers itself.
    Command {
        /// Which.
        command: Command,
        /// What was written after it.
        args: String,
        /// The message that it came in.
        message: NewMessage,
    },
    /// A new version of an earlier message, by [`NewMessage::telegram_message_id`]. Never a command.
    Edited(NewMessage),
    /// A button under a message of ours was pressed.
    Tapped(Tap),
    /// Something from a listed person that this program doesn't know: to be stored, its text says so.
    Unsupported(NewMessage),
    /// A group has another id from now on.
    Migrated(Migration),
    /// From someone who isn't listed, or who hides: to be counted, nothing else.
    Stranger,
    /// Nothing that was said to the assistant, and why.
    Ignored(&'static str),
}

/// A message as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The chat it was sent in.
    pub chat: ChatRef,
    /// The forum topic to answer in; none for the general topic and outside forums.
    pub thread_id: Option<i64>,
    /// Telegram's id of the message within its chat; none where an update that isn't known has none.
    pub telegram_message_id: Option<i64>,
    /// The person's id.
    pub sender_id: i64,
    /// The person's name, which anyone may choose at will.
    pub sender_name: String,
    /// The words, or a description of what was sent.
    pub text: String,
    /// `text`, `voice`, `photo` and so on as the Bot API names the field; else `unsupported`.
    pub kind: &'static str,
    /// What it answers.
    pub reply_to: Option<Quoted>,
    /// Whose words these are when they aren't the sender's own.
    pub forwarded_from: Option<String>,
    /// What the pictures of one album have in common.
    pub album: Option<String>,
    /// The file that it carries.
    pub attachment: Option<NewAttachment>,
    /// Whether it was said to the assistant: in a group not everything is.
    pub is_for_us: bool,
    /// When it was sent.
    pub date: DateTime<Utc>,
}

/// The message that another one answers, or the words picked from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    /// Its id, if it is of the same chat.
    pub message_id: Option<i64>,
    /// Whose it is, if it is of the same chat.
    pub sender_id: Option<i64>,
    /// Its words, shortened, or the words picked from it.
    pub text: String,
    /// Whether the text only describes what was sent instead of words.
    pub is_description: bool,
    /// Whether it was forwarded into this chat, or stands in another.
    pub is_from_elsewhere: bool,
}

/// A group that became a supergroup: Telegram gave it another id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The id that it had.
    pub from: i64,
    /// The id to list from now on.
    pub to: i64,
    /// The group's name, which its members may choose at will.
    pub title: String,
}

/// What an update is of which nothing is kept.
enum Unheard {
    Stranger,
    Ignored(&'static str),
}

impl From<Unheard> for ReadUpdate {
    fn from(unheard: Unheard) -> Self {
        match unheard {
            Unheard::Stranger => Self::Stranger,
            Unheard::Ignored(why) => Self::Ignored(why),
        }
    }
}

impl Speakers {
    /// The chat and the sender's id, if they may speak; else what the update is. Without a chat (an inline query, say) the
    /// sender's own is meant.
    fn admit(
        &self,
        chat: Option<&Chat>,
        sender_id: Option<i64>,
        is_disguised: bool,
    ) -> Result<(ChatRef, i64), Unheard> {
        let sender_id = match sender_id {
            Some(id) if id == self.me.id => return Err(Unheard::Ignored("the bot's own message")),
            Some(id) => id,
            None if is_disguised => return Err(Unheard::Stranger),
            None => return Err(Unheard::Ignored("an update that names no sender")),
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
        if admitted { Ok((ChatRef::telegram(chat_id), sender_id)) } else { Err(Unheard::Stranger) }
    }
}

/// What came in an update.
pub(super) enum MessageBody {
    Tap(Box<CallbackQuery>),
    /// A message; or anything else, of which no more is known than who and where.
    Said(Box<ReadMessage>),
}

/// Reads an update: the field that it came in, as the Bot API names it, and what is in it. None if nothing is.
pub(super) fn parse(raw: &RawValue) -> Option<(String, MessageBody)> {
    let mut fields = fields_of(raw)?;
    // Telegram puts one thing into an update; a message is found even beside fields that are new.
    let known = ["message", "edited_message"].into_iter().find(|kind| fields.contains_key(*kind));
    let kind = known.or_else(|| Some(fields.iter().find(|(_, value)| value.is_object())?.0))?.to_owned();
    let mut rest = fields.remove(&kind)?;
    let around = Surroundings::take_out_of(&mut rest);
    // Its number is ours to know: the library's are narrower.
    let update = Update::deserialize(&json!({ "update_id": 0, kind.as_str(): rest })).ok();
    let message = match update.map(|update| update.kind) {
        Some(UpdateKind::CallbackQuery(query)) => return Some((kind, MessageBody::Tap(Box::new(query)))),
        Some(UpdateKind::Message(message) | UpdateKind::EditedMessage(message)) => Some(message),
        _ => None,
    };
    Some((kind, MessageBody::Said(Box::new(ReadMessage::new(message, around, rest)))))
}

/// Says what an update is.
pub fn read_update(update: &RawUpdate, access: &Speakers) -> ReadUpdate {
    let (kind, said) = match parse(&update.raw) {
        None => return ReadUpdate::Ignored("an empty update"),
        Some((_, MessageBody::Tap(query))) => return tapped(&query, access).unwrap_or_else(ReadUpdate::from),
        Some((kind, MessageBody::Said(said))) => (kind, said),
    };
    let is_listed = |migration: &Migration| [migration.from, migration.to].iter().any(|id| access.allowed.contains(id));
    if let Some(migration) = said.migration().filter(is_listed) {
        return ReadUpdate::Migrated(migration);
    }
    let ids = match access.admit(said.chat.as_ref(), said.sender_id(), said.is_disguised) {
        Ok(ids) => ids,
        Err(why) => return why.into(),
    };
    let is_for_us = said.is_said_to(&access.me);
    let message = |kind, text| new_message(&said, ids, is_for_us, kind, text);
    match (kind.as_str(), content::read(&said)) {
        ("message" | "edited_message", MessageContent::Service) => ReadUpdate::Ignored("a service message"),
        // While a person shares where they are, each step comes as an edit.
        ("edited_message", MessageContent::Said { kind: "location", .. }) => {
            ReadUpdate::Ignored("a live location that moved")
        }
        ("edited_message", MessageContent::Said { kind, text }) => ReadUpdate::Edited(message(kind, text)),
        ("message", MessageContent::Said { kind: "text", text }) => {
            spoken(message("text", text), said.is_in_a_group(), &access.me)
        }
        ("message", MessageContent::Said { kind, text }) => ReadUpdate::Message(message(kind, text)),
        ("message" | "edited_message", MessageContent::Unknown) if !is_for_us => ReadUpdate::Ignored("said to others"),
        ("message", MessageContent::Unknown) => ReadUpdate::Unsupported(message("unsupported", unknown(&said))),
        ("edited_message", MessageContent::Unknown) => ReadUpdate::Edited(message("unsupported", unknown(&said))),
        (other, _) if is_known(other) => ReadUpdate::Ignored("nothing that was asked for"),
        _ if !is_for_us => ReadUpdate::Ignored("said to others"),
        (other, _) => {
            ReadUpdate::Unsupported(message("unsupported", format!("[unsupported update: {}]", name_of(other))))
        }
    }
}

/// The fields of an update. One that can't be read (a number beyond every bound, half a character, a depth that nobody
/// means) costs itself and not its message: nothing of it stands in its place, and what came is kept beside.
fn fields_of(raw: &RawValue) -> Option<Map<String, Value>> {
    if let Ok(Value::Object(fields)) = serde_json::from_str(raw.get()) {
        return Some(fields);
    }
    let readable = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    let of_object = |raw: &RawValue| {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        let fields = fields.into_iter().map(|(name, raw)| (name, readable(&raw).unwrap_or(Value::Object(Map::new()))));
        Some(Value::Object(fields.collect()))
    };
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
    let each = fields.into_iter().filter_map(|(name, raw)| Some((name, readable(&raw).or_else(|| of_object(&raw))?)));
    Some(each.collect())
}

/// What stands for content that isn't known.
fn unknown(said: &ReadMessage) -> String {
    let name = name_of(content::unknown_field(said).unwrap_or("empty"));
    content::described(&format!("unsupported message: {name}"), said.around.caption.as_deref())
}

/// A field's name as it is shown: Telegram's are short, and nobody else's are wanted.
fn name_of(field: &str) -> String {
    one_line(field, FIELD_CHARS_MAX)
}

/// A text: a command, if it is the sender's own and one of ours.
fn spoken(message: NewMessage, is_in_a_group: bool, me: &Me) -> ReadUpdate {
    if message.forwarded_from.is_some() {
        return ReadUpdate::Message(message);
    }
    match command::parse(&message.text, &me.username) {
        // In a group it may be meant for anybody.
        ParsedCommand::Ours(Command::Mistyped(_), _) if is_in_a_group => ReadUpdate::Message(message),
        ParsedCommand::Ours(command, args) => ReadUpdate::Command { command, args: args.to_owned(), message },
        ParsedCommand::ForAnother if is_in_a_group => ReadUpdate::Ignored("a command for another bot"),
        ParsedCommand::NotACommand if command::is_addressed_to(&message.text, &me.username) => {
            ReadUpdate::Message(NewMessage { is_for_us: true, ..message })
        }
        ParsedCommand::ForAnother | ParsedCommand::NotACommand => ReadUpdate::Message(message),
    }
}

/// A press of a button. It isn't known if it is another's, or too old for its message to be named.
fn tapped(query: &CallbackQuery, access: &Speakers) -> Result<ReadUpdate, Unheard> {
    let message = query.message.as_ref();
    let (chat, sender_id) = access.admit(message.map(|message| message.chat()), id_of(&query.from), false)?;
    let choice = query.data.as_deref().and_then(ButtonChoice::read);
    let Some((choice, message)) = choice.zip(message) else {
        return Err(Unheard::Ignored("a button that isn't known"));
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

/// Whether it is a kind of update that exists, as far as the library knows.
fn is_known(kind: &str) -> bool {
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
        album: said.album(),
        attachment: attachment::of_message(said),
        is_for_us,
        date: said.date,
    }
}
