//! The index's file: made, opened, and made anew when it is damaged, another program's or of another version.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, config::DbConfig};

use super::IndexError;

/// What SQLite notes in the file's head: `wake`.
const APPLICATION_ID: i64 = 0x7761_6b65;
/// The version of what it holds: another one is built anew, since nothing is lost by it.
const VERSION: i64 = 2;
/// How long a statement waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages that are kept in memory, in KiB.
const CACHE_KIB: i64 = 16 * 1024;

/// Pages of the log before it is copied into the file: whoever opens the index first reads all of the log.
const LOG_PAGES: i64 = 256;

/// Opens the index, or makes it. Says whether what was there had to go.
pub(super) fn open(path: &Path) -> Result<(Connection, bool), IndexError> {
    match attempt(path) {
        Ok(Some(conn)) => Ok((conn, false)),
        Ok(None) => again(path),
        Err(error) if is_damage(&error) => again(path),
        Err(error) => Err(error.into()),
    }
}

fn again(path: &Path) -> Result<(Connection, bool), IndexError> {
    remove(path)?;
    let conn = attempt(path)?.ok_or_else(|| IndexError::Foreign(path.to_owned()))?;
    Ok((conn, true))
}

/// An index in memory, for where none can be written.
pub(super) fn in_memory() -> Result<Connection, IndexError> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(include_str!("schema.sql"))?;
    Ok(conn)
}

/// Moves the file aside, and says where to.
pub(super) fn move_aside(path: &Path) -> Result<Option<PathBuf>, IndexError> {
    let aside = path.with_extension("db.old");
    remove(&aside)?;
    match std::fs::rename(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(IndexError::File(error)),
    }
    // What SQLite keeps beside it would be taken for the new one's.
    remove(path)?;
    Ok(Some(aside))
}

/// A file's device and inode.
pub(super) fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// How large the file is, with its log.
pub(super) fn bytes(path: &Path) -> u64 {
    [path.to_owned(), path.with_extension("db-wal")]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|file| file.len())
        .sum()
}

/// Deletes the file and what SQLite keeps beside it.
pub(super) fn remove(path: &Path) -> Result<(), IndexError> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.to_owned().into_os_string();
        name.push(ending);
        match std::fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(IndexError::File(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether an error says that the file isn't a sound database.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// The index; none if the file is another program's or of another version.
fn attempt(path: &Path) -> rusqlite::Result<Option<Connection>> {
    create_private(path);
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Nothing is synced but when the log is copied into the file, every megabyte: a power cut takes what is newest, whole.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    conn.set_prepared_statement_cache_capacity(64);
    let number = |conn: &Connection, name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number(&conn, "user_version")? == VERSION {
        return Ok((number(&conn, "application_id")? == APPLICATION_ID).then_some(conn));
    }
    conn.pragma_update(None, "journal_mode", "WAL")?;
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may just have made it.
    let is_empty = tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get::<_, bool>(0))?;
    if is_empty {
        tx.execute_batch(include_str!("schema.sql"))?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    let is_ours = number(&tx, "user_version")? == VERSION;
    tx.commit()?;
    Ok(is_ours.then_some(conn))
}

/// It holds what was said: nobody else on the machine may read it. Best effort: opening it reports real trouble.
fn create_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Err(error) = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        tracing::trace!(%error, "the index's file was not made ahead");
    }
}
