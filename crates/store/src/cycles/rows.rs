//! Cycles: a row each, from start to end. The events within a cycle are in its journal ([`super::journal`]).

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::{ChatRef, OwnWork},
};

use super::{approvals, journal::append_entry, undo, undo_line};
use crate::{
    Entry, Fence, FencedStore, NewOutgoing, Result,
    areas::{Cycles, ReadStore, WriteStore},
    messages::queue,
    outbox::planned,
    outcome::OPEN,
    recordings::rows::{self, NewRecording},
    sql::{self, OptionalExtension as _, Row, Transaction},
    upkeep::backoff,
};

/// The model name of a cycle done by rule, without a model.
pub const NO_MODEL: &str = "none";

/// The states of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleState {
    /// Under way, or cut off by a crash.
    Running,
    /// The model was unreachable: the cycle resumes after `not_before`.
    Waiting,
    /// Waiting for a person.
    Parked,
    /// Committed.
    Done,
    /// Ended without success.
    Failed,
    /// Given up after too many tries.
    Abandoned,
}

impl CycleState {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }

    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "running" => Self::Running,
            "waiting" => Self::Waiting,
            "parked" => Self::Parked,
            "done" => Self::Done,
            "failed" => Self::Failed,
            _ => Self::Abandoned,
        }
    }
}

/// The data of a cycle at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCycle {
    /// `<UTC YYYYMMDDTHHMMSSZ>-<pid>`, with `-2` and so on if one process starts several in a second.
    pub id: String,
    /// The wake's trigger (`cron`, `nudge`, `say`, …).
    pub trigger: String,
    /// The reasons for people.
    pub reasons: Vec<String>,
    /// The chat whose messages the cycle answers, if any.
    pub chat: Option<ChatRef>,
    /// The forum topic of its messages.
    pub thread_id: Option<i64>,
    /// The model's name, or [`NO_MODEL`].
    pub model: String,
    /// The conversation's fixed parts, raw JSON.
    pub system: String,
    /// See `system`.
    pub tools: String,
    /// The background job; `None` for a request, or for several things.
    pub work: Option<OwnWork>,
}

impl NewCycle {
    /// Returns whether the whole cycle is done by rule, without a model.
    pub fn is_by_rule(&self) -> bool {
        self.model == NO_MODEL
    }
}

/// A cycle as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleRow {
    /// The data at its start.
    pub cycle: NewCycle,
    /// Its state.
    pub state: CycleState,
    /// The start time.
    pub started_at: Option<DateTime<Utc>>,
    /// Resumptions after a crash, a kill or a time-out.
    pub tries: u32,
    /// Whether its last run was cut off and isn't counted among the tries yet. A run that ended in order, by any error, leaves this
    /// `false`.
    pub was_cut_off: bool,
    /// The earliest time to resume.
    pub not_before: Option<DateTime<Utc>>,
    /// The end time.
    pub ended_at: Option<DateTime<Utc>>,
    /// Its commit.
    pub commit_id: Option<String>,
    /// The error.
    pub error: Option<String>,
    /// The deadline of its open question, if any.
    pub asks_until: Option<DateTime<Utc>>,
}

impl CycleRow {
    pub(crate) const COLUMNS: &str = "id, trigger, reasons, chat_id, thread_id, model, system, tools, state, tries, not_before, \
                           started_at, ended_at, commit_id, error, was_cut_off, \
                           (SELECT max(expires_at) FROM approvals WHERE cycle_id = cycles.id AND state = 'pending'), work";

    /// The same columns without the conversation's fixed parts, which are long.
    pub(crate) const BRIEF_COLUMNS: &str = "id, trigger, reasons, chat_id, thread_id, model, '[]', '[]', state, tries, not_before, \
                           started_at, ended_at, commit_id, error, was_cut_off, \
                           (SELECT max(expires_at) FROM approvals WHERE cycle_id = cycles.id AND state = 'pending'), work";

    pub(crate) fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let time = |index: usize| -> sql::QueryResult<Option<DateTime<Utc>>> {
            Ok(row.get::<_, Option<String>>(index)?.as_deref().and_then(parse_time))
        };
        Ok(Self {
            cycle: NewCycle {
                id: row.get(0)?,
                trigger: row.get(1)?,
                reasons: serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default(),
                chat: row.get(3)?,
                thread_id: row.get(4)?,
                model: row.get(5)?,
                system: row.get(6)?,
                tools: row.get(7)?,
                work: row.get::<_, Option<String>>(17)?.and_then(|work| work.parse().ok()),
            },
            state: CycleState::parse(&row.get::<_, String>(8)?),
            tries: row.get(9)?,
            not_before: time(10)?,
            started_at: time(11)?,
            ended_at: time(12)?,
            commit_id: row.get(13)?,
            error: row.get(14)?,
            was_cut_off: row.get(15)?,
            asks_until: time(16)?,
        })
    }
}

