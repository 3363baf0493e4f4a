//! Restoring files changed by a wake's commands. The operation is idempotent, including its result.
//!
//! A program may have left links in these folders, so each path is reached name by name from its root's handle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use reveille_base::{disk, file::create_private_at};

use super::{
    AFTER, After, BACK, BEFORE, Before, Copies, FILES, Root, read_json,
    take::open_file,
    walk::{State, TreeEntry, TreeKind},
    write_durably,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Prefix of temporary files during a restoration.
const TEMPORARY: &str = ".reveille-back-";

/// The result of restoring a wake's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenBack {
    /// Paths restored to their former state, including paths that no longer exist.
    pub restored: Vec<PathBuf>,
    /// Paths left unchanged, because somebody else has changed them since, or may have.
    pub contested: Vec<PathBuf>,
    /// The copies that hold the former state of contested paths.
    pub kept_at: Vec<PathBuf>,
}

impl Copies {
    /// Restores the changes of a wake's commands, latest command first.
    ///
    /// # Errors
    /// A failure of the machine, with its path. Paths restored so far stay restored, and a second call continues.
    pub fn give_back(&self, wake: &str) -> Result<GivenBack, (PathBuf, io::Error)> {
        let mut given = GivenBack::default();
        // Paths already restored to their state before a later command of the same wake.
        let mut later: BTreeMap<PathBuf, TreeEntry> = BTreeMap::new();
        for dir in self.list_for_wake(wake) {
            let before: Before = read_json(&dir.join(BEFORE)).map_err(|error| (dir.clone(), error))?;
            let after: Option<Vec<After>> = read_json(&dir.join(AFTER)).ok();
            let of_copy = match read_json::<GivenBack>(&dir.join(BACK)) {
                Ok(done) => done,
                Err(_) => {
                    let mut of_copy = GivenBack::default();
                    for (n, root) in before.roots.iter().enumerate() {
                        let after = after.as_ref().and_then(|after| after.get(n));
                        let back = RootRestoration { n, root, after, files: &dir.join(FILES), later: &later };
                        back.restore_all(&mut of_copy)?;
                    }
                    // The recorded result tells an earlier command's changes from ours on a second call.
                    write_durably(&dir.join(BACK), &of_copy).map_err(|error| (dir.clone(), error))?;
                    of_copy
                }
            };
            for root in before.roots {
                let at = root.entries.into_iter().map(|entry| (root.path.join(&entry.path), entry));
                later.extend(at.filter(|(at, _)| of_copy.restored.contains(at)));
            }
            if !of_copy.contested.is_empty() {
                given.kept_at.push(dir);
            }
            given.restored.extend(of_copy.restored);
            given.contested.extend(of_copy.contested);
        }
        given.restored.retain(|path| !given.contested.contains(path));
        for list in [&mut given.restored, &mut given.contested] {
            list.sort();
            list.dedup();
        }
        Ok(given)
    }
}

impl GivenBack {
    /// Records the outcome of a path. A path that can't be restored counts as contested, unless the machine is at fault.
    fn record_outcome(&mut self, at: PathBuf, outcome: io::Result<PathOutcome>) -> Result<(), (PathBuf, io::Error)> {
        match outcome {
            Ok(PathOutcome::Restored) => self.restored.push(at),
            Ok(PathOutcome::Untouched) => {}
            Ok(PathOutcome::Contested) => self.contested.push(at),
            Err(error) if disk::is_machine_fault(&error) => return Err((at, error)),
            Err(error) => {
                tracing::warn!(%error, "{} could not be restored", at.display());
                self.contested.push(at);
            }
        }
        Ok(())
    }
}

/// The outcome for a path.
enum PathOutcome {
    /// In its former state.
    Restored,
    /// Unchanged by the command.
    Untouched,
    /// Left as it is, because somebody else has changed it since, or may have.
    Contested,
}

/// One folder during its restoration.
struct RootRestoration<'a> {
    n: usize,
    root: &'a Root,
    /// The command's changes; `None` if the command was cut off.
    after: Option<&'a After>,
    files: &'a Path,
    /// Paths already restored to their state before a later command.
    later: &'a BTreeMap<PathBuf, TreeEntry>,
}

