//! Files beneath granted folders, reached only by directory handles.
//!
//! A path is split into names; each folder is then opened from its parent's handle by one name, without following
//! links. Changes on the disk meanwhile can't lead outside. For single names `openat2` with `RESOLVE_BENEATH` would
//! promise no more, and isn't available everywhere. Only plain files with a single hard link are opened; keys and our
//! own state never are.

mod put;
#[cfg(test)]
mod tests;

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags},
    io::Errno,
};

use reveille_base::file::create_private_dirs;
use reveille_policy as policy;

/// Maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// Maximum number of names in a path.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of entries listed in one folder.
pub const MAX_ENTRIES: usize = 20_000;
/// Prefix of temporary files during a write.
const TEMPORARY: &str = ".reveille-";
/// The machine's virtual file systems, which hold no documents.
const MACHINE: [&str; 3] = ["/proc", "/sys", "/dev"];

// fault: link-folder-followed
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Non-blocking: a pipe put in place meanwhile would block forever.
// fault end: link-folder-followed
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file can't be used, by the caller's next step. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The path is always refused.
    #[error("{0}")]
    Refused(String),
    /// The path doesn't exist.
    #[error("There is no {0}.")]
    Missing(String),
    /// The path already exists.
    #[error("{0} is there already.")]
    Exists(String),
    /// Another program changed the file meanwhile; read the file again.
    #[error("{0} was changed by somebody else meanwhile. Look at it again.")]
    Changed(String),
    /// An error of the system.
    #[error("{path} can't be used: {source}.")]
    Io {
        /// The path.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// The owner of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The cycle's own writable folder, where relative paths begin.
    Scratch,
    /// Other visible folders of the scratch, read-only.
    Left,
    /// The memory's work tree, read-only.
    Brain,
    /// A folder granted in `policy.toml`.
    Granted,
}

/// The intended use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// The folders with usable files.
#[derive(Debug)]
pub struct Roots {
    scratch: PathBuf,
    folders: Vec<Folder>,
    /// The folder of our own state, never entered through a granted folder.
    workspace: PathBuf,
    /// Files that are never opened.
    barred: Vec<Identity>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    whose: Whose,
    may_write: bool,
}

impl Roots {
    /// Starts with only the folder `scratch`, which is created on first use. `workspace` is the folder of our own state.
    pub fn new(scratch: &Path, workspace: &Path) -> Self {
        let own = Folder { path: scratch.to_owned(), whose: Whose::Scratch, may_write: true };
        Self { scratch: scratch.to_owned(), folders: vec![own], workspace: workspace.to_owned(), barred: Vec::new() }
    }

    /// Adds other visible folders of the scratch, read-only.
    #[must_use]
    pub fn with_scratch_folders(mut self, folders: Vec<PathBuf>) -> Self {
        self.folders.extend(folders.into_iter().map(|path| Folder { path, whose: Whose::Left, may_write: false }));
        self
    }

    /// Adds the memory's work tree, read-only.
    #[must_use]
    pub fn with_brain(mut self, dir: &Path) -> Self {
        self.folders.push(Folder { path: dir.to_owned(), whose: Whose::Brain, may_write: false });
        self
    }

    /// Adds the folders granted by a person.
    #[must_use]
    pub fn with_granted_folders(mut self, readable: &[PathBuf], writable: &[PathBuf]) -> Self {
        let granted = |path: &PathBuf, may_write| Folder { path: path.clone(), whose: Whose::Granted, may_write };
        let mut all: Vec<Folder> = readable.iter().map(|path| granted(path, false)).collect();
        all.extend(writable.iter().map(|path| granted(path, true)));
        // Outer folders first: inner folders are then opened by handles, so that a link can't replace them.
        all.retain(|folder| folder.path != self.scratch);
        all.sort_by_key(|folder| folder.path.components().count());
        self.folders.extend(all);
        self
    }

    /// Excludes these files, under any name.
    #[must_use]
    pub fn without_files(mut self, files: &[PathBuf]) -> Self {
        self.barred.extend(files.iter().filter_map(|file| Identity::at_path(file)));
        self
    }

    /// Lists the folders for people: path, owner, and true if writable.
    pub fn list_folders(&self) -> impl Iterator<Item = (&Path, Whose, bool)> {
        self.folders.iter().map(|folder| (folder.path.as_path(), folder.whose, folder.may_write))
    }

