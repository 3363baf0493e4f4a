//! A group with a new id: its open messages, reminders and unsent texts move along. Nothing is sent to the new id until a person has
//! listed it.
//!
//! Message ids belong to the old chat, so nothing that moves along replies to a message.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use crate::{
    Result,
    areas::WriteStore,
    outcome::{OPEN, PUT_ASIDE},
    sql::{self, Transaction},
};

/// A group's new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The old id.
    pub from: ChatRef,
    /// The new id.
    pub to: ChatRef,
    /// Whether the settings list the new id.
    pub is_listed: bool,
}

/// SQL condition: message `o` may go to its chat. A group's new id that is still unlisted may not be spoken to.
pub(crate) const MAY_BE_SPOKEN_TO: &str =
    // fault: groups-new-id-written
    "o.chat_id NOT IN (SELECT to_id FROM moved_chats WHERE is_listed = 0)";

/// Marks those of `listed` that are new ids of groups as listed. Writes nothing if there are none.
pub(crate) fn mark_listed_groups(store: &mut impl WriteStore, listed: &[ChatRef]) -> Result<()> {
    for chat in listed {
        let sql = "SELECT EXISTS (SELECT 1 FROM moved_chats WHERE to_id = ?1 AND is_listed = 0)";
        if store.conn().prepare(sql)?.query_row([chat], |row| row.get(0))? {
            let sql = "UPDATE moved_chats SET is_listed = 1 WHERE to_id = ?1";
            store.write(|tx| Ok(tx.execute(sql, [chat]).map(drop)?))?;
        }
    }
    Ok(())
}

/// Moves everything open in a group to the new id.
pub(crate) fn move_group(tx: &Transaction<'_>, moved: Moved, now: DateTime<Utc>) -> Result<()> {
    let Moved { from, to, is_listed } = moved;
    tx.execute(
        "INSERT INTO moved_chats (from_id, to_id, at, is_listed) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (from_id) DO UPDATE SET to_id = excluded.to_id, 
             is_listed = CASE WHEN excluded.is_listed = 1 THEN 1 ELSE moved_chats.is_listed END",
        (from, to, format_rfc3339(now), is_listed),
    )?;
    let messages = format!(
        "UPDATE incoming_messages SET chat_id = ?2, thread_id = NULL, channel_message_id = NULL
         WHERE chat_id = ?1 AND (processed = 0 OR outcome IN {PUT_ASIDE})"
    );
    let cycles = format!("UPDATE cycles SET chat_id = ?2, thread_id = NULL WHERE chat_id = ?1 AND state IN {OPEN}");
    for sql in [
        // Finished reminders too: an undo may bring one back.
        "UPDATE reminders SET chat_id = ?2, thread_id = NULL WHERE chat_id = ?1",
        &messages,
        &cycles,
        // If both ids have a row, the old chat's row stays.
        "DELETE FROM stopped_chats WHERE chat_id = ?2 AND EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = ?1)",
        "UPDATE stopped_chats SET chat_id = ?2 WHERE chat_id = ?1",
        // Words spoken under the old id stay on this machine, too.
        "INSERT INTO local_chats (chat_id, at) SELECT ?2, at FROM local_chats WHERE chat_id = ?1 ON CONFLICT DO NOTHING",
        "DELETE FROM fresh_starts WHERE chat_id = ?2
             AND thread_id IN (SELECT thread_id FROM fresh_starts WHERE chat_id = ?1)",
        "UPDATE fresh_starts SET chat_id = ?2 WHERE chat_id = ?1",
        "UPDATE undos SET chat_id = ?2, thread_id = NULL, reply_to = NULL WHERE chat_id = ?1 AND done_at IS NULL",
    ] {
        tx.execute(sql, [from, to])?;
    }
    redirect_texts(tx)
}

/// Addresses unsent texts to the groups' new ids. The transaction that claims the next part runs this too, because a wake under way may
/// have written to the old id.
pub(crate) fn redirect_texts(tx: &Transaction<'_>) -> Result<()> {
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
        // A question is answered in the chat where it is asked.
        tx.execute(
            "UPDATE approvals SET chat_id = (SELECT chat_id FROM outgoing_messages WHERE id = ?1)
             WHERE outgoing_id = ?1 AND state = 'pending'",
            [id],
        )?;
    }
    Ok(())
}
