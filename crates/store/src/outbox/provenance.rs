//! The authors of the text in message rows. Untrusted text appears in a later cycle only on request, and taints that cycle: an order
//! inside an old message, or inside our answer to it, must never count as the person's own.
//!
//! For our own messages, the chat and the journal of the writing cycle determine this, so the planner of a message can't forget it. Text
//! brought in by an error from outside carries its own mark (`outside`).

use reveille_base::types::ChatRef;
use reveille_memory::outside;

use crate::{
    NewOutgoing, OutgoingKind, Result,
    areas::{Outbox, ReadStore},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The taint of answers to commands, which may quote the memory and its log, messages, and the texts of a wake.
const COMMANDS: &str = "a command's answer, which can quote others";

/// Returns whether a taint names known authors, so that a person should be told. The answer to a command counts as untrusted regardless
/// of its content.
pub fn names_others(taint: &str) -> bool {
    taint != COMMANDS
}

/// The taint of an unreadable journal entry, which may have held anything.
const UNKNOWN: &str = "a record that can't be read";

/// The authors of untrusted text in a message of ours, at planning.
pub(crate) fn find_outgoing_authors(tx: &Transaction<'_>, message: &NewOutgoing) -> Result<Option<String>> {
    // fault: remote-says-ours
    let outside = outside::describe_origins(&message.text);
    if let Some(taint) = &message.taint {
        return Ok(Some(outside.map_or_else(|| taint.clone(), |outside| format!("{taint}, {outside}"))));
    }
    if message.kind == OutgoingKind::Command {
        return Ok(Some(COMMANDS.to_owned()));
    }
    let Some(cycle) = message.cycle_id.as_deref() else { return Ok(outside) };
    // fault: guest-lets-owner-told
    let foreign_chat = find_foreign_chat(tx, cycle, message.chat)?;
    let origins: Vec<String> = outside.into_iter().chain(foreign_chat).chain(find_cycle_authors(tx, cycle)?).collect();
    Ok((!origins.is_empty()).then(|| origins.join(", ")))
}

/// The chat a cycle works for, if a message of the cycle goes to another chat, where that chat's words are no orders. The terminal's
/// words are the owner's.
fn find_foreign_chat(tx: &Transaction<'_>, cycle_id: &str, chat: ChatRef) -> Result<Option<String>> {
    let chat: Option<ChatRef> = tx
        .prepare("SELECT chat_id FROM cycles WHERE id = ?1 AND chat_id NOT IN (?2, ?3)")?
        .query_row((cycle_id, chat, ChatRef::TERMINAL), |row| row.get(0))
        .optional()?;
    Ok(chat.map(|chat| format!("what chat {chat} said")))
}

/// The authors of untrusted text a cycle has read so far, by its journal.
fn find_cycle_authors(conn: &sql::SqlConnection, cycle_id: &str) -> Result<Option<String>> {
    let taints: Option<String> = conn
        .prepare(
            "SELECT string_agg(taint, ', ') FROM (
                 SELECT taint, min(seq) AS first FROM (
                     SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.taint') ELSE ?2 END AS taint, seq
                     FROM cycle_journal WHERE cycle_id = ?1 AND kind IN ('said', 'called', 'outcome')) AS entries
                 WHERE taint IS NOT NULL GROUP BY taint ORDER BY first) AS each_once",
        )?
        .query_row((cycle_id, UNKNOWN), |row| row.get(0))?;
    Ok(taints)
}

impl<S: ReadStore> Outbox<S> {
    /// The authors of untrusted text a cycle has read, by its journal; `None` if it has read none.
    pub fn find_cycle_taints(&self, cycle_id: &str) -> Result<Option<String>> {
        find_cycle_authors(self.0.conn(), cycle_id)
    }
}