    /// Resolves a path to a place and opens its root folder; the path itself may be missing.
    ///
    /// # Errors
    /// [`PathError::Refused`] if the path isn't beneath a folder granted for this access.
    pub fn resolve(&self, given: &str, access: PathUse) -> Result<Place, PathError> {
        check_words(given)?;
        let path = Path::new(given);
        let (folder, inner) = if path.is_absolute() {
            self.find_folder(path, access).ok_or_else(|| self.refuse_ungranted(given, access))?
        } else {
            let scratch = self.folders.first().ok_or_else(|| self.refuse_ungranted(given, access))?;
            (scratch, path)
        };
        let names = split_names(inner, given)?;
        let full = names.iter().fold(folder.path.clone(), |path, name| path.join(name));
        let is_the_machines = MACHINE.iter().any(|place| full.starts_with(place));
        if is_the_machines || policy::is_private(given) {
            return Err(refuse_path(
                given,
                "keys, devices and the assistant's own state are out of every tool's reach",
            ));
        }
        let root = self.open_folder(folder)?;
        Ok(Place {
            root,
            whose: folder.whose,
            barred: self.list_barred(folder),
            names,
            path: full,
            given: given.to_owned(),
        })
    }

    fn find_folder<'a>(&self, path: &'a Path, access: PathUse) -> Option<(&Folder, &'a Path)> {
        let granting = self.folders.iter().filter(|folder| access == PathUse::Read || folder.may_write);
        granting.filter_map(|folder| Some((folder, path.strip_prefix(&folder.path).ok()?))).next()
    }

    fn refuse_ungranted(&self, given: &str, access: PathUse) -> PathError {
        let (verb, list) = if access == PathUse::Write { ("written", "write") } else { ("read", "read") };
        refuse_path(given, &format!("it isn't beneath a folder that may be {verb} (`[files] {list}` in policy.toml)"))
    }

    /// Opens the folder's handle. Its own path may contain links, since the person granted it in this spelling.
    fn open_folder(&self, folder: &Folder) -> Result<OwnedFd, PathError> {
        let failed = |source: io::Error| PathError::Io { path: folder.path.display().to_string(), source };
        if folder.whose == Whose::Scratch {
            create_private_dirs(&self.scratch).map_err(failed)?;
        }
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        rustix::fs::open(&folder.path, flags, Mode::empty()).map_err(|error| failed(error.into()))
    }

    /// Lists the files and folders that must not be entered.
    fn list_barred(&self, folder: &Folder) -> Arc<[Identity]> {
        let is_granted = folder.whose == Whose::Granted;
        let workspace = is_granted.then(|| Identity::at_path(&self.workspace)).flatten();
        self.barred.iter().copied().chain(workspace).collect()
    }
}

/// The identity of a file or folder on this machine, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn from_metadata(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// Returns the identity of a path's target, following links.
    fn at_path(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::from_metadata)
    }
}

/// The state of a file when read; differs after any write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    identity: Identity,
    bytes: u64,
    modified: (i64, i64),
    mode: u32,
}

impl Stamp {
    /// Returns true if anyone may execute the file.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }
}

/// A path beneath a granted folder, whose root is held by a handle.
#[derive(Debug)]
pub struct Place {
    root: OwnedFd,
    whose: Whose,
    barred: Arc<[Identity]>,
    names: Vec<String>,
    path: PathBuf,
    given: String,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeneathKind {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A link, pipe, device or socket.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name, valid UTF-8.
    pub name: String,
    /// The kind.
    pub kind: BeneathKind,
}

/// The way with folders that are missing on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingFolders {
    /// They are created.
    Create,
    /// They are an error.
    Refuse,
}

impl Place {
    /// Returns the owner of the root folder.
    pub fn folder_owner(&self) -> Whose {
        self.whose
    }

    /// Returns the absolute path, for messages and comparisons; never for opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last name, or the folder's path for the root folder.
    pub fn name(&self) -> String {
        self.names.last().cloned().unwrap_or_else(|| self.path.display().to_string())
    }

