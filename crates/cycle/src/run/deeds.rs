//! What was done without a model, gathered until it is journalled.

use reveille_store::Change;

/// What rules make of the reasons of a cycle.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    pub(crate) changes: Vec<Change>,
    /// What happens by them, in the past tense.
    pub(crate) receipts: Vec<String>,
    /// Keys of what is done once, which are written with the cycle's end.
    pub(crate) handles: Vec<String>,
}

impl Deeds {
    /// With what further rules make of them.
    pub(crate) fn and(mut self, further: Self) -> Self {
        self.changes.extend(further.changes);
        self.receipts.extend(further.receipts);
        self.handles.extend(further.handles);
        self
    }

    /// Nothing changes; it is noted alone.
    pub(crate) fn noted(receipts: Vec<String>) -> Self {
        Self { receipts, ..Self::default() }
    }
}
