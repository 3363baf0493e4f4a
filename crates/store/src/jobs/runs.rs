//! Runs of jobs. The look at a job's gate, its result, the next slot and the message are one transaction: a kill between two looks never
//! reports anything twice.

use chrono::{DateTime, NaiveDateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    schedule::Slot,
};

use super::rows;
use crate::{
    FencedStore, NewOutgoing, Result,
    areas::{Jobs, ReadStore, WriteStore},
    outbox::planned,
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// The number of runs kept per job.
const RUNS_KEPT: u32 = 200;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The gate is open, and the model has still to finish the work.
    Open,
    /// Its time passed without a run.
    Missed,
    /// The gate was shut, or found nothing new.
    Nothing,
    /// The gate found something, reported by rule.
    Told,
    /// The model has done the work.
    Worked,
    /// The run failed.
    Failed,
}

impl JobState {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Missed => "missed",
            Self::Nothing => "nothing",
            Self::Told => "told",
            Self::Worked => "worked",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Self {
        let all = [Self::Open, Self::Missed, Self::Nothing, Self::Told, Self::Worked];
        all.into_iter().find(|state| state.as_str() == text).unwrap_or(Self::Failed)
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRun {
    /// Its number.
    pub id: i64,
    /// The job.
    pub name: String,
    /// The civil slot; `None` if a person requested the run.
    pub slot: Option<NaiveDateTime>,
    /// The start time.
    pub started_at: Option<DateTime<Utc>>,
    /// The run's state.
    pub state: JobState,
    /// The cycle with the work.
    pub cycle_id: Option<String>,
    /// The gate's findings, which are untrusted text.
    pub found: Option<String>,
    /// The result.
    pub output: Option<String>,
}

/// A new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJobRun {
    /// The civil slot; `None` if a person requested the run.
    pub slot: Option<NaiveDateTime>,
    /// The run's state.
    pub state: JobState,
    /// The gate's findings.
    pub found: Option<String>,
    /// The result.
    pub output: Option<String>,
}

/// When a run's message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTime {
    /// At once.
    Now,
    /// When the quiet hours end.
    AfterQuietHours,
}

/// The result of a look at a due job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLook {
    /// The job.
    pub name: String,
    /// The next slot from now on.
    pub next: Option<Slot>,
    /// The runs to record: missed ones first, then the run itself.
    pub runs: Vec<NewJobRun>,
    /// The result to store for the next look; `None` keeps the stored one.
    pub seen: Option<String>,
    /// Success or the error of the look; `None` if there was no look.
    pub ended: Option<std::result::Result<(), String>>,
    /// The message, and when it is sent.
    pub message: Option<(NewOutgoing, MessageTime)>,
}

/// The end of a run with the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The run.
    pub run: i64,
    /// The new state.
    pub state: JobState,
    /// The result.
    pub output: String,
    /// The message, and when it is sent.
    pub message: Option<(NewOutgoing, MessageTime)>,
}

impl JobRun {
    const SELECT: &str = "SELECT id, name, slot, started_at, state, cycle_id, found, output FROM job_runs";

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            name: row.get(1)?,
            slot: row.get::<_, Option<String>>(2)?.as_deref().and_then(rows::read_slot),
            started_at: row.get::<_, Option<String>>(3)?.as_deref().and_then(parse_time),
            state: JobState::parse(&row.get::<_, String>(4)?),
            cycle_id: row.get(5)?,
            found: row.get(6)?,
            output: row.get(7)?,
        })
    }
}

impl<S: ReadStore> Jobs<S> {
    /// The latest runs, of one job or of all, newest first.
    pub fn job_runs(&self, name: Option<&str>, most: u32) -> Result<Vec<JobRun>> {
        let sql = format!("{} WHERE CAST(?1 AS TEXT) IS NULL OR name = ?1 ORDER BY id DESC LIMIT ?2", JobRun::SELECT);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map((name, most), JobRun::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// A run by its number.
    pub fn job_run(&self, id: i64) -> Result<Option<JobRun>> {
        let sql = format!("{} WHERE id = ?1", JobRun::SELECT);
        Ok(self.0.conn().prepare(&sql)?.query_row([id], JobRun::from_row).optional()?)
    }

    /// The runs that wait for the model and are unclaimed, oldest first.
    pub fn waiting_job_runs(&self) -> Result<Vec<JobRun>> {
        let sql = format!("{} WHERE state = 'open' AND cycle_id IS NULL ORDER BY id", JobRun::SELECT);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], JobRun::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// Returns whether a job has an unfinished run.
    pub fn has_open_job_run(&self, name: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM job_runs WHERE state = 'open' AND name = ?1)";
        Ok(self.0.conn().prepare(sql)?.query_row([name], |row| row.get(0))?)
    }

    /// The result of the job's last run before this one that had a result.
    pub fn last_job_output(&self, name: &str, before: i64) -> Result<Option<String>> {
        let sql = "SELECT output FROM job_runs WHERE name = ?1 AND id < ?2 AND state IN ('worked', 'told') ORDER BY id DESC LIMIT 1";
        let output = self.0.conn().prepare(sql)?.query_row((name, before), |row| row.get(0)).optional()?;
        Ok(output.flatten())
    }

    /// Returns whether a message waits for the end of the quiet hours.
    pub fn has_held_job_message(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM job_runs WHERE held IS NOT NULL)";
        Ok(self.0.conn().prepare(sql)?.query_row([], |row| row.get(0))?)
    }
}

