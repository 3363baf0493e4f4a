//! Files that came with messages: wanted (known by the channel's handle), kept (on the disk), ready (speech also transcribed), or failed
//! for good. They are stored in the transaction that stores their message.
//!
//! The part of a message's text that describes its files is derived from their rows ([`rewrite_message_text`]). `steps` moves files
//! through these states, and only the bot uses it; `care` is for retention and `health`.

mod care;
mod steps;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};
use reveille_media::{
    Transcript,
    words::{self, Telling},
};

use crate::{
    Result,
    areas::{Attachments, ReadStore},
    outcome::PUT_ASIDE,
    sql::{self, Row, Transaction},
};
pub use care::FileOnDisk;
pub use steps::{FailedFetch, NO_SPEECH_MODEL};

/// A file as a channel names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewAttachment {
    /// `voice`, `photo` and so on, the Bot API's field name.
    pub kind: String,
    /// The channel's handle for fetching it.
    pub file_id: String,
    /// An id shared by all copies of the file, regardless of the sender.
    pub unique_id: Option<String>,
    /// The sender's name for it: never a path.
    pub name: Option<String>,
    /// The media type stated by the sender.
    pub mime: Option<String>,
    /// The length stated by the channel.
    pub bytes: Option<i64>,
    /// The duration of sound or film, in seconds.
    pub seconds: Option<i64>,
    /// A picture's width and height, in pixels.
    pub size: Option<(i64, i64)>,
}

/// A file that was on the disk before its message, because a person at a terminal named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedFile {
    /// The file.
    pub file: NewAttachment,
    /// The path below the workspace.
    pub path: String,
}

impl NewAttachment {
    /// The id shared by all copies of the file, as far as the channel tells.
    pub(crate) fn shared_id(&self) -> &str {
        self.unique_id.as_ref().unwrap_or(&self.file_id)
    }
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Still to be fetched.
    Wanted,
    /// On the disk. Speech is still to be transcribed.
    Kept,
    /// On the disk and transcribed.
    Ready,
    /// Fetching failed; or, if the row has a path, the file is here but transcription failed.
    Failed,
}

impl FileState {
    fn parse(text: &str) -> Self {
        match text {
            "wanted" => Self::Wanted,
            "kept" => Self::Kept,
            "ready" => Self::Ready,
            _ => Self::Failed,
        }
    }
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// The row id.
    pub id: i64,
    /// The file as the channel names it.
    pub file: NewAttachment,
    /// The file's state.
    pub state: FileState,
    /// The path below the workspace.
    pub path: Option<String>,
    /// The number of failures in the present step.
    pub attempts: u32,
    /// The number of failed fetches that were the file's own fault.
    pub faults: u32,
    /// The earliest time of the present step.
    pub not_before: Option<DateTime<Utc>>,
    /// The reason for a delay, or for giving up.
    pub error: Option<String>,
    /// The transcript.
    pub transcript: Option<Transcript>,
    /// The row of its message.
    pub message_id: i64,
    /// The message's chat.
    pub chat: ChatRef,
    /// The forum topic.
    pub thread_id: Option<i64>,
    /// The channel's own id of the message.
    pub channel_message_id: Option<i64>,
    /// The arrival time of the message.
    pub received_at: Option<DateTime<Utc>>,
}

/// The kinds to transcribe, for SQL; `media::is_sound` is the same for the rest of the program.
const SOUND: &str = "('voice', 'video_note', 'audio')";

/// SQL condition for a file still to be fetched or transcribed. Must equal the condition of the index `attachments_awaited` to the letter.
pub(crate) const AWAITED: &str = "(state = 'wanted' OR state = 'kept' AND kind IN ('voice', 'video_note', 'audio'))";

/// SQL condition: message `incoming_messages.id` has such a file.
pub(crate) const AWAITS_FILES: &str = "EXISTS (SELECT 1 FROM attachments f WHERE f.message_id = incoming_messages.id
    AND (f.state = 'wanted' OR f.state = 'kept' AND f.kind IN ('voice', 'video_note', 'audio')))";

impl Attachment {
    const SELECT: &str =
        "SELECT a.id, a.kind, a.file_id, a.unique_id, a.name, a.mime, a.bytes, a.seconds, a.width, a.height,
            a.state, a.path, a.attempts, a.not_before, a.error, a.transcript,
            m.id, CAST(m.chat_id AS BIGINT), m.thread_id, m.channel_message_id, m.received_at, a.faults
        FROM attachments a JOIN incoming_messages m ON m.id = a.message_id";

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let time = |column| Ok::<_, sql::Error>(row.get::<_, Option<String>>(column)?.as_deref().and_then(parse_time));
        Ok(Self {
            id: row.get(0)?,
            file: NewAttachment {
                kind: row.get(1)?,
                file_id: row.get(2)?,
                unique_id: row.get(3)?,
                name: row.get(4)?,
                mime: row.get(5)?,
                bytes: row.get(6)?,
                seconds: row.get(7)?,
                size: row.get::<_, Option<i64>>(8)?.zip(row.get(9)?),
            },
            state: FileState::parse(&row.get::<_, String>(10)?),
            path: row.get(11)?,
            attempts: row.get(12)?,
            not_before: time(13)?,
            error: row.get(14)?,
            transcript: row.get::<_, Option<String>>(15)?.and_then(|json| serde_json::from_str(&json).ok()),
            message_id: row.get(16)?,
            chat: row.get(17)?,
            thread_id: row.get(18)?,
            channel_message_id: row.get(19)?,
            received_at: time(20)?,
            faults: row.get(21)?,
        })
    }

    /// The file's description for its message.
    fn describe(&self) -> Telling {
        let why = || self.error.clone().unwrap_or_else(|| "for an unknown reason".to_owned());
        match (self.state, &self.transcript) {
            (FileState::Ready, Some(transcript)) => Telling::Heard(transcript.clone()),
            (FileState::Failed, _) if self.path.is_some() => Telling::Unheard(why()),
            (FileState::Failed, _) => Telling::Unfetched(why()),
            _ => Telling::Nothing,
        }
    }
}

