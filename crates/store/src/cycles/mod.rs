//! Cycles: their rows, journals, money and questions, and the outcomes of the messages they claimed.

pub(crate) mod approvals;
pub(crate) mod claims;
pub(crate) mod days;
pub(crate) mod figures;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod parked;
pub(crate) mod proposals;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod status_lines;
pub(crate) mod told;
pub(crate) mod undo;
pub(crate) mod undo_line;