impl Jobs<&mut FencedStore<'_>> {
    /// Records a look, in one transaction. A slot runs only once: nothing is reported for a repeat.
    pub fn record_job_look(&mut self, look: &JobLook) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| {
            let mut last = None;
            for run in &look.runs {
                last = insert(tx, &look.name, run, now)?;
            }
            tx.prepare(
                "DELETE FROM job_runs WHERE name = ?1 AND state != 'open' AND held IS NULL AND id <= (
                     SELECT id FROM job_runs WHERE name = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute((&look.name, RUNS_KEPT))?;
            rows::set_next(tx, &look.name, look.next, now)?;
            tx.execute(
                "UPDATE jobs SET is_asked = 0, seen = coalesce(?2, seen) WHERE name = ?1",
                (&look.name, &look.seen),
            )?;
            if let Some(ended) = &look.ended {
                note_end(tx, &look.name, ended.as_ref().err())?;
            }
            if let (Some(run), Some((message, time))) = (last, &look.message) {
                plan_run_message(tx, run, message, *time, now)?;
            }
            Ok(())
        })
    }

    /// Plans the messages that waited for the end of the quiet hours. `false` if there were none.
    pub fn say_held_job_messages(&mut self) -> Result<bool> {
        let now = self.0.now();
        self.0.write(|tx| {
            let mut statement = tx.prepare("SELECT id, held FROM job_runs WHERE held IS NOT NULL ORDER BY id")?;
            let held: Vec<(i64, String)> =
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?;
            for (id, held) in &held {
                // An unreadable message is still in the run's output.
                if let Ok(message) = serde_json::from_str::<NewOutgoing>(held) {
                    planned::insert(tx, &message, now)?;
                }
                tx.execute("UPDATE job_runs SET held = NULL WHERE id = ?1", [id])?;
            }
            Ok(!held.is_empty())
        })
    }

    /// Gives up the runs whose cycle was given up, or ended without reporting on them. Returns the jobs and the run numbers.
    pub fn fail_lost_job_runs(&mut self) -> Result<Vec<(String, i64)>> {
        let now = self.0.now();
        self.0.write(|tx| {
            let sql = "SELECT r.name, r.id FROM job_runs r JOIN cycles c ON c.id = r.cycle_id
                       WHERE r.state = 'open' AND c.state IN ('failed', 'abandoned', 'done')";
            let mut statement = tx.prepare(sql)?;
            let lost: Vec<(String, i64)> =
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<sql::QueryResult<_>>()?;
            for (name, id) in &lost {
                tx.execute(
                    "UPDATE job_runs SET state = 'failed', ended_at = ?2, output = 'its work was given up' WHERE id = ?1",
                    (id, format_rfc3339(now)),
                )?;
                tx.execute(
                    "UPDATE jobs SET failures = failures + 1, error = 'its work was given up' WHERE name = ?1",
                    [name],
                )?;
            }
            Ok(lost)
        })
    }
}

/// Records the cycle that works on a run.
pub(crate) fn record_cycle_of_run(tx: &Transaction<'_>, run: i64, cycle: &str) -> Result<()> {
    tx.execute("UPDATE job_runs SET cycle_id = ?2 WHERE id = ?1 AND state = 'open'", (run, cycle))?;
    Ok(())
}

/// Ends a run with the model; a finished run stays as it is.
pub(crate) fn end_run(tx: &Transaction<'_>, end: &JobEnd, cycle: &str, now: DateTime<Utc>) -> Result<()> {
    let name: Option<String> = tx
        .query_row(
            "UPDATE job_runs SET state = ?2, output = ?3, ended_at = ?4 WHERE id = ?1 AND state = 'open' RETURNING name",
            (end.run, end.state.as_str(), &end.output, format_rfc3339(now)),
            |row| row.get(0),
        )
        .optional()?;
    let Some(name) = name else { return Ok(()) };
    note_end(tx, &name, Some(&end.output).filter(|_| end.state == JobState::Failed))?;
    if let Some((message, time)) = &end.message {
        let message = NewOutgoing { cycle_id: Some(cycle.to_owned()), ..message.clone() };
        plan_run_message(tx, end.run, &message, *time, now)?;
    }
    Ok(())
}

/// Counts consecutive failures.
fn note_end(tx: &Transaction<'_>, name: &str, error: Option<&String>) -> Result<()> {
    tx.execute(
        "UPDATE jobs SET failures = (failures + 1) * ?2, error = ?3 WHERE name = ?1",
        (name, i64::from(error.is_some()), error),
    )?;
    Ok(())
}

/// Plans the message, or holds it until the quiet hours end.
fn plan_run_message(
    tx: &Transaction<'_>,
    run: i64,
    message: &NewOutgoing,
    time: MessageTime,
    now: DateTime<Utc>,
) -> Result<()> {
    let key = format!("job/{run}");
    let message = NewOutgoing { key: Some(key), ..message.clone() };
    match time {
        MessageTime::Now => {
            planned::insert(tx, &message, now)?;
        }
        MessageTime::AfterQuietHours => {
            tx.execute("UPDATE job_runs SET held = ?2 WHERE id = ?1", (run, to_json(&message)))?;
        }
    }
    Ok(())
}

/// Inserts a run; returns its number, or `None` if this slot has a run already.
fn insert(tx: &Transaction<'_>, name: &str, run: &NewJobRun, now: DateTime<Utc>) -> Result<Option<i64>> {
    let ended = (run.state != JobState::Open).then(|| format_rfc3339(now));
    Ok(tx
        .query_row(
            "INSERT INTO job_runs (name, slot, started_at, ended_at, state, found, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO NOTHING RETURNING id",
            (
                name,
                run.slot.map(rows::write_slot),
                format_rfc3339(now),
                ended,
                run.state.as_str(),
                &run.found,
                &run.output,
            ),
            |row| row.get(0),
        )
        .optional()?)
}
