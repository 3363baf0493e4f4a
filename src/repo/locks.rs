//! Lock files that dead git programs left, which would block the person's next commit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Repo, index_lock};
use crate::process;

/// A lock file younger than this may belong to someone whom we can't see.
pub const STALE_LOCK_AGE: Duration = Duration::from_secs(1);
/// How many lock files are named at most.
const MAX_LOCKS: usize = 100;

impl Repo {
    /// Lock files in the git directory that nobody holds: older than [`STALE_LOCK_AGE`], with no `git` at work here.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let mut locks = lock_files(self.git.path());
        if locks.is_empty() || process::runs_in("git", &self.root) {
            return Vec::new();
        }
        // The file system's own time, whatever clock this program was given.
        let Some(now) = self.touch() else { return Vec::new() };
        let is_old = |lock: &PathBuf| {
            let changed = fs::symlink_metadata(lock).and_then(|found| found.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age >= STALE_LOCK_AGE))
        };
        locks.retain(is_old);
        locks
    }

    /// Removes what [`Repo::stale_locks`] names, and a lock of our own that a killed run left, however young. The caller
    /// holds the wake lock.
    pub fn remove_stale_locks(&self) -> Vec<PathBuf> {
        let mut removed = Vec::new();
        if index_lock::release_dead(self.git.path(), &self.private) {
            removed.push(self.git.path().join("index.lock"));
        }
        removed.extend(self.stale_locks().into_iter().filter(|lock| fs::remove_file(lock).is_ok()));
        removed
    }

    fn touch(&self) -> Option<std::time::SystemTime> {
        let probe = self.private.join("now");
        fs::write(&probe, "").ok()?;
        let now = fs::metadata(&probe).and_then(|found| found.modified()).ok();
        fs::remove_file(&probe).ok();
        now
    }
}

/// Every lock file in a git directory, held or not.
pub(super) fn lock_files(git_dir: &Path) -> Vec<PathBuf> {
    let mut locks = Vec::new();
    for name in ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock"] {
        locks.extend(Some(git_dir.join(name)).filter(|lock| lock.exists()));
    }
    for directory in ["refs", "logs"] {
        find_locks(&git_dir.join(directory), &mut locks);
    }
    locks
}

fn find_locks(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_locks(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "lock") && found.len() < MAX_LOCKS {
            found.push(path);
        }
    }
}
