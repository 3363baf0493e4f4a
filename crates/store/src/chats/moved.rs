//! A group that has another id from now on: what waits for an answer there, its reminders and what hasn't been sent to it go along.
//! Nothing is sent to the new id until a person has listed it.
//!
//! Ids of messages are another chat's there: nothing that goes along answers one.

use chrono::{DateTime, Utc};

use reveille_base::{clock::rfc3339, types::ChatRef};

use crate::{
    Result, Store,
    outcome::{OPEN, PUT_ASIDE},
    sql::{self, Transaction},
};

/// A group's new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The id that it had.
    pub from: ChatRef,
    /// The id that it has now.
    pub to: ChatRef,
    /// Whether the settings list that by now.
    pub is_listed: bool,
}

/// Whether message `o` may go to its chat, which is no group's new id that nobody has listed.
pub(crate) const MAY_BE_SPOKEN_TO: &str =
    // fault: groups-new-id-written
    "o.chat_id NOT IN (SELECT to_id FROM moved_chats WHERE is_listed = 0)";

impl Store {
    /// Speaks to those of `listed` that are the new ids of groups. Where there are none, nothing is written.
    pub(crate) fn follow_listed(&mut self, listed: &[ChatRef]) -> Result<()> {
        for chat in listed {
            let sql = "SELECT EXISTS (SELECT 1 FROM moved_chats WHERE to_id = ?1 AND is_listed = 0)";
            if self.conn.prepare(sql)?.query_row([chat], |row| row.get(0))? {
                let sql = "UPDATE moved_chats SET is_listed = 1 WHERE to_id = ?1";
                self.write(|tx| Ok(tx.execute(sql, [chat]).map(drop)?))?;
            }
        }
        Ok(())
    }
}

/// Lets all that is open in a group go along with it.
pub(crate) fn follow(tx: &Transaction<'_>, moved: Moved, now: DateTime<Utc>) -> Result<()> {
    let Moved { from, to, is_listed } = moved;
    tx.execute(
        "INSERT INTO moved_chats (from_id, to_id, at, is_listed) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (from_id) DO UPDATE SET to_id = excluded.to_id, 
             is_listed = CASE WHEN excluded.is_listed = 1 THEN 1 ELSE moved_chats.is_listed END",
        (from, to, rfc3339(now), is_listed),
    )?;
    let messages = format!(
        "UPDATE incoming_messages SET chat_id = ?2, thread_id = NULL, channel_message_id = NULL
         WHERE chat_id = ?1 AND (processed = 0 OR outcome IN {PUT_ASIDE})"
    );
    let cycles = format!("UPDATE cycles SET chat_id = ?2, thread_id = NULL WHERE chat_id = ?1 AND state IN {OPEN}");
    for sql in [
        // Those that are over, too: an undo may bring one back.
        "UPDATE reminders SET chat_id = ?2, thread_id = NULL WHERE chat_id = ?1",
        &messages,
        &cycles,
        // Where both have a row, the one of the chat that moves stays.
        "DELETE FROM stopped_chats WHERE chat_id = ?2 AND EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = ?1)",
        "UPDATE stopped_chats SET chat_id = ?2 WHERE chat_id = ?1",
        // What was said under the old id stays here, too.
        "INSERT INTO local_chats (chat_id, at) SELECT ?2, at FROM local_chats WHERE chat_id = ?1 ON CONFLICT DO NOTHING",
        "DELETE FROM fresh_starts WHERE chat_id = ?2
             AND thread_id IN (SELECT thread_id FROM fresh_starts WHERE chat_id = ?1)",
        "UPDATE fresh_starts SET chat_id = ?2 WHERE chat_id = ?1",
        "UPDATE undos SET chat_id = ?2, thread_id = NULL, reply_to = NULL WHERE chat_id = ?1 AND done_at IS NULL",
    ] {
        tx.execute(sql, [from, to])?;
    }
    redirect(tx)
}

/// Addresses what hasn't been sent to groups' new ids. It is done in the transaction that takes the next part to be sent, too: a wake
/// that was under way may have written to the old one.
pub(crate) fn redirect(tx: &Transaction<'_>) -> Result<()> {
    let ids = tx
        .prepare(
            "UPDATE outgoing_messages SET chat_id = (SELECT to_id FROM moved_chats WHERE from_id = chat_id), thread_id = NULL,
                 reply_to = NULL
             WHERE sent_at IS NULL AND chat_id IN (SELECT from_id FROM moved_chats) RETURNING id",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<sql::QueryResult<Vec<i64>>>()?;
    for id in ids {
        tx.execute("UPDATE outgoing_parts SET not_before = NULL WHERE outgoing_id = ?1 AND state = 'planned'", [id])?;
        // A question is answered where it is asked.
        tx.execute(
            "UPDATE approvals SET chat_id = (SELECT chat_id FROM outgoing_messages WHERE id = ?1)
             WHERE outgoing_id = ?1 AND state = 'pending'",
            [id],
        )?;
    }
    Ok(())
}
