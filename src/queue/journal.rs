//! Cycles and their append-only journals.
//!
//! An [`Entry`] is written before what it announces (a request's bytes, a call) and after what it reports (a turn, an
//! outcome). A tool's [`Change`]s and its outcome are one transaction, so a call with an outcome has happened exactly once
//! and a call without one has changed nothing here. [`crate::cycle`] folds a journal into its state: a fresh cycle and
//! a resumed one run the same code.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, Row, Transaction};

use super::{Fence, NewOutgoing, NewReminder, Result, Store, inbox, outbox, reminders, taken_up, undo, upkeep};
use crate::{
    clock::{parse_time, rfc3339},
    model::{Stop, Usage},
};

/// A line of a cycle's journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The exact bytes that the next request adds, and the queued messages they carry.
    Said {
        /// Raw JSON of a user message.
        raw: String,
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// Keys of the reasons that it tells of: they are reasons no more once the cycle has ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        handles: Vec<String>,
        /// The commit up to which people's commits were shown; only in a cycle's opening.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
    },
    /// A request is about to be sent.
    Asked,
    /// A turn was cut off or refused in transit: counted, never sent back.
    Discarded {
        /// What happened.
        why: String,
        /// What it cost all the same.
        usage: Usage,
    },
    /// An assistant turn as received.
    Turn {
        /// Raw JSON array of content blocks.
        content: String,
        /// Why it ended.
        stop: Stop,
        /// What it cost.
        usage: Usage,
    },
    /// A tool call is about to run.
    Called {
        /// The call's id.
        call: String,
        /// The tool.
        name: String,
        /// Raw JSON arguments.
        input: String,
    },
    /// A tool call has ended.
    Outcome {
        /// The call's id.
        call: String,
        /// The tool.
        name: String,
        /// What the mind is told.
        content: String,
        /// Whether it failed.
        is_error: bool,
        /// What happened, in the past tense, for the episodic memory; none when nothing was changed.
        receipt: Option<String>,
        /// Messages that this call answered or put aside.
        closed: Vec<i64>,
    },
    /// A text was taken as the answer to these messages.
    Answered {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// What happened, for the episodic memory.
        receipt: String,
    },
    /// The plan was held against the receipts.
    Verified {
        /// Steps without a receipt.
        not_done: Vec<String>,
    },
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Self::Said { .. } => "said",
            Self::Asked => "asked",
            Self::Discarded { .. } => "discarded",
            Self::Turn { .. } => "turn",
            Self::Called { .. } => "called",
            Self::Outcome { .. } => "outcome",
            Self::Answered { .. } => "answered",
            Self::Verified { .. } => "verified",
        }
    }
}

/// What a tool call does, as a value: carried out together with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A memory file's new content, published at the end of the cycle.
    File(StagedFile),
    /// A message to be delivered after the commit.
    Send(NewOutgoing),
    /// These messages are done, with this outcome (`answered`, `refused`).
    Done {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// Why.
        outcome: &'static str,
    },
    /// These messages wait for another mind than this one.
    Hold {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// The mind that can't answer them.
        mind: String,
    },
    /// A new reminder.
    AddReminder(NewReminder),
    /// A reminder ends as `done` or `cancelled`.
    EndReminder {
        /// Its number.
        id: i64,
        /// The state it ends in.
        state: &'static str,
    },
    /// Something that is a reason once was handled.
    Handled {
        /// Its key.
        key: String,
        /// A value kept with it.
        value: String,
    },
}

/// A memory file as a cycle wants it to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Path in the repository.
    pub path: String,
    /// What the cycle read; `None`: the file was not there.
    pub base: Option<String>,
    /// What it shall be.
    pub content: String,
}

/// The states of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleState {
    /// Under way, or cut off by a crash.
    Running,
    /// The mind couldn't be reached: it goes on after `not_before`.
    Waiting,
    /// It waits for a person.
    Parked,
    /// Committed.
    Done,
    /// Ended without success.
    Failed,
    /// Given up after too many tries.
    Abandoned,
}