impl<S: ReadStore> Cycles<S> {
    /// The cycles to resume, oldest first: running ones belong to a holder that is gone, waiting ones wait for the model, parked ones for
    /// a person.
    pub fn open_cycles(&self) -> Result<Vec<CycleRow>> {
        let sql = format!("SELECT {} FROM cycles WHERE state IN {OPEN} ORDER BY started_at, id", CycleRow::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], CycleRow::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The latest cycle.
    pub fn last_cycle(&self) -> Result<Option<CycleRow>> {
        let sql = format!("SELECT {} FROM cycles ORDER BY started_at DESC, id DESC LIMIT 1", CycleRow::COLUMNS);
        Ok(self.0.conn().query_row(&sql, [], CycleRow::from_row).optional()?)
    }

    /// One cycle by its id.
    pub fn find_cycle(&self, id: &str) -> Result<Option<CycleRow>> {
        let sql = format!("SELECT {} FROM cycles WHERE id = ?1", CycleRow::COLUMNS);
        Ok(self.0.conn().query_row(&sql, [id], CycleRow::from_row).optional()?)
    }

    /// The ended cycles of background jobs whose name has this prefix, oldest first.
    pub fn ended_work(&self, work: &str) -> Result<Vec<CycleRow>> {
        let sql = format!(
            "SELECT {} FROM cycles WHERE work IS NOT NULL AND substr(work, 1, length(?1)) = ?1 AND state IN ('done', 'failed', 'abandoned')
             ORDER BY started_at, id",
            CycleRow::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([work], CycleRow::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The given-up cycles that had claimed one of these messages, oldest first, including messages claimed again later.
    pub fn list_abandoned_cycles(&self, messages: &[i64]) -> Result<Vec<CycleRow>> {
        let sql = format!(
            "SELECT {} FROM cycles WHERE state = 'abandoned' AND id IN (
                 SELECT cycle_id FROM taken_up WHERE message_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))
             ORDER BY started_at, id",
            CycleRow::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([crate::to_json(&messages)], CycleRow::from_row)?.collect::<sql::QueryResult<_>>()?)
    }
}

impl Cycles<&mut FencedStore<'_>> {
    /// Resumes a cycle.
    pub fn resume_cycle(&mut self, id: &str) -> Result<()> {
        let fence = self.0.fence();
        self.0.write(|tx| {
            tx.execute(
                "UPDATE cycles SET state = 'running', fence = ?2, was_cut_off = 0, not_before = NULL, error = NULL WHERE id = ?1",
                (id, fence.0),
            )?;
            Ok(())
        })
    }

    /// Records that a crash, a kill or a time-out cut off a running cycle; recording it twice counts once. For a cycle that never
    /// started, only its `messages` are known. The cut then counts as a failure of these messages, without a wait, since the likely cause
    /// is a kill by a person. `notice` reports those that are dead letters now.
    pub fn note_cut_off(&mut self, id: &str, messages: &[i64], notice: Option<&NewOutgoing>) -> Result<()> {
        let now = self.0.now();
        self.0.write_relaxed(|tx| {
            let is_begun: bool =
                tx.query_row("SELECT EXISTS (SELECT 1 FROM cycles WHERE id = ?1)", [id], |row| row.get(0))?;
            if is_begun {
                tx.execute("UPDATE cycles SET was_cut_off = 1 WHERE id = ?1 AND state = 'running'", [id])?;
            } else {
                for message in messages {
                    queue::count_failure(tx, *message, id, now)?;
                }
                notice.map(|notice| planned::insert(tx, notice, now)).transpose()?;
            }
            Ok(())
        })
    }

    /// Counts the recorded cut as one of the cycle's few tries, before the wake reads anything of the cycle: if that ends the wake too,
    /// the next try is counted.
    pub fn count_try(&mut self, id: &str) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE cycles SET tries = tries + 1, was_cut_off = 0 WHERE id = ?1 AND was_cut_off = 1", [id])?;
            Ok(())
        })
    }

    /// Records the error that ended the wake in the middle of a cycle, for people. The cycle resumes all the same.
    pub fn note_trouble(&mut self, id: &str, why: &str) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE cycles SET error = ?2 WHERE id = ?1 AND state = 'running'", (id, why))?;
            Ok(())
        })
    }

    /// Makes a cycle wait until `not_before`.
    pub fn pause_cycle(&mut self, id: &str, not_before: DateTime<Utc>, why: &str) -> Result<()> {
        self.0.write(|tx| {
            tx.execute(
                "UPDATE cycles SET state = 'waiting', not_before = ?2, error = ?3 WHERE id = ?1",
                (id, format_rfc3339(not_before), why),
            )?;
            Ok(())
        })
    }

    /// Ends a cycle in one transaction: its state, its commit, the settled reasons, the repairs it noted and its notice. A cycle that
    /// failed returns its unanswered messages to the queue with one more attempt counted; the third attempt puts them on hold as dead
    /// letters.
    pub fn end_cycle(&mut self, id: &str, end: &CycleEnd<'_>) -> Result<()> {
        let now = self.0.now();
        // After a power cut that loses this, the cycle is still open: the next wake finds its synced commit and ends it again, or tries
        // it again. Its texts wait in the outbox, and leave only after a synced write.
        self.0.write_relaxed(|tx| {
            tx.execute(
                "UPDATE cycles SET state = ?2, ended_at = ?3, commit_id = ?4, error = ?5,
                     has_changed = CASE WHEN EXISTS (SELECT 1 FROM cycle_files f WHERE f.cycle_id = ?1 AND f.content IS DISTINCT FROM f.base)
                         OR EXISTS (SELECT 1 FROM reminders r WHERE r.cycle_id = ?1 OR r.ended_by = ?1) THEN 1 ELSE 0 END,
                     has_copies = ?6
                 WHERE id = ?1",
                (id, end.state.as_str(), format_rfc3339(now), end.commit_id, end.error, end.has_copies),
            )?;
            for key in end.handled {
                backoff::save_handled_value(tx, key, "", now)?;
            }
            if let Some(head) = end.head_seen {
                backoff::save_handled_value(tx, backoff::HEAD_SEEN, head, now)?;
            }
            end.notice.map(|notice| planned::insert(tx, notice, now)).transpose()?;
            for repair in end.repairs {
                tx.execute("UPDATE repairs SET cycle_id = ?2 WHERE id = ?1", (repair, id))?;
            }
            queue::fail_messages(tx, end.failed_messages, id, now)?;
            queue::make_dead_letters(tx, end.dead_messages, id, now)?;
            if end.state == CycleState::Done {
                undo::complete_undo(tx, id, now)?;
            }
            end.recording.map(|recording| rows::save_recording(tx, recording, now)).transpose()?;
            approvals::withdraw_questions(tx, id)?;
            undo_line::note_wake(tx, id, now)?;
            tx.execute("DELETE FROM cycle_files WHERE cycle_id = ?1", [id])?;
            Ok(())
        })
    }
}

