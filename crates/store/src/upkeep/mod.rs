//! What is done again after a while: back-offs, what is handled, and what is forgotten.

pub(crate) mod backoff;
pub(crate) mod breaker;
mod embedding;
pub(crate) mod forgetting;
pub(crate) mod reflecting;
pub(crate) mod retention;
