//! Folders in the scratch directory: one for each cycle, so that no cycle accidentally runs another's leftovers.
//!
//! The kept shell works in `work`, each command with extra access in an empty numbered folder, and long outputs go to
//! `outputs`. The rest of the scratch isn't writable. A cycle's files are untrusted for all other cycles unless that
//! cycle ended untainted.

use std::{
    ffi::OsStr,
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime},
};

use reveille_base::{
    file::{create_private_dir, create_private_dirs},
    types::is_cycle_id,
};

/// The folder of the kept shell and the editor.
const WORK: &str = "work";
/// The folder for cycle ids that can't be folder names.
const OTHER: &str = "other";
/// Maximum number of command folders of one cycle.
const MAX_RUNS: u32 = 10_000;
/// How long an unchanged folder is kept. Old folders also go, oldest first, above the total size.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum size of all folders, in bytes.
const MAX_BYTES: u64 = 4 << 30;
/// Maximum number of entries counted in one folder; a folder with more counts as too large.
const MAX_COUNTED: usize = 200_000;

/// One cycle's folder, possibly missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleFolder {
    scratch: PathBuf,
    name: String,
}

impl CycleFolder {
    /// Returns the folder of a cycle. An id that isn't a single name gets the folder `other`.
    pub fn new(scratch: &Path, cycle: &str) -> Self {
        let is_name = matches!(Path::new(cycle).components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)]);
        let name = if is_name { cycle } else { OTHER };
        Self { scratch: scratch.to_owned(), name: name.to_owned() }
    }

    /// Returns the path.
    pub fn path(&self) -> PathBuf {
        self.scratch.join(&self.name)
    }

    /// Returns the path of the kept shell's folder.
    pub fn work_path(&self) -> PathBuf {
        self.path().join(WORK)
    }

    /// Creates the kept shell's folder if missing.
    ///
    /// # Errors
    /// The folder can't be created, or another kind of file has its path.
    pub fn make_work(&self) -> io::Result<PathBuf> {
        self.make()?;
        let path = self.work_path();
        make_folder(&path)?;
        Ok(path)
    }

    /// Creates an empty folder for one command.
    ///
    /// # Errors
    /// The folder can't be created.
    pub fn make_empty(&self) -> io::Result<PathBuf> {
        self.make()?;
        for number in 1..=MAX_RUNS {
            let path = self.path().join(number.to_string());
            match create_private_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates the folder if missing. A cycle's first call also cleans up the scratch.
    ///
    /// # Errors
    /// The folder can't be created, or another kind of file has its path.
    pub fn make(&self) -> io::Result<PathBuf> {
        let path = self.path();
        if !path.is_dir() {
            create_private_dirs(&self.scratch)?;
            remove_old_folders(&self.scratch, MAX_AGE, MAX_BYTES);
        }
        make_folder(&path)?;
        Ok(path)
    }
}

/// Returns true if the scratch holds anything besides this folder.
pub(super) fn has_others(folder: &CycleFolder) -> bool {
    let others = std::fs::read_dir(&folder.scratch).into_iter().flatten().flatten();
    others.into_iter().any(|entry| entry.file_name() != folder.name.as_str())
}

/// Returns true if a text names the scratch directory, or a path in it outside the `seen` folders. `home` is the value
/// of `~` and `$HOME`. Indirect spellings aren't recognized, but those files are invisible unless named plainly.
pub fn names_unseen(text: &str, scratch: &Path, seen: &[PathBuf], home: Option<&Path>) -> bool {
    let real = scratch.canonicalize().ok().filter(|real| real != scratch);
    let mut spellings = vec![scratch.display().to_string()];
    spellings.extend(real.map(|real| real.display().to_string()));
    if let Some(rest) = home.and_then(|home| scratch.strip_prefix(home).ok()) {
        spellings.extend(["~/", "$HOME/", "${HOME}/", "\"$HOME\"/"].map(|home| format!("{home}{}", rest.display())));
    }
    let seen: Vec<&str> = seen.iter().filter_map(|path| path.strip_prefix(scratch).ok()?.to_str()).collect();
    spellings.iter().any(|spelling| {
        text.match_indices(spelling.as_str()).any(|(at, _)| {
            let rest = text.get(at + spelling.len()..).unwrap_or_default();
            names_unseen_below(rest, &seen)
        })
    })
}

/// The same check for the text after the scratch directory's path.
fn names_unseen_below(rest: &str, seen: &[&str]) -> bool {
    let Some(below) = rest.strip_prefix('/') else {
        // `scratches` is another folder.
        return !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    };
    let end = below.find(|c: char| c.is_whitespace() || "'\";|&<>()`".contains(c)).unwrap_or(below.len());
    let path = below.get(..end).unwrap_or_default();
    let is_plain = !path.split('/').any(|name| name == "..") && !path.contains(['*', '?', '[', '{', '$', '\\']);
    let is_seen = seen.iter().any(|folder| Path::new(path).starts_with(folder));
    !(is_plain && is_seen)
}

/// Removes cycle folders older than `max_age`, then the oldest while the total exceeds `max_bytes`, but never the
/// newest. Other files belong to a person or an earlier version. A failed removal is retried next time.
fn remove_old_folders(scratch: &Path, max_age: Duration, max_bytes: u64) {
    let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
    let is_cycles = |name: &OsStr| name.to_str().is_some_and(|name| name == OTHER || is_cycle_id(name));
    let folders = entries.filter(|entry| is_cycles(&entry.file_name()));
    let mut found: Vec<Found> = folders.map(|entry| Found::measure(entry.path())).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.written));
    // Ages are relative to the newest write, so that a wrong clock makes no folder old.
    let mut found = found.into_iter();
    let Some(newest) = found.next() else { return };
    let mut bytes = newest.bytes;
    for one in found {
        let age = newest.written.duration_since(one.written).unwrap_or_default();
        let with_it = bytes.saturating_add(one.bytes);
        if age <= max_age && with_it <= max_bytes {
            bytes = with_it;
        } else if let Err(error) = remove(&one.path) {
            tracing::warn!(%error, "{} could not be removed from the scratch", one.path.display());
        }
    }
}

