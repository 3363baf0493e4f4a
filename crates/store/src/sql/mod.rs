//! The database as the store's methods see it: the few rusqlite calls they make, over either of two engines.
//!
//! Each statement is written once, in SQL that both engines read. SQLite gets the statement unchanged; this layer costs one comparison
//! per call. PostgreSQL gets it through the few rules of its crate (`crates/postgres/src/dialect.rs`). Values are rusqlite's on both
//! sides, so each type needs only one conversion.

mod params;
mod row;

use std::{ops::Deref, thread, time::Duration};

#[cfg(feature = "postgres")]
use reveille_postgres::{Postgres, PostgresError};
use rusqlite::TransactionBehavior;

pub(crate) use params::Params;
pub(crate) use row::{MappedRows, Row, Rows};
pub(crate) use rusqlite::params;

/// Tables whose rows are read in the order of writing, by the `rowid` of every SQLite table.
#[cfg(feature = "postgres")]
const ORDERED_TABLES: [&str; 2] = ["cycles", "outgoing_parts"];

/// The error of a statement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// SQLite's error. Both engines report values of the wrong type this way.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The error of PostgreSQL, or of the connection to it.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl Error {
    /// An error for a column whose text is invalid.
    pub(crate) fn for_unreadable_column(column: usize, why: &str) -> Self {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into()).into()
    }

    /// Returns whether a value is invalid, which is the fault of its row alone.
    pub(crate) fn is_of_value(&self) -> bool {
        use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType};
        matches!(self, Self::Sqlite(FromSqlConversionFailure(..) | InvalidColumnType(..)))
    }
}

/// The result of a statement.
pub(crate) type QueryResult<T> = std::result::Result<T, Error>;

/// Treats a missing row as an answer.
pub(crate) trait OptionalExtension<T> {
    /// Turns the error for a missing row into `None`.
    fn optional(self) -> QueryResult<Option<T>>;
}

impl<T> OptionalExtension<T> for QueryResult<T> {
    fn optional(self) -> QueryResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::Sqlite(rusqlite::Error::QueryReturnedNoRows)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    Read,
    Write,
    Rows,
}

/// One connection to a database.
pub(crate) struct SqlConnection {
    engine: Engine,
}

enum Engine {
    Sqlite(rusqlite::Connection),
    #[cfg(feature = "postgres")]
    Postgres(Box<Postgres>),
}

impl From<rusqlite::Connection> for SqlConnection {
    fn from(conn: rusqlite::Connection) -> Self {
        Self { engine: Engine::Sqlite(conn) }
    }
}

#[cfg(feature = "postgres")]
impl From<Postgres> for SqlConnection {
    fn from(postgres: Postgres) -> Self {
        Self { engine: Engine::Postgres(Box::new(postgres)) }
    }
}

impl SqlConnection {
    /// The connection for SQLite's own features (pragmas, the write-ahead log, copies); `None` on another engine.
    pub(crate) fn as_sqlite(&self) -> Option<&rusqlite::Connection> {
        match &self.engine {
            Engine::Sqlite(conn) => Some(conn),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => None,
        }
    }

    /// Picks the statement for this engine, if one statement can't serve both.
    pub(crate) fn pick_statement<'s>(&self, sqlite: &'s str, postgres: &'s str) -> &'s str {
        if self.as_sqlite().is_some() { sqlite } else { postgres }
    }

    /// Sets how long to wait for a server that can't be reached. A file needs no wait.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file is never waited for"))]
    pub(crate) fn wait_for_server(&self, patience: Duration) {
        match &self.engine {
            Engine::Sqlite(_) => {}
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.wait_for_server(patience),
        }
    }

