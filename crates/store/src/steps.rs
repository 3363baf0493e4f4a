//! The steps on the undo line that people took themselves, without a wake: their commands and edits.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use super::{
    ChosenSetting, FencedStore, Result,
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};
use crate::areas::{Undos, WriteStore};

/// The prefix under which `undos` names a person's own step, followed by its row id. Reminders store this name where they would store a
/// cycle's.
pub(super) const PREFIX: &str = "step/";

/// A person's own step, taken without a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsStep {
    /// The row id on the undo line.
    pub id: i64,
    /// The time; `None` if unreadable.
    pub at: Option<DateTime<Utc>>,
    /// The step in words, in the past tense.
    pub did: String,
    /// The step's commit; `None` if the memory is unchanged.
    pub commit: Option<String>,
}

/// A new step of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStep {
    /// The chat of the order.
    pub chat: ChatRef,
    /// The step in words, in the past tense.
    pub did: String,
    /// The step's commit.
    pub commit: Option<String>,
}

/// A fresh start that a later one replaces. Stored as a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "(i64, i64, String)", into = "(i64, i64, String)")]
pub(crate) struct EarlierStart {
    /// The last earlier message.
    pub(crate) incoming_id: i64,
    /// The assistant's last earlier message.
    pub(crate) outgoing_id: i64,
    /// The time.
    pub(crate) at: String,
}

impl From<(i64, i64, String)> for EarlierStart {
    fn from((incoming_id, outgoing_id, at): (i64, i64, String)) -> Self {
        Self { incoming_id, outgoing_id, at }
    }
}

impl From<EarlierStart> for (i64, i64, String) {
    fn from(start: EarlierStart) -> Self {
        (start.incoming_id, start.outgoing_id, start.at)
    }
}

/// A setting's value before a step changed it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingBefore {
    /// Whether a chat was kept on this machine (`/local`).
    Local {
        /// The chat.
        chat: ChatRef,
        /// The earlier state.
        was_kept: bool,
    },
    /// A setting chosen by a command.
    Chosen {
        /// The setting's name.
        name: String,
        /// The earlier choice, and the configured value at that time; `None` if there was no choice.
        was: Option<(String, String)>,
    },
    /// The fresh start of a chat, or of a topic in it.
    Fresh {
        /// The chat.
        chat: ChatRef,
        /// The topic; 0 for none.
        thread_id: i64,
        /// The start; `None` if there was none.
        was: Option<EarlierStart>,
    },
    /// A message taken out of the queue.
    Queued {
        /// The message's row.
        message: i64,
        /// The earlier outcome; `None` for a queued message.
        was: Option<String>,
    },
}

impl PersonsStep {
    pub(super) const COLUMNS: &str = "id, at, did, commit_id";

    /// The target of an undo of this step.
    pub fn undone_as(id: i64) -> String {
        format!("{PREFIX}{id}")
    }

    /// The step an undo targets; `None` for another target.
    pub fn parse_undo_target(undone: &str) -> Option<i64> {
        undone.strip_prefix(PREFIX)?.parse().ok()
    }

    pub(super) fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            at: parse_time(&row.get::<_, String>(1)?),
            did: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            commit: row.get(3)?,
        })
    }
}

impl Undos<&mut FencedStore<'_>> {
    /// Records a step that a person took by a command.
    pub fn note_step(&mut self, step: &NewStep) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| record_step(tx, step, None, now).map(drop))
    }
}

/// The columns with commit ids, each with a condition that selects the rows where the value is one.
const COMMITS: [(&str, &str, &str); 4] = [
    ("cycles", "commit_id", "commit_id IS NOT NULL"),
    ("undo_line", "commit_id", "commit_id IS NOT NULL"),
    ("proposals", "commit_id", "TRUE"),
    ("handled", "value", "key = 'head'"),
];

impl Undos<&mut FencedStore<'_>> {
    /// Replaces commit ids after a rewrite of the git history.
    pub fn rewrite_commits(&mut self, commits: &BTreeMap<String, String>) -> Result<()> {
        self.0.write(|tx| {
            for (table, column, condition) in COMMITS {
                let mut statement = tx.prepare(&format!("SELECT DISTINCT {column} FROM {table} WHERE {condition}"))?;
                let known = statement.query_map([], |row| row.get::<_, String>(0))?;
                let known = known.collect::<sql::QueryResult<Vec<_>>>()?;
                let update = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1 AND {condition}");
                for (old, new) in known.iter().filter_map(|old| Some((old, commits.get(old)?))) {
                    tx.execute(&update, (old, new))?;
                }
            }
            Ok(())
        })
    }
}

/// Records a person's own step, and returns the target for its undo. `before` is the setting that it changes.
pub(crate) fn record_step(
    tx: &Transaction<'_>,
    step: &NewStep,
    before: Option<&SettingBefore>,
    now: DateTime<Utc>,
) -> Result<String> {
    let id: i64 = tx
        .prepare(
            "INSERT INTO undo_line (chat_id, at, did, commit_id, before) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        )?
        .query_row((step.chat, format_rfc3339(now), &step.did, &step.commit, before.map(to_json)), |row| row.get(0))?;
    Ok(PersonsStep::undone_as(id))
}

/// The current setting of a chat, before `/local` changes it.
pub(crate) fn read_local_setting(tx: &Transaction<'_>, chat: ChatRef) -> Result<SettingBefore> {
    let sql = "SELECT EXISTS (SELECT 1 FROM local_chats WHERE chat_id = ?1)";
    Ok(SettingBefore::Local { chat, was_kept: tx.prepare(sql)?.query_row([chat], |row| row.get(0))? })
}

/// The choice that is about to be replaced.
pub(crate) fn read_chosen_setting(tx: &Transaction<'_>, setting: &ChosenSetting) -> Result<SettingBefore> {
    let sql = "SELECT value, instead_of FROM chosen_settings WHERE name = ?1";
    let was = tx.prepare(sql)?.query_row([setting.name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(SettingBefore::Chosen { name: setting.name.to_owned(), was })
}
