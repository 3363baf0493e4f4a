//! Reports that the bot works, once Telegram has answered or turned out to be unreachable. An upgrade waits for this
//! (`cli/install`).

use reveille_base::process::Identity;
use reveille_store::{BotReport, Store};

use super::BotContext;

/// Tells if the bot has reached Telegram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TelegramContact {
    Reached,
    Unreachable,
}

/// Records that this bot works and whether it has reached Telegram.
pub(super) fn record_report(store: &mut Store, outside: BotContext<'_>, contact: TelegramContact) {
    let has_reached = contact == TelegramContact::Reached;
    let report = BotReport { bot: Identity::current(), version: crate::VERSION.to_owned(), has_reached };
    if let Err(error) = store.maintenance_mut().save_bot_report(outside.telegram.bot_id(), &report) {
        tracing::debug!(%error, "the bot's report can't be stored");
    }
}
