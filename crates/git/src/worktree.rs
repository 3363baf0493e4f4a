//! The person's files. They are opened beneath a directory handle, one name at a time, and never through a link, so that paths can't leave
//! the work tree. On replacement, unexpected bytes are put back instead of lost.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self, Access, AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

use reveille_base::file::create_private_at;

use super::{
    RepoError,
    names::{self, Refused},
    tree::{EXECUTABLE, FILE, LINK},
};

/// The size above which files aren't read.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// The depth to which directories are listed.
const MAX_DEPTH: usize = 16;
/// The maximum number of files in a listing.
const MAX_LISTED: usize = 10_000;
/// The temporary file in the git directory: it holds a file's new bytes, and for a moment its old ones until they are checked.
pub(super) const TEMPORARY: &str = "write.tmp";

/// A name that no file in the private directory has.
const NOTHING: &str = "nothing";

/// A file or link on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// The outcome of a write.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Replaced {
    /// The new bytes are in place, durably.
    Done,
    /// The file wasn't as expected, and stays.
    Differs,
}

pub(super) struct WorkTree {
    root: OwnedFd,
    root_path: PathBuf,
    private: OwnedFd,
    private_path: PathBuf,
}

/// What to do about a missing folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingFolder {
    Report,
    Make,
}

impl WorkTree {
    pub(super) fn open(root: &Path, private: &Path) -> Result<Self, RepoError> {
        let open = |path: &Path| fs::open(path, DIRECTORY, Mode::empty()).map_err(RepoError::io("opening", path));
        Ok(Self {
            root: open(root)?,
            root_path: root.to_owned(),
            private: open(private)?,
            private_path: private.to_owned(),
        })
    }

    /// Reads the file or link at a path; `None` if there is nothing.
    pub(super) fn read(&self, path: &str) -> Result<Option<OnDisk>, RepoError> {
        let (parents, name) = split_path(path)?;
        match self.open_directory(path, &parents, MissingFolder::Report)? {
            Some(directory) => self.read_entry(&directory, name, path),
            None => Ok(None),
        }
    }

