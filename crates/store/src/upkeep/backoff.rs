//! Back-off of upkeep without a model, keys of one-time reasons, and repairs still to be reported.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::clock::{format_rfc3339, is_over, parse_time};

use crate::{
    FencedStore, Result,
    areas::{Maintenance, ReadStore, WriteStore},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The first wait after a failure, in seconds; it doubles with each further failure.
const FIRST_WAIT_S: i64 = 30;
/// The longest wait between two attempts, in seconds.
const LONGEST_WAIT_S: i64 = 3_600;
/// The key of the last seen commit: people's commits up to it are settled.
pub const HEAD_SEEN: &str = "head";

/// The kinds of upkeep, each with a back-off of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpkeepKind {
    /// Fetching from the remote, from time to time.
    Fetch,
    /// Pushing.
    Push,
    /// Housekeeping in the repository.
    Maintain,
    /// Merging parked work.
    Parked,
    /// Finishing a commit that was cut off.
    Finish,
    /// Wakes, by errors in the repository and the workspace.
    Repository,
    /// Wakes, by any error that ended them.
    Wake,
    /// The bot's polls of the channel.
    Poll,
    /// Fetching the files of messages, also paused while the channel asks for it.
    Files,
    /// Deleting old data.
    Retention,
    /// Computing vectors for search.
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

/// The state of a kind of upkeep.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Upkeep {
    /// The number of failures since the last success.
    pub failures: u32,
    /// The last success.
    pub last_ok_at: Option<DateTime<Utc>>,
    /// The earliest time of the next attempt.
    pub not_before: Option<DateTime<Utc>>,
    /// The last failure, without secrets.
    pub error: Option<String>,
}

impl Upkeep {
    /// Returns whether its back-off has ended.
    pub fn may_try(&self, now: DateTime<Utc>) -> bool {
        self.not_before.is_none_or(|at| is_over(at, now))
    }
}

/// The wait after the nth consecutive failure (n from 1): 30 s, doubling, at most an hour.
pub fn compute_retry_wait(failures: u32) -> TimeDelta {
    let doublings = failures.saturating_sub(1).min(16);
    TimeDelta::seconds((FIRST_WAIT_S << doublings).min(LONGEST_WAIT_S))
}

