//! Recordings: what finished cycles did for what they were asked, as examples for similar requests.

pub(super) mod rows;
