//! The database of a test: a file, or a schema in PostgreSQL (`REVEILLE_TEST_STORE=postgres`), so that the same tests run on both. Only
//! this module names tables in SQL; tests read and change the database with the functions below.

mod approvals;
pub(crate) mod cycles;
mod media;
mod memory;
mod money;
mod outbox;
mod people;
pub(crate) mod queue;
mod reminders;

use std::path::{Path, PathBuf};

use rusqlite::types::{FromSql, ValueRef};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use reveille_store::Store;

#[cfg(not(feature = "postgres"))]
mod postgres {
    //! Stand-ins for a build without PostgreSQL.

    pub(crate) const NULL: &str = "";

    pub(crate) fn new_database() -> Option<String> {
        None
    }

    pub(crate) fn ask(_sql: &str, _schema: &str) -> Option<String> {
        None
    }
}

#[cfg(feature = "postgres")]
use super::postgres;

/// The address of a new database for a test; `None` if it is a file.
pub(crate) fn of_a_world() -> Option<String> {
    let wanted = super::env::variable("REVEILLE_TEST_STORE")?;
    assert_eq!(wanted, "postgres", "REVEILLE_TEST_STORE names an unknown store");
    Some(postgres::new_database().expect("PostgreSQL is installed, as REVEILLE_TEST_STORE demands"))
}

#[cfg(feature = "postgres")]
pub(crate) fn open(url: &str) -> Store {
    let address = reveille_store::DatabaseAddress::parse(url, None).unwrap();
    Store::open_shared_database(&address).unwrap()
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn open(url: &str) -> Store {
    panic!("this build can't open {url}")
}

/// Copies a database to a new one, and returns its address.
pub(crate) fn copy(url: &str) -> String {
    let copy = postgres::new_database().unwrap();
    open(url).copy_all_rows(&mut open(&copy)).unwrap();
    copy
}

/// The database of a test: an SQLite file, or a schema on a server.
pub(crate) enum Database {
    File(PathBuf),
    Server(String),
}

impl Database {
    /// The database in a file.
    pub(crate) fn in_file(path: impl AsRef<Path>) -> Self {
        Self::File(path.as_ref().to_owned())
    }

    /// Returns the first value that a query finds.
    #[track_caller]
    pub(crate) fn query<T: FromSql>(&self, sql: &str) -> T {
        match self {
            Self::Server(url) => query(url, sql),
            Self::File(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
            }
        }
    }

    /// Changes the database directly, without the program's knowledge.
    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::Server(url) => execute(url, sql),
            Self::File(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    }

    /// The names of the tables in order.
    #[track_caller]
    pub(crate) fn tables(&self) -> Vec<String> {
        let names =
            "SELECT group_concat(name, ' ') FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        let mut names: Vec<String> = self.query::<String>(names).split(' ').map(str::to_owned).collect();
        names.sort();
        names
    }

    /// All rows of a table, one string per row.
    #[track_caller]
    pub(crate) fn rows_as_text(&self, table: &str) -> Vec<String> {
        let sql = format!("SELECT * FROM {table}");
        match self {
            Self::Server(_) => {
                let rows = format!("SELECT COALESCE(string_agg(CAST(t AS TEXT), chr(10)), '') FROM {table} t");
                self.query::<String>(&rows).lines().map(str::to_owned).collect()
            }
            Self::File(path) => rows_of_file(path, &sql).iter().map(Value::to_string).collect(),
        }
    }

    /// Hides a table from the programs.
    #[track_caller]
    pub(crate) fn hide_table(&self, table: &str) {
        self.execute(&format!("ALTER TABLE {table} RENAME TO hidden_{table}"));
    }

    #[track_caller]
    pub(crate) fn show_table(&self, table: &str) {
        self.execute(&format!("ALTER TABLE hidden_{table} RENAME TO {table}"));
    }

    /// The version of the tables that the file declares.
    #[track_caller]
    pub(crate) fn version(&self) -> i64 {
        self.query("PRAGMA user_version")
    }

    #[track_caller]
    pub(crate) fn put_version(&self, version: i64) {
        self.execute(&format!("PRAGMA user_version = {version}"));
    }

    /// Allows reading only by programs of this version and later ones.
    #[track_caller]
    pub(crate) fn put_readable_from(&self, version: i64) {
        self.execute(&format!("UPDATE readable_from SET version = {version}"));
    }

    /// Moves all writes from the write-ahead log into the database's main file.
    #[track_caller]
    pub(crate) fn write_back(&self) {
        if let Self::File(_) = self {
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)");
        }
    }

    /// Rewrites the file without its deleted content.
    #[track_caller]
    pub(crate) fn compact(&self) {
        self.execute("VACUUM");
        self.write_back();
    }

    /// Makes statements on a table fail: `INSERT`, `UPDATE` or `DELETE` of rows that meet a condition.
    pub(crate) fn refuse(&self, what: &str, table: &str, when: &str) {
        let trigger = format!("CREATE TRIGGER refused BEFORE {what} ON {table}");
        self.execute(&match self {
            Self::Server(_) => format!("{trigger} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()"),
            Self::File(_) => format!("{trigger} WHEN {when} BEGIN SELECT RAISE(FAIL, 'as if broken'); END"),
        });
    }

    /// Ends the effect of `refuse`.
    pub(crate) fn refuse_no_more(&self, table: &str) {
        self.execute(&match self {
            Self::Server(_) => format!("DROP TRIGGER refused ON {table}"),
            Self::File(_) => "DROP TRIGGER refused".to_owned(),
        });
    }

    /// The rows of a table.
    #[track_caller]
    fn table<T: DeserializeOwned>(&self, table: &str, order: &str) -> Vec<T> {
        let sql = format!("SELECT * FROM {table} ORDER BY {order}");
        let rows: Vec<Value> = match self {
            Self::Server(url) => {
                let list: String = query(url, &format!("SELECT coalesce(json_agg(found), '[]') FROM ({sql}) AS found"));
                serde_json::from_str(&list).unwrap()
            }
            Self::File(path) => rows_of_file(path, &sql),
        };
        rows.iter()
            .map(|row| serde_json::from_value(row.clone()).unwrap_or_else(|error| panic!("{error}: {row}")))
            .collect()
    }

    /// Counts the rows of a table that meet a condition.
    #[track_caller]
    fn count(&self, table: &str, condition: &str) -> usize {
        let count: i64 = self.query(&format!("SELECT count(*) FROM {table} WHERE {condition}"));
        usize::try_from(count).unwrap()
    }
}

