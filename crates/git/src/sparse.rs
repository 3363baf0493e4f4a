//! Files hidden from git in the work tree: those left out by a sparse checkout, and those marked by the person (`git update-index
//! --skip-worktree` or `--assume-unchanged`). They never count as deleted or changed.

use std::path::Path;

use git2::{Index, IndexEntry};

use super::{Repo, RepoError, person::Changed};

/// The reason for not writing such an absent file, to follow a path.
pub(super) const NOT_CHECKED_OUT: &str = "it is left out of the work tree here (a sparse checkout)";
/// The reason for not committing the content of such a file, to follow "it".
pub(super) const UNSEEN: &str = "is marked in git so that its changes are ignored";

/// The bit of `--assume-unchanged` in an index entry's flags.
const ASSUME_UNCHANGED: u16 = 1 << 15;
/// The bit of `--skip-worktree` and of a sparse checkout in the extended flags.
const SKIP_WORKTREE: u16 = 1 << 14;

impl Repo {
    /// Removes the files whose changes are hidden from git; libgit2 reports them as missing.
    pub(super) fn drop_unseen(&self, changed: &mut Vec<Changed>) -> Result<(), RepoError> {
        if changed.is_empty() {
            return Ok(());
        }
        let index = self.git.index()?;
        changed.retain(|changed| !is_marked_unseen(&index, &changed.path));
        Ok(())
    }

    /// Returns `true` if a file's changes are hidden from git.
    pub(super) fn is_unseen(&self, path: &str) -> bool {
        self.git.index().is_ok_and(|index| is_marked_unseen(&index, path))
    }

    /// Returns `true` if git has left a file out of the work tree.
    pub(super) fn is_not_checked_out(&self, path: &str) -> bool {
        self.tree.stat(path).is_none() && self.is_unseen(path)
    }
}

fn is_marked_unseen(index: &Index, path: &str) -> bool {
    index.get_path(Path::new(path), 0).is_some_and(|entry| read_marks(&entry) != (0, 0))
}

fn read_marks(entry: &IndexEntry) -> (u16, u16) {
    (entry.flags & ASSUME_UNCHANGED, entry.flags_extended & SKIP_WORKTREE)
}

/// Copies the marks of a file's old entry to the new one.
pub(super) fn keep_marks(index: &Index, entry: &mut IndexEntry, path: &str) {
    if let Some(old) = index.get_path(Path::new(path), 0) {
        let (flags, extended) = read_marks(&old);
        entry.flags |= flags;
        entry.flags_extended |= extended;
    }
}
