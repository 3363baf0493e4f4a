//! Long tasks, worked on step by step over days.

pub(crate) mod run;
