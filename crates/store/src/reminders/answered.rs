//! The buttons under a fired reminder: a message is answered once, even after several presses. Also the answers to reminders and
//! nudges, for their messages to show.

use chrono::{DateTime, NaiveTime, TimeDelta, Timelike as _, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    schedule::{Missed, Slot, resolve_local_time},
    types::{ChatRef, NudgeAnswer, ReminderAnswer},
    zone::Tz,
};

use super::rows;
use crate::{
    NewReminder, NewStep, Result,
    areas::{ReadStore, Reminders, WriteStore},
    sql::{self, OptionalExtension as _, Transaction},
    steps,
};

/// The time of the morning, in the reminder's zone.
const MORNING: Option<NaiveTime> = NaiveTime::from_hms_opt(9, 0, 0);
/// Before this hour, the morning is that of the same day.
const NIGHT_ENDS_HOUR: u32 = 5;

/// An answer by a button, and the message that should show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredMessage {
    /// The message's row.
    pub outgoing_id: i64,
    /// Its chat.
    pub chat: ChatRef,
    /// The channel's id of the message with the buttons.
    pub message_id: i64,
    /// The text of that message, without formatting.
    pub text: String,
    /// Whether that text is the caption of a file.
    pub is_caption: bool,
    /// The answer to a nudge; `None` for a reminder.
    pub nudge: Option<NudgeAnswer>,
    /// The time of the postponed reminder.
    pub again_at: Option<DateTime<Utc>>,
}

const ANSWERED: &str = "SELECT a.outgoing_id, o.chat_id, a.message_id, p.plain, p.as_file, a.nudge, a.again_at
    FROM (SELECT outgoing_id, message_id, NULL AS nudge, again_at, is_shown FROM reminder_answers
          UNION ALL
          SELECT outgoing_id, message_id, answer, again_at, is_shown FROM nudges WHERE answer IS NOT NULL) a
    JOIN outgoing_messages o ON o.id = a.outgoing_id
    JOIN outgoing_parts p ON p.outgoing_id = o.id
    WHERE p.part = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = o.id)";

impl AnsweredMessage {
    fn from_row(row: &sql::Row<'_>) -> sql::QueryResult<Self> {
        let nudge: Option<String> = row.get(5)?;
        Ok(Self {
            outgoing_id: row.get(0)?,
            chat: row.get(1)?,
            message_id: row.get(2)?,
            text: row.get(3)?,
            is_caption: row.get(4)?,
            nudge: nudge.map(|name| NudgeAnswer::from_name(&name).unwrap_or(NudgeAnswer::Done)),
            again_at: row.get::<_, Option<String>>(6)?.as_deref().and_then(parse_time),
        })
    }
}

impl<S: ReadStore> Reminders<S> {
    /// The answer to the reminder or nudge in a message, if any.
    pub fn find_message_answer(&self, outgoing_id: i64) -> Result<Option<AnsweredMessage>> {
        let sql = format!("{ANSWERED} AND a.outgoing_id = ?1");
        Ok(self.0.conn().prepare(&sql)?.query_row([outgoing_id], AnsweredMessage::from_row).optional()?)
    }

    /// The answers that their messages don't show yet.
    pub fn unshown_answers(&self) -> Result<Vec<AnsweredMessage>> {
        let sql = format!("{ANSWERED} AND a.is_shown = 0 ORDER BY a.outgoing_id LIMIT 50");
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], AnsweredMessage::from_row)?.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Reminders<S> {
    /// Records that a message shows its answer, or never will.
    pub fn record_shown_answer(&mut self, outgoing_id: i64) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE reminder_answers SET is_shown = 1 WHERE outgoing_id = ?1", [outgoing_id])?;
            tx.execute("UPDATE nudges SET is_shown = 1 WHERE outgoing_id = ?1", [outgoing_id])?;
            Ok(())
        })
    }
}

