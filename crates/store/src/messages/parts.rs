//! The effect of an update on the rows of messages. Most updates make a row. The parts of an album, or of a text that was split, become
//! one row. An edit changes a row that is unclaimed or on hold, and otherwise becomes a correction.
//!
//! Parts can arrive in any number of batches. A growing row is held for a moment after each part, along with later messages of its chat,
//! so that no cycle claims half of it. A late part becomes a row of its own that says so.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
    words,
};

use super::{attachments, overheard, spoken};
use crate::{
    NewAttachment, NewIncoming, Result,
    messages::queue,
    odd_rows::read_text,
    outcome::{OPEN, PUT_ASIDE},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The time a row waits for its next part.
pub(crate) const HOLD: TimeDelta = TimeDelta::seconds(2);
/// The longest message of the channel, in UTF-16 units: clients split longer texts.
const MAX_TEXT_UNITS: usize = 4096;
/// Clients split at a good place (between paragraphs, sentences or words) in the second half of a message's capacity.
const MIN_CUT_UNITS: usize = MAX_TEXT_UNITS / 2;
/// The white space trimmed at a split, in UTF-16 units: with it, both sides exceed one message.
const MAX_TRIMMED_UNITS: usize = 16;
/// The longest gap between two parts of a split text, by the channel's clock: clients send them in one go.
const MAX_CUT_GAP: TimeDelta = TimeDelta::seconds(1);
/// The longest rejoined text, in UTF-16 units.
const MAX_JOINED_UNITS: usize = 32_000;
/// The maximum number of parts in one row; the channel's albums have ten.
const MAX_PARTS: usize = 20;
/// The number of characters a correction quotes from the earlier text.
const MAX_EARLIER_CHARS: usize = 300;

/// The kind of a row made of an album's messages.
const ALBUM: &str = "album";
/// The kind of a row that continues an earlier row, but arrived too late to join it.
const CONTINUATION: &str = "continuation";
/// The kind of a row with the new version of an earlier message.
const CORRECTION: &str = "correction";

/// The larger whole a message may be part of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PartOf {
    /// An album, by the channel's id.
    Album(String),
    /// A text too long for one message, as judged by the text before it.
    Text,
    /// Like `Text`, for a text that looks like a command: it makes a row only if it continues a split text, and then it is no order.
    Rest,
}

/// The result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateEffect {
    /// A new row.
    Stored(i64),
    /// A change of a queued row.
    Changed,
    /// No change: the update is known, says nothing new, or isn't for us.
    Nothing,
}

/// A row an update may belong to.
struct Holder {
    row: i64,
    /// Whether the row may still change, because it is in no conversation.
    is_open: bool,
    /// The present words of the message, or of the row's last part.
    words: String,
}

/// Processes a new message.
pub(crate) fn process_message(
    tx: &Transaction<'_>,
    bot_id: i64,
    message: &NewIncoming,
    now: DateTime<Utc>,
) -> Result<UpdateEffect> {
    if is_known(tx, bot_id, message)? {
        return Ok(UpdateEffect::Nothing);
    }
    let earlier = match &message.part_of {
        Some(PartOf::Album(album)) => find_album_holder(tx, bot_id, message, album)?,
        Some(PartOf::Text | PartOf::Rest) => find_text_holder(tx, bot_id, message)?,
        None => None,
    };
    match earlier {
        // fault: part-comes-late-changes
        Some(row) if row.is_open && has_room(tx, row.row, message)? => {
            join_part(tx, bot_id, row.row, message, now)?;
            Ok(UpdateEffect::Changed)
        }
        Some(_) => {
            let late = NewIncoming { kind: CONTINUATION.to_owned(), ..message.clone() };
            insert_row(tx, bot_id, &late, now)
        }
        None if message.part_of == Some(PartOf::Rest) => Ok(UpdateEffect::Nothing),
        None if message.is_only_part => {
            overheard::save_message(tx, bot_id, message, now)?;
            Ok(UpdateEffect::Nothing)
        }
        None => insert_row(tx, bot_id, message, now),
    }
}

