//! Files of which a person has told git not to look at the work tree: what a sparse checkout leaves out, and what they marked themselves
//! (`git update-index --skip-worktree` or `--assume-unchanged`). Nobody has deleted or changed them, whatever stands there.

use std::path::Path;

use git2::{Index, IndexEntry};

use super::{Repo, RepoError, person::Changed};

/// Why such a file isn't written that isn't there, to follow on a path.
pub(super) const NOT_CHECKED_OUT: &str = "it is left out of the work tree here (a sparse checkout)";
/// Why what stands in such a file isn't committed, to follow on "it".
pub(super) const UNSEEN: &str = "is marked in git so that its changes aren't seen";

/// In an index entry's flags: `--assume-unchanged`.
const ASSUME_UNCHANGED: u16 = 1 << 15;
/// In its extended flags: `--skip-worktree`, and what a sparse checkout leaves out.
const SKIP_WORKTREE: u16 = 1 << 14;

impl Repo {
    /// Takes the files out whose changes git is told not to see. libgit2 sees that they aren't there.
    pub(super) fn drop_unseen(&self, changed: &mut Vec<Changed>) -> Result<(), RepoError> {
        if changed.is_empty() {
            return Ok(());
        }
        let index = self.git.index()?;
        changed.retain(|changed| !is_unseen_by(&index, &changed.path));
        Ok(())
    }

    /// Whether git is told not to see a file's changes.
    pub(super) fn is_unseen(&self, path: &str) -> bool {
        self.git.index().is_ok_and(|index| is_unseen_by(&index, path))
    }

    /// Whether a file isn't in the work tree because git leaves it out.
    pub(super) fn is_not_checked_out(&self, path: &str) -> bool {
        self.tree.stat(path).is_none() && self.is_unseen(path)
    }
}

fn is_unseen_by(index: &Index, path: &str) -> bool {
    index.get_path(Path::new(path), 0).is_some_and(|entry| marks(&entry) != (0, 0))
}

fn marks(entry: &IndexEntry) -> (u16, u16) {
    (entry.flags & ASSUME_UNCHANGED, entry.flags_extended & SKIP_WORKTREE)
}

/// Gives a file's new entry the marks of the old one.
pub(super) fn keep_marks(index: &Index, entry: &mut IndexEntry, path: &str) {
    if let Some(old) = index.get_path(Path::new(path), 0) {
        let (flags, extended) = marks(&old);
        entry.flags |= flags;
        entry.flags_extended |= extended;
    }
}
