//! Recordings as rows. One is written with the end of its cycle, and outlives the cycle's journal. The newest of the same request
//! stands for all; of each chat so many are kept.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{parse_time, rfc3339},
    types::ChatRef,
};

use crate::{
    FencedStore, Result, Store, json,
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// Recordings of one chat that are kept: the newest.
pub const MAX_RECORDINGS: u32 = 500;

/// A call of a recording.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RecordedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, JSON, cut where they were long.
    pub input: String,
    /// What happened, by its receipt.
    pub did: String,
    /// Whether the cycle had read others' words when it was made: then they may have had a hand in it.
    #[serde(default)]
    pub is_after_others: bool,
}

/// What is kept of a cycle. All of it is masked already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRecording {
    /// The cycle.
    pub cycle_id: String,
    /// Whose it is; none: no chat asked, so it is the owner's.
    pub chat: Option<ChatRef>,
    /// The person's words, or why the cycle was due.
    pub request: String,
    /// The request's content words, each once, sorted.
    pub words: Vec<String>,
    /// The calls that worked, in their order.
    pub calls: Vec<RecordedCall>,
    /// What was done, by the receipts.
    pub narrative: String,
    /// Whose words the cycle had read besides its person's and the memory's.
    pub taint: Option<String>,
    /// Turns of the model.
    pub rounds: u32,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Its number.
    pub id: i64,
    /// When its cycle ended.
    pub at: Option<DateTime<Utc>>,
    /// What is kept.
    pub kept: NewRecording,
}

/// What a recording is found by.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The recording's number: later is larger.
    pub id: i64,
    /// The request's content words.
    pub words: Vec<String>,
    /// What the request means, by the encoder that was asked for.
    pub vector: Option<Vec<f32>>,
}

impl Recording {
    pub(crate) const COLUMNS: &str = "id, cycle_id, chat_id, at, request, words, calls, narrative, taint, rounds";

    pub(crate) fn read(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            at: parse_time(&row.get::<_, String>(3)?),
            kept: NewRecording {
                cycle_id: row.get(1)?,
                chat: row.get(2)?,
                request: row.get(4)?,
                words: split(&row.get::<_, String>(5)?),
                calls: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
                narrative: row.get(7)?,
                taint: row.get(8)?,
                rounds: row.get(9)?,
            },
        })
    }
}

fn split(words: &str) -> Vec<String> {
    words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Store {
    /// All recordings, the newest first.
    pub fn recordings(&self) -> Result<Vec<Recording>> {
        let sql = format!("SELECT {} FROM recordings ORDER BY id DESC", Recording::COLUMNS);
        let mut statement = self.conn.prepare(&sql)?;
        Ok(statement.query_map([], Recording::read)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The numbers of all recordings.
    pub fn recording_ids(&self) -> Result<Vec<i64>> {
        let mut statement = self.conn.prepare("SELECT id FROM recordings ORDER BY id")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// One recording.
    pub fn recording(&self, id: i64) -> Result<Option<Recording>> {
        let sql = format!("SELECT {} FROM recordings WHERE id = ?1", Recording::COLUMNS);
        Ok(self.conn.prepare(&sql)?.query_row([id], Recording::read).optional()?)
    }

    /// What was recorded for these chats, and with `of_nobody` what no chat asked for, with the vectors that `encoder` has made: the
    /// newest first.
    pub fn recorded_requests(
        &self,
        chats: &[ChatRef],
        of_nobody: bool,
        encoder: Option<&str>,
    ) -> Result<Vec<RecordedRequest>> {
        let mut statement = self.conn.prepare(
            "SELECT id, words, CASE WHEN model = ?3 THEN vector END FROM recordings
             WHERE chat_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) OR ?2 AND chat_id IS NULL ORDER BY id DESC",
        )?;
        let requests = statement.query_map((json(chats), of_nobody, encoder), |row| {
            let vector = row.get::<_, Option<Vec<u8>>>(2)?.map(|bytes| floats(&bytes));
            Ok(RecordedRequest { id: row.get(0)?, words: split(&row.get::<_, String>(1)?), vector })
        })?;
        Ok(requests.collect::<sql::QueryResult<_>>()?)
    }

    /// Requests that `encoder` has made no vector of, at most `limit`: the newest first. `leaves`: without those of
    /// chats that are kept on this machine.
    pub fn requests_without_vector(&self, encoder: &str, limit: usize, leaves: bool) -> Result<Vec<(i64, String)>> {
        let mut statement = self.conn.prepare(
            "SELECT id, request FROM recordings WHERE (model IS DISTINCT FROM ?1 OR vector IS NULL)
                 AND NOT (?3 AND COALESCE(chat_id IN (SELECT chat_id FROM local_chats), FALSE)) ORDER BY id DESC LIMIT ?2",
        )?;
        let rows = statement.query_map((encoder, limit as i64, leaves), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// Takes out one recording. Says whether there was such a one.
    pub fn drop_recording(&mut self, id: i64) -> Result<bool> {
        self.write(|tx| Ok(tx.execute("DELETE FROM recordings WHERE id = ?1", [id])? == 1))
    }
}

impl FencedStore<'_> {
    /// Keeps the vectors that `encoder` has made of requests; in place of another encoder's.
    pub fn put_request_vectors(&mut self, encoder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<()> {
        // Lost in a power cut, they are made again.
        self.fenced_relaxed(|tx| {
            let mut statement = tx.prepare("UPDATE recordings SET model = ?2, vector = ?3 WHERE id = ?1")?;
            for (id, vector) in vectors {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                statement.execute((id, encoder, bytes))?;
            }
            Ok(())
        })
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// Keeps a recording, once for its cycle. What says the same of the same request is older, and goes; where only one of both had read
/// others' words, both stay.
pub(crate) fn keep(tx: &Transaction<'_>, recording: &NewRecording, now: DateTime<Utc>) -> Result<()> {
    let words = recording.words.join(" ");
    let kept: sql::QueryResult<i64> = tx.query_row(
        "INSERT INTO recordings (cycle_id, chat_id, at, request, words, calls, narrative, taint, rounds)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING RETURNING id",
        sql::params![
            recording.cycle_id,
            recording.chat,
            rfc3339(now),
            recording.request,
            words,
            json(&recording.calls),
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

/// Takes out what was recorded of a cycle.
pub(crate) fn drop_of(tx: &Transaction<'_>, cycle_id: &str) -> Result<()> {
    tx.execute("DELETE FROM recordings WHERE cycle_id = ?1", [cycle_id])?;
    Ok(())
}
