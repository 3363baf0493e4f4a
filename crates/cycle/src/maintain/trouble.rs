//! Lasting failures of the repository or the files. No other notice would mention them, so the owner gets a message by rule, once a day.
//! Earlier answers are still delivered.

use reveille_base::disk;
use reveille_git::RepoError;
use reveille_store::UpkeepKind;

use crate::{context::WakeError, maintain::sync, session::Session};

/// The number of consecutive failed wakes before the owner is told, since the first failure may be temporary.
const TELL_AFTER: u32 = 3;

/// Records the error that ended this wake, if any: in its cycle, and in the chat after several failed wakes. On a full disk even this may
/// fail, but nothing depends on it: the cycle is resumed anyway and its tries aren't counted.
pub(crate) async fn note_trouble(session: &mut Session<'_>, error: Option<&WakeError>) {
    let noted = match error {
        Some(error) => note_error(session, error).await,
        None => {
            session.store.maintenance_mut().record_upkeep_recovery(UpkeepKind::Repository).map_err(WakeError::Store)
        }
    };
    if let Err(error) = noted {
        tracing::debug!(%error, "the wake's outcome could not be recorded");
    }
}

async fn note_error(session: &mut Session<'_>, error: &WakeError) -> Result<(), WakeError> {
    let why = session.context.redactor.redact(&error.to_string());
    if let Some(cycle_id) = &session.report.cycle_id {
        session.store.cycles_mut().note_trouble(cycle_id, &why)?;
    }
    if is_persons(error) {
        count_trouble(session, &why)?;
        sync::deliver(session).await?;
    }
    Ok(())
}

fn count_trouble(session: &mut Session<'_>, why: &str) -> Result<(), WakeError> {
    let now = session.now();
    if session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Repository, why, None)?.failures < TELL_AFTER {
        return Ok(());
    }
    let text = format!(
        "I can't answer just now, because I can't use my memory: {why}. Your messages are safe, and I'll keep trying. To see what to do, \
         run `health check` on my machine."
    );
    let today = now.with_timezone(&session.context.config.timezone).date_naive();
    session.alarm(&format!("memory/{today}"), text).map(drop)
}

/// Reports that a commit still lacks a file here. This wake's changes are parked; answers don't need that file.
pub(crate) fn report_unfinished_commit(session: &mut Session<'_>, error: &RepoError) -> Result<(), WakeError> {
    let (why, now) = (session.context.redactor.redact(&error.to_string()), session.now());
    tracing::warn!(%why, "a commit could not be finished");
    session.report.notes.push(why.clone());
    session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Finish, &why, None)?;
    let text = format!(
        "I can't write to a file of my memory: {why}. Nothing is lost, and I can still answer. I keep what I write separately, and I'll \
         bring it in once the file can be written."
    );
    let today = now.with_timezone(&session.context.config.timezone).date_naive();
    session.alarm(&format!("behind/{today}"), text).map(drop)
}

/// Returns `true` if a person has to solve the problem.
fn is_persons(error: &WakeError) -> bool {
    match error {
        WakeError::Repo(error) => !error.is_machine_fault(),
        WakeError::Workspace { source, .. } => !disk::is_machine_fault(source),
        WakeError::Store(_) | WakeError::Lock(_) | WakeError::Model(_) | WakeError::NoRandomness(_) => false,
    }
}
