//! The chats: channels, groups with a new id, stop orders, chats kept on this machine, and settings chosen in chats.

pub(crate) mod channel;
pub(crate) mod chosen;
pub(crate) mod local;
pub(crate) mod moved;
pub(crate) mod stop;
