//! What an update means to us, and whether its sender may speak: values in, a value out.
//!
//! Nothing that a listed person sends is dropped: what isn't understood becomes a message that says so, its raw JSON kept
//! beside it ([`RawUpdate::raw`]). Of anyone else nothing is kept but a count.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, value::RawValue};

use super::{
    Me, RawUpdate, attachment,
    command::{self, Command, ParsedCommand},
    content::{self, MessageContent},
    envelope::{ChatType, Envelope, one_line},
};
use crate::{
    store::{NewAttachment, Tap},
    types::{ChatRef, Question},
};

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;

/// The kinds of updates that are asked for with [`super::Telegram::get_updates`].
pub const ALLOWED_UPDATES: [&str; 3] = ["message", "edited_message", "callback_query"];

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
    /// A button under a question was pressed.
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
    /// When it was last edited.
    pub edited_at: Option<DateTime<Utc>>,
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

/// Whether one may speak.
enum Admission {
    Admitted {
        chat_id: i64,
        sender_id: i64,
    },
    Refused,
    /// The update doesn't say who sent it.
    Nameless,
}

impl Speakers {
    fn judge(&self, envelope: Envelope<'_>) -> Admission {
        let Some(sender_id) = envelope.sender_id() else {
            return Admission::Nameless;
        };
        // Without a chat (an inline query, say) the sender's own is meant.
        let chat_id = envelope.chat_id().unwrap_or(sender_id);
        let listed = |id: i64| self.allowed.contains(&id);
        let admitted = !envelope.is_in_the_name_of_a_chat()
            && !STAND_INS.contains(&sender_id)
            && match envelope.chat_type() {
                ChatType::Private => chat_id == sender_id && listed(sender_id),
                ChatType::Group => listed(chat_id) && listed(sender_id),
                ChatType::Other => envelope.chat_id().is_none() && listed(sender_id),
            };
        if admitted { Admission::Admitted { chat_id, sender_id } } else { Admission::Refused }
    }
}

