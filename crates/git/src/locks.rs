//! Lock files of dead git programs, which would block the person's next commit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process;

use super::{REMOTE, advance::PAUSE, index_lock};
use crate::areas::Housekeeping;

/// The age below which a lock file may belong to a holder we can't see.
pub const STALE_LOCK_AGE: Duration = Duration::from_secs(1);
/// The same age for a remote on this machine, where others may push from elsewhere: a push holds the lock for moments.
pub(super) const STALE_REMOTE_LOCK_AGE: Duration = Duration::from_secs(600);
/// The number of looks at a locked remote on this machine, [`PAUSE`] apart: together longer than a killed push may take to [tidy
/// up](process::TIDYING).
const REMOTE_LOOKS: usize = 40;
/// The maximum number of lock files listed.
const MAX_LOCKS: usize = 100;

impl Housekeeping<'_> {
    /// Lists abandoned lock files: those in the git directory older than [`STALE_LOCK_AGE`] with no `git` at work here, and those of a dead
    /// push of ours in a remote on this machine.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let locks = self.lock_files();
        let mut stale = if locks.is_empty() || self.is_git_at_work() {
            Vec::new()
        } else {
            self.keep_older_than(STALE_LOCK_AGE, locks)
        };
        stale.extend(self.stale_remote_locks());
        stale
    }

    /// Removes the files of [`Housekeeping::stale_locks`], and our own lock left by a killed run, however young. The caller holds the wake
    /// lock.
    pub fn remove_stale_locks(&self) -> Vec<PathBuf> {
        let mut removed = Vec::new();
        if index_lock::release_dead_lock(self.0.git.path(), &self.0.private) {
            removed.push(self.0.git.path().join("index.lock"));
        }
        removed.extend(self.stale_locks().into_iter().filter(|lock| fs::remove_file(lock).is_ok()));
        removed
    }

    /// Lists every lock file in the git directory, held or not. Linked work trees share most locks, but not those of index and HEAD.
    pub(super) fn lock_files(&self) -> Vec<PathBuf> {
        let mut locks = Vec::new();
        let shared = Some(self.0.git.commondir()).filter(|shared| *shared != self.0.git.path());
        for git_dir in [self.0.git.path()].into_iter().chain(shared) {
            // Another work tree's index isn't our concern.
            let own = ["index.lock", "HEAD.lock"].into_iter().filter(|_| git_dir == self.0.git.path());
            for name in own.chain(["config.lock", "packed-refs.lock", "shallow.lock", "objects/info/commit-graph.lock"])
            {
                locks.extend(Some(git_dir.join(name)).filter(|lock| lock.exists()));
            }
            for directory in ["refs", "logs"] {
                find_locks(&git_dir.join(directory), &mut locks);
            }
        }
        locks
    }

    /// Returns `true` if a git program runs in this work tree, or in the main one if this is linked.
    pub(super) fn is_git_at_work(&self) -> bool {
        let linked_to = self.0.git.commondir().parent().filter(|_| self.0.git.is_worktree());
        [Some(self.0.root.as_path()), linked_to].into_iter().flatten().any(|dir| process::is_running_in("git", dir))
    }

    /// Waits briefly for the holder of our branch's lock in a remote on this machine, such as a just killed push of ours. Then removes the
    /// [`Housekeeping::stale_remote_locks`]. Returns `true` once the lock is free. The caller holds the wake lock.
    pub(super) fn await_remote(&self) -> bool {
        for _ in 0..REMOTE_LOOKS {
            let Some((remote, locks)) = self.remote_locks() else { return false };
            if locks.is_empty() {
                return true;
            }
            if process::is_running_in("git", &remote) {
                std::thread::sleep(PAUSE);
                continue;
            }
            for lock in self.keep_older_than(STALE_REMOTE_LOCK_AGE, locks) {
                fs::remove_file(lock).ok();
            }
            // A remaining lock has a holder on another machine, or one that died too recently.
            return self.remote_locks().is_some_and(|(_, locks)| locks.is_empty());
        }
        false
    }

    /// Lists locks that a killed push left on our branch in a remote on this machine: old enough, and with no git at work there. Unless
    /// removed, they would block every later push.
    pub fn stale_remote_locks(&self) -> Vec<PathBuf> {
        match self.remote_locks() {
            Some((remote, locks)) if !locks.is_empty() && !process::is_running_in("git", &remote) => {
                self.keep_older_than(STALE_REMOTE_LOCK_AGE, locks)
            }
            _ => Vec::new(),
        }
    }

    /// Returns a remote on this machine, with the locks on our branch there, held or not.
    fn remote_locks(&self) -> Option<(PathBuf, Vec<PathBuf>)> {
        let remote = self.remote_dir()?;
        let names = [self.0.branch_ref(), "HEAD".to_owned()];
        let locks =
            names.map(|name| remote.join(format!("{name}.lock"))).into_iter().filter(|lock| lock.exists()).collect();
        Some((remote, locks))
    }

    /// Keeps the locks unchanged for at least `age`, by the file system's time, independent of the program's clock.
    fn keep_older_than(&self, age: Duration, mut locks: Vec<PathBuf>) -> Vec<PathBuf> {
        let Some(now) = self.read_disk_time() else { return Vec::new() };
        locks.retain(|lock| {
            let changed = fs::symlink_metadata(lock).and_then(|found| found.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|old| old >= age))
        });
        locks
    }

    /// Returns the git directory of a remote that is a path.
    fn remote_dir(&self) -> Option<PathBuf> {
        let remote = self.0.git.find_remote(REMOTE).ok()?;
        let url = remote.url().ok()?;
        let dir = self.0.root.join(url.strip_prefix("file://").unwrap_or(url));
        [dir.join(".git"), dir].into_iter().find(|dir| dir.join("objects").is_dir())
    }

    /// Returns the file system's time.
    pub(super) fn read_disk_time(&self) -> Option<std::time::SystemTime> {
        let probe = self.0.private.join("now");
        fs::write(&probe, "").ok()?;
        let now = fs::metadata(&probe).and_then(|found| found.modified()).ok();
        fs::remove_file(&probe).ok();
        now
    }
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
