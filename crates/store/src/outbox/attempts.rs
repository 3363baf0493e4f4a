//! Outgoing messages in two phases: first a row and the state of each part, later the sending elsewhere.
//!
//! A part goes planned → attempting → sent. An attempt without an answer is `unknown`: the part may have arrived. The next wake sends it
//! once more, marked as a repeat; a second unknown outcome is final, for a person to see.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{LONGEST_WAIT, format_rfc3339, parse_time},
    process::Identity,
    types::{ChatRef, Question, TextFile},
};

use crate::{
    FencedStore, NewOutgoing, OutgoingKind, Result,
    areas::{Outbox, ReadStore, WriteStore},
    chats::moved::{self, MAY_BE_SPOKEN_TO, Moved},
    odd_rows::SENDABLE,
    outbox::{
        planned, questions, recipients,
        rich::{self, ChosenForm, RichRefusal, RichRule},
    },
    sql::{self, OptionalExtension as _, Transaction},
    to_json,
};

/// The longest duration of an attempt, far above a channel's limit for one send, so that a slow attempt never counts as lost. A living
/// sender that has reported nothing by then couldn't record the outcome, and never will.
pub(crate) const LONGEST_ATTEMPT: TimeDelta = TimeDelta::minutes(5);

/// A part this process has claimed for sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The message's row.
    pub outgoing_id: i64,
    /// The part's number within the message, from 0.
    pub part: i64,
    /// The chat.
    pub chat: ChatRef,
    /// The forum topic.
    pub thread_id: Option<i64>,
    /// The channel's id of the message to reply to; only on the first part.
    pub reply_to: Option<i64>,
    /// The formatted text.
    pub html: String,
    /// The text without formatting.
    pub plain: String,
    /// Whether an earlier attempt had an unknown outcome: the part is then marked as a repeat.
    pub is_repeat: bool,
    /// The number of attempts, including this one.
    pub attempts: u32,
    /// The accompanying file.
    pub file: Option<TextFile>,
    /// The question's buttons, if this is the last part of a question or a reminder.
    pub question: Option<Question>,
    /// The HTML of the whole message as one rich message; the formatted text is then unused.
    pub rich: Option<String>,
}

/// A choice of parts and their order: by default everything deliverable, oldest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pick<'a> {
    /// Only parts of these messages.
    pub only: Option<&'a [i64]>,
    /// The chats served already, the latest last: other chats go first, then these in this order.
    pub served: &'a [ChatRef],
    /// The chats to skip for now.
    pub alone: &'a [ChatRef],
    /// The chat that may get rich messages; `None` for no chat.
    pub rich: Option<RichRule>,
}

/// The state of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// To be sent.
    Planned,
    /// Claimed by a sender.
    Attempting,
    /// Confirmed by the channel, or shown to have arrived by the person's reaction.
    Sent,
    /// An attempt ended without an answer: the part may have arrived.
    Unknown,
    /// Refused by the channel for good.
    Failed,
}

impl PartState {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Attempting => "attempting",
            Self::Sent => "sent",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
        }
    }

    /// Reads an unknown value as possibly arrived.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "planned" => Self::Planned,
            "attempting" => Self::Attempting,
            "sent" => Self::Sent,
            "failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOutcome {
    /// Confirmed by the channel.
    Sent {
        /// The channel's id of the message.
        id: i64,
        /// The time, by the channel's clock.
        date: Option<DateTime<Utc>>,
    },
    /// Surely not sent: retry after that time.
    Later {
        /// The earliest time of a retry.
        not_before: DateTime<Utc>,
        /// The reason.
        why: String,
    },
    /// Surely not sent: the chat has a new id, under which to retry.
    Moved {
        /// The new id.
        to: ChatRef,
        /// The reason.
        why: String,
    },
    /// The part may or may not have arrived.
    Unknown(String),
    /// Refused by the channel for good.
    Failed(String),
    /// Surely not sent: the rich message was refused, and goes as plain parts.
    RichRefused {
        /// The kind of refusal.
        refusal: RichRefusal,
        /// The reason.
        why: String,
    },
}

