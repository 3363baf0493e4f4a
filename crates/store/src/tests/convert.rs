//! Databases from before: dumps of what old programs made, with a row in each table (`older/`).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, types::Value};

use super::*;
use crate::Store;

/// The version of each dump (`sqlite3 messages.db .dump`), and the dump. The last one is of the release before: a release adds its own.
const OLDER: [(i64, &str); 4] = [
    (1, include_str!("older/v1.sql")),
    (4, include_str!("older/v4.sql")),
    (20, include_str!("older/v20.sql")),
    (44, include_str!("older/v44.sql")),
];

type Rows = Vec<BTreeMap<String, Value>>;

fn put_back(dump: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.db");
    Connection::open(&path).unwrap().execute_batch(dump).unwrap();
    (dir, path)
}

/// All that a database is made of, without comments and white space.
fn shape(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let mut statement = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name").unwrap();
    let bare = |sql: String| -> String {
        let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
        lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
    };
    statement.query_map([], |row| Ok(bare(row.get(0)?))).unwrap().map(rusqlite::Result::unwrap).collect()
}

/// The rows of all tables, with the names of their columns.
fn contents(path: &Path) -> BTreeMap<String, Rows> {
    let db = Connection::open(path).unwrap();
    let mut tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(rusqlite::Result::unwrap).collect();
    let read = |table: String| {
        let mut rows = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = rows.column_names().map(str::to_owned).collect();
        let row = |row: &rusqlite::Row<'_>| {
            columns.iter().enumerate().map(|(at, name)| Ok((name.clone(), row.get(at)?))).collect()
        };
        let rows: Rows = rows.query_map([], row).unwrap().map(rusqlite::Result::unwrap).collect();
        (table, rows)
    };
    tables.into_iter().map(read).collect()
}

fn texts(path: &Path, sql: &str) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(rusqlite::Result::unwrap).collect()
}

#[test]
fn each_of_them_has_rows_in_all_its_tables() {
    for (version, dump) in OLDER {
        let (_dir, path) = put_back(dump);
        let empty: Vec<String> =
            contents(&path).into_iter().filter(|(_, rows)| rows.is_empty()).map(|(table, _)| table).collect();
        assert!(empty.is_empty(), "{version}: {empty:?}");
    }
}

#[test]
fn an_older_database_becomes_what_a_new_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new.db");
    drop(Store::open(&new).unwrap());
    let new = shape(&new);
    assert!(new.len() > 80, "{}", new.len());
    for (version, dump) in OLDER {
        let (_dir, path) = put_back(dump);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.read_schema().unwrap().found, VERSION);
        drop(store);
        assert_eq!(shape(&path), new, "from version {version}");
        assert_eq!(texts(&path, "SELECT CAST(version AS TEXT) FROM readable_from"), ["35"], "from version {version}");
    }
}

/// Each row is there, with what each of its columns held, but for the marks of others' words; and none was added but by a fill.
#[test]
fn no_row_of_an_older_database_is_lost_or_changed() {
    for (version, dump) in OLDER {
        let (_dir, path) = put_back(dump);
        let before = contents(&path);
        drop(Store::open(&path).unwrap());
        let after = contents(&path);
        for (table, rows) in before {
            let now = &after[&table];
            let is_filled = ["taken_up", "undo_line", "sqlite_sequence"].contains(&table.as_str()) && version < 44;
            assert!(now.len() == rows.len() || is_filled, "{version}: {table} has {} rows", now.len());
            for row in rows {
                let is_same = |now: &BTreeMap<String, Value>| {
                    row.iter().all(|(column, value)| {
                        let is_marked = version < 21 && ["taint", "body"].contains(&column.as_str());
                        is_marked || now[column] == *value
                    })
                };
                assert!(now.iter().any(is_same), "{version}: {table} lost {row:?}");
            }
        }
    }
}

