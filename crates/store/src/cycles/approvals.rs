//! Questions to a person before an action: one row per action, decided once, used once.
//!
//! One transaction writes the row, the message that asks, and the cycle's parking. A decision is one conditional update of exactly one
//! row: it names the nonce, the chat, the message and the person, and matches only a question that is undecided and unexpired. Another
//! such update starts the call; it compares the action byte for byte.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::{ApprovalAnswer, BoundFiles, ButtonChoice, ChatRef},
};
use reveille_policy::{Consent, Risk, Verdict};

use super::{
    journal,
    proposals::{self, NewProposal},
    rules::RuleState,
};
use crate::{
    Entry, FencedStore, NewOutgoing, Result,
    areas::{Approvals, ReadStore, WriteStore},
    outbox::{attempts, planned},
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// An action to ask a person about.
#[derive(Debug, Clone, PartialEq)]
pub struct NewApproval {
    /// The call's id in its cycle's journal.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub action: String,
    /// The policy's verdict with the reasons for asking.
    pub verdict: Verdict,
    /// The authors of the untrusted text the cycle has read, if any.
    pub origin: Option<String>,
    /// The person who may decide; `None` for anyone who may speak in the chat.
    pub approver: Option<i64>,
    /// A random value for the buttons, used once.
    pub nonce: String,
    /// The deadline; an undecided question is denied then.
    pub expires_at: DateTime<Utc>,
    /// Whether the person may allow exactly this action for good.
    pub may_stand: bool,
    /// The change of the assistant's own orders in question.
    pub proposal: Option<NewProposal>,
    /// The files named by the action, as they are now: an approval is bound to them.
    pub named: BoundFiles,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Undecided.
    Pending,
    /// The action may run, once.
    Approved,
    /// The action must not run.
    Denied,
    /// Undecided at the deadline: the action must not run.
    Expired,
    /// Nothing is left to decide: the cycle that asked is over, or the question can't be shown.
    Withdrawn,
}

impl ApprovalState {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Reads an unknown value as denied.
    fn parse(text: &str) -> Self {
        match text {
            "pending" => Self::Pending,
            "approved" => Self::Approved,
            "expired" => Self::Expired,
            "withdrawn" => Self::Withdrawn,
            _ => Self::Denied,
        }
    }
}

/// A question as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Approval {
    /// The row id, which people use as the question's number.
    pub id: i64,
    /// The cycle that asks.
    pub cycle_id: String,
    /// The call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The arguments, byte for byte.
    pub action: String,
    /// `safe`, `caution`, `dangerous` or `destructive`.
    pub risk: String,
    /// The reasons for asking.
    pub reasons: Vec<String>,
    /// The authors of the untrusted text the cycle had read.
    pub origin: Option<String>,
    /// The chat where the question is asked.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The question's state.
    pub state: ApprovalState,
    /// The time of asking.
    pub asked_at: Option<DateTime<Utc>>,
    /// The deadline for a decision.
    pub expires_at: Option<DateTime<Utc>>,
    /// The time of the decision.
    pub decided_at: Option<DateTime<Utc>>,
    /// The person who decided, as a numeric id, or `console`.
    pub decided_by: Option<String>,
    /// The start of the approved call.
    pub used_at: Option<DateTime<Utc>>,
    /// The state of the offer to allow this for good; `None` if there is no such offer.
    pub rule: Option<RuleState>,
    /// The files named by the action, as they were when the question was asked.
    pub named: BoundFiles,
    /// The consents that an approval gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<Consent>,
}

impl Approval {
    pub(super) const COLUMNS: &str = "id, cycle_id, call, tool, action, risk, reasons, origin, chat_id, state, asked_at, expires_at, \
                           decided_by, used_at, decided_at, rule, named, consents";

    /// The number of these columns.
    pub(super) const WIDTH: usize = 18;

