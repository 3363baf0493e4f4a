//! A flood of one chat: everything is stored, and answered a few messages at a time. The chat is told once per flood.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use crate::{
    NewOutgoing, Result,
    areas::{Outbox, WriteStore},
    outbox::planned,
    sql::OptionalExtension as _,
};

/// The number of queued messages of one chat above which the chat is told.
pub const MAX_WAITING_UNTOLD: i64 = 1_000;
/// The number of queued messages at which a flood is over.
const FLOOD_OVER: i64 = 500;

impl<S: WriteStore> Outbox<S> {
    /// Plans the `notice` of a chat's number of waiting messages, once per flood. Returns its row.
    pub fn tell_flood(
        &mut self,
        chat: ChatRef,
        now: DateTime<Utc>,
        notice: impl Fn(i64) -> NewOutgoing,
    ) -> Result<Option<i64>> {
        let name = format!("flood/{chat}");
        let waiting: i64 = self
            .0
            .store()
            .conn
            .prepare("SELECT count(*) FROM incoming_messages WHERE processed = 0 AND chat_id = ?1")?
            .query_row([chat], |row| row.get(0))?;
        let is_told: bool = self
            .0
            .store()
            .conn
            .prepare("SELECT n > 0 FROM counters WHERE name = ?1")?
            .query_row([&name], |row| row.get(0))
            .optional()?
            .unwrap_or(false);
        let begins = !is_told && waiting > MAX_WAITING_UNTOLD;
        let is_over = is_told && waiting <= FLOOD_OVER;
        if !begins && !is_over {
            return Ok(None);
        }
        self.0.write(|tx| {
            tx.execute(
                "INSERT INTO counters (name, n, last_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET n = excluded.n, last_at = excluded.last_at",
                (&name, begins, format_rfc3339(now)),
            )?;
            if begins { planned::insert(tx, &notice(waiting), now) } else { Ok(None) }
        })
    }
}
