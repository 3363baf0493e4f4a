//! Room on the disk while a command runs: it may write to the scratch folder as it likes, and mustn't leave us without the room to say what
//! became of it.
//!
//! No file of it grows past what is free above the reserve (the sandbox's launcher sets that), and it is looked several dozen times a second
//! what is free. Near the reserve, or past what the scratch folder may hold, a command is ended, and what it has written there goes.

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

/// What the scratch folder may hold in all, in bytes.
const MAX_SCRATCH_BYTES: u64 = 4 << 30;
/// What stays free on a disk where no reserve is set, in bytes.
const LEAST_RESERVE: Reserve = Reserve::of_mib(8);
/// How often it is looked what is free.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The scratch folder is measured each time that so much more was written on its disk, in bytes.
const MEASURE_STEP_BYTES: u64 = 64 << 20;
/// Files and folders that are looked at when it is measured.
const MAX_ENTRIES: usize = 200_000;
/// How far the clock of a disk may be behind ours.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(2);

/// What a command had filled when it was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// The disk, but for the reserve.
    Disk,
    /// The scratch folder, as far as it may be.
    Scratch,
}

impl Filled {
    /// In words, for the model, after "it was ended: ".
    pub fn described(self) -> String {
        match self {
            Self::Disk => "it had nearly filled the disk, and some of it has to stay free".to_owned(),
            Self::Scratch => {
                format!("the scratch folder may hold {} and {MAX_ENTRIES} files in all", disk::size(MAX_SCRATCH_BYTES))
            }
        }
    }
}

/// What was removed from the scratch folder, to have room again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClearedFiles {
    /// How many files.
    pub files: usize,
    /// What they took, in bytes.
    pub bytes: u64,
}

impl ClearedFiles {
    /// In words, for the model; `None` if nothing was removed.
    pub fn described(self) -> Option<String> {
        (self.files > 0).then(|| {
            format!(
                "[to keep room on the disk I have removed {} from the scratch folder, {} in all, beginning with what this command had written \
                 there]",
                words::count(self.files, "file"),
                disk::size(self.bytes)
            )
        })
    }
}

/// The room that one command has.
#[derive(Debug)]
pub struct CommandRoom {
    scratch: PathBuf,
    /// What was free when it began, in bytes.
    free: u64,
    /// What has to stay free, in bytes.
    floor: u64,
    /// The reserve, and from how many free bytes on all is well again.
    reserve: u64,
    enough: u64,
    began: DateTime<Utc>,
}

impl CommandRoom {
    /// Looks before a command begins. Where the disk is short already, it may use a part of what is left: to make room takes some.
    pub fn look(scratch: &Path, reserve: Reserve) -> Self {
        let reserve = if reserve.bytes() < LEAST_RESERVE.bytes() { LEAST_RESERVE } else { reserve };
        // Writing itself tells where the system doesn't.
        let free = disk::free_bytes(scratch).unwrap_or(u64::MAX);
        let enough = reserve.well_again_bytes();
        let floor = if free > enough { reserve.bytes() + reserve.bytes() / 8 } else { free - free / 8 };
        Self { scratch: scratch.to_owned(), free, floor, reserve: reserve.bytes(), enough, began: SystemClock.now() }
    }

    /// Whether the disk was short before.
    fn is_short(&self) -> bool {
        self.free < self.reserve
    }

    /// How large a file may become in the folders that may be written to, in bytes: as much as there is room for above what has to stay
    /// free. Another disk has no reserve.
    pub fn max_file_bytes(&self, writable: &[PathBuf]) -> u64 {
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let own = device(&self.scratch);
        let elsewhere =
            writable.iter().filter(|path| device(path) != own).filter_map(|path| disk::free_bytes(path).ok());
        // A little more, so that whoever has written so much is found out, and ended.
        let own = self.free.saturating_sub(self.floor);
        let more = (self.reserve / 16).min(own / 8);
        elsewhere.chain([own + more]).max().unwrap_or_default()
    }

