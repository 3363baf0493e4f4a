//! Reminders: civil slots that fire once each, whatever clocks, restarts and daylight saving do.

use chrono::{DateTime, NaiveDateTime, Utc};
use rusqlite::{OptionalExtension as _, Row, Transaction};

use super::{Fence, NewOutgoing, Result, Store, json, outbox};
use crate::{
    clock::{parse_time, rfc3339},
    schedule::Rule,
};

/// How a civil slot is written: local wall time, sortable as text.
const SLOT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";

/// A reminder to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReminder {
    /// Whom to remind.
    pub chat_id: i64,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// What of.
    pub text: String,
    /// How it recurs; `None`: once.
    pub rule: Option<Rule>,
    /// IANA zone of its civil times.
    pub zone: String,
    /// The next civil slot, local wall time.
    pub slot: NaiveDateTime,
    /// That slot's instant.
    pub next_at: DateTime<Utc>,
}

/// A reminder that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    /// Its number, as people see it.
    pub id: i64,
    /// What it says and when.
    pub what: NewReminder,
}

/// A due slot of a reminder, with what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The reminder.
    pub id: i64,
    /// The slot that fires.
    pub slot: NaiveDateTime,
    /// The message to be sent.
    pub message: NewOutgoing,
    /// The following slot and its instant; `None` ends the reminder.
    pub next: Option<(NaiveDateTime, DateTime<Utc>)>,
}

impl Reminder {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let slot: String = row.get(6)?;
        let next_at: String = row.get(7)?;
        let unreadable = |column: usize, value: String| {
            rusqlite::Error::FromSqlConversionFailure(
                column,
                rusqlite::types::Type::Text,
                format!("not understood: {value}").into(),
            )
        };
        Ok(Self {
            id: row.get(0)?,
            what: NewReminder {
                chat_id: row.get(1)?,
                thread_id: row.get(2)?,
                text: row.get(3)?,
                rule: row
                    .get::<_, Option<String>>(4)?
                    .map(|text| serde_json::from_str(&text).map_err(|_| unreadable(4, text)))
                    .transpose()?,
                zone: row.get(5)?,
                slot: NaiveDateTime::parse_from_str(&slot, SLOT_FORMAT).map_err(|_| unreadable(6, slot))?,
                next_at: parse_time(&next_at).ok_or_else(|| unreadable(7, next_at))?,
            },
        })
    }
}

impl Store {
    /// Active reminders, the next one first. One that can't be read, as after a hand's slip in the database, is left out and
    /// logged: it must not hold up the others, nor fire as something else.
    pub fn reminders(&self) -> Result<Vec<Reminder>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, chat_id, thread_id, text, rule, zone, slot, next_at FROM reminders
             WHERE state = 'active' ORDER BY next_at, id",
        )?;
        let mut reminders = Vec::new();
        for reminder in statement.query_map([], Reminder::read)? {
            match reminder {
                Ok(reminder) => reminders.push(reminder),
                Err(rusqlite::Error::FromSqlConversionFailure(_, _, why)) => {
                    tracing::warn!(%why, "a reminder in the database can't be read");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(reminders)
    }

    /// When the next active reminder is due.
    pub fn next_reminder_at(&self) -> Result<Option<DateTime<Utc>>> {
        let text: Option<String> =
            self.conn.query_row("SELECT min(next_at) FROM reminders WHERE state = 'active'", [], |row| row.get(0))?;
        Ok(text.as_deref().and_then(parse_time))
    }

    /// Fires due slots: message, firing and the next slot are one transaction, and a slot that has fired before sends
    /// nothing.
    pub fn fire(&mut self, fence: Fence, firings: &[Firing], now: DateTime<Utc>) -> Result<()> {
        self.fenced(fence, |tx| firings.iter().try_for_each(|firing| fire_one(tx, firing, now)))
    }
}

fn fire_one(tx: &Transaction<'_>, firing: &Firing, now: DateTime<Utc>) -> Result<()> {
    let slot = firing.slot.format(SLOT_FORMAT).to_string();
    let is_new = tx
        .query_row(
            "INSERT INTO reminder_firings (reminder_id, slot, fired_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING RETURNING 1",
            (firing.id, &slot, rfc3339(now)),
            |_| Ok(()),
        )
        .optional()?
        .is_some();
    if is_new {
        let outgoing = outbox::insert(tx, &firing.message, now)?;
        tx.execute(
            "UPDATE reminder_firings SET outgoing_id = ?3 WHERE reminder_id = ?1 AND slot = ?2",
            (firing.id, &slot, outgoing),
        )?;
    }
    match firing.next {
        Some((slot, at)) => tx.execute(
            "UPDATE reminders SET slot = ?2, next_at = ?3 WHERE id = ?1 AND state = 'active'",
            (firing.id, slot.format(SLOT_FORMAT).to_string(), rfc3339(at)),
        )?,
        None => tx.execute("UPDATE reminders SET state = 'done' WHERE id = ?1 AND state = 'active'", [firing.id])?,
    };
    Ok(())
}

/// Keeps a reminder within a cycle's transaction.
pub(super) fn add(tx: &Transaction<'_>, reminder: &NewReminder, cycle: &str, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO reminders (chat_id, thread_id, text, rule, zone, slot, next_at, created_at, cycle_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        rusqlite::params![
            reminder.chat_id,
            reminder.thread_id,
            reminder.text,
            reminder.rule.as_ref().map(json),
            reminder.zone,
            reminder.slot.format(SLOT_FORMAT).to_string(),
            rfc3339(reminder.next_at),
            rfc3339(now),
            cycle
        ],
    )?;
    Ok(())
}

/// Ends a reminder within a cycle's transaction.
pub(super) fn end(tx: &Transaction<'_>, id: i64, state: &str) -> Result<()> {
    tx.execute("UPDATE reminders SET state = ?2 WHERE id = ?1 AND state = 'active'", (id, state))?;
    Ok(())
}
