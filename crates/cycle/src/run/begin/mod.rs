//! The beginning of a cycle: its world and first message, or what an interrupted one left.

pub(crate) mod attached;
pub(crate) mod given_up;
pub(crate) mod interrupted;
pub(crate) mod live;
pub(crate) mod prepare;
pub(crate) mod recall;
pub(crate) mod resume;
