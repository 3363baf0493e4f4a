//! A remote that is a folder visible to this machine. Its references are read and swapped through libgit2, which respects git's locks,
//! without a git command. Unsupported cases are left to git, which reports the reason.

use std::{
    fs,
    path::PathBuf,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use git2::{ErrorCode, Oid, Reference, Repository};

use super::{REMOTE, RemoteError, lease_ref::RefValue, remote::Patience};

/// The interval at which a waiting caller is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Settings of a remote that replace git's normal access to it.
const OTHER_WAYS: [&str; 2] = ["uploadpack", "receivepack"];
/// The time to wait for a locked reference, as in git (`core.filesRefLockTimeout`).
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The folder of a remote.
#[derive(Debug, Clone)]
pub(super) struct LocalRemote {
    dir: PathBuf,
}

impl LocalRemote {
    /// Finds the remote of this repository, if its only address is a path. A `file://` address is excluded, and forces the use of git.
    pub(super) fn for_repository(git: &Repository) -> Option<Self> {
        let remote = git.find_remote(REMOTE).ok()?;
        let dir = PathBuf::from(remote.url().ok()?);
        let settings = git.config().ok()?;
        let is_set = |name: &str| settings.get_entry(&format!("remote.{REMOTE}.{name}")).is_ok();
        // Of several addresses, git fetches from the first and pushes to all.
        let mut addresses = 0;
        settings.multivar(&format!("remote.{REMOTE}.url"), None).ok()?.for_each(|_| addresses += 1).ok()?;
        let has_one = addresses == 1 && remote.pushurl().ok()?.is_none();
        (dir.is_absolute() && has_one && !OTHER_WAYS.into_iter().any(is_set)).then_some(Self { dir })
    }

    /// Reads the commit of a reference, `Some(None)` if the reference doesn't exist. `None` if git has to be asked.
    pub(super) fn read_reference_id(
        &self,
        name: &str,
        patience: Patience<'_>,
    ) -> Result<Option<Option<Oid>>, RemoteError> {
        let name = name.to_owned();
        self.query_repository(patience, move |remote| match find_reference(remote, &name)? {
            None => Some(None),
            Some(found) => found.target().map(Some),
        })
    }

    /// Reads a reference's commit with its message; `None` as in [`LocalRemote::read_reference_id`].
    pub(super) fn read_value(
        &self,
        name: &str,
        patience: Patience<'_>,
    ) -> Result<Option<Option<RefValue>>, RemoteError> {
        let name = name.to_owned();
        self.query_repository(patience, move |remote| {
            let Some(found) = find_reference(remote, &name)? else { return Some(None) };
            let id = found.target()?;
            let commit = remote.find_commit(id).ok()?;
            Some(Some(RefValue { id, message: Some(String::from_utf8_lossy(commit.message_bytes()).into_owned()) }))
        })
    }

    /// Moves a reference from `old` (`None` if it must not exist) to a commit of the repository at `from`. Returns `Some(false)` if it has
    /// another value or is locked; `None` if git has to be asked.
    pub(super) fn swap(
        &self,
        name: &str,
        old: Option<Oid>,
        (from, new): (PathBuf, Oid),
        patience: Patience<'_>,
    ) -> Result<Option<bool>, RemoteError> {
        let name = name.to_owned();
        self.query_repository(patience, move |remote| {
            if !may_be_written(remote) {
                return None;
            }
            let from = Repository::open_bare(from).ok()?;
            let (theirs, ours) = (remote.odb().ok()?, from.odb().ok()?);
            for id in [from.find_commit(new).ok()?.tree_id(), new] {
                let object = ours.read(id).ok()?;
                theirs.write(object.kind(), object.data()).ok()?;
            }
            let swap = || remote.reference_matching(&name, new, true, old.unwrap_or(Oid::ZERO_SHA1), "lease");
            let (mut swapped, began) = (swap(), Instant::now());
            let is_locked = |swapped: &Result<Reference<'_>, git2::Error>| {
                swapped.as_ref().is_err_and(|error| error.code() == ErrorCode::Locked)
            };
            while is_locked(&swapped) && began.elapsed() < LOCK_PATIENCE {
                thread::sleep(LOCK_PAUSE);
                swapped = swap();
            }
            match swapped.map_err(|error| error.code()) {
                Ok(_) => Some(true),
                Err(ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Locked) => Some(false),
                Err(_) => None,
            }
        })
    }

    /// Queries the remote's repository in a thread, so that a disk that hangs can't block longer than a command could.
    fn query_repository<T: Send + 'static>(
        &self,
        patience: Patience<'_>,
        question: impl FnOnce(&Repository) -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, RemoteError> {
        let (dir, began) = (self.dir.clone(), Instant::now());
        let (say, hear) = mpsc::channel();
        thread::spawn(move || say.send(Repository::open(dir).ok().and_then(|remote| question(&remote))));
        loop {
            let left = patience.timeout.saturating_sub(began.elapsed());
            match hear.recv_timeout(left.min(ASK_EVERY)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(RemoteError::TimedOut),
                Err(RecvTimeoutError::Timeout) if (patience.is_over)() => return Err(RemoteError::BrokenOff),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Finds a reference; the outer `None` if it can't be read.
fn find_reference<'a>(remote: &'a Repository, name: &str) -> Option<Option<Reference<'a>>> {
    match remote.find_reference(name) {
        Ok(found) => Some(Some(found)),
        Err(error) if error.code() == ErrorCode::NotFound => Some(None),
        Err(_) => None,
    }
}

/// Returns `true` if the remote may be written directly: its owner installed no hooks, and it isn't shared with other users.
fn may_be_written(remote: &Repository) -> bool {
    let is_shared = remote.config().is_ok_and(|config| config.get_entry("core.sharedRepository").is_ok());
    let has_hooks_elsewhere = remote.config().is_ok_and(|config| config.get_entry("core.hooksPath").is_ok());
    let mut hooks = fs::read_dir(remote.commondir().join("hooks")).into_iter().flatten().flatten();
    !is_shared && !has_hooks_elsewhere && hooks.all(|hook| hook.path().extension().is_some_and(|kind| kind == "sample"))
}
