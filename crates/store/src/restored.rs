//! A database that was taken out of a backup: whether it can be one of ours, and what must not go on from it as if nothing had
//! happened since.
//!
//! Between the backup and now the machine that it was made on may have gone on: sent what was planned here, carried out what was
//! allowed here. So nothing of it is taken for undone.

use std::path::Path;

use chrono::{DateTime, Utc};

use reveille_base::{clock::rfc3339, types::ChatRef};

use super::{Result, Schema, Store, StoreError, schema};
use crate::chats::stop;

/// What a restored database doesn't go on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SetAside {
    /// Questions that were open, or allowed and not yet done: nobody's word counts for them any more.
    pub questions: usize,
    /// Parts of messages that may or may not have been sent.
    pub doubtful_parts: usize,
    /// Cycles that were under way.
    pub open_cycles: usize,
}

/// How much a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StoreSize {
    /// Messages that came in.
    pub messages: i64,
    /// Wakes, finished or not.
    pub wakes: i64,
    /// Reminders that are still to come.
    pub reminders: i64,
}

impl Store {
    /// Opens a database that may come from anywhere, if it is sound and has nothing in it that would act by itself.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for what no program of ours has written; [`StoreError::Newer`] for what this one doesn't know.
    pub fn open_foreign(path: &Path) -> Result<Self> {
        let store = Self::open_read_only(path)?.ok_or_else(|| StoreError::Damaged("it isn't there".to_owned()))?;
        // Triggers, views and virtual tables run when others are read and written. We have none.
        let Some(conn) = store.conn.sqlite() else { return Ok(store) };
        conn.pragma_update(None, "trusted_schema", false)?;
        let acting: i64 = store.conn.query_row(
            "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'",
            [],
            |row| row.get(0),
        )?;
        if acting > 0 {
            return Err(StoreError::Damaged("it holds triggers or views, which aren't Reveille's".to_owned()));
        }
        let schema @ Schema { found, known, .. } = store.schema()?;
        if schema.is_too_new() {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        if found < 1 {
            return Err(StoreError::Damaged("it isn't Reveille's".to_owned()));
        }
        store.integrity()?.map_err(|lines| StoreError::Damaged(lines.join("; ")))?;
        drop(store);
        Self::open(path)
    }

    /// How much there is.
    pub fn size(&self) -> Result<StoreSize> {
        let count = |sql: &str| self.conn.query_row(sql, [], |row| row.get(0));
        Ok(StoreSize {
            messages: count("SELECT count(*) FROM incoming_messages")?,
            wakes: count("SELECT count(*) FROM cycles")?,
            reminders: count("SELECT count(*) FROM reminders WHERE state = 'active'")?,
        })
    }

    /// The version that this program brings databases to.
    pub fn known_schema() -> i64 {
        schema::VERSION
    }

    /// Stops all work, and takes nothing for undone that may have been done since the backup. What was asked and what was to be
    /// done asks again; what was to be sent is in doubt, and is sent once more after `wake resume`, marked as a repeat.
    pub fn begin_restored(&mut self, now: DateTime<Utc>) -> Result<SetAside> {
        let at = rfc3339(now);
        let aside = self.write(|tx| {
            let questions = tx.execute(
                "UPDATE approvals SET state = 'expired', decided_at = ?1, decided_by = 'restore'
                 WHERE state = 'pending' OR state = 'approved' AND used_at IS NULL",
                [&at],
            )?;
            // What is for the terminal is shown by whoever looks at one: nobody else has.
            let doubtful_parts = tx.execute(
                "UPDATE outgoing_parts SET state = 'unknown', sender = NULL, not_before = NULL, changed_at = ?1,
                     error = 'it was on its way when the backup was made'
                 WHERE state IN ('planned', 'attempting')
                   AND outgoing_id IN (SELECT id FROM outgoing_messages WHERE chat_id != 0 AND sent_at IS NULL)",
                [&at],
            )?;
            let open_cycles: i64 =
                tx.query_row("SELECT count(*) FROM cycles WHERE state = 'running'", [], |row| row.get(0))?;
            // Processes, terminals and restarts of another machine, or of another time.
            tx.execute("UPDATE processing_lock SET is_locked = 0, holder = NULL", [])?;
            tx.execute("DELETE FROM sessions", [])?;
            tx.execute("UPDATE restarts SET told_at = ?1 WHERE told_at IS NULL", [&at])?;
            stop::stop(tx, ChatRef::TERMINAL, true, now)?;
            Ok(SetAside { questions, doubtful_parts, open_cycles: usize::try_from(open_cycles).unwrap_or(0) })
        })?;
        Ok(aside)
    }
}
