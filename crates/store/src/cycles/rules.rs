//! Rules people make from questions: offered, shown, answered, and written to `policy.toml`.
//!
//! A press orders the rule in the transaction that stores the press. The file is written next; then one transaction marks the row and
//! approves the question, so a kill in between leads to the same rule, once. Removing a rule works the same way.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use super::approvals::{Approval, Tap, Unshown};
use crate::{
    NewOutgoing, OutgoingKind, Result,
    areas::{ReadStore, Rules, WriteStore},
    outbox::{attempts, planned},
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// The state of an offer to allow a call for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// The question has a button for a rule.
    Offered,
    /// The person has seen the rule.
    Shown,
    /// The person declined for now.
    Declined,
    /// The person accepted; the file is still to be written.
    Ordered,
    /// `policy.toml` contains the rule.
    Added,
}

impl RuleState {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Shown => "shown",
            Self::Declined => "declined",
            Self::Ordered => "ordered",
            Self::Added => "added",
        }
    }

    /// Reads an unknown value as never offered.
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Offered, Self::Shown, Self::Declined, Self::Ordered, Self::Added]
            .into_iter()
            .find(|it| it.as_str() == text)
    }
}

/// A rule of ours to be removed by order of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRemoval {
    /// The row id.
    pub id: i64,
    /// The rule's text in `policy.toml`.
    pub rule: String,
    chat: ChatRef,
    thread_id: Option<i64>,
    reply_to: Option<i64>,
}

impl RuleRemoval {
    /// The answer to the person.
    pub fn build_answer(&self, text: String) -> NewOutgoing {
        NewOutgoing {
            chat: self.chat,
            text,
            kind: OutgoingKind::Command,
            key: Some(format!("rule-removal/{}", self.id)),
            thread_id: self.thread_id,
            reply_to: self.reply_to,
            ..NewOutgoing::default()
        }
    }
}

/// SQL condition for a question still open to the person who pressed a button in its chat.
const DECIDABLE: &str =
    "nonce = ?1 AND state = 'pending' AND expires_at > ?2 AND chat_id = ?3 AND (approver IS NULL OR approver = ?4)";

