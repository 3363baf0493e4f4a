//! The start of a background job's cycle.

use crate::run::record::effects::RuleEffects;

/// The parts that a background job adds to the start of its cycle.
#[derive(Default)]
pub(crate) struct StartedJob {
    /// A block of the opening.
    pub(crate) block: String,
    /// The effects by rule before the model is asked.
    pub(crate) rule: RuleEffects,
    /// The origin of the block's untrusted text, if any.
    pub(crate) taint: Option<String>,
    /// Words for the choice of tools, besides the reason's.
    pub(crate) words: String,
}
