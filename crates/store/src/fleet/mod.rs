//! The fleet's queue: the table of due assistants, shared by a fleet's workers and its receiver.
//!
//! The table holds names and times, but no messages: each assistant's messages are in its own store. A claim here only decides which
//! assistant runs next. If two workers ever hold one assistant, its own lock and fence decide which of them writes.

#[cfg(feature = "postgres")]
mod roles;

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::AssistantName,
};

use super::{
    Result, StoreError, StorePlace, create_private,
    sql::{OptionalExtension as _, Row, SqlConnection, Transaction},
};

/// The tables. They only ever grow, like a store's schema.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS assistants (
    name TEXT PRIMARY KEY,
    added_at TEXT NOT NULL,
    -- SHA-256 of what Telegram shows with each update, as hex; none: it receives nothing here.
    secret_hash TEXT,
    -- When it is looked at next.
    due_at TEXT NOT NULL,
    -- Grows with each update: what came while it had its turn makes it due again.
    woken INTEGER NOT NULL DEFAULT 0,
    -- When it last had its turn: who waited longest is first.
    taken_at TEXT,
    claimed_by TEXT,
    claimed_until TEXT,
    -- Turns in a row that failed, and why the last did.
    failures INTEGER NOT NULL DEFAULT 0,
    trouble TEXT
);
CREATE INDEX IF NOT EXISTS assistants_by_due ON assistants (due_at);
";

/// The list of a fleet's assistants.
pub struct FleetRegistry {
    conn: SqlConnection,
}

/// An assistant of the fleet, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FleetMember {
    /// The assistant's name.
    pub name: String,
    /// The time of registration.
    pub added_at: DateTime<Utc>,
    /// The next due time.
    pub due_at: DateTime<Utc>,
    /// The start of its last turn.
    pub taken_at: Option<DateTime<Utc>>,
    /// Whether its turn is under way.
    pub is_at_work: bool,
    /// Whether the receiver accepts its Telegram updates.
    pub receives: bool,
    /// The number of consecutive failed turns.
    pub failures: u32,
    /// The error of the last failed turn.
    pub trouble: Option<String>,
}

/// A turn of an assistant, until its end or expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnClaim {
    /// The assistant.
    pub name: AssistantName,
    /// The consecutive failed turns before this one.
    pub failures: u32,
    woken: i64,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// The next due time, unless an update arrives earlier.
    pub due_at: DateTime<Utc>,
    /// The error, if the turn failed.
    pub trouble: Option<String>,
}

impl FleetRegistry {
    /// Opens the registry; creates it if necessary. In PostgreSQL it is a schema of its own, which no assistant's role may read.
    ///
    /// # Errors
    /// The store's.
    pub fn open(place: &StorePlace) -> Result<Self> {
        let conn = match place {
            StorePlace::File(path) => {
                create_private(path);
                let conn = rusqlite::Connection::open(path)?;
                super::write_durably(&conn)?;
                conn.into()
            }
            #[cfg(feature = "postgres")]
            StorePlace::Shared(address) => roles::connect_registry(address)?,
        };
        let registry = Self { conn };
        if !registry.is_created() {
            let tx = registry.conn.begin_write()?;
            tx.change_schema(SCHEMA)?;
            tx.commit()?;
        }
        Ok(registry)
    }

    fn is_created(&self) -> bool {
        self.conn.query_row("SELECT count(*) FROM assistants WHERE name = ''", [], |row| row.get::<_, i64>(0)).is_ok()
    }

    /// Adds an assistant, due at once. `false` if the name is taken.
    ///
    /// # Errors
    /// The store's, as for all methods below.
    pub fn add(&mut self, name: &AssistantName, now: DateTime<Utc>) -> Result<bool> {
        let added = self.write(|tx| {
            tx.notify()?;
            Ok(tx.execute(
                "INSERT INTO assistants (name, added_at, due_at) VALUES (?1, ?2, ?2) ON CONFLICT DO NOTHING",
                (name.as_str(), format_rfc3339(now)),
            )?)
        })?;
        Ok(added > 0)
    }

    /// Removes an assistant. `false` if there was no such name.
    pub fn remove(&mut self, name: &AssistantName) -> Result<bool> {
        Ok(self.write(|tx| Ok(tx.execute("DELETE FROM assistants WHERE name = ?1", [name.as_str()])?))? > 0)
    }

    /// All assistants by name.
    pub fn list_members(&self, now: DateTime<Utc>) -> Result<Vec<FleetMember>> {
        let mut statement = self.conn.prepare(
            "SELECT name, added_at, due_at, taken_at, claimed_until, secret_hash, failures, trouble FROM assistants ORDER BY name",
        )?;
        let rows = statement.query_map([], |row| {
            let claimed_until: Option<String> = row.get(4)?;
            Ok(FleetMember {
                name: row.get(0)?,
                added_at: read_time(row, 1)?.unwrap_or_default(),
                due_at: read_time(row, 2)?.unwrap_or_default(),
                taken_at: read_time(row, 3)?,
                is_at_work: claimed_until.is_some_and(|until| until > format_rfc3339(now)),
                receives: row.get::<_, Option<String>>(5)?.is_some(),
                failures: row.get(6)?,
                trouble: row.get(7)?,
            })
        })?;
        let mut members = Vec::new();
        for member in rows {
            members.push(member?);
        }
        Ok(members)
    }

