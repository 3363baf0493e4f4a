//! The append-only journals of cycles.
//!
//! An [`Entry`] is written before what it announces (a request's bytes, a call) and after what it reports (a turn, an
//! outcome). A tool's [`Change`]s and its outcome are one transaction, so a call with an outcome has happened exactly once
//! and a call without one has changed nothing here. [`crate::cycle`] folds a journal into its state: a fresh cycle and
//! a resumed one run the same code.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::rfc3339,
    types::{ChatRef, Stop, Usage},
};
use reveille_policy::Verdict;

use super::{proposals, undo};
use crate::{
    FencedStore, JobEnd, MessageOutcome, NewOutgoing, NewReminder, Result, Round, ShownTask, Store,
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
        /// Whose bytes these are, where they aren't only the asking person's own or the memory's: a forward, a quotation, a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
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
    /// So long was worked since the last entry of this kind: the turn and the calls whose ends are journalled with it.
    Worked {
        /// Milliseconds.
        ms: u64,
    },
    /// The policy has decided on a call. Where it asks, the cycle is parked on a question.
    Judged {
        /// The call's id.
        call: String,
        /// The decision and its reasons.
        verdict: Verdict,
    },
    /// A person has decided on a call, or nobody did in time.
    Decided {
        /// The call's id.
        call: String,
        /// Whether it may run, once.
        is_approved: bool,
        /// What the model is told when it may not.
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
        /// Whose bytes it will meet by what it names; none if it names nothing that others had a hand in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
    },
    /// A tool call has ended.
    Outcome {
        /// The call's id.
        call: String,
        /// The tool.
        name: String,
        /// What the model is told.
        content: String,
        /// Whether it failed.
        is_error: bool,
        /// What happened, in the past tense, for the episodic memory; none when nothing was changed.
        receipt: Option<String>,
        /// Messages that this call answered or put aside.
        closed: Vec<i64>,
        /// Whose bytes the model was told, where they aren't its person's: a page's, a program's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taint: Option<String>,
        /// A picture that the model is shown beside `content`: a raw JSON image block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    },
    /// A text was taken as the answer to these messages.
    Answered {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// What happened, for the episodic memory.
        receipt: String,
    },
    /// The user message before this one asks the model for something that folding needs.
    ///
    /// This kind and the next are newer than the others. An older program can't read a journal that holds them: it gives such an
    /// open cycle up without blame, and its messages are begun again.
    FoldAsked {
        /// For what.
        ask: FoldAsk,
        /// How long the conversation was, in tokens.
        tokens: u64,
    },
    /// The conversation was folded: a new one begins, and what the journal tells besides holds on.
    Folded {
        /// Raw JSON of its first user message.
        raw: String,
        /// Messages of the conversation that ended.
        messages: usize,
        /// Its tokens.
        before: u64,
        /// Those of the new one, as estimated.
        after: u64,
    },
    /// Another model goes on: a new conversation begins with it, and what the journal tells besides holds on. No model is sent what
    /// another one has signed. The cycle's row names this model from now on.
    ///
    /// As new as [`Entry::FoldAsked`], with the same effect on an older program.
    Handed {
        /// The model that had it before.
        from: String,
        /// The model that goes on.
        model: String,
        /// The new conversation's fixed parts, raw JSON.
        system: String,
        /// See `system`.
        tools: String,
        /// Raw JSON of its first user message.
        raw: String,
    },
    /// The plan was held against the receipts.
    Verified {
        /// Steps without a receipt.
        not_done: Vec<String>,
    },
    /// All that a cycle without a model does was done by rule, in the transaction that began it.
    ByRule {
        /// What happened, in the past tense, for the episodic memory.
        receipts: Vec<String>,
        /// As in [`Entry::Said`].
        handles: Vec<String>,
        /// As in [`Entry::Said`].
        head: Option<String>,
    },
}

/// What folding a conversation asks of the model.
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

/// What a tool call does, as a value: carried out together with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A memory file's new content, published at the end of the cycle.
    File(StagedFile),
    /// A message to be delivered after the commit.
    Send(NewOutgoing),
    /// These messages are done.
    Done {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
        /// Why.
        outcome: MessageOutcome,
    },
    /// These messages wait for another model than this one.
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
    /// Slots of reminders are due: each fires once, and its message with it.
    Fire(Round),
    /// The cycle takes up a run of a standing job.
    TakeUpJob {
        /// The run.
        run: i64,
    },
    /// A run of a standing job is over.
    EndJob(JobEnd),
    /// A proposed change of the assistant's own orders is carried out.
    Agree {
        /// The proposal.
        proposal: i64,
    },
    /// What a proposal did is told.
    ToldOfProposal {
        /// The proposal.
        proposal: i64,
    },
    /// What was answered to a nudge is done.
    NudgeDone {
        /// The row of its message.
        outgoing_id: i64,
    },
    /// A wake is to be undone by the next one, and this chat to be told what became of it.
    Undo {
        /// Its cycle's id.
        wake: String,
        /// The chat; 0 is the console.
        chat: ChatRef,
        /// Forum topic.
        thread_id: Option<i64>,
        /// The channel's id of the message that asked for it.
        reply_to: Option<i64>,
    },
    /// A chat is shown these tasks, numbered from 1.
    ShowTasks {
        /// The chat.
        chat: ChatRef,
        /// Which, in their order.
        tasks: Vec<ShownTask>,
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

impl Store {
    /// The journal of a cycle, in order.
    pub fn journal(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let mut statement = self.conn.prepare("SELECT body FROM cycle_journal WHERE cycle_id = ?1 ORDER BY seq")?;
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

    /// Files that a cycle has staged.
    pub fn staged(&self, cycle_id: &str) -> Result<Vec<StagedFile>> {
        let mut statement =
            self.conn.prepare("SELECT path, base, content FROM cycle_files WHERE cycle_id = ?1 ORDER BY path")?;
        let rows = statement.query_map([cycle_id], |row| {
            Ok(StagedFile { path: row.get(0)?, base: row.get(1)?, content: row.get(2)? })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

impl FencedStore<'_> {
    /// Appends an entry and carries out its changes, in one transaction.
    pub fn record(&mut self, cycle_id: &str, entry: &Entry, changes: &[Change]) -> Result<()> {
        self.record_all(cycle_id, std::slice::from_ref(entry), changes)
    }

    /// The same for entries that stand or fall together.
    pub fn record_all(&mut self, cycle_id: &str, entries: &[Entry], changes: &[Change]) -> Result<()> {
        let now = self.now();
        self.fenced(|tx| {
            entries.iter().try_for_each(|entry| append(tx, cycle_id, entry, now))?;
            changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now))
        })
    }

    /// Carries out changes that need no entry.
    pub fn change(&mut self, cycle_id: &str, changes: &[Change]) -> Result<()> {
        let now = self.now();
        self.fenced(|tx| changes.iter().try_for_each(|change| carry_out(tx, cycle_id, change, now)))
    }
}

pub(crate) fn append(tx: &Transaction<'_>, cycle_id: &str, entry: &Entry, now: DateTime<Utc>) -> Result<()> {
    tx.prepare(
        "INSERT INTO cycle_journal (cycle_id, seq, at, kind, body)
         VALUES (?1, (SELECT COALESCE(max(seq), 0) + 1 FROM cycle_journal WHERE cycle_id = ?1), ?2, ?3, ?4)",
    )?
    .execute((cycle_id, rfc3339(now), entry.kind(), crate::json(entry)))?;
    if let Entry::Said { messages, .. } = entry {
        // fault: cycle-doesnt-mark-messages
        claims::note(tx, messages, cycle_id)?;
    }
    if let Entry::Handed { model, .. } = entry {
        tx.execute("UPDATE cycles SET model = ?2 WHERE id = ?1", (cycle_id, model))?;
    }
    Ok(())
}

pub(crate) fn carry_out(tx: &Transaction<'_>, cycle_id: &str, change: &Change, now: DateTime<Utc>) -> Result<()> {
    match change {
        Change::File(file) => {
            // The base is what the cycle read first; later edits of the same file keep it.
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
        Change::Done { messages, outcome } => queue::mark(tx, messages, *outcome, cycle_id, now)?,
        Change::Hold { messages, model } => queue::hold(tx, messages, model, cycle_id)?,
        Change::AddReminder(reminder) => rows::add(tx, reminder, Some(cycle_id), now)?,
        Change::EndReminder { id } => rows::cancel(tx, *id, Some(cycle_id))?,
        Change::Fire(round) => rows::fire(tx, round, cycle_id, now)?,
        Change::TakeUpJob { run } => runs::take_up(tx, *run, cycle_id)?,
        Change::EndJob(end) => runs::end(tx, end, cycle_id, now)?,
        Change::Agree { proposal } => proposals::agree(tx, *proposal, now)?,
        Change::ToldOfProposal { proposal } => proposals::is_told(tx, *proposal)?,
        Change::NudgeDone { outgoing_id } => nudged::is_done(tx, *outgoing_id)?,
        Change::Undo { wake, chat, thread_id, reply_to } => {
            let answer =
                NewOutgoing { chat: *chat, thread_id: *thread_id, reply_to: *reply_to, ..NewOutgoing::default() };
            undo::ask(tx, wake, &answer, now)?;
        }
        Change::ShowTasks { chat, tasks } => shown::show(tx, *chat, tasks)?,
        Change::Handled { key, value } => backoff::set_handled(tx, key, value, now)?,
    }
    Ok(())
}
