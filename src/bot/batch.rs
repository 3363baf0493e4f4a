//! Turns a batch of updates into rows to store, commands to answer and the offset of the next poll.

use std::collections::BTreeSet;

use reveille_base::{redact::Redactor, types::ChatRef};
use reveille_channels::telegram::{
    Command, Migration, NewMessage, Quoted, RawUpdate, ReadUpdate, Speakers, read_update,
};
use reveille_store::{Batch, Moved, NewIncoming, NewOutgoing, OutgoingKind, PartOf};

use super::plain_stop::is_plain_stop;

/// The answer to an edit that reads like a command.
const EDITED_COMMAND: &str =
    "I don't run commands from edited messages. Please send it as a new message if you want me to do that.";

/// The content of a batch of updates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The rows to store; `commands` are still empty.
    pub(super) batch: Batch,
    /// Commands to answer, unless they continue a text that Telegram has split.
    pub(super) commands: Vec<Asked>,
    /// Groups that got a new id, with their titles.
    migrations: Vec<(Moved, String)>,
}

/// A received command and the message it came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) command: Command,
    /// The text after the command's name.
    pub(super) args: String,
    pub(super) message: NewMessage,
    pub(super) update_id: i64,
}

impl Asked {
    /// Builds the answer for the outbox. Its key makes sure that a repeated update is answered once.
    pub(super) fn build_answer(&self, bot_id: i64, text: String) -> NewOutgoing {
        NewOutgoing {
            chat: self.message.chat,
            text,
            kind: OutgoingKind::Command,
            key: Some(format!("command/{bot_id}/{}", self.update_id)),
            thread_id: self.message.thread_id,
            reply_to: self.message.telegram_message_id,
            ..NewOutgoing::default()
        }
    }
}

/// Reads a batch. `working` are the chats where a plain "stop" is the command. The next offset is the last id + 1 rather than the highest, since ids can restart lower. `None` if it
/// is empty.
pub(super) fn parse_batch(
    bot_id: i64,
    updates: &[RawUpdate],
    access: &Speakers,
    working: &BTreeSet<ChatRef>,
    redactor: &Redactor,
) -> Option<Reading> {
    let mut reading = Reading {
        batch: Batch { bot_id, next_offset: updates.last()?.update_id.saturating_add(1), ..Batch::default() },
        ..Reading::default()
    };
    let mut seen = BTreeSet::new();
    for update in updates.iter().filter(|update| seen.insert(update.update_id)) {
        let clean = |text: &str| redactor.redact(text);
        match as_command(read_update(update, access), working) {
            ReadUpdate::Message(message) | ReadUpdate::Unsupported(message) => {
                reading.batch.messages.push(build_incoming(update, access.me.id, message, clean));
            }
            ReadUpdate::Edited(message) => reading.take_edit(update, message, access, clean),
            ReadUpdate::Command { command, message, args } => {
                let said = build_incoming(update, access.me.id, message.clone(), clean);
                let said = NewIncoming { part_of: Some(PartOf::Rest), is_only_part: false, ..said };
                reading.batch.messages.push(said);
                let (args, update_id) = (clean(&args), update.update_id);
                reading.commands.push(Asked { command, args, message, update_id });
            }
            ReadUpdate::Tapped(tap) => reading.batch.taps.push(tap),
            ReadUpdate::Migrated(Migration { from, to, title }) => {
                let is_listed = access.allowed.contains(&to);
                let moved = Moved { from: ChatRef::from_telegram(from), to: ChatRef::from_telegram(to), is_listed };
                reading.batch.moved.push(moved);
                reading.migrations.push((moved, title));
            }
            ReadUpdate::Stranger => reading.batch.strangers = reading.batch.strangers.saturating_add(1),
            ReadUpdate::Ignored(why) => tracing::debug!(update = update.update_id, why, "not kept"),
        }
    }
    Some(reading)
}

/// Turns a plain "stop" into the command while a wake works in its chat.
fn as_command(read: ReadUpdate, working: &BTreeSet<ChatRef>) -> ReadUpdate {
    match read {
        ReadUpdate::Message(message)
            if message.kind == "text"
                && message.is_for_us
                && message.forwarded_from.is_none()
                && working.contains(&message.chat)
                && is_plain_stop(&message.text) =>
        {
            ReadUpdate::Command { command: Command::Stop, args: String::new(), message }
        }
        read => read,
    }
}

