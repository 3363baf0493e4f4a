//! The origin of remembered facts, and changes by a person. [`why`] traces a line to its message, [`changed`] lists changes, [`restore`]
//! brings back old content, and [`forget`] removes words from all data that can be searched.
//!
//! Changes are made in the person's name, under the wake lock ([`hand`]), in one commit. Only the person at the machine can make them.

pub mod changed;
pub mod forget;
pub mod hand;
pub mod point;
pub mod purge;
pub mod restore;
pub mod why;

use reveille_git::RepoError;
use reveille_index::IndexError;
use reveille_store::{StoreError, wake_lock::LockError};

use crate::provenance::point::PointError;

/// The reason for a refused request, sorted by the person's next step. Nothing was changed, except before [`Self::Scrub`].
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// A wake is at work: try again later.
    #[error("{0}")]
    Busy(String),
    /// The lock file can't be used.
    #[error(transparent)]
    Lock(LockError),
    /// The memory's repository failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index couldn't be rebuilt; all other work is done.
    #[error("the index couldn't be rebuilt: {0}. Everything else is done; `wake memory reindex` rebuilds it")]
    Scrub(IndexError),
    /// The index can't be searched.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The named time or commit is invalid.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The request is impossible at present; holds the reason for the person.
    #[error("{0}")]
    Refused(String),
}
