//! Handwritten rows that are unreadable, for example with text in a number's column. Every read of the queue skips them, so that they
//! block no other row. They stay, and the program names them to the person, who can repair them.

use rusqlite::types::ValueRef;

use super::{Result, Store};
use crate::sql::{self, Row};

/// The maximum number of listed rows.
const MAX_NAMED: u32 = 100;

/// SQL condition: a row of `incoming_messages`, which must be unaliased in the statement, is readable.
///
/// A value that isn't a whole number differs from itself cast to one, in both engines.
pub(super) const READABLE: &str = "(CAST(incoming_messages.chat_id AS BIGINT) = incoming_messages.chat_id
    AND CAST(incoming_messages.attempts AS BIGINT) = incoming_messages.attempts
    AND CAST(incoming_messages.quotes_own AS BIGINT) = incoming_messages.quotes_own
    AND COALESCE(CAST(incoming_messages.thread_id AS BIGINT) = incoming_messages.thread_id, TRUE)
    AND COALESCE(CAST(incoming_messages.channel_message_id AS BIGINT) = incoming_messages.channel_message_id, TRUE))";

/// SQL condition: row `o` of `outgoing_messages` can be sent.
pub(super) const SENDABLE: &str = "(CAST(o.chat_id AS BIGINT) = o.chat_id
    AND COALESCE(CAST(o.thread_id AS BIGINT) = o.thread_id, TRUE)
    AND COALESCE(CAST(o.reply_to AS BIGINT) = o.reply_to, TRUE))";

/// A column of whole numbers, and whether it may be empty.
type Column = (&'static str, bool);

/// Such columns by table, with the condition for waiting rows.
const TABLES: [(&str, &[Column], &str); 3] = [
    (
        "incoming_messages",
        &[
            ("chat_id", false),
            ("thread_id", true),
            ("channel_message_id", true),
            ("attempts", false),
            ("quotes_own", false),
        ],
        "processed = 0",
    ),
    (
        "outgoing_messages",
        &[("chat_id", false), ("thread_id", true), ("reply_to", true)],
        "sent_at IS NULL AND taken_back_at IS NULL",
    ),
    ("reminders", &[("chat_id", false), ("thread_id", true)], "state = 'active'"),
];

/// A waiting row that is unreadable.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OddRow {
    /// The table.
    pub table: &'static str,
    /// The row id.
    pub id: i64,
    /// The first wrong column.
    pub column: &'static str,
    /// The type of its content: `text`, `blob`, `real` or `null`.
    pub holds: String,
    /// Whether the column may be empty.
    pub may_be_null: bool,
}

impl OddRow {
    /// The problem, for people.
    pub fn describe(&self) -> String {
        format!("can't be read: {} is {}, not a whole number", self.column, self.holds)
    }

    /// The statement that repairs the row.
    pub fn repair_statement(&self) -> String {
        let Self { table, id, column, .. } = self;
        let value = match (*column, self.may_be_null) {
            (_, true) => "NULL",
            ("chat_id", _) => "THE_CHATS_NUMBER",
            _ => "0",
        };
        format!("sqlite3 messages.db \"UPDATE {table} SET {column} = {value} WHERE id = {id}\"")
    }
}

impl Store {
    /// The waiting rows that are unreadable, each with its first wrong column.
    pub fn odd_rows(&self) -> Result<Vec<OddRow>> {
        let mut odd = Vec::new();
        // PostgreSQL's typed columns accept no other values.
        if self.conn.as_sqlite().is_none() {
            return Ok(odd);
        }
        for (table, columns, waits) in TABLES {
            for (column, may_be_null) in columns {
                let allowed = if *may_be_null { "('integer', 'null')" } else { "('integer')" };
                let mut statement = self.conn.prepare(&format!(
                    "SELECT id, typeof({column}) FROM {table} WHERE {waits} AND typeof({column}) NOT IN {allowed}
                     ORDER BY id LIMIT {MAX_NAMED}"
                ))?;
                let rows = statement.query_map([], |row| {
                    let (id, holds) = (row.get(0)?, row.get(1)?);
                    Ok(OddRow { table, id, column, holds, may_be_null: *may_be_null })
                })?;
                for row in rows {
                    let row = row?;
                    if !odd.iter().any(|known: &OddRow| (known.table, known.id) == (table, row.id)) {
                        odd.push(row);
                    }
                }
            }
        }
        Ok(odd)
    }
}

/// A column as text, regardless of its type: invalid bytes are read leniently.
pub(super) fn read_optional_text(row: &Row<'_>, column: usize) -> sql::QueryResult<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// A message's text. Invalid bytes in a handwritten row must not block the whole queue.
pub(super) fn read_text(row: &Row<'_>, column: usize) -> sql::QueryResult<String> {
    Ok(read_optional_text(row, column)?.unwrap_or_default())
}
