//! What was proposed of our own accord, and whether anybody has answered it.

use reveille_base::types::ChatRef;

use crate::{
    Result, Store,
    sql::{self, OptionalExtension as _},
};

/// How the keys of what is said of our own accord begin, before the time at which it was due.
pub const PROPOSED: &str = "tell/initiative/";

impl Store {
    /// Whether the last thing that was proposed of our own accord has had no answer: neither a button under it, nor a word of the owner's
    /// since. What was taken back needs none.
    pub fn is_proposal_unanswered(&self, owner_chat: ChatRef) -> Result<bool> {
        // By the key's index: `0` comes after `/`. The last time is the greatest.
        let last = "SELECT id, created_at FROM outgoing_messages
                    WHERE key > 'tell/initiative/' AND key < 'tell/initiative0' AND taken_back_at IS NULL
                    ORDER BY key DESC LIMIT 1";
        let read = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let last: Option<(i64, String)> = self.conn.prepare(last)?.query_row([], read).optional()?;
        let Some((id, created_at)) = last else { return Ok(false) };
        let is_answered = "SELECT EXISTS (SELECT 1 FROM nudges WHERE outgoing_id = ?1 AND answer IS NOT NULL)
             OR EXISTS (SELECT 1 FROM incoming_messages WHERE chat_id IN (?2, 0) AND received_at > ?3)";
        let mut statement = self.conn.prepare(is_answered)?;
        Ok(!statement.query_row((id, owner_chat, created_at), |row| row.get::<_, bool>(0))?)
    }
}
