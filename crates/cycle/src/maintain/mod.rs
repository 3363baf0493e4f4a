//! What keeps a wake's stores in order beside its cycles: fetching and pushing, a person's edits, standing jobs, alarms, and forgetting.

pub(crate) mod alarms;
pub(crate) mod embed;
pub(crate) mod index;
pub(crate) mod jobs;
pub(crate) mod ready;
pub(crate) mod retention;
pub(crate) mod sync;
pub(crate) mod trouble;
