//! The number that each write of a wake carries: a later one in force refuses it.

use rusqlite::Transaction;

use super::{Result, StoreError};

/// The number of one holding of the wake lock; larger is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub i64);

/// Refuses when a later fence than ours is in force.
pub(super) fn check(tx: &Transaction<'_>, fence: Fence) -> Result<()> {
    let now: i64 = tx.query_row("SELECT fence FROM processing_lock WHERE id = 1", [], |row| row.get(0))?;
    if now == fence.0 { Ok(()) } else { Err(StoreError::LeaseLost { held: fence.0, now }) }
}
