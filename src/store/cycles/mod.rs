//! Cycles: their rows, journals, money, questions, and what became of the messages that they took up.

pub(in crate::store) mod approvals;
pub(in crate::store) mod claims;
pub(in crate::store) mod days;
pub(in crate::store) mod figures;
pub(in crate::store) mod journal;
pub(in crate::store) mod ledger;
pub(in crate::store) mod parked;
pub(in crate::store) mod proposals;
pub(in crate::store) mod rows;
pub(in crate::store) mod rules;
pub(in crate::store) mod status_lines;
pub(in crate::store) mod told;
pub(in crate::store) mod undo;
pub(in crate::store) mod undo_line;