/// SQL condition for a deliverable message `o`. A cycle's texts leave after its commit, since a wake ends with commit, deliver, push.
/// While a cycle waits, only its notice of the wait and its question leave. While all work is stopped, only answers to commands leave.
/// Withdrawn texts never leave, and neither do those with an undo order.
pub(crate) const DELIVERABLE: &str =
    // fault: reply-leaves-cycle-committed
    "o.taken_back_at IS NULL AND (o.kind = 'command' OR NOT EXISTS (SELECT 1 FROM stopped))
    AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = o.cycle_id AND u.done_at IS NULL)
    AND NOT EXISTS (
    SELECT 1 FROM cycles c WHERE c.id = o.cycle_id
    AND (c.state = 'running' OR c.state IN ('waiting', 'parked') AND o.kind NOT IN ('notice', 'approval')))";
// fault end: reply-leaves-cycle-committed

/// SQL condition: earlier parts in the chat hold part `p` of message `o` back. These are waiting parts, parts under way, and parts with
/// an unknown outcome the next wake repeats. Texts of a waiting cycle don't hold others back: they leave after its commit, and the
/// question or notice about the wait, or other cycles' texts, would have to wait for that commit in turn. A bound `?2` (a choice of
/// messages) lifts the order between messages, but keeps the order of their parts.
// fault: notice-waits-behind-cycle
const HELD_BACK: &str = "EXISTS (
    SELECT 1 FROM outgoing_messages eo JOIN outgoing_parts e ON e.outgoing_id = eo.id
    WHERE eo.chat_id = o.chat_id AND eo.sent_at IS NULL AND eo.taken_back_at IS NULL
      AND (eo.kind = 'command' OR NOT EXISTS (SELECT 1 FROM stopped))
      AND COALESCE(CAST(eo.thread_id AS BIGINT) = eo.thread_id, TRUE) AND COALESCE(CAST(eo.reply_to AS BIGINT) = eo.reply_to, TRUE)
      AND (e.state IN ('planned', 'attempting') OR e.state = 'unknown' AND e.repeats = 0)
      AND NOT EXISTS (SELECT 1 FROM cycles ec WHERE ec.id = eo.cycle_id AND ec.state IN ('waiting', 'parked')
                      AND e.state = 'planned' AND eo.kind NOT IN ('notice', 'approval'))
      AND (eo.id < o.id AND CAST(?2 AS TEXT) IS NULL OR eo.id = o.id AND e.part < p.part))";
// fault end: notice-waits-behind-cycle

/// SQL condition: part `p` is due at ?1. A time beyond ?3, the longest wait, was written while the clock was wrong.
const IS_TIME: &str = "(p.not_before IS NULL OR p.not_before <= ?1 OR p.not_before > ?3)";

impl<S: ReadStore> Outbox<S> {
    /// Returns whether an earlier wake left a part with an unknown outcome that [`crate::Outbox::recover_outbox`] would repeat.
    pub fn has_doubtful(&self, now: DateTime<Utc>) -> Result<bool> {
        let is_unknown = self.0.conn().query_row(
            "SELECT EXISTS (SELECT 1 FROM outgoing_parts WHERE state = 'unknown' AND repeats = 0)",
            [],
            |row| row.get::<_, bool>(0),
        )?;
        Ok(is_unknown || !self.lost_attempts(now)?.is_empty())
    }

