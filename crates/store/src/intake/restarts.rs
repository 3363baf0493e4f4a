//! Restarts of the bot that a person ordered in a chat. A row stays open until its chat has been told the outcome: once, by whichever bot
//! runs then.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use crate::{
    NewOutgoing, OutgoingKind, Result,
    areas::{Maintenance, WriteStore},
    outbox::planned,
    sql::{self, Transaction},
};

impl<S: WriteStore> Maintenance<S> {
    /// Ends the open restarts and sends `text` to their chats. Returns the messages to send. Writes nothing if there are none.
    pub fn end_restarts(&mut self, text: &str, now: DateTime<Utc>) -> Result<Vec<i64>> {
        let open: Vec<(i64, ChatRef, Option<i64>)> = {
            let mut statement = self
                .0
                .conn()
                .prepare("SELECT id, chat_id, thread_id FROM restarts WHERE told_at IS NULL ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<sql::QueryResult<_>>()?
        };
        if open.is_empty() {
            return Ok(Vec::new());
        }
        self.0.write(|tx| {
            let mut rows = Vec::new();
            for (id, chat, thread_id) in open {
                tx.execute("UPDATE restarts SET told_at = ?2 WHERE id = ?1", (id, format_rfc3339(now)))?;
                let message = NewOutgoing {
                    chat,
                    thread_id,
                    text: text.to_owned(),
                    // The text answers the command, even while all work is stopped.
                    kind: OutgoingKind::Command,
                    key: Some(format!("restart/{id}")),
                    ..NewOutgoing::default()
                };
                rows.extend(planned::insert(tx, &message, now)?);
            }
            Ok(rows)
        })
    }
}

/// Stores the order to restart, unless one is open already.
pub(crate) fn order_restart(tx: &Transaction<'_>, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO restarts (asked_at, chat_id, thread_id) SELECT ?1, ?2, ?3
         WHERE NOT EXISTS (SELECT 1 FROM restarts WHERE told_at IS NULL)",
        (format_rfc3339(now), answer.chat, answer.thread_id),
    )?;
    Ok(())
}