impl<S: ReadStore> Rules<S> {
    /// The rules ordered but not written yet, oldest first. Leaves out rules whose question was denied since or has lapsed.
    pub fn ordered_rules(&self) -> Result<Vec<Approval>> {
        let sql = format!(
            "SELECT {} FROM approvals
             WHERE rule_outgoing_id IS NOT NULL AND rule_is_shown = 0 AND rule = 'ordered'
               AND state IN ('pending', 'approved') ORDER BY id",
            Approval::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], Approval::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The messages with a rule that show an outdated state, each with its row.
    pub fn unshown_rules(&self) -> Result<Vec<(Unshown, i64)>> {
        let mut statement = self.0.conn().prepare(&format!(
            "SELECT {}, (SELECT channel_message_id FROM outgoing_parts WHERE outgoing_id = a.rule_outgoing_id ORDER BY part DESC LIMIT 1),
                    (SELECT plain FROM outgoing_parts WHERE outgoing_id = a.rule_outgoing_id ORDER BY part DESC LIMIT 1), rule_outgoing_id
             FROM approvals a WHERE rule_outgoing_id IS NOT NULL AND rule_is_shown = 0
               AND (rule IN ('added', 'declined') OR rule = 'shown' AND state != 'pending'
                    OR rule = 'ordered' AND state NOT IN ('pending', 'approved')) ORDER BY id LIMIT 50",
            Approval::COLUMNS
        ))?;
        let rows = statement.query_map([], |row| {
            let text: Option<String> = row.get(Approval::WIDTH + 1)?;
            let (approval, message_id) = (Approval::from_row(row)?, row.get(Approval::WIDTH)?);
            Ok((Unshown { approval, message_id, text: text.unwrap_or_default() }, row.get(Approval::WIDTH + 2)?))
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The rules to remove, in the order of the requests.
    pub fn rule_removals(&self) -> Result<Vec<RuleRemoval>> {
        let mut statement =
            self.0.conn().prepare("SELECT id, rule, chat_id, thread_id, reply_to FROM rule_removals ORDER BY id")?;
        let read = |row: &Row<'_>| {
            let (id, rule, chat) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(RuleRemoval { id, rule, chat, thread_id: row.get(3)?, reply_to: row.get(4)? })
        };
        Ok(statement.query_map([], read)?.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Rules<S> {
    /// Marks a rule as written. Its question is approved too, if it was still open when the rule was ordered.
    pub fn record_added_rule(&mut self, id: i64) -> Result<()> {
        self.0.write(|tx| {
            tx.execute("UPDATE approvals SET rule = 'added' WHERE id = ?1 AND rule = 'ordered'", [id])?;
            tx.execute(
                "UPDATE approvals SET state = 'approved', decided_at = rule_at, decided_by = COALESCE(CAST(approver AS TEXT), 'console')
                 WHERE id = ?1 AND rule = 'added' AND state = 'pending' AND expires_at > rule_at",
                [id],
            )?;
            Ok(())
        })
    }

    /// Reports to the person that a rule can't be written; the person can order it again. Returns the message's row.
    pub fn refuse_rule(&mut self, id: i64, text: String, now: DateTime<Utc>) -> Result<Option<i64>> {
        self.0.write(|tx| {
            let chat = tx
                .query_row(
                    "UPDATE approvals SET rule = 'shown' WHERE id = ?1 AND rule = 'ordered' RETURNING chat_id",
                    [id],
                    |row| row.get(0),
                )
                .optional()?;
            let Some(chat) = chat else { return Ok(None) };
            let message = NewOutgoing { chat, text, kind: OutgoingKind::Command, ..NewOutgoing::default() };
            planned::insert(tx, &message, now)
        })
    }

    /// Decides a question at this machine's terminal by a rule that `policy.toml` contains. `false` if the question could no longer be
    /// decided.
    pub fn decide_for_good(&mut self, id: i64, now: DateTime<Utc>) -> Result<bool> {
        self.0.write(|tx| {
            let n = tx.execute(
                "UPDATE approvals SET state = 'approved', decided_at = ?2, decided_by = 'console', rule = 'added', rule_at = ?2
                 WHERE id = ?1 AND state = 'pending' AND expires_at > ?2",
                (id, format_rfc3339(now)),
            )?;
            Ok(n == 1)
        })
    }

    /// Records that a rule's message, by its row, shows the present state or never will. The rule may have been shown again in another
    /// message by now.
    pub fn record_shown_rule(&mut self, id: i64, outgoing_id: i64) -> Result<()> {
        self.0.write_relaxed(|tx| {
            let sql = "UPDATE approvals SET rule_is_shown = 1 WHERE id = ?1 AND rule_outgoing_id = ?2";
            tx.execute(sql, (id, outgoing_id))?;
            Ok(())
        })
    }

    /// Ends a rule's removal, done or impossible, and answers the person. Returns the message's row.
    pub fn finish_rule_removal(&mut self, id: i64, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        self.0.write(|tx| {
            tx.execute("DELETE FROM rule_removals WHERE id = ?1", [id])?;
            planned::insert(tx, answer, now)
        })
    }
}

/// Records a press of "always": plans the `message` with the rule, and leaves the question open. Returns the message's row; `None` if the
/// rule is shown already, or the question is over or another person's.
pub(crate) fn show_rule(
    tx: &Transaction<'_>,
    tap: &Tap,
    nonce: &str,
    message: &NewOutgoing,
    now: DateTime<Utc>,
) -> Result<Option<i64>> {
    let sql = format!("SELECT id, outgoing_id FROM approvals WHERE {DECIDABLE} AND rule IN ('offered', 'declined')");
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?));
    let asked = tx.query_row(&sql, (nonce, format_rfc3339(now), tap.chat, tap.sender_id), read).optional()?;
    let Some((id, Some(outgoing_id))) = asked else { return Ok(None) };
    if !is_under(tx, tap, outgoing_id, now)? {
        return Ok(None);
    }
    let row = planned::insert(tx, message, now)?;
    tx.execute(
        "UPDATE approvals SET rule = 'shown', rule_outgoing_id = ?2, rule_is_shown = 0 WHERE id = ?1",
        (id, row),
    )?;
    Ok(row)
}

/// Records the answer to a shown rule: ordered or declined. `false` if the rule was no longer open.
pub(crate) fn record_tap(
    tx: &Transaction<'_>,
    tap: &Tap,
    (nonce, is_yes): (&str, bool),
    now: DateTime<Utc>,
) -> Result<bool> {
    let sql = format!("SELECT id, rule_outgoing_id FROM approvals WHERE {DECIDABLE} AND rule = 'shown'");
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?));
    let shown = tx.query_row(&sql, (nonce, format_rfc3339(now), tap.chat, tap.sender_id), read).optional()?;
    let Some((id, Some(outgoing_id))) = shown else { return Ok(false) };
    if !is_under(tx, tap, outgoing_id, now)? {
        return Ok(false);
    }
    let state = if is_yes { RuleState::Ordered } else { RuleState::Declined };
    tx.execute(
        "UPDATE approvals SET rule = ?2, rule_at = ?3 WHERE id = ?1",
        (id, state.as_str(), format_rfc3339(now)),
    )?;
    Ok(true)
}

/// Returns whether the pressed button belongs to this message of ours. The press itself tells the message's id if the sender doesn't know
/// it.
fn is_under(tx: &Transaction<'_>, tap: &Tap, outgoing_id: i64, now: DateTime<Utc>) -> Result<bool> {
    attempts::record_arrival(tx, outgoing_id, tap.message_id, now)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_parts
                   WHERE outgoing_id = ?1
                     AND (repeats > 0 OR channel_message_id = ?2 AND COALESCE(CAST(?3 AS TEXT) >= channel_date, TRUE)))";
    Ok(tx.query_row(sql, (outgoing_id, tap.message_id, tap.message_date.map(format_rfc3339)), |row| row.get(0))?)
}

/// Orders the removal of a rule; `answer` names the chat to reply to.
pub(crate) fn remove(tx: &Transaction<'_>, rule: &str, answer: &NewOutgoing) -> Result<()> {
    tx.execute(
        "INSERT INTO rule_removals (rule, chat_id, thread_id, reply_to) VALUES (?1, ?2, ?3, ?4)",
        (rule, answer.chat, answer.thread_id, answer.reply_to),
    )?;
    Ok(())
}
