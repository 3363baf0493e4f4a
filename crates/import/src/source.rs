//! The source of an import: a folder, an archive or a single file. Its files are listed once, within limits. Files are opened through
//! directory handles without following links, and never yield more bytes than allowed.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::Path,
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use reveille_base::disk;

use super::{
    ImportError,
    encoding::decode_text,
    found::SkippedItem,
    notes,
    zip_file::{ZipBytes, ZipFile, begins_as_zip},
};

/// The maximum number of files and folders listed.
pub(super) const MAX_ENTRIES: usize = 50_000;
/// The maximum nesting of folders.
pub(super) const MAX_DEPTH: usize = 16;
/// The maximum number of bytes read from one source: two gigabytes.
const MAX_READ_BYTES: u64 = 2 << 30;
/// The maximum size of a file read as a whole, in bytes.
pub(super) const MAX_WHOLE_BYTES: u64 = 32 << 20;

/// The maximum number of nested archives read.
const MAX_INNER_ARCHIVES: usize = 64;
/// The maximum nesting depth of archives.
const MAX_INNER_DEPTH: usize = 3;
/// The maximum memory for nested archives that are compressed, in bytes.
const MAX_INNER_BYTES: u64 = 256 << 20;

/// Reasons for skipping files.
pub(super) const LINK: &str = "a link, a pipe or a device";
pub(super) const HIDDEN: &str = "hidden files and folders";
pub(super) const NO_TEXT_NAME: &str = "its name isn't UTF-8";
pub(super) const NO_TEXT: &str = "not text in UTF-8";
pub(super) const TOO_DEEP: &str = "folders nested too deep";
pub(super) const TOO_LARGE: &str = "too large";
pub(super) const UNREADABLE: &str = "it can't be read";
pub(super) const DAMAGED: &str = "damaged: its checksum is wrong";
pub(super) const INNER: &str = "an archive inside it: import that one separately";
const BAD_INNER: &str = "an archive inside it that can't be read";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Non-blocking: a pipe put there meanwhile would block forever.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open source.
pub struct ImportSource {
    /// The source's file name, without its ending.
    name: String,
    place: SourcePlace,
    /// The nested archives.
    inner: Vec<ZipFile>,
    entries: Vec<SourceEntry>,
    left_out: Vec<SkippedItem>,
    /// The number of bytes that may still be read.
    left: Cell<u64>,
}

enum SourcePlace {
    Folder(OwnedFd),
    Archive(ZipFile),
    File(File),
}

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEntry {
    /// The path below the source, with `/`.
    pub path: String,
    /// The stated size, in bytes.
    pub bytes: u64,
    /// The index within its archive.
    pub(super) at: usize,
    /// The index of the nested archive with the file.
    pub(super) within: Option<usize>,
}

impl SourceEntry {
    /// Returns the last step of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns whether the name has one of these endings, ignoring case.
    pub(super) fn has_ending(&self, endings: &[&str]) -> bool {
        // Some disks drop trailing dots and blanks.
        let name = self.file_name().trim_end_matches(['.', ' ']).to_lowercase();
        endings.iter().any(|ending| name.ends_with(ending))
    }
}

