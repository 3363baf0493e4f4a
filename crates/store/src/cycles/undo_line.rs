//! The undo line: all steps that changed the memory or the database by a person's order. These are the wakes and people's own steps
//! (tasks and documents by their own commands and buttons, reminders, settings of a chat). Undo takes the newest step first.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use crate::{
    CycleRow, PersonsStep, Result,
    areas::{ReadStore, Undos},
    chats::{chosen, local},
    messages::{fresh, queue},
    sql::{self, OptionalExtension as _, Row, Transaction},
    steps::{PREFIX, SettingBefore},
    to_json,
};

/// SQL condition for a cycle that is a step: it changed something, and either a model worked for its commit or a person's button ordered
/// it. A failed cycle is a step if it changed files of the person's.
const IS_STEP: &str = "state = 'done' AND commit_id IS NOT NULL AND (model <> 'none' OR reasons LIKE '%\"a button %')
        AND (has_changed IS DISTINCT FROM 0 OR has_copies = 1)
    OR state IN ('failed', 'abandoned') AND has_copies = 1";

/// An undoable step.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoStep {
    /// A wake.
    Wake(Box<CycleRow>),
    /// A person's own step.
    Person(PersonsStep),
}

impl<S: ReadStore> Undos<S> {
    /// The newest step without an undo order: of these chats, or of all if `chats` is empty. Wakes without a chat belong to the terminal,
    /// 0. Leaves out the steps in `not`.
    pub fn last_step(&self, chats: &[ChatRef], not: &[String]) -> Result<Option<UndoStep>> {
        let sql = format!(
            "SELECT id, cycle_id FROM undo_line l
             WHERE NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = COALESCE(l.cycle_id, '{PREFIX}' || l.id))
                 AND (?1 = '[]' OR chat_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))
                 AND COALESCE(l.cycle_id, '{PREFIX}' || l.id) NOT IN (SELECT CAST(value AS TEXT) FROM json_each(?2))
             ORDER BY id DESC LIMIT 1"
        );
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?));
        let found = self.0.conn().prepare(&sql)?.query_row((to_json(chats), to_json(not)), read).optional()?;
        Ok(match found {
            None => None,
            Some((_, Some(cycle))) => {
                self.0.store().cycles().find_cycle(&cycle)?.map(|row| UndoStep::Wake(Box::new(row)))
            }
            Some((id, None)) => self.persons_step(id)?.map(|(step, _)| UndoStep::Person(step)),
        })
    }

    /// A person's own step, and the chat of its order.
    pub fn persons_step(&self, id: i64) -> Result<Option<(PersonsStep, ChatRef)>> {
        let sql = format!("SELECT {}, chat_id FROM undo_line WHERE id = ?1 AND cycle_id IS NULL", PersonsStep::COLUMNS);
        let read = |row: &Row<'_>| Ok((PersonsStep::from_row(row)?, row.get(4)?));
        Ok(self.0.conn().prepare(&sql)?.query_row([id], read).optional()?)
    }

    /// The names and commits of people's own steps without an undo order, newest first: of these chats, or of all if `chats` is empty.
    pub fn persons_commits(&self, chats: &[ChatRef], limit: u32) -> Result<Vec<(String, String)>> {
        let sql = format!(
            "SELECT '{PREFIX}' || id, commit_id FROM undo_line l WHERE commit_id IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = '{PREFIX}' || l.id)
                 AND (?1 = '[]' OR chat_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))
             ORDER BY id DESC LIMIT ?2"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map((to_json(chats), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

/// Adds an ended cycle to the line, if it is a step.
pub(crate) fn note_wake(tx: &Transaction<'_>, cycle_id: &str, now: DateTime<Utc>) -> Result<()> {
    let sql = format!(
        "INSERT INTO undo_line (chat_id, at, cycle_id) SELECT COALESCE(chat_id, 0), ?2, id FROM cycles
         WHERE id = ?1 AND ({IS_STEP}) ON CONFLICT DO NOTHING"
    );
    tx.execute(&sql, (cycle_id, format_rfc3339(now)))?;
    Ok(())
}

/// Restores what a person's own step changed; returns a sentence for people.
pub(super) fn restore_setting(tx: &Transaction<'_>, wake: &str, now: DateTime<Utc>) -> Result<Option<String>> {
    let Some(id) = PersonsStep::parse_undo_target(wake) else { return Ok(None) };
    let before: Option<Option<String>> =
        tx.prepare("SELECT before FROM undo_line WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?;
    let Some(before) = before.flatten().and_then(|text| serde_json::from_str(&text).ok()) else { return Ok(None) };
    Ok(Some(match before {
        SettingBefore::Local { chat, was_kept } => {
            local::set_local_chat(tx, chat, was_kept, now)?;
            match was_kept {
                true => "That chat is kept on this machine again.".to_owned(),
                false => "That chat is no longer kept on this machine.".to_owned(),
            }
        }
        SettingBefore::Chosen { name, was } => {
            chosen::restore_choice(tx, &name, was.as_ref(), now)?;
            match was {
                Some((value, _)) => format!("{name} is {value} again."),
                None => format!("{name} follows the settings again."),
            }
        }
        SettingBefore::Fresh { chat, thread_id, was } => {
            fresh::restore_start(tx, (chat, thread_id), was.as_ref())?;
            "The earlier conversation of that chat is included again.".to_owned()
        }
        SettingBefore::Queued { message, was } => match queue::undo_removal(tx, message, was.as_deref())? {
            true if was.is_some() => {
                format!("Message {message} is on the list again, and I won't answer it until you retry it.")
            }
            true => format!("Message {message} is in the queue again."),
            false => format!("Message {message} is no longer kept."),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChosenSetting, Order, Undo,
        tests::{World, at},
    };

    /// Takes the newest step back; says what it was and what of settings came back.
    fn undo(world: &mut World) -> Option<(String, Vec<String>)> {
        let step = world.store.undos().last_step(&[], &[]).unwrap()?;
        let UndoStep::Person(step) = step else { panic!("{step:?}") };
        let wake = PersonsStep::undone_as(step.id);
        world.store.inbox_mut().carry_out_order(&Order::Undo { wake: wake.clone() }, at(9)).unwrap();
        let undo: Undo = world.store.undos().open_undos().unwrap().pop().unwrap();
        let taken = world.held_by(world.fence, at(9)).undos_mut().take_back(&undo, "c9", |_| String::new()).unwrap();
        Some((step.did, taken.settings))
    }

    #[test]
    fn settings_come_back_in_turn_as_they_were() {
        let mut world = World::new();
        let choose = |value: &str| {
            Order::Choose(ChosenSetting { name: "MODEL", value: value.to_owned(), instead_of: "a".to_owned() })
        };
        for order in [choose("b"), choose("c"), Order::KeepLocal { is_kept: true }] {
            world.store.inbox_mut().carry_out_order(&order, at(1)).unwrap();
        }
        let told =
            std::iter::from_fn(|| undo(&mut world)).map(|(did, settings)| format!("{did}: {}", settings.concat()));
        insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r"
        kept this chat on this machine: That chat is no longer kept on this machine.
        chose MODEL = c: MODEL is b again.
        chose MODEL = b: MODEL follows the settings again.
        ");
        assert_eq!(world.store.chats().find_chosen_value("MODEL", "a").unwrap(), None);
        let terminal = ChatRef::TERMINAL;
        world.store.inbox_mut().carry_out_order(&Order::BeginAfresh, at(2)).unwrap();
        let first = world.store.inbox().fresh_start(terminal, None).unwrap();
        world.by_hand("INSERT INTO incoming_messages (chat_id, message_text, received_at) VALUES (0, 'later', '2026-11-21T12:00:00.000Z')");
        let message = world.value("SELECT max(id) FROM incoming_messages");
        world.store.inbox_mut().carry_out_order(&Order::BeginAfresh, at(3)).unwrap();
        assert!(
            world.store.inbox_mut().discard_message(message, at(4)).unwrap()
                && world.store.inbox().list_queued_messages().unwrap().is_empty()
        );
        assert_eq!(undo(&mut world).unwrap().0, format!("took message {message} out of the queue"));
        assert_eq!(world.store.inbox().list_queued_messages().unwrap().len(), 1);
        // What was given up is that again, and not tried by itself.
        world.by_hand("UPDATE incoming_messages SET processed = 1, outcome = 'dead'");
        assert!(
            world.store.inbox_mut().discard_message(message, at(5)).unwrap()
                && world.store.inbox().dead_letters().unwrap().is_empty()
        );
        undo(&mut world);
        assert!(
            world.store.inbox().list_queued_messages().unwrap().is_empty()
                && world.store.inbox().dead_letters().unwrap().len() == 1
        );
        assert_eq!(undo(&mut world).unwrap().0, "started this chat afresh");
        assert_eq!(world.store.inbox().fresh_start(terminal, None).unwrap(), first);
        undo(&mut world);
        assert_eq!(world.store.inbox().fresh_start(terminal, None).unwrap(), None);
        assert!(world.store.chats().local_chats().unwrap().is_empty());
    }
}
