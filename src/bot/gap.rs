//! What is said after a stretch in which Telegram wasn't heard for longer than it keeps messages.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use crate::queue::{KEPT_BY_CHANNEL, NewOutgoing};

/// The owner's one notice of such a stretch.
pub(super) fn notice(owner_chat_id: i64, bot_id: i64, from: DateTime<Utc>, to: DateTime<Utc>, tz: Tz) -> NewOutgoing {
    let local = |at: DateTime<Utc>| at.with_timezone(&tz).format("%a %-d %b %H:%M").to_string();
    let text = format!(
        "I could not hear you from {} to {}. Telegram keeps messages for a day only: what was written to me before {} is \
         most likely lost. Please send it again if it still matters. What came later I have.",
        local(from),
        local(to),
        local(to - KEPT_BY_CHANNEL)
    );
    NewOutgoing {
        chat_id: owner_chat_id,
        text,
        kind: "notice".to_owned(),
        key: Some(format!("gap/{bot_id}/{}", crate::clock::rfc3339(from))),
        ..NewOutgoing::default()
    }
}
