//! The person's files. Opened beneath a directory handle, one name at a time, never through a link, so that no path leads
//! out of the work tree; replaced so that bytes which weren't expected are handed back instead of lost.

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

/// Files larger than this aren't read.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// How deep directories are looked into.
const MAX_DEPTH: usize = 16;
/// How many files a listing names.
const MAX_LISTED: usize = 10_000;
/// Where a file's new bytes wait in the git directory, and its old ones for the moment until they are checked.
pub(super) const TEMPORARY: &str = "write.tmp";

/// What no file there is called.
const NOTHING: &str = "nothing";

/// A file or link on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Replaced {
    /// The new bytes are there, and on the disk.
    Done,
    /// Something else than expected was there; it still is.
    Differs,
}

pub(super) struct WorkTree {
    root: OwnedFd,
    root_path: PathBuf,
    private: OwnedFd,
    private_path: PathBuf,
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

    /// What is at a path; none if nothing is.
    pub(super) fn read(&self, path: &str) -> Result<Option<OnDisk>, RepoError> {
        let (parents, name) = split(path)?;
        match self.directory(path, &parents, false)? {
            Some(directory) => self.read_in(&directory, name, path),
            None => Ok(None),
        }
    }

    /// The text of a file at a path. What isn't UTF-8 in it is replaced.
    pub(super) fn read_text(&self, path: &str) -> Result<Option<String>, RepoError> {
        Ok(self.read(path)?.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()))
    }

    /// Size and times of the file at a path, for the index.
    pub(super) fn stat(&self, path: &str) -> Option<fs::Stat> {
        let (parents, name) = split(path).ok()?;
        let directory = self.directory(path, &parents, false).ok()??;
        fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Whether two paths that differ in the eyes of git are one file here, or would be: nothing is at either, on a disk that doesn't
    /// tell such names apart.
    pub(super) fn is_one_file(&self, one: &str, other: &str) -> bool {
        match (self.stat(one), self.stat(other)) {
            (Some(one), Some(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
            (None, None) => self.folds_names(),
            _ => false,
        }
    }

    /// Whether the disk takes names for the same that differ in the size of their letters.
    fn folds_names(&self) -> bool {
        let stat = |name: &str| fs::statat(&self.root, name, AtFlags::empty());
        matches!((stat(".git"), stat(".GIT")), (Ok(one), Ok(other)) if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    }

    /// Puts `new` where `expected` is. On the disk when this returns; anything unexpected stays where it was.
    pub(super) fn replace(
        &self,
        path: &str,
        expected: Option<&OnDisk>,
        new: Option<&OnDisk>,
    ) -> Result<Replaced, RepoError> {
        let (parents, name) = split(path)?;
        let Some(directory) = self.directory(path, &parents, new.is_some())? else {
            return Ok(if expected.is_none() { Replaced::Done } else { Replaced::Differs });
        };
        if self.read_in(&directory, name, path)?.as_ref() != expected {
            return Ok(Replaced::Differs);
        }
        let replaced = match (expected, new) {
            (_, Some(new)) => self.put(&directory, name, path, expected, new)?,
            (Some(expected), None) => self.take_away(&directory, name, path, expected)?,
            (None, None) => Replaced::Done,
        };
        fs::fsync(&directory).map_err(|error| self.io("syncing the directory of", path, error))?;
        if new.is_none() {
            self.remove_empty_directories(&parents);
        }
        Ok(replaced)
    }

    /// Whether the file at a path can be replaced or made, as far as that can be known without doing it.
    pub(super) fn check_replaceable(&self, path: &str) -> Result<(), RepoError> {
        let (parents, name) = split(path)?;
        let writing = |error: Errno| self.io("writing", path, error);
        let directory = self.nearest_directory(path, &parents)?;
        fs::accessat(&directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(writing)?;
        // Nothing is called so, and nothing is moved. What stands between the two (another file system, one that can only be
        // read) the system finds before that.
        let moved = fs::renameat_with(&self.private, NOTHING, &directory, name, RenameFlags::NOREPLACE);
        if let Err(error @ (Errno::XDEV | Errno::ROFS | Errno::ACCESS | Errno::PERM)) = moved {
            return Err(writing(error));
        }
        // In a folder such as /tmp, only who owns a file can move it.
        let (folder, me) = (fs::fstat(&directory).map_err(writing)?, rustix::process::geteuid());
        let is_anothers = |stat: &fs::Stat| !me.is_root() && stat.st_uid != me.as_raw();
        let is_sticky = Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX) && is_anothers(&folder);
        match fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(file) if is_sticky && is_anothers(&file) => Err(writing(Errno::PERM)),
            _ => Ok(()),
        }
    }

    /// The directory that a file is in, or the last one on its way that is there.
    fn nearest_directory(&self, path: &str, parents: &[&str]) -> Result<OwnedFd, RepoError> {
        for depth in (0..=parents.len()).rev() {
            let some = parents.get(..depth).unwrap_or_default();
            if let Some(directory) = self.directory(path, some, false)? {
                return Ok(directory);
            }
        }
        Err(self.io("opening the directory of", path, Errno::NOENT))
    }

    /// Markdown files at and under the given paths, sorted.
    pub(super) fn list_markdown(&self, under: &[&str]) -> Result<Vec<String>, RepoError> {
        let mut found = Vec::new();
        for path in under {
            let (parents, name) = split(path)?;
            let Some(directory) = self.directory(path, &parents, false)? else {
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

    /// Shows every file and folder but git's own, each with its path and whether it is a folder; of a folder, the answer says whether
    /// to go into it. What isn't UTF-8 or can't be opened is passed over.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&str, bool) -> bool) -> Result<(), RepoError> {
        let root =
            fs::openat(&self.root, ".", DIRECTORY, Mode::empty()).map_err(|error| self.io("opening", "", error))?;
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
        let directory =
            fs::openat(parent, name, DIRECTORY, Mode::empty()).map_err(|error| self.io("opening", path, error))?;
        let entries = fs::Dir::read_from(&directory).map_err(|error| self.io("listing", path, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| self.io("listing", path, error))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let path = format!("{path}/{name}");
            if name.starts_with('.') || found.len() >= MAX_LISTED || names::refused(&path).is_some() {
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
            Err(error) => Err(self.io("looking at", path, error)),
        }
    }

    /// The directory that the parents lead to; none if it is missing and isn't to be made.
    fn directory(&self, path: &str, parents: &[&str], make: bool) -> Result<Option<OwnedFd>, RepoError> {
        let open = |at: &OwnedFd, name: &str| fs::openat(at, name, DIRECTORY, Mode::empty());
        let mut directory = open(&self.root, ".").map_err(|error| self.io("opening", path, error))?;
        for name in parents {
            directory = match open(&directory, name) {
                Ok(next) => next,
                Err(Errno::NOENT) if make => {
                    fs::mkdirat(&directory, *name, Mode::from_raw_mode(0o755))
                        .map_err(|error| self.io("making a directory for", path, error))?;
                    fs::fsync(&directory).map_err(|error| self.io("syncing the directory of", path, error))?;
                    open(&directory, name).map_err(|error| self.io("opening the directory of", path, error))?
                }
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) if make || self.is_link(&directory, name) => {
                    return Err(RepoError::UnsafePath { path: path.to_owned(), why: "a link or a file is on its way" });
                }
                // A file stands where a directory would: whatever is looked for isn't there.
                Err(Errno::NOTDIR) => return Ok(None),
                Err(error) => return Err(self.io("opening the directory of", path, error)),
            };
        }
        Ok(Some(directory))
    }

    fn is_link(&self, directory: &OwnedFd, name: &str) -> bool {
        self.kind(directory, name, name).is_ok_and(|kind| kind == Some(FileType::Symlink))
    }

    fn read_in(&self, directory: &OwnedFd, name: &str, path: &str) -> Result<Option<OnDisk>, RepoError> {
        let unsafe_path = |why| RepoError::UnsafePath { path: path.to_owned(), why };
        match self.kind(directory, name, path)? {
            None => return Ok(None),
            Some(FileType::RegularFile) => {}
            Some(FileType::Symlink) => {
                let target =
                    fs::readlinkat(directory, name, Vec::new()).map_err(|error| self.io("reading", path, error))?;
                return Ok(Some(OnDisk { bytes: target.into_bytes(), mode: LINK }));
            }
            Some(_) => return Err(unsafe_path("it is neither a file nor a link")),
        }
        // Without waiting: a pipe put there in the meantime would hold us for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match fs::openat(directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.io("opening", path, error)),
        };
        let stat = fs::fstat(&file).map_err(|error| self.io("looking at", path, error))?;
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
            return Err(unsafe_path("it is larger than 256 MiB"));
        }
        // With the byte that shows its end: one read, and nothing is copied.
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size.saturating_add(1));
        File::from(file)
            .take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| self.io("reading", path, error))?;
        Ok(Some(OnDisk { bytes, mode: if stat.st_mode & 0o100 == 0 { FILE } else { EXECUTABLE } }))
    }

    fn put(
        &self,
        directory: &OwnedFd,
        name: &str,
        path: &str,
        expected: Option<&OnDisk>,
        new: &OnDisk,
    ) -> Result<Replaced, RepoError> {
        self.write_temporary(new, self.permissions(directory, name, expected, new))
            .map_err(RepoError::io("writing", &self.private_path))?;
        let flags = if expected.is_some() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match fs::renameat_with(&self.private, TEMPORARY, directory, name, flags) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::EXIST) => {
                self.drop_temporary();
                return Ok(Replaced::Differs);
            }
            // A file system that can't exchange: the check above was a moment ago.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::renameat(&self.private, TEMPORARY, directory, name)
                    .map_err(|error| self.io("writing", path, error))?;
                return Ok(Replaced::Done);
            }
            Err(error) => return Err(self.io("writing", path, error)),
        }
        let Some(expected) = expected else {
            return Ok(Replaced::Done);
        };
        // What stood there at the very moment of the exchange is in our hands now.
        let was = self.read_in(&self.private, TEMPORARY, path)?;
        if was.as_ref() == Some(expected) {
            self.drop_temporary();
            return Ok(Replaced::Done);
        }
        fs::renameat_with(&self.private, TEMPORARY, directory, name, RenameFlags::EXCHANGE)
            .map_err(|error| self.io("putting back", path, error))?;
        self.drop_temporary();
        Ok(Replaced::Differs)
    }

    fn take_away(&self, directory: &OwnedFd, name: &str, path: &str, expected: &OnDisk) -> Result<Replaced, RepoError> {
        fs::renameat(directory, name, &self.private, TEMPORARY).map_err(|error| self.io("removing", path, error))?;
        if self.read_in(&self.private, TEMPORARY, path)?.as_ref() == Some(expected) {
            self.drop_temporary();
            return Ok(Replaced::Done);
        }
        fs::renameat_with(&self.private, TEMPORARY, directory, name, RenameFlags::NOREPLACE)
            .map_err(|error| self.io("putting back", path, error))?;
        Ok(Replaced::Differs)
    }

    /// A file keeps the permissions that the person gave it, as far as git doesn't know better.
    fn permissions(&self, directory: &OwnedFd, name: &str, expected: Option<&OnDisk>, new: &OnDisk) -> Mode {
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
        // Nothing to drop is the usual case; a file that can't be dropped stops the next write, which says so.
        fs::unlinkat(&self.private, TEMPORARY, AtFlags::empty()).ok();
    }

    /// Git keeps no empty directories, so neither do we.
    fn remove_empty_directories(&self, parents: &[&str]) {
        for depth in (1..=parents.len()).rev() {
            let Some((name, above)) = parents.get(..depth).and_then(|some| some.split_last()) else {
                return;
            };
            let Ok(Some(directory)) = self.directory(name, above, false) else {
                return;
            };
            if fs::unlinkat(&directory, *name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }

    fn io(&self, what: &'static str, path: &str, error: impl Into<std::io::Error>) -> RepoError {
        RepoError::io(what, &self.root_path.join(path))(error.into())
    }
}

/// The visitor bounds the depth.
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

/// A path's directories and its name. Remotes are other people's: nothing of theirs may lead out, or into git's own files.
fn split(path: &str) -> Result<(Vec<&str>, &str), RepoError> {
    if let Some(Refused { why, .. }) = names::refused(path) {
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
    fn only_what_was_expected_is_replaced() {
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

    /// The checks in the moment of the exchange itself, which no edit can be timed to hit.
    #[test]
    fn what_came_between_check_and_exchange_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let (root, private) = (dir.path().join("root"), dir.path().join("private"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&private).unwrap();
        let tree = WorkTree::open(&root, &private).unwrap();
        fs::write(root.join("a.md"), "saved just now").unwrap();
        let directory = tree.directory("a.md", &[], false).unwrap().unwrap();
        let (old, new) = (file("old"), file("new"));
        assert_eq!(tree.put(&directory, "a.md", "a.md", Some(&old), &new).unwrap(), Replaced::Differs);
        assert_eq!(tree.take_away(&directory, "a.md", "a.md", &old).unwrap(), Replaced::Differs);
        assert_eq!(tree.put(&directory, "a.md", "a.md", None, &new).unwrap(), Replaced::Differs);
        assert_eq!(fs::read_to_string(root.join("a.md")).unwrap(), "saved just now");
        assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    }
}
