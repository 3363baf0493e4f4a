//! All that can't be made anew, in one file; and back from it, on this machine or another.
//!
//! `container` is the file, `manifest` what it says of itself, `create` makes one while everything runs, `restore` reads one that
//! may come from anywhere. What is made is verified by restoring it before it gets its name.

mod container;
mod create;
mod manifest;
mod restore;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use reveille_base::{
    disk,
    file::{self, create_private_dir},
    random,
};
use reveille_git::RepoError;
use reveille_store::{StoreError, wake_lock::LockError};

pub use create::{BackupMade, create};
pub use manifest::{BackupManifest, BackupMember, LeftOut};
pub use restore::{RestoredBackup, restore, verify};

/// The list, first in the file.
const MANIFEST: &str = "manifest.json";
/// The list's own SHA-256, next to it, as `sha256sum` writes it.
const MANIFEST_SUM: &str = "manifest.json.sha256";
/// The longest list, in bytes.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// Why there is no backup, or nothing was restored. Unless it says so, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of this name.
    #[error("{} is there already, and stays as it is: choose another name", .0.display())]
    Exists(PathBuf),
    /// It isn't a backup of ours, or its very beginning is damaged.
    #[error("it isn't a backup of Reveille's, or it is damaged at its beginning. Nothing was written")]
    NotOurs,
    /// It isn't as it was written.
    #[error("the backup is damaged: {0}. Nothing was written")]
    Damaged(String),
    /// A newer program made it.
    #[error("a newer version of Reveille made this backup: update this one first. Nothing was written")]
    TooNew,
    /// There is something where it would be restored to.
    #[error("{} isn't empty ({what} is there), so nothing was restored: give another folder with --to", dir.display())]
    NotEmpty {
        /// The workspace.
        dir: PathBuf,
        /// What is there.
        what: String,
    },
    /// Where files of messages go stands another one, of another database.
    #[error("{} is there, and it isn't this backup's file, so nothing was restored: let MEDIA_DIR name another folder", .0.display())]
    OthersMedia(PathBuf),
    /// A wake or the bot runs there.
    #[error("{0} Nothing was restored: stop it first")]
    AtWork(String),
    /// It doesn't fit.
    #[error("there is too little room: {} needed in {}, {} free. Nothing was written", disk::size(*needed), dir.display(), disk::size(*free))]
    NoRoom {
        /// Where.
        dir: PathBuf,
        /// In bytes.
        needed: u64,
        /// In bytes.
        free: u64,
    },
    /// A file is larger than the format allows.
    #[error("{0} is larger than 8 GiB, which a backup can't hold")]
    TooLarge(String),
    /// Files changed whenever they were read.
    #[error("{0} changed while it was copied, time and again. Try again")]
    Changing(String),
    /// A wake that was killed left a commit half done, or others commit all the time.
    #[error("the memory wouldn't stand still, or a commit is half done: let a wake run (`wake --once`), and try again")]
    Restless,
    /// The lock file can't be used.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The database.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The memory.
    #[error("{0}")]
    Repo(#[from] RepoError),
    /// The file system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl BackupError {
    /// For `map_err`: names what was tried on what.
    fn io(what: &str, on: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {on}");
        move |source| Self::Io { what, source }
    }
}

/// How the names of private folders begin.
const SCRATCH: &str = ".backup-";

/// A private folder that is gone when this is dropped. It is locked as long as whoever made it lives.
struct Scratch {
    path: PathBuf,
    /// Keeps the lock.
    _open: fs::File,
}

impl Scratch {
    fn beneath(dir: &Path) -> Result<Self, BackupError> {
        Self::sweep(dir);
        let bytes =
            random::bytes::<8>().map_err(|error| BackupError::io("making", "a folder")(io::Error::other(error)))?;
        let path = dir.join(format!("{SCRATCH}{}", random::hex(&bytes)));
        let made = create_private_dir(&path).and_then(|()| fs::File::open(&path));
        let open = made.map_err(BackupError::io("making", path.display()))?;
        open.lock().map_err(BackupError::io("locking", path.display()))?;
        Ok(Self { path, _open: open })
    }

    /// Removes what killed ones left: they hold all of somebody's messages. What can't be removed is another's.
    fn sweep(dir: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_ours = name
                .to_str()
                .and_then(|name| name.strip_prefix(SCRATCH))
                .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_ours && is_folder && fs::File::open(entry.path()).is_ok_and(|open| open.try_lock().is_ok()) {
                fs::remove_dir_all(entry.path()).ok();
            }
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, folder = %self.path.display(), "a folder for the moment could not be removed");
        }
    }
}

fn sync_folder(dir: &Path) -> Result<(), BackupError> {
    file::sync(dir).map_err(BackupError::io("syncing", dir.display()))
}
