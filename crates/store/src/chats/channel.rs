//! The channels that messages come by and go out by, as rows name them.

use reveille_base::types::ChannelKind;

/// What `channel` says of a terminal.
pub(crate) const TERMINAL: &str = ChannelKind::Terminal.name();
/// What `channel` says of Telegram.
pub(crate) const TELEGRAM: &str = ChannelKind::Telegram.name();