fn rows_of_file(path: &Path, sql: &str) -> Vec<Value> {
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut statement = conn.prepare(sql).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let row = |row: &rusqlite::Row<'_>| {
        let column = |(at, name): (usize, &String)| Ok((name.clone(), value_of(row.get_ref(at)?)));
        Ok(Value::Object(names.iter().enumerate().map(column).collect::<rusqlite::Result<Map<_, _>>>()?))
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Blob(bytes) => format!("{bytes:02x?}").into(),
    }
}

/// Quotes text for a statement.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Deserializes a flag, which is a number in some databases.
fn flag<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value != 0 && value != false)
}

/// Returns the first value that a query finds on the server.
#[track_caller]
fn query<T: FromSql>(url: &str, sql: &str) -> T {
    let text = postgres::ask(sql, schema(url)).unwrap();
    let value = match (text.as_str(), text.parse::<i64>(), text.parse::<f64>()) {
        (postgres::NULL, ..) => ValueRef::Null,
        ("t", ..) => ValueRef::Integer(1),
        ("f", ..) => ValueRef::Integer(0),
        (_, Ok(number), _) => ValueRef::Integer(number),
        (_, _, Ok(number)) => ValueRef::Real(number),
        (text, ..) => ValueRef::Text(text.as_bytes()),
    };
    // A caller may want a number as text.
    T::column_result(value)
        .or_else(|_| T::column_result(ValueRef::Text(text.as_bytes())))
        .unwrap_or_else(|error| panic!("{sql}: {error}: {text}"))
}

#[track_caller]
fn execute(url: &str, sql: &str) {
    postgres::ask(sql, schema(url)).unwrap();
}

fn schema(url: &str) -> &str {
    url.split_once("search_path%3D").unwrap().1
}