#[test]
fn a_database_of_the_same_version_is_not_written_to() {
    let Some((_, dump)) = OLDER.iter().find(|(version, _)| *version == VERSION) else { return };
    let (_dir, path) = put_back(dump);
    Connection::open(&path).unwrap().pragma_update(None, "journal_mode", "WAL").unwrap();
    let before = std::fs::read(&path).unwrap();
    drop(Store::open(&path).unwrap());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// The rule for each change: the release before finds all that it knows, and may leave out what it doesn't. Where that can't be,
/// `readable_from` has it refuse the database.
#[test]
fn the_release_before_can_use_what_this_one_makes() {
    let (version, dump) = OLDER[OLDER.len() - 1];
    let (dir, old) = put_back(dump);
    let new = dir.path().join("new.db");
    drop(Store::open(&new).unwrap());
    let readable_from: i64 = texts(&new, "SELECT CAST(max(version) AS TEXT) FROM readable_from")[0].parse().unwrap();
    if readable_from > version {
        return;
    }
    let table_names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let columns = "SELECT concat_ws(' ', t.name, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk)
                   FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'";
    let (made, known) = (texts(&new, columns), texts(&old, columns));
    for column in &known {
        assert!(made.contains(column), "it is no longer there as it was: {column}");
    }
    let old_tables = texts(&old, table_names);
    let must_be_named =
        format!("{columns} AND c.\"notnull\" AND c.dflt_value IS NULL AND t.name IN ('{}')", old_tables.join("', '"));
    for column in texts(&new, &must_be_named) {
        assert!(known.contains(&column), "the release before writes rows without it: {column}");
    }
}

#[test]
fn rows_from_before_are_given_what_they_are_to_hold_now() {
    let (_dir, path) = put_back(OLDER[1].1);
    let store = Store::open(&path).unwrap();
    let ids: Vec<String> =
        store.cycles().list_abandoned_cycles(&[2]).unwrap().into_iter().map(|row| row.cycle.id).collect();
    assert_eq!(ids, ["c-first", "c-last"], "as far as journals can be read");
    drop(store);
    let taints = "SELECT message_text || ': ' || COALESCE(taint, '-') FROM outgoing_messages ORDER BY id";
    assert_eq!(
        texts(&path, taints),
        [
            "message_text ü: what was read before this was noted",
            "of a guest's cycle: what was read before this was noted",
            "of a command: what was read before this was noted",
            "of a person: -"
        ]
    );
    let bodies =
        "SELECT body FROM cycle_journal WHERE cycle_id IN ('c-first', 'c-open', 'c-unreadable') ORDER BY cycle_id";
    assert_eq!(
        texts(&path, bodies),
        [r#"{"messages": [2]}"#, r#"{"messages":[2],"taint":"what was shown before this was noted"}"#, "{"],
        "of a cycle that goes on, alone"
    );
    let (_dir, path) = put_back(OLDER[2].1);
    drop(Store::open(&path).unwrap());
    assert_eq!(
        texts(&path, taints)[1..3],
        ["of a guest's cycle: what chat 5555 said".to_owned(), "of a command: -".to_owned()]
    );
    assert_eq!(texts(&path, "SELECT cycle_id FROM undo_line"), ["c-done"]);
    assert_eq!(texts(&path, "SELECT CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'incoming_messages'"), ["9"]);
}

/// Whatever ends it half-way: the database is as it was, and the next opening converts it.
#[test]
fn a_conversion_that_is_broken_off_changes_nothing() {
    // In the way of the last table that it makes, and of what it writes at the end.
    let obstacles = [
        ("CREATE VIEW proposals AS SELECT 1", "DROP VIEW proposals"),
        (
            "CREATE TRIGGER refuse BEFORE UPDATE ON outgoing_messages BEGIN SELECT RAISE(ABORT, 'no'); END",
            "DROP TRIGGER refuse",
        ),
    ];
    for (version, dump) in &OLDER[..3] {
        let (_dir, path) = put_back(dump);
        for (obstacle, out_of_the_way) in obstacles {
            Connection::open(&path).unwrap().execute_batch(obstacle).unwrap();
            let before = (shape(&path), contents(&path));
            Store::open(&path).map(drop).unwrap_err();
            assert_eq!((shape(&path), contents(&path)), before, "{obstacle}");
            let kept = texts(&path, "SELECT CAST(user_version AS TEXT) FROM pragma_user_version");
            assert_eq!(kept, [version.to_string()], "{obstacle}");
            Connection::open(&path).unwrap().execute_batch(out_of_the_way).unwrap();
        }
        assert_eq!(Store::open(&path).unwrap().read_schema().unwrap().found, VERSION);
    }
}

/// The reader of the schema finds in it what SQLite does.
#[test]
fn the_schema_is_read_whole() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(SCHEMA).unwrap();
    let made = |sql: &str| -> Vec<(String, String)> {
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(rusqlite::Result::unwrap).collect()
    };
    let (mut columns, mut indices) = (Vec::new(), Vec::new());
    for statement in parse_statements() {
        match statement.makes {
            Makes::Table(table, declared) => {
                columns.extend(declared.into_iter().map(|(column, _)| (table.clone(), column)));
            }
            Makes::Index(name) => indices.push(name),
            Makes::Row => assert!(statement.sql.starts_with("INSERT INTO"), "{}", statement.sql),
        }
    }
    assert_eq!(
        columns,
        made(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
              WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.rowid, c.cid"
        )
    );
    let named =
        made("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid");
    assert_eq!(indices, named.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
}
