//! Reads for the health check.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use reveille_base::{clock::parse_time, process::Identity, types::ChatRef};

use super::{PartState, Result, Store, odd_rows::read_optional_text};
use crate::{outbox::attempts::is_overdue, sql};

/// The maximum number of listed parts.
const MAX_PARTS: i64 = 500;

/// An unconfirmed part of a message, or a message without parts yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentPart {
    /// The message's row.
    pub outgoing_id: i64,
    /// The chat; 0 is the terminal.
    pub chat: ChatRef,
    /// The part's state; never [`PartState::Sent`].
    pub state: PartState,
    /// Whether this is a repeat after an unknown outcome; a further repeat is too risky.
    pub is_repeat: bool,
    /// The number of attempts so far.
    pub attempts: i64,
    /// The time at which its message was written.
    pub created_at: Option<DateTime<Utc>>,
    /// The earliest time of the next attempt.
    pub not_before: Option<DateTime<Utc>>,
    /// The last error.
    pub error: Option<String>,
    /// Whether a living process is sending it now, within the longest duration of an attempt.
    pub is_under_way: bool,
}

impl Store {
    /// The database's files: the database, the write-ahead log, and the log's index.
    pub fn files(&self) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|ending| {
            let mut path = self.path.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        })
    }

    /// The free space inside the database file, in bytes.
    pub fn free_bytes(&self) -> Result<u64> {
        let Some(conn) = self.conn.as_sqlite() else { return Ok(0) };
        let pragma = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let bytes = pragma("freelist_count")?.saturating_mul(pragma("page_size")?);
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// A value that changes when another connection writes; compare it on a connection that stays open. A PostgreSQL server changes it
    /// for a write to any of its databases, so a change may be a false alarm.
    pub fn change_signature(&self) -> Result<String> {
        let sql = self.conn.pick_statement(
            "SELECT CAST(data_version AS TEXT) FROM pragma_data_version",
            "SELECT CAST(pg_current_snapshot() AS TEXT)",
        );
        Ok(self.conn.query_row(sql, [], |row| row.get(0))?)
    }

    /// The unconfirmed parts of messages, oldest first.
    pub fn unsent_parts(&self, now: DateTime<Utc>) -> Result<Vec<UnsentPart>> {
        let mut statement = self.conn.prepare(
            "SELECT o.id, o.chat_id, COALESCE(p.state, 'planned'), COALESCE(p.repeats, 0), COALESCE(p.attempts, 0),
                    o.created_at, p.not_before, p.error, p.sender, p.changed_at
             FROM outgoing_messages o LEFT JOIN outgoing_parts p ON p.outgoing_id = o.id
             WHERE o.sent_at IS NULL AND o.taken_back_at IS NULL AND CAST(o.chat_id AS BIGINT) = o.chat_id AND (p.state IS NULL OR p.state != 'sent')
             ORDER BY o.id, p.part LIMIT ?1",
        )?;
        let rows = statement.query_map([MAX_PARTS], |row| {
            let time = |index: usize| -> sql::QueryResult<Option<DateTime<Utc>>> {
                Ok(read_optional_text(row, index)?.as_deref().and_then(parse_time))
            };
            let sender = row.get::<_, Option<String>>(8)?.and_then(|text| serde_json::from_str::<Identity>(&text).ok());
            Ok(UnsentPart {
                outgoing_id: row.get(0)?,
                chat: row.get(1)?,
                state: PartState::parse(&row.get::<_, String>(2)?),
                is_repeat: row.get::<_, i64>(3)? > 0,
                attempts: row.get(4)?,
                created_at: time(5)?,
                not_before: time(6)?,
                error: row.get(7)?,
                is_under_way: sender.is_some_and(|sender| self.may_live(&sender)) && !is_overdue(time(9)?, now),
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}
