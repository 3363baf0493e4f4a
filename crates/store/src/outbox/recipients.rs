//! The recipient of a message: the terminal that waits for it, and never an unpaired person.

use chrono::{DateTime, Utc};

use reveille_base::clock::format_rfc3339;

use crate::{
    Result,
    chats::channel::TERMINAL,
    sql::{self, Transaction},
};

/// Withdraws unsent texts to unpaired people. The transaction that claims the next part runs this, so any sender stops at once after an
/// unpairing.
pub(crate) fn withhold_texts(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<()> {
    tx.prepare(
        "UPDATE outgoing_messages SET taken_back_at = ?1
         WHERE sent_at IS NULL AND taken_back_at IS NULL AND chat_id IN (SELECT user_id FROM unpaired)",
    )?
    .execute([format_rfc3339(now)])?;
    Ok(())
}

/// Assigns a new text of chat 0 to the terminal whose message its cycle answers.
pub(crate) fn note_outgoing(tx: &Transaction<'_>, id: i64, cycle_id: Option<&str>) -> sql::QueryResult<()> {
    tx.prepare(
        "UPDATE outgoing_messages SET channel = ?2, session = (
             SELECT m.session FROM taken_up t JOIN incoming_messages m ON m.id = t.message_id
             WHERE t.cycle_id = ?3 AND m.chat_id = 0 AND m.session IS NOT NULL ORDER BY m.id DESC LIMIT 1)
         WHERE id = ?1 AND chat_id = 0",
    )?
    .execute((id, TERMINAL, cycle_id))
    .map(drop)
}
