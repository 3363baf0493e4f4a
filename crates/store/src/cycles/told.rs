//! Reads for the report on a finished cycle: its journal with times, its requests, its messages and its texts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::{ChatRef, Usage},
};

use crate::{
    Approval, Entry, Incoming, Recording, Result, Spent,
    areas::{CycleHistory, ReadStore},
    odd_rows::READABLE,
    sql::{self, OptionalExtension as _, Row},
    to_json,
};

/// A journal line with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalLine {
    /// The time; `None` if unreadable.
    pub at: Option<DateTime<Utc>>,
    /// The entry; `None` if unreadable.
    pub entry: Option<Entry>,
}

/// A request to a model in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct PaidRequest {
    /// The cycle; empty for a request outside any cycle.
    pub cycle_id: String,
    /// The time of sending.
    pub at: Option<DateTime<Utc>>,
    /// The model.
    pub model: String,
    /// The usage and cost.
    pub spent: Spent,
    /// Whether its turn was cut off and discarded.
    pub is_discarded: bool,
    /// Whether its outcome is unknown: the cost is then the maximum.
    pub is_reserved: bool,
}

/// A text a cycle wrote to a chat.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WrittenText {
    /// The row id.
    pub id: i64,
    /// The chat.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Markdown.
    pub text: String,
    /// `reply`, `tell`, `reminder`, `notice`, `approval` or `command`.
    pub kind: String,
    /// The time of writing.
    pub created_at: Option<DateTime<Utc>>,
    /// The time at which all of it was sent; `None` before that.
    pub sent_at: Option<DateTime<Utc>>,
    /// Whether an undo withdrew it.
    pub is_taken_back: bool,
    /// The authors of untrusted text in it.
    pub taint: Option<String>,
}

fn read_time(row: &Row<'_>, index: usize) -> sql::QueryResult<Option<DateTime<Utc>>> {
    Ok(row.get::<_, Option<String>>(index)?.as_deref().and_then(parse_time))
}

impl PaidRequest {
    const COLUMNS: &str = "l.cycle_id, l.at, l.model, l.input, l.output, l.cache_read, l.cache_write, l.cost_usd, l.discarded, l.reserved";

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        let tokens = |index| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        let usage = Usage { input: tokens(3)?, output: tokens(4)?, cache_read: tokens(5)?, cache_write: tokens(6)? };
        Ok(Self {
            cycle_id: row.get(0)?,
            at: read_time(row, 1)?,
            model: row.get(2)?,
            spent: Spent { tokens: usage, cost_usd: row.get(7)? },
            is_discarded: row.get(8)?,
            is_reserved: row.get(9)?,
        })
    }
}

impl<S: ReadStore> CycleHistory<S> {
    /// A cycle's journal with its times, in order. An unreadable line keeps its place.
    pub fn dated_journal(&self, cycle_id: &str) -> Result<Vec<JournalLine>> {
        let mut statement =
            self.0.conn().prepare("SELECT at, body FROM cycle_journal WHERE cycle_id = ?1 ORDER BY seq")?;
        let lines = statement.query_map([cycle_id], |row| {
            let body: String = row.get(1)?;
            Ok(JournalLine { at: read_time(row, 0)?, entry: serde_json::from_str(&body).ok() })
        })?;
        Ok(lines.collect::<sql::QueryResult<_>>()?)
    }

    /// A cycle's turns, in order. Unreadable ones are left out.
    pub fn list_cycle_turns(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let sql = "SELECT body FROM cycle_journal WHERE cycle_id = ?1 AND kind = 'turn' ORDER BY seq";
        let mut statement = self.0.conn().prepare(sql)?;
        let bodies = statement.query_map([cycle_id], |row| row.get::<_, String>(0))?;
        let bodies = bodies.collect::<sql::QueryResult<Vec<_>>>()?;
        Ok(bodies.iter().filter_map(|body| serde_json::from_str(body).ok()).collect())
    }

