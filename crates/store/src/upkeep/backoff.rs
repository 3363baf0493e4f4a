//! Back-off of what is looked after without a model, what was handled once, and repairs to be written down.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::clock::{is_over, parse_time, rfc3339};

use crate::{
    FencedStore, Result, Store,
    sql::{self, OptionalExtension as _, Transaction},
};

/// The first wait after a failure, in seconds; it doubles with each further one.
const FIRST_WAIT_S: i64 = 30;
/// The longest wait between two tries, in seconds.
const LONGEST_WAIT_S: i64 = 3_600;
/// Under this key stands the commit that was seen last: what people committed up to it is a reason no more.
pub const HEAD_SEEN: &str = "head";

/// What is looked after, each with a back-off of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpkeepKind {
    /// Looking at the remote; it is an occasional thing.
    Fetch,
    /// Pushing.
    Push,
    /// Housekeeping in the repository.
    Maintain,
    /// Bringing in parked work.
    Parked,
    /// Finishing a commit that was cut off.
    Finish,
    /// Wakes, by what they met in the repository and the workspace.
    Repository,
    /// Wakes, by whatever ended them.
    Wake,
    /// The bot's polls of the channel.
    Poll,
    /// Fetching the files of messages; no others are tried while the channel wants none to be.
    Files,
    /// Forgetting what is old.
    Retention,
    /// Making vectors of what is searched.
    Embed,
    /// Asking for the lease that several machines share.
    Lease,
}

impl UpkeepKind {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Push => "push",
            Self::Maintain => "maintain",
            Self::Parked => "parked",
            Self::Finish => "finish",
            Self::Repository => "repository",
            Self::Wake => "wake",
            Self::Poll => "poll",
            Self::Files => "files",
            Self::Retention => "retention",
            Self::Embed => "embed",
            Self::Lease => "lease",
        }
    }
}

/// How a kind of upkeep has been going.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Upkeep {
    /// Failures since it last worked.
    pub failures: u32,
    /// When it last worked.
    pub last_ok_at: Option<DateTime<Utc>>,
    /// Not to be tried before.
    pub not_before: Option<DateTime<Utc>>,
    /// The last failure, without secrets.
    pub error: Option<String>,
}

impl Upkeep {
    /// Whether its back-off has ended.
    pub fn may_try(&self, now: DateTime<Utc>) -> bool {
        self.not_before.is_none_or(|at| is_over(at, now))
    }
}

/// How long to wait after the nth failure in a row (n from 1): 30 s, doubling, an hour at most.
pub fn wait_after(failures: u32) -> TimeDelta {
    let doublings = failures.saturating_sub(1).min(16);
    TimeDelta::seconds((FIRST_WAIT_S << doublings).min(LONGEST_WAIT_S))
}

impl Store {
    /// How it has been going.
    pub fn upkeep(&self, kind: UpkeepKind) -> Result<Upkeep> {
        let sql = "SELECT failures, last_ok_at, not_before, error FROM upkeep WHERE name = ?1";
        let row = self
            .conn
            .prepare(sql)?
            .query_row([kind.as_str()], |row| {
                Ok(Upkeep {
                    failures: row.get(0)?,
                    last_ok_at: row.get::<_, Option<String>>(1)?.as_deref().and_then(parse_time),
                    not_before: row.get::<_, Option<String>>(2)?.as_deref().and_then(parse_time),
                    error: row.get(3)?,
                })
            })
            .optional()?;
        Ok(row.unwrap_or_default())
    }