/// Processes a new version of a message.
pub(crate) fn process_edit(
    tx: &Transaction<'_>,
    bot_id: i64,
    edit: &NewIncoming,
    now: DateTime<Utc>,
) -> Result<UpdateEffect> {
    if is_known(tx, bot_id, edit)? {
        return Ok(UpdateEffect::Nothing);
    }
    let Some(holder) = find_holder(tx, bot_id, edit)? else {
        let anew = NewIncoming { part_of: None, ..edit.clone() };
        return if edit.is_only_part { Ok(UpdateEffect::Nothing) } else { insert_row(tx, bot_id, &anew, now) };
    };
    let new_files = new_files(tx, edit)?;
    if holder.words == edit.text && new_files.is_empty() {
        return Ok(UpdateEffect::Nothing);
    }
    if holder.is_open {
        record_words(tx, bot_id, holder.row, edit)?;
        if !new_files.is_empty() {
            attachments::replace_files(tx, holder.row, edit.channel_message_id, &edit.attachments, now)?;
            attachments::insert(tx, holder.row, edit.channel_message_id, &new_files)?;
        }
        rebuild_text(tx, holder.row)?;
        // The present model may be able to answer the message now. A text that became a file isn't the sender's own words any more, which
        // `kind` records; with several parts, a part that is still text says nothing about the others.
        tx.prepare(
            "WITH parts(are_several) AS
                 (SELECT count(DISTINCT channel_message_id) > 1 FROM message_updates WHERE message_id = ?1)
             UPDATE incoming_messages SET held_for = NULL,
                 raw = CASE WHEN (SELECT are_several FROM parts) THEN raw ELSE COALESCE(?2, raw) END,
                 kind = CASE WHEN kind IN (?4, ?5, ?6) OR ?3 = 'text' AND (SELECT are_several FROM parts) THEN kind ELSE ?3 END
             WHERE id = ?1",
        )?
        .execute((holder.row, &edit.raw, &edit.kind, ALBUM, CONTINUATION, CORRECTION))?;
        return Ok(UpdateEffect::Changed);
    }
    let correction = NewIncoming {
        kind: CORRECTION.to_owned(),
        text: render_correction(&holder.words, &edit.text, !new_files.is_empty()),
        attachments: new_files,
        part_of: None,
        ..edit.clone()
    };
    let row = queue::insert(tx, Some(bot_id), &correction, now)?;
    if let Some(row) = row {
        record_words(tx, bot_id, row, edit)?;
    }
    Ok(row.map_or(UpdateEffect::Nothing, UpdateEffect::Stored))
}

/// Inserts a row. Records the message's own words if the row's text will grow beyond them, for example by a transcript.
fn insert_row(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming, now: DateTime<Utc>) -> Result<UpdateEffect> {
    let Some(row) = queue::insert(tx, Some(bot_id), message, now)? else {
        return Ok(UpdateEffect::Nothing);
    };
    let is_late = message.kind == CONTINUATION;
    if is_late || !message.attachments.is_empty() {
        record_words(tx, bot_id, row, message)?;
    }
    if is_late {
        rebuild_text(tx, row)?;
    }
    if may_continue(message) {
        hold_row(tx, row, message.chat, now)?;
    }
    Ok(UpdateEffect::Stored(row))
}

/// Adds a message to a row as a part.
fn join_part(tx: &Transaction<'_>, bot_id: i64, row: i64, message: &NewIncoming, now: DateTime<Utc>) -> Result<()> {
    // The row's own message becomes its first part.
    tx.prepare(
        "INSERT INTO message_updates (message_id, chat_id, channel_message_id, words)
         SELECT id, chat_id, channel_message_id, message_text FROM incoming_messages
         WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM message_updates WHERE message_id = ?1)",
    )?
    .execute([row])?;
    record_words(tx, bot_id, row, message)?;
    attachments::insert(tx, row, message.channel_message_id, &message.attachments)?;
    tx.prepare(
        "UPDATE incoming_messages SET kind = CASE WHEN album IS NULL OR kind = ?2 THEN kind ELSE ?3 END, sent_at = COALESCE(?4, sent_at),
             raw = COALESCE(raw || '\n', '') || COALESCE(?5, ''), held_for = NULL WHERE id = ?1",
    )?
    .execute((row, CONTINUATION, ALBUM, message.sent_at.map(format_rfc3339), &message.raw))?;
    rebuild_text(tx, row)?;
    if may_continue(message) { hold_row(tx, row, message.chat, now) } else { Ok(()) }
}