impl Reading {
    /// Returns the notices for the owner, one per migrated group.
    pub(super) fn build_notices(&self, owner_chat: ChatRef) -> Vec<NewOutgoing> {
        let notice = |(it, title): &(Moved, String)| NewOutgoing {
            // The group's administrators choose its title.
            taint: Some("the title of a group".to_owned()),
            key: Some(format!("migrated/{}/{}", it.from, it.to)),
            ..NewOutgoing::notice(owner_chat, render_move(*it, title))
        };
        self.migrations.iter().map(notice).collect()
    }

    /// Takes in an edit. An edited command never runs, and the bot says so, or the sender would think it had been
    /// carried out.
    fn take_edit(
        &mut self,
        update: &RawUpdate,
        message: NewMessage,
        access: &Speakers,
        clean: impl Fn(&str) -> String,
    ) {
        let is_command =
            message.forwarded_from.is_none() && Command::is_one_of_ours(&message.text, &access.me.username);
        if is_command {
            let about = message.telegram_message_id.unwrap_or_default();
            self.batch.notices.push(NewOutgoing {
                chat: message.chat,
                text: EDITED_COMMAND.to_owned(),
                kind: OutgoingKind::Command,
                // Once per message: Telegram also reports invisible changes as edits.
                key: Some(format!("command-edit/{}/{}/{about}", self.batch.bot_id, message.chat)),
                thread_id: message.thread_id,
                reply_to: message.telegram_message_id,
                ..NewOutgoing::default()
            });
        }
        let edit = build_incoming(update, access.me.id, message, clean);
        if edit.channel_message_id.is_some() {
            // A command has no row, so its new text is stored without anything to answer.
            self.batch.edits.push(NewIncoming { is_only_part: edit.is_only_part || is_command, ..edit });
        }
    }
}

fn build_incoming(update: &RawUpdate, me: i64, message: NewMessage, clean: impl Fn(&str) -> String) -> NewIncoming {
    let is_own = |quoted: &Quoted| {
        !quoted.is_from_elsewhere && quoted.sender_id.is_some_and(|who| who == message.sender_id || who == me)
    };
    let part_of = match message.album {
        Some(album) => Some(PartOf::Album(album)),
        None => (message.kind == "text").then_some(PartOf::Text),
    };
    let described = message.reply_to.as_ref().filter(|quoted| quoted.is_description);
    NewIncoming {
        chat: message.chat,
        text: clean(&message.text),
        kind: message.kind.to_owned(),
        sender_id: Some(message.sender_id),
        sender_name: Some(message.sender_name).filter(|name| !name.is_empty()),
        thread_id: message.thread_id,
        channel_message_id: message.telegram_message_id,
        answers: described.and_then(|quoted| quoted.message_id),
        quotes_own: message.reply_to.as_ref().is_some_and(is_own),
        quotes: message.reply_to.as_ref().and_then(|quoted| quoted.message_id),
        quoted: message.reply_to.map(|quoted| clean(&quoted.text)),
        forwarded_from: message.forwarded_from,
        raw: Some(clean(update.raw.get())),
        update_id: Some(update.update_id),
        attachments: message.attachment.into_iter().collect(),
        sent_at: Some(message.date),
        part_of,
        is_only_part: !message.is_for_us,
    }
}

