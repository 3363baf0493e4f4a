//! Reminders, their firings, and what people answer to them.

pub(in crate::store) mod answered;
pub(in crate::store) mod rows;
