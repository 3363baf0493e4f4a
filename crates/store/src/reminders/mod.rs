//! Reminders, their firings, and the answers to reminders and nudges.

pub(crate) mod answered;
pub(crate) mod nudged;
pub(crate) mod rows;
