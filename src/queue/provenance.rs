//! Whose words the rows of messages hold. What others may have written is shown in a later cycle only when that asks for it, and marks
//! it then: an order that waits in an old message, or in our own answer to it, must not be taken for its person's.
//!
//! Of our own messages it is written down with them, by the chat and the journal of the cycle that wrote them: nobody who plans a
//! message can forget to say so. What an error from outside has brought into a text stands in it with its mark (`outside`).

use rusqlite::{OptionalExtension as _, Transaction};

use super::{Incoming, NewIncoming, NewOutgoing, OutgoingKind, Result, Store};
use crate::{config::CONSOLE_CHAT_ID, outside};

/// Kinds of messages whose text is its sender's own words, or a description in which nobody else has a word: times, numbers, places.
const OWN_KINDS: [&str; 9] =
    ["text", "voice", "video_note", "video", "animation", "photo", "location", "dice", "sticker"];
/// Kinds whose text is made of several messages, or of a later version of one: descriptions of any file may stand in it.
const JOINED_KINDS: [&str; 3] = ["album", "correction", "continuation"];
/// How descriptions begin in which nobody else has a word, and what is said here of joined rows: any other may hold others' names.
const OWN_DESCRIPTIONS: [&str; 12] = [
    "[voice",
    "[video",
    "[animation",
    "[photo",
    "[sticker",
    "[location",
    "[live location",
    "[dice",
    "[caption]",
    CORRECTED,
    "[belongs to the album that was sent before]",
    "[goes on from the message before]",
];
/// How a correction begins, which quotes in one line what was said before: a description may stand anywhere in that line.
const CORRECTED: &str = "[edited an earlier message";

/// What the answers to commands may quote: the memory and its log, messages, the words of a wake.
const COMMANDS: &str = "a command's answer, which can quote others";
/// A journal that can't be read may have held anything.
const UNKNOWN: &str = "a record that can't be read";

/// Whose words stand in a message's text besides its sender's own, for people; none if there are none. Its quotation and
/// its pictures are no part of its text.
pub(super) fn of_incoming(kind: &str, text: &str, forwarded_from: Option<&str>) -> Option<String> {
    if forwarded_from.is_some() {
        return Some("a forwarded message".to_owned());
    }
    let is_own = OWN_KINDS.contains(&kind) || JOINED_KINDS.contains(&kind) && text.lines().all(describes_own);
    (!is_own).then(|| format!("what others named ({kind})"))
}

/// Whether a line of a joined row holds no description but such in which nobody else has a word. A sender's own words in brackets
/// look like one, and count as one.
fn describes_own(line: &str) -> bool {
    let is_own = |description: &str| OWN_DESCRIPTIONS.iter().any(|own| description.starts_with(own));
    let is_quoted = line.starts_with(CORRECTED);
    let mut brackets = line.match_indices('[').filter(|(at, _)| *at == 0 || is_quoted);
    brackets.all(|(at, _)| line.get(at..).is_some_and(is_own))
}

/// Whose words a message of ours may hold, as it is planned.
pub(super) fn of_outgoing(tx: &Transaction<'_>, message: &NewOutgoing) -> Result<Option<String>> {
    let outside = outside::origins_in(&message.text);
    if let Some(taint) = &message.taint {
        return Ok(Some(outside.map_or_else(|| taint.clone(), |outside| format!("{taint}, {outside}"))));
    }
    if message.kind == OutgoingKind::Command {
        return Ok(Some(COMMANDS.to_owned()));
    }
    let Some(cycle) = message.cycle_id.as_deref() else { return Ok(outside) };
    let said = of_another_chat(tx, cycle, message.chat_id)?;
    let origins: Vec<String> = outside.into_iter().chain(said).chain(of_cycle(tx, cycle)?).collect();
    Ok((!origins.is_empty()).then(|| origins.join(", ")))
}

/// Whose words a cycle follows, if a message of it goes to another chat than theirs: there they are nobody's orders. Who sits at the
/// console is the owner.
fn of_another_chat(tx: &Transaction<'_>, cycle_id: &str, chat_id: i64) -> Result<Option<String>> {
    let chat: Option<i64> = tx
        .prepare_cached("SELECT chat_id FROM cycles WHERE id = ?1 AND chat_id NOT IN (?2, ?3)")?
        .query_row((cycle_id, chat_id, CONSOLE_CHAT_ID), |row| row.get(0))
        .optional()?;
    Ok(chat.map(|chat| format!("what chat {chat} said")))
}

/// Whose words a cycle has read so far besides its person's and the memory's, by its journal.
fn of_cycle(conn: &rusqlite::Connection, cycle_id: &str) -> Result<Option<String>> {
    let taints: Option<String> = conn
        .prepare_cached(
            "SELECT group_concat(taint, ', ') FROM (
                 SELECT iif(json_valid(body), json_extract(body, '$.taint'), ?2) AS taint, min(seq) AS first
                 FROM cycle_journal WHERE cycle_id = ?1 AND kind IN ('said', 'outcome')
                 GROUP BY 1 HAVING taint IS NOT NULL ORDER BY first)",
        )?
        .query_row((cycle_id, UNKNOWN), |row| row.get(0))?;
    Ok(taints)
}

/// Whether what a message quotes is its sender's own words, or ours that nobody else had a hand in. What isn't known here is not:
/// whoever wrote it, others may have had a hand in it.
pub(super) fn quotes_own(tx: &Transaction<'_>, bot_id: Option<i64>, message: &NewIncoming) -> Result<bool> {
    let Some(quoted) = message.quotes.filter(|_| message.quotes_own) else { return Ok(false) };
    let theirs = tx
        .prepare_cached(
            "SELECT kind, message_text, forwarded_from FROM incoming_messages
             WHERE chat_id = ?1 AND bot_id IS ?3 AND (channel_message_id = ?2 OR id IN (
                 SELECT message_id FROM message_updates WHERE chat_id = ?1 AND channel_message_id = ?2))
             ORDER BY id DESC LIMIT 1",
        )?
        .query_row((message.chat_id, quoted, bot_id), |row| {
            let forwarded_from: Option<String> = row.get(2)?;
            let (kind, text): (String, String) = (row.get(0)?, super::inbox::text_of(row, 1)?);
            Ok(of_incoming(&kind, &text, forwarded_from.as_deref()).is_none())
        })
        .optional()?;
    let ours = tx
        .prepare_cached(
            "SELECT o.taint IS NULL FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
             WHERE o.chat_id = ?1 AND p.channel_message_id = ?2 ORDER BY o.id DESC LIMIT 1",
        )?
        .query_row((message.chat_id, quoted), |row| row.get::<_, bool>(0))
        .optional()?;
    Ok(match (theirs, ours) {
        (None, None) => false,
        (theirs, ours) => theirs.unwrap_or(true) && ours.unwrap_or(true),
    })
}

impl Incoming {
    /// Whose words stand in its text besides its sender's own, for people; none if there are none.
    pub fn words_of_others(&self) -> Option<String> {
        of_incoming(&self.kind, &self.text, self.forwarded_from.as_deref())
    }
}

impl Store {
    /// Whose words a cycle has read besides its person's and the memory's, by its journal; none if it has read none.
    pub fn taints_of(&self, cycle_id: &str) -> Result<Option<String>> {
        of_cycle(&self.conn, cycle_id)
    }
}
