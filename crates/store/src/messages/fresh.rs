//! `/new`: starts a chat, or a topic in it, afresh. New cycles are shown only the conversation after this point; search still finds what
//! came before.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    Exchange, NewOutgoing, Result, SpokenRows,
    areas::{Inbox, ReadStore},
    sql::{self, OptionalExtension as _, Transaction},
    steps::{EarlierStart, SettingBefore},
};

/// The point at which a person started a chat afresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshStart {
    /// The last earlier message; 0 if there is none.
    pub incoming_id: i64,
    /// The assistant's last earlier message.
    pub outgoing_id: i64,
    /// The time; `None` if unreadable.
    pub at: Option<DateTime<Utc>>,
}

impl FreshStart {
    /// Returns whether this point comes after an exchange.
    pub fn is_after(&self, exchange: &Exchange) -> bool {
        exchange.row <= if exchange.from.is_some() { self.incoming_id } else { self.outgoing_id }
    }
}

impl<S: ReadStore> Inbox<S> {
    /// The latest fresh start of a chat, or of a topic in it.
    pub fn fresh_start(&self, chat: ChatRef, thread_id: Option<i64>) -> Result<Option<FreshStart>> {
        let sql = "SELECT incoming_id, outgoing_id, at FROM fresh_starts WHERE chat_id = ?1 AND thread_id = ?2";
        let read = |row: &sql::Row<'_>| {
            Ok(FreshStart {
                incoming_id: row.get(0)?,
                outgoing_id: row.get(1)?,
                at: parse_time(&row.get::<_, String>(2)?),
            })
        };
        let place = (chat, thread_id.unwrap_or(0));
        Ok(self.0.conn().prepare(sql)?.query_row(place, read).optional()?)
    }

    /// The assistant's messages after the fresh start that answer only earlier messages: their cycles had started before it.
    pub fn answers_to_the_past(&self, start: FreshStart, chat: ChatRef) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM outgoing_messages o WHERE chat_id = ?1 AND id > ?2
             AND (SELECT max(message_id) FROM taken_up t WHERE t.cycle_id = o.cycle_id) <= ?3";
        let mut statement = self.0.conn().prepare(sql)?;
        let read = statement.query_map((chat, start.outgoing_id, start.incoming_id), |row| row.get(0))?;
        Ok(read.collect::<sql::QueryResult<_>>()?)
    }

    /// Keeps the rows that belong to the chat and precede its fresh start. `is_ours` tells whether the rows are the assistant's messages or
    /// people's.
    pub fn filter_old_rows(&self, start: FreshStart, chat: ChatRef, is_ours: bool, rows: &[i64]) -> Result<Vec<i64>> {
        let last = if is_ours { start.outgoing_id } else { start.incoming_id };
        let old: Vec<i64> = rows.iter().copied().filter(|row| *row <= last).collect();
        if old.is_empty() {
            return Ok(old);
        }
        let rows = SpokenRows::These(&old);
        let messages = if is_ours { self.list_own_messages(rows)? } else { self.said_by_people(rows)? };
        Ok(messages.into_iter().filter(|spoken| spoken.chat == chat).map(|spoken| spoken.row).collect())
    }
}

/// The latest fresh start of the chat or topic in which a command is answered.
pub(crate) fn read_earlier_start(tx: &Transaction<'_>, answer: &NewOutgoing) -> Result<SettingBefore> {
    let (chat, thread_id) = (answer.chat, answer.thread_id.unwrap_or(0));
    let sql = "SELECT incoming_id, outgoing_id, at FROM fresh_starts WHERE chat_id = ?1 AND thread_id = ?2";
    let read =
        |row: &sql::Row<'_>| Ok(EarlierStart { incoming_id: row.get(0)?, outgoing_id: row.get(1)?, at: row.get(2)? });
    let was = tx.prepare(sql)?.query_row((chat, thread_id), read).optional()?;
    Ok(SettingBefore::Fresh { chat, thread_id, was })
}

/// Restores the earlier fresh start of a chat or topic.
pub(crate) fn restore_start(
    tx: &Transaction<'_>,
    (chat, thread_id): (ChatRef, i64),
    was: Option<&EarlierStart>,
) -> Result<()> {
    tx.execute("DELETE FROM fresh_starts WHERE chat_id = ?1 AND thread_id = ?2", (chat, thread_id))?;
    if let Some(EarlierStart { incoming_id, outgoing_id, at }) = was {
        tx.execute(
            "INSERT INTO fresh_starts (chat_id, thread_id, incoming_id, outgoing_id, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (chat, thread_id, incoming_id, outgoing_id, at),
        )?;
    }
    Ok(())
}

/// Starts the chat or topic in which a command is answered afresh. Messages after the command in the same batch are already stored; they
/// count as new.
pub(crate) fn begin_fresh_start(tx: &Transaction<'_>, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO fresh_starts (chat_id, thread_id, incoming_id, outgoing_id, at) VALUES (?1, ?2,
             COALESCE((SELECT max(id) FROM incoming_messages
                 WHERE chat_id = ?1 AND (CAST(?3 AS BIGINT) IS NULL OR channel_message_id IS NULL OR channel_message_id <= ?3)), 0),
             COALESCE((SELECT max(id) FROM outgoing_messages WHERE chat_id = ?1), 0), ?4)
         ON CONFLICT (chat_id, thread_id) DO UPDATE SET incoming_id = excluded.incoming_id, outgoing_id = excluded.outgoing_id,
             at = excluded.at",
        (answer.chat, answer.thread_id.unwrap_or(0), answer.reply_to, format_rfc3339(now)),
    )?;
    Ok(())
}
