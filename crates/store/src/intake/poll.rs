//! The state of polling: the time of the last completed poll. After a long gap the channel may have dropped messages.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    NewOutgoing, Result,
    areas::{Inbox, ReadStore, WriteStore},
    messages::overheard,
    outbox::planned,
    sql::{self, OptionalExtension as _, Transaction},
};

/// How long Telegram keeps a message that no poll has fetched.
pub const KEPT_BY_CHANNEL: TimeDelta = TimeDelta::hours(24);

impl<S: ReadStore> Inbox<S> {
    /// The time of this bot's last completed poll, with or without updates.
    pub fn find_last_poll_time(&self, bot_id: i64) -> Result<Option<DateTime<Utc>>> {
        read_last_poll_time(self.0.conn(), bot_id)
    }
}

impl<S: WriteStore> Inbox<S> {
    /// Records a completed poll. If the channel may have dropped messages since the last poll, calls `notices` with the time of that poll
    /// and all known chats, plans the messages that it returns in the same transaction, and returns their rows.
    ///
    /// Waits for the disk only if there are notices: a time lost in a power cut is recorded again a minute later.
    pub fn record_poll(
        &mut self,
        bot_id: i64,
        now: DateTime<Utc>,
        notices: impl Fn(DateTime<Utc>, &BTreeSet<ChatRef>) -> Vec<NewOutgoing>,
    ) -> Result<Vec<i64>> {
        let work = |tx: &Transaction<'_>| {
            overheard::delete_old_messages(tx, now)?;
            let before = read_last_poll_time(tx, bot_id)?;
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, last_poll_at) VALUES (?1, 0, ?2)
                 ON CONFLICT (bot_id) DO UPDATE SET last_poll_at = excluded.last_poll_at",
                (bot_id, format_rfc3339(now)),
            )?;
            let mut rows = Vec::new();
            if let Some(from) = before.filter(|before| is_gap(*before, now)) {
                for notice in notices(from, &list_known_chats(tx)?) {
                    rows.extend(planned::insert(tx, &notice, now)?);
                }
            }
            Ok(rows)
        };
        if read_last_poll_time(self.0.conn(), bot_id)?.is_some_and(|before| is_gap(before, now)) {
            self.0.write(work)
        } else {
            self.0.write_relaxed(work)
        }
    }

    /// Records that another machine polled the channel until `at`, so that this machine, which takes over, sees no gap.
    pub fn heard_elsewhere(&mut self, bot_id: i64, at: DateTime<Utc>) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, last_poll_at) VALUES (?1, 0, ?2)
                 ON CONFLICT (bot_id) DO UPDATE
                 SET last_poll_at = CASE WHEN poll_state.last_poll_at > excluded.last_poll_at
                                         THEN poll_state.last_poll_at ELSE excluded.last_poll_at END",
                (bot_id, format_rfc3339(at)),
            )?;
            Ok(())
        })
    }
}

/// The chats that have ever sent a message or a command.
fn list_known_chats(tx: &Transaction<'_>) -> Result<BTreeSet<ChatRef>> {
    let mut statement = tx.prepare(
        "SELECT CAST(chat_id AS BIGINT) FROM incoming_messages
         UNION SELECT CAST(chat_id AS BIGINT) FROM outgoing_messages WHERE kind = 'command'",
    )?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
}

fn is_gap(before: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(before) > KEPT_BY_CHANNEL
}

fn read_last_poll_time(conn: &sql::SqlConnection, bot_id: i64) -> Result<Option<DateTime<Utc>>> {
    let at: Option<Option<String>> = conn
        .prepare("SELECT last_poll_at FROM poll_state WHERE bot_id = ?1")?
        .query_row([bot_id], |row| row.get(0))
        .optional()?;
    Ok(at.flatten().as_deref().and_then(parse_time))
}
