//! What keeps a wake's stores in order beside its cycles: fetching and pushing, a person's edits, standing jobs, alarms, and forgetting.

pub(in crate::cycle) mod alarms;
pub(in crate::cycle) mod embed;
pub(in crate::cycle) mod index;
pub(in crate::cycle) mod jobs;
pub(in crate::cycle) mod ready;
pub(crate) mod retention;
pub(crate) mod sync;
pub(crate) mod trouble;
