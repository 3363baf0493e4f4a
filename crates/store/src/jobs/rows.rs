//! The planned jobs. A job's file defines its work; the row holds the next run and the result of the last check.

use chrono::{DateTime, NaiveDateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    schedule::{
        Missed, Rule, Slot,
        due::{self, CLOCK_SLACK, Series, SlotHistory},
    },
    zone::Tz,
};

use crate::{
    FencedStore, Result,
    areas::{Jobs, ReadStore, WriteStore},
    odd_rows::read_optional_text,
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// The format of a slot's civil time (local wall time), sortable as text.
const SLOT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
/// The maximum number of slots read for one job after the clock was set back.
const MAX_HISTORY: u32 = 10_000;

/// A planned job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// The job's name, as in its file name.
    pub name: String,
    /// The part of the job's file from which the plan was made.
    pub read_from: String,
    /// The gate (the condition for a run), as in its file.
    pub gate: String,
    /// The recurrence; `None` for a single run.
    pub rule: Option<Rule>,
    /// The IANA time zone of its civil times.
    pub zone: String,
    /// The next slot; `None` if none is left, or the job is paused.
    pub next: Option<Slot>,
    /// Whether a person wants a run now.
    pub is_asked: bool,
    /// The time at which the job was first planned.
    pub created_at: Option<DateTime<Utc>>,
    /// The time at which the next slot was written.
    pub written_at: Option<DateTime<Utc>>,
    /// The result of the last check, as JSON.
    pub seen: Option<String>,
    /// The number of consecutive failed runs.
    pub failures: u32,
    /// The error of the last failed run.
    pub error: Option<String>,
}

/// A job's plan as its file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlan {
    /// The job's name.
    pub name: String,
    /// See [`JobRow::read_from`].
    pub read_from: String,
    /// See [`JobRow::gate`].
    pub gate: String,
    /// The recurrence; `None` for a single run.
    pub rule: Option<Rule>,
    /// The IANA time zone of its civil times.
    pub zone: String,
    /// The first slot from now on; `None` if the job is paused, or its only time has passed.
    pub next: Option<Slot>,
}

impl JobRow {
    const SELECT: &str =
        "SELECT name, read_from, gate, rule, zone, slot, next_at, is_asked, created_at, written_at, seen, failures,
                                 error FROM jobs";

    /// The job as a series from its next slot on; `tz` is used if this program doesn't know the job's zone.
    pub fn series(&self, next: Slot, missed: Missed, tz: Tz) -> Series<'_> {
        Series { rule: self.rule.as_ref(), tz: self.zone(tz), missed, next }
    }

    /// The zone of its civil times; `tz` if this program doesn't know that zone.
    pub fn zone(&self, tz: Tz) -> Tz {
        self.zone.parse().unwrap_or(tz)
    }

    /// Returns whether the job has something to do now.
    pub fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.is_asked || self.is_new_watch() || self.next.is_some_and(|slot| slot.at <= now)
    }

    /// Returns whether the job watches an address that was never checked. The first check comes at once, so that the owner learns of a
    /// wrong address while still thinking of the job.
    pub fn is_new_watch(&self) -> bool {
        self.next.is_some() && self.seen.is_none() && self.failures == 0 && self.gate.starts_with("watch: ")
    }

    /// Returns whether the clock has been set back since its next slot was written.
    pub fn is_set_back(&self, now: DateTime<Utc>) -> bool {
        self.next.is_some() && self.written_at.is_some_and(|written| due::is_set_back(written, now))
    }

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let time = |column| row.get::<_, Option<String>>(column).map(|text| text.as_deref().and_then(parse_time));
        let slot = row.get::<_, Option<String>>(5)?.as_deref().and_then(read_slot);
        Ok(Self {
            name: row.get(0)?,
            read_from: row.get(1)?,
            gate: row.get(2)?,
            rule: row.get::<_, Option<String>>(3)?.and_then(|text| serde_json::from_str(&text).ok()),
            zone: row.get(4)?,
            next: slot.zip(time(6)?).map(|(civil, at)| Slot { civil, at }),
            is_asked: row.get(7)?,
            created_at: time(8)?,
            written_at: time(9)?,
            seen: row.get(10)?,
            failures: row.get(11)?,
            error: row.get(12)?,
        })
    }
}

impl<S: ReadStore> Jobs<S> {
    /// All planned jobs by name.
    pub fn list_jobs(&self) -> Result<Vec<JobRow>> {
        let sql = format!("{} ORDER BY name", JobRow::SELECT);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], JobRow::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// Returns whether a job is due, requested, or was planned before the clock was set back.
    pub fn has_due_job(&self, now: DateTime<Utc>) -> Result<bool> {
        // The last line mirrors `JobRow::is_new_watch`.
        let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE next_at <= ?1 OR is_asked = 1
                   OR next_at IS NOT NULL AND written_at > ?2
                   OR next_at IS NOT NULL AND seen IS NULL AND failures = 0 AND gate LIKE 'watch: %')";
        Ok(self
            .0
            .conn()
            .prepare(sql)?
            .query_row((format_rfc3339(now), format_rfc3339(now + CLOCK_SLACK)), |row| row.get(0))?)
    }

    /// The time at which the next job is due.
    pub fn find_next_job_time(&self) -> Result<Option<DateTime<Utc>>> {
        let text = self.0.conn().query_row("SELECT min(next_at) FROM jobs WHERE next_at IS NOT NULL", [], |row| {
            read_optional_text(row, 0)
        })?;
        Ok(text.as_deref().and_then(parse_time))
    }

    /// The history of a job's slots from one slot on. It is needed after the clock was set back, when those slots come up again.
    pub fn job_history(&self, name: &str, from: NaiveDateTime) -> Result<SlotHistory> {
        let mut statement = self
            .0
            .conn()
            .prepare("SELECT slot, state FROM job_runs WHERE name = ?1 AND slot >= ?2 ORDER BY slot LIMIT ?3")?;
        let mut rows = statement.query((name, write_slot(from), MAX_HISTORY))?;
        let mut history = SlotHistory::default();
        while let Some(row) = rows.next()? {
            let Some(slot) = read_slot(&row.get::<_, String>(0)?) else { continue };
            match row.get::<_, String>(1)?.as_str() {
                "missed" => history.passed.push((slot, slot)),
                _ => drop(history.happened.insert(slot)),
            }
        }
        Ok(history)
    }
}

