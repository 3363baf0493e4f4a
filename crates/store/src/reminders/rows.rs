//! Reminders: civil slots that each fire once, despite clock changes, restarts and daylight saving.
//!
//! [`reveille_base::schedule::due`] decides which slots fire; the rows hold the next slot and the history.

use chrono::{DateTime, NaiveDateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    schedule::{
        Missed, Rule, Slot,
        due::{self, DueTurn, Series, SlotHistory},
    },
    types::ChatRef,
    zone::Tz,
};

use crate::{
    FencedStore, NewOutgoing, Result,
    areas::{ReadStore, Reminders, WriteStore},
    odd_rows::read_optional_text,
    outbox::planned,
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// The format of a civil slot: local wall time, sortable as text.
const SLOT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
/// The maximum number of slots read for one reminder after the clock was set back. Beyond that, only the key prevents doubles.
const MAX_HISTORY: u32 = 10_000;

/// A new reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReminder {
    /// The chat to remind.
    pub chat: ChatRef,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The text.
    pub text: String,
    /// The recurrence; `None` for a single firing.
    pub rule: Option<Rule>,
    /// The IANA zone of its civil times, from when it was set. A change of the person's zone leaves it as it is.
    pub zone: String,
    /// The next civil slot, local wall time.
    pub slot: NaiveDateTime,
    /// That slot's instant.
    pub next_at: DateTime<Utc>,
    /// The policy for a missed slot.
    pub missed: Missed,
}

/// A stored reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    /// The row id, which people see as its number.
    pub id: i64,
    /// The text and the schedule.
    pub what: NewReminder,
    /// The time of creation; `None` if unreadable.
    pub created_at: Option<DateTime<Utc>>,
    /// The time at which the next slot was written; `None` in a row older than this column.
    pub written_at: Option<DateTime<Utc>>,
    /// The last slot, if it was missed and skipped.
    pub skipped: Option<NaiveDateTime>,
}

/// The decision on a due reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The reminder.
    pub id: i64,
    /// The slot that fires and the slots passed over.
    pub turn: DueTurn,
    /// The policy for the slots passed over.
    pub missed: Missed,
}

/// Firings reported in one message, or silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The slots that fire or are passed over.
    pub firings: Vec<Firing>,
    /// The message. Not sent if all of the slots had fired before.
    pub message: Option<NewOutgoing>,
}

impl Reminder {
    const SELECT: &str =
        "SELECT id, chat_id, thread_id, text, rule, zone, slot, next_at, missed, created_at, written_at,
                (SELECT CASE outcome WHEN 'skip' THEN f.slot END FROM reminder_firings f
                 WHERE f.reminder_id = r.id ORDER BY f.slot DESC LIMIT 1)
         FROM reminders r";

    /// The reminder as a series; `tz` replaces a zone unknown here.
    pub fn series(&self, tz: Tz) -> Series<'_> {
        Series { rule: self.what.rule.as_ref(), tz: self.zone(tz), missed: self.what.missed, next: self.next() }
    }

    /// The next slot.
    pub fn next(&self) -> Slot {
        Slot { civil: self.what.slot, at: self.what.next_at }
    }

    /// The zone of its civil times; `tz` if the zone is unknown here.
    pub fn zone(&self, tz: Tz) -> Tz {
        self.what.zone.parse().unwrap_or(tz)
    }

    /// Returns whether the reminder follows the clock of a zone other than `tz`. An interval in minutes follows no zone.
    pub fn keeps_another_zone(&self, tz: Tz) -> bool {
        self.zone(tz) != tz && !matches!(self.what.rule, Some(Rule::Interval { .. }))
    }

    /// Returns whether the clock has been set back since its next slot was written, so that earlier slots may be ahead again.
    pub fn is_set_back(&self, now: DateTime<Utc>) -> bool {
        self.what.rule.is_some() && self.written_at.is_some_and(|written| due::is_set_back(written, now))
    }

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let unreadable =
            |column, value: String| sql::Error::for_unreadable_column(column, &format!("not understood: {value}"));
        let (slot, next_at): (String, String) = (row.get(6)?, row.get(7)?);
        let time = |column| row.get::<_, Option<String>>(column).map(|text| text.as_deref().and_then(parse_time));
        Ok(Self {
            id: row.get(0)?,
            what: NewReminder {
                chat: row.get(1)?,
                thread_id: row.get(2)?,
                text: row.get(3)?,
                rule: row
                    .get::<_, Option<String>>(4)?
                    .map(|text| serde_json::from_str(&text).map_err(|_| unreadable(4, text)))
                    .transpose()?,
                zone: row.get(5)?,
                slot: read_slot(&slot).ok_or_else(|| unreadable(6, slot))?,
                next_at: parse_time(&next_at).ok_or_else(|| unreadable(7, next_at))?,
                missed: Missed::parse(&row.get::<_, String>(8)?).unwrap_or_default(),
            },
            created_at: time(9)?,
            written_at: time(10)?,
            skipped: row.get::<_, Option<String>>(11)?.as_deref().and_then(read_slot),
        })
    }
}

