//! Recordings: the work of finished cycles, as examples for similar requests.

pub(super) mod rows;
