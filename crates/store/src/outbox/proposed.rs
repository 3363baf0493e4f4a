//! The latest unasked suggestion, and whether it was answered.

use reveille_base::types::ChatRef;

use crate::{
    Result,
    areas::{Outbox, ReadStore},
    sql::{self, OptionalExtension as _},
};

/// The prefix of the keys of unasked suggestions, followed by the time of the slot.
pub const PROPOSED: &str = "tell/initiative/";

impl<S: ReadStore> Outbox<S> {
    /// Returns whether the latest unasked suggestion is still unanswered, by a button or by any later message of the owner. A withdrawn
    /// suggestion needs no answer.
    pub fn is_proposal_unanswered(&self, owner_chat: ChatRef) -> Result<bool> {
        // Uses the key's index: `0` is the character after `/`. The last time is the greatest.
        let last = "SELECT id, created_at FROM outgoing_messages
                    WHERE key > 'tell/initiative/' AND key < 'tell/initiative0' AND taken_back_at IS NULL
                    ORDER BY key DESC LIMIT 1";
        let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let last: Option<(i64, String)> = self.0.conn().prepare(last)?.query_row([], read).optional()?;
        let Some((id, created_at)) = last else { return Ok(false) };
        let is_answered = "SELECT EXISTS (SELECT 1 FROM nudges WHERE outgoing_id = ?1 AND answer IS NOT NULL)
             OR EXISTS (SELECT 1 FROM incoming_messages WHERE chat_id IN (?2, 0) AND received_at > ?3)";
        let mut statement = self.0.conn().prepare(is_answered)?;
        Ok(!statement.query_row((id, owner_chat, created_at), |row| row.get::<_, bool>(0))?)
    }
}