fn is_known(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming) -> Result<bool> {
    let Some(update_id) = message.update_id else { return Ok(false) };
    let known = tx
        .prepare(
            // fault: update-changed-message-taken
            "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE bot_id = ?1 AND update_id = ?2)
                 OR EXISTS (SELECT 1 FROM message_updates WHERE bot_id = ?1 AND update_id = ?2)",
            // fault end: update-changed-message-taken
        )?
        .query_row((bot_id, update_id), |row| row.get(0))?;
    Ok(known)
}

/// Records the present words of a message.
fn record_words(tx: &Transaction<'_>, bot_id: i64, row: i64, message: &NewIncoming) -> Result<()> {
    tx.prepare(
        "INSERT INTO message_updates (message_id, chat_id, channel_message_id, words, bot_id, update_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((
        row,
        message.chat,
        message.channel_message_id,
        &message.text,
        message.update_id.and(Some(bot_id)),
        message.update_id,
    ))?;
    Ok(())
}

/// The row of the message's album: the newest, if there are several.
fn find_album_holder(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming, album: &str) -> Result<Option<Holder>> {
    let sql = format!(
        "SELECT id, {}, '' FROM incoming_messages m WHERE chat_id = ?1 AND album = ?2 AND bot_id = ?3
         ORDER BY id DESC LIMIT 1",
        may_change()
    );
    Ok(tx.prepare(&sql)?.query_row((message.chat, album, bot_id), read_holder).optional()?)
}

/// The row a text continues: its sender's last message, if it was sent just before and both together exceed one message.
fn find_text_holder(tx: &Transaction<'_>, bot_id: i64, message: &NewIncoming) -> Result<Option<Holder>> {
    let sql = format!(
        "SELECT id, {},
             COALESCE((SELECT words FROM message_updates WHERE message_id = m.id
                       ORDER BY channel_message_id DESC NULLS LAST, id DESC LIMIT 1), message_text),
             sent_at, quoted, kind IN ('text', '{CONTINUATION}') AND album IS NULL AND forwarded_from IS NOT DISTINCT FROM ?4
         FROM incoming_messages m WHERE chat_id = ?1 AND sender_id IS NOT DISTINCT FROM ?2 AND thread_id IS NOT DISTINCT FROM ?5 AND bot_id = ?3
         ORDER BY id DESC LIMIT 1",
        may_change()
    );
    let last = tx
        .prepare(&sql)?
        .query_row((message.chat, message.sender_id, bot_id, &message.forwarded_from, message.thread_id), |row| {
            let sent_at = row.get::<_, Option<String>>(3)?.as_deref().and_then(parse_time);
            Ok((read_holder(row)?, sent_at, row.get::<_, Option<String>>(4)?, row.get::<_, bool>(5)?))
        })
        .optional()?;
    let goes_on = |(holder, sent_at, quoted, is_alike): &(Holder, Option<DateTime<Utc>>, Option<String>, bool)| {
        *is_alike && is_continuation(message, &holder.words, *sent_at, quoted.as_deref())
    };
    Ok(last.filter(goes_on).map(|(holder, ..)| holder))
}

/// Returns whether `message` continues an earlier text of its sender, by the same rules as [`find_text_holder`].
pub(crate) fn is_text_continuation(earlier: &NewIncoming, message: &NewIncoming) -> bool {
    let is_alike = earlier.part_of == Some(PartOf::Text)
        && earlier.sender_id == message.sender_id
        && earlier.thread_id == message.thread_id
        && earlier.forwarded_from == message.forwarded_from;
    is_alike && is_continuation(message, &earlier.text, earlier.sent_at, earlier.quoted.as_deref())
}

/// Returns whether a message continues `words`, sent at `sent_at` in reply to `quoted`.
fn is_continuation(message: &NewIncoming, words: &str, sent_at: Option<DateTime<Utc>>, quoted: Option<&str>) -> bool {
    let gap = message.sent_at.zip(sent_at).map(|(at, before)| at.signed_duration_since(before));
    let is_at_once = gap.is_some_and(|gap| (TimeDelta::zero()..=MAX_CUT_GAP).contains(&gap));
    let answers_the_same = message.quoted.is_none() || message.quoted.as_deref() == quoted;
    is_at_once && answers_the_same && is_cut(words, &message.text)
}

