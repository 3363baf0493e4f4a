//! Files that came with messages: wanted (known by the channel's handle), kept (here, on the disk), ready (also written
//! down, if it is speech), or failed for good. They are stored in the transaction that stores their message.

use rusqlite::Transaction;

use super::Result;

/// A file as a channel names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAttachment {
    /// `voice`, `photo` and so on, as the Bot API names the field.
    pub kind: String,
    /// The channel's handle for fetching it.
    pub file_id: String,
    /// The same for the same file, whoever sends it.
    pub unique_id: Option<String>,
    /// As its sender named it: never a path.
    pub name: Option<String>,
    /// Its media type, as its sender says.
    pub mime: Option<String>,
    /// Its length, as the channel says.
    pub bytes: Option<i64>,
    /// The duration of sound or film, in seconds.
    pub seconds: Option<i64>,
    /// A picture's width and height, in pixels.
    pub size: Option<(i64, i64)>,
}

/// Stores what came with a message.
pub(super) fn insert(tx: &Transaction<'_>, message_id: i64, attachments: &[NewAttachment]) -> Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO attachments (message_id, kind, file_id, unique_id, name, mime, bytes, seconds, width, height)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for it in attachments {
        statement.execute(rusqlite::params![
            message_id,
            it.kind,
            it.file_id,
            it.unique_id,
            it.name,
            it.mime,
            it.bytes,
            it.seconds,
            it.size.map(|(width, _)| width),
            it.size.map(|(_, height)| height),
        ])?;
    }
    Ok(())
}
