//! Intake, each in one transaction: a poll's batch, a terminal's message, and the orders in them.

pub(crate) mod batch;
pub(crate) mod orders;
pub(crate) mod poll;
pub(crate) mod reported;
mod restarts;
pub(crate) mod terminals;
pub(crate) mod typed;