    /// Returns whether any message is unsent, for any reason. Asked first, since this statement is cheap to plan.
    pub(crate) fn has_unsent(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE sent_at IS NULL)";
        Ok(self.0.conn().prepare(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Returns whether a message may be sent now.
    pub fn has_deliverable(&self, now: DateTime<Utc>) -> Result<bool> {
        if !self.has_unsent()? {
            return Ok(false);
        }
        let sql = format!(
            "SELECT EXISTS (
                 SELECT 1 FROM outgoing_messages o LEFT JOIN outgoing_parts p ON p.outgoing_id = o.id
                 WHERE o.sent_at IS NULL AND o.chat_id != 0 AND {SENDABLE} AND {DELIVERABLE} AND {MAY_BE_SPOKEN_TO}
                   AND (p.part IS NULL
                        OR p.state = 'planned' AND {IS_TIME} AND NOT {HELD_BACK}))"
        );
        let none: Option<String> = None;
        Ok(self
            .0
            .conn()
            .prepare(&sql)?
            .query_row((format_rfc3339(now), none, format_rfc3339(now + LONGEST_WAIT)), |row| row.get(0))?)
    }

    /// The attempts whose outcome will never be reported, or too late to matter.
    fn lost_attempts(&self, now: DateTime<Utc>) -> Result<Vec<LostAttempt>> {
        let mut statement = self.0.conn().prepare(
            "SELECT outgoing_id, part, attempts, sender, changed_at FROM outgoing_parts WHERE state = 'attempting'",
        )?;
        let attempts = statement.query_map([], |row| {
            let text = |index| row.get::<_, Option<String>>(index);
            let sender = text(3)?.and_then(|text| serde_json::from_str::<Identity>(&text).ok());
            let is_sender_alive = sender.is_some_and(|sender| self.0.store().may_live(&sender));
            let since = text(4)?.as_deref().and_then(parse_time);
            let why = match (is_sender_alive, is_overdue(since, now)) {
                (false, _) => "the sender died while sending",
                (true, true) => "the sender never recorded the outcome",
                (true, false) => return Ok(None),
            };
            Ok(Some(LostAttempt { outgoing_id: row.get(0)?, part: row.get(1)?, attempts: row.get(2)?, why }))
        })?;
        Ok(attempts.filter_map(sql::QueryResult::transpose).collect::<sql::QueryResult<_>>()?)
    }

    /// The time at which the next delayed part is due.
    pub fn next_delivery(&self) -> Result<Option<DateTime<Utc>>> {
        let text: Option<String> = self.0.conn().query_row(
            "SELECT min(not_before) FROM outgoing_parts WHERE state = 'planned'",
            [],
            |row| row.get(0),
        )?;
        Ok(text.as_deref().and_then(parse_time))
    }

    /// The number of unasked messages to a chat since `since`.
    pub fn tells_since(&self, chat: ChatRef, since: DateTime<Utc>) -> Result<i64> {
        let n = self.0.conn().query_row(
            "SELECT count(*) FROM outgoing_messages WHERE kind = ?1 AND chat_id = ?3 AND created_at >= ?2",
            (OutgoingKind::Tell.as_str(), format_rfc3339(since), chat),
            |row| row.get(0),
        )?;
        Ok(n)
    }

    /// The keys of all unasked messages ever.
    pub fn told_keys(&self) -> Result<std::collections::BTreeSet<String>> {
        let mut statement =
            self.0.conn().prepare("SELECT key FROM outgoing_messages WHERE key >= 'tell/' AND key < 'tell0'")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Outbox<S> {
    /// Plans a message outside a cycle; `None` if its key was already told.
    pub fn plan_message(&mut self, message: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
        self.0.write(|tx| planned::insert(tx, message, now))
    }

    /// Claims the next part that may be sent now, in order within a chat: an earlier part that waits holds later parts back, unless
    /// `pick` names messages.
    pub fn claim_part(&mut self, pick: Pick<'_>, me: &Identity, now: DateTime<Utc>) -> Result<Option<Claimed>> {
        self.0.write(|tx| claim_next_part(tx, pick, me, now))
    }

    /// Records the outcome of a claimed part. The claim makes a fence unnecessary. From a sender that was given up and reports late, only
    /// a confirmed arrival counts: its other outcomes concern an attempt that is already written off.
    pub fn settle_part(&mut self, claimed: &Claimed, outcome: &PartOutcome, now: DateTime<Utc>) -> Result<()> {
        let sent =
            if let PartOutcome::Sent { id, date } = outcome { Some((*id, date.map(format_rfc3339))) } else { None };
        let (id, date) = sent.unzip();
        let (state, not_before, error) = match outcome {
            PartOutcome::Sent { .. } => (PartState::Sent, None, None),
            PartOutcome::Later { not_before, why } => {
                (PartState::Planned, Some(format_rfc3339(*not_before)), Some(why))
            }
            PartOutcome::Moved { why, .. } => (PartState::Planned, None, Some(why)),
            PartOutcome::Unknown(why) => (PartState::Unknown, None, Some(why)),
            PartOutcome::Failed(why) => (PartState::Failed, None, Some(why)),
            PartOutcome::RichRefused { refusal, why } => {
                return self.0.write_unfenced(|tx| rich::record_refusal(tx, claimed, (*refusal, why), now));
            }
        };
        self.0.write_unfenced(|tx| {
            let n = tx.execute(
                // fault: attempt-nobody-waits-more
                "UPDATE outgoing_parts SET state = ?3, not_before = ?4, channel_message_id = COALESCE(?5, channel_message_id),
                     channel_date = COALESCE(?9, channel_date), error = ?6, changed_at = ?7, sender = NULL
                 WHERE outgoing_id = ?1 AND part = ?2
                   AND (?3 = 'sent' OR state IN ('attempting', 'unknown') AND attempts = ?8)",
                // fault end: attempt-nobody-waits-more
                sql::params![
                    claimed.outgoing_id,
                    claimed.part,
                    state.as_str(),
                    not_before,
                    id,
                    error,
                    format_rfc3339(now),
                    claimed.attempts,
                    date.flatten()
                ],
            )?;
            record_sent_message(tx, claimed.outgoing_id, now)?;
            if let PartOutcome::Moved { to, .. } = outcome {
                // The settings decide on listing, when they are next read.
                moved::move_group(tx, Moved { from: claimed.chat, to: *to, is_listed: false }, now)?;
            }
            if n == 1
                && let PartOutcome::Failed(why) = outcome
            {
                questions::withdraw_question(tx, claimed.outgoing_id)?;
                // A group may forbid files. A chat that has blocked the bot refuses messages as well.
                if claimed.file.is_some() && !matches!(claimed.question, Some(Question::Approval { .. })) && !why.contains("Forbidden") {
                    planned::plan_without_file(tx, claimed.outgoing_id, now)?;
                }
            }
            Ok(())
        })
    }
}

impl Outbox<&mut FencedStore<'_>> {
    /// As [`Outbox::plan_message`], for the wake that holds `fence`.
    pub fn plan_wake_message(&mut self, message: &NewOutgoing) -> Result<Option<i64>> {
        let now = self.0.now();
        self.0.write(|tx| planned::insert(tx, message, now))
    }

    /// As [`Outbox::claim_part`], for the wake that holds `fence`.
    pub fn claim_part_of_wake(&mut self, pick: Pick<'_>, me: &Identity) -> Result<Option<Claimed>> {
        let now = self.0.now();
        // fault: part-sent-claim-synced
        self.0.write(|tx| claim_next_part(tx, pick, me, now))
    }

    /// Settles an earlier wake's unknown outcomes before this wake sends. An attempt no longer under way becomes unknown, and an unknown
    /// part is planned once more, marked as a repeat. Returns the number of repeats.
    pub fn recover_outbox(&mut self) -> Result<usize> {
        let now = self.0.now();
        let lost = self.lost_attempts(now)?;
        self.0.write(|tx| {
            for attempt in lost {
                tx.execute(
                    "UPDATE outgoing_parts SET state = 'unknown', sender = NULL, changed_at = ?4, error = ?5
                     WHERE outgoing_id = ?1 AND part = ?2 AND attempts = ?3 AND state = 'attempting'",
                    (attempt.outgoing_id, attempt.part, attempt.attempts, format_rfc3339(now), attempt.why),
                )?;
            }
            let repeats = tx.execute(
                // fault: doubt-repeated-again-again
                "UPDATE outgoing_parts SET state = 'planned', repeats = 1, changed_at = ?1
                 WHERE state = 'unknown' AND repeats = 0",
                [format_rfc3339(now)],
                // fault end: doubt-repeated-again-again
            )?;
            Ok(repeats)
        })
    }
}

/// An attempt that is no longer under way.
struct LostAttempt {
    outgoing_id: i64,
    part: i64,
    attempts: u32,
    why: &'static str,
}

/// Returns whether an attempt started at `since` must be over by now. A missing start, or one just as far in the future because the clock
/// was set back, counts as over.
pub(crate) fn is_overdue(since: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    since.is_none_or(|since| now.signed_duration_since(since).abs() > LONGEST_ATTEMPT)
}

fn claim_next_part(tx: &Transaction<'_>, pick: Pick<'_>, me: &Identity, now: DateTime<Utc>) -> Result<Option<Claimed>> {
    let only = pick.only.map(|only| to_json(&only));
    let sql = format!(
        "SELECT p.outgoing_id, p.part, o.chat_id, o.thread_id, o.reply_to, p.html, p.plain, p.repeats, p.attempts, o.kind,
             CASE p.as_file WHEN 1 THEN o.message_text END
         FROM outgoing_messages o JOIN outgoing_parts p ON p.outgoing_id = o.id
         WHERE o.sent_at IS NULL AND o.chat_id != 0 AND p.state = 'planned'
           AND {IS_TIME}
           AND (CAST(?2 AS TEXT) IS NULL OR o.id IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)))
           AND {SENDABLE}
           AND {DELIVERABLE}
           AND {MAY_BE_SPOKEN_TO}
           AND o.chat_id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?5))
           AND NOT {HELD_BACK}
         ORDER BY (SELECT min(turn.key) FROM json_each(?4) AS turn WHERE CAST(turn.value AS BIGINT) = o.chat_id) NULLS FIRST, o.id, p.part LIMIT 1"
    );
    planned::plan_parts(tx, now)?;
    moved::redirect_texts(tx)?;
    recipients::withhold_texts(tx, now)?;
    let claimed = tx
        .prepare(&sql)?
        .query_row(
            (
                format_rfc3339(now),
                &only,
                format_rfc3339(now + LONGEST_WAIT),
                to_json(&pick.served),
                to_json(&pick.alone),
            ),
            |row| {
                let part: i64 = row.get(1)?;
                let whole =
                    row.get::<_, Option<String>>(10)?.map(|text| TextFile { name: planned::WHOLE.to_owned(), text });
                let kind: String = row.get(9)?;
                let (question, file) = match questions::find_part_question(tx, &kind, row.get(0)?, part)? {
                    // A question that fits into its message needs no file.
                    Some((question @ Question::Approval { .. }, file)) => (Some(question), file),
                    Some((question, _)) => (Some(question), whole),
                    None => (None, whole),
                };
                Ok(Claimed {
                    outgoing_id: row.get(0)?,
                    part,
                    chat: row.get(2)?,
                    thread_id: row.get(3)?,
                    reply_to: row.get::<_, Option<i64>>(4)?.filter(|_| part == 0),
                    html: row.get(5)?,
                    plain: row.get(6)?,
                    is_repeat: row.get::<_, i64>(7)? > 0,
                    attempts: row.get::<_, u32>(8)? + 1,
                    file,
                    question,
                    rich: None,
                })
            },
        )
        .optional()?;
    let claimed = match claimed {
        Some(claimed) => match rich::choose_form(tx, &claimed, pick.rich, now)? {
            ChosenForm::Plain => Some(claimed),
            ChosenForm::Rich(html) => Some(Claimed { rich: Some(html), file: None, ..claimed }),
            ChosenForm::Replanned => return claim_next_part(tx, pick, me, now),
        },
        None => None,
    };
    if let Some(claimed) = &claimed {
        tx.execute(
            // fault: part-being-sent-taken
            "UPDATE outgoing_parts SET state = 'attempting', attempts = attempts + 1, sender = ?3, changed_at = ?4
             WHERE outgoing_id = ?1 AND part = ?2",
            // fault end: part-being-sent-taken
            (claimed.outgoing_id, claimed.part, to_json(me), format_rfc3339(now)),
        )?;
    }
    Ok(claimed)
}

