//! Files beneath granted folders, reached by directory handles alone.
//!
//! A path is taken apart by its words; then each folder on it is opened from the one before, by one name, and no link is
//! followed. So nothing that is swapped on the disk meanwhile leads out: `openat2` with `RESOLVE_BENEATH` would promise no more
//! for single names, and isn't everywhere. Only plain files with one name are opened, and keys and our own state never.

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

/// The longest path that is taken, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// Folders that a path goes through at most.
pub const MAX_DEPTH: usize = 64;
/// Entries of one folder that are looked at, at most.
pub const MAX_ENTRIES: usize = 20_000;
/// How the name of a file begins that is being written.
const TEMPORARY: &str = ".reveille-";
/// Where the machine shows itself as files: none of it is anybody's document.
const MACHINE: [&str; 3] = ["/proc", "/sys", "/dev"];

// fault: link-folder-followed
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without waiting: a pipe put there in the meantime would hold us for ever.
// fault end: link-folder-followed
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file can't be used, by what follows; nothing was changed in any case.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// This path is never taken.
    #[error("{0}")]
    Refused(String),
    /// There is nothing of that name.
    #[error("There is no {0}.")]
    Missing(String),
    /// It is there already.
    #[error("{0} is there already.")]
    Exists(String),
    /// Somebody else changed it meanwhile: read it again.
    #[error("{0} was changed by somebody else meanwhile. Look at it again.")]
    Changed(String),
    /// The system.
    #[error("{path} can't be used: {source}.")]
    Io {
        /// Which.
        path: String,
        /// What it says.
        source: io::Error,
    },
}

/// Whose a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The cycle's own, for anything: where relative paths begin.
    Scratch,
    /// What else of the scratch the cycle sees, to be read.
    Left,
    /// The memory's work tree, to be read.
    Brain,
    /// The person's, granted in `policy.toml`.
    Granted,
}

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// Looking at it.
    Read,
    /// Changing it.
    Write,
}

/// The folders that files may be used in.
#[derive(Debug)]
pub struct Roots {
    scratch: PathBuf,
    folders: Vec<Folder>,
    /// Our own state's folder: no granted folder leads into it.
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
    /// Only the scratch folder `scratch`, which is made when it is needed. `workspace` is the folder of our own state.
    pub fn new(scratch: &Path, workspace: &Path) -> Self {
        let own = Folder { path: scratch.to_owned(), whose: Whose::Scratch, may_write: true };
        Self { scratch: scratch.to_owned(), folders: vec![own], workspace: workspace.to_owned(), barred: Vec::new() }
    }

    /// The same, and what else of the scratch is seen, for reading.
    #[must_use]
    pub fn with_left(mut self, folders: Vec<PathBuf>) -> Self {
        self.folders.extend(folders.into_iter().map(|path| Folder { path, whose: Whose::Left, may_write: false }));
        self
    }

    /// The same, and the memory's work tree for reading.
    #[must_use]
    pub fn with_brain(mut self, dir: &Path) -> Self {
        self.folders.push(Folder { path: dir.to_owned(), whose: Whose::Brain, may_write: false });
        self
    }

    /// The same, and folders that a person has granted.
    #[must_use]
    pub fn with_granted(mut self, readable: &[PathBuf], writable: &[PathBuf]) -> Self {
        let granted = |path: &PathBuf, may_write| Folder { path: path.clone(), whose: Whose::Granted, may_write };
        let mut all: Vec<Folder> = readable.iter().map(|path| granted(path, false)).collect();
        all.extend(writable.iter().map(|path| granted(path, true)));
        // The outermost first: within it each folder is opened by its handle, so that a link can't stand for an inner one.
        all.retain(|folder| folder.path != self.scratch);
        all.sort_by_key(|folder| folder.path.components().count());
        self.folders.extend(all);
        self
    }

    /// The same, but these files, under whatever name.
    #[must_use]
    pub fn without(mut self, files: &[PathBuf]) -> Self {
        self.barred.extend(files.iter().filter_map(|file| Identity::at(file)));
        self
    }