    /// Returns whether a cycle's journal still exists. Journals are deleted some time after the cycle's end.
    pub fn has_journal(&self, cycle_id: &str) -> Result<bool> {
        let sql = "SELECT has_journal FROM cycles WHERE id = ?1";
        Ok(self.0.conn().query_row(sql, [cycle_id], |row| row.get(0)).optional()?.unwrap_or(false))
    }

    /// A cycle's requests, oldest first.
    pub fn list_cycle_requests(&self, cycle_id: &str) -> Result<Vec<PaidRequest>> {
        let sql = format!("SELECT {} FROM ledger l WHERE l.cycle_id = ?1 ORDER BY l.id", PaidRequest::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([cycle_id], PaidRequest::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The requests since a moment, of all cycles or of one chat's, oldest first.
    pub fn requests_since(&self, since: DateTime<Utc>, chat: Option<ChatRef>) -> Result<Vec<PaidRequest>> {
        let sql = format!(
            "SELECT {} FROM ledger l WHERE l.at >= ?1
                 AND (CAST(?2 AS BIGINT) IS NULL OR ?2 = (SELECT c.chat_id FROM cycles c WHERE c.id = l.cycle_id))
             ORDER BY l.id",
            PaidRequest::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement
            .query_map((format_rfc3339(since), chat), PaidRequest::from_row)?
            .collect::<sql::QueryResult<_>>()?)
    }

    /// The time of the very first request.
    pub fn find_first_request_time(&self) -> Result<Option<DateTime<Utc>>> {
        let at: Option<String> = self.0.conn().query_row("SELECT min(at) FROM ledger", [], |row| row.get(0))?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The reasons of each of these cycles.
    pub fn list_cycle_reasons(&self, cycles: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
        let mut statement = self
            .0
            .conn()
            .prepare("SELECT id, reasons FROM cycles WHERE id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))")?;
        let reasons = statement.query_map([to_json(cycles)], |row| {
            Ok((row.get(0)?, serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default()))
        })?;
        Ok(reasons.collect::<sql::QueryResult<_>>()?)
    }

    /// The messages claimed by each of these cycles, oldest first. For a cycle whose journal is gone, only those that no later cycle
    /// claimed.
    pub fn list_cycle_messages(&self, cycles: &[String]) -> Result<BTreeMap<String, Vec<Incoming>>> {
        let mut ids = self.noted_messages(cycles)?;
        let unknown: Vec<&String> = cycles.iter().filter(|cycle| !ids.contains_key(*cycle)).collect();
        if !unknown.is_empty() {
            // No index covers this scan of all messages; it runs only if journals are gone.
            let mut statement = self.0.conn().prepare(
                "SELECT cycle_id, id FROM incoming_messages WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1)) ORDER BY id",
            )?;
            for found in statement.query_map([to_json(&unknown)], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))? {
                let (cycle, id) = found?;
                ids.entry(cycle).or_default().push(id);
            }
        }
        let all: Vec<i64> = ids.values().flatten().copied().collect();
        let rows: BTreeMap<i64, Incoming> =
            self.0.store().inbox().list_messages(&all)?.into_iter().map(|message| (message.id, message)).collect();
        let find_all = |ids: Vec<i64>| ids.iter().filter_map(|id| rows.get(id).cloned()).collect();
        Ok(ids.into_iter().map(|(cycle, ids)| (cycle, find_all(ids))).collect())
    }

    fn noted_messages(&self, cycles: &[String]) -> Result<BTreeMap<String, Vec<i64>>> {
        let mut statement = self.0.conn().prepare(
            "SELECT cycle_id, message_id FROM taken_up WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))
             ORDER BY cycle_id, message_id",
        )?;
        let mut ids: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for found in statement.query_map([to_json(cycles)], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))? {
            let (cycle, id) = found?;
            ids.entry(cycle).or_default().push(id);
        }
        Ok(ids)
    }

    /// The last cycle that claimed a message: outer `None` if there is no such message, inner `None` if unclaimed.
    pub fn cycle_of_message(&self, id: i64) -> Result<Option<Option<String>>> {
        let sql = format!("SELECT cycle_id FROM incoming_messages WHERE id = ?1 AND {READABLE}");
        Ok(self.0.conn().query_row(&sql, [id], |row| row.get(0)).optional()?)
    }

    /// The texts a cycle wrote to chats, in order.
    pub fn list_cycle_texts(&self, cycle_id: &str) -> Result<Vec<WrittenText>> {
        let mut statement = self.0.conn().prepare(
            "SELECT id, chat_id, message_text, kind, created_at, sent_at, taken_back_at IS NOT NULL, taint
             FROM outgoing_messages WHERE cycle_id = ?1 AND CAST(chat_id AS BIGINT) = chat_id ORDER BY id",
        )?;
        let texts = statement.query_map([cycle_id], |row| {
            Ok(WrittenText {
                id: row.get(0)?,
                chat: row.get(1)?,
                text: row.get(2)?,
                kind: row.get(3)?,
                created_at: read_time(row, 4)?,
                sent_at: read_time(row, 5)?,
                is_taken_back: row.get(6)?,
                taint: row.get(7)?,
            })
        })?;
        Ok(texts.collect::<sql::QueryResult<_>>()?)
    }

    /// The questions a cycle asked, in order.
    pub fn list_cycle_approvals(&self, cycle_id: &str) -> Result<Vec<Approval>> {
        let sql = format!("SELECT {} FROM approvals WHERE cycle_id = ?1 ORDER BY id", Approval::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([cycle_id], Approval::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// A cycle's recording.
    pub fn find_cycle_recording(&self, cycle_id: &str) -> Result<Option<Recording>> {
        let sql = format!("SELECT {} FROM recordings WHERE cycle_id = ?1", Recording::COLUMNS);
        Ok(self.0.conn().prepare(&sql)?.query_row([cycle_id], Recording::from_row).optional()?)
    }

    /// The cost of each of these cycles. Cycles without cost are left out.
    pub fn spent_by_each(&self, cycles: &[String]) -> Result<BTreeMap<String, Spent>> {
        // No cycle pays before it starts, so the index of times limits the scan.
        let mut statement = self.0.conn().prepare(
            "SELECT cycle_id, sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost_usd) FROM ledger
             WHERE at >= (SELECT min(started_at) FROM cycles WHERE id IN (SELECT CAST(value AS TEXT) FROM json_each(?1)))
                 AND cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1)) GROUP BY cycle_id",
        )?;
        let tokens = |row: &Row<'_>, index| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        let spent = statement.query_map([to_json(cycles)], |row| {
            let (input, output) = (tokens(row, 1)?, tokens(row, 2)?);
            let tokens = Usage { input, output, cache_read: tokens(row, 3)?, cache_write: tokens(row, 4)? };
            Ok((row.get(0)?, Spent { tokens, cost_usd: row.get(5)? }))
        })?;
        Ok(spent.collect::<sql::QueryResult<_>>()?)
    }

    /// The latest cycles, newest first, at most `limit`: since a moment, of one chat, or all. The conversations' fixed parts are left
    /// out.
    pub fn cycles_since(
        &self,
        since: Option<DateTime<Utc>>,
        chat: Option<ChatRef>,
        limit: usize,
    ) -> Result<Vec<super::rows::CycleRow>> {
        // An id starts with its cycle's time, and is indexed.
        let sql = format!(
            "SELECT {} FROM cycles WHERE (CAST(?1 AS BIGINT) IS NULL OR chat_id = ?1) AND (CAST(?2 AS TEXT) IS NULL OR started_at >= ?2)
             ORDER BY id DESC LIMIT ?3",
            super::rows::CycleRow::BRIEF_COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows =
            statement.query_map((chat, since.map(format_rfc3339), limit as i64), super::rows::CycleRow::from_row)?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}
