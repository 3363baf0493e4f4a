//! Where what is remembered comes from, and a person's own hand in it: [`why`] walks from a line to who said it, [`changed`] tells what
//! changed, [`restore`] gives back what was, and [`forget`] takes out of everything that is searched.
//!
//! What writes does so as the person, under the wake lock ([`hand`]): one commit of theirs. Only they have it, at their own machine.

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

/// Why a person's wish wasn't carried out, by what they can do. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// A wake is at work: try again when it is done.
    #[error("{0}")]
    Busy(String),
    /// The lock file can't be used.
    #[error(transparent)]
    Lock(LockError),
    /// The memory.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index couldn't be made anew: all else is done.
    #[error("the index couldn't be made anew: {0}. All else is done; `wake memory reindex` does that")]
    Scrub(IndexError),
    /// The index can't be searched.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What was named as a time or a commit isn't one.
    #[error(transparent)]
    Point(#[from] PointError),
    /// What was asked for can't be done as things are; in words for the person.
    #[error("{0}")]
    Refused(String),
}