impl<S: ReadStore> Attachments<S> {
    /// The files of these messages, in order of arrival; a replacement by an edit takes the place of the replaced file.
    pub fn list_message_attachments(&self, messages: &[i64]) -> Result<Vec<Attachment>> {
        let sql = format!(
            "{} WHERE a.message_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND a.replaced_at IS NULL
             ORDER BY a.message_id, a.channel_message_id NULLS FIRST, a.id",
            Attachment::SELECT
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([crate::to_json(messages)], Attachment::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The newest files of a chat on the disk, newest first.
    pub fn attachments_of_chat(&self, chat: ChatRef, limit: u32) -> Result<Vec<Attachment>> {
        let sql = format!(
            "{} WHERE m.chat_id = ?1 AND a.path IS NOT NULL AND a.replaced_at IS NULL ORDER BY a.message_id DESC, a.id DESC LIMIT ?2",
            Attachment::SELECT
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map((chat, limit), Attachment::from_row)?.collect::<sql::QueryResult<_>>()?)
    }
}

/// Stores the files of a channel's message, which is the row itself or a part of it.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    message_id: i64,
    channel_message_id: Option<i64>,
    attachments: &[NewAttachment],
) -> Result<()> {
    attachments.iter().try_for_each(|it| insert_one(tx, message_id, channel_message_id, it).map(drop))
}

/// Inserts a file; returns its row.
fn insert_one(
    tx: &Transaction<'_>,
    message_id: i64,
    channel_message_id: Option<i64>,
    it: &NewAttachment,
) -> Result<i64> {
    let mut statement = tx.prepare(
        "INSERT INTO attachments (message_id, kind, file_id, unique_id, name, mime, bytes, seconds, width, height,
             channel_message_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING id",
    )?;
    let values = sql::params![
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
        channel_message_id,
    ];
    Ok(statement.query_row(values, |row| row.get(0))?)
}

/// Replaces files after an edit: the earlier files of this channel message are neither shown nor awaited any more, and retention removes
/// them. A fetch under way comes too late to change anything.
pub(crate) fn replace_files(
    tx: &Transaction<'_>,
    message_id: i64,
    channel_message_id: Option<i64>,
    by: &[NewAttachment],
    now: DateTime<Utc>,
) -> Result<()> {
    let kept_ids: Vec<&str> = by.iter().map(NewAttachment::shared_id).collect();
    // A file stored before the parts were recorded has no `channel_message_id`. Its part is known only if the message has a single one.
    tx.prepare(
        "UPDATE attachments SET state = 'failed', error = 'an edit put another file in its place', not_before = NULL,
             listener = NULL, replaced_at = ?4, changed_at = ?4
         WHERE message_id = ?1 AND replaced_at IS NULL
         AND COALESCE(unique_id, file_id) NOT IN (SELECT CAST(value AS TEXT) FROM json_each(?3))
         AND (channel_message_id IS NOT DISTINCT FROM ?2 OR channel_message_id IS NULL AND
              (SELECT count(DISTINCT channel_message_id) FROM message_updates WHERE message_id = ?1) <= 1)",
    )?
    .execute((message_id, channel_message_id, crate::to_json(&kept_ids), format_rfc3339(now)))?;
    Ok(())
}

/// Rewrites the text of a message that is queued or can be retried, so that it reports the state of its files. Call it after a file or the
/// text has changed. Clears `held_for`, because the present model may now be able to answer.
pub(crate) fn rewrite_message_text(tx: &Transaction<'_>, message_id: i64) -> Result<()> {
    let files = tx
        .prepare(&format!(
            "{} WHERE a.message_id = ?1 AND a.replaced_at IS NULL ORDER BY a.channel_message_id NULLS FIRST, a.id",
            Attachment::SELECT
        ))?
        .query_map([message_id], Attachment::from_row)?
        .collect::<sql::QueryResult<Vec<_>>>()?;
    let told: Vec<words::FileWithOutcome<'_>> = files.iter().map(|it| (it.file.kind.as_str(), it.describe())).collect();
    let text: String =
        tx.query_row("SELECT message_text FROM incoming_messages WHERE id = ?1", [message_id], |row| row.get(0))?;
    let retold = words::add_outcomes(&text, &told);
    if retold != text {
        tx.execute(
            &format!(
                "UPDATE incoming_messages SET message_text = ?2, held_for = NULL
                 WHERE id = ?1 AND (processed = 0 OR outcome IN {PUT_ASIDE})"
            ),
            (message_id, retold),
        )?;
        super::spoken::note_message_change(tx, message_id)?;
    }
    Ok(())
}

/// Stores files that are already on the disk.
pub(crate) fn insert_landed_files(tx: &Transaction<'_>, message_id: i64, files: &[LandedFile]) -> Result<()> {
    for LandedFile { file, path } in files {
        let id = insert_one(tx, message_id, None, file)?;
        let sql = "UPDATE attachments SET state = 'kept', path = ?2 WHERE id = ?1";
        tx.execute(sql, (id, path))?;
    }
    Ok(())
}