/// Returns whether two texts look like the sides of a split: a client sends as much as fits.
fn is_cut(left: &str, right: &str) -> bool {
    let (left, right) = (count_units(left), count_units(right));
    left >= MIN_CUT_UNITS && left + right + MAX_TRIMMED_UNITS > MAX_TEXT_UNITS
}

fn count_units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The row that holds a message now, and the message's present words: the newest among its own row and its corrections. A further part
/// may have joined a row that returned to the queue.
fn find_holder(tx: &Transaction<'_>, bot_id: i64, edit: &NewIncoming) -> Result<Option<Holder>> {
    let may_be_told = format!("{} OR {}", may_change(), is_on_hold());
    let sql = format!(
        "SELECT m.id, {may_be_told}, u.words FROM message_updates u JOIN incoming_messages m ON m.id = u.message_id
         WHERE u.chat_id = ?1 AND u.channel_message_id = ?2 AND m.bot_id = ?3 ORDER BY m.id DESC, u.id DESC LIMIT 1"
    );
    let key = (edit.chat, edit.channel_message_id, bot_id);
    let noted = tx.prepare(&sql)?.query_row(key, read_holder).optional()?;
    if noted.is_some() {
        return Ok(noted);
    }
    let sql = format!(
        "SELECT id, {may_be_told}, message_text FROM incoming_messages m
         WHERE chat_id = ?1 AND channel_message_id = ?2 AND bot_id = ?3 ORDER BY id DESC LIMIT 1"
    );
    Ok(tx.prepare(&sql)?.query_row(key, read_holder).optional()?)
}

/// SQL condition: row `m` may still change, because it is queued and in no open conversation. A row a model has seen stays as it is.
pub(crate) fn may_change() -> String {
    // fault: message-conversation-edited
    format!("(m.processed = 0 AND NOT EXISTS (SELECT 1 FROM cycles c WHERE c.id = m.cycle_id AND c.state IN {OPEN}))")
}

/// SQL condition: row `m` is on hold until a person retries it. An edit then updates its words; it stays on hold, and accepts no further
/// parts.
fn is_on_hold() -> String {
    format!("m.processed = 1 AND COALESCE(m.outcome, '') IN {PUT_ASIDE}")
}

fn read_holder(row: &sql::Row<'_>) -> sql::QueryResult<Holder> {
    Ok(Holder { row: row.get(0)?, is_open: row.get(1)?, words: read_text(row, 2)? })
}

fn has_room(tx: &Transaction<'_>, row: i64, message: &NewIncoming) -> Result<bool> {
    let (parts, text): (usize, String) = tx
        .prepare(
            "SELECT (SELECT count(DISTINCT channel_message_id) FROM message_updates WHERE message_id = ?1), message_text
             FROM incoming_messages WHERE id = ?1",
        )?
        .query_row([row], |row| Ok((row.get::<_, i64>(0)?.max(1) as usize, read_text(row, 1)?)))?;
    Ok(parts < MAX_PARTS && count_units(&text) + count_units(&message.text) <= MAX_JOINED_UNITS)
}

/// The files an edit adds, compared with the newest row that has files of this message.
fn new_files(tx: &Transaction<'_>, edit: &NewIncoming) -> Result<Vec<NewAttachment>> {
    let mut is_known = tx.prepare(
        "SELECT EXISTS (SELECT 1 FROM attachments WHERE COALESCE(unique_id, file_id) = ?3 AND replaced_at IS NULL AND message_id = (
             SELECT max(message_id) FROM attachments WHERE replaced_at IS NULL AND message_id IN (
                 SELECT id FROM incoming_messages WHERE chat_id = ?1 AND channel_message_id = ?2
                 UNION ALL SELECT message_id FROM message_updates WHERE chat_id = ?1 AND channel_message_id = ?2)))",
    )?;
    let mut new = Vec::new();
    for file in &edit.attachments {
        let is_known: bool =
            is_known.query_row((edit.chat, edit.channel_message_id, file.shared_id()), |row| row.get(0))?;
        if !is_known {
            new.push(file.clone());
        }
    }
    Ok(new)
}

