//! A remote that is a folder which this machine sees. A look at one of its references needs no git command there, nor
//! does a swap: libgit2 keeps to git's own locks. Whatever can't be done so is left to git, which says what is wrong.

use std::{
    fs,
    path::PathBuf,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use git2::{ErrorCode, Oid, Reference, Repository};

use super::{REMOTE, RemoteError, lease_ref::RefValue, remote::Patience};

/// How often somebody who waits is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Settings with which a remote is read or written in another way than as a plain folder.
const OTHER_WAYS: [&str; 2] = ["uploadpack", "receivepack"];
/// How long a locked reference is waited for, as git does (`core.filesRefLockTimeout`).
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A remote's folder.
#[derive(Debug, Clone)]
pub(super) struct LocalRemote {
    dir: PathBuf,
}

impl LocalRemote {
    /// The remote of this repository, if its one address is a path. One with `file://` is not: so git can be had all the same.
    pub(super) fn of(git: &Repository) -> Option<Self> {
        let remote = git.find_remote(REMOTE).ok()?;
        let dir = PathBuf::from(remote.url().ok()?);
        let settings = git.config().ok()?;
        let is_set = |name: &str| settings.get_entry(&format!("remote.{REMOTE}.{name}")).is_ok();
        // Of several git fetches from the first, and pushes to all.
        let mut addresses = 0;
        settings.multivar(&format!("remote.{REMOTE}.url"), None).ok()?.for_each(|_| addresses += 1).ok()?;
        let has_one = addresses == 1 && remote.pushurl().ok()?.is_none();
        (dir.is_absolute() && has_one && !OTHER_WAYS.into_iter().any(is_set)).then_some(Self { dir })
    }

    /// Where a reference is; the inner none: there is no such reference. The outer: git has to be asked.
    pub(super) fn id_of(&self, name: &str, patience: Patience<'_>) -> Result<Option<Option<Oid>>, RemoteError> {
        let name = name.to_owned();
        self.ask(patience, move |there| match find(there, &name)? {
            None => Some(None),
            Some(found) => found.target().map(Some),
        })
    }

    /// The same with the message of the commit there.
    pub(super) fn value_of(&self, name: &str, patience: Patience<'_>) -> Result<Option<Option<RefValue>>, RemoteError> {
        let name = name.to_owned();
        self.ask(patience, move |there| {
            let Some(found) = find(there, &name)? else { return Some(None) };
            let id = found.target()?;
            let commit = there.find_commit(id).ok()?;
            Some(Some(RefValue { id, message: Some(String::from_utf8_lossy(commit.message_bytes()).into_owned()) }))
        })
    }

    /// Moves a reference from `old` (none: it isn't there) to a commit of the repository at `from`. `false`: it holds
    /// something else, or is locked. None: git has to be asked.
    pub(super) fn swap(
        &self,
        name: &str,
        old: Option<Oid>,
        (from, new): (PathBuf, Oid),
        patience: Patience<'_>,
    ) -> Result<Option<bool>, RemoteError> {
        let name = name.to_owned();
        self.ask(patience, move |there| {
            if !may_be_written(there) {
                return None;
            }
            let from = Repository::open_bare(from).ok()?;
            let (theirs, ours) = (there.odb().ok()?, from.odb().ok()?);
            for id in [from.find_commit(new).ok()?.tree_id(), new] {
                let object = ours.read(id).ok()?;
                theirs.write(object.kind(), object.data()).ok()?;
            }
            let swap = || there.reference_matching(&name, new, true, old.unwrap_or(Oid::ZERO_SHA1), "lease");
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

    /// Asks the repository there. A disk that hangs is waited for no longer than a command would be.
    fn ask<T: Send + 'static>(
        &self,
        patience: Patience<'_>,
        question: impl FnOnce(&Repository) -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, RemoteError> {
        let (dir, began) = (self.dir.clone(), Instant::now());
        let (say, hear) = mpsc::channel();
        thread::spawn(move || say.send(Repository::open(dir).ok().and_then(|there| question(&there))));
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

/// The outer none: it can't be read.
fn find<'a>(there: &'a Repository, name: &str) -> Option<Option<Reference<'a>>> {
    match there.find_reference(name) {
        Ok(found) => Some(Some(found)),
        Err(error) if error.code() == ErrorCode::NotFound => Some(None),
        Err(_) => None,
    }
}

/// Not past the owner's hooks, nor where others need rights to what is written.
fn may_be_written(there: &Repository) -> bool {
    let is_shared = there.config().is_ok_and(|config| config.get_entry("core.sharedRepository").is_ok());
    let has_hooks_elsewhere = there.config().is_ok_and(|config| config.get_entry("core.hooksPath").is_ok());
    let mut hooks = fs::read_dir(there.commondir().join("hooks")).into_iter().flatten().flatten();
    !is_shared && !has_hooks_elsewhere && hooks.all(|hook| hook.path().extension().is_some_and(|kind| kind == "sample"))
}