    /// The folders, for people: path and whether it may be written.
    pub fn described(&self) -> impl Iterator<Item = (&Path, Whose, bool)> {
        self.folders.iter().map(|folder| (folder.path.as_path(), folder.whose, folder.may_write))
    }

    /// The place that a path means. Its folder is opened; what it names needn't be there.
    ///
    /// # Errors
    /// [`PathError::Refused`] where it leads elsewhere than beneath a folder that this access is granted for.
    pub fn find(&self, given: &str, access: PathUse) -> Result<Place, PathError> {
        check_words(given)?;
        let path = Path::new(given);
        let (folder, inner) = if path.is_absolute() {
            self.folder_of(path, access).ok_or_else(|| self.not_granted(given, access))?
        } else {
            let scratch = self.folders.first().ok_or_else(|| self.not_granted(given, access))?;
            (scratch, path)
        };
        let names = names(inner, given)?;
        let full = names.iter().fold(folder.path.clone(), |path, name| path.join(name));
        let is_the_machines = MACHINE.iter().any(|place| full.starts_with(place));
        if is_the_machines || policy::is_private(given) {
            return Err(refused(given, "keys, devices and the assistant's own state are out of every tool's reach"));
        }
        let root = self.open(folder)?;
        Ok(Place { root, whose: folder.whose, barred: self.barred(folder), names, path: full, given: given.to_owned() })
    }

    fn folder_of<'a>(&self, path: &'a Path, access: PathUse) -> Option<(&Folder, &'a Path)> {
        let granting = self.folders.iter().filter(|folder| access == PathUse::Read || folder.may_write);
        granting.filter_map(|folder| Some((folder, path.strip_prefix(&folder.path).ok()?))).next()
    }

    fn not_granted(&self, given: &str, access: PathUse) -> PathError {
        let (verb, list) = if access == PathUse::Write { ("written", "write") } else { ("read", "read") };
        refused(given, &format!("it isn't beneath a folder that may be {verb} (`[files] {list}` in policy.toml)"))
    }

    /// The folder's handle. Its own path may lead through links: whoever granted it wrote it so.
    fn open(&self, folder: &Folder) -> Result<OwnedFd, PathError> {
        let failed = |source: io::Error| PathError::Io { path: folder.path.display().to_string(), source };
        if folder.whose == Whose::Scratch {
            create_private_dirs(&self.scratch).map_err(failed)?;
        }
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        rustix::fs::open(&folder.path, flags, Mode::empty()).map_err(|error| failed(error.into()))
    }

    /// What must not be met on the way.
    fn barred(&self, folder: &Folder) -> Arc<[Identity]> {
        let is_granted = folder.whose == Whose::Granted;
        let workspace = is_granted.then(|| Identity::at(&self.workspace)).flatten();
        self.barred.iter().copied().chain(workspace).collect()
    }
}

/// Which file or folder of the machine it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// What a path leads to, by links too.
    fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::of)
    }
}

/// A file as it was when it was read: it differs once somebody has written it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    identity: Identity,
    bytes: u64,
    modified: (i64, i64),
    mode: u32,
}

impl Stamp {
    /// Whether anybody may run it.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }
}

/// A name beneath a granted folder, which is held by its handle.
#[derive(Debug)]
pub struct Place {
    root: OwnedFd,
    whose: Whose,
    barred: Arc<[Identity]>,
    names: Vec<String>,
    path: PathBuf,
    given: String,
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeneathKind {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A link, a pipe, a device, a socket.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name, which is text.
    pub name: String,
    /// What it is.
    pub kind: BeneathKind,
}

impl Place {
    /// Whose folder it is in.
    pub fn whose(&self) -> Whose {
        self.whose
    }

    /// Its absolute path: for messages and for telling places apart, never for opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its last name; its folder's path for the folder itself.
    pub fn name(&self) -> String {
        self.names.last().cloned().unwrap_or_else(|| self.path.display().to_string())
    }

    /// Whether it is the granted folder itself.
    pub fn is_root(&self) -> bool {
        self.names.is_empty()
    }

