//! Who works: the seam that settles it, and its homes.
//!
//! - A file of this machine ([`reveille_store::wake_lock`]): acquired by the flock, or by the holder's end; renewed by a beat in it;
//!   released with the flock. Its fence is counted in the database ([`reveille_store::Fence`]).
//! - A shared database ([`reveille_store::Store::take_lease`]): acquired by a lock that goes with the connection, so that nothing has to
//!   be renewed; released, or lost, with that. Its fence is the row's.
//! - A reference on the memory's remote (here): each is a swap, and the fence stands in the note.
//!
//! The file comes first and is let go last. With `LEASE=local` nothing else is taken, but for a shared database's lock. With
//! `LEASE=remote` a wake takes the remote's lease, too, once something is due, and a bot for as long as it polls. `protocol`
//! decides from values alone, `remote` asks the reference, `record` is what stays between processes, `keeper` holds a bot's lease.
//!
//! What a paused holder can do after its term: end the one request that was under way. A push goes with a swap of the
//! lease, and fails with it. A send looks at the term before it begins. A write to the database, shared or not, is held
//! against its fence.

mod keeper;
pub mod protocol;
mod record;
mod remote;

use std::time::Duration;

use chrono::{DateTime, Utc};

use reveille_base::{clock::since_boot, process::Identity};
use reveille_config::{Config, Duty};
use reveille_git::{Beside, Pushed, RemoteError};

pub use self::{
    keeper::{Handed, Keeper},
    record::{LastSeenLease, LeaseRecord},
    remote::RemoteLease,
};

/// What a lease is for: a bot holds one for its life, a wake another one for minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasePart {
    /// Polling, and what comes by itself.
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

/// What came of trying to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// It is ours. What the holder before wants to be taken for handled comes with it.
    Ours {
        /// Keys and values.
        handled: Vec<(String, String)>,
    },
    /// Another machine has it.
    Others {
        /// Who, and since when, as far as could be read.
        holder: Option<LastSeenLease>,
        /// When it may be taken, if it isn't renewed meanwhile.
        left: Duration,
    },
}

/// Why a lease couldn't be asked for or kept.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Its home can't be reached or used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Something else stands there.
    #[error("{reference} on the remote isn't a lease, so I leave it alone; LEASE_REF names another one")]
    Foreign {
        /// Where.
        reference: String,
    },
    /// Somebody else took over, or the term is over.
    #[error("this machine holds the lease no more")]
    Lost,
    /// What has to be remembered can't be.
    #[error("the lease can't be written down here: {0}")]
    Record(#[from] std::io::Error),
    /// No name can be made for this machine.
    #[error(transparent)]
    NoRandomness(#[from] reveille_base::random::NoRandomness),
}

/// The seam: one lease in one home. It keeps what it holds, and is asked from several threads.
pub trait Lease: Send + Sync {
    /// Takes it if it is free, was left by this machine or has expired. Only for who holds the lock of this machine
    /// that goes with it.
    ///
    /// # Errors
    /// When its home can't be asked.
    fn acquire(&self, now: DateTime<Utc>) -> Result<Acquired, LeaseError>;

    /// Begins the term anew; `handled` is for the next holder.
    ///
    /// # Errors
    /// [`LeaseError::Lost`] for good; the others may pass while the term runs.
    fn renew(&self, handled: Vec<(String, String)>) -> Result<(), LeaseError>;

    /// Gives it back. Where that can't be said it expires.
    fn release(&self, handled: Vec<(String, String)>);

    /// The number of this holding, larger than those before; none: it isn't held, or not any more.
    fn fence(&self) -> Option<u64>;

    /// What is left of the term; nothing: it isn't held.
    fn left(&self) -> Duration;

    /// Pushes with what makes the push fail where the lease is lost.
    ///
    /// # Errors
    /// The push's, and [`RemoteError::LeaseLost`].
    fn push(&self, send: &mut dyn FnMut(Option<&Beside>) -> Result<Pushed, RemoteError>)
    -> Result<Pushed, RemoteError>;
}

/// What is known here of a lease, without asking anybody.
pub fn record(config: &Config, part: LeasePart) -> LeaseRecord {
    record::RecordFile::new(&config.lease_dir(), part.name()).read()
}

/// Whether this machine does what comes by itself. Nobody is asked: the bot writes down until when it holds its lease.
pub fn is_on_duty(config: &Config) -> bool {
    if !config.lease.is_shared() {
        return true;
    }
    match config.lease.duty {
        Duty::Always => true,
        Duty::Never => false,
        Duty::Bot => is_held_here(&record(config, LeasePart::Bot)),
    }
}

/// Whether a process of this machine holds the lease, by what it wrote down.
pub fn is_held_here(record: &LeaseRecord) -> bool {
    let holds = |(boot, until_ms): &(String, u64)| {
        *boot == Identity::current().boot_id && protocol::millis(since_boot()) < *until_ms
    };
    record.until.as_ref().is_some_and(holds)
}
