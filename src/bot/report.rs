//! The bot reports in once it works: on the database as it is, and with Telegram's first answer. An upgrade waits for that (`cli/install`).

use reveille_base::process::Identity;
use reveille_store::{BotReport, Store};

use super::BotContext;

/// Writes down that this bot works, and whether Telegram has answered it.
pub(super) fn report_in(store: &mut Store, outside: BotContext<'_>, has_reached: bool) {
    let report = BotReport { bot: Identity::current(), version: crate::VERSION.to_owned(), has_reached };
    if let Err(error) = store.report_in(outside.telegram.bot_id(), &report) {
        tracing::debug!(%error, "that the bot works is not written down");
    }
}