    /// It failed once more in a row, for who holds no lease and waits by itself. Since when is kept, too.
    pub fn trouble(&mut self, kind: UpkeepKind, error: &str, now: DateTime<Utc>) -> Result<()> {
        self.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, failures, error) VALUES (?1, 1, ?2) ON CONFLICT (name) DO UPDATE
                 SET failures = upkeep.failures + 1, error = excluded.error",
                (kind.as_str(), error),
            )?;
            tx.execute(
                "INSERT INTO handled (key, value, at) VALUES (?1, '', ?2) ON CONFLICT DO NOTHING",
                (failing_key(kind), rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// It works. Writes only when there was a failure to be forgotten.
    pub fn trouble_over(&mut self, kind: UpkeepKind, now: DateTime<Utc>) -> Result<()> {
        if self.upkeep(kind)?.failures == 0 {
            return Ok(());
        }
        self.write_relaxed(|tx| {
            tx.execute(
                "UPDATE upkeep SET failures = 0, last_ok_at = ?2, error = NULL WHERE name = ?1",
                (kind.as_str(), rfc3339(now)),
            )?;
            tx.execute("DELETE FROM handled WHERE key = ?1", [failing_key(kind)])?;
            Ok(())
        })
    }

    /// Since when it has failed each time, as [`Store::trouble`] noted it.
    pub fn failing_since(&self, kind: UpkeepKind) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT at FROM handled WHERE key = ?1";
        let at: Option<String> = self.conn.query_row(sql, [failing_key(kind)], |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The value kept for something that is a reason once, if it was handled.
    pub fn handled(&self, key: &str) -> Result<Option<String>> {
        let mut statement = self.conn.prepare("SELECT value FROM handled WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// The newest keys that begin with one of these, with their values, newest first: what the next machine takes for
    /// handled.
    pub fn newest_handled(&self, prefixes: &[&str], most: usize) -> Result<Vec<(String, String)>> {
        let mut statement = self.conn.prepare("SELECT key, value FROM handled ORDER BY at DESC, key")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let is_wanted = |row: &sql::QueryResult<(String, String)>| {
            row.as_ref().map_or(true, |(key, _)| prefixes.iter().any(|prefix| key.starts_with(prefix)))
        };
        Ok(rows.filter(is_wanted).take(most).collect::<sql::QueryResult<_>>()?)
    }

    /// Takes for handled what another machine has handled; what is known here stays.
    pub fn take_over_handled(&mut self, handled: &[(String, String)], now: DateTime<Utc>) -> Result<()> {
        if handled.is_empty() {
            return Ok(());
        }
        self.write_relaxed(|tx| {
            for (key, value) in handled {
                let row = (key, value, rfc3339(now));
                tx.execute("INSERT INTO handled (key, value, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING", row)?;
            }
            Ok(())
        })
    }

    /// All keys handled that begin with `prefix`.
    pub fn handled_keys(&self, prefix: &str) -> Result<std::collections::BTreeSet<String>> {
        let mut statement = self.conn.prepare("SELECT key FROM handled WHERE substr(key, 1, length(?1)) = ?1")?;
        Ok(statement.query_map([prefix], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// The same with their values.
    pub fn handled_values(&self, prefix: &str) -> Result<std::collections::BTreeMap<String, String>> {
        let sql = "SELECT key, value FROM handled WHERE substr(key, 1, length(?1)) = ?1 AND value IS NOT NULL";
        let mut statement = self.conn.prepare(sql)?;
        Ok(statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?)
    }

    /// Repairs that no wake has written down yet, as (row, what).
    pub fn unnoted_repairs(&self) -> Result<Vec<(i64, String)>> {
        let mut statement =
            self.conn.prepare("SELECT id, what FROM repairs WHERE cycle_id IS NULL ORDER BY id LIMIT 50")?;
        Ok(statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?)
    }
}

impl FencedStore<'_> {
    /// It worked: no back-off any more.
    pub fn upkeep_ok(&mut self, kind: UpkeepKind) -> Result<()> {
        let now = self.now();
        self.fenced_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, last_ok_at) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE
                 SET failures = 0, last_ok_at = excluded.last_ok_at, not_before = NULL, error = NULL",
                (kind.as_str(), rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// As [`Self::upkeep_ok`], but writes only when there was a failure to be forgotten.
    pub fn upkeep_recovered(&mut self, kind: UpkeepKind) -> Result<()> {
        if self.upkeep(kind)?.failures == 0 { Ok(()) } else { self.upkeep_ok(kind) }
    }

    /// It failed: wait longer each time. `at_least` is what the other side asked for.
    pub fn upkeep_failed(&mut self, kind: UpkeepKind, error: &str, at_least: Option<TimeDelta>) -> Result<Upkeep> {
        let now = self.now();
        let mut upkeep = self.upkeep(kind)?;
        upkeep.failures += 1;
        let wait = wait_after(upkeep.failures).max(at_least.unwrap_or_default());
        upkeep.not_before = Some(now + wait);
        upkeep.error = Some(error.to_owned());
        self.fenced_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, failures, not_before, error) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE
                 SET failures = excluded.failures, not_before = excluded.not_before, error = excluded.error",
                (kind.as_str(), upkeep.failures, rfc3339(now + wait), error),
            )?;
            Ok(())
        })?;
        Ok(upkeep)
    }

    /// Remembers that it was handled.
    pub fn set_handled(&mut self, key: &str, value: &str) -> Result<()> {
        let now = self.now();
        self.fenced_relaxed(|tx| set_handled(tx, key, value, now))
    }

    /// Writes down a repair for the next wake's episodic entry.
    pub fn note_repair(&mut self, check_id: &str, what: &str) -> Result<()> {
        let now = self.now();
        self.fenced(|tx| {
            tx.execute("INSERT INTO repairs (at, check_id, what) VALUES (?1, ?2, ?3)", (rfc3339(now), check_id, what))?;
            Ok(())
        })
    }
}

/// Under which key stands since when something fails.
fn failing_key(kind: UpkeepKind) -> String {
    format!("failing/{}", kind.as_str())
}

pub(crate) fn set_handled(tx: &Transaction<'_>, key: &str, value: &str, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO handled (key, value, at) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at",
        (key, value, rfc3339(now)),
    )?;
    Ok(())
}
