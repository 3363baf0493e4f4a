//! A reference on the remote that moves only by compare-and-swap, from the exact value seen to a new one.
//!
//! It points to a commit without parents or files, whose message is the value. These commits lie in a bare repository of their own in the
//! workspace, so that the memory stays free of them and old ones can be deleted. `git` still runs in the memory's repository, to use the
//! person's keys and helpers, with the other repository's objects added. A remote that is a folder is read without a command if that gives
//! the same result.

use std::{
    fs,
    path::{Path, PathBuf},
};

use git2::Repository;

use reveille_base::process::{Output, Spec};

use super::{
    Oid, REMOTE, RemoteError, RepoError,
    local_remote::LocalRemote,
    locks::STALE_REMOTE_LOCK_AGE,
    remote::{Beside, LOCK_IN_THE_WAY, Patience, build_git_command, classify_failure, push_failure},
};

/// A part of git's message if the reference to create exists already.
const IS_THERE: &str = "already exists";

/// A reference moved by compare-and-swap.
#[derive(Debug, Clone)]
pub struct LeaseRef {
    /// The memory's work tree, which may not exist yet.
    memory: PathBuf,
    /// The bare repository that holds the values.
    own: PathBuf,
    /// The remote's address, used as long as the memory doesn't exist.
    url: String,
    /// The full name, such as `refs/reveille/lease/wake`.
    name: String,
}

/// The value of the reference, as seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefValue {
    /// The commit.
    pub id: Oid,
    /// The commit's message; `None` if the reference moved while it was read.
    pub message: Option<String>,
}

impl LeaseRef {
    /// Describes the reference; nothing is created or read yet.
    pub fn new(memory: &Path, own: &Path, url: &str, name: String) -> Self {
        Self { memory: memory.to_owned(), own: own.to_owned(), url: url.to_owned(), name }
    }

    /// Returns the reference's full name, such as `refs/reveille/lease/wake`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates a value without moving the reference.
    pub fn create_value(&self, message: &str) -> Result<Oid, RemoteError> {
        let own = self.own_repository()?;
        let make = || {
            let tree = own.find_tree(own.treebuilder(None)?.write()?)?;
            let us = git2::Signature::new(super::WAKE_NAME, super::WAKE_EMAIL, &git2::Time::new(0, 0))?;
            own.commit(None, &us, &us, message, &tree, &[])
        };
        make().map_err(|error| RepoError::from(error).into())
    }

