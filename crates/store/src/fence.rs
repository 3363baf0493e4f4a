//! The number on each write of a wake; the store refuses the write if a later number is in force.

use std::ops::Deref;

use chrono::{DateTime, Utc};

use reveille_base::clock::Clock;

use super::{Result, Store, StoreError};
use crate::sql::Transaction;

/// The number of a holder of the wake lock: each holder gets a larger one than the holders before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub i64);

/// The store of the wake that holds the lease, with the writes only a wake may do. Reads work as on any [`Store`].
pub struct FencedStore<'a> {
    pub(super) store: &'a mut Store,
    fence: Fence,
    clock: &'a dyn Clock,
}

impl<'a> FencedStore<'a> {
    /// Wraps the store for the holder of this fence; see [`Store::take_lease`].
    pub fn new(store: &'a mut Store, fence: Fence, clock: &'a dyn Clock) -> Self {
        Self { store, fence, clock }
    }

    /// The fence of its writes.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// The store without the fence, for writes that must not wait for it: how a send ended, the cost of a request outside any cycle, the
    /// lines a terminal has shown.
    pub fn unfenced(&mut self) -> &mut Store {
        self.store
    }

    /// The time by the wake's clock, which its writes record.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Runs one immediate transaction; refused if another wake has taken over.
    pub(super) fn write_with_fence<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let fence = self.fence;
        self.store.write(|tx| {
            check_fence(tx, fence)?;
            work(tx)
        })
    }

    /// As [`FencedStore::write_with_fence`], by [`Store::write_without_sync`].
    pub(super) fn write_fenced_without_sync<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let fence = self.fence;
        self.store.write_without_sync(|tx| {
            check_fence(tx, fence)?;
            work(tx)
        })
    }
}

impl Deref for FencedStore<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        self.store
    }
}

/// Refuses unless this fence is in force.
fn check_fence(tx: &Transaction<'_>, fence: Fence) -> Result<()> {
    let now: i64 = tx.query_row("SELECT fence FROM processing_lock WHERE id = 1", [], |row| row.get(0))?;
    // fault: wake-lost-lease-write
    if now == fence.0 { Ok(()) } else { Err(StoreError::LeaseLost { held: fence.0, now }) }
}