/// Records a press of a reminder's button. `true` if it decided something: an unanswered reminder of that chat, under its own message. A
/// postponed reminder becomes a new one, beside the recurring one.
pub(crate) fn record_tap(
    tx: &Transaction<'_>,
    (chat, message_id): (ChatRef, i64),
    (outgoing_id, answer): (i64, ReminderAnswer),
    now: DateTime<Utc>,
) -> Result<bool> {
    if !is_last_part(tx, "reminder", outgoing_id, (chat, message_id))? {
        return Ok(false);
    }
    let again = build_postponed_reminders(tx, outgoing_id, chat, answer, now)?;
    let again_at = again.first().map(|reminder| format_rfc3339(reminder.next_at));
    if again_at.is_none() && answer != ReminderAnswer::Done {
        // The reminder's text was forgotten.
        return Ok(false);
    }
    let n = tx.execute(
        "INSERT INTO reminder_answers (outgoing_id, message_id, answer, at, again_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        (outgoing_id, message_id, answer.name(), format_rfc3339(now), again_at),
    )?;
    if n == 1 {
        again.iter().try_for_each(|reminder| set_postponed(tx, reminder, now))?;
    }
    Ok(n == 1)
}

/// Sets a reminder postponed by a button, as an undoable step.
pub(super) fn set_postponed(tx: &Transaction<'_>, reminder: &NewReminder, now: DateTime<Utc>) -> Result<()> {
    let did = format!("put off the reminder “{}”", reminder.text);
    let step = steps::record_step(tx, &NewStep { chat: reminder.chat, did, commit: None }, None, now)?;
    rows::insert_reminder(tx, reminder, Some(&step), now)
}

/// Returns whether the pressed message is this message of ours, of this kind. A message with an unknown delivery counts too.
pub(super) fn is_last_part(
    tx: &Transaction<'_>,
    kind: &str,
    outgoing_id: i64,
    (chat, message_id): (ChatRef, i64),
) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_messages o JOIN outgoing_parts p ON p.outgoing_id = o.id
               WHERE o.id = ?1 AND o.kind = ?4 AND o.chat_id = ?2
                 AND p.part = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)
                 AND (p.channel_message_id = ?3 OR p.repeats > 0
                      OR p.channel_message_id IS NULL AND p.state IN ('attempting', 'unknown')))";
    Ok(tx.prepare(sql)?.query_row((outgoing_id, chat, message_id, kind), |row| row.get(0))?)
}

/// The postponed reminders of a message.
fn build_postponed_reminders(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    chat: ChatRef,
    answer: ReminderAnswer,
    now: DateTime<Utc>,
) -> Result<Vec<NewReminder>> {
    let mut statement = tx.prepare(
        "SELECT text, thread_id, zone FROM reminders
         WHERE id IN (SELECT reminder_id FROM reminder_firings WHERE outgoing_id = ?1) ORDER BY id",
    )?;
    let mut rows = statement.query([outgoing_id])?;
    let mut again = Vec::new();
    while let Some(row) = rows.next()? {
        let (text, thread_id, zone): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if let Some(Slot { civil, at }) = find_postponed_slot(answer, now, zone.parse().unwrap_or(Tz::UTC)) {
            let missed = Missed::default();
            again.push(NewReminder { chat, thread_id, text, rule: None, zone, slot: civil, next_at: at, missed });
        }
    }
    Ok(again)
}

/// The slot of a postponed reminder.
pub(super) fn find_postponed_slot(answer: ReminderAnswer, now: DateTime<Utc>, tz: Tz) -> Option<Slot> {
    let local = now.with_timezone(&tz).naive_local();
    match answer {
        ReminderAnswer::Done => None,
        ReminderAnswer::InAnHour => Some(Slot::from_instant(now + TimeDelta::hours(1), tz)),
        ReminderAnswer::InTheMorning => {
            let days = if local.hour() < NIGHT_ENDS_HOUR { 0 } else { 1 };
            Some(resolve_local_time((local.date() + TimeDelta::days(days)).and_time(MORNING?), tz))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_morning_is_the_next_one_by_the_reminders_own_zone() {
        let berlin: Tz = "Europe/Berlin".parse().unwrap();
        let morning =
            |now: &str| find_postponed_slot(ReminderAnswer::InTheMorning, parse_time(now).unwrap(), berlin).unwrap();
        assert_eq!(morning("2026-11-21T14:00:00Z").at, parse_time("2026-11-22T08:00:00Z").unwrap());
        assert_eq!(morning("2026-11-21T23:30:00Z").at, parse_time("2026-11-22T08:00:00Z").unwrap());
        assert_eq!(morning("2026-11-21T22:30:00Z").civil.to_string(), "2026-11-22 09:00:00");
    }
}
