//! The names of channels in rows.

use reveille_base::types::ChannelKind;

/// The terminal's name in a `channel` column.
pub(crate) const TERMINAL: &str = ChannelKind::Terminal.name();
/// Telegram's name in a `channel` column.
pub(crate) const TELEGRAM: &str = ChannelKind::Telegram.name();
