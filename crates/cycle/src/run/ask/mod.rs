//! Questions to people: about a call, and about a change of the assistant's own orders.

pub(crate) mod approve;
pub(crate) mod proposal;
