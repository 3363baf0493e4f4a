//! Detects a database whose file is no longer the one at its path. A file that was removed, moved or emptied under a running program
//! still accepts writes, which are then lost.

use std::{fmt, fs, os::unix::fs::MetadataExt as _, path::Path, path::PathBuf};

use rusqlite::{OpenFlags, config::DbConfig};

use reveille_base::file;

use super::{Result, Store, StoreError, create_private};

/// The minimum size of a database, its first page, in bytes.
const PAGE_BYTES_MIN: u64 = 512;

/// Device and inode of the database's files at the time of opening.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opened([Option<(u64, u64)>; 3]);

impl Opened {
    pub(super) fn from_files(files: &[PathBuf; 3]) -> Self {
        Self(files.each_ref().map(|path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))))
    }
}

/// The fate of an open database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    /// The file's name.
    name: String,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Removed,
    Replaced,
    Emptied,
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Removed => "removed",
            How::Replaced => "replaced by another file",
            How::Emptied => "emptied",
        };
        write!(f, "{} was {how}", self.name)
    }
}

impl Store {
    /// The file whose writes are lost because it was removed, replaced or emptied; `None` if all files are in place.
    pub fn find_displaced_file(&self) -> Option<Displaced> {
        let files = self.files();
        let [main, ..] = &files;
        let how = |path: &PathBuf, opened: (u64, u64)| match fs::metadata(path) {
            Ok(found) if (found.dev(), found.ino()) != opened => Some(How::Replaced),
            Ok(found) if path == main && found.len() < PAGE_BYTES_MIN => Some(How::Emptied),
            Ok(_) => None,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(How::Removed),
            // The writing itself reports such an error.
            Err(_) => None,
        };
        files.iter().zip(self.opened.0).find_map(|(path, opened)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Some(Displaced { name, how: how(path, opened?)? })
        })
    }

    /// Removes the log of a database that was removed or replaced, once all of its data is saved: SQLite would apply the log to a new
    /// file at this path.
    pub fn drop_log(&self) {
        let [main, log, index] = self.files();
        let now = Opened::from_files(&[main, log.clone(), index.clone()]);
        let [main_is_ours, log_is_ours, index_is_ours] = [0, 1, 2].map(|at| now.0.get(at) == self.opened.0.get(at));
        for (path, is_ours) in [(log, log_is_ours), (index, index_is_ours)] {
            if is_ours && !main_is_ours {
                fs::remove_file(path).ok();
            }
        }
    }

    /// Writes everything this connection sees into a new database, synced and readable by its owner alone.
    pub fn save_copy(&self, path: &Path) -> Result<()> {
        #[cfg(feature = "postgres")]
        if self.is_shared() {
            return self.copy_all_rows(&mut Self::open(path)?).map(drop);
        }
        create_private(path);
        self.conn.execute("VACUUM INTO ?1", [path.to_string_lossy()])?;
        // A file emptied in place reads as an empty database, and its copy saves nothing.
        let copy = rusqlite::Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if copy.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == 0 {
            return Err(StoreError::Damaged("nothing could be read from it any more".to_owned()));
        }
        file::sync(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::Full,
            _ => StoreError::Sqlite(rusqlite::Error::ToSqlConversionFailure(Box::new(error))),
        })
    }
}

impl Drop for Store {
    /// SQLite deletes the log with the last connection, by its path: by now that log may be another database's, or the only data left.
    fn drop(&mut self) {
        if self.find_displaced_file().is_some() {
            let conn = self.conn.as_sqlite();
            conn.map(|conn| conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        }
    }
}
