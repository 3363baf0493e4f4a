//! What is done again after a while: back-offs, what is handled, and what is forgotten.

pub(in crate::store) mod backoff;
pub(in crate::store) mod breaker;
mod embedding;
pub(in crate::store) mod forgetting;
pub(in crate::store) mod reflecting;
pub(in crate::store) mod retention;
