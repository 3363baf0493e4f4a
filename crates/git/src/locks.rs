//! Lock files that dead git programs left, which would block the person's next commit.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process;

use super::{REMOTE, Repo, advance::PAUSE, index_lock};

/// A lock file younger than this may belong to someone whom we can't see.
pub const STALE_LOCK_AGE: Duration = Duration::from_secs(1);
/// The same in a remote on this machine, where others may push from elsewhere: a push holds it for moments.
pub(super) const STALE_REMOTE_LOCK_AGE: Duration = Duration::from_secs(600);
/// How often a remote on this machine is looked at while somebody holds it, [`PAUSE`] apart: longer than
/// a push that is killed may take to [tidy up](process::TIDYING).
const REMOTE_LOOKS: usize = 40;
/// How many lock files are named at most.
const MAX_LOCKS: usize = 100;

impl Repo {
    /// Lock files that nobody holds: in the git directory, older than [`STALE_LOCK_AGE`], with no `git` at work here; and those
    /// that a dead push of ours left in a remote on this machine.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let locks = self.lock_files();
        let mut stale =
            if locks.is_empty() || self.is_git_at_work() { Vec::new() } else { self.older_than(STALE_LOCK_AGE, locks) };
        stale.extend(self.stale_remote_locks());
        stale
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

    /// Every lock file in the git directory, held or not. Linked work trees share most of one, but not their index and HEAD.
    pub(super) fn lock_files(&self) -> Vec<PathBuf> {
        let mut locks = Vec::new();
        let shared = Some(self.git.commondir()).filter(|shared| *shared != self.git.path());
        for git_dir in [self.git.path()].into_iter().chain(shared) {
            // Another work tree's index is none of ours.
            let own = ["index.lock", "HEAD.lock"].into_iter().filter(|_| git_dir == self.git.path());
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

    /// Whether some git program runs in this work tree, or in the one that this is linked to.
    pub(super) fn is_git_at_work(&self) -> bool {
        let linked_to = self.git.commondir().parent().filter(|_| self.git.is_worktree());
        [Some(self.root.as_path()), linked_to].into_iter().flatten().any(|dir| process::runs_in("git", dir))
    }

    /// Waits a little for whoever has our branch locked in a remote on this machine, such as a push of ours that was killed a moment
    /// ago. Then it removes what [`Repo::stale_remote_locks`] finds. `true` if nobody holds it any more. The caller holds the wake
    /// lock.
    pub(super) fn await_remote(&self) -> bool {
        for _ in 0..REMOTE_LOOKS {
            let Some((remote, locks)) = self.remote_locks() else { return false };
            if locks.is_empty() {
                return true;
            }
            if process::runs_in("git", &remote) {
                std::thread::sleep(PAUSE);
                continue;
            }
            for lock in self.older_than(STALE_REMOTE_LOCK_AGE, locks) {
                fs::remove_file(lock).ok();
            }
            // One that is left has a holder who is on another machine, or is dead, but not for long enough.
            return self.remote_locks().is_some_and(|(_, locks)| locks.is_empty());
        }
        false
    }

    /// Locks that a killed push left on our branch in a remote on this machine, old enough and with no git at work there. Nobody
    /// else would clear them away, and nothing could be pushed any more.
    pub fn stale_remote_locks(&self) -> Vec<PathBuf> {
        match self.remote_locks() {
            Some((remote, locks)) if !locks.is_empty() && !process::runs_in("git", &remote) => {
                self.older_than(STALE_REMOTE_LOCK_AGE, locks)
            }
            _ => Vec::new(),
        }
    }

    /// A remote on this machine, and the locks on our branch there, held or not.
    fn remote_locks(&self) -> Option<(PathBuf, Vec<PathBuf>)> {
        let remote = self.remote_dir()?;
        let names = [self.branch_ref(), "HEAD".to_owned()];
        let locks =
            names.map(|name| remote.join(format!("{name}.lock"))).into_iter().filter(|lock| lock.exists()).collect();
        Some((remote, locks))
    }

    /// Those that haven't changed for so long, by the file system's own time, whatever clock this program was given.
    fn older_than(&self, age: Duration, mut locks: Vec<PathBuf>) -> Vec<PathBuf> {
        let Some(now) = self.touch() else { return Vec::new() };
        locks.retain(|lock| {
            let changed = fs::symlink_metadata(lock).and_then(|found| found.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|old| old >= age))
        });
        locks
    }

    /// The git directory of a remote that is a path.
    fn remote_dir(&self) -> Option<PathBuf> {
        let remote = self.git.find_remote(REMOTE).ok()?;
        let url = remote.url().ok()?;
        let dir = self.root.join(url.strip_prefix("file://").unwrap_or(url));
        [dir.join(".git"), dir].into_iter().find(|dir| dir.join("objects").is_dir())
    }

    /// The file system's own time.
    pub(super) fn touch(&self) -> Option<std::time::SystemTime> {
        let probe = self.private.join("now");
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