    pub(super) fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let time = |index: usize| -> sql::QueryResult<Option<DateTime<Utc>>> {
            Ok(row.get::<_, Option<String>>(index)?.as_deref().and_then(parse_time))
        };
        Ok(Self {
            id: row.get(0)?,
            cycle_id: row.get(1)?,
            call: row.get(2)?,
            tool: row.get(3)?,
            action: row.get(4)?,
            risk: row.get(5)?,
            reasons: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
            origin: row.get(7)?,
            chat: row.get(8)?,
            state: ApprovalState::parse(&row.get::<_, String>(9)?),
            asked_at: time(10)?,
            expires_at: time(11)?,
            decided_by: row.get(12)?,
            used_at: time(13)?,
            decided_at: time(14)?,
            rule: row.get::<_, Option<String>>(15)?.as_deref().and_then(RuleState::parse),
            named: BoundFiles::parse(row.get::<_, Option<String>>(16)?.as_deref()),
            consents: serde_json::from_str(&row.get::<_, String>(17)?).unwrap_or_default(),
        })
    }

    /// The risk of the action. An unknown risk counts as the highest.
    pub fn risk(&self) -> Risk {
        Risk::from_name(&self.risk)
    }

    /// Returns whether the question is denied at `now` for lack of a decision. An unreadable deadline has passed.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.state == ApprovalState::Expired
            || self.state == ApprovalState::Pending && self.expires_at.is_none_or(|at| at <= now)
    }
}

/// A press of a button under one of our messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// The channel's key of the press, for the reply to the person.
    pub callback_id: String,
    /// The button.
    pub choice: ButtonChoice,
    /// The chat of the message.
    pub chat: ChatRef,
    /// The message that carries the button.
    pub message_id: i64,
    /// The message's time, by the channel's clock; `None` if the press omits the time.
    pub message_date: Option<DateTime<Utc>>,
    /// The person who pressed the button.
    pub sender_id: i64,
}

/// A question whose message in the chat shows an outdated state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unshown {
    /// The question.
    pub approval: Approval,
    /// The channel's id of the message with the buttons; `None` if the message hasn't arrived.
    pub message_id: Option<i64>,
    /// The text of the message, without formatting.
    pub text: String,
}

impl<S: ReadStore> Approvals<S> {
    /// The question asked by a call of a cycle.
    pub fn find_call_approval(&self, cycle_id: &str, call: &str) -> Result<Option<Approval>> {
        let sql = format!("SELECT {} FROM approvals WHERE cycle_id = ?1 AND call = ?2", Approval::COLUMNS);
        Ok(self.0.conn().query_row(&sql, (cycle_id, call), Approval::from_row).optional()?)
    }

    /// A question by its number.
    pub fn find_approval(&self, id: i64) -> Result<Option<Approval>> {
        let sql = format!("SELECT {} FROM approvals WHERE id = ?1", Approval::COLUMNS);
        Ok(self.0.conn().query_row(&sql, [id], Approval::from_row).optional()?)
    }

    /// The question a button belongs to.
    pub fn approval_by_nonce(&self, nonce: &str) -> Result<Option<Approval>> {
        let sql = format!("SELECT {} FROM approvals WHERE nonce = ?1", Approval::COLUMNS);
        Ok(self.0.conn().query_row(&sql, [nonce], Approval::from_row).optional()?)
    }

