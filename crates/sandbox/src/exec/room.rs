//! Disk space for commands. A command may fill the scratch folder, but Reveille must keep enough space to record the result.
//!
//! The sandbox's launcher limits each file to the free space above the reserve, and the free space is polled several
//! dozen times a second. A command that comes near the reserve, or exceeds the limit of the scratch folder, is ended
//! and its files in the scratch are removed.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat},
};

use reveille_base::{
    clock::{Clock as _, SystemClock},
    disk::{self, Reserve},
    words,
};

/// Maximum size of the scratch folder, in bytes.
const MAX_SCRATCH_BYTES: u64 = 4 << 30;
/// The minimum reserve of free bytes, even if the configured one is smaller.
const MIN_RESERVE: Reserve = Reserve::from_mib(8);
/// Interval between two checks of the free space.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The scratch folder is measured again after this many bytes were written to its disk.
const MEASURE_STEP_BYTES: u64 = 64 << 20;
/// Maximum number of files and folders in the scratch.
const MAX_ENTRIES: usize = 200_000;
/// Maximum lag of a disk's clock behind ours.
const MAX_CLOCK_LAG: TimeDelta = TimeDelta::seconds(2);

/// The limit that a command hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// The disk, up to the reserve.
    Disk,
    /// The limit of the scratch folder.
    Scratch,
}

impl Filled {
    /// Describes the limit to the model, after "it was ended: ".
    pub fn describe(self) -> String {
        match self {
            Self::Disk => "it had nearly filled the disk, and some of it has to stay free".to_owned(),
            Self::Scratch => {
                format!(
                    "the scratch folder may hold {} and {MAX_ENTRIES} files in all",
                    disk::format_size(MAX_SCRATCH_BYTES)
                )
            }
        }
    }
}

/// Files removed from the scratch folder to free space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClearedFiles {
    /// The number of files.
    pub files: usize,
    /// Their size on disk, in bytes.
    pub bytes: u64,
}

impl ClearedFiles {
    /// Returns the words for the model; `None` if nothing was removed.
    pub fn describe(self) -> Option<String> {
        (self.files > 0).then(|| {
            format!(
                "[to keep space on the disk free, I removed {} from the scratch folder, {} in all, beginning with files that this command \
                 wrote]",
                words::format_count(self.files, "file"),
                disk::format_size(self.bytes)
            )
        })
    }
}

/// The disk space available to one command.
#[derive(Debug)]
pub struct CommandRoom {
    scratch: PathBuf,
    /// Free bytes at the start.
    free: u64,
    /// Bytes that must stay free.
    floor: u64,
    /// The reserve, and the number of free bytes at which clearing stops.
    reserve: u64,
    enough: u64,
    began: DateTime<Utc>,
}

impl CommandRoom {
    /// Measures the space before a command starts. On a disk already short, the command may use an eighth of the rest,
    /// since clearing up needs some.
    pub fn measure(scratch: &Path, reserve: Reserve) -> Self {
        let reserve = if reserve.bytes() < MIN_RESERVE.bytes() { MIN_RESERVE } else { reserve };
        // If the free space is unknown, writing itself will report a full disk.
        let free = disk::free_bytes(scratch).unwrap_or(u64::MAX);
        let enough = reserve.recovery_bytes();
        let floor = if free > enough { reserve.bytes() + reserve.bytes() / 8 } else { free - free / 8 };
        Self { scratch: scratch.to_owned(), free, floor, reserve: reserve.bytes(), enough, began: SystemClock.now() }
    }

    /// Returns true if the disk was short at the start.
    fn is_short(&self) -> bool {
        self.free < self.reserve
    }

    /// Returns the maximum size of a file in the writable folders, in bytes: the free space above the floor. Other disks have no reserve.
    pub fn max_file_bytes(&self, writable: &[PathBuf]) -> u64 {
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let own = device(&self.scratch);
        let elsewhere =
            writable.iter().filter(|path| device(path) != own).filter_map(|path| disk::free_bytes(path).ok());
        // Slightly more than the limit, so that the poll notices the excess and ends the command.
        let own = self.free.saturating_sub(self.floor);
        let more = (self.reserve / 16).min(own / 8);
        elsewhere.chain([own + more]).max().unwrap_or_default()
    }

