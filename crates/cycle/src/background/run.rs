//! A background job in its cycle: the start, the allowed tools, the limits and the conclusion. This module only dispatches; each kind of
//! job has a module of its own.

use reveille_base::types::OwnWork;
use reveille_git::Repo;
use reveille_store::NewCycle;
use reveille_tools::{Assignment, Documents};

use crate::background::{initiative, jobs, reflection, steps};
use crate::{
    background::begun::StartedJob,
    context::WakeError,
    decide::{orient, situation::Reason},
    session::{Live, Session},
};

/// Prepares the start of a background job. The result is empty if the cycle is no background job.
pub(crate) fn begin(
    session: &Session<'_>,
    repo: &Repo,
    cycle: &NewCycle,
    reasons: &[Reason],
) -> Result<StartedJob, WakeError> {
    match (reasons, &cycle.work) {
        ([Reason::Reflection { from, until, .. }], _) => {
            let days = *from..*until;
            let (rule, found) = reflection::run::apply_rules(session, repo, cycle, &days)?;
            Ok(StartedJob {
                block: reflection::run::build_block(session, repo, &days, &found)?,
                rule,
                ..StartedJob::default()
            })
        }
        (_, Some(OwnWork::Step { plan, step, .. })) => steps::run::begin(session, repo, plan, *step),
        (_, Some(OwnWork::Initiative { .. })) => initiative::run::begin(session, repo),
        (_, Some(OwnWork::Job { name, run })) => jobs::run::begin(session, repo, name, *run),
        _ => Ok(StartedJob::default()),
    }
}

/// Returns the assignment of a cycle's tools. `None` if the cycle is no background job.
pub(crate) fn find_assignment(
    repo: &Repo,
    cycle: &NewCycle,
    documents: &Documents,
) -> Result<Option<Assignment>, WakeError> {
    if orient::is_reflection(cycle) {
        return Ok(Some(Assignment::Reflection(reflection::run::collect_hand_edits(repo)?)));
    }
    Ok(match &cycle.work {
        Some(OwnWork::Step { plan, step, .. }) => Some(steps::run::build_assignment(plan, *step)),
        Some(OwnWork::Job { name, .. }) => Some(jobs::run::build_assignment(documents, name)),
        Some(OwnWork::Initiative { slot }) => Some(Assignment::Initiative { slot: slot.clone() }),
        Some(OwnWork::Reflection) | None => None,
    })
}

/// Returns `true` if the model gets no further request, because it has reported its result or the budget is spent. One request may exceed
/// the budget; none starts afterwards.
pub(crate) fn is_over(session: &Session<'_>, live: &Live) -> Result<bool, WakeError> {
    match &live.cycle.work {
        Some(OwnWork::Step { plan, .. }) => steps::run::is_over(session, live, plan),
        Some(OwnWork::Initiative { .. }) => initiative::run::is_over(session, live),
        Some(OwnWork::Job { name, .. }) => jobs::run::is_over(session, live, name),
        _ => Ok(false),
    }
}

/// Returns the text that asks the model for what is missing before its work can end. `None` if nothing is missing.
pub(crate) fn find_missing_report(live: &Live) -> Option<&'static str> {
    match &live.cycle.work {
        Some(OwnWork::Step { .. }) => steps::run::find_missing_report(live),
        _ => None,
    }
}

/// Concludes the work before the commit, once the model is done: records and reports.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    match live.cycle.work.clone() {
        Some(OwnWork::Step { plan, step, .. }) => steps::run::conclude(session, live, &plan, step),
        Some(OwnWork::Job { name, run }) => jobs::run::conclude(session, live, &name, run),
        Some(OwnWork::Initiative { .. }) => initiative::run::conclude(session, live),
        _ => Ok(()),
    }
}
