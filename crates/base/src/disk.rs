//! Room on the workspace's disk, and what is too little of it: one definition for the bot, which then takes in nothing more,
//! and for `health`, which tells.
//!
//! What is below the reserve isn't locked away: it is what wakes answer, commit and deliver with while nothing new comes in.
//!
//! And which names a disk may take for one: whoever forbids a name forbids all of them.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::{approval_text::is_hidden, file::create_private};

/// The room that has to be free before anything new is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    bytes: u64,
}

impl Reserve {
    /// So many MiB; 0 is no reserve at all.
    pub const fn of_mib(mib: u32) -> Self {
        Self { bytes: (mib as u64) << 20 }
    }

    /// Its size in bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Whether there is less than that.
    pub const fn is_broken_into(self, free_bytes: u64) -> bool {
        free_bytes < self.bytes
    }

    /// From how many free bytes on all is well again: a quarter more than the reserve, so that a disk that hovers about the
    /// line doesn't make us stop and go.
    pub const fn well_again_bytes(self) -> u64 {
        self.bytes.saturating_add(self.bytes / 4)
    }
}

/// A file of the workspace that keeps room on the disk for a last word: others can fill the disk, too.
const BALLAST: &str = ".ballast";
/// How long it is, in bytes: more than a notice, an answer and the journal of a small cycle take.
const BALLAST_BYTES: u64 = 4 << 20;
/// With less than this free the last word may not fit, in bytes.
const LAST_WORD_BYTES: u64 = 1 << 20;

/// Keeps room in a workspace for a last word, if there is plenty now and none is kept. Where no reserve is wanted, this isn't either.
pub fn keep_ballast(workspace: &Path, reserve: Reserve) {
    let path = workspace.join(BALLAST);
    let is_plenty = || free_bytes(workspace).is_ok_and(|free| free > reserve.well_again_bytes() + BALLAST_BYTES);
    if reserve.bytes() == 0 || path.exists() || !is_plenty() {
        return;
    }
    let written = create_private(&path).and_then(|mut file| {
        // Not zeros: a disk may keep those without taking room.
        let noise = crate::random::bytes::<4096>().map_err(io::Error::other)?;
        for _ in 0..BALLAST_BYTES / noise.len() as u64 {
            file.write_all(&noise)?;
        }
        file.sync_all()
    });
    if let Err(error) = written {
        tracing::debug!(%error, "no room is kept on the disk for a last word");
        fs::remove_file(&path).ok();
    }
}

/// Gives the kept room free where nothing would fit any more. Says whether there was some.
pub fn release_ballast(workspace: &Path) -> bool {
    let is_full = free_bytes(workspace).is_ok_and(|free| free < LAST_WORD_BYTES);
    let is_released = is_full && fs::remove_file(workspace.join(BALLAST)).is_ok();
    if is_released {
        tracing::warn!("the disk is full: the room that was kept for a last word is used now");
    }
    is_released
}

/// A name as the most forgiving disks compare it: macOS's by default, and folders with `casefold` on Linux. To them large and
/// small letters are the same, and so are the spellings of one letter. They pass over what a screen doesn't show. Names that
/// lead to one file there are one text here.
pub fn folded(name: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfd();
    let visible: String = decomposed.normalize(name).chars().filter(|c| !is_hidden(*c)).collect();
    // Both ways: some letters have a small form only by way of a large one.
    // And at the end of a word a sigma has a small form of its own.
    decomposed.normalize(&visible.to_uppercase().to_lowercase().replace('ς', "σ")).into_owned()
}

/// Whether an error is the machine's, not that of the file it came up with: no descriptor or room left, a disk that fails. A
/// file that couldn't be read for it may well be sound, and nothing may be concluded about it.
pub fn is_the_machines(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const MACHINES: [Errno; 6] = [Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT];
    Errno::from_io_error(error).is_some_and(|errno| MACHINES.contains(&errno))
}

/// The bytes that we may still write to the file system that holds `path`, or would hold it: the nearest directory that is
/// there counts.
///
/// # Errors
/// When the system doesn't tell.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(there)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// A size as a person reads it: `512 B`, `3.4 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_broken_into_below_it_and_restored_a_quarter_above() {
        let reserve = Reserve::of_mib(100);
        assert_eq!((reserve.bytes(), reserve.well_again_bytes()), (100 << 20, 125 << 20));
        assert!(reserve.is_broken_into((100 << 20) - 1) && !reserve.is_broken_into(100 << 20));
        assert!(!Reserve::of_mib(0).is_broken_into(0), "no reserve is never broken into");
    }

    #[test]
    fn a_directory_that_will_be_made_is_on_the_disk_of_the_one_it_will_be_made_in() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert!(free_bytes(&std::env::temp_dir().join("not/there/yet")).unwrap() > 0);
        // The kernel's own file systems have no room at all.
        #[cfg(target_os = "linux")]
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0);
    }

    #[test]
    fn sizes_are_told_in_the_largest_fitting_unit() {
        assert_eq!([size(0), size(1023), size(1024), size(3 << 30)], ["0 B", "1023 B", "1.0 KiB", "3.0 GiB"]);
    }
}
