//! Saves everything that can't be recreated in one file, and restores it on this machine or another.
//!
//! `container` is the file format, `manifest` the table of contents, `create` makes a backup while everything runs, and
//! `restore` reads one from any source. A new backup gets its name after a trial restore.

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

pub use create::{BackupMade, SecretsInBackup, create};
pub use manifest::{BackupManifest, BackupMember, LeftOut};
pub use restore::{RestoredBackup, restore, verify};

/// The manifest, first in the file.
const MANIFEST: &str = "manifest.json";
/// The manifest's SHA-256 next to it, in the format of `sha256sum`.
const MANIFEST_SUM: &str = "manifest.json.sha256";
/// Maximum bytes of the manifest.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// The reason why a backup wasn't created or restored. Unless the message says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of this name exists.
    #[error("{} exists already and stays as it is: choose another name", .0.display())]
    Exists(PathBuf),
    /// The file isn't a backup of this program, or its beginning is damaged.
    #[error("it isn't a Reveille backup, or its beginning is damaged. Nothing was written")]
    NotOurs,
    /// The contents differ from the manifest.
    #[error("the backup is damaged: {0}. Nothing was written")]
    Damaged(String),
    /// A newer program created it.
    #[error("this backup was made by a newer version of Reveille: update first. Nothing was written")]
    TooNew,
    /// The destination isn't empty.
    #[error("{} isn't empty (it has {what}), so nothing was restored: choose another folder with --to", dir.display())]
    NotEmpty {
        /// The workspace.
        dir: PathBuf,
        /// An existing entry.
        what: String,
    },
    /// The destination for files of messages holds another database's file of the same name.
    #[error("{} exists and isn't from this backup, so nothing was restored: set MEDIA_DIR to another folder", .0.display())]
    OthersMedia(PathBuf),
    /// A wake or the bot is running there.
    #[error("{0} Nothing was restored: stop it first")]
    InUse(String),
    /// The disk has too little room.
    #[error("not enough room: {} needed in {}, {} free. Nothing was written", disk::format_size(*needed), dir.display(), disk::format_size(*free))]
    NoRoom {
        /// The folder.
        dir: PathBuf,
        /// In bytes.
        needed: u64,
        /// In bytes.
        free: u64,
    },
    /// A file is larger than the format allows.
    #[error("{0} is larger than 8 GiB, the limit for a file in a backup")]
    TooLarge(String),
    /// A file changed during every try to copy it.
    #[error("{0} kept changing while it was copied. Try again")]
    Changing(String),
    /// A killed wake left a commit unfinished, or someone keeps committing.
    #[error("the memory kept changing, or a commit is half done: let a wake run (`wake --once`), and try again")]
    MemoryChanging,
    /// The lock file can't be used.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The database failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The memory's repository failed.
    #[error("{0}")]
    Repo(#[from] RepoError),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl BackupError {
    /// Builds the error for `map_err`, with the attempted action and its object.
    fn io(what: &str, on: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {on}");
        move |source| Self::Io { what, source }
    }
}

/// Name prefix of private folders.
const SCRATCH: &str = ".backup-";

/// A private temporary folder, removed on drop and locked while its creator lives.
struct Scratch {
    path: PathBuf,
    /// Holds the lock.
    _open: fs::File,
}

impl Scratch {
    fn create_in(dir: &Path) -> Result<Self, BackupError> {
        Self::sweep(dir);
        let bytes = random::generate_bytes::<8>()
            .map_err(|error| BackupError::io("making", "a folder")(io::Error::other(error)))?;
        let path = dir.join(format!("{SCRATCH}{}", random::format_hex(&bytes)));
        let made = create_private_dir(&path).and_then(|()| fs::File::open(&path));
        let open = made.map_err(BackupError::io("making", path.display()))?;
        open.lock().map_err(BackupError::io("locking", path.display()))?;
        Ok(Self { path, _open: open })
    }

    /// Removes folders of killed processes, since they contain private messages. Folders that can't be removed belong
    /// to someone else.
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
            tracing::warn!(%error, folder = %self.path.display(), "a temporary folder could not be removed");
        }
    }
}

fn sync_folder(dir: &Path) -> Result<(), BackupError> {
    file::sync(dir).map_err(BackupError::io("syncing", dir.display()))
}
