//! Recordings as rows. A recording is written at the end of its cycle, and outlives the cycle's journal. Among equal requests only the
//! newest stays, and each chat keeps a limited number.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    FencedStore, Result,
    areas::{ReadStore, Recordings, WriteStore},
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// The number of recordings kept per chat, the newest.
pub const MAX_RECORDINGS: u32 = 500;

/// A call of a recording.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RecordedCall {
    /// The tool.
    pub tool: String,
    /// The arguments as JSON, shortened if long.
    pub input: String,
    /// The receipt.
    pub did: String,
    /// Whether the cycle had read untrusted text before this call, which may have influenced it.
    #[serde(default)]
    pub is_after_others: bool,
}

/// The stored data of a cycle, with secrets already masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRecording {
    /// The cycle.
    pub cycle_id: String,
    /// The chat; `None` if no chat asked, which means the owner's.
    pub chat: Option<ChatRef>,
    /// The person's words, or the reason for the cycle.
    pub request: String,
    /// The request's content words, each once, sorted.
    pub words: Vec<String>,
    /// The successful calls, in order.
    pub calls: Vec<RecordedCall>,
    /// The receipts as a text.
    pub narrative: String,
    /// The authors of untrusted text the cycle had read.
    pub taint: Option<String>,
    /// The number of model turns.
    pub rounds: u32,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The row id.
    pub id: i64,
    /// The end of its cycle.
    pub at: Option<DateTime<Utc>>,
    /// The stored data.
    pub kept: NewRecording,
}

/// The search data of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The recording's row id: later is larger.
    pub id: i64,
    /// The request's content words.
    pub words: Vec<String>,
    /// The request's vector by the chosen encoder.
    pub vector: Option<Vec<f32>>,
}

impl Recording {
    pub(crate) const COLUMNS: &str = "id, cycle_id, chat_id, at, request, words, calls, narrative, taint, rounds";

    pub(crate) fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            at: parse_time(&row.get::<_, String>(3)?),
            kept: NewRecording {
                cycle_id: row.get(1)?,
                chat: row.get(2)?,
                request: row.get(4)?,
                words: split_words(&row.get::<_, String>(5)?),
                calls: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
                narrative: row.get(7)?,
                taint: row.get(8)?,
                rounds: row.get(9)?,
            },
        })
    }
}

fn split_words(words: &str) -> Vec<String> {
    words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl<S: ReadStore> Recordings<S> {
    /// All recordings, newest first.
    pub fn list_recordings(&self) -> Result<Vec<Recording>> {
        let sql = format!("SELECT {} FROM recordings ORDER BY id DESC", Recording::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], Recording::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The row ids of all recordings.
    pub fn recording_ids(&self) -> Result<Vec<i64>> {
        let mut statement = self.0.conn().prepare("SELECT id FROM recordings ORDER BY id")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// A recording by its row id.
    pub fn find_recording(&self, id: i64) -> Result<Option<Recording>> {
        let sql = format!("SELECT {} FROM recordings WHERE id = ?1", Recording::COLUMNS);
        Ok(self.0.conn().prepare(&sql)?.query_row([id], Recording::from_row).optional()?)
    }

    /// The recordings of these chats (`None`: those without a chat), with the vectors made by `encoder`, newest first.
    pub fn recorded_requests(&self, chats: &[Option<ChatRef>], encoder: Option<&str>) -> Result<Vec<RecordedRequest>> {
        let of_nobody = chats.contains(&None);
        let chats: Vec<ChatRef> = chats.iter().copied().flatten().collect();
        let mut statement = self.0.conn().prepare(
            "SELECT id, words, CASE WHEN model = ?3 THEN vector END FROM recordings
             WHERE chat_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) OR ?2 AND chat_id IS NULL ORDER BY id DESC",
        )?;
        let requests = statement.query_map((to_json(&chats), of_nobody, encoder), |row| {
            let vector = row.get::<_, Option<Vec<u8>>>(2)?.map(|bytes| to_floats(&bytes));
            Ok(RecordedRequest { id: row.get(0)?, words: split_words(&row.get::<_, String>(1)?), vector })
        })?;
        Ok(requests.collect::<sql::QueryResult<_>>()?)
    }

    /// The requests without a vector by `encoder`, newest first, at most `limit`. Chats kept on this machine are left out if the
    /// texts would leave it.
    pub fn requests_without_vector(
        &self,
        encoder: &str,
        limit: usize,
        place: EncoderPlace,
    ) -> Result<Vec<(i64, String)>> {
        let leaves = place == EncoderPlace::Elsewhere;
        let mut statement = self.0.conn().prepare(
            "SELECT id, request FROM recordings WHERE (model IS DISTINCT FROM ?1 OR vector IS NULL)
                 AND NOT (?3 AND COALESCE(chat_id IN (SELECT chat_id FROM local_chats), FALSE)) ORDER BY id DESC LIMIT ?2",
        )?;
        let rows = statement.query_map((encoder, limit as i64, leaves), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

/// Where an encoder runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncoderPlace {
    /// On this machine.
    Here,
    /// On a server, to which the texts are sent.
    Elsewhere,
}

impl<S: WriteStore> Recordings<S> {
    /// Deletes a recording. `false` if there was no such recording.
    pub fn drop_recording(&mut self, id: i64) -> Result<bool> {
        self.0.write(|tx| Ok(tx.execute("DELETE FROM recordings WHERE id = ?1", [id])? == 1))
    }
}

impl Recordings<&mut FencedStore<'_>> {
    /// Stores request vectors made by `encoder`, replacing another encoder's.
    pub fn put_request_vectors(&mut self, encoder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<()> {
        // Vectors lost in a power cut are computed again.
        self.0.write_relaxed(|tx| {
            let mut statement = tx.prepare("UPDATE recordings SET model = ?2, vector = ?3 WHERE id = ?1")?;
            for (id, vector) in vectors {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                statement.execute((id, encoder, bytes))?;
            }
            Ok(())
        })
    }
}

fn to_floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// Stores a recording, once per cycle. An older recording of the same request is deleted, unless only one of the two had read untrusted
/// text.
pub(crate) fn save_recording(tx: &Transaction<'_>, recording: &NewRecording, now: DateTime<Utc>) -> Result<()> {
    let words = recording.words.join(" ");
    let kept: sql::QueryResult<i64> = tx.query_row(
        "INSERT INTO recordings (cycle_id, chat_id, at, request, words, calls, narrative, taint, rounds)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING RETURNING id",
        sql::params![
            recording.cycle_id,
            recording.chat,
            format_rfc3339(now),
            recording.request,
            words,
            to_json(&recording.calls),
            recording.narrative,
            recording.taint,
            recording.rounds
        ],
        |row| row.get(0),
    );
    let Some(id) = kept.optional()? else { return Ok(()) };
    tx.execute(
        "DELETE FROM recordings WHERE id < ?1 AND chat_id IS NOT DISTINCT FROM ?2 AND words = ?3 AND (taint IS NULL) = ?4",
        (id, recording.chat, &words, recording.taint.is_none()),
    )?;
    tx.execute(
        "DELETE FROM recordings WHERE chat_id IS NOT DISTINCT FROM ?1 AND id <= (
             SELECT id FROM recordings WHERE chat_id IS NOT DISTINCT FROM ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        (recording.chat, MAX_RECORDINGS),
    )?;
    Ok(())
}

/// Deletes the recording of a cycle.
pub(crate) fn delete_recording(tx: &Transaction<'_>, cycle_id: &str) -> Result<()> {
    tx.execute("DELETE FROM recordings WHERE cycle_id = ?1", [cycle_id])?;
    Ok(())
}
