//! The person's index, locked the way git does: while we hold `index.lock`, no other program stages or commits.
//!
//! The lock is a hard link to a file of ours. After a kill, the next run compares the two to tell our lock from a git command's, and
//! may remove it at once.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use git2::Index;

use reveille_base::file;

use super::RepoError;

/// Git commands hold the index for moments; a command that waits for an editor outlasts these attempts.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(20);

/// The lock, and a private copy of the index to change. Dropped without [`IndexLock::write`], the index stays unchanged.
pub(super) struct IndexLock {
    pub(super) index: Index,
    paths: Paths,
    written: bool,
}

struct Paths {
    /// The person's index.
    index: PathBuf,
    /// Git's lock of that index.
    lock: PathBuf,
    /// Our second name (hard link) of the lock.
    own: PathBuf,
    /// The private copy of the index.
    copy: PathBuf,
}

impl Paths {
    fn new(git_dir: &Path, private: &Path) -> Self {
        Self {
            index: git_dir.join("index"),
            lock: git_dir.join("index.lock"),
            own: private.join("index-lock"),
            copy: private.join("index"),
        }
    }
}

impl IndexLock {
    pub(super) fn take(git_dir: &Path, private: &Path) -> Result<Self, RepoError> {
        let paths = Paths::new(git_dir, private);
        release_dead_lock(git_dir, private);
        // A lock that has become the index may keep our name as a second link; writing to it would change the index.
        remove(&paths.own)?;
        File::create_new(&paths.own).map_err(RepoError::io("making", &paths.own))?;
        for attempt in 0.. {
            match fs::hard_link(&paths.own, &paths.lock) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => thread::sleep(PAUSE),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(RepoError::Locked { path: paths.lock });
                }
                Err(error) => return Err(RepoError::io("locking", &paths.lock)(error)),
            }
        }
        match copy_index(&paths) {
            Ok(index) => Ok(Self { index, paths, written: false }),
            Err(error) => {
                release_lock(&paths);
                Err(error)
            }
        }
    }

    /// Replaces the person's index with the changed copy, durably, and frees the lock.
    pub(super) fn write(mut self) -> Result<(), RepoError> {
        self.index.write()?;
        let write = || {
            let mut lock = File::options().write(true).truncate(true).open(&self.paths.lock)?;
            lock.write_all(&fs::read(&self.paths.copy)?)?;
            // Git rereads files that aren't older than the index, since they may have changed after staging. A later time on the index
            // would hide such a change by the person.
            if let Ok(person) = fs::metadata(&self.paths.index) {
                lock.set_modified(person.modified()?)?;
            }
            // fault: index-renamed-synced
            lock.sync_all()?;
            fs::rename(&self.paths.lock, &self.paths.index)?;
            // fault end: index-renamed-synced
            file::sync(file::parent_directory(&self.paths.index))
        };
        write().map_err(RepoError::io("writing", &self.paths.index))?;
        self.written = true;
        Ok(())
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.written {
            release_lock(&self.paths);
        }
        fs::remove_file(&self.paths.own).ok();
        fs::remove_file(&self.paths.copy).ok();
    }
}

/// Frees the lock of a killed run of ours. Returns `true` if there was one.
pub(super) fn release_dead_lock(git_dir: &Path, private: &Path) -> bool {
    let is_ours = is_ours(git_dir, private);
    if is_ours {
        release_lock(&Paths::new(git_dir, private));
    }
    is_ours
}

/// Returns `true` if a run of ours, alive or killed, holds the lock of the index.
pub(super) fn is_ours(git_dir: &Path, private: &Path) -> bool {
    let paths = Paths::new(git_dir, private);
    let same_file = |a: &Path, b: &Path| {
        let (Ok(a), Ok(b)) = (fs::symlink_metadata(a), fs::symlink_metadata(b)) else {
            return false;
        };
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    };
    same_file(&paths.own, &paths.lock)
}

fn release_lock(paths: &Paths) {
    // The order matters: our name proves that the lock is ours, so the name goes last.
    fs::remove_file(&paths.lock).ok();
    fs::remove_file(&paths.own).ok();
}

fn copy_index(paths: &Paths) -> Result<Index, RepoError> {
    // A run killed while writing its copy leaves libgit2's lock of that copy.
    for left in [&paths.copy, &paths.copy.with_extension("lock")] {
        remove(left)?;
    }
    // A link is enough: libgit2 writes a new file instead of changing the one it has read. Copying is for disks without
    // hard links, and for folders on different disks.
    match fs::hard_link(&paths.index, &paths.copy).or_else(|_| fs::copy(&paths.index, &paths.copy).map(drop)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RepoError::io("copying", &paths.index)(error)),
        _ => Ok(Index::open(&paths.copy)?),
    }
}

fn remove(path: &Path) -> Result<(), RepoError> {
    file::remove_if_there(path).map(drop).map_err(RepoError::io("removing", path))
}