impl CycleState {
    /// As the database writes it.
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

    fn parse(text: &str) -> Self {
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

/// What is known of a cycle when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCycle {
    /// `<UTC YYYYMMDDTHHMMSSZ>-<pid>`, counted from `-2` on where one process begins several in a second.
    pub id: String,
    /// What started the wake (`cron`, `nudge`, `say`, …).
    pub trigger: String,
    /// Why it was due, for people.
    pub reasons: Vec<String>,
    /// The one chat whose messages it answers.
    pub chat_id: Option<i64>,
    /// Forum topic of its messages.
    pub thread_id: Option<i64>,
    /// The mind's name.
    pub model: String,
    /// The conversation's fixed parts, raw JSON.
    pub system: String,
    /// See `system`.
    pub tools: String,
}

/// A cycle as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleRow {
    /// What it began with.
    pub cycle: NewCycle,
    /// Its state.
    pub state: CycleState,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// Resumptions after a crash, a kill or a time-out.
    pub tries: u32,
    /// Whether its last run ended by one of these, which isn't counted among its tries yet. A run that ended in order, by
    /// whatever error, leaves it `false`.
    pub was_cut_off: bool,
    /// Not to be resumed before.
    pub not_before: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Its commit.
    pub commit_id: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl CycleRow {
    pub(super) const COLUMNS: &str = "id, trigger, reasons, chat_id, thread_id, model, system, tools, state, tries, not_before, \
                           started_at, ended_at, commit_id, error, was_cut_off";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let time = |index: usize| -> rusqlite::Result<Option<DateTime<Utc>>> {
            Ok(row.get::<_, Option<String>>(index)?.as_deref().and_then(parse_time))
        };
        Ok(Self {
            cycle: NewCycle {
                id: row.get(0)?,
                trigger: row.get(1)?,
                reasons: serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default(),
                chat_id: row.get(3)?,
                thread_id: row.get(4)?,
                model: row.get(5)?,
                system: row.get(6)?,
                tools: row.get(7)?,
            },
            state: CycleState::parse(&row.get::<_, String>(8)?),
            tries: row.get(9)?,
            not_before: time(10)?,
            started_at: time(11)?,
            ended_at: time(12)?,
            commit_id: row.get(13)?,
            error: row.get(14)?,
            was_cut_off: row.get(15)?,
        })
    }
}

