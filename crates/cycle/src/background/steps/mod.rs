//! Long tasks, worked on step by step over days.

pub(crate) mod decide;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod words;
