//! Puts the repository and its files in order before a cycle begins, whatever a killed wake left behind.

use reveille_git::{Created, Repo, RepoError};
use reveille_memory::templates::list_files;
use reveille_store::UpkeepKind;

use crate::{
    context::{WakeError, WakeOutcome},
    decide::merge::merge_texts,
    maintain::{alarms, trouble},
    plan_file::{self, PlanFile},
    session::Session,
};

/// Completes the files and the index of a commit from a killed wake, because the memory is read from the files.
pub(crate) fn finish_interrupted_commit(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    match repo.finish_interrupted_move(&merge_texts) {
        Ok(_) => Ok(session.store.maintenance_mut().record_upkeep_recovery(UpkeepKind::Finish)?),
        // The lock is released soon; the next commit tries again.
        Err(RepoError::Locked { .. }) => Ok(()),
        Err(error @ RepoError::Behind { .. }) => trouble::report_unfinished_commit(session, &error),
        Err(error) => Err(error.into()),
    }
}

/// Removes the plan files of cycles killed before they were journalled or after their end, since no work of theirs is left. Plan files of
/// open cycles stay.
pub(crate) fn clear_plan_files(session: &mut Session<'_>) -> Result<(), WakeError> {
    let dir = &session.context.config.workspace_dir;
    let found = plan_file::left_over(dir).map_err(|source| WakeError::Workspace { path: dir.clone(), source })?;
    let open = session.store.cycles().open_cycles()?;
    for (_, cycle_id) in found {
        if !open.iter().any(|row| row.cycle.id == cycle_id) {
            session.remove_plan_file(&PlanFile::reopen(dir, &cycle_id));
        }
    }
    Ok(())
}

pub(crate) fn open_repo(session: &mut Session<'_>) -> Result<Repo, WakeError> {
    let config = session.context.config;
    let url = config.repo_url.as_ref().map(reveille_config::RepoUrl::expose);
    let (repo, created) = Repo::open_or_create(&config.repo_dir(), url, &list_files(), session.now())?;
    let how = match created {
        Created::Existing => return Ok(repo),
        Created::FromTemplates => "made from the templates",
        Created::Cloned => "cloned from REPO_URL",
        Created::ClonedEmpty => "made from the templates for the empty remote",
        Created::Unjoined(why) => {
            alarms::begin_without_remote(session, &why)?;
            "made from the templates"
        }
    };
    session.report.notes.push(format!("The memory at {} was {how}.", config.repo_dir().display()));
    session.report.outcome = WakeOutcome::Worked;
    Ok(repo)
}
