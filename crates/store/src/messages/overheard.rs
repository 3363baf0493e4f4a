//! Talk among people in a group, kept while it may be part of a message to the assistant: perhaps only the last part of a long text names
//! the assistant, or the caption under an album's last file.
//!
//! Telegram delivers an update once, so the transaction of its batch stores this. A few moments later it is deleted, by the first batch,
//! the first recorded poll (each minute), or the first wake. No other talk among people is stored, and this is never shown.

use chrono::{DateTime, Utc};

use reveille_base::clock::format_rfc3339;

use crate::{
    NewIncoming, PartOf, Result,
    messages::parts::{self, HOLD},
    sql::{self, Transaction},
    to_json,
};

/// Keeps a message to others, if further parts may follow.
pub(crate) fn save_message(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming, now: DateTime<Utc>) -> Result<()> {
    let Some(update_id) = message.update_id.filter(|_| parts::may_continue(message)) else { return Ok(()) };
    tx.prepare(
        "INSERT INTO overheard (bot_id, update_id, chat_id, heard_at, message) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
    )?
    .execute((bot_id, update_id, message.chat, format_rfc3339(now), to_json(message)))?;
    Ok(())
}

/// The parts before a message to the assistant, in order of arrival: they are for the assistant, too.
pub(crate) fn take_earlier_parts(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming) -> Result<Vec<NewIncoming>> {
    if message.is_only_part || message.part_of.is_none() {
        return Ok(Vec::new());
    }
    let overheard = tx
        .prepare("SELECT id, message FROM overheard WHERE bot_id = ?1 AND chat_id = ?2 ORDER BY id DESC")?
        .query_map((bot_id, message.chat), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?
        .collect::<sql::QueryResult<Vec<_>>>()?;
    let mut parts: Vec<NewIncoming> = Vec::new();
    for (id, text) in overheard {
        let Ok(earlier) = serde_json::from_str::<NewIncoming>(&text) else { continue };
        let is_part = match &message.part_of {
            Some(PartOf::Album(_)) => earlier.part_of == message.part_of,
            _ => parts::is_text_continuation(&earlier, parts.last().unwrap_or(message)),
        };
        if is_part {
            tx.prepare("DELETE FROM overheard WHERE id = ?1")?.execute([id])?;
            parts.push(NewIncoming { is_only_part: false, ..earlier });
        }
    }
    parts.reverse();
    Ok(parts)
}

/// Deletes overheard messages that are old enough, and those dated in the future by a clock that was set back since. The tolerance of one
/// hold covers a caller that read the clock before the message was stored.
pub(crate) fn delete_old_messages(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<()> {
    // fault: said-others-stays
    tx.prepare("DELETE FROM overheard WHERE heard_at <= ?1 OR heard_at > ?2")?
        .execute((format_rfc3339(now - HOLD), format_rfc3339(now + HOLD)))?;
    Ok(())
}
