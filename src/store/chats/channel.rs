//! The channels that messages come by and go out by, as rows name them.

/// What `channel` says of a terminal.
pub(in crate::store) const TERMINAL: &str = "terminal";
/// What `channel` says of Telegram.
pub(in crate::store) const TELEGRAM: &str = "telegram";
