//! The notices after a period without contact that was longer than Telegram keeps messages.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, words::local_day_and_time};
use reveille_config::Config;
use reveille_store::{KEPT_BY_CHANNEL, NewOutgoing};

/// Builds the notices: one for the owner, and one for each allowed private chat in `heard`. Their messages may be lost
/// as well.
pub(super) fn build_notices(
    config: &Config,
    bot_id: i64,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    heard: &BTreeSet<ChatRef>,
) -> Vec<NewOutgoing> {
    let local = |at: DateTime<Utc>| local_day_and_time(at, config.timezone);
    let text = format!(
        "I couldn't receive messages from {} to {}. Telegram keeps them for only a day, so anything sent before {} \
         is probably lost. Please send it again if it still matters. I have everything sent after that.",
        local(from),
        local(to),
        local(to - KEPT_BY_CHANNEL)
    );
    let guests = config.allowed_chats.iter().copied().filter(|chat| !chat.is_group() && heard.contains(chat));
    let chats: BTreeSet<ChatRef> = guests.chain([config.owner_chat]).collect();
    let notice = |chat| NewOutgoing {
        key: Some(format!("gap/{bot_id}/{}/{chat}", reveille_base::clock::format_rfc3339(from))),
        ..NewOutgoing::notice(chat, text.clone())
    };
    chats.into_iter().map(notice).collect()
}
