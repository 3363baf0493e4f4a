//! Initiative: a search for useful unasked work, after everything else. A rule alone decides if no candidate is worth it.

use reveille_base::types::OwnWork;

use crate::decide::{
    orient::own_work::is_own_work,
    situation::{DueWork, Reason, Situation},
};

/// The note for a slot without an available model.
const NO_MODEL: &str = "no AI model was available, so this time is skipped";
/// The note for a slot without a worthy candidate.
const NOTHING: &str = "nothing was worth it";

/// Returns the reason of the due slot.
pub(super) fn find_reason(observed: &Situation) -> Option<Reason> {
    let due = observed.initiative.as_ref()?;
    let is_under_way = |work: &Option<OwnWork>| matches!(work, Some(OwnWork::Initiative { .. }));
    // Without any model for it there is nothing to miss.
    let has_model = observed.model.is_thinking() || observed.model.reflect.is_some();
    if !has_model || observed.open_cycles.iter().any(|row| is_own_work(&row.cycle) && is_under_way(&row.cycle.work)) {
        return None;
    }
    let work = DueWork { work: due.slot.background_job(), what: due.describe() };
    let passed =
        |why: &str| Reason::InitiativePassed { told: format!("{why}: {}", due.weighed.describe()), key: work.key() };
    match (due.weighed.worthy_candidates().is_empty(), observed.model.for_reflection()) {
        (true, _) => Some(passed(NOTHING)),
        (false, Some(_)) => Some(Reason::Own { due: work }),
        (false, None) => due.slot.is_ending.then(|| passed(NO_MODEL)),
    }
}
