//! Retention: deletes old records after `KEEP_DAYS`, about once a day, when no person waits for an answer. This module decides when;
//! [`reveille_store`] decides which rows, and `files` which logs and voice files.
//!
//! Under a clock that has leapt ahead everything looks old. After a large jump since the last round, nothing is deleted until the clock has
//! kept its new course for an hour.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use reveille_config::Config;
use reveille_sandbox::exec::copies::Copies;
use reveille_store::UpkeepKind;

use crate::{
    context::WakeError,
    look::retention::{RetentionTurn, WATCHED, choose_turn, files, find_cutoff, is_due},
    session::Session,
};

/// The maximum number of rows per transaction, so that a new message waits only for milliseconds.
const BATCH_ROWS: u32 = 200;
/// The pause between two transactions, for other writers.
const PAUSE: Duration = Duration::from_millis(20);
/// The time after which no new batch starts. The next wake continues.
const BOUND: Duration = Duration::from_secs(5);

/// How long content purged from the history is kept.
const PURGED_KEPT: TimeDelta = TimeDelta::days(7);

/// Deletes purged content after its time, whatever `KEEP_DAYS` says.
fn delete_purged(config: &Config, now: DateTime<Utc>) {
    let Ok(entries) = std::fs::read_dir(config.purged_dir()) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        // Each name begins with its time, including a second file of the same second, a note, or the lock of a killed git.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok((made, _)) = NaiveDateTime::parse_and_remainder(name, "%Y%m%dT%H%M%SZ") else { continue };
        if now - made.and_utc() > PURGED_KEPT
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(%error, "{} could not be removed; a later wake tries again", path.display());
        }
    }
}

/// Deletes old records if a round is due. Returns `true` if anything was deleted. Ends early for new work or after a time limit; the next
/// wake continues.
pub(crate) async fn forget_old(session: &mut Session<'_>) -> Result<bool, WakeError> {
    delete_purged(session.context.config, session.now());
    let (Some(before), true) = (find_cutoff(session.context), is_due(&session.store, session.context)?) else {
        return Ok(false);
    };
    if *session.context.stop.borrow() {
        return Ok(false);
    }
    let now = session.now();
    if choose_turn(&session.store.maintenance().read_upkeep(UpkeepKind::Retention)?, now) == RetentionTurn::Watch {
        let why = "the clock has jumped ahead: nothing is deleted until it has kept the new time for a while";
        session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Retention, why, Some(WATCHED))?;
        return Ok(false);
    }
    let (begun, last_message) = (tokio::time::Instant::now(), session.store.retention().last_message()?);
    let mut rows = 0;
    loop {
        let n = session.store.retention_mut().delete_old_rows(before, BATCH_ROWS)?;
        rows += n;
        if n == 0 {
            break;
        }
        let is_wanted = *session.context.stop.borrow() || session.store.retention().last_message()? != last_message;
        if is_wanted || begun.elapsed() >= BOUND {
            tracing::info!(rows, "deleted some old records; a later wake continues");
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let chores = files::list_chores(session.context.config, &session.store, before, now)?;
    let n_files = chores.len();
    // Rows first: an unnamed file is deleted another day, but a row that names a missing file would mislead.
    let removed: Vec<String> =
        chores.iter().filter_map(|chore| chore.find_file_to_remove(&session.context.config.workspace_dir)).collect();
    if !removed.is_empty() {
        session.store.attachments_mut().forget_files(&removed)?;
    }
    for chore in chores {
        if let Err(error) = chore.run() {
            tracing::warn!(%error, "{} could not be cleared up; a wake tries again tomorrow", chore.path().display());
        }
    }
    let n_copies = Copies::from_config(session.context.config).forget_old(now, 0).unwrap_or_else(|error| {
        tracing::warn!(%error, "an old copy could not be removed; a wake tries again tomorrow");
        0
    });
    session.store.maintenance_mut().upkeep_ok(UpkeepKind::Retention)?;
    tracing::info!(rows, files = n_files, copies = n_copies, "forgot what is old");
    Ok(rows > 0 || n_files > 0 || n_copies > 0)
}
