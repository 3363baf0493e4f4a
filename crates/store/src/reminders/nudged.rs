//! The buttons under an unasked message: a message is answered once. "In the morning" becomes a reminder at once; other answers need a
//! wake, since they change the memory.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::format_rfc3339,
    schedule::Missed,
    types::{ChatRef, NudgeAnswer, ReminderAnswer},
    zone::Tz,
};

use super::answered;
use crate::{
    NewOutgoing, NewReminder, Result,
    areas::{ReadStore, Reminders},
    odd_rows::read_text,
    sql::{self, Transaction},
};

/// An answer a wake has still to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenNudge {
    /// The message's row.
    pub outgoing_id: i64,
    /// Its chat.
    pub chat: ChatRef,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The title of its task.
    pub task: Option<String>,
    /// The answer.
    pub answer: NudgeAnswer,
}

impl<S: ReadStore> Reminders<S> {
    /// The answers a wake has still to act on, in the order of their messages. An answer of an unknown kind, by a newer version, waits
    /// for that version.
    pub fn open_nudges(&self) -> Result<Vec<OpenNudge>> {
        let mut statement = self.0.conn().prepare(
            "SELECT n.outgoing_id, o.chat_id, o.thread_id, n.task, n.answer
             FROM nudges n INDEXED BY nudges_open JOIN outgoing_messages o ON o.id = n.outgoing_id
             WHERE n.is_open = 1 ORDER BY n.outgoing_id",
        )?;
        let read = |row: &sql::Row<'_>| {
            let Some(answer) = NudgeAnswer::from_name(&read_text(row, 4)?) else { return Ok(None) };
            let (outgoing_id, chat, thread_id, task) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Some(OpenNudge { outgoing_id, chat, thread_id, task, answer }))
        };
        let nudges = statement.query_map([], read)?.collect::<sql::QueryResult<Vec<Option<OpenNudge>>>>()?;
        Ok(nudges.into_iter().flatten().collect())
    }
}

/// Records a press of a nudge's button. `true` if it decided something: an unpressed button of that very message.
pub(crate) fn record_tap(
    tx: &Transaction<'_>,
    (chat, message_id): (ChatRef, i64),
    (outgoing_id, answer): (i64, NudgeAnswer),
    now: DateTime<Utc>,
) -> Result<bool> {
    let is_offered = answered::is_last_part(tx, "tell", outgoing_id, (chat, message_id))?
        && crate::outbox::questions::nudge_answers(tx, outgoing_id)?.contains(&answer);
    if !is_offered {
        return Ok(false);
    }
    let again = match answer {
        NudgeAnswer::InTheMorning => build_repeat_reminder(tx, outgoing_id, now)?,
        NudgeAnswer::Done | NudgeAnswer::NoMore | NudgeAnswer::TakeBack => None,
    };
    let again_at = again.as_ref().map(|reminder| format_rfc3339(reminder.next_at));
    if again_at.is_none() && answer == NudgeAnswer::InTheMorning {
        return Ok(false);
    }
    let n = tx.execute(
        "UPDATE nudges SET message_id = ?2, answer = ?3, answered_at = ?4, again_at = ?5, is_open = ?6
         WHERE outgoing_id = ?1 AND answer IS NULL",
        (outgoing_id, message_id, answer.name(), format_rfc3339(now), again_at, needs_wake(answer)),
    )?;
    if n == 1 {
        again.iter().try_for_each(|reminder| answered::set_postponed(tx, reminder, now))?;
    }
    Ok(n == 1)
}

/// Returns whether a wake has still to act on an answer; an undo is ordered at once.
fn needs_wake(answer: NudgeAnswer) -> bool {
    matches!(answer, NudgeAnswer::Done | NudgeAnswer::NoMore)
}

/// The proposal a message reports on, and the destination for the answer.
pub(crate) fn read_reported_proposal(tx: &Transaction<'_>, outgoing_id: i64) -> Result<(i64, NewOutgoing)> {
    let sql = "SELECT n.proposal, o.chat_id, o.thread_id FROM nudges n JOIN outgoing_messages o ON o.id = n.outgoing_id
               WHERE n.outgoing_id = ?1";
    Ok(tx.prepare(sql)?.query_row([outgoing_id], |row| {
        Ok((row.get(0)?, NewOutgoing { chat: row.get(1)?, thread_id: row.get(2)?, ..NewOutgoing::default() }))
    })?)
}

/// The reminder that repeats a nudge.
fn build_repeat_reminder(tx: &Transaction<'_>, outgoing_id: i64, now: DateTime<Utc>) -> Result<Option<NewReminder>> {
    let sql = "SELECT o.chat_id, o.thread_id, o.message_text, n.zone FROM nudges n JOIN outgoing_messages o ON o.id = n.outgoing_id
               WHERE n.outgoing_id = ?1";
    let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?, read_text(row, 2)?, read_text(row, 3)?));
    let (chat, thread_id, text, zone) = tx.prepare(sql)?.query_row([outgoing_id], read)?;
    let slot = answered::find_postponed_slot(ReminderAnswer::InTheMorning, now, zone.parse().unwrap_or(Tz::UTC));
    Ok(slot.map(|slot| NewReminder {
        chat,
        thread_id,
        text,
        rule: None,
        zone,
        slot: slot.civil,
        next_at: slot.at,
        missed: Missed::default(),
    }))
}

/// Marks an answer as acted on, in a cycle's transaction.
pub(crate) fn close_nudge(tx: &Transaction<'_>, outgoing_id: i64) -> Result<()> {
    tx.execute("UPDATE nudges SET is_open = 0 WHERE outgoing_id = ?1", [outgoing_id])?;
    Ok(())
}
