//! The lease that decides who works, and its homes.
//!
//! - A file of this machine ([`reveille_store::wake_lock`]): acquired by the flock, or by the holder's end; renewed by a heartbeat in the
//!   file; released with the flock. The database counts its fence ([`reveille_store::Fence`]).
//! - A shared database ([`reveille_store::Store::take_lease`]): acquired by a lock that belongs to the connection, so that no renewal is
//!   needed; released or lost with the connection. Its fence is the row's.
//! - A reference on the memory's remote (here): each step is a swap, and the fence is part of the note.
//!
//! The file's lock is taken first and released last. With `LEASE=local` nothing else is taken, except for a shared database's lock. With
//! `LEASE=remote` a wake also takes the remote's lease once something is due, and a bot holds another while it polls. `protocol` decides
//! from values alone, `remote` accesses the reference, `record` persists between processes, and `keeper` holds a bot's lease.
//!
//! After its term a paused holder can only complete the one request in progress. A push swaps the lease too, and fails with it. A send
//! checks the term before it begins. A write to the database, shared or not, is checked against its fence.

mod keeper;
pub mod protocol;
mod record;
mod remote;

use std::time::Duration;

use chrono::{DateTime, Utc};

use reveille_base::{clock::since_boot, process::Identity};
use reveille_config::{Config, UnrequestedWork};
use reveille_git::{Beside, Pushed, RemoteError};

pub use self::{
    keeper::{Handed, Keeper},
    record::{LastSeenLease, LeaseRecord},
    remote::RemoteLease,
};

/// The purpose of a lease: a bot holds one for its life, a wake another for minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasePart {
    /// Polling, and unasked work.
    Bot,
    /// A wake's work.
    Wake,
}

impl LeasePart {
    fn name(self) -> &'static str {
        match self {
            Self::Bot => "bot",
            Self::Wake => "wake",
        }
    }
}

/// The result of an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// The lease is ours. The previous holder's handled keys come with it.
    Ours {
        /// Keys and values.
        handled: Vec<(String, String)>,
    },
    /// Another machine has the lease.
    Others {
        /// The holder and its start, as far as they could be read.
        holder: Option<LastSeenLease>,
        /// The time until the lease may be taken, unless it is renewed.
        left: Duration,
    },
}

/// The reason why a lease couldn't be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The lease's home can't be reached or used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The reference holds something else.
    #[error("{reference} on the remote isn't a lease, so I leave it alone; LEASE_REF names another one")]
    Foreign {
        /// The reference.
        reference: String,
    },
    /// Another machine took over, or the term is over.
    #[error("this machine no longer holds the lease")]
    Lost,
    /// The record can't be written.
    #[error("the lease can't be saved here: {0}")]
    Record(#[from] std::io::Error),
    /// No name can be generated for this machine.
    #[error(transparent)]
    NoRandomness(#[from] reveille_base::random::NoRandomness),
}

/// A lease in one home. The implementation stores its holding and may be called from several threads.
pub trait Lease: Send + Sync {
    /// Takes the lease if it is free, was left by this machine, or has expired. Only for the holder of this machine's matching lock.
    ///
    /// # Errors
    /// If the lease's home can't be reached.
    fn acquire(&self, now: DateTime<Utc>) -> Result<Acquired, LeaseError>;

    /// Starts a new term. `handled` is for the next holder.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] is final; the others may pass while the term runs.
    fn renew(&self, handled: Vec<(String, String)>) -> Result<(), LeaseError>;

    /// Gives the lease back. If that fails, the lease expires.
    fn release(&self, handled: Vec<(String, String)>);

    /// The number of this holding, larger than all earlier ones. `None` if the lease isn't held.
    fn fence(&self) -> Option<u64>;

    /// The rest of the term. Zero if the lease isn't held.
    fn remaining_term(&self) -> Duration;

    /// Pushes together with a swap that makes the push fail if the lease is lost.
    ///
    /// # Errors
    /// The push's errors, and [`RemoteError::LeaseLost`].
    fn push(&self, send: &mut dyn FnMut(Option<&Beside>) -> Result<Pushed, RemoteError>)
    -> Result<Pushed, RemoteError>;
}

/// Reads the local record of a lease, without any request.
pub fn read_record(config: &Config, part: LeasePart) -> LeaseRecord {
    record::RecordFile::new(&config.lease_dir(), part.name()).read()
}

/// Returns `true` if this machine does unasked work. No request is made: the bot records the end of its lease's term.
pub fn is_on_duty(config: &Config) -> bool {
    if !config.lease.is_shared() {
        return true;
    }
    match config.lease.duty {
        UnrequestedWork::Always => true,
        UnrequestedWork::Never => false,
        UnrequestedWork::Bot => is_held_here(&read_record(config, LeasePart::Bot)),
    }
}

/// Returns `true` if a process of this machine holds the lease, according to its record.
pub fn is_held_here(record: &LeaseRecord) -> bool {
    let holds = |(boot, until_ms): &(String, u64)| {
        *boot == Identity::current().boot_id && protocol::to_millis(since_boot()) < *until_ms
    };
    record.until.as_ref().is_some_and(holds)
}
