//! Reads a zip archive without unpacking it: lists its files, and reads single ones.
//!
//! An archive is refused as a whole if a tool would unpack it outside its folder, or if files share their bytes: such archives are made to
//! do harm. A single unreadable file doesn't affect the others. A file's stated size is enforced while reading.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, SeekFrom},
    os::unix::fs::FileExt as _,
};

use zip::{CompressionMethod, ZipArchive};

use reveille_base::disk;

use super::{
    ImportError,
    found::SkippedItem,
    source::{HIDDEN, LINK, MAX_DEPTH, MAX_ENTRIES, SourceEntry, TOO_DEEP, build_too_many_error, is_hidden},
    zip_name::{NameEncoding, to_path},
};

/// The maximum size of an archive, in bytes. Exports with pictures reach several gigabytes.
const MAX_ARCHIVE_BYTES: u64 = 8 << 30;
/// The maximum compression ratio of a file. JSON compresses to about a tenth, repeated bytes to a thousandth.
const MAX_RATIO: u64 = 200;
/// The size below which the ratio isn't checked, in bytes.
const RATIO_FROM_BYTES: u64 = 1 << 20;
/// The first bytes of an archive: those of its first file, or of the end record if it is empty.
const BEGINNINGS: [&[u8; 4]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// The first bytes of an entry in the archive's directory.
const LIST_ENTRY_BEGINNING: &[u8; 4] = b"PK\x01\x02";
/// The length of a directory entry without its name and further fields, in bytes.
const LIST_ENTRY_BYTES: usize = 46;

const ENCRYPTED: &str = "encrypted in the archive";
const UNSUPPORTED_COMPRESSION: &str = "compressed in an unsupported way";
const FAR_TOO_LARGE: &str = "it unpacks to more than 200 times its length";
const BAD_ENTRY: &str = "damaged in the archive";
const SAME_NAME: &str = "another file in the archive has the same name: only the last one is imported";

/// An open archive.
pub(super) struct ZipFile {
    archive: RefCell<ZipArchive<BufReader<ZipBytes>>>,
    bytes: ZipBytes,
    shown: String,
}

/// An archive's bytes: a part of a file, or the unpacked content of an outer archive.
pub(super) enum ZipBytes {
    /// A part of a file: its start, its size, and the read position.
    Part { file: File, start: u64, bytes: u64, at: u64 },
    /// In memory.
    Unpacked(Cursor<Vec<u8>>),
}

impl ZipBytes {
    /// Covers a whole file.
    pub(super) fn from_file(file: File, bytes: u64) -> Self {
        Self::Part { file, start: 0, bytes, at: 0 }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Part { file, start, bytes, .. } => {
                Self::Part { file: file.try_clone()?, start: *start, bytes: *bytes, at: 0 }
            }
            // Left empty to save memory: inner archives are then unpacked instead of read in place, and repeated names go unreported.
            Self::Unpacked(_) => Self::Unpacked(Cursor::default()),
        })
    }

    fn byte_count(&self) -> u64 {
        match self {
            Self::Part { bytes, .. } => *bytes,
            Self::Unpacked(unpacked) => unpacked.get_ref().len() as u64,
        }
    }
}

impl Read for ZipBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unpacked(unpacked) => unpacked.read(buffer),
            Self::Part { file, start, bytes, at } => {
                let left = usize::try_from(bytes.saturating_sub(*at)).unwrap_or(usize::MAX).min(buffer.len());
                let read = file.read_at(buffer.get_mut(..left).unwrap_or_default(), start.saturating_add(*at))?;
                *at += read as u64;
                Ok(read)
            }
        }
    }
}

impl Seek for ZipBytes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Unpacked(unpacked) => unpacked.seek(to),
            Self::Part { bytes, at, .. } => {
                let place = match to {
                    SeekFrom::Start(place) => Some(place),
                    SeekFrom::End(offset) => bytes.checked_add_signed(offset),
                    SeekFrom::Current(offset) => at.checked_add_signed(offset),
                };
                *at = place.ok_or(io::ErrorKind::InvalidInput)?;
                Ok(*at)
            }
        }
    }
}

/// Returns true if a file begins like an archive.
pub(super) fn begins_as_zip(begin: &[u8]) -> bool {
    BEGINNINGS.iter().any(|beginning| begin.starts_with(*beginning))
}

impl ZipFile {
    /// Opens an archive. `shown` is its name for the person.
    pub(super) fn open(bytes: ZipBytes, shown: &str) -> Result<Self, ImportError> {
        if bytes.byte_count() > MAX_ARCHIVE_BYTES {
            let limit = disk::format_size(MAX_ARCHIVE_BYTES);
            return Err(ImportError::Refused(format!("{shown} is larger than {limit}. Import a part of it.")));
        }
        let unreadable = |error: io::Error| ImportError::unreadable(shown, error);
        let kept = bytes.try_clone().map_err(unreadable)?;
        let archive = ZipArchive::new(BufReader::new(bytes))
            .map_err(|error| ImportError::unreadable(shown, describe_error(&error)))?;
        Ok(Self { archive: RefCell::new(archive), bytes: kept, shown: shown.to_owned() })
    }

