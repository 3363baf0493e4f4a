//! The areas of the store: `store.outbox()` reads, `store.outbox_mut()` writes, too.
//!
//! An area taken from a [`FencedStore`] carries its fence: each write checks in the same transaction that no later wake has taken over.
//! A few areas have methods for a [`FencedStore`] only; those are the writes that only a wake may do.

use super::{
    FencedStore, Result, Store,
    sql::{SqlConnection, Transaction},
};

/// A store that can be read.
pub(crate) trait ReadStore {
    /// The store itself.
    fn store(&self) -> &Store;

    /// Its connection.
    fn conn(&self) -> &SqlConnection {
        &self.store().conn
    }
}

/// A store that can be written.
pub(crate) trait WriteStore: ReadStore {
    /// Runs one immediate transaction, rolled back if `work` fails.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](super::StoreError::LeaseLost) from a [`FencedStore`] whose wake was replaced.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T>;

    /// As [`WriteStore::write`], without waiting for the disk. Use it for data that may be lost in a power cut: because it is read afresh
    /// anyway, or because a synced write follows before anything leaves this machine. A killed process loses nothing, and the next synced
    /// write makes this data durable too.
    fn write_relaxed<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T>;

    /// As [`WriteStore::write`], even after the lease was lost: to record what has already happened.
    fn write_unfenced<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T>;
}

impl ReadStore for &Store {
    fn store(&self) -> &Store {
        self
    }
}

impl ReadStore for &mut Store {
    fn store(&self) -> &Store {
        self
    }
}

impl WriteStore for &mut Store {
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        Store::write(self, work)
    }

    fn write_relaxed<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        Store::write_without_sync(self, work)
    }

    fn write_unfenced<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        Store::write(self, work)
    }
}

impl ReadStore for &mut FencedStore<'_> {
    fn store(&self) -> &Store {
        self
    }
}

impl WriteStore for &mut FencedStore<'_> {
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.write_with_fence(work)
    }

    fn write_relaxed<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.write_fenced_without_sync(work)
    }

    fn write_unfenced<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.store.write(work)
    }
}

/// Declares each area, and its accessors on [`Store`] and [`FencedStore`].
macro_rules! areas {
    ($($(#[$doc:meta])* $area:ident: $read:ident, $write:ident;)*) => {
        $(
            $(#[$doc])*
            pub struct $area<S>(pub(crate) S);
        )*

        impl Store {
            $(
                $(#[$doc])*
                pub fn $read(&self) -> $area<&Self> {
                    $area(self)
                }

                $(#[$doc])*
                pub fn $write(&mut self) -> $area<&mut Self> {
                    $area(self)
                }
            )*
        }

        impl<'a> FencedStore<'a> {
            $(
                $(#[$doc])*
                pub fn $write(&mut self) -> $area<&mut FencedStore<'a>> {
                    $area(self)
                }
            )*
        }
    };
}

areas! {
    /// Questions put to people before an act, and their answers.
    Approvals: approvals, approvals_mut;
    /// Files that came with messages, and transcripts of voice notes.
    Attachments: attachments, attachments_mut;
    /// Choices and state for each chat: kept local, stopped, moved.
    Chats: chats, chats_mut;
    /// The rows of cycles: begun, parked, resumed, ended.
    Cycles: cycles, cycles_mut;
    /// Reads for lists, figures and statistics of finished cycles.
    CycleHistory: history, history_mut;
    /// Messages from people, from their arrival to their outcome.
    Inbox: inbox, inbox_mut;
    /// Standing jobs and their runs.
    Jobs: jobs, jobs_mut;
    /// The recorded steps of cycles.
    Journal: journal, journal_mut;
    /// The cost of model requests.
    Ledger: ledger, ledger_mut;
    /// Recurring upkeep, its failures, and the state of the models.
    Maintenance: maintenance, maintenance_mut;
    /// Outgoing messages, until their delivery is confirmed.
    Outbox: outbox, outbox_mut;
    /// Pairing of guests by code.
    People: people, people_mut;
    /// Proposed changes on branches of the memory.
    Proposals: proposals, proposals_mut;
    /// Finished cycles kept as examples.
    Recordings: recordings, recordings_mut;
    /// Reminders, their firings and answers.
    Reminders: reminders, reminders_mut;
    /// Deletion of old rows, and of words that a person wants forgotten.
    Retention: retention, retention_mut;
    /// Standing rules made from people's answers.
    Rules: rules, rules_mut;
    /// The messages that show a cycle's progress.
    StatusLines: status_lines, status_lines_mut;
    /// Sessions at terminals, and the messages for them.
    Terminals: terminals, terminals_mut;
    /// Steps that can be undone, and orders to undo them.
    Undos: undos, undos_mut;
}
