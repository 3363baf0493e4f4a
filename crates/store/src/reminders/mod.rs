//! Reminders, their firings, and what people answer to them and to nudges.

pub(crate) mod answered;
pub(crate) mod nudged;
pub(crate) mod rows;
