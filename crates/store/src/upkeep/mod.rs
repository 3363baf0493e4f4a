//! Recurring upkeep: back-offs, handled reasons, and deletion of old data.

pub(crate) mod backoff;
pub(crate) mod breaker;
mod embedding;
pub(crate) mod forgetting;
pub(crate) mod reflecting;
pub(crate) mod retention;
