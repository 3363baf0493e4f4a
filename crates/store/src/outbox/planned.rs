//! Planning a message: its row and its parts. [`super::attempts`] sends them.

use chrono::{DateTime, Utc};

use reveille_base::clock::format_rfc3339;
use reveille_memory::{
    outside,
    render::{self, Links},
};

use super::provenance;
use crate::{
    NewOutgoing, OutgoingKind, Result,
    odd_rows::read_text,
    outbox::{questions, recipients, rich},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The number of parts from which a message is sent as its beginning and a file.
const FILE_FROM_PARTS: usize = 4;
/// The file's name; its content is Markdown.
pub(super) const WHOLE: &str = "answer.md";

/// Stores a message that is never sent, for its key; `None` if the key was already told.
pub(crate) fn store_unsent(
    tx: &Transaction<'_>,
    message: &NewOutgoing,
    now: DateTime<Utc>,
) -> sql::QueryResult<Option<()>> {
    let NewOutgoing { chat, text, kind, key, .. } = message;
    let kept = tx.execute(
        "INSERT INTO outgoing_messages (chat_id, message_text, created_at, sent_at, taken_back_at, kind, key)
         VALUES (?1, ?2, ?3, ?3, ?3, ?4, ?5) ON CONFLICT (key) DO NOTHING",
        (chat, text, format_rfc3339(now), kind.as_str(), key),
    )?;
    Ok((kept > 0).then_some(()))
}

/// Plans a message and its parts; `None` if its key was already told. Links become text if untrusted text may be in the message, even in
/// a notice.
pub(crate) fn insert(tx: &Transaction<'_>, message: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<i64>> {
    let taint = provenance::find_outgoing_authors(tx, message)?;
    let text = outside::strip_marks(&message.text);
    let id: Option<i64> = tx
        .prepare(
            "INSERT INTO outgoing_messages (chat_id, message_text, created_at, kind, key, thread_id, reply_to, cycle_id, taint)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (key) DO NOTHING RETURNING id",
        )?
        .query_row(
            sql::params![
                message.chat,
                text,
                format_rfc3339(now),
                message.kind.as_str(),
                message.key,
                message.thread_id,
                message.reply_to,
                message.cycle_id,
                taint,
            ],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(id) = id {
        recipients::note_outgoing(tx, id, message.cycle_id.as_deref())?;
        if let Some(nudge) = &message.nudge {
            questions::record_nudge(tx, id, nudge)?;
        }
        // fault: links-followed-others-words
        let links = if message.links_as_text || taint.is_some() { Links::AsText } else { Links::Clickable };
        let parts = plan_message_parts(tx, id, &text, message.kind, links, now)?;
        if rich::is_candidate(message, &text, links, parts) {
            rich::note_candidate(tx, id)?;
        }
    }
    Ok(id)
}

/// Plans the parts of handwritten rows, which have none yet.
pub(super) fn plan_parts(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<()> {
    let mut statement = tx.prepare(
        "SELECT id, message_text FROM outgoing_messages o WHERE sent_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM outgoing_parts WHERE outgoing_id = o.id)",
    )?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, read_text(row, 1)?)))?
        .collect::<sql::QueryResult<Vec<_>>>()?;
    for (id, text) in rows {
        plan_message_parts(tx, id, &text, OutgoingKind::Notice, Links::Clickable, now)?;
    }
    Ok(())
}

/// Plans a refused file as messages, with links as text, which is safe even for untrusted text.
pub(super) fn plan_without_file(tx: &Transaction<'_>, id: i64, now: DateTime<Utc>) -> Result<()> {
    let sql = "SELECT message_text FROM outgoing_messages WHERE id = ?1";
    let text = tx.query_row(sql, [id], |row| read_text(row, 0))?;
    tx.execute("DELETE FROM outgoing_parts WHERE outgoing_id = ?1", [id])?;
    plan_messages(tx, id, &render::render_with_links(&text, Links::AsText), now)
}

/// Plans a refused rich message as plain parts. They bear the mark of a repeat if an earlier attempt may have arrived.
pub(super) fn plan_plain_again(tx: &Transaction<'_>, id: i64, is_repeat: bool, now: DateTime<Utc>) -> Result<()> {
    let sql = "SELECT message_text FROM outgoing_messages WHERE id = ?1";
    let text = tx.query_row(sql, [id], |row| read_text(row, 0))?;
    tx.execute("DELETE FROM outgoing_parts WHERE outgoing_id = ?1", [id])?;
    plan_message_parts(tx, id, &text, OutgoingKind::Reply, Links::Clickable, now)?;
    if is_repeat {
        tx.execute("UPDATE outgoing_parts SET repeats = 1 WHERE outgoing_id = ?1", [id])?;
    }
    Ok(())
}

/// Plans a message's parts, and returns the number of plain messages that the text needs. A question always stays a message, because its buttons are below it.
fn plan_message_parts(
    tx: &Transaction<'_>,
    id: i64,
    text: &str,
    kind: OutgoingKind,
    links: Links,
    now: DateTime<Utc>,
) -> Result<usize> {
    let parts = render::render_with_links(text, links);
    if parts.len() >= FILE_FROM_PARTS
        && kind != OutgoingKind::Approval
        && let Some(part) = render::render_beginning(text, links)
    {
        tx.execute(
            "INSERT INTO outgoing_parts (outgoing_id, part, html, plain, as_file, changed_at) VALUES (?1, 0, ?2, ?3, 1, ?4)",
            (id, &part.html, &part.plain, format_rfc3339(now)),
        )?;
    } else {
        plan_messages(tx, id, &parts, now)?;
    }
    Ok(parts.len())
}

fn plan_messages(tx: &Transaction<'_>, id: i64, parts: &[render::RenderedPart], now: DateTime<Utc>) -> Result<()> {
    if parts.is_empty() {
        // A text without visible characters can't be sent: the part fails, so that the row ends.
        tx.execute(
            "INSERT INTO outgoing_parts (outgoing_id, part, html, plain, state, error, changed_at)
             VALUES (?1, 0, '', '', 'failed', 'the message has no visible text', ?2)",
            (id, format_rfc3339(now)),
        )?;
    }
    for (number, part) in parts.iter().enumerate() {
        tx.execute(
            "INSERT INTO outgoing_parts (outgoing_id, part, html, plain, changed_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (id, number as i64, &part.html, &part.plain, format_rfc3339(now)),
        )?;
    }
    Ok(())
}