/// Rebuilds a row's text from its messages' present words.
fn rebuild_text(tx: &Transaction<'_>, row: i64) -> Result<()> {
    let (kind, is_album, has_files): (String, bool, bool) = tx
        .prepare(
            "SELECT kind, album IS NOT NULL,
                 EXISTS (SELECT 1 FROM attachments WHERE message_id = incoming_messages.id AND replaced_at IS NULL)
             FROM incoming_messages WHERE id = ?1",
        )?
        .query_row([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let parts = tx
        .prepare(
            "SELECT words FROM message_updates u WHERE message_id = ?1
             AND id = (SELECT max(id) FROM message_updates WHERE message_id = ?1 AND channel_message_id IS NOT DISTINCT FROM u.channel_message_id)
             ORDER BY channel_message_id NULLS FIRST",
        )?
        .query_map([row], |row| read_text(row, 0))?
        .collect::<sql::QueryResult<Vec<_>>>()?;
    let text = match kind.as_str() {
        CORRECTION => render_correction(&read_earlier_words(tx, row)?, &parts.concat(), has_files),
        CONTINUATION => format!("[{}]\n{}", describe_membership(is_album), join_words(&parts, is_album)),
        _ => join_words(&parts, is_album),
    };
    tx.prepare("UPDATE incoming_messages SET message_text = ?2 WHERE id = ?1")?.execute((row, text))?;
    spoken::note_message_change(tx, row)?;
    // This text lacks transcripts and failures of files, which are added here.
    attachments::rewrite_message_text(tx, row)
}

fn describe_membership(is_album: bool) -> &'static str {
    if is_album { "belongs to the album that was sent before" } else { "goes on from the message before" }
}

/// The words of all parts. A split falls within a word only if the part has the maximum length.
fn join_words(parts: &[String], is_album: bool) -> String {
    let mut text = String::new();
    let mut is_cut_in_a_word = true;
    for part in parts {
        if !is_cut_in_a_word {
            text.push('\n');
        }
        text.push_str(part);
        is_cut_in_a_word = !is_album && count_units(part) >= MAX_TEXT_UNITS;
    }
    text
}

/// The words, before the correction, of the message a row corrects.
fn read_earlier_words(tx: &Transaction<'_>, row: i64) -> Result<String> {
    let words = tx
        .prepare(
            "SELECT COALESCE(
                 (SELECT words FROM message_updates u JOIN incoming_messages o ON o.id = u.message_id
                  WHERE u.chat_id = m.chat_id AND u.channel_message_id = m.channel_message_id AND o.bot_id = m.bot_id
                  AND o.id < m.id ORDER BY u.id DESC LIMIT 1),
                 (SELECT message_text FROM incoming_messages o WHERE o.chat_id = m.chat_id
                  AND o.channel_message_id = m.channel_message_id AND o.bot_id = m.bot_id AND o.id < m.id
                  ORDER BY o.id DESC LIMIT 1), '')
             FROM incoming_messages m WHERE m.id = ?1",
        )?
        .query_row([row], |row| read_text(row, 0))?;
    Ok(words)
}

/// The text of a correction: a short quote of the earlier words, the new words, and a mention of a new file.
fn render_correction(before: &str, now: &str, has_new_file: bool) -> String {
    let before = words::cut_text(&words::one_line(before), MAX_EARLIER_CHARS, "…");
    let how = if has_new_file { "it has a new file now, and says" } else { "it says now" };
    format!("[edited an earlier message, which said: “{before}”; {how}:]\n{now}")
}

/// Returns whether further parts may follow this message.
pub(crate) fn may_continue(message: &NewIncoming) -> bool {
    match message.part_of {
        Some(PartOf::Album(_)) => true,
        Some(PartOf::Text | PartOf::Rest) => count_units(&message.text) >= MIN_CUT_UNITS,
        None => false,
    }
}

/// Holds a row for further parts, along with the held rows of its chat, so that later messages aren't answered first.
fn hold_row(tx: &Transaction<'_>, row: i64, chat: ChatRef, now: DateTime<Utc>) -> Result<()> {
    let (until, now) = (format_rfc3339(now + HOLD), format_rfc3339(now));
    tx.prepare(
        "UPDATE incoming_messages SET not_before = CASE WHEN not_before > ?2 THEN not_before ELSE ?2 END
         WHERE id = ?1 AND processed = 0",
    )?
    .execute((row, &until))?;
    tx.prepare(
        "UPDATE incoming_messages SET not_before = ?2
         WHERE chat_id = ?1 AND processed = 0 AND attempts = 0 AND not_before > ?3 AND not_before < ?2",
    )?
    .execute((chat, &until, &now))?;
    Ok(())
}
