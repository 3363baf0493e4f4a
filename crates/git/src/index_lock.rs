//! The person's index, taken the way git takes it: nobody else stages or commits while we hold `index.lock`.
//!
//! The lock is a hard link to a file of our own. If we are killed, the next run can tell our lock from a git command's by
//! comparing the two, and may remove it at once.

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

/// A git command holds the index for moments; one that waits for an editor is not waited for.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(20);

/// The lock, and a private copy of the index to change. Dropped without [`IndexLock::write`], the index stays as it was.
pub(super) struct IndexLock {
    pub(super) index: Index,
    paths: Paths,
    written: bool,
}

struct Paths {
    /// The person's index, its lock, our own name of the lock, and the private copy.
    index: PathBuf,
    lock: PathBuf,
    own: PathBuf,
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
        release_dead(git_dir, private);
        // The last name of a lock that has become the index is that index: never written through.
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
        match private_copy(&paths) {
            Ok(index) => Ok(Self { index, paths, written: false }),
            Err(error) => {
                release(&paths);
                Err(error)
            }
        }
    }

    /// Puts the changed copy in the place of the person's index, on the disk, and frees the lock.
    pub(super) fn write(mut self) -> Result<(), RepoError> {
        self.index.write()?;
        let write = || {
            let mut lock = File::options().write(true).truncate(true).open(&self.paths.lock)?;
            lock.write_all(&fs::read(&self.paths.copy)?)?;
            // By an index's time git tells which files may have changed in the moment in which they were staged, and reads those. A
            // later one would hide such a change of the person's.
            if let Ok(person) = fs::metadata(&self.paths.index) {
                lock.set_modified(person.modified()?)?;
            }
            // fault: index-renamed-synced
            lock.sync_all()?;
            fs::rename(&self.paths.lock, &self.paths.index)?;
            // fault end: index-renamed-synced
            file::sync(file::directory_of(&self.paths.index))
        };
        write().map_err(RepoError::io("writing", &self.paths.index))?;
        self.written = true;
        Ok(())
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.written {
            release(&self.paths);
        }
        fs::remove_file(&self.paths.own).ok();
        fs::remove_file(&self.paths.copy).ok();
    }
}

/// Frees a lock that a killed run of ours left. `true` if there was one.
pub(super) fn release_dead(git_dir: &Path, private: &Path) -> bool {
    let is_ours = is_ours(git_dir, private);
    if is_ours {
        release(&Paths::new(git_dir, private));
    }
    is_ours
}

/// Whether the index is locked by a run of ours: one that lives, or one that was killed.
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

fn release(paths: &Paths) {
    // The order matters: as long as our own name exists, the lock is known to be ours.
    fs::remove_file(&paths.lock).ok();
    fs::remove_file(&paths.own).ok();
}

fn private_copy(paths: &Paths) -> Result<Index, RepoError> {
    // A run that was killed while it wrote its copy left libgit2's lock of that.
    for left in [&paths.copy, &paths.copy.with_extension("lock")] {
        remove(left)?;
    }
    // A link will do: libgit2 puts a new file in the place of the one that it has read. Not every disk has links, nor between any two
    // folders.
    match fs::hard_link(&paths.index, &paths.copy).or_else(|_| fs::copy(&paths.index, &paths.copy).map(drop)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RepoError::io("copying", &paths.index)(error)),
        _ => Ok(Index::open(&paths.copy)?),
    }
}

fn remove(path: &Path) -> Result<(), RepoError> {
    file::remove_if_there(path).map(drop).map_err(RepoError::io("removing", path))
}