/// The end of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct CycleEnd<'a> {
    /// Done, failed, parked or abandoned.
    pub state: CycleState,
    /// Its commit.
    pub commit_id: Option<&'a str>,
    /// The error.
    pub error: Option<&'a str>,
    /// The keys of reasons that are settled.
    pub handled: &'a [String],
    /// The commit up to which people's commits are settled; `None` if unknown.
    pub head_seen: Option<&'a str>,
    /// The repairs reported in its episodic entry.
    pub repairs: &'a [i64],
    /// Whether copies exist of the files it changed in a person's folders.
    pub has_copies: bool,
    /// The messages of a failed cycle.
    pub failed_messages: &'a [i64],
    /// The messages that only a person can retry.
    pub dead_messages: &'a [i64],
    /// An extra text for its person, besides the cycle's own replies.
    pub notice: Option<&'a NewOutgoing>,
    /// The recording to keep beyond the journal.
    pub recording: Option<&'a NewRecording>,
}

impl CycleEnd<'_> {
    /// An end that leaves nothing behind.
    pub fn new(state: CycleState) -> Self {
        Self {
            state,
            commit_id: None,
            error: None,
            handled: &[],
            head_seen: None,
            repairs: &[],
            has_copies: false,
            failed_messages: &[],
            dead_messages: &[],
            notice: None,
            recording: None,
        }
    }
}

/// Inserts a cycle's row with its first journal entries.
pub(crate) fn insert_cycle(
    tx: &Transaction<'_>,
    fence: Fence,
    cycle: &NewCycle,
    entries: &[Entry],
    now: DateTime<Utc>,
) -> Result<()> {
    tx.execute(
        "INSERT INTO cycles (id, state, trigger, reasons, chat_id, thread_id, model, system, tools, started_at, fence, work)
         VALUES (?1, 'running', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        sql::params![
            cycle.id,
            cycle.trigger,
            crate::to_json(&cycle.reasons),
            cycle.chat,
            cycle.thread_id,
            cycle.model,
            cycle.system,
            cycle.tools,
            format_rfc3339(now),
            fence.0,
            cycle.work.as_ref().map(ToString::to_string)
        ],
    )?;
    entries.iter().try_for_each(|entry| append_entry(tx, &cycle.id, entry, now))
}
