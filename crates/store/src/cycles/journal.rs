//! The append-only journals of cycles.
//!
//! An [`Entry`] is written before the event it announces (a request's bytes, a call) and after the event it reports (a turn, an outcome).
//! A tool's [`Change`]s and its outcome are one transaction: a call with an outcome has happened exactly once, and a call without an
//! outcome has changed nothing here. The application's `cycle` folds a journal into its state, so a fresh cycle and a resumed cycle run
//! the same code.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::format_rfc3339,
    types::{ChatRef, Stop, Usage},
};
use reveille_policy::Verdict;

use super::{proposals, undo};
use crate::{
    FencedStore, JobEnd, MessageOutcome, NewOutgoing, NewReminder, Result, Round, ShownTask,
    areas::{Journal, ReadStore, WriteStore},
    cycles::claims,
    jobs::runs,
    messages::queue,
    outbox::{planned, shown},
    reminders::{nudged, rows},
    sql::{self, Transaction},
    upkeep::backoff,
};

/// A line of a cycle's journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The exact bytes the next request adds, and the queued messages in them.
    Said {
        /// Raw JSON of a user message.
        raw: String,
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// Keys of the one-time reasons that these bytes report; they count as handled once the cycle has ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        handles: Vec<String>,
        /// The commit up to which people's commits were shown; only in a cycle's opening.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        /// The authors of untrusted text among these bytes: a forward, a quotation, a file. `None` if only the person's own words or
        /// memory are in them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
    },
    /// A request is about to be sent.
    Asked,
    /// A turn was cut off or refused in transit: the cost counts, but the turn is never sent back.
    Discarded {
        /// The reason.
        why: String,
        /// The cost of the discarded turn.
        usage: Usage,
    },
    /// An assistant turn as received.
    Turn {
        /// Raw JSON array of content blocks.
        content: String,
        /// The reason for its end.
        stop: Stop,
        /// The turn's cost.
        usage: Usage,
    },
    /// The time worked since the last entry of this kind: the turn and the calls whose ends are journalled with it.
    Worked {
        /// Milliseconds.
        ms: u64,
    },
    /// The policy has decided on a call. If the policy asks, the cycle parks on a question.
    Judged {
        /// The call's id.
        call: String,
        /// The decision and its reasons.
        verdict: Verdict,
    },
    /// A person has decided on a call, or the question has expired.
    Decided {
        /// The call's id.
        call: String,
        /// Whether the call may run, once.
        is_approved: bool,
        /// The text for the model if the call is denied.
        why: String,
    },
    /// A tool call is about to run.
    Called {
        /// The call's id.
        call: String,
        /// The tool.
        name: String,
        /// Raw JSON arguments.
        input: String,
        /// The authors of untrusted text in the things this call names; `None` if everything it names is trusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
    },
    /// A tool call has ended.
    Outcome {
        /// The call's id.
        call: String,
        /// The tool.
        name: String,
        /// The text for the model.
        content: String,
        /// Whether the call failed.
        is_error: bool,
        /// The receipt in the past tense, for the episodic memory; `None` if nothing changed.
        receipt: Option<String>,
        /// Messages this call answered or put on hold.
        closed: Vec<i64>,
        /// The authors of untrusted text in `content`, for example a page or a program; `None` if all of it is the person's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
        /// An image for the model besides `content`, as a raw JSON image block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    },
    /// A text was recorded as the answer to these messages.
    Answered {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// The receipt for the episodic memory.
        receipt: String,
    },
    /// The user message before this entry asks the model for something that folding needs.
    ///
    /// This kind and the next are newer than the others. An older program can't read a journal with such entries: it gives up the open
    /// cycle without counting that as the cycle's fault, and starts its messages again.
    FoldAsked {
        /// The purpose.
        ask: FoldAsk,
        /// The length of the conversation, in tokens.
        tokens: u64,
    },
    /// The conversation was folded: a new conversation starts, and the rest of the journal stays in force.
    Folded {
        /// Raw JSON of its first user message.
        raw: String,
        /// The number of messages in the old conversation.
        messages: usize,
        /// The tokens of the old conversation.
        before: u64,
        /// The estimated tokens of the new conversation.
        after: u64,
    },
    /// A fallback model continues in a new conversation, and the rest of the journal stays in force. Content signed by one model never
    /// goes to another. The cycle's row names the new model from now on.
    ///
    /// An older program can't read this kind either: see [`Entry::FoldAsked`].
    Handed {
        /// The previous model.
        from: String,
        /// The new model.
        model: String,
        /// The new conversation's fixed parts, raw JSON.
        system: String,
        /// See `system`.
        tools: String,
        /// Raw JSON of its first user message.
        raw: String,
    },
    /// The plan was checked against the receipts.
    Verified {
        /// Steps without a receipt.
        not_done: Vec<String>,
    },
    /// A cycle without a model did all its work by rule, in the transaction that started it.
    ByRule {
        /// The receipt in the past tense, for the episodic memory.
        receipts: Vec<String>,
        /// As in [`Entry::Said`].
        handles: Vec<String>,
        /// As in [`Entry::Said`].
        head: Option<String>,
    },
}

