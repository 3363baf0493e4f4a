//! Reflection: summing up the day, nightly.

pub(crate) mod decide;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod words;