    /// Waits until the command hits a limit.
    pub async fn wait_until_filled(&self) -> Filled {
        let mut measured_at = self.free;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let Ok(free) = disk::free_bytes(&self.scratch) else { continue };
            if free < self.floor {
                return Filled::Disk;
            }
            if free.saturating_add(MEASURE_STEP_BYTES) < measured_at {
                measured_at = free;
                let scratch = self.scratch.clone();
                // A slow disk must not delay the command's output and timeout.
                let measured = tokio::task::spawn_blocking(move || {
                    let (files, is_all) = list_scratch_files(&scratch);
                    !is_all || files.iter().map(|file| file.bytes).sum::<u64>() > MAX_SCRATCH_BYTES
                });
                if measured.await.unwrap_or(false) {
                    return Filled::Scratch;
                }
            }
        }
    }

    /// Frees space after a command that left too little. The command's own files in the scratch go first, the largest
    /// first. If the command hit a limit (`filled`), other files follow, because another program may have filled the
    /// disk meanwhile. All its processes have ended.
    pub fn free_space(&self, filled: Option<Filled>) -> ClearedFiles {
        let has_less_than = |bytes: u64| disk::free_bytes(&self.scratch).is_ok_and(|free| free < bytes);
        let should_continue = || has_less_than(self.enough);
        match filled {
            None if has_less_than(self.floor.min(self.free)) => self.remove(|is_own, _| is_own && should_continue()),
            Some(Filled::Disk) => self.remove(|_, _| should_continue()),
            Some(Filled::Scratch) => self.remove(|_, left| left > MAX_SCRATCH_BYTES / 2),
            None => ClearedFiles::default(),
        }
    }

    /// Empties the scratch folder if the disk is short. No command is running.
    pub fn empty_if_short(&self) -> ClearedFiles {
        if self.is_short() {
            remove(&self.scratch, list_scratch_files(&self.scratch).0, |_, _| true)
        } else {
            ClearedFiles::default()
        }
    }

    /// Removes files while `should_continue` returns true. Its arguments: true if the command wrote this file, and the bytes of all
    /// remaining files.
    fn remove(&self, should_continue: impl Fn(bool, u64) -> bool) -> ClearedFiles {
        let since = (self.began - MAX_CLOCK_LAG).timestamp();
        let (mut files, _) = list_scratch_files(&self.scratch);
        files.sort_by_key(|file| (file.changed_at < since, std::cmp::Reverse(file.bytes)));
        remove(&self.scratch, files, |file, left| should_continue(file.changed_at >= since, left))
    }
}

/// A file of the scratch folder.
struct ScratchFile {
    /// The path relative to the folder.
    path: PathBuf,
    /// The size on disk, in bytes.
    bytes: u64,
    /// Time of the last change, in seconds since 1970.
    changed_at: i64,
}

/// Lists the files in a folder, unordered; false if the list is incomplete. Unreadable files are skipped.
fn list_scratch_files(root: &Path) -> (Vec<ScratchFile>, bool) {
    let (mut found, mut open, mut entries) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            let path = entry.path();
            let (Ok(metadata), true) = (fs::symlink_metadata(&path), entries <= MAX_ENTRIES) else { continue };
            if metadata.is_dir() {
                open.push(path);
            } else if let Ok(beneath) = path.strip_prefix(root) {
                let (path, changed_at) = (beneath.to_owned(), metadata.ctime());
                found.push(ScratchFile { path, bytes: metadata.blocks().saturating_mul(512), changed_at });
            }
        }
    }
    (found, entries <= MAX_ENTRIES)
}

/// Removes files in order while `should_continue` returns true. Its arguments: the file, and the bytes of all remaining files.
fn remove(root: &Path, files: Vec<ScratchFile>, should_continue: impl Fn(&ScratchFile, u64) -> bool) -> ClearedFiles {
    let mut cleared = ClearedFiles::default();
    let mut left: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if !should_continue(&file, left) {
            break;
        }
        if unlink_file(root, &file.path).is_ok() {
            left -= file.bytes;
            cleared.files += 1;
            cleared.bytes += file.bytes;
        }
    }
    cleared
}

/// Removes a file beneath a folder by handles, so that links planted by a program aren't followed.
fn unlink_file(root: &Path, path: &Path) -> rustix::io::Result<()> {
    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let mut folder: OwnedFd = openat(CWD, root, FOLDER, Mode::empty())?;
    let mut names = path.components().peekable();
    while let Some(Component::Normal(name)) = names.next() {
        if names.peek().is_none() {
            return unlinkat(&folder, name, AtFlags::empty());
        }
        folder = openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Err(rustix::io::Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_what_is_removed_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, theirs) = (dir.path().join("scratch"), dir.path().join("theirs"));
        fs::create_dir_all(scratch.join("sub")).unwrap();
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("a"), "theirs").unwrap();
        fs::write(scratch.join("sub/a"), "ours").unwrap();
        symlink(&theirs, scratch.join("link")).unwrap();
        assert!(unlink_file(&scratch, Path::new("link/a")).is_err() && theirs.join("a").exists());
        assert!(unlink_file(&scratch, Path::new("../theirs/a")).is_err() && theirs.join("a").exists());
        let (found, is_all) = list_scratch_files(&scratch);
        assert_eq!((found.len(), is_all), (2, true), "the link itself, and nothing behind it");
        assert_eq!(remove(&scratch, found, |_, _| true).files, 2);
        assert!(theirs.join("a").exists() && !scratch.join("sub/a").exists());
    }

    #[test]
    fn what_is_large_goes_first_and_only_as_much_as_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        for (name, kib) in [("small", 8), ("large", 512), ("middle", 64)] {
            fs::write(dir.path().join(name), vec![1; kib << 10]).unwrap();
        }
        let room = CommandRoom::measure(dir.path(), Reserve::from_mib(0));
        let cleared = room.remove(|_, left| left > 128 << 10);
        assert_eq!((cleared.files, dir.path().join("large").exists()), (1, false));
        assert!(cleared.describe().unwrap().contains("removed 1 file from the scratch folder"));
        assert_eq!(ClearedFiles::default().describe(), None);
    }

    #[test]
    fn a_disk_that_is_short_already_leaves_a_command_a_part_of_what_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let plenty = CommandRoom::measure(dir.path(), Reserve::from_mib(1));
        assert!(!plenty.is_short() && plenty.floor < plenty.free, "{plenty:?}");
        let short = CommandRoom::measure(dir.path(), Reserve::from_mib(1 << 20));
        assert!(short.is_short() && short.floor < short.free && short.max_file_bytes(&[]) <= short.free / 4);
    }
}