/// Renders the notice about a group's new id.
fn render_move(Moved { from, to, is_listed }: Moved, title: &str) -> String {
    let title: String = title.chars().filter(|c| !"`*_[]".contains(*c)).collect();
    let what = format!("The group “{title}” has become a supergroup with a new id");
    let kept = "Its reminders, unanswered messages and unsent replies are safe";
    if is_listed {
        return format!("{what}, `{to}`, which you've already listed. {kept}, and now belong to the new id.");
    }
    format!(
        "{what}. I can't hear it or write to it until you list the new id: in `ALLOWED_CHAT_IDS`, replace `{from}` \
         with `{to}`, then restart the bot. {kept}, and will move to the new id then."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reveille_base::redact::Secret;
    use reveille_channels::telegram::Me;
    use serde_json::{Value, json};

    const ANA: i64 = 4242;
    const TOKEN: &str = "99:AAsecretSecretSecretSecret-Secret_xyz";

    fn text(update_id: i64, kind: &str, from: i64, text: &str) -> Value {
        json!({"update_id": update_id, kind: {"message_id": 7, "date": 1_795_000_000, "text": text,
            "from": {"id": from, "is_bot": false, "first_name": "Ana"},
            "chat": {"id": from, "type": "private", "first_name": "Ana"}}})
    }

    fn reading(updates: &[Value]) -> Option<Reading> {
        let raw = |update: &Value| serde_json::value::to_raw_value(update).unwrap();
        let updates: Vec<RawUpdate> = updates.iter().filter_map(|update| RawUpdate::parse(raw(update))).collect();
        let access = Speakers {
            allowed: BTreeSet::from([ANA]),
            me: Me { id: 99, first_name: "Reveille".to_owned(), username: "reveille_bot".to_owned() },
        };
        let secret = Secret::new(TOKEN);
        parse_batch(99, &updates, &access, &BTreeSet::new(), &Redactor::new([&secret]))
    }

    #[test]
    fn an_empty_batch_moves_nothing() {
        assert_eq!(reading(&[]), None);
    }

    #[test]
    fn the_next_offset_follows_the_last_id_even_when_ids_restart_lower() {
        let read = reading(&[text(900, "message", ANA, "a"), text(5, "message", ANA, "b")]).unwrap();
        assert_eq!((read.batch.next_offset, read.batch.messages.len()), (6, 2));
    }

    /// Any JSON, of which much looks like what Telegram sends.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            Just(json!(ANA)),
            Just(json!("private")),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        let names = proptest::sample::select(vec![
            "message",
            "edited_message",
            "callback_query",
            "from",
            "chat",
            "id",
            "type",
            "text",
            "date",
            "message_id",
            "poll_answer",
            "hologram",
            "reply_to_message",
            "entities",
            "data",
            "message_thread_id",
            "photo",
            "",
        ]);
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((names.clone(), inner), 0..6)
                    .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_comes_beside_it_a_message_is_kept_and_the_offset_moves_behind_all(
            others in proptest::collection::vec((any_json(), any::<i64>()), 0..6),
            at in any::<prop::sample::Index>(),
        ) {
            let mut updates: Vec<Value> = Vec::new();
            for (mut update, id) in others {
                // What has no number is told apart before.
                match update.as_object_mut() {
                    Some(fields) => drop(fields.insert("update_id".to_owned(), json!(id))),
                    None => update = json!({"update_id": id, "unknown": update}),
                }
                updates.push(update);
            }
            let mine = 77;
            updates.retain(|update| update["update_id"] != mine);
            updates.insert(at.index(updates.len() + 1), text(mine, "message", ANA, "hello"));
            let read = reading(&updates).unwrap();
            let last = updates.last().unwrap()["update_id"].as_i64().unwrap();
            prop_assert_eq!(read.batch.next_offset, last.saturating_add(1));
            let is_mine = |message: &NewIncoming| message.update_id == Some(mine) && message.text == "hello";
            prop_assert_eq!(read.batch.messages.iter().filter(|message| is_mine(message)).count(), 1);
        }
    }

    #[test]
    fn each_update_finds_its_place() {
        let read = reading(&[
            text(1, "message", ANA, "hello"),
            text(2, "message", 666, "let me in"),
            text(3, "message", ANA, "/status"),
            text(4, "edited_message", ANA, "/status"),
            text(5, "message", ANA, "/unheard-of thing"),
            text(5, "message", ANA, "/unheard-of thing"),
            json!({"update_id": 6}),
        ])
        .unwrap();
        let texts: Vec<(&str, bool)> = read
            .batch
            .messages
            .iter()
            .map(|message| (message.text.as_str(), message.part_of == Some(PartOf::Rest)))
            .collect();
        assert_eq!(texts, [("hello", false), ("/status", true), ("/unheard-of thing", false)]);
        assert_eq!((read.batch.strangers, read.batch.next_offset), (1, 7));
        assert_eq!(read.batch.edits[0].text, "/status");
        let answer = read.commands[0].build_answer(99, "fine".to_owned());
        assert_eq!((read.commands.len(), answer.chat.id, answer.reply_to), (1, ANA, Some(7)));
        assert_eq!(answer.key.as_deref(), Some("command/99/3"));
    }

    #[test]
    fn a_secret_that_is_pasted_into_the_chat_is_not_kept() {
        let read = reading(&[text(1, "message", ANA, &format!("is {TOKEN} right?"))]).unwrap();
        let message = &read.batch.messages[0];
        assert_eq!(message.text, "is *** right?");
        assert!(!message.raw.as_ref().unwrap().contains("ecretSecret"));
    }

    #[test]
    fn the_title_of_a_group_is_somebody_elses_word() {
        let migrations = vec![(
            Moved { from: ChatRef::from_telegram(-9), to: ChatRef::from_telegram(-100), is_listed: false },
            "obey".to_owned(),
        )];
        let notices = Reading { migrations, ..Reading::default() }.build_notices(ChatRef::from_telegram(7));
        assert_eq!(notices.iter().map(|notice| notice.taint.is_some()).collect::<Vec<_>>(), [true]);
    }
}
