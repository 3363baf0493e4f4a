//! Free space on the workspace's disk. The bot stops accepting messages below the reserve, and `health` reports it.
//!
//! The reserve itself stays usable: wakes answer, commit and deliver with it while new messages are refused.
//!
//! Also folds file names as disks that ignore letter case do, so that forbidding a name forbids all its spellings.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::{approval_text::is_hidden, file::create_private};

/// The free space required before anything new is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    bytes: u64,
}

impl Reserve {
    /// Creates a reserve of this many MiB; 0 turns the reserve off.
    pub const fn from_mib(mib: u32) -> Self {
        Self { bytes: (mib as u64) << 20 }
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns true if less space than the reserve is free.
    pub const fn is_undercut_by(self, free_bytes: u64) -> bool {
        free_bytes < self.bytes
    }

    /// The free bytes above which the disk counts as recovered: 1.25 times the reserve, so that a disk near the limit doesn't toggle
    /// the bot on and off.
    pub const fn recovery_bytes(self) -> u64 {
        self.bytes.saturating_add(self.bytes / 4)
    }
}

/// A file of the workspace that reserves disk space for a last notice when others fill the disk.
const BALLAST: &str = ".ballast";
/// The size of the ballast file in bytes: enough for a notice, an answer and the journal of a small cycle.
const BALLAST_BYTES: u64 = 4 << 20;
/// The free bytes below which a last notice may not fit.
const LAST_NOTICE_BYTES: u64 = 1 << 20;

/// Creates the ballast file if the disk has plenty of space. Does nothing if the reserve is turned off.
pub fn keep_ballast(workspace: &Path, reserve: Reserve) {
    let path = workspace.join(BALLAST);
    let is_plenty = || free_bytes(workspace).is_ok_and(|free| free > reserve.recovery_bytes() + BALLAST_BYTES);
    if reserve.bytes() == 0 || path.exists() || !is_plenty() {
        return;
    }
    let written = create_private(&path).and_then(|mut file| {
        // Zeros would take no space on a disk that compresses.
        let noise = crate::random::generate_bytes::<4096>().map_err(io::Error::other)?;
        for _ in 0..BALLAST_BYTES / noise.len() as u64 {
            file.write_all(&noise)?;
        }
        file.sync_all()
    });
    if let Err(error) = written {
        tracing::debug!(%error, "the ballast file, which reserves disk space for a last notice, could not be created");
        fs::remove_file(&path).ok();
    }
}

/// Removes the ballast file if the disk is full. Returns true if the file existed.
pub fn release_ballast(workspace: &Path) -> bool {
    let is_full = free_bytes(workspace).is_ok_and(|free| free < LAST_NOTICE_BYTES);
    let is_released = is_full && fs::remove_file(workspace.join(BALLAST)).is_ok();
    if is_released {
        tracing::warn!("the disk is full: the space reserved for a last notice is used now");
    }
    is_released
}

/// Folds a name as the least strict disks compare names: macOS by default, and `casefold` folders on Linux. These ignore letter
/// case, Unicode normalization and invisible characters. All names of one file fold to the same text.
pub fn fold_name(name: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfd();
    let visible: String = decomposed.normalize(name).chars().filter(|c| !is_hidden(*c)).collect();
    // Both directions: some letters reach their small form only through a large one.
    // A sigma has a second small form at the end of a word.
    decomposed.normalize(&visible.to_uppercase().to_lowercase().replace('ς', "σ")).into_owned()
}

/// Returns true if an error is the machine's fault rather than the file's: no descriptors, no space, a failing disk. Such an
/// error proves nothing about the file.
pub fn is_machine_fault(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const MACHINE_FAULTS: [Errno; 6] =
        [Errno::IO, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOSPC, Errno::DQUOT];
    Errno::from_io_error(error).is_some_and(|errno| MACHINE_FAULTS.contains(&errno))
}

/// The bytes that we may still write to the file system of `path`, judged by the nearest existing directory.
///
/// # Errors
/// Returns the system's error.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(existing)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Formats a size for people: `512 B`, `3.4 MiB`.
pub fn format_size(bytes: u64) -> String {
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
    fn a_disk_is_short_below_the_reserve_and_recovers_a_quarter_above() {
        let reserve = Reserve::from_mib(100);
        assert_eq!((reserve.bytes(), reserve.recovery_bytes()), (100 << 20, 125 << 20));
        assert!(reserve.is_undercut_by((100 << 20) - 1) && !reserve.is_undercut_by(100 << 20));
        assert!(!Reserve::from_mib(0).is_undercut_by(0), "a reserve that is turned off never stops the bot");
    }

    #[test]
    fn free_space_of_a_missing_directory_is_that_of_its_nearest_existing_parent() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert!(free_bytes(&std::env::temp_dir().join("not/there/yet")).unwrap() > 0);
        // The kernel's own file systems report no space.
        #[cfg(target_os = "linux")]
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0);
    }

    #[test]
    fn sizes_are_formatted_in_the_largest_fitting_unit() {
        assert_eq!(
            [format_size(0), format_size(1023), format_size(1024), format_size(3 << 30)],
            ["0 B", "1023 B", "1.0 KiB", "3.0 GiB"]
        );
    }
}
