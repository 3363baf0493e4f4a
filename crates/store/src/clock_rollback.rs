//! Brings waits forward after the clock was set back. A machine whose clock ran hours ahead until it found a network would otherwise wait
//! out all these hours, even for its own back-offs of at most an hour.
//!
//! The rollback is the last written time of the lease and the waits, less the time now. Each wait moves by that amount, so a delay the
//! other side asked for still counts from the moment it was asked for.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{LONGEST_WAIT, format_rfc3339, parse_time},
    schedule::due::is_set_back,
};

use super::{Result, Store};
use crate::sql::{SqlConnection, Transaction};

/// The last time at which the lease or a waiting row was written.
const LAST_SEEN: &str = "SELECT max(at) FROM (
    SELECT seen_at AS at FROM processing_lock WHERE id = 1
    UNION ALL SELECT changed_at FROM outgoing_parts
              WHERE state IN ('planned', 'attempting', 'unknown') AND not_before IS NOT NULL
    UNION ALL SELECT changed_at FROM attachments WHERE state IN ('wanted', 'kept') AND not_before IS NOT NULL) AS seen";

/// The waiting rows: table, further assignments, condition. A bot may write some of them at any time; rows written since the rollback
/// stay unchanged.
const WAITING: [(&str, &str, &str); 6] = [
    (
        "outgoing_parts",
        ", changed_at = ?1",
        "state IN ('planned', 'attempting', 'unknown') AND not_before IS NOT NULL AND changed_at > ?1",
    ),
    ("attachments", ", changed_at = ?1", "state IN ('wanted', 'kept') AND not_before IS NOT NULL AND changed_at > ?1"),
    ("incoming_messages", "", "processed = 0 AND not_before > ?1"),
    ("cycles", "", "state = 'waiting' AND not_before > ?1"),
    ("upkeep", "", "not_before > ?1"),
    ("model_breakers", "", "not_before > ?1"),
];

impl Store {
    /// Returns whether the clock was set back since the last write: the next lease brings the waits forward.
    pub fn is_set_back(&self, now: DateTime<Utc>) -> Result<bool> {
        Ok(find_rollback(&self.conn, now)?.is_some())
    }
}

/// Brings all waits forward by as much as the clock was set back.
pub(super) fn shift_waits(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<()> {
    let Some(back) = find_rollback(tx, now)? else { return Ok(()) };
    tracing::warn!(back_s = back.num_seconds(), "the clock was set back, so waits end earlier by as much");
    let earlier = format!("-{} seconds", back.num_seconds());
    for (table, also, is_waiting) in WAITING {
        // A wait beyond the longest possible one counts as over anyway, so it stays.
        let sql = format!(
            "UPDATE {table} SET not_before = CASE WHEN not_before > ?1 AND not_before <= ?3
                 THEN strftime('%Y-%m-%dT%H:%M:%fZ', not_before, ?2) ELSE not_before END{also}
             WHERE {is_waiting}"
        );
        tx.execute(&sql, (format_rfc3339(now), &earlier, format_rfc3339(now + LONGEST_WAIT)))?;
    }
    Ok(())
}

fn find_rollback(conn: &SqlConnection, now: DateTime<Utc>) -> Result<Option<TimeDelta>> {
    let last: Option<String> = conn.query_row(LAST_SEEN, [], |row| row.get(0))?;
    let last = last.as_deref().and_then(parse_time).filter(|last| is_set_back(*last, now));
    Ok(last.map(|last| last.signed_duration_since(now)))
}