    /// Sets the hash that identifies an assistant's updates; `None` to accept no more updates.
    pub fn set_secret_hash(&mut self, name: &AssistantName, hash: Option<&str>) -> Result<bool> {
        let set = "UPDATE assistants SET secret_hash = ?2 WHERE name = ?1";
        Ok(self.write(|tx| Ok(tx.execute(set, (name.as_str(), hash))?))? > 0)
    }

    /// The hash that identifies an assistant's updates.
    pub fn secret_hash(&self, name: &AssistantName) -> Result<Option<String>> {
        let sql = "SELECT secret_hash FROM assistants WHERE name = ?1";
        let hash = self.conn.query_row(sql, [name.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
        Ok(hash.flatten())
    }

    /// Makes an assistant due, because an update has arrived. Durable on return.
    pub fn wake_assistant(&mut self, name: &AssistantName, now: DateTime<Utc>) -> Result<()> {
        self.write(|tx| {
            // An update ends the wait after a failure.
            tx.execute(
                "UPDATE assistants SET woken = woken + 1, due_at = CASE WHEN due_at < ?2 THEN due_at ELSE ?2 END WHERE name = ?1",
                (name.as_str(), format_rfc3339(now)),
            )?;
            Ok(tx.notify()?)
        })
    }

    /// Claims the turn of the due assistant that has waited longest since its last turn; `None` if no assistant is due.
    pub fn claim_turn(&mut self, worker: &str, now: DateTime<Utc>, until: DateTime<Utc>) -> Result<Option<TurnClaim>> {
        // Several workers claim at once: each skips a row another is claiming. SQLite has one writer at a time anyway.
        let free = self.conn.pick_statement("", "FOR UPDATE SKIP LOCKED");
        let sql = format!(
            "UPDATE assistants SET claimed_by = ?1, claimed_until = ?3, taken_at = ?2 WHERE name = (
                 SELECT name FROM assistants WHERE due_at <= ?2 AND (claimed_until IS NULL OR claimed_until <= ?2)
                 ORDER BY coalesce(taken_at, ''), due_at, name LIMIT 1 {free})
             RETURNING name, failures, woken"
        );
        self.write(|tx| {
            let claimed = tx
                .query_row(&sql, (worker, format_rfc3339(now), format_rfc3339(until)), |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let Some((name, failures, woken)) = claimed else { return Ok(None) };
            let name = name.parse().map_err(|why| StoreError::Damaged(format!("assistant {name:?}: {why}")))?;
            Ok(Some(TurnClaim { name, failures, woken }))
        })
    }

    /// Extends a worker's turns. Turns another worker has taken over stay with that worker.
    pub fn renew_turns(&mut self, worker: &str, held: &BTreeSet<AssistantName>, until: DateTime<Utc>) -> Result<()> {
        self.write(|tx| {
            let mut keep =
                tx.prepare("UPDATE assistants SET claimed_until = ?3 WHERE name = ?1 AND claimed_by = ?2")?;
            for name in held {
                keep.execute((name.as_str(), worker, format_rfc3339(until)))?;
            }
            Ok(())
        })
    }

    /// Ends a turn. An update since the claim makes the assistant due at once. Changes nothing if another worker has taken over the turn.
    pub fn give_back(&mut self, worker: &str, claim: &TurnClaim, end: &TurnEnd, now: DateTime<Utc>) -> Result<()> {
        let failures = if end.trouble.is_some() { claim.failures.saturating_add(1) } else { 0 };
        self.write(|tx| {
            tx.execute(
                "UPDATE assistants SET claimed_by = NULL, claimed_until = NULL, failures = ?4, trouble = ?5,
                     due_at = CASE WHEN woken = ?3 THEN ?6 ELSE ?7 END
                 WHERE name = ?1 AND claimed_by = ?2",
                (
                    claim.name.as_str(),
                    worker,
                    claim.woken,
                    failures,
                    end.trouble.as_deref(),
                    format_rfc3339(end.due_at),
                    format_rfc3339(now.min(end.due_at)),
                ),
            )?;
            Ok(tx.notify()?)
        })
    }

    /// Waits, at most `at_most`, for a change that may make an assistant due earlier. `Some(true)` is only a hint, and a broken
    /// connection loses it. `None` if the database has no notifications (SQLite), so that the caller must poll.
    pub fn wait_for_change(&self, at_most: Duration) -> Option<bool> {
        self.conn.wait_for_notice(at_most)
    }

    /// The next time at which an unclaimed assistant is due, or another worker's claim ends.
    pub fn find_next_turn_time(&self) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT min(CASE WHEN claimed_until IS NULL OR claimed_until < due_at THEN due_at ELSE claimed_until END) FROM assistants";
        Ok(self.conn.query_row(sql, [], |row| read_time(row, 0))?)
    }

    /// The next due time after `now`, by the index, so the number of assistants doesn't matter.
    pub fn find_next_due_time(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT min(due_at) FROM assistants WHERE due_at > ?1";
        Ok(self.conn.query_row(sql, [format_rfc3339(now)], |row| read_time(row, 0))?)
    }

    /// Runs a transaction with row locks. A writer of several rows takes them by name, which prevents deadlocks.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let tx = self.conn.begin_rows()?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }
}

fn read_time(row: &Row<'_>, column: usize) -> super::sql::QueryResult<Option<DateTime<Utc>>> {
    Ok(row.get::<_, Option<String>>(column)?.as_deref().and_then(parse_time))
}

#[cfg(test)]
mod tests;
