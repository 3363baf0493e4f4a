//! Work of its own in its cycle: what it begins with, what its tools may do, what bounds it, and what is left to be said at its end. One
//! place for all kinds; each has a file of its own.

use reveille_base::types::OwnWork;
use reveille_git::Repo;
use reveille_store::NewCycle;
use reveille_tools::{Assignment, Documents};

use super::{initiative, job, plan_step, reflect};
use crate::{
    context::WakeError,
    decide::{orient, situation::Reason},
    run::own_work_begun::Begun,
    session::{Live, Session},
};

/// Prepares what these reasons are about; nothing, where they are no own work.
pub(crate) fn begin(
    session: &Session<'_>,
    repo: &Repo,
    cycle: &NewCycle,
    reasons: &[Reason],
) -> Result<Begun, WakeError> {
    match (reasons, &cycle.work) {
        ([Reason::Reflection { from, until, .. }], _) => {
            let days = *from..*until;
            let (rule, found) = reflect::by_rule(session, repo, cycle, &days)?;
            Ok(Begun { block: reflect::shown(session, repo, &days, &found)?, rule, ..Begun::default() })
        }
        (_, Some(OwnWork::Step { plan, step, .. })) => plan_step::begin(session, repo, plan, *step),
        (_, Some(OwnWork::Initiative { .. })) => initiative::begin(session, repo),
        (_, Some(OwnWork::Job { name, run })) => job::begin(session, repo, name, *run),
        _ => Ok(Begun::default()),
    }
}

/// What a cycle's tools may do; none: it is no own work.
pub(crate) fn assignment(
    repo: &Repo,
    cycle: &NewCycle,
    documents: &Documents,
) -> Result<Option<Assignment>, WakeError> {
    if orient::is_reflection(cycle) {
        return Ok(Some(Assignment::Reflection(reflect::by_hand(repo)?)));
    }
    Ok(match &cycle.work {
        Some(OwnWork::Step { plan, step, .. }) => Some(plan_step::assignment(plan, *step)),
        Some(OwnWork::Job { name, .. }) => Some(job::assignment(documents, name)),
        Some(OwnWork::Initiative { slot }) => Some(Assignment::Initiative { slot: slot.clone() }),
        Some(OwnWork::Reflection) | None => None,
    })
}

/// Whether nothing more is to be asked of the model: it has said what came of its work, or what the work may cost is spent. One request
/// can pass that bound; none is begun after it.
pub(crate) fn is_over(session: &Session<'_>, live: &Live) -> Result<bool, WakeError> {
    match &live.cycle.work {
        Some(OwnWork::Step { plan, .. }) => plan_step::is_over(session, live, plan),
        Some(OwnWork::Initiative { .. }) => initiative::is_over(session, live),
        Some(OwnWork::Job { name, .. }) => job::is_over(session, live, name),
        _ => Ok(false),
    }
}

/// What the model is asked for before its work can end; none: nothing is missing.
pub(crate) fn is_missing(live: &Live) -> Option<&'static str> {
    match &live.cycle.work {
        Some(OwnWork::Step { .. }) => plan_step::is_missing(live),
        _ => None,
    }
}

/// Once the model has nothing more to do, before the commit: what is left to be written down and told.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    match live.cycle.work.clone() {
        Some(OwnWork::Step { plan, step, .. }) => plan_step::conclude(session, live, &plan, step),
        Some(OwnWork::Job { name, run }) => job::conclude(session, live, &name, run),
        Some(OwnWork::Initiative { .. }) => initiative::conclude(session, live),
        _ => Ok(()),
    }
}
