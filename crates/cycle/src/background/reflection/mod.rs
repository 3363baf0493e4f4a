//! Reflection: summing up the day, nightly.

pub(crate) mod look;
pub(crate) mod run;
