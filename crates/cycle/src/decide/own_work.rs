//! Tells background jobs from other cycles.

use reveille_base::types::OwnWork;
use reveille_memory::reflect::REFLECTION;
use reveille_store::NewCycle;

/// Returns `true` if a cycle is a background job. Such a cycle has no other reason.
pub fn is_own_work(cycle: &NewCycle) -> bool {
    cycle.work.is_some() || is_reflection(cycle)
}

/// Returns `true` if the cycle counts as started before its first turn, so that it isn't started again: a reflection's rules have done
/// their part and asked their question, and a job's run is claimed.
pub fn is_begun_by_rule(cycle: &NewCycle) -> bool {
    is_reflection(cycle) || matches!(cycle.work, Some(OwnWork::Job { .. }))
}

/// Returns `true` if a cycle is a reflection. Those of earlier releases are recognised by their reason.
pub fn is_reflection(cycle: &NewCycle) -> bool {
    cycle.work == Some(OwnWork::Reflection)
        || matches!(cycle.reasons.as_slice(), [reason] if reason.starts_with(REFLECTION))
}
