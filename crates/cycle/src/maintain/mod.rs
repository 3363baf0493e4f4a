//! The upkeep around a wake's cycles: fetching and pushing, a person's edits, standing jobs, alarms, and deleting old records.

pub(crate) mod alarms;
pub(crate) mod embed;
pub(crate) mod index;
pub(crate) mod ready;
pub(crate) mod retention;
pub(crate) mod sync;
pub(crate) mod trouble;
