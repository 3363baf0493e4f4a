//! The check for due standing jobs. An empty check costs one or two queries, and one failed opening without jobs. The job files are read
//! only if the folder has changed since they were planned.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use chrono::{DateTime, Utc};

use reveille_base::{approval_text::hash_action, types::OwnWork};
use reveille_config::Config;
use reveille_memory::job::{JOBS_DIR, MAX_JOBS};
use reveille_store::{MessageTime, Store, StoreError};

use crate::{context::Context, decide::situation::DueWork, lease};

/// The key of the folder's signature at the last planning.
pub(crate) const PLANNED: &str = "jobs/planned";
/// The maximum number of folder entries read; entries beyond are no jobs.
const MAX_ENTRIES: usize = 4 * MAX_JOBS;

/// Returns `true` if a job is due or has changed, or a held message can be sent. Nothing is written.
pub(crate) fn is_due(store: &Store, context: Context<'_>) -> Result<bool, StoreError> {
    // A trial runs no jobs.
    Ok(context.stand_in.is_none() && is_any_due(store, context.config, context.clock.now())?)
}

/// The same check without a wake's context.
pub(crate) fn is_any_due(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let has_to_say = !is_quiet(config, now) && store.jobs().has_held_job_message()?;
    Ok(has_to_say || lease::is_on_duty(config) && (has_changed(store, config)? || store.jobs().has_due_job(now)?))
}

/// Returns `true` if the folder has changed since the jobs were planned.
fn has_changed(store: &Store, config: &Config) -> Result<bool, StoreError> {
    Ok(store.maintenance().find_handled_value(PLANNED)?.unwrap_or_default() != compute_signature(config))
}

/// Computes a signature of the folder: names, sizes and times of its files, and the time zone for their schedules. Empty without files.
pub(crate) fn compute_signature(config: &Config) -> String {
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
    hash_action(&format!("{}\n{}", config.timezone.name(), files.join("\n")))
}

/// Chooses when a message that nobody waits for is sent.
pub(crate) fn choose_message_time(config: &Config, now: DateTime<Utc>) -> MessageTime {
    if is_quiet(config, now) { MessageTime::AfterQuietHours } else { MessageTime::Now }
}

/// Returns `true` during quiet hours.
pub(crate) fn is_quiet(config: &Config, now: DateTime<Utc>) -> bool {
    config.quiet_hours.is_some_and(|hours| hours.contains(now.with_timezone(&config.timezone).time()))
}

/// Lists runs of standing jobs waiting for the model, in their order.
pub(crate) fn list_due_jobs(store: &Store) -> Result<Vec<DueWork>, StoreError> {
    let due = store.jobs().waiting_job_runs()?.into_iter().map(|run| DueWork {
        what: format!("the job {}", run.name),
        work: OwnWork::Job { name: run.name, run: run.id },
    });
    Ok(due.collect())
}
