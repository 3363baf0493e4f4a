//! The notices about a full disk: once per shortage, across restarts of the bot.

use chrono::{DateTime, Utc};

use reveille_base::clock::parse_time;

use crate::{
    NewOutgoing, Result,
    areas::{Outbox, ReadStore, WriteStore},
    outbox::planned,
    sql::OptionalExtension as _,
    upkeep::backoff,
};

/// The key in `handled` from the notice of a shortage to the notice of its end.
const KEY: &str = "disk/short";

impl<S: ReadStore> Outbox<S> {
    /// The time of the notice about the present shortage; `None` if there is no shortage.
    pub fn find_shortage_time(&self) -> Result<Option<DateTime<Utc>>> {
        let at: Option<String> =
            self.0.conn().query_row("SELECT at FROM handled WHERE key = ?1", [KEY], |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }
}

impl<S: WriteStore> Outbox<S> {
    /// Plans the notice of a shortage and records it, in one transaction. `None` if a shortage is already recorded.
    pub fn begin_shortage(&mut self, notice: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        if self.find_shortage_time()?.is_some() {
            return Ok(None);
        }
        self.0.write(|tx| {
            backoff::save_handled_value(tx, KEY, "", now)?;
            planned::insert(tx, notice, now)
        })
    }

    /// Plans the notice of a shortage's end and deletes the record, in one transaction. `None` if no shortage is recorded.
    pub fn end_shortage(&mut self, notice: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        self.0.write(|tx| match tx.execute("DELETE FROM handled WHERE key = ?1", [KEY])? {
            0 => Ok(None),
            _ => planned::insert(tx, notice, now),
        })
    }
}