/// A folder of the scratch.
struct Found {
    path: PathBuf,
    bytes: u64,
    /// The time of the last write within the folder.
    written: SystemTime,
}

impl Found {
    fn measure(path: PathBuf) -> Self {
        let (mut bytes, mut written, mut seen) = (0_u64, SystemTime::UNIX_EPOCH, 0);
        let mut open = vec![path.clone()];
        while let Some(next) = open.pop() {
            let Ok(metadata) = next.symlink_metadata() else { continue };
            written = metadata.modified().map_or(written, |at| written.max(at));
            bytes = bytes.saturating_add(metadata.len());
            seen += 1;
            if seen > MAX_COUNTED {
                bytes = u64::MAX;
                break;
            }
            if metadata.is_dir() {
                open.extend(std::fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
        Self { path, bytes, written }
    }
}

/// Removes a folder, whatever its permissions. Links aren't followed.
fn remove(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_dir() {
        return std::fs::remove_file(path);
    }
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(path);
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

fn open_folders(path: &Path) {
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        if next.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            std::fs::set_permissions(&next, Permissions::from_mode(0o700)).ok();
            open.extend(std::fs::read_dir(&next).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
}

/// Creates a folder if missing; a link at the path is refused.
fn make_folder(path: &Path) -> io::Result<()> {
    match create_private_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_command_begins_in_an_empty_folder_and_no_link_stands_for_a_cycles() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        let folder = CycleFolder::new(&scratch, "20261128T100000Z-7");
        let work = folder.make_work().unwrap();
        std::fs::write(work.join("json.py"), "").unwrap();
        let (one, two) = (folder.make_empty().unwrap(), folder.make_empty().unwrap());
        assert!(one != two && std::fs::read_dir(&one).unwrap().count() == 0);
        assert_eq!(folder.make_work().unwrap(), work);
        assert!(!has_others(&folder) && has_others(&CycleFolder::new(&scratch, "another")));
        symlink(dir.path(), scratch.join("linked")).unwrap();
        assert!(CycleFolder::new(&scratch, "linked").make_work().is_err());
        for odd in ["", "..", "a/b", "/etc"] {
            assert_eq!(CycleFolder::new(&scratch, odd).path(), scratch.join("other"), "{odd}");
        }
    }

    #[test]
    fn what_is_named_in_the_scratch_is_known_and_what_a_cycle_sees_anyway_is_not() {
        let (scratch, home) = (Path::new("/home/ann/r/scratch"), Path::new("/home/ann"));
        let seen = [scratch.join("own"), scratch.join("clean")];
        let names = |text: &str| names_unseen(text, scratch, &seen, Some(home));
        for text in [
            "cat /home/ann/r/scratch/other/work/x",
            "ls /home/ann/r/scratch",
            "ls /home/ann/r/scratch; true",
            "sh '/home/ann/r/scratch/other/x.sh'",
            "cat ~/r/scratch/other/x",
            "cat \"$HOME\"/r/scratch/other/x ${HOME}/r/scratch/own/x",
            "cat /home/ann/r/scratch/own/../other/x",
            "cat /home/ann/r/scratch/*/work/x",
            "cat /home/ann/r/scratch/own/x /home/ann/r/scratch/other/x",
            "ls /home/ann/r/scratch/",
        ] {
            assert!(names(text), "{text}");
        }
        for text in [
            "cat /home/ann/r/scratch/own/work/x && ls ~/r/scratch/clean/work",
            "ls /home/ann/r/scratches /home/ann/r/scratch.old",
            "ls ~ && cat notes.txt",
        ] {
            assert!(!names(text), "{text}");
        }
    }

    /// Makes a folder with a file of this size and age in days.
    fn aged(scratch: &Path, name: &str, bytes: usize, days: u64) {
        let folder = scratch.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), vec![0; bytes]).unwrap();
        let at = SystemTime::UNIX_EPOCH + DAY * u32::try_from(20_000 - days).unwrap();
        for place in [folder.join("file"), folder] {
            std::fs::File::open(place).unwrap().set_modified(at).unwrap();
        }
    }

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn left(scratch: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_scratch_is_emptied_by_age_and_by_size() {
        let dir = tempfile::tempdir().unwrap();
        let of_day = |day: u32| format!("202611{day:02}T090000Z-7");
        let (new, week, small, old) = (of_day(28), of_day(21), of_day(20), of_day(1));
        for (name, bytes, days) in [(&new, 600_000, 0), (&week, 600_000, 7), (&small, 10, 8), (&old, 10, 40)] {
            aged(dir.path(), name, bytes, days);
        }
        // A person's own folder, or one of an earlier version.
        aged(dir.path(), "notes", 600_000, 400);
        let left_and_notes = |folders: &[&String]| {
            let mut names: Vec<String> = folders.iter().map(|name| (*name).clone()).collect();
            names.push("notes".to_owned());
            assert_eq!(left(dir.path()), names);
        };
        remove_old_folders(dir.path(), 60 * DAY, 10_000_000);
        left_and_notes(&[&old, &small, &week, &new]);
        remove_old_folders(dir.path(), 60 * DAY, 1_000_000);
        left_and_notes(&[&old, &small, &new]);
        remove_old_folders(dir.path(), 30 * DAY, 1_000_000);
        left_and_notes(&[&small, &new]);
        remove_old_folders(dir.path(), 30 * DAY, 1);
        left_and_notes(&[&new]);
    }

    #[test]
    fn a_folder_that_a_program_has_shut_goes_and_no_link_in_it_is_followed() {
        let (dir, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shut = dir.path().join("one/shut");
        std::fs::create_dir_all(shut.join("deep")).unwrap();
        std::fs::write(kept.path().join("x"), "").unwrap();
        symlink(kept.path(), dir.path().join("one/link")).unwrap();
        std::fs::set_permissions(&shut, Permissions::from_mode(0o0)).unwrap();
        remove(&dir.path().join("one")).unwrap();
        assert!(left(dir.path()).is_empty() && kept.path().join("x").exists());
    }
}
