//! The chats: their channels, groups that have another id now, stops, which are kept here, and what is chosen in them.

pub(in crate::store) mod channel;
pub(in crate::store) mod chosen;
pub(in crate::store) mod local;
pub(in crate::store) mod moved;
pub(in crate::store) mod stop;
