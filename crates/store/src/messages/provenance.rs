//! Whose words a message holds besides its sender's own. An order that waits in an old message must not be taken for its person's.

use crate::{
    Incoming, NewIncoming, Result,
    odd_rows::text_of,
    sql::{OptionalExtension as _, Transaction},
};

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

/// Whose words stand in a message's text besides its sender's own, for people; none if there are none. Its quotation and
/// its pictures are no part of its text.
pub(crate) fn of_incoming(kind: &str, text: &str, forwarded_from: Option<&str>) -> Option<String> {
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

/// Whether what a message quotes is its sender's own words, or ours that nobody else had a hand in. What isn't known here is not:
/// whoever wrote it, others may have had a hand in it.
pub(crate) fn quotes_own(tx: &Transaction<'_>, bot_id: Option<i64>, message: &NewIncoming) -> Result<bool> {
    let Some(quoted) = message.quotes.filter(|_| message.quotes_own) else { return Ok(false) };
    let theirs = tx
        .prepare(
            "SELECT kind, message_text, forwarded_from FROM incoming_messages
             WHERE chat_id = ?1 AND bot_id IS NOT DISTINCT FROM ?3 AND (channel_message_id = ?2 OR id IN (
                 SELECT message_id FROM message_updates WHERE chat_id = ?1 AND channel_message_id = ?2))
             ORDER BY id DESC LIMIT 1",
        )?
        .query_row((message.chat, quoted, bot_id), |row| {
            let forwarded_from: Option<String> = row.get(2)?;
            let (kind, text): (String, String) = (row.get(0)?, text_of(row, 1)?);
            Ok(of_incoming(&kind, &text, forwarded_from.as_deref()).is_none())
        })
        .optional()?;
    let ours = tx
        .prepare(
            "SELECT o.taint IS NULL FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
             WHERE o.chat_id = ?1 AND p.channel_message_id = ?2 ORDER BY o.id DESC LIMIT 1",
        )?
        .query_row((message.chat, quoted), |row| row.get::<_, bool>(0))
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