    /// What stands there; none: nothing.
    pub fn kind(&self) -> Result<Option<BeneathKind>, PathError> {
        let Some((directory, name)) = self.last(false)? else {
            return Ok(Some(BeneathKind::Folder));
        };
        self.kind_in(&directory, name)
    }

    /// A plain file's bytes, all of them, and what tells whether it was changed since.
    pub fn read(&self, max_bytes: u64) -> Result<(Vec<u8>, Stamp), PathError> {
        let (file, stamp) = self.open()?;
        if stamp.bytes > max_bytes {
            let why = format!("it has {} bytes, and at most {max_bytes} are read", stamp.bytes);
            return Err(refused(&self.given, &why));
        }
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|source| self.io(source))?;
        if bytes.len() as u64 > max_bytes {
            return Err(refused(&self.given, &format!("it has more than {max_bytes} bytes")));
        }
        Ok((bytes, stamp))
    }

    /// A plain file, opened.
    pub fn open(&self) -> Result<(File, Stamp), PathError> {
        let Some((directory, name)) = self.last(false)? else {
            return Err(refused(&self.given, "it is a folder"));
        };
        self.open_in(&directory, name)
    }

    /// A folder's entries by name; what isn't text, and what is being written, is left out.
    pub fn list(&self) -> Result<Vec<Named>, PathError> {
        let directory = self.walk(&self.names, false)?;
        self.entries(&directory)
    }

    /// The place of an entry of this folder.
    pub fn inner(&self, name: &str) -> Result<Self, PathError> {
        let root = self.root.try_clone().map_err(|source| self.io(source))?;
        let mut names = self.names.clone();
        names.push(name.to_owned());
        let path = self.path.join(name);
        let (barred, given) = (Arc::clone(&self.barred), path.display().to_string());
        Ok(Self { root, whose: self.whose, barred, names, given, path })
    }

    fn entries(&self, directory: &OwnedFd) -> Result<Vec<Named>, PathError> {
        let mut found = Vec::new();
        for entry in Dir::read_from(directory).map_err(|error| self.io(error.into()))?.take(MAX_ENTRIES) {
            let entry = entry.map_err(|error| self.io(error.into()))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || name.starts_with(TEMPORARY) {
                continue;
            }
            if let Some(kind) = self.kind_in(directory, name)? {
                found.push(Named { name: name.to_owned(), kind });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// The handle of the folder that holds it, and its name there; none for the granted folder itself.
    fn last(&self, make: bool) -> Result<Option<(OwnedFd, &str)>, PathError> {
        let Some((name, above)) = self.names.split_last() else {
            return Ok(None);
        };
        Ok(Some((self.walk(above, make)?, name)))
    }

    /// Opens folder after folder, each by its name from the handle of the one before.
    fn walk(&self, names: &[String], make: bool) -> Result<OwnedFd, PathError> {
        let mut directory =
            rustix::fs::openat(&self.root, ".", DIRECTORY, Mode::empty()).map_err(|e| self.io(e.into()))?;
        self.folder_not_barred(&directory)?;
        for name in names {
            let open = || rustix::fs::openat(&directory, name.as_str(), DIRECTORY, Mode::empty());
            let next = match open() {
                Err(Errno::NOENT) if make => {
                    match rustix::fs::mkdirat(&directory, name.as_str(), Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(self.io(error.into())),
                    }
                    rustix::fs::fsync(&directory).map_err(|error| self.io(error.into()))?;
                    open()
                }
                opened => opened,
            };
            directory = next.map_err(|error| match error {
                Errno::NOENT => PathError::Missing(self.given.clone()),
                Errno::NOTDIR | Errno::LOOP => {
                    refused(&self.given, &format!("{name:?} on its way is a link or a file, and links aren't followed"))
                }
                error => self.io(error.into()),
            })?;
            self.folder_not_barred(&directory)?;
        }
        Ok(directory)
    }

    /// Our own state and files of keys may stand within a granted folder, under whatever name.
    fn not_barred(&self, found: Identity) -> Result<(), PathError> {
        // fault: our-state-met-granted
        if self.barred.contains(&found) {
            return Err(refused(&self.given, "keys and the assistant's own state are out of every tool's reach"));
        }
        Ok(())
    }

    fn folder_not_barred(&self, directory: &OwnedFd) -> Result<(), PathError> {
        let handle = File::from(directory.try_clone().map_err(|source| self.io(source))?);
        self.not_barred(Identity::of(&handle.metadata().map_err(|source| self.io(source))?))
    }

    fn kind_in(&self, directory: &OwnedFd, name: &str) -> Result<Option<BeneathKind>, PathError> {
        match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => BeneathKind::File,
                FileType::Directory => BeneathKind::Folder,
                _ => BeneathKind::Other,
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.io(error.into())),
        }
    }

    fn open_in(&self, directory: &OwnedFd, name: &str) -> Result<(File, Stamp), PathError> {
        // Looked at first: opening a device can already do something.
        match self.kind_in(directory, name)? {
            None => return Err(PathError::Missing(self.given.clone())),
            Some(BeneathKind::Folder) => return Err(refused(&self.given, "it is a folder")),
            Some(BeneathKind::Other) => {
                return Err(refused(&self.given, "it is a link, a pipe or a device, not a plain file"));
            }
            Some(BeneathKind::File) => {}
        }
        let file = rustix::fs::openat(directory, name, FILE, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => PathError::Missing(self.given.clone()),
            Errno::LOOP | Errno::NXIO => refused(&self.given, "it is a link, a pipe or a device, not a plain file"),
            error => self.io(error.into()),
        })?;
        let file = File::from(file);
        let found = file.metadata().map_err(|source| self.io(source))?;
        if !found.is_file() {
            return Err(refused(&self.given, "it isn't a plain file"));
        }
        let identity = Identity::of(&found);
        self.not_barred(identity)?;
        // fault: file-second-name-read
        if found.nlink() > 1 {
            return Err(refused(&self.given, "it has several names (hard links), so it may be a file from elsewhere"));
        }
        let stamp = Stamp {
            identity,
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            mode: found.mode() & 0o777,
        };
        Ok((file, stamp))
    }