/// Marks a message's last part as arrived, because a person's press of its button proves it, so that it is never sent again.
pub(crate) fn record_arrival(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    channel_message_id: i64,
    now: DateTime<Utc>,
) -> sql::QueryResult<()> {
    tx.execute(
        "UPDATE outgoing_parts SET state = 'sent', channel_message_id = ?2, not_before = NULL, error = NULL, sender = NULL,
             changed_at = ?3
         WHERE outgoing_id = ?1 AND channel_message_id IS NULL
           AND part = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)",
        (outgoing_id, channel_message_id, format_rfc3339(now)),
    )?;
    record_sent_message(tx, outgoing_id, now)
}

/// Marks a message as sent once all of its parts are.
fn record_sent_message(tx: &Transaction<'_>, outgoing_id: i64, now: DateTime<Utc>) -> sql::QueryResult<()> {
    tx.execute(
        "UPDATE outgoing_messages SET sent_at = ?2 WHERE id = ?1 AND sent_at IS NULL AND NOT EXISTS (
             SELECT 1 FROM outgoing_parts WHERE outgoing_id = ?1 AND state != 'sent')",
        (outgoing_id, format_rfc3339(now)),
    )?;
    Ok(())
}

/// The unsent answers to commands for a chat, as (their number, whether one of them has this text).
pub(crate) fn answers_waiting(tx: &Transaction<'_>, chat: ChatRef, text: &str) -> sql::QueryResult<(i64, bool)> {
    tx.prepare(
        "SELECT count(*), COALESCE(max(CASE WHEN message_text = ?2 THEN 1 ELSE 0 END), 0) FROM outgoing_messages o
         WHERE chat_id = ?1 AND kind = 'command' AND sent_at IS NULL AND taken_back_at IS NULL AND EXISTS (
             SELECT 1 FROM outgoing_parts p WHERE p.outgoing_id = o.id AND p.state IN ('planned', 'attempting'))",
    )?
    .query_row((chat, text), |row| Ok((row.get(0)?, row.get(1)?)))
}