impl<S: WriteStore> Jobs<S> {
    /// Requests a run now, regardless of the plan. `false` if the job isn't planned yet.
    pub fn ask_for_job(&mut self, name: &str, now: DateTime<Utc>) -> Result<bool> {
        self.0.write(|tx| {
            let known = tx
                .query_row("SELECT 1 FROM jobs WHERE name = ?1", [name], |_| Ok(()))
                .optional()?
                .is_some();
            tx.execute(
                "INSERT INTO jobs (name, read_from, zone, is_asked, created_at, written_at) VALUES (?1, '', '', 1, ?2, ?2)
                 ON CONFLICT (name) DO UPDATE SET is_asked = 1",
                (name, format_rfc3339(now)),
            )?;
            Ok(known)
        })
    }
}

impl Jobs<&mut FencedStore<'_>> {
    /// Plans the jobs as in their files, and deletes the plans of those whose file is gone. An unchanged plan stays as it is. Stores the
    /// folder's state, `sign`, under `key`.
    pub fn plan_jobs(&mut self, plans: &[JobPlan], (key, sign): (&str, &str)) -> Result<()> {
        let now = self.0.now();
        let old = self.list_jobs()?;
        self.0.write(|tx| {
            for gone in old.iter().filter(|row| !plans.iter().any(|plan| plan.name == row.name)) {
                tx.execute("DELETE FROM jobs WHERE name = ?1", [&gone.name])?;
                tx.execute(
                    "UPDATE job_runs SET state = 'failed', ended_at = ?2, output = 'its file is gone, or isn''t understood any more'
                     WHERE name = ?1 AND state = 'open' AND cycle_id IS NULL",
                    (&gone.name, format_rfc3339(now)),
                )?;
            }
            // An unclaimed run of a paused job is dropped.
            for paused in plans.iter().filter(|plan| plan.next.is_none() && plan.read_from.starts_with("paused")) {
                tx.execute(
                    "UPDATE job_runs SET state = 'failed', ended_at = ?2, output = 'its job was paused'
                     WHERE name = ?1 AND state = 'open' AND cycle_id IS NULL",
                    (&paused.name, format_rfc3339(now)),
                )?;
            }
            for plan in plans {
                let row = old.iter().find(|row| row.name == plan.name);
                if !row.is_some_and(|row| row.read_from == plan.read_from && row.zone == plan.zone) {
                    write_plan(tx, plan, now)?;
                } else if row.is_some_and(|row| row.gate != plan.gate) {
                    tx.execute("UPDATE jobs SET gate = ?2, seen = NULL WHERE name = ?1", (&plan.name, &plan.gate))?;
                }
            }
            crate::upkeep::backoff::save_handled_value(tx, key, sign, now)
        })
    }

    /// Rewrites a next slot, after the clock was set back.
    pub fn set_next_job_slot(&mut self, name: &str, next: Option<Slot>) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| set_next(tx, name, next, now))
    }
}

/// Writes a plan; the result of the last check stays if the gate is unchanged.
fn write_plan(tx: &Transaction<'_>, plan: &JobPlan, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO jobs (name, read_from, gate, rule, zone, slot, next_at, created_at, written_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
         ON CONFLICT (name) DO UPDATE SET read_from = excluded.read_from, rule = excluded.rule, zone = excluded.zone,
             slot = excluded.slot, next_at = excluded.next_at, created_at = excluded.created_at,
             written_at = excluded.written_at, seen = CASE WHEN jobs.gate = excluded.gate THEN jobs.seen END, gate = excluded.gate,
             failures = 0, error = NULL",
        (
            &plan.name,
            &plan.read_from,
            &plan.gate,
            plan.rule.as_ref().map(to_json),
            &plan.zone,
            plan.next.map(|slot| write_slot(slot.civil)),
            plan.next.map(|slot| format_rfc3339(slot.at)),
            format_rfc3339(now),
        ),
    )?;
    Ok(())
}

pub(crate) fn set_next(tx: &Transaction<'_>, name: &str, next: Option<Slot>, now: DateTime<Utc>) -> Result<()> {
    let (slot, at) = (next.map(|slot| write_slot(slot.civil)), next.map(|slot| format_rfc3339(slot.at)));
    tx.execute(
        "UPDATE jobs SET slot = ?2, next_at = ?3, written_at = ?4 WHERE name = ?1",
        (name, slot, at, format_rfc3339(now)),
    )?;
    Ok(())
}

pub(crate) fn write_slot(slot: NaiveDateTime) -> String {
    slot.format(SLOT_FORMAT).to_string()
}

pub(crate) fn read_slot(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, SLOT_FORMAT).ok()
}
