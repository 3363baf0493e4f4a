//! Housekeeping: packs loose objects, joins many packs into one, and removes leftovers of dead programs.
//!
//! Each wake commit is a pack of its own, and a fetch brings loose objects; after a year every git command would be slow. Git's automatic
//! gc is off in the commands we start, since it would run beside a wake and delay an answer; the person's own git keeps its setting and
//! seldom finds anything to do. The work is a part of `git gc`, in steps that a kill may interrupt anywhere: packs are first written to the
//! disk, and only then are their objects removed elsewhere. Reflogs, references and work trees are left to the person's own `git gc`. The
//! caller holds the wake lock.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use reveille_base::{
    file,
    process::{self, ProcessError},
};

use super::{Condition, RepoError, remote};
use crate::areas::Housekeeping;

/// The number of loose objects from which they are packed; a person's git would begin at 6,700.
pub const MAX_LOOSE: usize = 2_000;
/// The number of packs from which they are joined, as in git itself.
pub const MAX_PACKS: usize = 50;
/// The time limit of each git command; the next run tries again.
pub const MAINTAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum number of git commands of one run.
pub const MAINTAIN_COMMANDS: u64 = 4;
/// The age from which an untouched temporary file counts as abandoned.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);
/// The number of directories, out of 256, in which loose objects are counted: ids are evenly spread.
const SAMPLED: usize = 16;
/// The time that unreachable objects are kept, unless the person sets another; git's own default.
const PRUNE_EXPIRE: &str = "2.weeks.ago";

/// The estimated number of objects and packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock {
    /// Objects in files of their own, estimated.
    pub loose: usize,
    /// Packs that may be joined.
    pub packs: usize,
}

impl Stock {
    /// Returns `true` if it is time for [`Housekeeping::maintain`].
    pub fn is_large(self) -> bool {
        self.has_many_loose() || self.has_many_packs()
    }

    fn has_many_loose(self) -> bool {
        self.loose >= MAX_LOOSE
    }

    fn has_many_packs(self) -> bool {
        self.packs >= MAX_PACKS
    }
}

impl Housekeeping<'_> {
    /// Counts objects and packs, in well under a millisecond.
    pub fn count_stock(&self) -> Stock {
        let objects = self.objects_path();
        let counted: usize = (0..SAMPLED)
            .map(|n| {
                list_file_names(&objects.join(format!("{:02x}", n * 256 / SAMPLED))).filter(|name| is_hex(name)).count()
            })
            .sum();
        let packs = list_file_names(&objects.join("pack"))
            .filter(|name| Path::new(name).extension() == Some(OsStr::new("pack")))
            .filter(|name| !objects.join("pack").join(name).with_extension("keep").exists())
            .count();
        Stock { loose: counted * 256 / SAMPLED, packs }
    }

    /// Packs loose objects, joins packs and removes leftovers; kills each command after `timeout`. Objects reachable from a reference, a
    /// reflog or an index stay, and unreachable objects stay until they expire (`gc.pruneExpire`).
    pub fn maintain(&self, timeout: Duration) -> Result<(), RepoError> {
        // A move that waits for HEAD, or a merge in progress, may need otherwise unreachable objects.
        if self.0.read_condition()? != Condition::Normal || self.0.is_move_noted() {
            return Ok(());
        }
        self.clear_leftovers();
        let before = self.count_stock();
        if before.has_many_loose() {
            self.run_housekeeping(timeout, &["repack", "-q", "-l", "-n"])?;
            self.sync_packs()?;
            self.run_housekeeping(timeout, &["prune-packed", "-q"])?;
        }
        let expire = self.0.git.config()?.get_string("gc.pruneExpire").unwrap_or_else(|_| PRUNE_EXPIRE.to_owned());
        if before.has_many_packs() {
            let unpack = format!("--unpack-unreachable={expire}");
            self.run_housekeeping(timeout, &["repack", "-q", "-l", "-n", "-A", "-d", &unpack])?;
            self.sync_packs()?;
        }
        // Objects still loose after packing are unreachable.
        if self.count_stock().has_many_loose() {
            self.run_housekeeping(timeout, &["prune", &format!("--expire={expire}")])?;
        }
        Ok(())
    }

    pub(super) fn run_housekeeping(&self, timeout: Duration, args: &[&str]) -> Result<(), RepoError> {
        let command = args.first().copied().unwrap_or_default();
        let failed = |why: String| RepoError::Housekeeping { why: format!("git {command}: {why}") };
        let spec = self.0.remote().git_command().args(args.iter().copied()).timeout(timeout);
        match process::run(&spec) {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(failed(remote::classify_failure(&output).to_string())),
            Err(error @ ProcessError::TimedOut { .. }) => Err(failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Syncs the directory of packs: git syncs only the packs themselves.
    fn sync_packs(&self) -> Result<(), RepoError> {
        let packs = self.objects_path().join("pack");
        file::sync(&packs).map_err(RepoError::io("syncing", &packs))
    }

    /// Removes temporary files of programs killed while they wrote an object or a pack.
    fn clear_leftovers(&self) {
        let objects = self.objects_path();
        let Some(now) = self.read_disk_time().filter(|_| !self.is_git_at_work()) else { return };
        let fan_out = (0..256).map(|n| objects.join(format!("{n:02x}")));
        for directory in [objects.clone(), objects.join("pack")].into_iter().chain(fan_out) {
            for left in list_file_names(&directory).filter(|name| is_temporary(name)).map(|name| directory.join(name)) {
                if is_file_older(&left, now, LEFTOVER_AGE) {
                    // A failed removal is tried again next time.
                    fs::remove_file(&left).ok();
                }
            }
        }
    }

    fn objects_path(&self) -> PathBuf {
        self.0.git.commondir().join("objects")
    }
}

fn list_file_names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Recognises the temporary names of git and libgit2.
fn is_temporary(name: &str) -> bool {
    ["tmp_", ".tmp-", "streamed_git2_"].iter().any(|beginning| name.starts_with(beginning))
}

fn is_file_older(path: &Path, now: SystemTime, age: Duration) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        let changed = found.modified().ok();
        found.is_file() && changed.is_some_and(|changed| now.duration_since(changed).is_ok_and(|is| is >= age))
    })
}