/// A path's current state, compared with the copy and the command's result.
#[derive(PartialEq, Eq)]
enum PathState {
    /// The former state.
    Before,
    /// The state after the command.
    AfterCommand,
    /// Any other state.
    Other,
}

impl RootRestoration<'_> {
    fn restore_all(&self, given: &mut GivenBack) -> Result<(), (PathBuf, io::Error)> {
        let root = match rustix::fs::openat(CWD, &self.root.path, FOLDER, Mode::empty()) {
            Ok(root) => root,
            Err(error) => return given.record_outcome(self.root.path.clone(), Err(error.into())),
        };
        let left: BTreeMap<&str, &TreeEntry> =
            self.after.iter().flat_map(|after| &after.changed).map(|entry| (entry.path.as_str(), entry)).collect();
        let gone: BTreeSet<&str> = self.after.iter().flat_map(|after| &after.gone).map(String::as_str).collect();
        let known: BTreeSet<&str> = self.root.entries.iter().map(|entry| entry.path.as_str()).collect();
        // First remove the command's new entries, deepest first.
        for (path, entry) in left.iter().rev().filter(|(path, _)| !known.contains(*path)) {
            let at = self.root.path.join(path);
            let outcome = remove_new_entry(&root, entry, self.later.get(&at));
            given.record_outcome(at, outcome)?;
        }
        // Folders come before their content.
        let mut entries: Vec<(usize, &TreeEntry)> = self.root.entries.iter().enumerate().collect();
        entries.sort_by_key(|(_, entry)| entry.path.as_str());
        for (k, entry) in entries {
            let left = left.get(entry.path.as_str()).copied();
            // fault: nothing-given-back-command
            if self.after.is_some() && left.is_none() && !gone.contains(entry.path.as_str()) {
                continue;
            }
            let outcome = self.restore_entry(&root, entry, left, &self.files.join(format!("{}-{k}", self.n)));
            given.record_outcome(self.root.path.join(&entry.path), outcome)?;
        }
        Ok(())
    }

    fn restore_entry(
        &self,
        root: &OwnedFd,
        entry: &TreeEntry,
        left: Option<&TreeEntry>,
        kept: &Path,
    ) -> io::Result<PathOutcome> {
        let Some((folder, name)) = open_parent(root, &entry.path)? else { return Ok(PathOutcome::Contested) };
        let found = read_entry(&folder, name, &entry.path)?;
        // We may have restored this path already, to its state before a later command. That is the state after this one.
        let later_state = self.later.get(&self.root.path.join(&entry.path));
        let left = if left.zip(later_state).is_some_and(|(left, later_state)| left.is_same(later_state)) {
            found.as_ref()
        } else {
            left
        };
        match compare_entry(entry, left, found.as_ref(), &folder, name, kept)? {
            // A cut-off command may never have touched this path.
            PathState::Before if self.after.is_none() => Ok(PathOutcome::Untouched),
            PathState::Before => Ok(PathOutcome::Restored),
            PathState::AfterCommand => {
                restore_from_copy(&folder, name, entry, found.as_ref(), kept).map(|()| PathOutcome::Restored)
            }
            PathState::Other => Ok(PathOutcome::Contested),
        }
    }
}

fn compare_entry(
    entry: &TreeEntry,
    left: Option<&TreeEntry>,
    found: Option<&TreeEntry>,
    folder: &OwnedFd,
    name: &str,
    kept: &Path,
) -> io::Result<PathState> {
    let Some(found) = found else {
        // Missing: the command removed it, or may have. A path only changed by the command was removed by somebody else.
        return Ok(if left.is_none() { PathState::AfterCommand } else { PathState::Other });
    };
    let is_before = match (&entry.kind, &found.kind) {
        (TreeKind::File, TreeKind::File) => {
            entry.is_same(found) || found.state.mode == entry.state.mode && has_same_bytes(folder, name, kept)?
        }
        (kind, other) => kind == other && (*kind != TreeKind::Dir || entry.state.mode == found.state.mode),
    };
    Ok(match left {
        _ if is_before => PathState::Before,
        // fault: undo-gives-back-changed
        Some(left) if left.is_same(found) => PathState::AfterCommand,
        _ => PathState::Other,
    })
}

