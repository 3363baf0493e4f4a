//! What the database has waiting, after the clock was set back: a machine that was hours ahead until it found a network would sit all
//! of that out, its own back-offs of an hour at most among it.
//!
//! How far it went back is what the lease and the waits themselves were last written at, less the time now. Each wait moves by that, so
//! that what the other side asked for is kept, and is counted from when it was asked for.

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::Transaction;

use super::Result;
use crate::clock::{LONGEST_WAIT, parse_time, rfc3339};

/// A smaller correction is sat out.
const NOTICED: TimeDelta = TimeDelta::minutes(1);

/// The times at which something was last written that may wait.
const LAST_SEEN: &str = "SELECT max(at) FROM (
    SELECT seen_at AS at FROM processing_lock WHERE id = 1
    UNION ALL SELECT changed_at FROM outgoing_parts
              WHERE state IN ('planned', 'attempting', 'unknown') AND not_before IS NOT NULL
    UNION ALL SELECT changed_at FROM attachments WHERE state IN ('wanted', 'kept') AND not_before IS NOT NULL)";

/// What waits, by table. A bot writes to some of them at any time: what it wrote since the correction stays as it is.
const WAITING: [(&str, &str); 5] = [
    ("outgoing_parts", "state IN ('planned', 'attempting', 'unknown') AND changed_at > ?1"),
    ("attachments", "state IN ('wanted', 'kept') AND changed_at > ?1"),
    ("incoming_messages", "processed = 0"),
    ("cycles", "state = 'waiting'"),
    ("upkeep", "true"),
];

/// Brings forward what waits by as much as the clock was set back since it was last seen.
pub(super) fn follow(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<()> {
    let last: Option<String> = tx.query_row(LAST_SEEN, [], |row| row.get(0))?;
    let back = last.as_deref().and_then(parse_time).map(|last| last.signed_duration_since(now));
    let Some(back) = back.filter(|back| *back >= NOTICED) else { return Ok(()) };
    tracing::warn!(back_s = back.num_seconds(), "the clock was set back; what waits is brought forward by that");
    let earlier = format!("-{} seconds", back.num_seconds());
    for (table, is_waiting) in WAITING {
        // What lies further ahead than any wait is over as it is.
        let sql = format!(
            "UPDATE {table} SET not_before = strftime('%Y-%m-%dT%H:%M:%fZ', not_before, ?2)
             WHERE {is_waiting} AND not_before > ?1 AND not_before <= ?3"
        );
        tx.execute(&sql, (rfc3339(now), &earlier, rfc3339(now + LONGEST_WAIT)))?;
    }
    Ok(())
}
