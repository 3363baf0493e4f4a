//! Which cycles are work that nobody waits for.

use reveille_base::types::OwnWork;
use reveille_memory::reflect::REFLECTION;
use reveille_store::NewCycle;

/// Whether a cycle is work that nobody waits for: it has no other reason then.
pub fn is_own_work(cycle: &NewCycle) -> bool {
    cycle.work.is_some() || is_reflection(cycle)
}

/// Whether a cycle has begun before its first turn: what the rules of a look back did stands then, and their question is asked; a job's
/// run is taken up. Neither is begun anew.
pub fn is_begun_by_rule(cycle: &NewCycle) -> bool {
    is_reflection(cycle) || matches!(cycle.work, Some(OwnWork::Job { .. }))
}

/// Whether a cycle is a look back. Those of earlier releases are known by their reason.
pub fn is_reflection(cycle: &NewCycle) -> bool {
    cycle.work == Some(OwnWork::Reflection)
        || matches!(cycle.reasons.as_slice(), [reason] if reason.starts_with(REFLECTION))
}
