//! The one schema, and the converter that brings a database from before to it.
//!
//! `schema.sql` says what a database is made of: a new one is made from it. One from before is compared with it and gets the tables, the
//! columns and the indices that it lacks; nothing that is there is changed. What the rows that were there are given, [`FILLS`] says. All of
//! it is one transaction: a crash leaves the database as it was.

use std::collections::BTreeSet;

use super::{
    Result, Store,
    sql::{self, SqlConnection, Transaction},
};

/// What a database is made of. Both engines read it (`crates/postgres/src/dialect.rs`).
const SCHEMA: &str = include_str!("schema.sql");

/// The version of [`SCHEMA`], which each database carries: one more with each change.
pub(super) const VERSION: i64 = 44;

/// What is written besides into a database below that version, in this order, once it has the tables and columns of now.
///
/// A change that isn't only an addition belongs here too, and sets `readable_from`: then programs from before refuse the database.
const FILLS: [(i64, &str); 5] = [
    // Which cycles took a message up: the last, and those that the journals tell of, as far as they can be read.
    (
        5,
        "INSERT OR IGNORE INTO taken_up (cycle_id, message_id)
             SELECT m.cycle_id, m.id FROM incoming_messages m
             WHERE m.cycle_id IS NOT NULL AND (m.processed = 0 OR m.outcome IN ('dead', 'dropped'));
         INSERT OR IGNORE INTO taken_up (cycle_id, message_id)
             SELECT j.cycle_id, m.id
             FROM cycle_journal j
             JOIN cycles c ON c.id = j.cycle_id AND c.state = 'abandoned'
             JOIN json_each(CASE WHEN json_valid(j.body) THEN j.body ELSE '{}' END, '$.messages') taken
             JOIN incoming_messages m ON m.id = taken.value
             WHERE j.kind = 'said' AND (m.processed = 0 OR m.outcome IN ('dead', 'dropped'));
         DROP INDEX IF EXISTS incoming_unfinished",
    ),
    // Of what cycles and commands wrote before it was noted nobody knows whose words are in it; nor of what was shown to a cycle that
    // goes on.
    (
        18,
        "UPDATE outgoing_messages SET taint = 'what was read before this was noted' WHERE cycle_id IS NOT NULL OR kind = 'command';
         UPDATE cycle_journal SET body = json_set(body, '$.taint', 'what was shown before this was noted')
             WHERE seq = 1 AND kind = 'said'
                 AND cycle_id IN (SELECT id FROM cycles WHERE state IN ('running', 'waiting', 'parked'))
                 AND CASE WHEN json_valid(body) THEN json_extract(body, '$.taint') IS NULL ELSE 0 END",
    ),
    // What a cycle for one chat wrote to another holds words that there are nobody's own; at the terminal (0) its owner sits.
    (
        21,
        "UPDATE outgoing_messages SET taint = (
                 SELECT 'what chat ' || c.chat_id || ' said' FROM cycles c WHERE c.id = outgoing_messages.cycle_id)
             WHERE taint IS NULL AND EXISTS (
                 SELECT 1 FROM cycles c
                 WHERE c.id = outgoing_messages.cycle_id AND c.chat_id NOT IN (outgoing_messages.chat_id, 0))",
    ),
    // A program that knows version 35 can use all that has come since.
    (35, "INSERT INTO readable_from (version) VALUES (35)"),
    // Undo goes back over what wakes had done before its line began.
    (
        44,
        "INSERT INTO undo_line (chat_id, at, cycle_id)
             SELECT COALESCE(chat_id, 0), COALESCE(ended_at, started_at), id FROM cycles
             WHERE state = 'done' AND commit_id IS NOT NULL AND model <> 'none'
                     AND (has_changed IS DISTINCT FROM 0 OR has_copies = 1)
                 OR state IN ('failed', 'abandoned') AND has_copies = 1
             ORDER BY ended_at, started_at, id",
    ),
];

/// Which schema a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Its version; 0 for a database without tables of ours.
    pub found: i64,
    /// The version that this program brings it to.
    pub known: i64,
    /// The oldest version that a program has to know to use it; none where that isn't said.
    pub readable_from: Option<i64>,
}

impl Schema {
    /// Whether a newer program has changed what this one knows: more than tables and columns were added.
    pub fn is_too_new(self) -> bool {
        self.found > self.known && self.readable_from.is_none_or(|from| from > self.known)
    }
}

/// A statement of the schema, and what it makes.
struct Declared {
    sql: String,
    makes: Makes,
}

enum Makes {
    /// A table, with the name and the definition of each column.
    Table(String, Vec<(String, String)>),
    Index(String),
    /// A row that a new database begins with.
    Row,
}

/// What is written into databases below this version.
#[cfg(test)]
pub(super) fn fill(version: i64) -> &'static str {
    FILLS.iter().find(|(below, _)| *below == version).unwrap().1
}

/// The names of all tables, those first that others refer to.
#[cfg(feature = "postgres")]
pub(super) fn tables() -> Vec<String> {
    let tables = statements().into_iter().filter_map(|statement| match statement.makes {
        Makes::Table(name, _) => Some(name),
        Makes::Index(_) | Makes::Row => None,
    });
    tables.collect()
}

