//! What each kind of own work gives its cycle to begin with.

use super::deeds::Deeds;

/// What a cycle of own work begins with.
#[derive(Default)]
pub(in crate::cycle) struct Begun {
    /// A block of the opening.
    pub(in crate::cycle) block: String,
    /// What is done by rule before the model is asked.
    pub(in crate::cycle) rule: Deeds,
    /// Whose words the block holds, where they aren't the memory's.
    pub(in crate::cycle) taint: Option<String>,
    /// Words that call for tools, besides the reason's.
    pub(in crate::cycle) words: String,
}