/// The request to the model when folding a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldAsk {
    /// To write down what matters.
    Flush,
    /// To write the summary that begins a new conversation.
    Summary,
}

impl Entry {
    fn kind(&self) -> &'static str {
        match self {
            Self::Said { .. } => "said",
            Self::Asked => "asked",
            Self::Discarded { .. } => "discarded",
            Self::Turn { .. } => "turn",
            Self::Worked { .. } => "worked",
            Self::Judged { .. } => "judged",
            Self::Decided { .. } => "decided",
            Self::Called { .. } => "called",
            Self::Outcome { .. } => "outcome",
            Self::Answered { .. } => "answered",
            Self::FoldAsked { .. } => "fold_asked",
            Self::Folded { .. } => "folded",
            Self::Handed { .. } => "handed",
            Self::Verified { .. } => "verified",
            Self::ByRule { .. } => "by_rule",
        }
    }
}

/// An effect of a tool call as a value, applied together with the call's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A memory file's new content, published at the end of the cycle.
    File(StagedFile),
    /// A message to deliver after the commit.
    Send(NewOutgoing),
    /// These messages are done.
    Done {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// The outcome.
        outcome: MessageOutcome,
    },
    /// These messages wait for a model other than this one.
    Hold {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// The model that can't answer them.
        model: String,
    },
    /// A new reminder.
    AddReminder(NewReminder),
    /// A reminder is cancelled.
    EndReminder {
        /// Its number.
        id: i64,
    },
    /// Reminder slots are due: each fires once, together with its message.
    Fire(Round),
    /// The cycle starts or resumes a run of a standing job.
    TakeUpJob {
        /// The run.
        run: i64,
    },
    /// A run of a standing job is over.
    EndJob(JobEnd),
    /// An approved change of the assistant's own orders is applied.
    Agree {
        /// The proposal.
        proposal: i64,
    },
    /// The effect of a proposal has been reported.
    ToldOfProposal {
        /// The proposal.
        proposal: i64,
    },
    /// The answer to a nudge has been acted on.
    NudgeDone {
        /// The row of its message.
        outgoing_id: i64,
    },
    /// The next wake is to undo this wake and report the result to this chat.
    Undo {
        /// Its cycle's id.
        wake: String,
        /// The chat; 0 is the terminal.
        chat: ChatRef,
        /// Forum topic.
        thread_id: Option<i64>,
        /// The channel's id of the message that asked for the undo.
        reply_to: Option<i64>,
    },
    /// A chat is shown these tasks, numbered from 1.
    ShowTasks {
        /// The chat.
        chat: ChatRef,
        /// The tasks in order.
        tasks: Vec<ShownTask>,
    },
    /// A one-time reason was handled.
    Handled {
        /// The reason's key.
        key: String,
        /// A value stored with the key.
        value: String,
    },
}

/// The content a cycle wants a memory file to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Path in the repository.
    pub path: String,
    /// The content the cycle read; `None` if the file was missing.
    pub base: Option<String>,
    /// The new content.
    pub content: String,
}

impl<S: ReadStore> Journal<S> {
    /// The journal of a cycle, in order.
    pub fn read_journal(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let mut statement = self.0.conn().prepare("SELECT body FROM cycle_journal WHERE cycle_id = ?1 ORDER BY seq")?;
        let bodies =
            statement.query_map([cycle_id], |row| row.get::<_, String>(0))?.collect::<sql::QueryResult<Vec<_>>>()?;
        bodies
            .iter()
            .map(|body| {
                serde_json::from_str(body)
                    .map_err(|error| crate::StoreError::Damaged(format!("journal of {cycle_id}: {error}")))
            })
            .collect()
    }

