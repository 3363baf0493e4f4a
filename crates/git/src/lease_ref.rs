//! A reference on the remote that only ever moves by compare-and-swap: from the exact value that was seen to a new one.
//!
//! It points to a commit without parents or files, whose message is the value. These commits lie in a bare repository
//! of their own in the workspace: the memory's holds nothing of them, and old ones can go. `git` runs in the memory's
//! all the same, so that a person's keys and helpers count, with the other's objects beside. A remote that is a folder
//! is asked without a command where that does the same.

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
    remote::{Beside, LOCK_IN_THE_WAY, Patience, failure, git, push_failure},
};

/// How git says that a reference is there that was to be made.
const IS_THERE: &str = "already exists";

/// A reference that is moved by compare-and-swap.
#[derive(Debug, Clone)]
pub struct LeaseRef {
    /// The memory's work tree; it may not be there yet.
    memory: PathBuf,
    /// The bare repository for the values.
    own: PathBuf,
    /// The remote's address, for as long as there is no memory.
    url: String,
    /// In full, such as `refs/reveille/lease/wake`.
    name: String,
}

/// What the reference was seen to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefValue {
    /// The commit.
    pub id: Oid,
    /// Its message; none: it moved on while it was read.
    pub message: Option<String>,
}

impl LeaseRef {
    /// Nothing is made or asked yet.
    pub fn new(memory: &Path, own: &Path, url: &str, name: String) -> Self {
        Self { memory: memory.to_owned(), own: own.to_owned(), url: url.to_owned(), name }
    }

    /// Its name in full.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a value, which no reference names yet.
    pub fn make(&self, message: &str) -> Result<Oid, RemoteError> {
        let own = self.own_repository()?;
        let make = || {
            let tree = own.find_tree(own.treebuilder(None)?.write()?)?;
            let us = git2::Signature::new(super::WAKE_NAME, super::WAKE_EMAIL, &git2::Time::new(0, 0))?;
            own.commit(None, &us, &us, message, &tree, &[])
        };
        make().map_err(|error| RepoError::from(error).into())
    }

    /// What the remote's reference holds; none: there is no such reference.
    pub fn look<'a>(&self, patience: impl Into<Patience<'a>>) -> Result<Option<RefValue>, RemoteError> {
        let patience = patience.into();
        if let Some(there) = self.local_remote()?
            && let Some(seen) = there.value_of(&self.name, patience)?
        {
            return Ok(seen);
        }
        let listed = self.run(patience, &["ls-remote", "--quiet", REMOTE, &self.name])?;
        if !listed.status.success() {
            return Err(failure(&listed));
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
        // A reference that went away meanwhile moved on, too.
        let is_gone = || String::from_utf8_lossy(&fetched.stderr).contains("couldn't find remote ref");
        if !fetched.status.success() && !is_gone() {
            return Err(failure(&fetched));
        }
        Ok(Some(RefValue { id, message: read() }))
    }

    /// Moves the reference from `old` (none: it isn't there) to `new`. `false`: it holds something else by now, or is
    /// locked.
    pub fn swap<'a>(&self, old: Option<Oid>, new: Oid, patience: impl Into<Patience<'a>>) -> Result<bool, RemoteError> {
        let patience = patience.into();
        if let Some(there) = self.local_remote()?
            && let Some(is_moved) = there.swap(&self.name, old, (self.own.clone(), new), patience)?
        {
            if !is_moved {
                self.clear_dead_lock();
            }
            return Ok(is_moved);
        }
        self.swap_by_push(old, new, patience)
    }

    /// The same by git, which then looks whether the remote has to be tidied up.
    pub fn swap_by_push<'a>(
        &self,
        old: Option<Oid>,
        new: Oid,
        patience: impl Into<Patience<'a>>,
    ) -> Result<bool, RemoteError> {
        let (lease, refspec) = (self.expecting(old), format!("{new}:{}", self.name));
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

    /// The same move, for a push of the memory that is to happen with it or not at all.
    pub fn beside(&self, old: Oid, new: Oid) -> Beside {
        Beside {
            reference: self.name.clone(),
            lease: self.expecting(Some(old)),
            refspec: format!("{new}:{}", self.name),
            env: self.objects(),
        }
    }

    /// Removes all values but this one. What can't be removed stays, which costs some bytes.
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

    /// A push that died with its machine leaves a lock in a remote that is a path, which nobody else clears away.
    fn clear_dead_lock(&self) {
        let dir = self.memory.join(self.url.strip_prefix("file://").unwrap_or(&self.url));
        let places = [dir.join(".git"), dir].map(|dir| dir.join(format!("{}.lock", self.name)));
        let Some(lock) = places.into_iter().find(|lock| lock.exists()) else { return };
        // By the file system's own time, whatever clock this program was given.
        let probe = self.own.join("now");
        let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
        let age = fs::write(&probe, "").and_then(|()| Ok(changed(&probe)?.duration_since(changed(&lock)?).ok()));
        if age.is_ok_and(|age| age.is_some_and(|age| age >= STALE_REMOTE_LOCK_AGE)) {
            fs::remove_file(lock).ok();
        }
    }

    /// The remote that git would ask, if its folder can be looked into.
    fn local_remote(&self) -> Result<Option<LocalRemote>, RepoError> {
        let own = self.own_repository()?;
        Ok(LocalRemote::of(&Repository::open(&self.memory).unwrap_or(own)))
    }

    fn expecting(&self, old: Option<Oid>) -> String {
        format!("--force-with-lease={}:{}", self.name, old.map(|old| old.to_string()).unwrap_or_default())
    }

    fn run(&self, patience: Patience<'_>, args: &[&str]) -> Result<Output, RemoteError> {
        self.own_repository()?;
        let dir = if self.memory.join(".git").exists() { &self.memory } else { &self.own };
        let with_env = |spec: Spec, (name, value): (&'static str, String)| spec.env(name, value);
        Ok(patience.run(self.objects().into_iter().fold(git(dir).args(args), with_env))?)
    }

    /// Where git finds objects and puts new ones. Beside nothing of the memory's where there is none yet.
    fn objects(&self) -> Vec<(&'static str, String)> {
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

    /// Made anew where it is gone or damaged: it holds nothing that isn't on the remote or made again.
    fn own_repository(&self) -> Result<Repository, RepoError> {
        if let Ok(own) = Repository::open_bare(&self.own) {
            return Ok(own);
        }
        fs::remove_dir_all(&self.own).ok();
        fs::create_dir_all(self.own.parent().unwrap_or(&self.own)).map_err(RepoError::io("make", &self.own))?;
        let own = Repository::init_bare(&self.own)?;
        own.remote(REMOTE, &self.url)?;
        Ok(own)
    }
}
