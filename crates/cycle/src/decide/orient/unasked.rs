//! Initiative: a search for useful unasked work, after everything else. If no candidate is worth it, a rule ends the search without a
//! model.

use reveille_base::types::OwnWork;

use crate::decide::{
    orient::own_work::is_own_work,
    situation::{DueWork, Reason, Situation},
};

/// The note for a slot without an available model.
const NO_MODEL: &str = "no AI model was available, so this time is skipped";
/// The note for a slot without a worthy candidate.
const NOTHING: &str = "nothing was worth it";

/// Returns the reason that the due slot gives, if any.
pub(super) fn find_reason(observed: &Situation) -> Option<Reason> {
    let due = observed.initiative.as_ref()?;
    let is_under_way = |work: &Option<OwnWork>| matches!(work, Some(OwnWork::Initiative { .. }));
    // If no model is set up for it, no slot counts as missed.
    let has_model = observed.model.is_thinking() || observed.model.reflect.is_some();
    if !has_model || observed.open_cycles.iter().any(|row| is_own_work(&row.cycle) && is_under_way(&row.cycle.work)) {
        return None;
    }
    let work = DueWork { work: due.slot.background_job(), what: due.describe() };
    let passed =
        |why: &str| Reason::InitiativePassed { told: format!("{why}: {}", due.weighed.describe()), key: work.key() };
    match (due.weighed.worthwhile_candidates().is_empty(), observed.model.for_reflection()) {
        (true, _) => Some(passed(NOTHING)),
        (false, Some(_)) => Some(Reason::Own { due: work }),
        (false, None) => due.slot.is_ending.then(|| passed(NO_MODEL)),
    }
}