    /// Reads the text of a file; invalid UTF-8 is replaced.
    pub(super) fn read_text(&self, path: &str) -> Result<Option<String>, RepoError> {
        Ok(self.read(path)?.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()))
    }

    /// Returns size and times of the file at a path, for the index.
    pub(super) fn stat(&self, path: &str) -> Option<fs::Stat> {
        let (parents, name) = split_path(path).ok()?;
        let directory = self.open_directory(path, &parents, MissingFolder::Report).ok()??;
        fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns `true` if two paths that differ only in case are one file on this disk. If both are missing, they would be one if the disk
    /// ignores case.
    pub(super) fn is_one_file(&self, one: &str, other: &str) -> bool {
        match (self.stat(one), self.stat(other)) {
            (Some(one), Some(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
            (None, None) => self.ignores_case(),
            _ => false,
        }
    }

    /// Returns `true` if the disk ignores the case of names.
    fn ignores_case(&self) -> bool {
        let stat = |name: &str| fs::statat(&self.root, name, AtFlags::empty());
        matches!((stat(".git"), stat(".GIT")), (Ok(one), Ok(other)) if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    }

    /// Replaces `expected` by `new`, durably; unexpected content stays in place.
    pub(super) fn replace(
        &self,
        path: &str,
        expected: Option<&OnDisk>,
        new: Option<&OnDisk>,
    ) -> Result<Replaced, RepoError> {
        let (parents, name) = split_path(path)?;
        let missing = if new.is_some() { MissingFolder::Make } else { MissingFolder::Report };
        let Some(directory) = self.open_directory(path, &parents, missing)? else {
            return Ok(if expected.is_none() { Replaced::Done } else { Replaced::Differs });
        };
        if self.read_entry(&directory, name, path)?.as_ref() != expected {
            return Ok(Replaced::Differs);
        }
        let replaced = match (expected, new) {
            (_, Some(new)) => self.write_entry(&directory, name, path, expected, new)?,
            (Some(expected), None) => self.remove_entry(&directory, name, path, expected)?,
            (None, None) => Replaced::Done,
        };
        fs::fsync(&directory).map_err(|error| self.io_error("syncing the directory of", path, error))?;
        if new.is_none() {
            self.remove_empty_directories(&parents);
        }
        Ok(replaced)
    }

    /// Checks that the file at a path can be replaced or created, as far as can be known without doing so.
    pub(super) fn check_replaceable(&self, path: &str) -> Result<(), RepoError> {
        let (parents, name) = split_path(path)?;
        let write_error = |error: Errno| self.io_error("writing", path, error);
        let directory = self.nearest_directory(path, &parents)?;
        fs::accessat(&directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(write_error)?;
        // The source doesn't exist, so nothing moves; but the system first reports a different or read-only file system.
        let moved = fs::renameat_with(&self.private, NOTHING, &directory, name, RenameFlags::NOREPLACE);
        if let Err(error @ (Errno::XDEV | Errno::ROFS | Errno::ACCESS | Errno::PERM)) = moved {
            return Err(write_error(error));
        }
        // In a folder such as /tmp, only the owner of a file can move it.
        let (folder, me) = (fs::fstat(&directory).map_err(write_error)?, rustix::process::geteuid());
        let belongs_to_another = |stat: &fs::Stat| !me.is_root() && stat.st_uid != me.as_raw();
        let is_sticky = Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX) && belongs_to_another(&folder);
        match fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(file) if is_sticky && belongs_to_another(&file) => Err(write_error(Errno::PERM)),
            _ => Ok(()),
        }
    }

    /// Opens the directory of a file, or the deepest existing one above it.
    fn nearest_directory(&self, path: &str, parents: &[&str]) -> Result<OwnedFd, RepoError> {
        for depth in (0..=parents.len()).rev() {
            let ancestors = parents.get(..depth).unwrap_or_default();
            if let Some(directory) = self.open_directory(path, ancestors, MissingFolder::Report)? {
                return Ok(directory);
            }
        }
        Err(self.io_error("opening the directory of", path, Errno::NOENT))
    }

    /// Lists Markdown files at and under the given paths, sorted.
    pub(super) fn list_markdown(&self, under: &[&str]) -> Result<Vec<String>, RepoError> {
        let mut found = Vec::new();
        for path in under {
            let (parents, name) = split_path(path)?;
            let Some(directory) = self.open_directory(path, &parents, MissingFolder::Report)? else {
                continue;
            };
            match self.kind(&directory, name, path)? {
                Some(FileType::RegularFile) if is_markdown(path) => found.push((*path).to_owned()),
                Some(FileType::Directory) => self.list_into(&directory, name, path, MAX_DEPTH, &mut found)?,
                _ => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Visits every file and folder except git's own, with its path and `true` for a folder; the visitor returns `true` to enter it. Names
    /// that aren't UTF-8 and folders that can't be opened are skipped.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&str, bool) -> bool) -> Result<(), RepoError> {
        let root = fs::openat(&self.root, ".", DIRECTORY, Mode::empty())
            .map_err(|error| self.io_error("opening", "", error))?;
        walk_into(&root, "", visit);
        Ok(())
    }

    fn list_into(
        &self,
        parent: &OwnedFd,
        name: &str,
        path: &str,
        depth: usize,
        found: &mut Vec<String>,
    ) -> Result<(), RepoError> {
        let directory = fs::openat(parent, name, DIRECTORY, Mode::empty())
            .map_err(|error| self.io_error("opening", path, error))?;
        let entries = fs::Dir::read_from(&directory).map_err(|error| self.io_error("listing", path, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| self.io_error("listing", path, error))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let path = format!("{path}/{name}");
            if name.starts_with('.') || found.len() >= MAX_LISTED || names::find_refused_part(&path).is_some() {
                continue;
            }
            match self.kind(&directory, name, &path)? {
                Some(FileType::RegularFile) if is_markdown(name) => found.push(path),
                Some(FileType::Directory) if depth > 0 => self.list_into(&directory, name, &path, depth - 1, found)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn kind(&self, directory: &OwnedFd, name: &str, path: &str) -> Result<Option<FileType>, RepoError> {
        match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.io_error("looking at", path, error)),
        }
    }

    /// Opens the directory of the parents; `None` if it is missing and isn't made.
    fn open_directory(
        &self,
        path: &str,
        parents: &[&str],
        missing: MissingFolder,
    ) -> Result<Option<OwnedFd>, RepoError> {
        let is_made = missing == MissingFolder::Make;
        let open = |at: &OwnedFd, name: &str| fs::openat(at, name, DIRECTORY, Mode::empty());
        let mut directory = open(&self.root, ".").map_err(|error| self.io_error("opening", path, error))?;
        for name in parents {
            directory = match open(&directory, name) {
                Ok(next) => next,
                Err(Errno::NOENT) if is_made => {
                    fs::mkdirat(&directory, *name, Mode::from_raw_mode(0o755))
                        .map_err(|error| self.io_error("making a directory for", path, error))?;
                    fs::fsync(&directory).map_err(|error| self.io_error("syncing the directory of", path, error))?;
                    open(&directory, name).map_err(|error| self.io_error("opening the directory of", path, error))?
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) if is_made || self.is_link(&directory, name) => {
                    return Err(RepoError::UnsafePath {
                        path: path.to_owned(),
                        why: "a link or a file is in its path",
                    });
                }
                // A file is in the directory's place, so the path doesn't exist.
                Err(Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(self.io_error("opening the directory of", path, error)),
            };
        }
        Ok(Some(directory))
    }

    fn is_link(&self, directory: &OwnedFd, name: &str) -> bool {
        self.kind(directory, name, name).is_ok_and(|kind| kind == Some(FileType::Symlink))
    }

    fn read_entry(&self, directory: &OwnedFd, name: &str, path: &str) -> Result<Option<OnDisk>, RepoError> {
        let unsafe_path = |why| RepoError::UnsafePath { path: path.to_owned(), why };
        match self.kind(directory, name, path)? {
            None => return Ok(None),
            Some(FileType::RegularFile) => {}
            Some(FileType::Symlink) => {
                let target = fs::readlinkat(directory, name, Vec::new())
                    .map_err(|error| self.io_error("reading", path, error))?;
                return Ok(Some(OnDisk { bytes: target.into_bytes(), mode: LINK }));
            }
            Some(_) => return Err(unsafe_path("it is neither a file nor a link")),
        }
        // Non-blocking: a pipe put there meanwhile would block for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match fs::openat(directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.io_error("opening", path, error)),
        };
        let stat = fs::fstat(&file).map_err(|error| self.io_error("looking at", path, error))?;
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
            return Err(unsafe_path("it is larger than 256 MiB"));
        }
        // One more byte than the size: the end is found in one read, without copying.
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size.saturating_add(1));
        File::from(file)
            .take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| self.io_error("reading", path, error))?;
        Ok(Some(OnDisk { bytes, mode: if stat.st_mode & 0o100 == 0 { FILE } else { EXECUTABLE } }))
    }

    fn write_entry(
        &self,
        directory: &OwnedFd,
        name: &str,
        path: &str,
        expected: Option<&OnDisk>,
        new: &OnDisk,
    ) -> Result<Replaced, RepoError> {
        self.write_temporary(new, self.choose_permissions(directory, name, expected, new))
            .map_err(RepoError::io("writing", &self.private_path))?;
        let flags = if expected.is_some() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match fs::renameat_with(&self.private, TEMPORARY, directory, name, flags) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::EXIST) => {
                self.drop_temporary();
                return Ok(Replaced::Differs);
            }
            // The file system can't exchange. `replace` compared the content only a moment ago, so overwrite it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::renameat(&self.private, TEMPORARY, directory, name)
                    .map_err(|error| self.io_error("writing", path, error))?;
                return Ok(Replaced::Done);
            }
            Err(error) => return Err(self.io_error("writing", path, error)),
        }
        let Some(expected) = expected else {
            return Ok(Replaced::Done);
        };
        // The temporary file now holds the content present at the very moment of the exchange.
        let was = self.read_entry(&self.private, TEMPORARY, path)?;
        if was.as_ref() == Some(expected) {
            self.drop_temporary();
            return Ok(Replaced::Done);
        }
        fs::renameat_with(&self.private, TEMPORARY, directory, name, RenameFlags::EXCHANGE)
            .map_err(|error| self.io_error("putting back", path, error))?;
        self.drop_temporary();
        Ok(Replaced::Differs)
    }

    fn remove_entry(
        &self,
        directory: &OwnedFd,
        name: &str,
        path: &str,
        expected: &OnDisk,
    ) -> Result<Replaced, RepoError> {
        fs::renameat(directory, name, &self.private, TEMPORARY)
            .map_err(|error| self.io_error("removing", path, error))?;
        if self.read_entry(&self.private, TEMPORARY, path)?.as_ref() == Some(expected) {
            self.drop_temporary();
            return Ok(Replaced::Done);
        }
        fs::renameat_with(&self.private, TEMPORARY, directory, name, RenameFlags::NOREPLACE)
            .map_err(|error| self.io_error("putting back", path, error))?;
        Ok(Replaced::Differs)
    }

    /// Keeps the permissions that the person gave a file, unless git's mode changes.
    fn choose_permissions(&self, directory: &OwnedFd, name: &str, expected: Option<&OnDisk>, new: &OnDisk) -> Mode {
        let kept = expected.filter(|expected| expected.mode == new.mode).and_then(|_| {
            let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(Mode::from_raw_mode(stat.st_mode & 0o777))
        });
        kept.unwrap_or(Mode::from_raw_mode(if new.mode == EXECUTABLE { 0o755 } else { 0o644 }))
    }

    fn write_temporary(&self, new: &OnDisk, permissions: Mode) -> std::io::Result<()> {
        self.drop_temporary();
        if new.mode == LINK {
            fs::symlinkat(OsStr::from_bytes(&new.bytes), &self.private, TEMPORARY)?;
            return Ok(());
        }
        let mut file = create_private_at(&self.private, TEMPORARY)?;
        file.write_all(&new.bytes)?;
        // fault: persons-file-replaced-bytes
        fs::fchmod(&file, permissions)?;
        file.sync_all()
        // fault end: persons-file-replaced-bytes
    }

    fn drop_temporary(&self) {
        // Usually there is nothing to drop. A failure is reported by the next write.
        fs::unlinkat(&self.private, TEMPORARY, AtFlags::empty()).ok();
    }

    /// Removes empty directories, as git does.
    fn remove_empty_directories(&self, parents: &[&str]) {
        for depth in (1..=parents.len()).rev() {
            let Some((name, above)) = parents.get(..depth).and_then(|ancestors| ancestors.split_last()) else {
                return;
            };
            let Ok(Some(directory)) = self.open_directory(name, above, MissingFolder::Report) else {
                return;
            };
            if fs::unlinkat(&directory, *name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }

    fn io_error(&self, what: &'static str, path: &str, error: impl Into<std::io::Error>) -> RepoError {
        RepoError::io(what, &self.root_path.join(path))(error.into())
    }
}

/// Walks recursively; the visitor bounds the depth.
fn walk_into(directory: &OwnedFd, prefix: &str, visit: &mut dyn FnMut(&str, bool) -> bool) {
    let Ok(entries) = fs::Dir::read_from(directory) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if [".", ".."].contains(&name) || prefix.is_empty() && name == ".git" {
            continue;
        }
        let path = format!("{prefix}{name}");
        match fs::openat(directory, name, DIRECTORY, Mode::empty()) {
            Ok(folder) => {
                if visit(&path, true) {
                    walk_into(&folder, &format!("{path}/"), visit);
                }
            }
            Err(_) => {
                visit(&path, false);
            }
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn is_markdown(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("md") || ending.eq_ignore_ascii_case("markdown"))
}

/// Splits a path into its directories and its name. Paths come from remotes too, and must stay outside git's own files.
fn split_path(path: &str) -> Result<(Vec<&str>, &str), RepoError> {
    if let Some(Refused { why, .. }) = names::find_refused_part(path) {
        return Err(RepoError::UnsafePath { path: path.to_owned(), why });
    }
    let mut names: Vec<&str> = path.split('/').collect();
    let name = names.pop().unwrap_or_default();
    Ok((names, name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> OnDisk {
        OnDisk { bytes: text.as_bytes().to_vec(), mode: FILE }
    }

    #[test]
    fn only_expected_content_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (root, private) = (dir.path().join("root"), dir.path().join("private"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&private).unwrap();
        let tree = WorkTree::open(&root, &private).unwrap();
        let (old, new, other) = (file("old"), file("new"), file("other"));
        let replace = |expected, new| tree.replace("deep/er/a.md", expected, new).unwrap();
        let now = || tree.read("deep/er/a.md").unwrap();

        assert_eq!((replace(Some(&old), Some(&new)), now()), (Replaced::Differs, None));
        assert_eq!((replace(None, Some(&old)), now()), (Replaced::Done, Some(old.clone())));
        assert_eq!((replace(None, Some(&new)), now()), (Replaced::Differs, Some(old.clone())));
        assert_eq!((replace(Some(&other), Some(&new)), now()), (Replaced::Differs, Some(old.clone())));
        assert_eq!((replace(Some(&other), None), now()), (Replaced::Differs, Some(old.clone())));
        assert_eq!((replace(Some(&old), Some(&new)), now()), (Replaced::Done, Some(new.clone())));
        assert_eq!((replace(Some(&new), None), now()), (Replaced::Done, None));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "empty directories stay");
        assert_eq!(fs::read_dir(&private).unwrap().count(), 0, "something temporary stays");
    }

    /// Calls the inner functions directly, since no edit can be timed to fall between check and exchange.
    #[test]
    fn a_file_saved_between_check_and_exchange_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let (root, private) = (dir.path().join("root"), dir.path().join("private"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&private).unwrap();
        let tree = WorkTree::open(&root, &private).unwrap();
        fs::write(root.join("a.md"), "saved just now").unwrap();
        let directory = tree.open_directory("a.md", &[], MissingFolder::Report).unwrap().unwrap();
        let (old, new) = (file("old"), file("new"));
        assert_eq!(tree.write_entry(&directory, "a.md", "a.md", Some(&old), &new).unwrap(), Replaced::Differs);
        assert_eq!(tree.remove_entry(&directory, "a.md", "a.md", &old).unwrap(), Replaced::Differs);
        assert_eq!(tree.write_entry(&directory, "a.md", "a.md", None, &new).unwrap(), Replaced::Differs);
        assert_eq!(fs::read_to_string(root.join("a.md")).unwrap(), "saved just now");
        assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    }
}
