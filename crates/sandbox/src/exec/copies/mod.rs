//! Copies of what a command can change, taken before it runs, so that undoing its wake gives a person's files back.
//!
//! A copy is a folder of the workspace that no program of the sandbox reaches: the files under numbers, and `before.json`, which is
//! written last and durably. With it the copy is whole, without it there is none. `after.json` says what the command had changed when it
//! ended: only that is given back, and only where nobody has changed it since. A kill in between leaves the first without the second; then
//! what is missing is given back, and all else is named.

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
    file::{directory_of, remove_if_there, replace_durably},
};
use reveille_config::Config;

pub use self::back::GivenBack;
use self::walk::{Measure, TreeEntry};

/// What is copied byte by byte at most, of all folders together. Where the disk can share the bytes of two files there is no such bound.
const MAX_BYTES: u64 = 200 << 20;
/// Files and folders that are copied at most.
const MAX_ENTRIES: usize = 20_000;
/// Files and folders that are looked at when a command has ended, at most. Beyond, it isn't known what it has changed.
const MAX_ENTRIES_AFTER: usize = 200_000;
/// All copies together take at most so much, by the sizes of their files; the oldest give way.
const MAX_KEPT_BYTES: u64 = 1 << 30;
/// So long a copy is kept, in days.
pub const KEPT_DAYS: i64 = 7;

const BEFORE: &str = "before.json";
const AFTER: &str = "after.json";
/// What became of it, once all of it was given back.
const BACK: &str = "back.json";
const FILES: &str = "files";

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What is there can't be copied.
    #[error("{0}")]
    Uncovered(String),
    /// The system.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

impl CopyError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Where copies are kept.
#[derive(Debug, Clone)]
pub struct Copies {
    dir: PathBuf,
    /// What has to stay free on its disk.
    reserve: Reserve,
}

/// What is to be copied: folders, and what no command reaches in them.
#[derive(Debug, Clone, Copy)]
pub struct CopyScope<'a> {
    /// The folders.
    pub roots: &'a [PathBuf],
    /// Paths that are left out, with all that is in them.
    pub hidden: &'a [PathBuf],
}

#[derive(Debug, Serialize, Deserialize)]
struct Before {
    taken_at: DateTime<Utc>,
    bytes: u64,
    roots: Vec<Root>,
}

/// A folder as it was. A file's number among the copied ones is its place in the list.
#[derive(Debug, Serialize, Deserialize)]
struct Root {
    path: PathBuf,
    hidden: Vec<PathBuf>,
    entries: Vec<TreeEntry>,
}

/// What a command has changed in a folder.
#[derive(Debug, Serialize, Deserialize)]
struct After {
    /// What is new or another, as it was left.
    changed: Vec<TreeEntry>,
    /// What isn't there any more.
    gone: Vec<String>,
}

/// A copy of what one command can change, taken before it runs. Dropped, it looks what the command has changed by then.
#[derive(Debug)]
pub struct CopyTaken {
    dir: PathBuf,
}

impl Copies {
    /// In this folder of the workspace, which is made when it is needed.
    pub fn new(dir: PathBuf, reserve: Reserve) -> Self {
        Self { dir, reserve }
    }

    /// Those of a workspace.
    pub fn of(config: &Config) -> Self {
        Self::new(config.copies_dir(), config.disk_reserve)
    }

    /// Why these folders can't be copied, if they can't.
    pub fn uncovered(&self, reach: CopyScope<'_>) -> Option<String> {
        self.measure(reach).err().map(|error| error.to_string())
    }

    fn measure(&self, reach: CopyScope<'_>) -> Result<Vec<Measure>, CopyError> {
        let mut left = MAX_ENTRIES;
        let measured: Vec<Measure> =
            reach.roots.iter().map(|root| walk::measure(root, reach.hidden, &mut left)).collect::<Result<_, _>>()?;
        let bytes: u64 = measured.iter().map(|root| root.bytes).sum();
        if bytes > MAX_BYTES && !self.can_share(&measured) {
            let (there, most) = (disk::size(bytes), disk::size(MAX_BYTES));
            return Err(CopyError::Uncovered(format!("they hold {there}, and I copy {most} at most")));
        }
        let free = disk::free_bytes(&self.dir).map_err(CopyError::io(&self.dir))?;
        if bytes <= MAX_BYTES && self.reserve.is_broken_into(free.saturating_sub(bytes)) {
            return Err(CopyError::Uncovered("the disk has too little room for a copy".to_owned()));
        }
        Ok(measured)
    }

    /// Whether a wake has left copies.
    pub fn has(&self, wake: &str) -> bool {
        self.of_wake(wake).next().is_some()
    }

    /// The whole copies of a wake, the last one first.
    fn of_wake(&self, wake: &str) -> impl Iterator<Item = PathBuf> + use<> {
        let mut found: Vec<(u32, PathBuf)> = folders(&self.dir.join(wake))
            .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
            // fault: copy-isnt-whole-given
            .filter(|(_, path): &(u32, PathBuf)| path.join(BEFORE).exists())
            .collect();
        found.sort();
        found.into_iter().rev().map(|(_, path)| path)
    }

    /// Forgets what is older than [`KEPT_DAYS`], what was never whole, and the oldest of what is too much beside `coming` bytes. Says how
    /// many copies went.
    ///
    /// # Errors
    /// One of them can't be removed.
    pub fn forget_old(&self, now: DateTime<Utc>, coming: u64) -> io::Result<usize> {
        let oldest = now - chrono::TimeDelta::days(KEPT_DAYS);
        let mut kept: Vec<(DateTime<Utc>, u64, PathBuf)> = Vec::new();
        let mut gone = 0;
        for copy in folders(&self.dir).flat_map(|wake| folders(&wake)) {
            match read::<Before>(&copy.join(BEFORE)) {
                Ok(before) if before.taken_at >= oldest => kept.push((before.taken_at, before.bytes, copy)),
                _ => {
                    remove(&copy)?;
                    gone += 1;
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
            gone += 1;
            bytes -= of_copy;
        }
        // An empty one is of a wake that has left nothing.
        folders(&self.dir).for_each(|wake| drop(fs::remove_dir(wake)));
        Ok(gone)
    }

    /// Whether there is something to forget.
    pub fn has_old(&self, now: DateTime<Utc>) -> bool {
        let oldest = now - chrono::TimeDelta::days(KEPT_DAYS);
        let mut copies = folders(&self.dir).flat_map(|wake| folders(&wake));
        copies.any(|copy| read::<Before>(&copy.join(BEFORE)).map_or(true, |before| before.taken_at < oldest))
    }
}

/// Removes a copy: first what says that it is one.
fn remove(copy: &Path) -> io::Result<()> {
    remove_if_there(&copy.join(BEFORE))?;
    fs::remove_dir_all(copy)
}

/// The folders in a folder, in no order. What can't be looked at isn't there.
fn folders(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
}

/// Writes a file that is there whole or not at all, also when the power fails, with all that was written to its disk before.
fn write_durably(path: &Path, value: &impl Serialize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&File::open(directory_of(path))?)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    replace_durably(path, &serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests;