impl<S: ReadStore> Reminders<S> {
    /// The active reminders, next one first. An unreadable one, for example after a mistake by hand, is skipped and logged, so that it
    /// neither blocks the others nor fires as something else.
    pub fn list_reminders(&self) -> Result<Vec<Reminder>> {
        let sql = format!("{} WHERE state = 'active' ORDER BY next_at, id", Reminder::SELECT);
        let mut statement = self.0.conn().prepare(&sql)?;
        let mut reminders = Vec::new();
        for reminder in statement.query_map([], Reminder::from_row)? {
            match reminder {
                Ok(reminder) => reminders.push(reminder),
                Err(why) if why.is_of_value() => {
                    tracing::warn!(%why, "a reminder in the database can't be read");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(reminders)
    }

    /// A finished reminder.
    pub fn past_reminder(&self, id: i64) -> Result<Option<Reminder>> {
        let sql = format!("{} WHERE state = 'done' AND id = ?1", Reminder::SELECT);
        Ok(self.0.conn().prepare(&sql)?.query_row([id], Reminder::from_row).optional()?)
    }

    /// The time at which the next active reminder is due.
    pub fn find_next_reminder_time(&self) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT min(next_at) FROM reminders WHERE state = 'active'";
        let text = self.0.conn().query_row(sql, [], |row| read_optional_text(row, 0))?;
        Ok(text.as_deref().and_then(parse_time))
    }

    /// The history of a reminder's slots from one slot on. From its next slot on the history is empty, except after the clock was set
    /// back.
    pub fn reminder_history(&self, id: i64, from: NaiveDateTime) -> Result<SlotHistory> {
        let mut statement = self.0.conn().prepare(
            "SELECT slot, outcome, first_slot FROM reminder_firings WHERE reminder_id = ?1 AND slot >= ?2
             ORDER BY slot LIMIT ?3",
        )?;
        let mut rows = statement.query((id, write_slot(from), MAX_HISTORY))?;
        let mut history = SlotHistory::default();
        while let Some(row) = rows.next()? {
            let Some(slot) = read_slot(&row.get::<_, String>(0)?) else { continue };
            if row.get::<_, String>(1)? == Missed::Run.name() {
                history.happened.insert(slot);
            }
            let first = row.get::<_, Option<String>>(2)?;
            history.passed.extend(first.as_deref().and_then(read_slot).map(|first| (first, slot)));
        }
        Ok(history)
    }
}

impl Reminders<&mut FencedStore<'_>> {
    /// Rewrites a next slot, after the clock was set back.
    pub fn set_next_slot(&mut self, id: i64, next: Slot) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| set_next(tx, id, Some(next), now))
    }
}

/// Fires due slots in a cycle's transaction: firings, the next slots and the message. Slots that have all fired before send nothing.
pub(crate) fn fire_reminders(tx: &Transaction<'_>, round: &Round, cycle: &str, now: DateTime<Utc>) -> Result<()> {
    let mut new = Vec::new();
    for firing in &round.firings {
        if let Some(slot) = record_firing(tx, firing, now)? {
            new.push((firing.id, slot));
        }
        set_next(tx, firing.id, firing.turn.next, now)?;
    }
    let Some(message) = round.message.as_ref().filter(|_| !new.is_empty()) else {
        return Ok(());
    };
    let message = NewOutgoing { cycle_id: Some(cycle.to_owned()), ..message.clone() };
    let outgoing = planned::insert(tx, &message, now)?;
    for (id, slot) in new {
        tx.execute(
            "UPDATE reminder_firings SET outgoing_id = ?3 WHERE reminder_id = ?1 AND slot = ?2",
            (id, slot, outgoing),
        )?;
    }
    Ok(())
}