impl<S: ReadStore> Maintenance<S> {
    /// The state of a kind of upkeep.
    pub fn read_upkeep(&self, kind: UpkeepKind) -> Result<Upkeep> {
        let sql = "SELECT failures, last_ok_at, not_before, error FROM upkeep WHERE name = ?1";
        let row = self
            .0
            .conn()
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

    /// The start of the present series of failures, as recorded by [`Maintenance::record_trouble`].
    pub fn failing_since(&self, kind: UpkeepKind) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT at FROM handled WHERE key = ?1";
        let at: Option<String> = self.0.conn().query_row(sql, [failing_key(kind)], |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The value stored for a one-time reason, if handled.
    pub fn find_handled_value(&self, key: &str) -> Result<Option<String>> {
        let mut statement = self.0.conn().prepare("SELECT value FROM handled WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// The newest keys with one of these prefixes and their values, newest first, which the next machine takes over as handled.
    pub fn list_newest_handled_keys(&self, prefixes: &[&str], most: usize) -> Result<Vec<(String, String)>> {
        let mut statement = self.0.conn().prepare("SELECT key, value FROM handled ORDER BY at DESC, key")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let is_wanted = |row: &sql::QueryResult<(String, String)>| {
            row.as_ref().map_or(true, |(key, _)| prefixes.iter().any(|prefix| key.starts_with(prefix)))
        };
        Ok(rows.filter(is_wanted).take(most).collect::<sql::QueryResult<_>>()?)
    }

    /// All handled keys with this prefix.
    pub fn handled_keys(&self, prefix: &str) -> Result<std::collections::BTreeSet<String>> {
        let mut statement = self.0.conn().prepare("SELECT key FROM handled WHERE substr(key, 1, length(?1)) = ?1")?;
        Ok(statement.query_map([prefix], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// As [`Maintenance::handled_keys`], with the values.
    pub fn handled_values(&self, prefix: &str) -> Result<std::collections::BTreeMap<String, String>> {
        let sql = "SELECT key, value FROM handled WHERE substr(key, 1, length(?1)) = ?1 AND value IS NOT NULL";
        let mut statement = self.0.conn().prepare(sql)?;
        Ok(statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?)
    }

    /// The repairs that no wake has reported yet, as (row, text).
    pub fn unnoted_repairs(&self) -> Result<Vec<(i64, String)>> {
        let mut statement =
            self.0.conn().prepare("SELECT id, what FROM repairs WHERE cycle_id IS NULL ORDER BY id LIMIT 50")?;
        Ok(statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Maintenance<S> {
    /// Counts a consecutive failure, for a caller without a lease that waits by itself. The time of the first failure is recorded too.
    pub fn record_trouble(&mut self, kind: UpkeepKind, error: &str, now: DateTime<Utc>) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, failures, error) VALUES (?1, 1, ?2) ON CONFLICT (name) DO UPDATE
                 SET failures = upkeep.failures + 1, error = excluded.error",
                (kind.as_str(), error),
            )?;
            tx.execute(
                "INSERT INTO handled (key, value, at) VALUES (?1, '', ?2) ON CONFLICT DO NOTHING",
                (failing_key(kind), format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// Records a success. Writes only after a failure.
    pub fn trouble_over(&mut self, kind: UpkeepKind, now: DateTime<Utc>) -> Result<()> {
        if self.read_upkeep(kind)?.failures == 0 {
            return Ok(());
        }
        self.0.write_relaxed(|tx| {
            tx.execute(
                "UPDATE upkeep SET failures = 0, last_ok_at = ?2, error = NULL WHERE name = ?1",
                (kind.as_str(), format_rfc3339(now)),
            )?;
            tx.execute("DELETE FROM handled WHERE key = ?1", [failing_key(kind)])?;
            Ok(())
        })
    }

    /// Marks another machine's handled keys as handled here; existing keys stay.
    pub fn take_over_handled_keys(&mut self, handled: &[(String, String)], now: DateTime<Utc>) -> Result<()> {
        if handled.is_empty() {
            return Ok(());
        }
        self.0.write_relaxed(|tx| {
            for (key, value) in handled {
                let row = (key, value, format_rfc3339(now));
                tx.execute("INSERT INTO handled (key, value, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING", row)?;
            }
            Ok(())
        })
    }
}

impl Maintenance<&mut FencedStore<'_>> {
    /// Records a success, which ends the back-off.
    pub fn upkeep_ok(&mut self, kind: UpkeepKind) -> Result<()> {
        let now = self.0.now();
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, last_ok_at) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE
                 SET failures = 0, last_ok_at = excluded.last_ok_at, not_before = NULL, error = NULL",
                (kind.as_str(), format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// As [`Self::upkeep_ok`], but writes only after a failure.
    pub fn record_upkeep_recovery(&mut self, kind: UpkeepKind) -> Result<()> {
        if self.read_upkeep(kind)?.failures == 0 { Ok(()) } else { self.upkeep_ok(kind) }
    }

    /// Records a failure: the wait grows each time. `at_least` is the wait the other side asked for.
    pub fn record_upkeep_failure(
        &mut self,
        kind: UpkeepKind,
        error: &str,
        at_least: Option<TimeDelta>,
    ) -> Result<Upkeep> {
        let now = self.0.now();
        let mut upkeep = self.read_upkeep(kind)?;
        upkeep.failures += 1;
        let wait = compute_retry_wait(upkeep.failures).max(at_least.unwrap_or_default());
        upkeep.not_before = Some(now + wait);
        upkeep.error = Some(error.to_owned());
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO upkeep (name, failures, not_before, error) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE
                 SET failures = excluded.failures, not_before = excluded.not_before, error = excluded.error",
                (kind.as_str(), upkeep.failures, format_rfc3339(now + wait), error),
            )?;
            Ok(())
        })?;
        Ok(upkeep)
    }

    /// Marks a key as handled.
    pub fn set_handled_value(&mut self, key: &str, value: &str) -> Result<()> {
        let now = self.0.now();
        self.0.write_relaxed(|tx| save_handled_value(tx, key, value, now))
    }

    /// Records a repair for the next wake's episodic entry.
    pub fn note_repair(&mut self, check_id: &str, what: &str) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| {
            tx.execute(
                "INSERT INTO repairs (at, check_id, what) VALUES (?1, ?2, ?3)",
                (format_rfc3339(now), check_id, what),
            )?;
            Ok(())
        })
    }
}

/// The key for the start of a series of failures.
fn failing_key(kind: UpkeepKind) -> String {
    format!("failing/{}", kind.as_str())
}

pub(crate) fn save_handled_value(tx: &Transaction<'_>, key: &str, value: &str, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO handled (key, value, at) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at",
        (key, value, format_rfc3339(now)),
    )?;
    Ok(())
}
