//! What comes in by one transaction: a poll's batch, a terminal's message, and the orders among them.

pub(in crate::store) mod batch;
pub(in crate::store) mod orders;
pub(in crate::store) mod poll;
pub(in crate::store) mod reported;
mod restarts;
pub(in crate::store) mod terminals;
pub(in crate::store) mod typed;
