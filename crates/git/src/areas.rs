//! The areas of the repository: `repo.history()`, `repo.remote()` and so on. Each is a view of a [`Repo`] that costs nothing to create.

use super::Repo;

/// Past commits and texts.
#[derive(Clone, Copy)]
pub struct CommitHistory<'r>(pub(crate) &'r Repo);

/// The exchange with the remote: fetching, merging what was fetched, pushing.
#[derive(Clone, Copy)]
pub struct Remote<'r>(pub(crate) &'r Repo);

/// Unfinished work, kept on branches until it is merged.
#[derive(Clone, Copy)]
pub struct ParkedWork<'r>(pub(crate) &'r Repo);

/// Git's own housekeeping, stale locks, and the state of the files.
#[derive(Clone, Copy)]
pub struct Housekeeping<'r>(pub(crate) &'r Repo);

/// Removal of texts from the whole history, on a person's order.
#[derive(Clone, Copy)]
pub struct Purge<'r>(pub(crate) &'r Repo);

impl Repo {
    /// Past commits and texts.
    pub fn history(&self) -> CommitHistory<'_> {
        CommitHistory(self)
    }

    /// The exchange with the remote: fetching, merging what was fetched, pushing.
    pub fn remote(&self) -> Remote<'_> {
        Remote(self)
    }

    /// Unfinished work, kept on branches until it is merged.
    pub fn parked_work(&self) -> ParkedWork<'_> {
        ParkedWork(self)
    }

    /// Git's own housekeeping, stale locks, and the state of the files.
    pub fn housekeeping(&self) -> Housekeeping<'_> {
        Housekeeping(self)
    }

    /// Removal of texts from the whole history, on a person's order.
    pub fn purge(&self) -> Purge<'_> {
        Purge(self)
    }
}
