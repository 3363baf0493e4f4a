//! Checks for a lost database. If the database is missing although the repository has commits by wakes, it is never replaced silently,
//! because it held the queue, the settings and the spending.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    disk,
    file::{add_ending, create_private_dirs},
};
use reveille_config::Config;
use reveille_git as repo;
use reveille_store::{Store, StoreError, database};

use crate::context::WakeError;

/// The name part of a copy saved by the bot.
const SAVED: &str = "recovered";
/// The name part of an old database moved out of the way.
const OLD: &str = "old";

/// Opens the database, or creates it if no wake has worked here yet.
///
/// # Errors
/// The store's errors; [`StoreError::Gone`] if the database has vanished.
pub fn open_database(config: &Config) -> Result<Store, StoreError> {
    check_database(config)?;
    database::open(config)
}

/// Checks that the database is present if wakes have worked here.
///
/// # Errors
/// [`StoreError::Gone`]; for a shared database also that it can't be reached.
pub fn check_database(config: &Config) -> Result<(), StoreError> {
    if config.database_url.is_some() {
        return check_shared(config);
    }
    let path = config.db_path();
    let is_empty = match fs::metadata(&path) {
        Ok(found) if found.len() > 0 => return Ok(()),
        found => found.is_ok(),
    };
    if !repo::has_wakes(&config.repo_dir()) {
        return Ok(());
    }
    Err(StoreError::Gone { is_empty, saved: list_saved_copies(&path).pop(), path })
}

/// Checks a shared database. If wakes have worked here but it has no tables of ours, it isn't the database that they used.
fn check_shared(config: &Config) -> Result<(), StoreError> {
    match repo::has_wakes(&config.repo_dir()) && database::open_read_only(config)?.is_none() {
        true => {
            let path = PathBuf::from(config.database_url.as_deref().unwrap_or_default());
            Err(StoreError::Gone { is_empty: true, saved: None, path })
        }
        false => Ok(()),
    }
}

/// Creates a new database in place of the lost one. Moves the remains of the old one aside and returns their new paths.
///
/// # Errors
/// The store's errors, including those of the file system.
pub fn begin_anew(config: &Config, now: DateTime<Utc>) -> Result<Vec<PathBuf>, StoreError> {
    if config.database_url.is_some() {
        return database::open(config).map(|_| Vec::new());
    }
    let path = config.db_path();
    let aside = add_timestamp(&path, OLD, now);
    let mut kept = Vec::new();
    for ending in ["-wal", "-shm", ""] {
        let to = add_ending(&aside, ending);
        if fs::rename(add_ending(&path, ending), &to).is_ok() {
            kept.push(to);
        }
    }
    drop(Store::open(&path)?);
    Ok(kept)
}

/// Returns the path of a copy of the database saved at this time.
pub fn build_copy_path(path: &Path, now: DateTime<Utc>) -> PathBuf {
    add_timestamp(path, SAVED, now)
}

/// Lists the copies saved by the bot, the oldest first.
pub fn list_saved_copies(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.{SAVED}-");
    let is_nonempty = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&prefix).is_some_and(|time| time.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let entries = fs::read_dir(path.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut saved: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_ours(path) && is_nonempty(path)).collect();
    saved.sort();
    saved
}

fn add_timestamp(path: &Path, what: &str, now: DateTime<Utc>) -> PathBuf {
    add_ending(path, &format!(".{what}-{}", now.format("%Y%m%dT%H%M%SZ")))
}

/// Opens the database and creates the workspace if necessary.
///
/// # Errors
/// If the workspace or the database can't be used.
pub fn open_store(config: &Config) -> Result<Store, WakeError> {
    prepare_workspace(config)?;
    Ok(open_database(config)?)
}

/// Creates the workspace's directories, readable only by their owner. On a full disk this frees the reserved space, since even a lock and
/// an open database need some.
pub fn prepare_workspace(config: &Config) -> Result<(), WakeError> {
    let dir = &config.workspace_dir;
    if dir.is_dir() {
        disk::release_ballast(dir);
        return Ok(());
    }
    create_private_dirs(dir).map_err(|source| WakeError::Workspace { path: dir.clone(), source })
}