impl ImportSource {
    /// Opens a path named by a person, and lists its files.
    ///
    /// # Errors
    /// The source can't be read, has too many files, or is a refused archive.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let shown = path.display().to_string();
        let unreadable = |error: io::Error| ImportError::unreadable(&shown, error);
        // Checked first, because opening a pipe waits for its other end.
        let named = std::fs::metadata(path).map_err(unreadable)?;
        if !named.is_dir() && !named.is_file() {
            return Err(ImportError::Refused(format!("{shown} is neither a folder nor a file.")));
        }
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let absolute = path.canonicalize().map_err(unreadable)?;
        let name = |path: Option<&std::ffi::OsStr>| path.map(|name| name.to_string_lossy().into_owned());
        let mut source = Self {
            name: name(absolute.file_stem()).unwrap_or_default(),
            place: SourcePlace::File(file),
            inner: Vec::new(),
            entries: Vec::new(),
            left_out: Vec::new(),
            left: Cell::new(MAX_READ_BYTES),
        };
        if metadata.is_dir() {
            source.name = name(absolute.file_name()).unwrap_or_default();
            let root = rustix::fs::open(&absolute, FOLDER, Mode::empty()).map_err(|error| unreadable(error.into()))?;
            source.list_folder(&root)?;
            source.place = SourcePlace::Folder(root);
        } else if let SourcePlace::File(file) = &source.place
            && begins_as_zip(&read_first_bytes(file).map_err(unreadable)?)
        {
            let bytes = ZipBytes::from_file(file.try_clone().map_err(unreadable)?, metadata.len());
            let archive = ZipFile::open(bytes, &shown)?;
            (source.entries, source.left_out) = archive.list_files()?;
            source.place = SourcePlace::Archive(archive);
        } else {
            let path = name(absolute.file_name()).unwrap_or_default();
            source.entries.push(SourceEntry { path, bytes: metadata.len(), at: 0, within: None });
        }
        source.list_inner();
        source.entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(source)
    }

    /// Returns the folder's or file's own name, without an ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the files, sorted by path.
    pub fn entries(&self) -> &[SourceEntry] {
        &self.entries
    }

    /// Returns the folder that contains all files of an archive, if there is one.
    pub(super) fn outer_folder(&self) -> Option<&str> {
        let outer = self.entries.first()?.path.split_once('/')?.0;
        let is_in = |entry: &SourceEntry| entry.path.split_once('/').is_some_and(|(folder, _)| folder == outer);
        (matches!(self.place, SourcePlace::Archive(_)) && self.entries.iter().all(is_in)).then_some(outer)
    }

    /// Returns the skipped files.
    pub fn left_out(&self) -> &[SkippedItem] {
        &self.left_out
    }

    /// Finds a file by its path, at the top or one folder below: exports are often packed with a surrounding folder.
    pub(super) fn find(&self, path: &str) -> Option<&SourceEntry> {
        let is_it = |entry: &&SourceEntry| entry.path == path;
        let within = format!("/{path}");
        let one_down =
            |entry: &&SourceEntry| entry.path.strip_suffix(&within).is_some_and(|above| !above.contains('/'));
        self.entries.iter().find(is_it).or_else(|| self.entries.iter().find(one_down))
    }

    /// Returns a file's text, without a byte order mark.
    pub(super) fn read_text(&self, entry: &SourceEntry, max_bytes: u64) -> Result<String, &'static str> {
        decode_text(&self.read_bytes(entry, max_bytes)?).ok_or(NO_TEXT)
    }

    /// Returns a file's bytes.
    pub(super) fn read_bytes(&self, entry: &SourceEntry, max_bytes: u64) -> Result<Vec<u8>, &'static str> {
        if entry.bytes > max_bytes {
            return Err(TOO_LARGE);
        }
        let mut bytes = Vec::new();
        let read = self.with_reader(entry, max_bytes, |reader| reader.read_to_end(&mut bytes));
        match read.map_err(|_| UNREADABLE)? {
            Ok(_) => Ok(bytes),
            Err(error) if is_beyond_bound(&error) => Err(TOO_LARGE),
            Err(_) if matches!(self.place, SourcePlace::Archive(_)) || entry.within.is_some() => Err(DAMAGED),
            Err(_) => Err(UNREADABLE),
        }
    }

    /// Runs `work` with a reader of a file. Reading beyond the limit fails.
    pub(super) fn with_reader<T>(
        &self,
        entry: &SourceEntry,
        max_bytes: u64,
        work: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<T, ImportError> {
        let failed = |error: io::Error| ImportError::unreadable(&entry.path, error);
        let most = max_bytes.min(self.left.get());
        if let Some(archive) = entry.within.and_then(|within| self.inner.get(within)) {
            return archive.with_reader(entry, |reader| self.with_bounded_reader(most, reader, work));
        }
        match &self.place {
            SourcePlace::File(file) => {
                let mut file = file.try_clone().map_err(failed)?;
                io::Seek::rewind(&mut file).map_err(failed)?;
                Ok(self.with_bounded_reader(most, &mut file, work))
            }
            SourcePlace::Folder(root) => {
                let mut file = open_below(root, &entry.path).map_err(failed)?;
                Ok(self.with_bounded_reader(most, &mut file, work))
            }
            SourcePlace::Archive(archive) => {
                archive.with_reader(entry, |reader| self.with_bounded_reader(most, reader, work))
            }
        }
    }

    /// Lists nested archives, since exports come in parts and are sometimes packed again. An archive among notes is an attachment and stays
    /// closed.
    fn list_inner(&mut self) {
        if matches!(self.place, SourcePlace::File(_))
            || self.entries.iter().any(|entry| entry.has_ending(notes::ENDINGS))
        {
            return;
        }
        let mut left = MAX_INNER_BYTES;
        for _ in 0..MAX_INNER_DEPTH {
            let mut archives: Vec<_> = self.entries.extract_if(.., |entry| entry.has_ending(&[".zip"])).collect();
            archives.sort_by(|one, other| one.path.cmp(&other.path));
            for entry in archives {
                let why = match self.open_inner(&entry, &mut left) {
                    _ if self.inner.len() == MAX_INNER_ARCHIVES => INNER,
                    Some(Ok((archive, files, left_out))) => {
                        let folder =
                            entry.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
                        let within = Some(self.inner.len());
                        let placed =
                            |file: SourceEntry| SourceEntry { path: format!("{folder}{}", file.path), within, ..file };
                        self.entries.extend(files.into_iter().map(placed));
                        self.left_out.extend(left_out);
                        self.inner.push(archive);
                        if self.entries.len() <= MAX_ENTRIES {
                            continue;
                        }
                        self.entries.retain(|file| file.within != within);
                        INNER
                    }
                    Some(Err(_)) => BAD_INNER,
                    None => INNER,
                };
                self.leave_out(entry.path, why);
            }
        }
        let deeper: Vec<_> = self.entries.extract_if(.., |entry| entry.has_ending(&[".zip"])).collect();
        deeper.into_iter().for_each(|entry| self.leave_out(entry.path, INNER));
    }

    /// Opens a nested archive. `None` if it would need too much memory.
    fn open_inner(&self, entry: &SourceEntry, left: &mut u64) -> Option<Result<InnerArchive, ImportError>> {
        let outer = match (&self.place, entry.within) {
            (_, Some(within)) => self.inner.get(within),
            (SourcePlace::Archive(archive), None) => Some(archive),
            _ => None,
        };
        let bytes = match (&self.place, outer) {
            (SourcePlace::Folder(root), None) => {
                open_below(root, &entry.path).map(|file| ZipBytes::from_file(file, entry.bytes)).ok()
            }
            (_, outer) => outer.and_then(|outer| outer.find_part(entry)),
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None if entry.bytes > *left => return None,
            None => {
                let mut unpacked = Vec::new();
                let read = self.with_reader(entry, *left, |reader| reader.read_to_end(&mut unpacked));
                match read {
                    Ok(Ok(read)) => *left = left.saturating_sub(read as u64),
                    Ok(Err(error)) => return Some(Err(ImportError::unreadable(&entry.path, error))),
                    Err(error) => return Some(Err(error)),
                }
                ZipBytes::Unpacked(io::Cursor::new(unpacked))
            }
        };
        let opened = ZipFile::open(bytes, &entry.path);
        Some(opened.and_then(|archive| archive.list_files().map(|(files, left_out)| (archive, files, left_out))))
    }

    /// Runs `work` with a limited reader, and counts the bytes read.
    fn with_bounded_reader<T>(&self, most: u64, reader: &mut dyn Read, work: impl FnOnce(&mut dyn Read) -> T) -> T {
        let mut bounded = BoundedRead { reader, most, left: most };
        let done = work(&mut bounded);
        self.left.set(self.left.get().saturating_sub(most - bounded.left));
        done
    }

    /// Lists a folder recursively.
    fn list_folder(&mut self, root: &OwnedFd) -> Result<(), ImportError> {
        let failed = |path: &str, error: rustix::io::Errno| ImportError::unreadable(path, io::Error::from(error));
        let mut open = vec![String::new()];
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            let handle = match open_folder_below(root, &folder) {
                Ok(handle) => handle,
                Err(error) if folder.is_empty() => return Err(ImportError::unreadable("the folder", error)),
                Err(_) => {
                    self.leave_out(folder, UNREADABLE);
                    continue;
                }
            };
            for entry in Dir::read_from(&handle).map_err(|error| failed(&folder, error))? {
                let entry = entry.map_err(|error| failed(&folder, error))?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                seen += 1;
                if seen > MAX_ENTRIES {
                    return Err(build_too_many_error());
                }
                let below = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                let Ok(name) = name.to_str() else {
                    self.leave_out(below(&name.to_string_lossy()), NO_TEXT_NAME);
                    continue;
                };
                let path = below(name);
                if is_hidden(name) {
                    self.leave_out(path, HIDDEN);
                    continue;
                }
                let stat = match rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    Err(rustix::io::Errno::NOENT) => continue,
                    Err(error) => return Err(failed(&path, error)),
                };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory if path.split('/').count() > MAX_DEPTH => self.leave_out(path, TOO_DEEP),
                    FileType::Directory => open.push(path),
                    FileType::RegularFile => {
                        let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                        self.entries.push(SourceEntry { path, bytes, at: 0, within: None });
                    }
                    _ => self.leave_out(path, LINK),
                }
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, what: String, why: &'static str) {
        self.left_out.push(SkippedItem { what, why, times: 1 });
    }
}

