//! The schema, and the converter that upgrades an older database.
//!
//! `schema.sql` defines a database: a new one is created from it. An older database is compared with it and gets the missing tables,
//! columns and indices; everything that exists stays unchanged. [`FILLS`] fills in the existing rows. All of it is one transaction, so a
//! crash leaves the database as it was.

use std::collections::BTreeSet;

use super::{
    Result, Store,
    sql::{self, SqlConnection, Transaction},
};

/// The definition of a database. Both engines read it (`crates/postgres/src/dialect.rs`).
const SCHEMA: &str = include_str!("schema.sql");

/// The version of [`SCHEMA`], stored in each database: one more with each change.
pub(super) const VERSION: i64 = 46;

/// The statements for a database below each version, run in this order once the tables and columns are complete.
///
/// A change that is more than an addition belongs here too, and sets `readable_from`: older programs then refuse the database.
const FILLS: [(i64, &str); 5] = [
    // The cycles that claimed a message: the last, and those in readable journals.
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
    // Older texts of cycles and commands have unknown authors, and so does the content shown to an open cycle.
    (
        18,
        "UPDATE outgoing_messages SET taint = 'what was read before this was noted' WHERE cycle_id IS NOT NULL OR kind = 'command';
         UPDATE cycle_journal SET body = json_set(body, '$.taint', 'what was shown before this was noted')
             WHERE seq = 1 AND kind = 'said'
                 AND cycle_id IN (SELECT id FROM cycles WHERE state IN ('running', 'waiting', 'parked'))
                 AND CASE WHEN json_valid(body) THEN json_extract(body, '$.taint') IS NULL ELSE 0 END",
    ),
    // A text from one chat's cycle to another chat holds words that are nobody's own there; the terminal (0) belongs to the owner.
    (
        21,
        "UPDATE outgoing_messages SET taint = (
                 SELECT 'what chat ' || c.chat_id || ' said' FROM cycles c WHERE c.id = outgoing_messages.cycle_id)
             WHERE taint IS NULL AND EXISTS (
                 SELECT 1 FROM cycles c
                 WHERE c.id = outgoing_messages.cycle_id AND c.chat_id NOT IN (outgoing_messages.chat_id, 0))",
    ),
    // A program that knows version 35 can use all later additions.
    (35, "INSERT INTO readable_from (version) VALUES (35)"),
    // Undo also covers the work of wakes from before the undo line.
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

/// The schema of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The database's version; 0 if it has no tables of ours.
    pub found: i64,
    /// The version to which this program upgrades.
    pub known: i64,
    /// The oldest version of a program that can use the database; `None` if unstated.
    pub readable_from: Option<i64>,
}

impl Schema {
    /// Returns whether a newer program has made changes beyond added tables and columns.
    pub fn is_too_new(self) -> bool {
        self.found > self.known && self.readable_from.is_none_or(|from| from > self.known)
    }
}

/// A statement of the schema, and the object it creates.
struct Declared {
    sql: String,
    makes: Makes,
}

enum Makes {
    /// A table, with the name and the definition of each column.
    Table(String, Vec<(String, String)>),
    Index(String),
    /// A row of a new database.
    Row,
}

/// The statements for databases below this version.
#[cfg(test)]
pub(super) fn fill(version: i64) -> &'static str {
    FILLS.iter().find(|(below, _)| *below == version).unwrap().1
}

/// The names of all tables, in the order of their references.
#[cfg(feature = "postgres")]
pub(super) fn list_tables() -> Vec<String> {
    let tables = parse_statements().into_iter().filter_map(|statement| match statement.makes {
        Makes::Table(name, _) => Some(name),
        Makes::Index(_) | Makes::Row => None,
    });
    tables.collect()
}

impl Store {
    /// The database's schema version and this program's.
    pub fn read_schema(&self) -> Result<Schema> {
        let found = read_version(&self.conn)?;
        let known = VERSION;
        // Only a newer database has a value to read.
        let readable_from = match found > known {
            true => self.conn.query_row("SELECT max(version) FROM readable_from", [], |row| row.get(0)).ok().flatten(),
            false => None,
        };
        Ok(Schema { found, known, readable_from })
    }
}

/// The version of a database's schema; 0 if it has no tables of ours.
fn read_version(conn: &SqlConnection) -> Result<i64> {
    if let Some(conn) = conn.as_sqlite() {
        return Ok(conn.pragma_query_value(None, "user_version", |row| row.get(0))?);
    }
    // Reads the catalogue itself: `to_regclass` uses a cache that misses a table made by another process during a wait for a lock.
    let sql =
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = current_schema() AND c.relname = 'schema_version')";
    let is_made = conn.query_row(sql, [], |row| row.get::<_, bool>(0))?;
    if is_made { Ok(conn.query_row("SELECT version FROM schema_version", [], |row| row.get(0))?) } else { Ok(0) }
}

/// Upgrades a database of any version to [`VERSION`].
pub(super) fn bring_up_to_date(tx: &Transaction<'_>) -> Result<()> {
    // Another process may have upgraded it since the check.
    match read_version(tx)? {
        VERSION.. => return Ok(()),
        0 => create_tables(tx)?,
        found => convert_tables(tx, found)?,
    }
    match tx.as_sqlite() {
        Some(conn) => conn.pragma_update(None, "user_version", VERSION)?,
        None => drop(tx.execute("UPDATE schema_version SET version = ?1", [VERSION])?),
    }
    Ok(())
}

fn create_tables(tx: &Transaction<'_>) -> Result<()> {
    if tx.as_sqlite().is_none() {
        tx.change_schema(
            "CREATE TABLE schema_version (version INTEGER NOT NULL); INSERT INTO schema_version VALUES (0)",
        )?;
    }
    #[cfg(feature = "postgres")]
    tx.make_functions()?;
    Ok(tx.change_schema(SCHEMA)?)
}

fn convert_tables(tx: &Transaction<'_>, found: i64) -> Result<()> {
    let columns = query_pairs(
        tx,
        tx.pick_statement(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'",
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()",
        ),
    )?;
    let indices = query_pairs(
        tx,
        tx.pick_statement(
            "SELECT tbl_name, name FROM sqlite_master WHERE type = 'index'",
            "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema()",
        ),
    )?;
    for Declared { sql, makes } in parse_statements() {
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

fn query_pairs(tx: &Transaction<'_>, sql: &str) -> Result<BTreeSet<(String, String)>> {
    let mut statement = tx.prepare(sql)?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<sql::QueryResult<_>>()?)
}

/// The statements of [`SCHEMA`], in order. No text in them contains `--` or `;`.
fn parse_statements() -> Vec<Declared> {
    let lines: Vec<&str> = SCHEMA.lines().map(|line| line.split_once("--").map_or(line, |(sql, _)| sql)).collect();
    let bare = lines.join("\n");
    let each = bare.split(';').map(str::trim).filter(|sql| !sql.is_empty());
    each.map(|sql| Declared { sql: sql.to_owned(), makes: parse_statement(sql) }).collect()
}

fn parse_statement(sql: &str) -> Makes {
    let mut words = sql.split([' ', '(', '\n']).filter(|word| !matches!(*word, "" | "UNIQUE"));
    match (words.next(), words.next(), words.next()) {
        (Some("CREATE"), Some("TABLE"), Some(name)) => Makes::Table(name.to_owned(), parse_columns(sql)),
        (Some("CREATE"), Some("INDEX"), Some(name)) => Makes::Index(name.to_owned()),
        _ => Makes::Row,
    }
}

/// The columns between a table's parentheses; parts without a column name are constraints.
fn parse_columns(sql: &str) -> Vec<(String, String)> {
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