impl Store {
    /// Which schema the database has, and which one this program knows.
    pub fn schema(&self) -> Result<Schema> {
        let found = version(&self.conn)?;
        let known = VERSION;
        // Only of a newer one there is something to ask.
        let readable_from = match found > known {
            true => self.conn.query_row("SELECT max(version) FROM readable_from", [], |row| row.get(0)).ok().flatten(),
            false => None,
        };
        Ok(Schema { found, known, readable_from })
    }
}

/// The version of a database's schema; 0: it has none of our tables.
fn version(conn: &SqlConnection) -> Result<i64> {
    if let Some(conn) = conn.sqlite() {
        return Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?);
    }
    // The table of tables is read: `to_regclass` asks a cache that doesn't hear, while a lock is waited for, what another has made.
    let sql =
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = current_schema() AND c.relname = 'schema_version')";
    let is_made = conn.query_row(sql, [], |row| row.get::<_, bool>(0))?;
    if is_made { Ok(conn.query_row("SELECT version FROM schema_version", [], |row| row.get(0))?) } else { Ok(0) }
}

/// Brings a database to [`VERSION`], whichever it has.
pub(super) fn bring_up_to_date(tx: &Transaction<'_>) -> Result<()> {
    // Another process may have done so since it was looked at.
    match version(tx)? {
        VERSION.. => return Ok(()),
        0 => make(tx)?,
        found => convert(tx, found)?,
    }
    match tx.sqlite() {
        Some(conn) => conn.pragma_update(None, "user_version", VERSION)?,
        None => drop(tx.execute("UPDATE schema_version SET version = ?1", [VERSION])?),
    }
    Ok(())
}

fn make(tx: &Transaction<'_>) -> Result<()> {
    if tx.sqlite().is_none() {
        tx.change_schema(
            "CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (0)",
        )?;
    }
    #[cfg(feature = "postgres")]
    tx.make_functions()?;
    Ok(tx.change_schema(SCHEMA)?)
}

fn convert(tx: &Transaction<'_>, found: i64) -> Result<()> {
    let columns = pairs(
        tx,
        tx.either(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'",
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()",
        ),
    )?;
    let indices = pairs(
        tx,
        tx.either(
            "SELECT tbl_name, name FROM sqlite_master WHERE type = 'index'",
            "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema()",
        ),
    )?;
    for Declared { sql, makes } in statements() {
        match makes {
            Makes::Table(table, _) if !columns.iter().any(|(known, _)| *known == table) => tx.change_schema(&sql)?,
            Makes::Table(table, declared) => {
                for (column, definition) in declared {
                    if !columns.contains(&(table.clone(), column)) {
                        tx.change_schema(&format!("ALTER TABLE {table} ADD COLUMN {definition}"))?;
                    }
                }
            }
            Makes::Index(name) if !indices.iter().any(|(_, known)| *known == name) => tx.change_schema(&sql)?,
            Makes::Index(_) | Makes::Row => {}
        }
    }
    for (_, sql) in FILLS.iter().filter(|(version, _)| found < *version) {
        tx.execute_batch(sql)?;
    }
    Ok(())
}

fn pairs(tx: &Transaction<'_>, sql: &str) -> Result<BTreeSet<(String, String)>> {
    let mut statement = tx.prepare(sql)?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<sql::QueryResult<_>>()?)
}

/// The statements of [`SCHEMA`], in its order. No text within them holds `--` or `;`.
fn statements() -> Vec<Declared> {
    let lines: Vec<&str> = SCHEMA.lines().map(|line| line.split_once("--").map_or(line, |(sql, _)| sql)).collect();
    let bare = lines.join("\n");
    let each = bare.split(';').map(str::trim).filter(|sql| !sql.is_empty());
    each.map(|sql| Declared { sql: sql.to_owned(), makes: read(sql) }).collect()
}

fn read(sql: &str) -> Makes {
    let mut words = sql.split([' ', '(', '\n']).filter(|word| !matches!(*word, "" | "UNIQUE"));
    match (words.next(), words.next(), words.next()) {
        (Some("CREATE"), Some("TABLE"), Some(name)) => Makes::Table(name.to_owned(), columns(sql)),
        (Some("CREATE"), Some("INDEX"), Some(name)) => Makes::Index(name.to_owned()),
        _ => Makes::Row,
    }
}

/// The columns between a table's parentheses; what stands there without a name of its own constrains the table.
fn columns(sql: &str) -> Vec<(String, String)> {
    let body = sql.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map_or("", |(body, _)| body);
    let mut depth = 0_usize;
    let pieces = body.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let named = pieces.filter_map(|piece| Some((piece.split_whitespace().next()?, piece.trim())));
    named
        .filter(|(name, _)| !matches!(*name, "PRIMARY" | "UNIQUE" | "CHECK" | "FOREIGN"))
        .map(|(name, definition)| (name.to_owned(), definition.to_owned()))
        .collect()
}

#[cfg(test)]
#[path = "tests/convert.rs"]
mod tests;
