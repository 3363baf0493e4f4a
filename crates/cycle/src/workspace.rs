//! That the database is there where it was before: one that has vanished beside a memory in which wakes have worked is never replaced in
//! silence, since what was queued, set and spent stood in it.

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

/// What a copy is called that the bot has saved.
const SAVED: &str = "recovered";
/// What is called so that was in the way of a new one.
const OLD: &str = "old";

/// Opens the database, or makes it where no wake has worked yet.
///
/// # Errors
/// The store's; [`StoreError::Gone`] where it has vanished.
pub fn open(config: &Config) -> Result<Store, StoreError> {
    check(config)?;
    database::open(config)
}

/// An error when the database is gone or empty though wakes have worked here.
///
/// # Errors
/// [`StoreError::Gone`]; of a shared one also that it can't be asked.
pub fn check(config: &Config) -> Result<(), StoreError> {
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
    Err(StoreError::Gone { is_empty, saved: saved(&path).pop(), path })
}

/// A shared one is empty where it isn't the one that was worked with.
fn check_shared(config: &Config) -> Result<(), StoreError> {
    match repo::has_wakes(&config.repo_dir()) && database::look(config)?.is_none() {
        true => {
            let path = PathBuf::from(config.database_url.as_deref().unwrap_or_default());
            Err(StoreError::Gone { is_empty: true, saved: None, path })
        }
        false => Ok(()),
    }
}

/// Begins a new database where the old one is gone. What is left of that goes aside. Says where to, if anything was left.
///
/// # Errors
/// The store's, and the file system's as one of these.
pub fn begin_anew(config: &Config, now: DateTime<Utc>) -> Result<Vec<PathBuf>, StoreError> {
    if config.database_url.is_some() {
        return database::open(config).map(|_| Vec::new());
    }
    let path = config.db_path();
    let aside = named(&path, OLD, now);
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

/// Where a copy of the database is saved at this time.
pub fn saved_at(path: &Path, now: DateTime<Utc>) -> PathBuf {
    named(path, SAVED, now)
}

/// Copies that the bot has saved, the oldest first.
pub fn saved(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.{SAVED}-");
    let is_whole = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&prefix).is_some_and(|time| time.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let entries = fs::read_dir(path.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut saved: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_ours(path) && is_whole(path)).collect();
    saved.sort();
    saved
}

fn named(path: &Path, what: &str, now: DateTime<Utc>) -> PathBuf {
    add_ending(path, &format!(".{what}-{}", now.format("%Y%m%dT%H%M%SZ")))
}

/// Opens the database, in a workspace that is made if need be.
///
/// # Errors
/// When the workspace or the database can't be used.
pub fn open_store(config: &Config) -> Result<Store, WakeError> {
    prepare_workspace(config)?;
    Ok(open(config)?)
}

/// Makes the workspace's directories, readable by their owner alone. On a full disk the room that was kept for a last word is used now: even
/// a lock and an open database take some.
pub fn prepare_workspace(config: &Config) -> Result<(), WakeError> {
    let dir = &config.workspace_dir;
    if dir.is_dir() {
        disk::release_ballast(dir);
        return Ok(());
    }
    create_private_dirs(dir).map_err(|source| WakeError::Workspace { path: dir.clone(), source })
}