    /// The files a cycle has staged.
    pub fn list_staged_files(&self, cycle_id: &str) -> Result<Vec<StagedFile>> {
        let mut statement =
            self.0.conn().prepare("SELECT path, base, content FROM cycle_files WHERE cycle_id = ?1 ORDER BY path")?;
        let rows = statement.query_map([cycle_id], |row| {
            Ok(StagedFile { path: row.get(0)?, base: row.get(1)?, content: row.get(2)? })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

impl Journal<&mut FencedStore<'_>> {
    /// Appends an entry and applies its changes, in one transaction.
    pub fn record_entry(&mut self, cycle_id: &str, entry: &Entry, changes: &[Change]) -> Result<()> {
        self.record_all(cycle_id, std::slice::from_ref(entry), changes)
    }

    /// As [`Journal::record_entry`], for entries that must be written together.
    pub fn record_all(&mut self, cycle_id: &str, entries: &[Entry], changes: &[Change]) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| {
            entries.iter().try_for_each(|entry| append_entry(tx, cycle_id, entry, now))?;
            changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now))
        })
    }

    /// Applies changes that need no entry.
    pub fn apply_changes(&mut self, cycle_id: &str, changes: &[Change]) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now)))
    }
}

pub(crate) fn append_entry(tx: &Transaction<'_>, cycle_id: &str, entry: &Entry, now: DateTime<Utc>) -> Result<()> {
    tx.prepare(
        "INSERT INTO cycle_journal (cycle_id, seq, at, kind, body)
         VALUES (?1, (SELECT COALESCE(max(seq), 0) + 1 FROM cycle_journal WHERE cycle_id = ?1), ?2, ?3, ?4)",
    )?
    .execute((cycle_id, format_rfc3339(now), entry.kind(), crate::to_json(entry)))?;
    if let Entry::Said { messages, .. } = entry {
        // fault: cycle-doesnt-mark-messages
        claims::record_claim(tx, messages, cycle_id)?;
    }
    if let Entry::Handed { model, .. } = entry {
        tx.execute("UPDATE cycles SET model = ?2 WHERE id = ?1", (cycle_id, model))?;
    }
    Ok(())
}

pub(crate) fn carry_out(tx: &Transaction<'_>, cycle_id: &str, change: &Change, now: DateTime<Utc>) -> Result<()> {
    match change {
        Change::File(file) => {
            // The base is the content the cycle read first; later edits of the same file keep it.
            tx.execute(
                // fault: files-base-read-last
                "INSERT INTO cycle_files (cycle_id, path, base, content) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (cycle_id, path) DO UPDATE SET content = excluded.content",
                // fault end: files-base-read-last
                (cycle_id, &file.path, &file.base, &file.content),
            )?;
        }
        Change::Send(message) => {
            let message = NewOutgoing { cycle_id: Some(cycle_id.to_owned()), ..message.clone() };
            planned::insert(tx, &message, now)?;
        }
        Change::Done { messages, outcome } => queue::finish_messages(tx, messages, *outcome, cycle_id, now)?,
        Change::Hold { messages, model } => queue::hold_messages(tx, messages, model, cycle_id)?,
        Change::AddReminder(reminder) => rows::insert_reminder(tx, reminder, Some(cycle_id), now)?,
        Change::EndReminder { id } => rows::cancel_reminder(tx, *id, Some(cycle_id))?,
        Change::Fire(round) => rows::fire_reminders(tx, round, cycle_id, now)?,
        Change::TakeUpJob { run } => runs::record_cycle_of_run(tx, *run, cycle_id)?,
        Change::EndJob(end) => runs::end_run(tx, end, cycle_id, now)?,
        Change::Agree { proposal } => proposals::record_agreement(tx, *proposal, now)?,
        Change::ToldOfProposal { proposal } => proposals::record_report(tx, *proposal)?,
        Change::NudgeDone { outgoing_id } => nudged::close_nudge(tx, *outgoing_id)?,
        Change::Undo { wake, chat, thread_id, reply_to } => {
            let answer =
                NewOutgoing { chat: *chat, thread_id: *thread_id, reply_to: *reply_to, ..NewOutgoing::default() };
            undo::order_undo(tx, wake, &answer, now)?;
        }
        Change::ShowTasks { chat, tasks } => shown::record_shown_tasks(tx, *chat, tasks)?,
        Change::Handled { key, value } => backoff::save_handled_value(tx, key, value, now)?,
    }
    Ok(())
}
