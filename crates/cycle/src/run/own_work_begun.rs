//! What each kind of own work gives its cycle to begin with.

use super::deeds::Deeds;

/// What a cycle of own work begins with.
#[derive(Default)]
pub(crate) struct Begun {
    /// A block of the opening.
    pub(crate) block: String,
    /// What is done by rule before the model is asked.
    pub(crate) rule: Deeds,
    /// Whose words the block holds, where they aren't the memory's.
    pub(crate) taint: Option<String>,
    /// Words that call for tools, besides the reason's.
    pub(crate) words: String,
}
