//! Reminders, their firings, and what people answer to them and to nudges.

pub(in crate::store) mod answered;
pub(in crate::store) mod nudged;
pub(in crate::store) mod rows;
