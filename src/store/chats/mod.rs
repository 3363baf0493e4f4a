//! The chats: their channels, groups that have another id now, stops, and what is chosen in them.

pub(in crate::store) mod channel;
pub(in crate::store) mod chosen;
pub(in crate::store) mod moved;
pub(in crate::store) mod stop;
