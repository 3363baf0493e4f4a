//! The entry of messages into a conversation: with a cycle's start, or during the cycle.
//!
//! Before that, the bot may change a row, for an edit or a further part of an album; afterwards it adds a new row instead. A conversation
//! therefore claims a message only if the row is unchanged since it was read, so that no words are lost between the two.

use chrono::{DateTime, Utc};

use super::journal;
use crate::{
    Change, Entry, Fence, FencedStore, Incoming, NewCycle, Result,
    areas::{Cycles, WriteStore},
    cycles::rows,
    sql::{OptionalExtension as _, Transaction},
};

impl Cycles<&mut FencedStore<'_>> {
    /// Starts a cycle with its first journal entries, and applies the changes they report.
    pub fn begin_cycle(&mut self, cycle: &NewCycle, entries: &[Entry], changes: &[Change]) -> Result<()> {
        let now = self.0.now();
        let fence = self.0.fence();
        self.0.write(|tx| {
            rows::insert_cycle(tx, fence, cycle, entries, now)?;
            changes.iter().try_for_each(|change| journal::carry_out(tx, &cycle.id, change, now))
        })
    }

    /// Starts a cycle whose opening was made of messages as they were `seen`. `false`, and nothing happens, if one of them has changed.
    pub fn begin_message_cycle(&mut self, cycle: &NewCycle, opening: &Entry, seen: &[&Incoming]) -> Result<bool> {
        let now = self.0.now();
        let fence = self.0.fence();
        // A power cut that loses this leaves the messages queued as before. Before anything leaves this machine, either the request's
        // reservation or the recorded reply is synced.
        self.0.write_relaxed(|tx| insert_message_cycle(tx, (cycle, fence), (opening, &[]), seen, now))
    }

    /// Starts a cycle by rule, with the entry and changes of all its work, for messages as they were `seen`. `false`, and nothing
    /// happens, if one of them has changed.
    pub fn begin_by_rule(
        &mut self,
        cycle: &NewCycle,
        done: &Entry,
        changes: &[Change],
        seen: &[&Incoming],
    ) -> Result<bool> {
        let now = self.0.now();
        let fence = self.0.fence();
        self.0.write(|tx| insert_message_cycle(tx, (cycle, fence), (done, changes), seen, now))
    }

    /// Appends an entry made of messages as they were `seen`. `false`, and nothing happens, if one of them has changed.
    pub fn append_messages(&mut self, cycle_id: &str, entry: &Entry, seen: &[&Incoming]) -> Result<bool> {
        let now = self.0.now();
        self.0.write(|tx| {
            let is_as_seen = is_unchanged(tx, seen)?;
            if is_as_seen {
                journal::append_entry(tx, cycle_id, entry, now)?;
            }
            Ok(is_as_seen)
        })
    }
}

fn insert_message_cycle(
    tx: &Transaction<'_>,
    (cycle, fence): (&NewCycle, Fence),
    (entry, changes): (&Entry, &[Change]),
    seen: &[&Incoming],
    now: DateTime<Utc>,
) -> Result<bool> {
    let is_as_seen = is_unchanged(tx, seen)?;
    if is_as_seen {
        rows::insert_cycle(tx, fence, cycle, std::slice::from_ref(entry), now)?;
        changes.iter().try_for_each(|change| journal::carry_out(tx, &cycle.id, change, now))?;
    }
    Ok(is_as_seen)
}

/// Returns whether the messages are still queued and unchanged.
fn is_unchanged(tx: &Transaction<'_>, seen: &[&Incoming]) -> Result<bool> {
    let sql = format!("SELECT {} FROM incoming_messages WHERE id = ?1 AND processed = 0", Incoming::columns());
    let mut statement = tx.prepare(&sql)?;
    for message in seen {
        let now = statement.query_row([message.id], Incoming::from_row).optional()?;
        if now.as_ref() != Some(*message) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records the cycle that claims these messages.
pub(crate) fn record_claim(tx: &Transaction<'_>, ids: &[i64], cycle: &str) -> Result<()> {
    let mut last = tx.prepare("UPDATE incoming_messages SET cycle_id = ?2 WHERE id = ?1 AND processed = 0")?;
    let mut each = tx.prepare("INSERT INTO taken_up (cycle_id, message_id) VALUES (?2, ?1) ON CONFLICT DO NOTHING")?;
    for id in ids {
        last.execute((id, cycle))?;
        each.execute((id, cycle))?;
    }
    Ok(())
}
