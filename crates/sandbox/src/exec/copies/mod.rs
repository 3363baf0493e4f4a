//! Copies of a command's writable folders, taken before the command runs, so that undoing its wake restores a person's files.
//!
//! A copy is a folder of the workspace, out of reach of sandboxed programs: numbered files, and `before.json`, which
//! is written last and durably and marks the copy as complete. `after.json` lists the command's changes, written after
//! its end; only those are restored, and only if nobody has changed them since. A kill in between leaves no
//! `after.json`; then missing files are restored, and all other differences are reported.

mod back;
mod take;
mod walk;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use reveille_base::{
    disk::{self, Reserve},
    file::{parent_directory, remove_if_there, replace_durably},
};
use reveille_config::Config;

pub use self::back::GivenBack;
use self::walk::{Measure, TreeEntry};

/// Maximum bytes copied of all folders together. Unlimited on disks where two files can share their bytes.
const MAX_BYTES: u64 = 200 << 20;
/// Maximum number of copied files and folders.
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of entries examined after a command. Beyond that, its changes count as unknown.
const MAX_ENTRIES_AFTER: usize = 200_000;
/// Maximum size of all copies together, by their files' sizes; the oldest are removed.
const MAX_KEPT_BYTES: u64 = 1 << 30;
/// How long a copy is kept, in days.
pub const KEPT_DAYS: i64 = 7;

const BEFORE: &str = "before.json";
const AFTER: &str = "after.json";
/// The result of a finished restoration.
const BACK: &str = "back.json";
const FILES: &str = "files";

/// The reason for a missing copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The content can't be copied.
    #[error("{0}")]
    Uncovered(String),
    /// An error of the system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl CopyError {
    fn at_path(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// The store of copies.
#[derive(Debug, Clone)]
pub struct Copies {
    dir: PathBuf,
    /// Bytes that must stay free on the disk.
    reserve: Reserve,
}

/// The extent of a copy: folders, and hidden paths within them.
#[derive(Debug, Clone, Copy)]
pub struct CopyScope<'a> {
    /// The folders.
    pub roots: &'a [PathBuf],
    /// Paths that are left out with their content.
    pub hidden: &'a [PathBuf],
}

#[derive(Debug, Serialize, Deserialize)]
struct Before {
    taken_at: DateTime<Utc>,
    bytes: u64,
    roots: Vec<Root>,
}

/// The former state of a folder. The name of a copied file contains its index in the list.
#[derive(Debug, Serialize, Deserialize)]
struct Root {
    path: PathBuf,
    hidden: Vec<PathBuf>,
    entries: Vec<TreeEntry>,
}

/// A command's changes in a folder.
#[derive(Debug, Serialize, Deserialize)]
struct After {
    /// New and changed entries, in the state after the command.
    changed: Vec<TreeEntry>,
    /// Removed paths.
    gone: Vec<String>,
}

/// A copy taken before a command runs. Dropping it records the command's changes.
#[derive(Debug)]
pub struct CopyTaken {
    dir: PathBuf,
}

impl Copies {
    /// Creates a store in this folder of the workspace, which is created on first use.
    pub fn new(dir: PathBuf, reserve: Reserve) -> Self {
        Self { dir, reserve }
    }

    /// Returns the store of a workspace.
    pub fn from_config(config: &Config) -> Self {
        Self::new(config.copies_dir(), config.disk_reserve)
    }

    /// Returns the reason why these folders can't be copied; `None` if they can.
    pub fn find_obstacle(&self, scope: CopyScope<'_>) -> Option<String> {
        self.measure_roots(scope).err().map(|error| error.to_string())
    }

    fn measure_roots(&self, scope: CopyScope<'_>) -> Result<Vec<Measure>, CopyError> {
        let mut left = MAX_ENTRIES;
        let measured: Vec<Measure> = scope
            .roots
            .iter()
            .map(|root| walk::measure_folder(root, scope.hidden, &mut left))
            .collect::<Result<_, _>>()?;
        let bytes: u64 = measured.iter().map(|root| root.bytes).sum();
        if bytes > MAX_BYTES && !self.can_share(&measured) {
            let (there, most) = (disk::format_size(bytes), disk::format_size(MAX_BYTES));
            return Err(CopyError::Uncovered(format!("they hold {there}, and I copy {most} at most")));
        }
        let free = disk::free_bytes(&self.dir).map_err(CopyError::at_path(&self.dir))?;
        if bytes <= MAX_BYTES && self.reserve.is_undercut_by(free.saturating_sub(bytes)) {
            return Err(CopyError::Uncovered("the disk has too little room for a copy".to_owned()));
        }
        Ok(measured)
    }

    /// Returns true if a wake has copies.
    pub fn has_wake(&self, wake: &str) -> bool {
        self.list_for_wake(wake).next().is_some()
    }

    /// Returns the complete copies of a wake, latest first.
    fn list_for_wake(&self, wake: &str) -> impl Iterator<Item = PathBuf> + use<> {
        let mut found: Vec<(u32, PathBuf)> = list_subfolders(&self.dir.join(wake))
            .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
            // fault: copy-isnt-whole-given
            .filter(|(_, path): &(u32, PathBuf)| path.join(BEFORE).exists())
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, path)| path)
    }

    /// Removes copies older than [`KEPT_DAYS`], incomplete copies, and the oldest copies until `coming` more bytes
    /// fit. Returns the number of removed copies.
    ///
    /// # Errors
    /// A copy can't be removed.
    pub fn forget_old(&self, now: DateTime<Utc>, coming: u64) -> io::Result<usize> {
        let oldest = now - chrono::TimeDelta::days(KEPT_DAYS);
        let mut kept: Vec<(DateTime<Utc>, u64, PathBuf)> = Vec::new();
        let mut removed = 0;
        for copy in list_subfolders(&self.dir).flat_map(|wake| list_subfolders(&wake)) {
            match read_json::<Before>(&copy.join(BEFORE)) {
                Ok(before) if before.taken_at >= oldest => kept.push((before.taken_at, before.bytes, copy)),
                _ => {
                    remove(&copy)?;
                    removed += 1;
                }
            }
        }
        kept.sort();
        let mut bytes = coming + kept.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, of_copy, copy) in kept {
            if bytes <= MAX_KEPT_BYTES {
                break;
            }
            remove(&copy)?;
            removed += 1;
            bytes -= of_copy;
        }
        // An empty folder belongs to a wake without remaining copies.
        list_subfolders(&self.dir).for_each(|wake| drop(fs::remove_dir(wake)));
        Ok(removed)
    }

    /// Returns true if any copy is old or incomplete.
    pub fn has_old(&self, now: DateTime<Utc>) -> bool {
        let oldest = now - chrono::TimeDelta::days(KEPT_DAYS);
        let mut copies = list_subfolders(&self.dir).flat_map(|wake| list_subfolders(&wake));
        copies.any(|copy| read_json::<Before>(&copy.join(BEFORE)).map_or(true, |before| before.taken_at < oldest))
    }
}

/// Removes a copy, beginning with the file that marks it as complete.
fn remove(copy: &Path) -> io::Result<()> {
    remove_if_there(&copy.join(BEFORE))?;
    fs::remove_dir_all(copy)
}

/// Lists the subfolders, unordered. Unreadable ones are skipped.
fn list_subfolders(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
}

/// Writes a file atomically, after all earlier writes have reached the disk, safe against power failure.
fn write_durably(path: &Path, value: &impl Serialize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&File::open(parent_directory(path))?)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    replace_durably(path, &serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests;