impl Store {
    /// Appends an entry and carries out its changes, in one transaction.
    pub fn record(
        &mut self,
        fence: Fence,
        cycle_id: &str,
        entry: &Entry,
        changes: &[Change],
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.fenced(fence, |tx| {
            append(tx, cycle_id, entry, now)?;
            changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now))
        })
    }

    /// Carries out changes that need no entry.
    pub fn change(&mut self, fence: Fence, cycle_id: &str, changes: &[Change], now: DateTime<Utc>) -> Result<()> {
        self.fenced(fence, |tx| changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now)))
    }

    /// The journal of a cycle, in order.
    pub fn journal(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let mut statement = self.conn.prepare("SELECT body FROM cycle_journal WHERE cycle_id = ?1 ORDER BY seq")?;
        let bodies =
            statement.query_map([cycle_id], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        bodies
            .iter()
            .map(|body| {
                serde_json::from_str(body)
                    .map_err(|error| super::StoreError::Damaged(format!("journal of {cycle_id}: {error}")))
            })
            .collect()
    }

    /// Files that a cycle has staged.
    pub fn staged(&self, cycle_id: &str) -> Result<Vec<StagedFile>> {
        let mut statement =
            self.conn.prepare("SELECT path, base, content FROM cycle_files WHERE cycle_id = ?1 ORDER BY path")?;
        let rows = statement.query_map([cycle_id], |row| {
            Ok(StagedFile { path: row.get(0)?, base: row.get(1)?, content: row.get(2)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Cycles to be resumed, oldest first: running ones belong to a holder that is gone, waiting ones wait for the mind.
    pub fn open_cycles(&self) -> Result<Vec<CycleRow>> {
        let sql = format!(
            "SELECT {} FROM cycles WHERE state IN ('running', 'waiting') ORDER BY started_at, id",
            CycleRow::COLUMNS
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map([], CycleRow::read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The cycle that began last.
    pub fn last_cycle(&self) -> Result<Option<CycleRow>> {
        let sql = format!("SELECT {} FROM cycles ORDER BY started_at DESC, id DESC LIMIT 1", CycleRow::COLUMNS);
        Ok(self.conn.query_row(&sql, [], CycleRow::read).optional()?)
    }

    /// The cycles that began last, newest first: those of one chat, or all.
    pub fn last_cycles(&self, chat_id: Option<i64>, limit: usize) -> Result<Vec<CycleRow>> {
        let sql = format!(
            "SELECT {} FROM cycles WHERE ?1 IS NULL OR chat_id = ?1 ORDER BY started_at DESC, id DESC LIMIT ?2",
            CycleRow::COLUMNS
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map((chat_id, limit as i64), CycleRow::read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// One cycle by its id.
    pub fn cycle(&self, id: &str) -> Result<Option<CycleRow>> {
        let sql = format!("SELECT {} FROM cycles WHERE id = ?1", CycleRow::COLUMNS);
        Ok(self.conn.query_row(&sql, [id], CycleRow::read).optional()?)
    }

    /// The given-up cycles that had taken up one of these messages, oldest first, however many took it up after them.
    pub fn given_up_with(&self, messages: &[i64]) -> Result<Vec<CycleRow>> {
        let sql = format!(
            "SELECT {} FROM cycles WHERE state = 'abandoned' AND id IN (
                 SELECT cycle_id FROM taken_up WHERE message_id IN (SELECT value FROM json_each(?1)))
             ORDER BY started_at, id",
            CycleRow::COLUMNS
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        Ok(statement.query_map([super::json(&messages)], CycleRow::read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Takes a cycle up again; `counts` says whether this is one of its few tries.
    pub fn resume_cycle(&mut self, fence: Fence, id: &str, counts: bool) -> Result<()> {
        self.fenced(fence, |tx| {
            tx.execute(
                "UPDATE cycles SET state = 'running', fence = ?2, tries = tries + ?3, was_cut_off = 0, not_before = NULL, error = NULL
                 WHERE id = ?1",
                (id, fence.0, i64::from(counts)),
            )?;
            Ok(())
        })
    }

    /// Takes note that a running cycle was cut off by a crash, a kill or a time-out. Noted twice it is the same one.
    pub fn note_cut_off(&mut self, fence: Fence, id: &str) -> Result<()> {
        self.fenced_relaxed(fence, |tx| {
            tx.execute("UPDATE cycles SET was_cut_off = 1 WHERE id = ?1 AND state = 'running'", [id])?;
            Ok(())
        })
    }

    /// Takes note of the error that ended the wake in the middle of a cycle, for people: it is gone on with all the same.
    pub fn note_trouble(&mut self, fence: Fence, id: &str, why: &str) -> Result<()> {
        self.fenced_relaxed(fence, |tx| {
            tx.execute("UPDATE cycles SET error = ?2 WHERE id = ?1 AND state = 'running'", (id, why))?;
            Ok(())
        })
    }

    /// Lets a cycle wait until `not_before`.
    pub fn pause_cycle(&mut self, fence: Fence, id: &str, not_before: DateTime<Utc>, why: &str) -> Result<()> {
        self.fenced(fence, |tx| {
            tx.execute(
                "UPDATE cycles SET state = 'waiting', not_before = ?2, error = ?3 WHERE id = ?1",
                (id, rfc3339(not_before), why),
            )?;
            Ok(())
        })
    }

    /// Ends a cycle: its state, its commit, the keys it handled and the repairs it noted, in one transaction. A cycle that
    /// didn't succeed gives its unanswered messages back with one more attempt against them; the third puts them aside as dead.
    pub fn end_cycle(&mut self, fence: Fence, id: &str, end: &CycleEnd<'_>, now: DateTime<Utc>) -> Result<()> {
        self.fenced(fence, |tx| {
            tx.execute(
                "UPDATE cycles SET state = ?2, ended_at = ?3, commit_id = ?4, error = ?5 WHERE id = ?1",
                (id, end.state.as_str(), rfc3339(now), end.commit_id, end.error),
            )?;
            for key in end.handled {
                upkeep::set_handled(tx, key, "", now)?;
            }
            for repair in end.repairs {
                tx.execute("UPDATE repairs SET cycle_id = ?2 WHERE id = ?1", (repair, id))?;
            }
            inbox::fail(tx, end.failed_messages, id, now)?;
            if end.state == CycleState::Done {
                undo::conclude(tx, id, now)?;
            }
            tx.execute("DELETE FROM cycle_files WHERE cycle_id = ?1", [id])?;
            Ok(())
        })
    }
}

/// How a cycle ended.
#[derive(Debug, Clone, Copy)]
pub struct CycleEnd<'a> {
    /// Done, failed, parked or abandoned.
    pub state: CycleState,
    /// Its commit.
    pub commit_id: Option<&'a str>,
    /// What went wrong.
    pub error: Option<&'a str>,
    /// Keys that are reasons no more.
    pub handled: &'a [String],
    /// Repairs that its episodic entry tells of.
    pub repairs: &'a [i64],
    /// Messages that it failed on.
    pub failed_messages: &'a [i64],
}

/// Makes a cycle's row with its first journal entries.
pub(super) fn begin(
    tx: &Transaction<'_>,
    fence: Fence,
    cycle: &NewCycle,
    entries: &[Entry],
    now: DateTime<Utc>,
) -> Result<()> {
    tx.execute(
        "INSERT INTO cycles (id, state, trigger, reasons, chat_id, thread_id, model, system, tools, started_at, fence)
         VALUES (?1, 'running', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        rusqlite::params![
            cycle.id,
            cycle.trigger,
            super::json(&cycle.reasons),
            cycle.chat_id,
            cycle.thread_id,
            cycle.model,
            cycle.system,
            cycle.tools,
            rfc3339(now),
            fence.0
        ],
    )?;
    entries.iter().try_for_each(|entry| append(tx, &cycle.id, entry, now))
}

pub(super) fn append(tx: &Transaction<'_>, cycle_id: &str, entry: &Entry, now: DateTime<Utc>) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO cycle_journal (cycle_id, seq, at, kind, body)
         VALUES (?1, (SELECT COALESCE(max(seq), 0) + 1 FROM cycle_journal WHERE cycle_id = ?1), ?2, ?3, ?4)",
    )?
    .execute((cycle_id, rfc3339(now), entry.kind(), super::json(entry)))?;
    if let Entry::Said { messages, .. } = entry {
        taken_up::note(tx, messages, cycle_id)?;
    }
    Ok(())
}

fn carry_out(tx: &Transaction<'_>, cycle_id: &str, change: &Change, now: DateTime<Utc>) -> Result<()> {
    match change {
        Change::File(file) => {
            // The base is what the cycle read first; later edits of the same file keep it.
            tx.execute(
                "INSERT INTO cycle_files (cycle_id, path, base, content) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (cycle_id, path) DO UPDATE SET content = excluded.content",
                (cycle_id, &file.path, &file.base, &file.content),
            )?;
        }
        Change::Send(message) => {
            let message = NewOutgoing { cycle_id: Some(cycle_id.to_owned()), ..message.clone() };
            outbox::insert(tx, &message, now)?;
        }
        Change::Done { messages, outcome } => inbox::mark(tx, messages, outcome, cycle_id, now)?,
        Change::Hold { messages, mind } => inbox::hold(tx, messages, mind, cycle_id)?,
        Change::AddReminder(reminder) => reminders::add(tx, reminder, Some(cycle_id), now)?,
        Change::EndReminder { id, state } => reminders::end(tx, *id, state, cycle_id)?,
        Change::Handled { key, value } => upkeep::set_handled(tx, key, value, now)?,
    }
    Ok(())
}
