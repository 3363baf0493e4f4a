//! The messages of people and of the assistant, for the memory's index. The index reads them in order of arrival; a counter tells it of
//! later changes.

use chrono::{DateTime, Utc};

use reveille_base::{clock::parse_time, types::ChatRef};

use crate::{
    Result,
    areas::{Inbox, ReadStore, WriteStore},
    odd_rows::{read_optional_text, read_text},
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// The counter of changes to earlier messages, such as edits and forgotten messages.
const CHANGED: &str = "said_changed";

/// Counts a change to a message's text. Messages that were never settled don't count: no index holds their old text.
pub(crate) fn note_message_change(tx: &Transaction<'_>, message: i64) -> Result<()> {
    tx.prepare(
        "INSERT INTO counters (name, n) SELECT ?1, 1 FROM incoming_messages WHERE id = ?2 AND (processed = 1 OR asked_again = 1)
         ON CONFLICT (name) DO UPDATE SET n = counters.n + 1",
    )?
    .execute((CHANGED, message))?;
    Ok(())
}

/// A message by a person or the assistant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The row: in `outgoing_messages` if the assistant wrote it, else in `incoming_messages`.
    pub row: i64,
    /// The chat.
    pub chat: ChatRef,
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// The person's own display name; `None` for the assistant, or if unknown.
    pub speaker: Option<String>,
    /// The words.
    pub text: String,
    /// The other authors of untrusted text in it.
    pub taint: Option<String>,
    /// The wake that wrote or claimed it.
    pub wake: Option<String>,
    /// Whether the message is final: a message that has left the queue, an answer that was sent.
    pub is_settled: bool,
    /// Whether search may find it. Excludes queued, withdrawn and undone messages, and texts that only quote what search finds elsewhere.
    pub is_findable: bool,
}

/// The prefix of the receipt of a remembered fact, followed by the fact.
const REMEMBERED: &str = "Remembered “";

/// The rows to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpokenRows<'a> {
    /// The rows after this row, up to this number.
    After(i64, usize),
    /// Exactly these rows.
    These(&'a [i64]),
}

impl<S: ReadStore> Inbox<S> {
    /// The messages of people, by row.
    pub fn said_by_people(&self, rows: SpokenRows<'_>) -> Result<Vec<Spoken>> {
        let columns = "SELECT id, CAST(chat_id AS BIGINT), message_text, received_at, sender_name, kind, forwarded_from, cycle_id,
             processed = 1, COALESCE(outcome, '') <> 'undone' FROM incoming_messages WHERE CAST(chat_id AS BIGINT) = chat_id";
        self.read_spoken_rows(columns, rows, |row| {
            let text = read_text(row, 2)?;
            let (kind, forwarded_from) = (read_optional_text(row, 5)?.unwrap_or_default(), read_optional_text(row, 6)?);
            let is_done = row.get(8)?;
            Ok(Spoken {
                taint: super::provenance::find_incoming_authors(&kind, &text, forwarded_from.as_deref()),
                row: row.get(0)?,
                chat: row.get(1)?,
                at: read_optional_text(row, 3)?.as_deref().and_then(parse_time),
                speaker: read_optional_text(row, 4)?,
                wake: read_optional_text(row, 7)?,
                is_settled: is_done,
                is_findable: is_done && row.get(9)? && !text.starts_with('/'),
                text,
            })
        })
    }