    /// Returns true for the granted folder itself.
    pub fn is_root(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the entry's kind; `None` if the path doesn't exist.
    pub fn kind(&self) -> Result<Option<BeneathKind>, PathError> {
        let Some((directory, name)) = self.open_parent(MissingFolders::Refuse)? else {
            return Ok(Some(BeneathKind::Folder));
        };
        self.find_kind(&directory, name)
    }

    /// Reads a plain file in full, with a stamp that detects later changes.
    pub fn read(&self, max_bytes: u64) -> Result<(Vec<u8>, Stamp), PathError> {
        let (file, stamp) = self.open()?;
        if stamp.bytes > max_bytes {
            let why = format!("it has {} bytes, and at most {max_bytes} are read", stamp.bytes);
            return Err(refuse_path(&self.given, &why));
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|source| self.map_io_error(source))?;
        if bytes.len() as u64 > max_bytes {
            return Err(refuse_path(&self.given, &format!("it has more than {max_bytes} bytes")));
        }
        Ok((bytes, stamp))
    }

    /// Opens a plain file.
    pub fn open(&self) -> Result<(File, Stamp), PathError> {
        let Some((directory, name)) = self.open_parent(MissingFolders::Refuse)? else {
            return Err(refuse_path(&self.given, "it is a folder"));
        };
        self.open_entry(&directory, name)
    }

    /// Lists a folder's entries by name, without temporary files and names that aren't UTF-8.
    pub fn list(&self) -> Result<Vec<Named>, PathError> {
        let directory = self.walk_folders(&self.names, MissingFolders::Refuse)?;
        self.read_entries(&directory)
    }

    /// Returns the place of an entry of this folder.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        let root = self.root.try_clone().map_err(|source| self.map_io_error(source))?;
        let mut names = self.names.clone();
        names.push(name.to_owned());
        let path = self.path.join(name);
        let (barred, given) = (Arc::clone(&self.barred), path.display().to_string());
        Ok(Self { root, whose: self.whose, barred, names, given, path })
    }

    fn read_entries(&self, directory: &OwnedFd) -> Result<Vec<Named>, PathError> {
        let mut found = Vec::new();
        for entry in Dir::read_from(directory).map_err(|error| self.map_io_error(error.into()))?.take(MAX_ENTRIES) {
            let entry = entry.map_err(|error| self.map_io_error(error.into()))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || name.starts_with(TEMPORARY) {
                continue;
            }
            if let Some(kind) = self.find_kind(directory, name)? {
                found.push(Named { name: name.to_owned(), kind });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Opens the parent folder and returns its handle with the last name; `None` for the granted folder itself.
    fn open_parent(&self, missing: MissingFolders) -> Result<Option<(OwnedFd, &str)>, PathError> {
        let Some((name, above)) = self.names.split_last() else {
            return Ok(None);
        };
        Ok(Some((self.walk_folders(above, missing)?, name)))
    }

    /// Opens each folder by its name from the parent's handle.
    fn walk_folders(&self, names: &[String], missing: MissingFolders) -> Result<OwnedFd, PathError> {
        let mut directory =
            rustix::fs::openat(&self.root, ".", DIRECTORY, Mode::empty()).map_err(|e| self.map_io_error(e.into()))?;
        self.check_folder_not_barred(&directory)?;
        for name in names {
            let open = || rustix::fs::openat(&directory, name.as_str(), DIRECTORY, Mode::empty());
            let next = match open() {
                Err(Errno::NOENT) if missing == MissingFolders::Create => {
                    match rustix::fs::mkdirat(&directory, name.as_str(), Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(self.map_io_error(error.into())),
                    }
                    rustix::fs::fsync(&directory).map_err(|error| self.map_io_error(error.into()))?;
                    open()
                }
                opened => opened,
            };
            directory = next.map_err(|error| match error {
                Errno::NOENT => PathError::Missing(self.given.clone()),
                Errno::NOTDIR | Errno::LOOP => refuse_path(
                    &self.given,
                    &format!("{name:?} on its way is a link or a file, and links aren't followed"),
                ),
                error => self.map_io_error(error.into()),
            })?;
            self.check_folder_not_barred(&directory)?;
        }
        Ok(directory)
    }

    /// Refuses our own state and key files, which may lie within a granted folder under any name.
    fn check_not_barred(&self, found: Identity) -> Result<(), PathError> {
        // fault: our-state-met-granted
        if self.barred.contains(&found) {
            return Err(refuse_path(&self.given, "keys and the assistant's own state are out of every tool's reach"));
        }
        Ok(())
    }

    fn check_folder_not_barred(&self, directory: &OwnedFd) -> Result<(), PathError> {
        let handle = File::from(directory.try_clone().map_err(|source| self.map_io_error(source))?);
        self.check_not_barred(Identity::from_metadata(&handle.metadata().map_err(|source| self.map_io_error(source))?))
    }

    fn find_kind(&self, directory: &OwnedFd, name: &str) -> Result<Option<BeneathKind>, PathError> {
        match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => BeneathKind::File,
                FileType::Directory => BeneathKind::Folder,
                _ => BeneathKind::Other,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.map_io_error(error.into())),
        }
    }

    fn open_entry(&self, directory: &OwnedFd, name: &str) -> Result<(File, Stamp), PathError> {
        // Checked first, because opening a device can have side effects.
        match self.find_kind(directory, name)? {
            None => return Err(PathError::Missing(self.given.clone())),
            Some(BeneathKind::Folder) => return Err(refuse_path(&self.given, "it is a folder")),
            Some(BeneathKind::Other) => {
                return Err(refuse_path(&self.given, "it is a link, a pipe or a device, not a plain file"));
            }
            Some(BeneathKind::File) => {}
        }
        let file = rustix::fs::openat(directory, name, FILE, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => PathError::Missing(self.given.clone()),
            Errno::LOOP | Errno::NXIO => refuse_path(&self.given, "it is a link, a pipe or a device, not a plain file"),
            error => self.map_io_error(error.into()),
        })?;
        let file = File::from(file);
        let found = file.metadata().map_err(|source| self.map_io_error(source))?;
        if !found.is_file() {
            return Err(refuse_path(&self.given, "it isn't a plain file"));
        }
        let identity = Identity::from_metadata(&found);
        self.check_not_barred(identity)?;
        // fault: file-second-name-read
        if found.nlink() > 1 {
            return Err(refuse_path(
                &self.given,
                "it has several names (hard links), so it may be a file from elsewhere",
            ));
        }
        let stamp = Stamp {
            identity,
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            mode: found.mode() & 0o777,
        };
        Ok((file, stamp))
    }

