//! The fence in `processing_lock`: each holder of the wake lock gets the next number, and every write of a wake carries it. The lock
//! itself is a flock on a file (see [`crate::wake_lock`]); the fence makes a lost lock harmless for the database.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    process::Identity,
};

use super::{Result, Store, StoreError, to_json};
use crate::{FencedStore, clock_rollback, fence::Fence, messages::overheard, sql::OptionalExtension as _};

/// Takes a lock that belongs to the connection and ends with it: one wake at a time works on a shared database. A wake that has to
/// reconnect meanwhile has lost the lock; then its fence decides.
const TAKE_TURN: &str = "SELECT pg_try_advisory_lock(1919252845, hashtext(current_schema()))";

/// The holder of the lease according to `processing_lock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The holder's fence.
    pub fence: Fence,
    /// Whether the lease is still held.
    pub is_locked: bool,
    /// The start of the lease.
    pub locked_at: Option<DateTime<Utc>>,
    /// The holder's process, if readable.
    pub identity: Option<Identity>,
}

impl Store {
    /// Takes the next fence for a process that already holds the flock. Brings waits forward if the clock was set back.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while a wake of another machine works on a shared database, where the flock doesn't help.
    pub fn take_lease(&mut self, identity: &Identity, now: DateTime<Utc>) -> Result<Fence> {
        if self.is_shared() {
            let is_ours: bool = self.conn.query_row(TAKE_TURN, [], |row| row.get(0))?;
            // fault: two-machines-work-shared
            if !is_ours {
                return Err(StoreError::Busy);
            }
        }
        self.write_without_sync(|tx| {
            // Without a bot, nothing else deletes overheard messages.
            overheard::delete_old_messages(tx, now)?;
            tx.execute("INSERT INTO processing_lock (id) VALUES (1) ON CONFLICT DO NOTHING", [])?;
            // fault: waits-sits-out-clock
            clock_rollback::shift_waits(tx, now)?;
            let fence = tx.query_row(
                "UPDATE processing_lock SET is_locked = 1, locked_at = ?1, seen_at = ?1, fence = fence + 1, holder = ?2
                 WHERE id = 1 RETURNING fence",
                (format_rfc3339(now), to_json(identity)),
                |row| row.get(0),
            )?;
            Ok(Fence(fence))
        })
    }

    /// The holder of the lease.
    pub fn find_lease_holder(&self) -> Result<Option<LeaseHolder>> {
        let row = self
            .conn
            .query_row("SELECT fence, is_locked, locked_at, holder FROM processing_lock WHERE id = 1", [], |row| {
                Ok(LeaseHolder {
                    fence: Fence(row.get(0)?),
                    is_locked: row.get::<_, i64>(1)? != 0,
                    locked_at: row.get::<_, Option<String>>(2)?.as_deref().and_then(parse_time),
                    identity: row.get::<_, Option<String>>(3)?.and_then(|text| serde_json::from_str(&text).ok()),
                })
            })
            .optional()?;
        Ok(row)
    }
}

impl FencedStore<'_> {
    /// Frees the lease, unless another wake holds it by now.
    pub fn release_lease(&mut self) -> Result<()> {
        let fence = self.fence();
        let freed = self.store.write_without_sync(|tx| {
            tx.execute(
                "UPDATE processing_lock SET is_locked = 0, locked_at = NULL, holder = NULL WHERE id = 1 AND fence = ?1",
                [fence.0],
            )?;
            Ok(())
        });
        if self.is_shared() {
            self.conn.execute_batch("SELECT pg_advisory_unlock_all()")?;
        }
        freed
    }
}
