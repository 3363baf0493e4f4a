//! The lasting effects of an unfinished cycle, which a later cycle must not repeat.

use reveille_base::types::Effect;
use reveille_policy as policy;
use reveille_store::Entry;
use reveille_tools::Registry;

/// Tools of our own stores with an effect that outlives a cycle that is given up. Tools that act elsewhere are recognised by their declared
/// effect.
const LASTING_TOOLS: [&str; 7] =
    ["reply", "tell", "reminder_set", "reminder_move", "reminder_done", "brain_revert", "undo_last"];

/// Lists the receipts of lasting effects. A call that acts outside our stores lasts, unless it was judged safe, since a safe command only
/// changes the scratch folder.
pub(crate) fn list_lasting_receipts<'j>(journal: &'j [Entry], registry: &Registry) -> Vec<&'j str> {
    let is_safe = |call: &str| {
        journal.iter().any(|entry| match entry {
            Entry::Judged { call: judged, verdict } => judged == call && verdict.risk == policy::Risk::Safe,
            _ => false,
        })
    };
    let lasts = |name: &str, call: &str| {
        let acts_once = registry.get(name).is_none_or(|tool| tool.effect == Effect::Once);
        LASTING_TOOLS.contains(&name) || acts_once && !is_safe(call)
    };
    let receipt = |entry: &'j Entry| match entry {
        Entry::Outcome { call, name, is_error: false, receipt, .. } if lasts(name, call) => receipt.as_deref(),
        Entry::Answered { receipt, .. } => Some(receipt.as_str()),
        _ => None,
    };
    journal.iter().filter_map(receipt).collect()
}