    fn map_io_error(&self, source: io::Error) -> PathError {
        if Errno::from_io_error(&source) == Some(Errno::NAMETOOLONG) {
            return refuse_path(&self.given, "it is longer than the system takes");
        }
        PathError::Io { path: self.given.clone(), source }
    }
}

fn refuse_path(path: &str, why: &str) -> PathError {
    let shown: String = path.chars().take(200).collect();
    PathError::Refused(format!("{shown:?} can't be used: {why}."))
}

/// Refuses paths that people would misread.
fn check_words(given: &str) -> Result<(), PathError> {
    if given.trim().is_empty() {
        return Err(refuse_path(given, "it is empty"));
    }
    if given.len() > MAX_PATH_BYTES {
        return Err(refuse_path(given, &format!("it is longer than {MAX_PATH_BYTES} bytes")));
    }
    if given.chars().any(is_unseen) {
        return Err(refuse_path(given, "it holds characters that don't show"));
    }
    if given.starts_with('~') {
        return Err(refuse_path(given, "`~` isn't expanded: give the path in full, or one within the scratch folder"));
    }
    Ok(())
}

/// Returns true for control characters, and for invisible or reordering ones. Some file systems ignore those, so that
/// `.g\u{200c}it` would be `.git`.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || c == char::REPLACEMENT_CHARACTER
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Splits a path into names; upward steps are refused.
fn split_names(inner: &Path, given: &str) -> Result<Vec<String>, PathError> {
    let mut names = Vec::new();
    for part in inner.components() {
        match part {
            Component::Normal(name) => {
                names.push(name.to_str().ok_or_else(|| refuse_path(given, "it isn't text"))?.to_owned());
            }
            Component::CurDir => {}
            _ => return Err(refuse_path(given, "it leads upwards (`..`)")),
        }
    }
    if names.len() > MAX_DEPTH {
        return Err(refuse_path(given, &format!("it goes through more than {MAX_DEPTH} folders")));
    }
    if names.iter().any(|name| name.starts_with(TEMPORARY)) {
        return Err(refuse_path(given, "names that begin so are kept for files that are being written"));
    }
    Ok(names)
}