    /// The messages of the assistant, by row.
    pub fn list_own_messages(&self, rows: SpokenRows<'_>) -> Result<Vec<Spoken>> {
        let columns = "SELECT id, CAST(chat_id AS BIGINT), message_text, 
             CASE WHEN sent_at < created_at THEN sent_at ELSE created_at END, taint, cycle_id,
             sent_at IS NOT NULL, taken_back_at IS NULL AND kind NOT IN ('command', 'notice')
                 AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = outgoing_messages.cycle_id AND u.taken_back IS NOT NULL)
             FROM outgoing_messages WHERE CAST(chat_id AS BIGINT) = chat_id";
        let undone = self.undone_facts()?;
        self.read_spoken_rows(columns, rows, |row| {
            let (text, at) = (read_text(row, 2)?, read_optional_text(row, 3)?.as_deref().and_then(parse_time));
            let lower = text.to_lowercase();
            // If the person states the fact again after the undo, messages may quote it again.
            let quotes_undone = undone.iter().any(|(fact, undone_at)| at <= *undone_at && lower.contains(fact));
            Ok(Spoken {
                row: row.get(0)?,
                chat: row.get(1)?,
                text,
                at,
                taint: read_optional_text(row, 4)?,
                wake: read_optional_text(row, 5)?,
                is_settled: row.get(6)?,
                is_findable: row.get::<_, bool>(7)? && !quotes_undone,
                speaker: None,
            })
        })
    }

    /// The facts remembered by undone wakes, in lower case, each with the time of its undo.
    fn undone_facts(&self) -> Result<Vec<(String, Option<DateTime<Utc>>)>> {
        let sql = "SELECT j.body, u.asked_at FROM undos u JOIN cycle_journal j ON j.cycle_id = u.wake
             WHERE u.taken_back IS NOT NULL AND j.body LIKE ?1";
        let read = |row: &Row<'_>| Ok((read_text(row, 0)?, read_optional_text(row, 1)?));
        let mut statement = self.0.conn().prepare(sql)?;
        let rows = statement.query_map([format!("%{REMEMBERED}%")], read)?.collect::<sql::QueryResult<Vec<_>>>()?;
        let fact = |body: &str| {
            let body: serde_json::Value = serde_json::from_str(body).ok()?;
            let fact = body.get("receipt")?.as_str()?.strip_prefix(REMEMBERED)?.strip_suffix('”')?;
            // A receipt shortens a long fact.
            Some(fact.trim_end_matches('…').to_lowercase())
        };
        let facts = rows.iter().filter_map(|(body, at)| Some((fact(body)?, at.as_deref().and_then(parse_time))));
        Ok(facts.filter(|(fact, _)| !fact.is_empty()).collect())
    }

    fn read_spoken_rows(
        &self,
        columns: &str,
        rows: SpokenRows<'_>,
        read: impl Fn(&Row<'_>) -> sql::QueryResult<Spoken>,
    ) -> Result<Vec<Spoken>> {
        let rows = match rows {
            SpokenRows::After(row, limit) => {
                let sql = format!("{columns} AND id > ?1 ORDER BY id LIMIT ?2");
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                self.0.conn().prepare(&sql)?.query_map((row, limit), read)?.collect::<sql::QueryResult<_>>()?
            }
            SpokenRows::These(rows) => {
                let sql = format!("{columns} AND id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY id");
                let rows = crate::to_json(rows);
                self.0.conn().prepare(&sql)?.query_map([rows], read)?.collect::<sql::QueryResult<_>>()?
            }
        };
        Ok(rows)
    }

    /// A number that changes when an earlier message was undone, forgotten or rewritten.
    pub fn count_spoken_changes(&self) -> Result<i64> {
        let taken_back: i64 =
            self.0.conn().query_row("SELECT count(*) FROM undos WHERE taken_back IS NOT NULL", [], |row| row.get(0))?;
        Ok(self.0.store().read_counter(CHANGED)?.saturating_add(taken_back))
    }

    /// The arrival time of a message. The index compares it to check that it was made from this database.
    pub fn time_of_message(&self, row: i64) -> Result<Option<String>> {
        let mut statement = self.0.conn().prepare("SELECT received_at FROM incoming_messages WHERE id = ?1")?;
        Ok(statement.query_row([row], |row| read_optional_text(row, 0)).optional()?.flatten())
    }
}

impl<S: WriteStore> Inbox<S> {
    /// Counts a change to earlier messages, so that the index updates itself.
    pub fn note_spoken_change(&mut self) -> Result<()> {
        self.0.write(|tx| {
            tx.execute(
                "INSERT INTO counters (name, n) VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET n = counters.n + 1",
                [CHANGED],
            )?;
            Ok(())
        })
    }
}