    fn io(&self, source: io::Error) -> PathError {
        if Errno::from_io_error(&source) == Some(Errno::NAMETOOLONG) {
            return refused(&self.given, "it is longer than the system takes");
        }
        PathError::Io { path: self.given.clone(), source }
    }
}

fn refused(path: &str, why: &str) -> PathError {
    let shown: String = path.chars().take(200).collect();
    PathError::Refused(format!("{shown:?} can't be used: {why}."))
}

/// Refuses what can't be a path as a person would read it.
fn check_words(given: &str) -> Result<(), PathError> {
    if given.trim().is_empty() {
        return Err(refused(given, "it is empty"));
    }
    if given.len() > MAX_PATH_BYTES {
        return Err(refused(given, &format!("it is longer than {MAX_PATH_BYTES} bytes")));
    }
    if given.chars().any(is_unseen) {
        return Err(refused(given, "it holds characters that don't show"));
    }
    if given.starts_with('~') {
        return Err(refused(given, "`~` isn't expanded: give the path in full, or one within the scratch folder"));
    }
    Ok(())
}

/// Control characters, and those without width or that reorder: some file systems don't see them either, so that `.g\u{200c}it`
/// would be `.git`.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || c == char::REPLACEMENT_CHARACTER
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The names on a path, which go downwards only.
fn names(inner: &Path, given: &str) -> Result<Vec<String>, PathError> {
    let mut names = Vec::new();
    for part in inner.components() {
        match part {
            Component::Normal(name) => {
                names.push(name.to_str().ok_or_else(|| refused(given, "it isn't text"))?.to_owned());
            }
            Component::CurDir => {}
            _ => return Err(refused(given, "it leads upwards (`..`)")),
        }
    }
    if names.len() > MAX_DEPTH {
        return Err(refused(given, &format!("it goes through more than {MAX_DEPTH} folders")));
    }
    if names.iter().any(|name| name.starts_with(TEMPORARY)) {
        return Err(refused(given, "names that begin so are kept for files that are being written"));
    }
    Ok(names)
}
