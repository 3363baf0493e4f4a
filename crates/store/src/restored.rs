//! A database from a backup: the check that it is ours, and the work that must not simply resume.
//!
//! After the backup, the original machine may have continued: sent texts that are planned here, run calls that are approved here. So all
//! such work counts as possibly done.

use std::path::Path;

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use super::{Result, Schema, Store, StoreError, schema};
use crate::chats::stop;

/// The work of a restored database that is set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SetAside {
    /// Questions that were open, or approved but unused: their approvals no longer count.
    pub questions: usize,
    /// Parts of messages that may or may not have been sent.
    pub doubtful_parts: usize,
    /// Cycles that were under way.
    pub open_cycles: usize,
}

/// The size of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StoreSize {
    /// The number of incoming messages.
    pub messages: i64,
    /// The number of wakes, finished or not.
    pub wakes: i64,
    /// The number of active reminders.
    pub reminders: i64,
}

impl Store {
    /// Opens a database of unknown origin, if it is sound and contains nothing that acts by itself.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if our programs didn't write it; [`StoreError::Newer`] if it is too new for this program.
    pub fn open_foreign(path: &Path) -> Result<Self> {
        let store =
            Self::open_file_read_only(path)?.ok_or_else(|| StoreError::Damaged("the file is missing".to_owned()))?;
        // Triggers, views and virtual tables run during reads and writes. Our schema has none.
        let Some(conn) = store.conn.as_sqlite() else { return Ok(store) };
        conn.pragma_update(None, "trusted_schema", false)?;
        let acting: i64 = store.conn.query_row(
            "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'",
            [],
            |row| row.get(0),
        )?;
        if acting > 0 {
            return Err(StoreError::Damaged("it contains triggers or views, which Reveille never creates".to_owned()));
        }
        let schema @ Schema { found, known, .. } = store.read_schema()?;
        if schema.is_too_new() {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        if found < 1 {
            return Err(StoreError::Damaged("it isn't a Reveille database".to_owned()));
        }
        store.check_integrity()?.map_err(|lines| StoreError::Damaged(lines.join("; ")))?;
        drop(store);
        Self::open(path)
    }

    /// The size of the database.
    pub fn size(&self) -> Result<StoreSize> {
        let count = |sql: &str| self.conn.query_row(sql, [], |row| row.get(0));
        Ok(StoreSize {
            messages: count("SELECT count(*) FROM incoming_messages")?,
            wakes: count("SELECT count(*) FROM cycles")?,
            reminders: count("SELECT count(*) FROM reminders WHERE state = 'active'")?,
        })
    }

    /// The schema version of this program.
    pub fn known_schema() -> i64 {
        schema::VERSION
    }

    /// Stops all work, and counts everything that may have happened since the backup as possibly done. Open questions and approved calls
    /// are asked again. Unsent texts become unknown, and are sent once more after `wake resume`, marked as repeats.
    pub fn settle_restored_store(&mut self, now: DateTime<Utc>) -> Result<SetAside> {
        let at = format_rfc3339(now);
        let aside = self.write(|tx| {
            let questions = tx.execute(
                "UPDATE approvals SET state = 'expired', decided_at = ?1, decided_by = 'restore'
                 WHERE state = 'pending' OR state = 'approved' AND used_at IS NULL",
                [&at],
            )?;
            // Texts for the terminal stay: they are shown only on this machine.
            let doubtful_parts = tx.execute(
                "UPDATE outgoing_parts SET state = 'unknown', sender = NULL, not_before = NULL, changed_at = ?1,
                     error = 'it was on its way when the backup was made'
                 WHERE state IN ('planned', 'attempting')
                   AND outgoing_id IN (SELECT id FROM outgoing_messages WHERE chat_id != 0 AND sent_at IS NULL)",
                [&at],
            )?;
            let open_cycles: i64 =
                tx.query_row("SELECT count(*) FROM cycles WHERE state = 'running'", [], |row| row.get(0))?;
            // These belong to processes, terminals and restarts of another machine or time.
            tx.execute("UPDATE processing_lock SET is_locked = 0, holder = NULL", [])?;
            tx.execute("DELETE FROM sessions", [])?;
            tx.execute("UPDATE restarts SET told_at = ?1 WHERE told_at IS NULL", [&at])?;
            stop::stop_all_work(tx, ChatRef::TERMINAL, now)?;
            Ok(SetAside { questions, doubtful_parts, open_cycles: usize::try_from(open_cycles).unwrap_or(0) })
        })?;
        Ok(aside)
    }
}