    /// Returns the files and the skipped files.
    ///
    /// # Errors
    /// [`ImportError::Refused`] for a malicious or oversized archive.
    pub(super) fn list_files(&self) -> Result<(Vec<SourceEntry>, Vec<SkippedItem>), ImportError> {
        let mut archive = self.archive.borrow_mut();
        if archive.len() > MAX_ENTRIES {
            return Err(build_too_many_error());
        }
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        let mut leave_out = |what: &str, why| left_out.push(SkippedItem { what: what.to_owned(), why, times: 1 });
        let names: Vec<Vec<u8>> =
            (0..archive.len()).filter_map(|at| Some(archive.by_index_raw(at).ok()?.name_raw().to_vec())).collect();
        let encoding = NameEncoding::guess(names.iter().map(Vec::as_slice));
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for at in 0..archive.len() {
            let name = archive.name_for_index(at).unwrap_or_default().to_owned();
            let Ok(file) = archive.by_index_raw(at) else {
                leave_out(&name, BAD_ENTRY);
                continue;
            };
            let name = encoding.decode(file.name_raw(), file.name());
            let Some(path) = to_path(&name) else {
                return Err(self.build_unsound_error("a file in it would be unpacked outside its folder"));
            };
            if let (Some(start), true) = (file.data_start(), file.compressed_size() > 0) {
                parts.push((start, start.saturating_add(file.compressed_size())));
            }
            if file.is_dir() || path.is_empty() {
                continue;
            }
            let why = match () {
                () if path.split('/').any(is_hidden) => Some(HIDDEN),
                () if path.split('/').count() > MAX_DEPTH + 1 => Some(TOO_DEEP),
                () if !file.is_file() || file.is_symlink() => Some(LINK),
                () if file.encrypted() => Some(ENCRYPTED),
                () if !matches!(file.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) => {
                    Some(UNSUPPORTED_COMPRESSION)
                }
                () if file.size() > RATIO_FROM_BYTES && file.size() / MAX_RATIO > file.compressed_size() => {
                    Some(FAR_TOO_LARGE)
                }
                () => None,
            };
            match why {
                Some(why) => leave_out(&path, why),
                None => entries.push(SourceEntry { path, bytes: file.size(), at, within: None }),
            }
        }
        parts.sort_unstable();
        if parts.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if start < end)) {
            return Err(self.build_unsound_error("files in it share their bytes"));
        }
        for name in find_repeated_names(&mut self.bytes.try_clone().ok(), archive.central_directory_start()) {
            leave_out(&encoding.decode(&name, &String::from_utf8_lossy(&name)), SAME_NAME);
        }
        Ok((entries, left_out))
    }

    /// Runs `work` with a reader of a file.
    pub(super) fn with_reader<T>(
        &self,
        entry: &SourceEntry,
        work: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<T, ImportError> {
        let mut archive = self.archive.borrow_mut();
        let file =
            archive.by_index(entry.at).map_err(|error| ImportError::unreadable(&entry.path, describe_error(&error)))?;
        Ok(work(&mut ExactRead { reader: file, left: entry.bytes }))
    }

    /// Returns the bytes of an uncompressed file, as a range of this archive's own bytes. `None` if the file is compressed, or the archive is
    /// in memory.
    pub(super) fn find_part(&self, entry: &SourceEntry) -> Option<ZipBytes> {
        let mut archive = self.archive.borrow_mut();
        let found = archive.by_index_raw(entry.at).ok()?;
        let place = found.data_start().filter(|_| found.compression() == CompressionMethod::Stored)?;
        match &self.bytes {
            ZipBytes::Part { file, start, .. } => {
                let start = start.checked_add(place)?;
                Some(ZipBytes::Part { file: file.try_clone().ok()?, start, bytes: found.compressed_size(), at: 0 })
            }
            ZipBytes::Unpacked(_) => None,
        }
    }

    fn build_unsound_error(&self, why: &str) -> ImportError {
        ImportError::Refused(format!("{} is a damaged archive: {why}.", self.shown))
    }
}

/// Finds the repeated names in an archive's directory. The library lists only the last file of a name, so each earlier one is returned.
fn find_repeated_names(bytes: &mut Option<ZipBytes>, list_start: u64) -> Vec<Vec<u8>> {
    let Some(bytes) = bytes else { return Vec::new() };
    let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut reader = BufReader::new(bytes);
    if reader.seek(SeekFrom::Start(list_start)).is_err() {
        return Vec::new();
    }
    for _ in 0..MAX_ENTRIES {
        let mut head = [0; LIST_ENTRY_BYTES];
        if reader.read_exact(&mut head).is_err() || !head.starts_with(LIST_ENTRY_BEGINNING) {
            break;
        }
        let length = |at: usize| {
            head.get(at..at + 2).map_or(0, |bytes| bytes.iter().rev().fold(0, |n, b| n << 8 | i64::from(*b)))
        };
        let mut name = vec![0; usize::try_from(length(28)).unwrap_or_default()];
        if reader.read_exact(&mut name).is_err() || reader.seek_relative(length(30) + length(32)).is_err() {
            break;
        }
        *times.entry(name).or_default() += 1;
    }
    let repeated = times.into_iter().filter(|(name, times)| *times > 1 && !name.ends_with(b"/"));
    repeated.flat_map(|(name, times)| std::iter::repeat_n(name, times - 1)).collect()
}

/// Describes a library error, without text from file names.
fn describe_error(error: &zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::Io(error) => error.to_string(),
        zip::result::ZipError::InvalidArchive(_) => "it is damaged".to_owned(),
        zip::result::ZipError::UnsupportedArchive(_) => "it is compressed in an unsupported way".to_owned(),
        _ => "it is incomplete".to_owned(),
    }
}

/// A reader that fails if a file is longer than its stated size.
struct ExactRead<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for ExactRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other("it unpacks to more than it claims"))?;
        Ok(read)
    }
}
