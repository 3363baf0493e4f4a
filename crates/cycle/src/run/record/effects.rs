//! The effects of rules, collected before they are journalled.

use reveille_store::Change;

/// The effects of the rules for a cycle's reasons.
#[derive(Debug, Default)]
pub(crate) struct RuleEffects {
    pub(crate) changes: Vec<Change>,
    /// The descriptions of the effects, in the past tense.
    pub(crate) receipts: Vec<String>,
    /// Keys to be marked as handled at the cycle's end.
    pub(crate) handles: Vec<String>,
}

impl RuleEffects {
    /// Adds further effects.
    pub(crate) fn merge(mut self, further: Self) -> Self {
        self.changes.extend(further.changes);
        self.receipts.extend(further.receipts);
        self.handles.extend(further.handles);
        self
    }

    /// Builds effects without changes, only with notes.
    pub(crate) fn from_receipts(receipts: Vec<String>) -> Self {
        Self { receipts, ..Self::default() }
    }
}