/// A nested archive, its files, and its skipped files.
type InnerArchive = (ZipFile, Vec<SourceEntry>, Vec<SkippedItem>);

/// Returns the first bytes of a file.
fn read_first_bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut begin = vec![0; 4];
    let read = file.read_at(&mut begin, 0)?;
    begin.truncate(read);
    Ok(begin)
}

/// Returns the error for a source with too many files.
pub(super) fn build_too_many_error() -> ImportError {
    ImportError::Refused(format!("It holds more than {MAX_ENTRIES} files and folders. Import a part of it."))
}

/// Returns whether a file is private to editors or systems. Another assistant's settings and skills aren't.
pub(super) fn is_hidden(name: &str) -> bool {
    (name.starts_with('.') && !matches!(name, ".env" | ".claude")) || name == "__MACOSX" || name == "node_modules"
}

fn open_folder_below(root: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let mut handle = rustix::fs::openat(root, ".", FOLDER, Mode::empty())?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        handle = rustix::fs::openat(&handle, name, FOLDER, Mode::empty())?;
    }
    Ok(handle)
}

fn open_below(root: &OwnedFd, path: &str) -> io::Result<File> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let file = File::from(rustix::fs::openat(open_folder_below(root, folder)?, name, FILE, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it isn't a regular file")) }
}

/// Returns whether a read ended at its limit.
pub(super) fn is_beyond_bound(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// A reader that fails, rather than ends, at its limit.
struct BoundedRead<'a> {
    reader: &'a mut dyn Read,
    most: u64,
    left: u64,
}

impl Read for BoundedRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            // One more byte shows whether the file ends here.
            return match self.reader.read(&mut [0; 1])? {
                0 => Ok(0),
                _ => {
                    let more = format!("it holds more than {}", disk::format_size(self.most));
                    Err(io::Error::new(io::ErrorKind::FileTooLarge, more))
                }
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
