//! Rows that a hand put in and that can't be read: such as text where a number belongs. Each is left out wherever the queue is read, so
//! that it stops no other, and stays for its person, who is told of it by name.

use rusqlite::types::ValueRef;

use super::{Result, Store};
use crate::sql::{self, Row};

/// Rows that are named at most.
const MAX_NAMED: u32 = 100;

/// Whether a row of `incoming_messages`, which must not have another name in the statement, can be read.
///
/// What isn't a whole number isn't equal to itself made one: so both engines can be asked.
pub(super) const READABLE: &str = "(CAST(incoming_messages.chat_id AS BIGINT) = incoming_messages.chat_id
    AND CAST(incoming_messages.attempts AS BIGINT) = incoming_messages.attempts
    AND CAST(incoming_messages.quotes_own AS BIGINT) = incoming_messages.quotes_own
    AND COALESCE(CAST(incoming_messages.thread_id AS BIGINT) = incoming_messages.thread_id, TRUE)
    AND COALESCE(CAST(incoming_messages.channel_message_id AS BIGINT) = incoming_messages.channel_message_id, TRUE))";

/// Whether a row `o` of `outgoing_messages` can be sent.
pub(super) const SENDABLE: &str = "(CAST(o.chat_id AS BIGINT) = o.chat_id
    AND COALESCE(CAST(o.thread_id AS BIGINT) = o.thread_id, TRUE)
    AND COALESCE(CAST(o.reply_to AS BIGINT) = o.reply_to, TRUE))";

/// A column that holds whole numbers, and whether it may be empty.
type Column = (&'static str, bool);

/// Such columns by table, and which of its rows wait.
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

/// A row that waits and can't be read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OddRow {
    /// Its table.
    pub table: &'static str,
    /// Its number there.
    pub id: i64,
    /// The column in the way.
    pub column: &'static str,
    /// What that holds: `text`, `blob`, `real` or `null`.
    pub holds: String,
    /// Whether it may be empty.
    pub may_be_null: bool,
}

impl OddRow {
    /// What is the matter with it.
    pub fn in_words(&self) -> String {
        format!("can't be read: {} is {}, not a whole number", self.column, self.holds)
    }

    /// The statement that mends it.
    pub fn mended_by(&self) -> String {
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
    /// Rows that wait and can't be read, each by the first column that is in the way.
    pub fn odd_rows(&self) -> Result<Vec<OddRow>> {
        let mut odd = Vec::new();
        // Where columns have their types nothing else gets into them.
        if self.conn.sqlite().is_none() {
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

/// A column's words, whatever a hand has put there: bytes that aren't text are read as well as they can be.
pub(super) fn words(row: &Row<'_>, column: usize) -> sql::QueryResult<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// A message's words. Rows may be put in by hand: bytes that aren't text must not hold up the whole queue.
pub(super) fn text_of(row: &Row<'_>, column: usize) -> sql::QueryResult<String> {
    Ok(words(row, column)?.unwrap_or_default())
}
