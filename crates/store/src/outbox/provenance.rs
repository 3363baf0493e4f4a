//! Whose words the rows of messages hold. What others may have written is shown in a later cycle only when that asks for it, and marks
//! it then: an order that waits in an old message, or in our own answer to it, must not be taken for its person's.
//!
//! Of our own messages it is written down with them, by the chat and the journal of the cycle that wrote them: nobody who plans a
//! message can forget to say so. What an error from outside has brought into a text stands in it with its mark (`outside`).

use reveille_base::types::ChatRef;
use reveille_memory::outside;

use crate::{
    NewOutgoing, OutgoingKind, Result, Store,
    sql::{self, OptionalExtension as _, Transaction},
};

/// What the answers to commands may quote: the memory and its log, messages, the words of a wake.
const COMMANDS: &str = "a command's answer, which can quote others";

/// Whether a taint names somebody whose words are known to be there, so that a person is told. The answer to a command counts as
/// untrusted whatever it says.
pub fn names_others(taint: &str) -> bool {
    taint != COMMANDS
}

/// A journal that can't be read may have held anything.
const UNKNOWN: &str = "a record that can't be read";

/// Whose words a message of ours may hold, as it is planned.
pub(crate) fn of_outgoing(tx: &Transaction<'_>, message: &NewOutgoing) -> Result<Option<String>> {
    // fault: remote-says-ours
    let outside = outside::origins_in(&message.text);
    if let Some(taint) = &message.taint {
        return Ok(Some(outside.map_or_else(|| taint.clone(), |outside| format!("{taint}, {outside}"))));
    }
    if message.kind == OutgoingKind::Command {
        return Ok(Some(COMMANDS.to_owned()));
    }
    let Some(cycle) = message.cycle_id.as_deref() else { return Ok(outside) };
    // fault: guest-lets-owner-told
    let said = of_another_chat(tx, cycle, message.chat)?;
    let origins: Vec<String> = outside.into_iter().chain(said).chain(of_cycle(tx, cycle)?).collect();
    Ok((!origins.is_empty()).then(|| origins.join(", ")))
}

/// Whose words a cycle follows, if a message of it goes to another chat than theirs: there they are nobody's orders. Who sits at the
/// console is the owner.
fn of_another_chat(tx: &Transaction<'_>, cycle_id: &str, chat: ChatRef) -> Result<Option<String>> {
    let chat: Option<ChatRef> = tx
        .prepare("SELECT chat_id FROM cycles WHERE id = ?1 AND chat_id NOT IN (?2, ?3)")?
        .query_row((cycle_id, chat, ChatRef::TERMINAL), |row| row.get(0))
        .optional()?;
    Ok(chat.map(|chat| format!("what chat {chat} said")))
}

/// Whose words a cycle has read so far besides its person's and the memory's, by its journal.
fn of_cycle(conn: &sql::SqlConnection, cycle_id: &str) -> Result<Option<String>> {
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

impl Store {
    /// Whose words a cycle has read besides its person's and the memory's, by its journal; none if it has read none.
    pub fn taints_of(&self, cycle_id: &str) -> Result<Option<String>> {
        of_cycle(&self.conn, cycle_id)
    }
}
