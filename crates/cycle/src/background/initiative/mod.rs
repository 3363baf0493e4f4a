//! Initiative: unasked help by written rules.

pub(crate) mod decide;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod slot;
pub(crate) mod words;
