//! The decision to reflect. Pure.

use chrono::NaiveDate;

use reveille_store::REFLECTED;

use crate::decide::{
    lineup::ModelState,
    own_work::is_reflection,
    situation::{Reason, Situation},
};

/// Returns `true` if no configured model could reflect.
pub(crate) fn reflects_by_rule(model: &ModelState) -> bool {
    !model.is_thinking() && model.reflect.is_none()
}

/// The key marking a day's reflection as handled.
fn format_key(today: NaiveDate) -> String {
    format!("{REFLECTED}{today}")
}

/// Returns the due reflection. Reflection runs only if nothing else is due and no reflection is open.
pub(crate) fn find_reason(observed: &Situation) -> Option<Reason> {
    if observed.open_cycles.iter().any(|row| is_reflection(&row.cycle)) {
        return None;
    }
    let days = observed.to_reflect.clone()?;
    let key = format_key(days.end);
    (!observed.handled.contains(&key)).then_some(Reason::Reflection { from: days.start, until: days.end, key })
}