    /// Notifies the connections of other processes, once the transaction under way is committed.
    pub(crate) fn notify(&self) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.notify()?),
        }
    }

    /// Waits, at most `at_most`, for another connection's notification. Returns whether one came; `None` if this engine has no
    /// notifications, so that the caller must poll.
    pub(crate) fn wait_for_notice(&self, at_most: Duration) -> Option<bool> {
        match &self.engine {
            Engine::Sqlite(_) => {
                thread::sleep(at_most);
                None
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Some(postgres.wait_for_notice(at_most)),
        }
    }

    /// Prepares a statement and keeps it for reuse.
    pub(crate) fn prepare(&self, sql: &str) -> QueryResult<Statement<'_>> {
        match &self.engine {
            Engine::Sqlite(conn) => Ok(Statement::Sqlite(conn.prepare_cached(sql)?)),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(Statement::Postgres(postgres, postgres.translate(sql))),
        }
    }

    /// Runs a statement without result rows; returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, values: impl Params) -> QueryResult<usize> {
        self.prepare(sql)?.execute(values)
    }

    /// Runs several statements.
    pub(crate) fn execute_batch(&self, sql: &str) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.execute_batch(sql)?),
        }
    }

    /// Creates or changes tables.
    pub(crate) fn change_schema(&self, sql: &str) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.change_schema(sql, &ORDERED_TABLES)?),
        }
    }

    /// Creates the functions that our statements call and the engine lacks.
    #[cfg(feature = "postgres")]
    pub(crate) fn make_functions(&self) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(postgres) => Ok(postgres.make_functions()?),
        }
    }

    /// Reads the first row of an answer.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> QueryResult<T>,
    ) -> QueryResult<T> {
        self.prepare(sql)?.query_row(values, read)
    }

    /// Starts a transaction that excludes all other writers until its end.
    pub(crate) fn begin_write(&self) -> QueryResult<Transaction<'_>> {
        self.begin_transaction(Begin::Write)
    }

    /// Starts a transaction that locks only the rows it writes, if the engine can, so that others may write other rows.
    pub(crate) fn begin_rows(&self) -> QueryResult<Transaction<'_>> {
        self.begin_transaction(Begin::Rows)
    }

    /// Starts a transaction whose statements all read the same snapshot.
    pub(crate) fn begin_read(&self) -> QueryResult<Transaction<'_>> {
        self.begin_transaction(Begin::Read)
    }

    fn begin_transaction(&self, begin: Begin) -> QueryResult<Transaction<'_>> {
        let under_way = match &self.engine {
            Engine::Sqlite(conn) => {
                let behavior = match begin {
                    Begin::Read => TransactionBehavior::Deferred,
                    Begin::Write | Begin::Rows => TransactionBehavior::Immediate,
                };
                UnderWay::Sqlite(rusqlite::Transaction::new_unchecked(conn, behavior)?)
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                match begin {
                    Begin::Read => postgres.begin_read()?,
                    Begin::Write => postgres.begin_write()?,
                    Begin::Rows => postgres.begin_rows()?,
                }
                UnderWay::Postgres(RolledBack(postgres))
            }
        };
        Ok(Transaction { conn: self, under_way })
    }
}

/// A transaction, rolled back on drop unless committed.
pub(crate) struct Transaction<'c> {
    conn: &'c SqlConnection,
    under_way: UnderWay<'c>,
}

enum UnderWay<'c> {
    Sqlite(rusqlite::Transaction<'c>),
    #[cfg(feature = "postgres")]
    Postgres(RolledBack<'c>),
}

/// Rolls back unless committed.
#[cfg(feature = "postgres")]
struct RolledBack<'c>(&'c Postgres);

#[cfg(feature = "postgres")]
impl Drop for RolledBack<'_> {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

impl Transaction<'_> {
    /// Commits the transaction.
    pub(crate) fn commit(self) -> QueryResult<()> {
        match self.under_way {
            UnderWay::Sqlite(tx) => Ok(tx.commit()?),
            #[cfg(feature = "postgres")]
            UnderWay::Postgres(tx) => Ok(tx.0.commit()?),
        }
    }
}

impl Deref for Transaction<'_> {
    type Target = SqlConnection;

    fn deref(&self) -> &SqlConnection {
        self.conn
    }
}

/// A statement that can run again with other values.
pub(crate) enum Statement<'c> {
    /// SQLite's, returned to the cache on drop.
    Sqlite(rusqlite::CachedStatement<'c>),
    /// PostgreSQL's text, the key of the prepared statement on the connection.
    #[cfg(feature = "postgres")]
    Postgres(&'c Postgres, std::sync::Arc<str>),
}

impl Statement<'_> {
    /// Runs the statement; returns the number of changed rows.
    pub(crate) fn execute(&mut self, values: impl Params) -> QueryResult<usize> {
        match self {
            Self::Sqlite(statement) => Ok(statement.execute(values)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres, sql) => {
                Ok(usize::try_from(postgres.run(sql, &values.values()?)?.changed).unwrap_or(usize::MAX))
            }
        }
    }

    /// Runs the statement and returns its rows one by one.
    pub(crate) fn query(&mut self, values: impl Params) -> QueryResult<Rows<'_>> {
        match self {
            Self::Sqlite(statement) => Ok(Rows::Sqlite(statement.query(values)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres, sql) => Ok(Rows::from_values(postgres.run(sql, &values.values()?)?.rows)),
        }
    }

    /// Runs the statement and maps each row with `read`.
    pub(crate) fn query_map<T, F>(&mut self, values: impl Params, read: F) -> QueryResult<MappedRows<'_, F>>
    where
        F: FnMut(&Row<'_>) -> QueryResult<T>,
    {
        Ok(MappedRows::new(self.query(values)?, read))
    }

    /// Reads the first row.
    pub(crate) fn query_row<T>(
        &mut self,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> QueryResult<T>,
    ) -> QueryResult<T> {
        let mut rows = self.query(values)?;
        match rows.next()? {
            Some(row) => read(&row),
            None => Err(Error::Sqlite(rusqlite::Error::QueryReturnedNoRows)),
        }
    }
}

#[cfg(test)]
#[path = "../tests/dialect.rs"]
mod tests;