/// Records the outcome of the due slots; returns the slot's key if the firing is new. A slot that was passed over may still fire, if the
/// clock was wrong; a fired slot stays as it is.
fn record_firing(tx: &Transaction<'_>, firing: &Firing, now: DateTime<Utc>) -> Result<Option<String>> {
    let DueTurn { happens, passed, .. } = firing.turn;
    let outcome = if happens.is_some() { Missed::Run } else { firing.missed };
    let Some(slot) = happens.or(passed.map(|passed| passed.last)).map(|slot| write_slot(slot.civil)) else {
        return Ok(None);
    };
    let first = passed.map(|passed| write_slot(passed.first.civil));
    let is_new = tx
        .query_row(
            "INSERT INTO reminder_firings (reminder_id, slot, fired_at, outcome, first_slot) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (reminder_id, slot) DO UPDATE SET fired_at = excluded.fired_at, outcome = excluded.outcome,
                 first_slot = CASE WHEN excluded.first_slot < reminder_firings.first_slot THEN excluded.first_slot
                                   ELSE COALESCE(reminder_firings.first_slot, excluded.first_slot) END
             WHERE reminder_firings.outcome <> 'run' AND excluded.outcome = 'run' RETURNING 1",
            (firing.id, &slot, format_rfc3339(now), outcome.name(), first),
            |_| Ok(()),
        )
        .optional()?;
    Ok(is_new.map(|()| slot))
}

fn set_next(tx: &Transaction<'_>, id: i64, next: Option<Slot>, now: DateTime<Utc>) -> Result<()> {
    match next {
        Some(Slot { civil, at }) => tx.execute(
            "UPDATE reminders SET slot = ?2, next_at = ?3, written_at = ?4 WHERE id = ?1 AND state = 'active'",
            (id, write_slot(civil), format_rfc3339(at), format_rfc3339(now)),
        )?,
        None => tx.execute("UPDATE reminders SET state = 'done' WHERE id = ?1 AND state = 'active'", [id])?,
    };
    Ok(())
}

fn write_slot(slot: NaiveDateTime) -> String {
    slot.format(SLOT_FORMAT).to_string()
}

fn read_slot(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, SLOT_FORMAT).ok()
}

/// Inserts a reminder in a cycle's or a command's transaction.
pub(crate) fn insert_reminder(
    tx: &Transaction<'_>,
    reminder: &NewReminder,
    cycle: Option<&str>,
    now: DateTime<Utc>,
) -> Result<()> {
    tx.execute(
        "INSERT INTO reminders (chat_id, thread_id, text, rule, zone, slot, next_at, missed, created_at, written_at,
                                cycle_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)",
        sql::params![
            reminder.chat,
            reminder.thread_id,
            reminder.text,
            reminder.rule.as_ref().map(to_json),
            reminder.zone,
            write_slot(reminder.slot),
            format_rfc3339(reminder.next_at),
            reminder.missed.name(),
            format_rfc3339(now),
            cycle
        ],
    )?;
    Ok(())
}

/// The text of a reminder.
pub(crate) fn find_reminder_text(tx: &Transaction<'_>, id: i64) -> Result<Option<String>> {
    Ok(tx.prepare("SELECT text FROM reminders WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?)
}

/// Cancels a reminder in the transaction of a cycle or of a person's order.
pub(crate) fn cancel_reminder(tx: &Transaction<'_>, id: i64, cycle: Option<&str>) -> Result<()> {
    tx.execute(
        "UPDATE reminders SET state = 'cancelled', ended_by = ?2 WHERE id = ?1 AND state = 'active'",
        (id, cycle),
    )?;
    Ok(())
}