/// Opens a path's parent folder and returns its handle with the last name; `None` if the folder is missing.
fn open_parent<'p>(root: &OwnedFd, path: &'p str) -> Result<Option<(OwnedFd, &'p str)>, Errno> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at = root.try_clone().map_err(|_| Errno::MFILE)?;
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        at = match rustix::fs::openat(&at, folder, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error),
        };
    }
    Ok(Some((at, name)))
}

/// Reads the current entry by the folder's handle, without following a link.
fn read_entry(folder: &OwnedFd, name: &str, path: &str) -> Result<Option<TreeEntry>, Errno> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => TreeKind::Dir,
        rustix::fs::FileType::RegularFile => TreeKind::File,
        rustix::fs::FileType::Symlink => {
            TreeKind::Link(rustix::fs::readlinkat(folder, name, Vec::new())?.to_string_lossy().into_owned())
        }
        _ => TreeKind::Other,
    };
    Ok(Some(TreeEntry { path: path.to_owned(), kind, state: State::from_stat(&stat) }))
}

fn has_same_bytes(folder: &OwnedFd, name: &str, kept: &Path) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let (mut there, mut kept) = (File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?), open_file(kept)?);
    if there.metadata()?.len() != kept.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = ([0; 64 * 1024], [0; 64 * 1024]);
    loop {
        let (n, m) = (fill_buffer(&mut there, &mut one)?, fill_buffer(&mut kept, &mut other)?);
        if n != m || one.get(..n) != other.get(..m) {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill_buffer(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    use io::Read as _;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Removes an entry made by the command, unless the entry has changed or a folder isn't empty.
fn remove_new_entry(root: &OwnedFd, made: &TreeEntry, later_state: Option<&TreeEntry>) -> io::Result<PathOutcome> {
    let Some((folder, name)) = open_parent(root, &made.path)? else { return Ok(PathOutcome::Restored) };
    let Some(there) = read_entry(&folder, name, &made.path)? else { return Ok(PathOutcome::Restored) };
    if !made.is_same(&there) && !later_state.is_some_and(|later_state| made.is_same(later_state)) {
        return Ok(PathOutcome::Contested);
    }
    unlink_entry(folder.as_fd(), name, &there.kind)?;
    Ok(PathOutcome::Restored)
}

fn unlink_entry(folder: BorrowedFd<'_>, name: &str, kind: &TreeKind) -> Result<(), Errno> {
    let flags = if *kind == TreeKind::Dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    rustix::fs::unlinkat(folder, name, flags)
}

/// Restores a path; `there` is the current entry.
fn restore_from_copy(
    folder: &OwnedFd,
    name: &str,
    entry: &TreeEntry,
    there: Option<&TreeEntry>,
    kept: &Path,
) -> io::Result<()> {
    let mode = Mode::from_raw_mode(entry.state.mode);
    let same_kind = there.is_some_and(|there| there.kind == entry.kind);
    if let Some(there) = there.filter(|there| !same_kind || there.kind != TreeKind::Dir && entry.kind != TreeKind::File)
    {
        unlink_entry(folder.as_fd(), name, &there.kind)?;
    }
    match &entry.kind {
        TreeKind::Dir => {
            if !same_kind {
                rustix::fs::mkdirat(folder, name, mode)?;
            }
            let dir = rustix::fs::openat(folder, name, FOLDER, Mode::empty())?;
            rustix::fs::fchmod(&dir, mode)?;
        }
        TreeKind::File => {
            let temporary = format!("{TEMPORARY}{}", entry.path.len());
            // Leftover of a kill.
            let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
            let mut new = create_private_at(folder, &temporary)?;
            io::copy(&mut open_file(kept)?, &mut new)?;
            rustix::fs::fchmod(&new, mode)?;
            let modified = Timespec { tv_sec: entry.state.modified.0, tv_nsec: entry.state.modified.1 };
            rustix::fs::futimens(&new, &Timestamps { last_access: modified, last_modification: modified })?;
            new.sync_all()?;
            rustix::fs::renameat(folder, &temporary, folder, name)?;
        }
        TreeKind::Link(to) => rustix::fs::symlinkat(to.as_str(), folder, name)?,
        TreeKind::Other => {}
    }
    Ok(())
}
