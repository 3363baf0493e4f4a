//! The index's file: creates and opens it, and rebuilds a file that is damaged, foreign or of another version.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, config::DbConfig};

use reveille_base::file;

use super::IndexError;

/// The SQLite application id in the file's header: `wake`.
const APPLICATION_ID: i64 = 0x7761_6b65;
/// The format version. An index of another version is rebuilt, keeping its vectors; nothing is lost.
const VERSION: i64 = 4;
/// How long a statement waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum page cache, in KiB: enough for all pages that searches read in an index of 100,000 entries. A single search reads about 4
/// MB.
const CACHE_KIB: i64 = 64 * 1024;

/// The pages in the write-ahead log that trigger a checkpoint. It is kept short, because the first process to open the index reads all of
/// it.
const LOG_PAGES: i64 = 256;

/// The file at the index's path.
enum Found {
    Current(Connection),
    /// An index of another version.
    Another,
    /// Another program's file.
    Foreign,
}

/// Opens or creates the index. Returns whether the previous file had to be replaced. An index of another version is moved aside.
pub(super) fn open(path: &Path) -> Result<(Connection, bool), IndexError> {
    match try_open(path) {
        Ok(Found::Current(conn)) => return Ok((conn, false)),
        Ok(Found::Another) => drop(move_aside(path)?),
        Ok(Found::Foreign) => remove(path)?,
        Err(error) if is_damage(&error) => remove(path)?,
        Err(error) => return Err(error.into()),
    }
    match try_open(path)? {
        Found::Current(conn) => Ok((conn, true)),
        Found::Another | Found::Foreign => Err(IndexError::Foreign(path.to_owned())),
    }
}

/// Copies the write-ahead log into the file, as far as other processes allow. Errors are ignored: a damaged index has nothing worth
/// keeping.
pub(super) fn checkpoint_log(conn: &Connection) {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).ok();
}

/// Returns the path of an index moved aside for a rebuild.
fn aside_path(path: &Path) -> PathBuf {
    path.with_extension("db.old")
}

/// Returns the path of an index that was moved aside by a process that ended before it copied the vectors.
pub(super) fn find_moved_aside(path: &Path) -> Option<PathBuf> {
    Some(aside_path(path)).filter(|aside| aside.exists())
}

/// Creates an index in memory, for places without a writable file.
pub(super) fn open_in_memory() -> Result<Connection, IndexError> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(include_str!("schema.sql"))?;
    Ok(conn)
}

/// Moves the file aside and returns its new path.
pub(super) fn move_aside(path: &Path) -> Result<Option<PathBuf>, IndexError> {
    let aside = aside_path(path);
    remove(&aside)?;
    match std::fs::rename(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(IndexError::File(error)),
    }
    // SQLite would mistake the old side files for the new index's.
    remove(path)?;
    Ok(Some(aside))
}

/// Returns a file's device and inode.
pub(super) fn read_inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Returns the size of the file and its write-ahead log.
pub(super) fn count_bytes(path: &Path) -> u64 {
    [path.to_owned(), path.with_extension("db-wal")]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|file| file.len())
        .sum()
}

/// Deletes the file and SQLite's side files.
pub(super) fn remove(path: &Path) -> Result<(), IndexError> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        file::remove_if_there(&file::add_ending(path, ending)).map_err(IndexError::File)?;
    }
    Ok(())
}

/// Returns whether an error means that the file isn't a sound database.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Opens the file at the path, or creates an empty index there.
fn try_open(path: &Path) -> rusqlite::Result<Found> {
    create_private(path);
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Syncing happens only at checkpoints, every megabyte: a power cut loses the newest entries as whole transactions.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    // Without this, some statements are prepared again for each bound value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    let number = |conn: &Connection, name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_index = number(&conn, "application_id")? == APPLICATION_ID;
    match number(&conn, "user_version")? {
        VERSION if is_index => return Ok(Found::Current(conn)),
        VERSION => return Ok(Found::Foreign),
        _ if is_index => {
            checkpoint_log(&conn);
            return Ok(Found::Another);
        }
        _ => {}
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have created the index meanwhile.
    let is_empty = tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get::<_, bool>(0))?;
    if is_empty {
        tx.execute_batch(include_str!("schema.sql"))?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    let is_ours = number(&tx, "user_version")? == VERSION;
    tx.commit()?;
    Ok(if is_ours { Found::Current(conn) } else { Found::Foreign })
}

/// Creates the file readable only by its owner, because it contains conversations. Errors are only logged: opening the file reports them.
fn create_private(path: &Path) {
    if let Err(error) = file::create_private(path) {
        tracing::trace!(%error, "couldn't create the index's file in advance");
    }
}
