//! An archive (zip), never unpacked: it is listed, and single files are read out of it.
//!
//! One that a tool would unpack beside its folder, or that unpacks to far more than it is, was made to do harm: it is refused as a
//! whole. So are files that share their bytes. What a file says of its length is held against what comes out of it.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt as _,
};

use zip::{CompressionMethod, ZipArchive};

use super::{
    ImportError,
    found::ImportLeftOut,
    source::{HIDDEN, LINK, MAX_DEPTH, MAX_ENTRIES, NO_TEXT_NAME, SourceEntry, TOO_DEEP, is_hidden, too_many},
};
use crate::disk;

/// The largest archive, in bytes: exports with pictures are some gigabytes.
const MAX_ARCHIVE_BYTES: u64 = 8 << 30;
/// How many times its packed length a file may have. JSON packs to a tenth; what is made of one byte to a thousandth.
const MAX_RATIO: u64 = 200;
/// Smaller files pack as they like, in bytes.
const RATIO_FROM_BYTES: u64 = 1 << 20;
/// How an archive begins: with a file, or, empty, with its end.
const BEGINNINGS: [&[u8; 4]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

const ENCRYPTED: &str = "encrypted in the archive";
const OTHERWISE_PACKED: &str = "packed in a way that isn't read here";

/// An archive, open.
pub(super) struct ZipFile {
    archive: RefCell<ZipArchive<BufReader<File>>>,
    shown: String,
}

impl ZipFile {
    /// Whether a file begins as an archive does.
    pub(super) fn is_one(file: &File) -> io::Result<bool> {
        let mut bytes = [0; 4];
        let read = file.read_at(&mut bytes, 0)?;
        Ok(read == bytes.len() && BEGINNINGS.contains(&&bytes))
    }

    pub(super) fn open(file: File, bytes: u64, shown: &str) -> Result<Self, ImportError> {
        if bytes > MAX_ARCHIVE_BYTES {
            let most = disk::size(MAX_ARCHIVE_BYTES);
            return Err(ImportError::Refused(format!("{shown} is larger than {most}. Import a part of it.")));
        }
        let archive =
            ZipArchive::new(BufReader::new(file)).map_err(|error| ImportError::unreadable(shown, told(&error)))?;
        Ok(Self { archive: RefCell::new(archive), shown: shown.to_owned() })
    }

    /// Its files, and what isn't among them.
    ///
    /// # Errors
    /// [`ImportError::Refused`]: it is no honest archive.
    pub(super) fn list(&self) -> Result<(Vec<SourceEntry>, Vec<ImportLeftOut>), ImportError> {
        let mut archive = self.archive.borrow_mut();
        if archive.len() > MAX_ENTRIES {
            return Err(too_many());
        }
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        for at in 0..archive.len() {
            let file = archive.by_index_raw(at).map_err(|error| ImportError::unreadable(&self.shown, told(&error)))?;
            let mut leave = |what: &str, why| left_out.push(ImportLeftOut { what: what.to_owned(), why });
            let name = std::str::from_utf8(file.name_raw());
            let lossy = String::from_utf8_lossy(file.name_raw());
            if leads_out(&lossy) {
                return Err(self.harmful("a file in it would be unpacked outside of its folder"));
            }
            if file.size() > RATIO_FROM_BYTES && file.size() / MAX_RATIO > file.compressed_size() {
                return Err(self.harmful("a file in it unpacks to more than 200 times its length"));
            }
            if file.is_dir() {
                continue;
            }
            let why = match name {
                Err(_) => Some(NO_TEXT_NAME),
                Ok(name) if name.split('/').any(is_hidden) => Some(HIDDEN),
                Ok(name) if name.split('/').count() > MAX_DEPTH + 1 => Some(TOO_DEEP),
                Ok(_) if !file.is_file() || file.is_symlink() => Some(LINK),
                Ok(_) if file.encrypted() => Some(ENCRYPTED),
                Ok(_) if !matches!(file.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) => {
                    Some(OTHERWISE_PACKED)
                }
                Ok(_) => None,
            };
            match why {
                Some(why) => leave(&lossy, why),
                None => entries.push(SourceEntry { path: lossy.into_owned(), bytes: file.size(), at }),
            }
        }
        if archive.has_overlapping_files().unwrap_or(true) {
            return Err(self.harmful("files in it share their bytes"));
        }
        Ok((entries, left_out))
    }

    /// Has a file read.
    pub(super) fn read<T>(&self, entry: &SourceEntry, work: impl FnOnce(&mut dyn Read) -> T) -> Result<T, ImportError> {
        let mut archive = self.archive.borrow_mut();
        let file = archive.by_index(entry.at).map_err(|error| ImportError::unreadable(&entry.path, told(&error)))?;
        Ok(work(&mut ExactRead { reader: file, left: entry.bytes }))
    }

    fn harmful(&self, why: &str) -> ImportError {
        ImportError::Refused(format!("{} isn't a sound archive: {why}.", self.shown))
    }
}

/// Whether a tool that trusts this name would write elsewhere.
fn leads_out(name: &str) -> bool {
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    let steps_up = |name: &str| name.split(['/', '\\']).any(|step| step.trim_end() == "..");
    name.starts_with(['/', '\\']) || has_drive || name.contains('\0') || steps_up(name)
}

/// What the library says, without what a file's name may have put into it.
fn told(error: &zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::Io(error) => error.to_string(),
        zip::result::ZipError::InvalidArchive(_) => "it is damaged".to_owned(),
        zip::result::ZipError::UnsupportedArchive(_) => "it is packed in a way that isn't read here".to_owned(),
        _ => "it isn't a whole archive".to_owned(),
    }
}

/// Reads what a file says that it has: what is longer is an error.
struct ExactRead<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for ExactRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other("it unpacks to more than it says"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_known() {
        for name in ["../a", "a/../../b", "/etc/x", "\\x", "C:\\x", "c:x", "a\\..\\b", "a/.. /b", "a\0b"] {
            assert!(leads_out(name), "{name:?}");
        }
        for name in ["a/b.md", "a..b/c", "..a", "ä:b", "conversations.json"] {
            assert!(!leads_out(name), "{name:?}");
        }
    }
}
