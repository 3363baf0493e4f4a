//! The chats: their channels, groups that have another id now, stops, which are kept here, and what is chosen in them.

pub(crate) mod channel;
pub(crate) mod chosen;
pub(crate) mod local;
pub(crate) mod moved;
pub(crate) mod stop;
