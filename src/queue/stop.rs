//! `/stop`: a row that outlives restarts. While it stands, no wake works and nothing but answers to commands is sent.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, Transaction};

use super::{Result, Store};
use crate::clock::{parse_time, rfc3339};

/// That all work was ordered to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Stopped {
    /// Since when; a time that can't be read is none.
    pub at: Option<DateTime<Utc>>,
    /// The chat whose order it is; 0 is the console.
    pub chat_id: i64,
}

impl Store {
    /// Whether all work is stopped. Cheap: a wake asks it before each step, and ten times a second while it waits.
    pub fn stopped(&self) -> Result<Option<Stopped>> {
        let row = self
            .conn
            .prepare_cached("SELECT at, chat_id FROM stopped")?
            .query_row([], |row| Ok(Stopped { at: parse_time(&row.get::<_, String>(0)?), chat_id: row.get(1)? }));
        Ok(row.optional()?)
    }
}

/// It has been stopped since the first order, whoever gives a second one. But what the owner orders too, nobody else lifts.
pub(super) fn stop(tx: &Transaction<'_>, chat_id: i64, is_owners: bool, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO stopped (id, at, chat_id) VALUES (1, ?1, ?2)
         ON CONFLICT (id) DO UPDATE SET chat_id = excluded.chat_id WHERE ?3",
        (rfc3339(now), chat_id, is_owners),
    )?;
    Ok(())
}

pub(super) fn resume(tx: &Transaction<'_>) -> Result<()> {
    tx.execute("DELETE FROM stopped", [])?;
    Ok(())
}
