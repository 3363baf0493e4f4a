//! The chats: their channels, groups that have another id now, and stops.

pub(in crate::store) mod channel;
pub(in crate::store) mod moved;
pub(in crate::store) mod stop;
