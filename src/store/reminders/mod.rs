//! Reminders and their firings.

pub(in crate::store) mod rows;