    /// Reads the remote's reference; `None` if it doesn't exist.
    pub fn read_value<'a>(&self, patience: impl Into<Patience<'a>>) -> Result<Option<RefValue>, RemoteError> {
        let patience = patience.into();
        if let Some(remote) = self.local_remote()?
            && let Some(seen) = remote.read_value(&self.name, patience)?
        {
            return Ok(seen);
        }
        let listed = self.run(patience, &["ls-remote", "--quiet", REMOTE, &self.name])?;
        if !listed.status.success() {
            return Err(classify_failure(&listed));
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut lines = listed.lines().filter_map(|line| line.split_once('\t'));
        let Some(id) = lines.find(|(_, name)| *name == self.name).and_then(|(id, _)| Oid::from_str(id).ok()) else {
            return Ok(None);
        };
        let own = self.own_repository()?;
        let read =
            || own.find_commit(id).ok().map(|commit| String::from_utf8_lossy(commit.message_bytes()).into_owned());
        if let Some(message) = read() {
            return Ok(Some(RefValue { id, message: Some(message) }));
        }
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", REMOTE];
        let fetched = self.run(patience, &[&fetch[..], &[&self.name]].concat())?;
        // A reference that was deleted meanwhile also counts as moved.
        let is_gone = || String::from_utf8_lossy(&fetched.stderr).contains("couldn't find remote ref");
        if !fetched.status.success() && !is_gone() {
            return Err(classify_failure(&fetched));
        }
        Ok(Some(RefValue { id, message: read() }))
    }

    /// Moves the reference from `old` (`None` if it must not exist) to `new`. Returns `false` if it has another value by now, or is locked.
    pub fn swap<'a>(&self, old: Option<Oid>, new: Oid, patience: impl Into<Patience<'a>>) -> Result<bool, RemoteError> {
        let patience = patience.into();
        if let Some(remote) = self.local_remote()?
            && let Some(is_moved) = remote.swap(&self.name, old, (self.own.clone(), new), patience)?
        {
            if !is_moved {
                self.clear_dead_lock();
            }
            return Ok(is_moved);
        }
        self.swap_by_push(old, new, patience)
    }

    /// Swaps by `git push`, after which git checks whether the remote needs housekeeping.
    pub fn swap_by_push<'a>(
        &self,
        old: Option<Oid>,
        new: Oid,
        patience: impl Into<Patience<'a>>,
    ) -> Result<bool, RemoteError> {
        let (lease, refspec) = (self.format_lease_option(old), format!("{new}:{}", self.name));
        let push = ["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"];
        let pushed = self.run(patience.into(), &[&push[..], &[&lease, REMOTE, &refspec]].concat())?;
        if pushed.status.success() {
            return Ok(true);
        }
        if String::from_utf8_lossy(&pushed.stderr).contains(LOCK_IN_THE_WAY) {
            self.clear_dead_lock();
        }
        let is_there = String::from_utf8_lossy(&pushed.stdout).contains(IS_THERE);
        match push_failure(&pushed) {
            // fault: swap-lease-came-too
            RemoteError::Moved => Ok(false),
            _ if is_there => Ok(false),
            error => Err(error),
        }
    }

    /// Plans the same move as [`Self::swap`], to be pushed atomically with the memory.
    pub fn plan_swap(&self, old: Oid, new: Oid) -> Beside {
        Beside {
            reference: self.name.clone(),
            lease: self.format_lease_option(Some(old)),
            refspec: format!("{new}:{}", self.name),
            env: self.object_variables(),
        }
    }

    /// Removes all values except `id`. A failure costs only some disk space.
    pub fn keep_only(&self, id: Oid) {
        let kept = id.to_string();
        let folders = fs::read_dir(self.own.join("objects")).into_iter().flatten().flatten();
        for folder in folders.filter(|folder| folder.file_name().len() == 2) {
            let start = folder.file_name().to_string_lossy().into_owned();
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                if format!("{start}{}", file.file_name().to_string_lossy()) != kept {
                    fs::remove_file(file.path()).ok();
                }
            }
        }
    }

    /// Removes the lock that a push left behind when its machine died, if the remote is a folder. Nothing else would remove it.
    fn clear_dead_lock(&self) {
        let dir = self.memory.join(self.url.strip_prefix("file://").unwrap_or(&self.url));
        let places = [dir.join(".git"), dir].map(|dir| dir.join(format!("{}.lock", self.name)));
        let Some(lock) = places.into_iter().find(|lock| lock.exists()) else { return };
        // Measures the age by the file system's time, because the program's clock may differ.
        let probe = self.own.join("now");
        let modified_at = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
        let age =
            fs::write(&probe, "").and_then(|()| Ok(modified_at(&probe)?.duration_since(modified_at(&lock)?).ok()));
        if age.is_ok_and(|age| age.is_some_and(|age| age >= STALE_REMOTE_LOCK_AGE)) {
            fs::remove_file(lock).ok();
        }
    }

    /// Opens the remote, if it is a readable folder.
    fn local_remote(&self) -> Result<Option<LocalRemote>, RepoError> {
        let own = self.own_repository()?;
        Ok(LocalRemote::for_repository(&Repository::open(&self.memory).unwrap_or(own)))
    }

    fn format_lease_option(&self, old: Option<Oid>) -> String {
        format!("--force-with-lease={}:{}", self.name, old.map(|old| old.to_string()).unwrap_or_default())
    }

    fn run(&self, patience: Patience<'_>, args: &[&str]) -> Result<Output, RemoteError> {
        self.own_repository()?;
        let dir = if self.memory.join(".git").exists() { &self.memory } else { &self.own };
        let with_env = |spec: Spec, (name, value): (&'static str, String)| spec.env(name, value);
        Ok(patience.run(self.object_variables().into_iter().fold(build_git_command(dir).args(args), with_env))?)
    }

    /// Returns the variables that tell git where its objects are; empty while there is no memory.
    fn object_variables(&self) -> Vec<(&'static str, String)> {
        let Ok(memory) = Repository::open(&self.memory) else { return Vec::new() };
        let quoted = |path: &Path| {
            let path = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{path}\"")
        };
        vec![
            ("GIT_OBJECT_DIRECTORY", self.own.join("objects").display().to_string()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&memory.commondir().join("objects"))),
        ]
    }

    /// Opens the repository of the values. Creates a new one if it is missing or damaged, because the values can be fetched or created
    /// again.
    fn own_repository(&self) -> Result<Repository, RepoError> {
        if let Ok(own) = Repository::open_bare(&self.own) {
            return Ok(own);
        }
        fs::remove_dir_all(&self.own).ok();
        fs::create_dir_all(self.own.parent().unwrap_or(&self.own)).map_err(RepoError::io("making", &self.own))?;
        let own = Repository::init_bare(&self.own)?;
        own.remote(REMOTE, &self.url)?;
        Ok(own)
    }
}
