//! The decisions of initiative. Pure. It runs after everything else, and a rule ends it without a model if no candidate is worth it.

use reveille_base::types::OwnWork;

use crate::{
    background::initiative::words::{NO_MODEL, NOTHING},
    decide::{
        own_work::is_own_work,
        situation::{DueWork, Reason, Situation},
    },
};

/// Beginnings of sentences that propose something without a question mark.
const PROPOSES: [&str; 6] = ["shall i", "should i", "i suggest", "i propose", "i could", "would you like"];

/// Returns `true` if the model's last words propose something.
pub(crate) fn is_proposal(text: &str) -> bool {
    let lower = text.to_lowercase();
    text.contains('?') || PROPOSES.iter().any(|begin| lower.contains(begin))
}

/// Returns the reason that the due slot gives, if any.
pub(crate) fn find_reason(observed: &Situation) -> Option<Reason> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_no_proposal() {
        for text in ["Shall I sort them?", "I could call the bank for you.", "The tax is due. Want me to start?"] {
            assert!(is_proposal(text), "{text}");
        }
        for text in ["", "Nothing is worth their attention.", "I noted the next step."] {
            assert!(!is_proposal(text), "{text}");
        }
    }
}