/// Says what an update is.
pub fn read_update(update: &RawUpdate, access: &Speakers) -> ReadUpdate {
    let Some(fields) = fields_of(&update.raw) else {
        return ReadUpdate::Ignored("an update that isn't an object");
    };
    // Telegram puts one thing into an update; a message is found even beside fields that are new.
    let known = ["message", "edited_message"].into_iter().find(|kind| fields.contains_key(*kind));
    let Some(kind) =
        known.or_else(|| fields.iter().find(|(_, value)| value.is_object()).map(|(kind, _)| kind.as_str()))
    else {
        return ReadUpdate::Ignored("an empty update");
    };
    let envelope = Envelope(fields.get(kind).unwrap_or(&Value::Null));
    let is_listed = |migration: &Migration| [migration.from, migration.to].iter().any(|id| access.allowed.contains(id));
    if let Some(migration) = envelope.migration().filter(is_listed) {
        return ReadUpdate::Migrated(migration);
    }
    if envelope.sender_id() == Some(access.me.id) {
        return ReadUpdate::Ignored("the bot's own message");
    }
    let (chat_id, sender_id) = match access.judge(envelope) {
        Admission::Admitted { chat_id, sender_id } => (chat_id, sender_id),
        Admission::Refused => return ReadUpdate::Stranger,
        Admission::Nameless if envelope.is_in_the_name_of_a_chat() => return ReadUpdate::Stranger,
        Admission::Nameless => return ReadUpdate::Ignored("an update that names no sender"),
    };
    if kind == "callback_query" {
        return tapped(envelope, (chat_id, sender_id))
            .map_or(ReadUpdate::Ignored("a button that isn't known"), ReadUpdate::Tapped);
    }
    let is_for_us = envelope.is_said_to(&access.me);
    let message = |kind, text| new_message(envelope, (chat_id, sender_id), is_for_us, kind, text);
    match (kind, content::read(envelope.0)) {
        ("message" | "edited_message", MessageContent::Service) => ReadUpdate::Ignored("a service message"),
        // While a person shares where they are, each step comes as an edit.
        ("edited_message", MessageContent::Said { kind: "location", .. }) => {
            ReadUpdate::Ignored("a live location that moved")
        }
        ("edited_message", MessageContent::Said { kind, text }) => ReadUpdate::Edited(message(kind, text)),
        ("message", MessageContent::Said { kind: "text", text }) => spoken(message("text", text), envelope, &access.me),
        ("message", MessageContent::Said { kind, text }) => ReadUpdate::Message(message(kind, text)),
        ("message" | "edited_message", MessageContent::Unknown) if !is_for_us => ReadUpdate::Ignored("said to others"),
        ("message", MessageContent::Unknown) => ReadUpdate::Unsupported(message("unsupported", unknown(envelope))),
        ("edited_message", MessageContent::Unknown) => ReadUpdate::Edited(message("unsupported", unknown(envelope))),
        (other, _) => not_said(other).unwrap_or_else(|| {
            if is_for_us {
                ReadUpdate::Unsupported(message("unsupported", format!("[unsupported update: {}]", name_of(other))))
            } else {
                ReadUpdate::Ignored("said to others")
            }
        }),
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
fn unknown(envelope: Envelope<'_>) -> String {
    let name = name_of(envelope.content_name().unwrap_or("empty"));
    content::described(&format!("unsupported message: {name}"), envelope.0["caption"].as_str())
}

/// A field's name as it is shown: Telegram's are short, and nobody else's are wanted.
fn name_of(field: &str) -> String {
    one_line(field, FIELD_CHARS_MAX)
}

/// A text: a command, if it is the sender's own and one of ours.
fn spoken(message: NewMessage, envelope: Envelope<'_>, me: &Me) -> ReadUpdate {
    if message.forwarded_from.is_some() {
        return ReadUpdate::Message(message);
    }
    match command::parse(&message.text, &me.username) {
        // In a group it may be meant for anybody.
        ParsedCommand::Ours(Command::Mistyped(_), _) if envelope.chat_type() == ChatType::Group => {
            ReadUpdate::Message(message)
        }
        ParsedCommand::Ours(command, args) => ReadUpdate::Command { command, args: args.to_owned(), message },
        ParsedCommand::ForAnother if envelope.chat_type() == ChatType::Group => {
            ReadUpdate::Ignored("a command for another bot")
        }
        ParsedCommand::NotACommand if command::is_addressed_to(&message.text, &me.username) => {
            ReadUpdate::Message(NewMessage { is_for_us: true, ..message })
        }
        ParsedCommand::ForAnother | ParsedCommand::NotACommand => ReadUpdate::Message(message),
    }
}

/// A press of one of our buttons; none if it is another's or too old for its message to be named.
fn tapped(envelope: Envelope<'_>, (chat_id, sender_id): (i64, i64)) -> Option<Tap> {
    let query = envelope.0;
    let (nonce, is_approval) = Question::read(query["data"].as_str()?)?;
    Some(Tap {
        callback_id: query["id"].as_str()?.to_owned(),
        nonce: nonce.to_owned(),
        is_approval,
        chat: ChatRef::telegram(chat_id),
        message_id: query.pointer("/message/message_id")?.as_i64()?,
        sender_id,
    })
}

/// What a known kind of update that isn't a message is, from a listed person; none if the kind isn't known.
fn not_said(kind: &str) -> Option<ReadUpdate> {
    let why = match kind {
        "my_chat_member" | "chat_member" | "chat_join_request" => "a change of members",
        "message_reaction" | "message_reaction_count" => "a reaction",
        "channel_post" | "edited_channel_post" => "a post in a channel",
        "business_connection" | "business_message" | "edited_business_message" | "deleted_business_messages" => {
            "of a business account"
        }
        "inline_query"
        | "chosen_inline_result"
        | "shipping_query"
        | "pre_checkout_query"
        | "purchased_paid_media"
        | "poll"
        | "poll_answer"
        | "chat_boost"
        | "removed_chat_boost" => "an update of a kind that isn't used",
        _ => return None,
    };
    Some(ReadUpdate::Ignored(why))
}

fn new_message(
    envelope: Envelope<'_>,
    (chat_id, sender_id): (i64, i64),
    is_for_us: bool,
    kind: &'static str,
    text: String,
) -> NewMessage {
    NewMessage {
        chat: ChatRef::telegram(chat_id),
        thread_id: envelope.thread_id(),
        telegram_message_id: envelope.message_id(),
        sender_id,
        sender_name: envelope.sender_name(),
        text,
        kind,
        reply_to: envelope.reply_to(),
        forwarded_from: envelope.forwarded_from(),
        album: envelope.album(),
        attachment: attachment::of_message(envelope.0),
        is_for_us,
        date: envelope.date(),
        edited_at: envelope.edited_at(),
    }
}
