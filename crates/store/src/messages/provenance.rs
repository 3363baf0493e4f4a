//! The authors of a message's text besides its sender. An order inside an old forwarded message must never count as the person's own.

use crate::{
    Incoming, NewIncoming, Result,
    odd_rows::read_text,
    sql::{OptionalExtension as _, Transaction},
};

/// Kinds whose text is the sender's own words, or a description free of other people's text: times, numbers, places.
const OWN_KINDS: [&str; 9] =
    ["text", "voice", "video_note", "video", "animation", "photo", "location", "dice", "sticker"];
/// Kinds whose text combines several messages, or versions of one, and may contain descriptions of any file.
const JOINED_KINDS: [&str; 3] = ["album", "correction", "continuation"];
/// Prefixes of descriptions free of other people's text, and of our own notes on joined rows. Any other description may contain names
/// chosen by others.
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
/// The prefix of a correction, which quotes the earlier text in one line: a description may be anywhere in that line.
const CORRECTED: &str = "[edited an earlier message";

/// The authors of a message's text besides its sender, for people; `None` if all of it is the sender's. The quotation and the pictures
/// don't count as text.
pub(crate) fn find_incoming_authors(kind: &str, text: &str, forwarded_from: Option<&str>) -> Option<String> {
    if forwarded_from.is_some() {
        return Some("a forwarded message".to_owned());
    }
    let is_own = OWN_KINDS.contains(&kind) || JOINED_KINDS.contains(&kind) && text.lines().all(describes_own);
    (!is_own).then(|| format!("what others named ({kind})"))
}

/// Returns whether a line of a joined row contains only descriptions free of other people's text. A sender's own words in brackets count
/// as a description.
fn describes_own(line: &str) -> bool {
    let is_own = |description: &str| OWN_DESCRIPTIONS.iter().any(|own| description.starts_with(own));
    let is_quoted = line.starts_with(CORRECTED);
    let mut brackets = line.match_indices('[').filter(|(at, _)| *at == 0 || is_quoted);
    brackets.all(|(at, _)| line.get(at..).is_some_and(is_own))
}

/// Returns whether the quoted text is entirely the sender's own, or ours without untrusted text. An unknown message counts as untrusted.
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
            let (kind, text): (String, String) = (row.get(0)?, read_text(row, 1)?);
            Ok(find_incoming_authors(&kind, &text, forwarded_from.as_deref()).is_none())
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
    /// The authors of its text besides its sender, for people; `None` if all of it is the sender's.
    pub fn words_of_others(&self) -> Option<String> {
        find_incoming_authors(&self.kind, &self.text, self.forwarded_from.as_deref())
    }
}