    /// Questions that can still be decided, oldest first.
    pub fn pending_approvals(&self, now: DateTime<Utc>) -> Result<Vec<Approval>> {
        let sql = format!(
            "SELECT {} FROM approvals WHERE state = 'pending' AND expires_at > ?1 ORDER BY id",
            Approval::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([format_rfc3339(now)], Approval::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The messages that ask the still open questions on this machine's terminal.
    pub fn open_question_messages(&self, now: DateTime<Utc>) -> Result<Vec<i64>> {
        let sql = "SELECT outgoing_id FROM approvals
             WHERE chat_id = 0 AND state = 'pending' AND expires_at > ?1 AND outgoing_id IS NOT NULL";
        let mut statement = self.0.conn().prepare(sql)?;
        Ok(statement.query_map([format_rfc3339(now)], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// The times of the questions asked since `since`.
    pub fn asked_since(&self, since: DateTime<Utc>) -> Result<Vec<DateTime<Utc>>> {
        let mut statement = self.0.conn().prepare("SELECT asked_at FROM approvals WHERE asked_at >= ?1")?;
        let rows = statement.query_map([format_rfc3339(since)], |row| row.get::<_, String>(0))?;
        Ok(rows.collect::<sql::QueryResult<Vec<_>>>()?.iter().filter_map(|at| parse_time(at)).collect())
    }

    /// The latest questions, newest first.
    pub fn last_approvals(&self, limit: usize) -> Result<Vec<Approval>> {
        let sql = format!("SELECT {} FROM approvals ORDER BY id DESC LIMIT ?1", Approval::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([limit as i64], Approval::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The questions whose message in the chat shows an outdated state.
    pub fn unshown_approvals(&self) -> Result<Vec<Unshown>> {
        let mut statement = self.0.conn().prepare(&format!(
            "SELECT {}, (SELECT channel_message_id FROM outgoing_parts WHERE outgoing_id = a.outgoing_id ORDER BY part DESC LIMIT 1),
                    (SELECT plain FROM outgoing_parts WHERE outgoing_id = a.outgoing_id ORDER BY part DESC LIMIT 1)
             FROM approvals a WHERE shown != state ORDER BY id LIMIT 50",
            Approval::COLUMNS
        ))?;
        let rows = statement.query_map([], |row| {
            let text: Option<String> = row.get(Approval::WIDTH + 1)?;
            Ok(Unshown {
                approval: Approval::from_row(row)?,
                message_id: row.get(Approval::WIDTH)?,
                text: text.unwrap_or_default(),
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

/// The action that an approval has to cover, to the byte.
#[derive(Debug, Clone, Copy)]
pub struct ApprovedAction<'a> {
    /// The id of the call.
    pub call: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The arguments, as raw JSON.
    pub action: &'a str,
}

impl<S: WriteStore> Approvals<S> {
    /// Decides a question at this machine's terminal. `false` if the question could no longer be decided.
    pub fn decide_approval(&mut self, id: i64, answer: ApprovalAnswer, now: DateTime<Utc>) -> Result<bool> {
        self.0.write(|tx| decide_here(tx, id, answer, now))
    }

    /// Records that a question's message shows this state, or never will.
    pub fn record_shown_state(&mut self, id: i64, state: ApprovalState) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE approvals SET shown = ?2 WHERE id = ?1", (id, state.as_str()))?;
            Ok(())
        })
    }
}

impl Approvals<&mut FencedStore<'_>> {
    /// Parks a cycle on a question: writes the journal entries, the question and the message that asks it in one transaction. A question
    /// is asked only once.
    pub fn ask_approval(
        &mut self,
        cycle_id: &str,
        entries: &[Entry],
        approval: &NewApproval,
        message: impl FnOnce(i64) -> NewOutgoing,
    ) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| {
            for entry in entries {
                journal::append_entry(tx, cycle_id, entry, now)?;
            }
            // The id for the new row, which the message names.
            let id: i64 = tx.query_row(
                tx.pick_statement(
                    "SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'approvals'), 0) + 1",
                    "SELECT nextval(pg_get_serial_sequence('approvals', 'id'))",
                ),
                [],
                |row| row.get(0),
            )?;
            let message = NewOutgoing { cycle_id: Some(cycle_id.to_owned()), ..message(id) };
            let outgoing_id = planned::insert(tx, &message, now)?;
            tx.execute(
                "INSERT INTO approvals (cycle_id, call, tool, action, risk, reasons, origin, chat_id, approver, nonce, outgoing_id,
                     asked_at, expires_at, id, rule, named, consents)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
                sql::params![
                    cycle_id,
                    approval.call,
                    approval.tool,
                    approval.action,
                    approval.verdict.risk.name(),
                    to_json(&approval.verdict.reasons),
                    approval.origin,
                    message.chat,
                    approval.approver,
                    approval.nonce,
                    outgoing_id,
                    format_rfc3339(now),
                    format_rfc3339(approval.expires_at),
                    id,
                    approval.may_stand.then_some(RuleState::Offered.as_str()),
                    (!approval.named.is_empty()).then(|| to_json(&approval.named)),
                    to_json(&approval.verdict.consents),
                ],
            )?;
            if let Some(proposal) = &approval.proposal {
                proposals::save_proposal(tx, (cycle_id, &approval.call), proposal, now)?;
            }
            save_parked_state(tx, cycle_id)
        })
    }

    /// Parks a cycle until a person answers.
    pub fn park_cycle(&mut self, cycle_id: &str) -> Result<()> {
        self.0.write(|tx| save_parked_state(tx, cycle_id))
    }

    /// Denies the questions that are undecided at their deadline.
    pub fn expire_approvals(&mut self) -> Result<usize> {
        let now = self.0.now();
        self.0.write(|tx| {
            Ok(tx.execute(
                "UPDATE approvals SET state = 'expired', decided_at = ?1 WHERE state = 'pending' AND expires_at <= ?1",
                [format_rfc3339(now)],
            )?)
        })
    }

    /// Starts an approved call with its journal entries. `false`, and nothing is written, unless exactly this action of this tool was
    /// approved and is still unused.
    pub fn begin_approved_call(
        &mut self,
        cycle_id: &str,
        approved: ApprovedAction<'_>,
        entries: &[Entry],
    ) -> Result<bool> {
        let ApprovedAction { call, tool, action } = approved;
        let now = self.0.now();
        // fault: allowed-call-begun-yes
        self.0.write(|tx| {
            let n = tx.execute(
                // fault: yes-counts-other-bytes
                "UPDATE approvals SET used_at = ?5
                 WHERE cycle_id = ?1 AND call = ?2 AND tool = ?3 AND action = ?4 AND state = 'approved' AND used_at IS NULL",
                // fault end: yes-counts-other-bytes
        // fault end: allowed-call-begun-yes
                (cycle_id, call, tool, action, format_rfc3339(now)),
            )?;
            // fault: allowed-call-begun-line
            if n == 1 {
                entries.iter().try_for_each(|entry| journal::append_entry(tx, cycle_id, entry, now))?;
            // fault end: allowed-call-begun-line
            }
            Ok(n == 1)
        })
    }
}

/// Records a press of a question's button. `true` if the press decided a question: one still pending, in its own chat, on its own
/// message, no older than the question, by a person who may decide. The press itself tells the message's id if the sender doesn't know
/// it, since only that message carries the nonce. If the message was sent twice because the first sending's outcome was unknown, either
/// copy counts.
pub(crate) fn record_tap(
    tx: &Transaction<'_>,
    tap: &Tap,
    (nonce, answer): (&str, ApprovalAnswer),
    now: DateTime<Utc>,
) -> Result<bool> {
    let asked: Option<i64> = tx
        .query_row(
            "SELECT outgoing_id FROM approvals WHERE nonce = ?1 AND state = 'pending' AND chat_id = ?2",
            (nonce, tap.chat),
            |row| row.get(0),
        )
        .optional()?
        .flatten();
    if let Some(outgoing_id) = asked {
        attempts::record_arrival(tx, outgoing_id, tap.message_id, now)?;
    }
    let n = tx.execute(
        // fault: press-counts-another
        // fault: press-counts-under-message
        // fault: press-counts-wherever-made
        "UPDATE approvals SET state = ?2, decided_at = ?3, decided_by = ?7
         WHERE nonce = ?1 AND state = 'pending' AND expires_at > ?3 AND chat_id = ?5
           AND (approver IS NULL OR approver = ?4)
           AND EXISTS (SELECT 1 FROM outgoing_parts p
                       WHERE p.outgoing_id = approvals.outgoing_id
                         AND (p.repeats > 0 OR p.channel_message_id = ?6 AND COALESCE(CAST(?8 AS TEXT) >= p.channel_date, TRUE)))",
        // fault end: press-counts-another
        // fault end: press-counts-under-message
        // fault end: press-counts-wherever-made
        sql::params![
            nonce,
            decision_state(answer),
            format_rfc3339(now),
            tap.sender_id,
            tap.chat,
            tap.message_id,
            tap.sender_id.to_string(),
            tap.message_date.map(format_rfc3339),
        ],
    )?;
    Ok(n == 1)
}

/// Withdraws the open questions of a cycle that has ended.
pub(crate) fn withdraw_questions(tx: &Transaction<'_>, cycle_id: &str) -> Result<()> {
    tx.execute("UPDATE approvals SET state = 'withdrawn' WHERE cycle_id = ?1 AND state = 'pending'", [cycle_id])?;
    Ok(())
}

fn decision_state(answer: ApprovalAnswer) -> &'static str {
    match answer {
        ApprovalAnswer::Yes => "approved",
        ApprovalAnswer::No => "denied",
    }
}

/// Decides a question at this machine. `false` if the question could no longer be decided.
pub(crate) fn decide_here(tx: &Transaction<'_>, id: i64, answer: ApprovalAnswer, now: DateTime<Utc>) -> Result<bool> {
    let n = tx.execute(
        // fault: question-answered-ever
        "UPDATE approvals SET state = ?2, decided_at = ?3, decided_by = 'console'
         WHERE id = ?1 AND state = 'pending' AND expires_at > ?3",
        // fault end: question-answered-ever
        // fault: counts-yes
        (id, decision_state(answer), format_rfc3339(now)),
    )?;
    Ok(n == 1)
}

fn save_parked_state(tx: &Transaction<'_>, cycle_id: &str) -> Result<()> {
    tx.execute("UPDATE cycles SET state = 'parked', not_before = NULL, error = NULL WHERE id = ?1", [cycle_id])?;
    Ok(())
}
