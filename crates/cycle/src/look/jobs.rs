//! Whether something of the standing jobs is to be looked at. A look that finds nothing costs a query or two, and one failed opening
//! where there are no jobs: their files are read only when the folder doesn't look as it did when they were planned.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use chrono::{DateTime, Utc};

use reveille_base::approval_text::sha256;
use reveille_config::Config;
use reveille_memory::job::{JOBS_DIR, MAX_JOBS};
use reveille_store::{Store, StoreError};

use crate::{context::Context, lease};

/// Under this key stands what the folder looked like when the jobs were planned.
pub(crate) const PLANNED: &str = "jobs/planned";
/// Entries of the folder that are looked at: what lies beyond is no job.
const MAX_ENTRIES: usize = 4 * MAX_JOBS;

/// Whether a job is due, or was written, or something waits to be said. Nothing is written.
pub(crate) fn is_due(store: &Store, context: Context<'_>) -> Result<bool, StoreError> {
    // Where nothing may happen, nothing is looked at.
    Ok(context.stand_in.is_none() && is_any_due(store, context.config, context.clock.now())?)
}

/// The same for those who only look.
pub(crate) fn is_any_due(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let has_to_say = !is_quiet(config, now) && store.has_held_job_message()?;
    Ok(has_to_say || lease::is_on_duty(config) && (has_changed(store, config)? || store.has_due_job(now)?))
}

/// Whether the folder doesn't look as it did when the jobs were planned.
fn has_changed(store: &Store, config: &Config) -> Result<bool, StoreError> {
    Ok(store.handled(PLANNED)?.unwrap_or_default() != sign(config))
}

/// What the folder looks like: names, sizes and times of its files, and the zone that their times are read in; empty where there is
/// none.
pub(crate) fn sign(config: &Config) -> String {
    let Ok(entries) = fs::read_dir(config.repo_dir().join(JOBS_DIR)) else { return String::new() };
    let mut files: Vec<String> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let found = entry.metadata().ok()?;
            let (name, times) = (entry.file_name(), (found.mtime(), found.mtime_nsec()));
            Some(format!("{} {} {}.{}", Path::new(&name).display(), found.len(), times.0, times.1))
        })
        .collect();
    if files.is_empty() {
        return String::new();
    }
    files.sort();
    sha256(&format!("{}\n{}", config.timezone.name(), files.join("\n")))
}

/// Whether nothing is said unasked now.
pub(crate) fn is_quiet(config: &Config, now: DateTime<Utc>) -> bool {
    config.quiet_hours.is_some_and(|hours| hours.contains(now.with_timezone(&config.timezone).time()))
}