    /// Waits until the command has filled something.
    pub async fn wait_until_filled(&self) -> Filled {
        let mut measured_at = self.free;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Ok(free) = disk::free_bytes(&self.scratch) else { continue };
            if free < self.floor {
                return Filled::Disk;
            }
            if free.saturating_add(MEASURE_STEP_BYTES) < measured_at {
                measured_at = free;
                let scratch = self.scratch.clone();
                // A slow disk must not keep the command's own output and time-out waiting.
                let measured = tokio::task::spawn_blocking(move || {
                    let (files, is_all) = look_at_files(&scratch);
                    !is_all || files.iter().map(|file| file.bytes).sum::<u64>() > MAX_SCRATCH_BYTES
                });
                if measured.await.unwrap_or(false) {
                    return Filled::Scratch;
                }
            }
        }
    }

    /// Makes room once a command has ended that has left too little: what it has written to the scratch folder goes, the largest file first,
    /// then, if it had to be ended, what else is there: another program may have filled the disk meanwhile. `filled`: what it was ended
    /// for. Nothing of it runs any more.
    pub fn clear(&self, filled: Option<Filled>) -> ClearedFiles {
        let has_less_than = |bytes: u64| disk::free_bytes(&self.scratch).is_ok_and(|free| free < bytes);
        let is_to_go_on = || has_less_than(self.enough);
        match filled {
            None if has_less_than(self.floor.min(self.free)) => self.remove(|is_own, _| is_own && is_to_go_on()),
            Some(Filled::Disk) => self.remove(|_, _| is_to_go_on()),
            Some(Filled::Scratch) => self.remove(|_, left| left > MAX_SCRATCH_BYTES / 2),
            None => ClearedFiles::default(),
        }
    }

    /// Empties the scratch folder where the disk is short, for what comes. No command runs now.
    pub fn empty_if_short(&self) -> ClearedFiles {
        if self.is_short() {
            remove(&self.scratch, look_at_files(&self.scratch).0, |_, _| true)
        } else {
            ClearedFiles::default()
        }
    }

    /// Removes files while it is to go on, which is asked with whether the command has written this one, and what all still take.
    fn remove(&self, is_to_go_on: impl Fn(bool, u64) -> bool) -> ClearedFiles {
        let since = (self.began - CLOCKS_DIFFER).timestamp();
        let (mut files, _) = look_at_files(&self.scratch);
        files.sort_by_key(|file| (file.changed_at < since, std::cmp::Reverse(file.bytes)));
        remove(&self.scratch, files, |file, left| is_to_go_on(file.changed_at >= since, left))
    }
}

/// A file of the scratch folder.
struct ScratchFile {
    /// Beneath the folder.
    path: PathBuf,
    /// What it takes on the disk.
    bytes: u64,
    /// Seconds since 1970.
    changed_at: i64,
}

/// The files in a folder, in no order, and whether these are all. A file that can't be looked at isn't there.
fn look_at_files(root: &Path) -> (Vec<ScratchFile>, bool) {
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

/// Removes files in this order while it is to go on, which is asked with the file and what all of them still take.
fn remove(root: &Path, files: Vec<ScratchFile>, is_to_go_on: impl Fn(&ScratchFile, u64) -> bool) -> ClearedFiles {
    let mut cleared = ClearedFiles::default();
    let mut left: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if !is_to_go_on(&file, left) {
            break;
        }
        if unlink(root, &file.path).is_ok() {
            left -= file.bytes;
            cleared.files += 1;
            cleared.bytes += file.bytes;
        }
    }
    cleared
}

/// Removes a file beneath a folder, by its handle: no link that a program has put in the way is followed.
fn unlink(root: &Path, path: &Path) -> rustix::io::Result<()> {
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
        assert!(unlink(&scratch, Path::new("link/a")).is_err() && theirs.join("a").exists());
        assert!(unlink(&scratch, Path::new("../theirs/a")).is_err() && theirs.join("a").exists());
        let (found, is_all) = look_at_files(&scratch);
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
        let room = CommandRoom::look(dir.path(), Reserve::of_mib(0));
        let cleared = room.remove(|_, left| left > 128 << 10);
        assert_eq!((cleared.files, dir.path().join("large").exists()), (1, false));
        assert!(cleared.described().unwrap().contains("removed 1 file from the scratch folder"));
        assert_eq!(ClearedFiles::default().described(), None);
    }

    #[test]
    fn a_disk_that_is_short_already_leaves_a_command_a_part_of_what_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let plenty = CommandRoom::look(dir.path(), Reserve::of_mib(1));
        assert!(!plenty.is_short() && plenty.floor < plenty.free, "{plenty:?}");
        let short = CommandRoom::look(dir.path(), Reserve::of_mib(1 << 20));
        assert!(short.is_short() && short.floor < short.free && short.max_file_bytes(&[]) <= short.free / 4);
    }
}
