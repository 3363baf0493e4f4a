//! What people do themselves, without a wake: steps of the line that undo goes back along.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{parse_time, rfc3339},
    types::ChatRef,
};

use super::{
    ChosenSetting, FencedStore, Result, json,
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// What a person's own step is called as in `undos`: this and its number. Reminders name it so where they would name a cycle.
pub(super) const PREFIX: &str = "step/";
/// What a person did themselves, without a wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsStep {
    /// Its number in the line.
    pub id: i64,
    /// When; `None` if what is written there is no time.
    pub at: Option<DateTime<Utc>>,
    /// In words, in the past tense.
    pub did: String,
    /// Its commit; `None`: the memory wasn't touched.
    pub commit: Option<String>,
}

/// A person's own step, to be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStep {
    /// Where it was ordered.
    pub chat: ChatRef,
    /// In words, in the past tense.
    pub did: String,
    /// Its commit.
    pub commit: Option<String>,
}

/// A setting of ours as it was before a step.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingBefore {
    /// Whether a chat was kept on this machine.
    Local {
        /// The chat.
        chat: ChatRef,
        /// Whether it was.
        was_kept: bool,
    },
    /// A chosen setting.
    Chosen {
        /// Its name.
        name: String,
        /// What had been chosen instead of what the settings said; `None`: nothing.
        was: Option<(String, String)>,
    },
    /// Where a chat, or a topic of it, was begun afresh.
    Fresh {
        /// The chat.
        chat: ChatRef,
        /// The topic; 0: none.
        thread_id: i64,
        /// The last rows from before it, theirs and ours, and when it was begun; `None`: it never was.
        was: Option<(i64, i64, String)>,
    },
    /// A message that was taken out of the queue.
    Queued {
        /// Its row.
        message: i64,
        /// What had become of it; `None`: it waited.
        was: Option<String>,
    },
}

impl PersonsStep {
    pub(super) const COLUMNS: &str = "id, at, did, commit_id";

    /// How an undo names it.
    pub fn undone_as(id: i64) -> String {
        format!("{PREFIX}{id}")
    }

    /// The step that an undo names; `None`: it names something else.
    pub fn named_by(undone: &str) -> Option<i64> {
        undone.strip_prefix(PREFIX)?.parse().ok()
    }

    pub(super) fn read(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            at: parse_time(&row.get::<_, String>(1)?),
            did: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            commit: row.get(3)?,
        })
    }
}

impl FencedStore<'_> {
    /// Notes what a person did by their own command.
    pub fn note_step(&mut self, step: &NewStep) -> Result<()> {
        let now = self.now();
        self.fenced(|tx| note(tx, step, None, now).map(drop))
    }
}

/// Where ids of commits stand, each with the condition that it is one.
const COMMITS: [(&str, &str, &str); 4] = [
    ("cycles", "commit_id", "commit_id IS NOT NULL"),
    ("undo_line", "commit_id", "commit_id IS NOT NULL"),
    ("proposals", "commit_id", "TRUE"),
    ("handled", "value", "key = 'head'"),
];

impl FencedStore<'_> {
    /// After the history was rewritten: each id of a commit becomes what it is now.
    pub fn rewrite_commits(&mut self, commits: &BTreeMap<String, String>) -> Result<()> {
        self.fenced(|tx| {
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

/// Notes a person's own step, and gives the name that undoes it. `before`: the setting that it changes, as it was.
pub(crate) fn note(
    tx: &Transaction<'_>,
    step: &NewStep,
    before: Option<&SettingBefore>,
    now: DateTime<Utc>,
) -> Result<String> {
    let id: i64 = tx
        .prepare(
            "INSERT INTO undo_line (chat_id, at, did, commit_id, before) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        )?
        .query_row((step.chat, rfc3339(now), &step.did, &step.commit, before.map(json)), |row| row.get(0))?;
    Ok(PersonsStep::undone_as(id))
}

/// The setting that a chat's `/local` is about to change, as it is.
pub(crate) fn local_before(tx: &Transaction<'_>, chat: ChatRef) -> Result<SettingBefore> {
    let sql = "SELECT EXISTS (SELECT 1 FROM local_chats WHERE chat_id = ?1)";
    Ok(SettingBefore::Local { chat, was_kept: tx.prepare(sql)?.query_row([chat], |row| row.get(0))? })
}

/// The setting that is about to be chosen, as it is.
pub(crate) fn chosen_before(tx: &Transaction<'_>, setting: &ChosenSetting) -> Result<SettingBefore> {
    let sql = "SELECT value, instead_of FROM chosen_settings WHERE name = ?1";
    let was = tx.prepare(sql)?.query_row([setting.name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(SettingBefore::Chosen { name: setting.name.to_owned(), was })
}
