//! That the owner was told of too little room on the disk: once a stretch, across restarts of the bot.

use chrono::{DateTime, Utc};

use reveille_base::clock::parse_time;

use crate::{NewOutgoing, Result, Store, outbox::planned, sql::OptionalExtension as _, upkeep::backoff};

/// Stands in `handled` from the notice of a stretch to the notice of its end.
const KEY: &str = "disk/short";

impl Store {
    /// Since when the owner has known of a stretch that isn't over.
    pub fn shortage(&self) -> Result<Option<DateTime<Utc>>> {
        let at: Option<String> =
            self.conn.query_row("SELECT at FROM handled WHERE key = ?1", [KEY], |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// Plans the notice that a stretch has begun and remembers it, in one transaction. `None` when one is known already.
    pub fn begin_shortage(&mut self, notice: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        if self.shortage()?.is_some() {
            return Ok(None);
        }
        self.write(|tx| {
            backoff::set_handled(tx, KEY, "", now)?;
            planned::insert(tx, notice, now)
        })
    }

    /// Plans the notice that a stretch is over and forgets it, in one transaction. `None` when none is known.
    pub fn end_shortage(&mut self, notice: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        self.write(|tx| match tx.execute("DELETE FROM handled WHERE key = ?1", [KEY])? {
            0 => Ok(None),
            _ => planned::insert(tx, notice, now),
        })
    }
}
