//! The database as the store's verbs see it: the few calls that they make of rusqlite, over either of two engines.
//!
//! Each verb stands once, in the SQL that both engines read. SQLite gets it as it is, and this layer adds a comparison to a call.
//! PostgreSQL gets it by the few rules of its crate (`crates/postgres/src/dialect.rs`). Values are rusqlite's on both sides, so that the verbs' types convert in one way.

mod params;
mod row;

use std::{ops::Deref, thread, time::Duration};

#[cfg(feature = "postgres")]
use reveille_postgres::{Postgres, PostgresError};
use rusqlite::TransactionBehavior;

pub(crate) use params::Params;
pub(crate) use row::{MappedRows, Row, Rows};
pub(crate) use rusqlite::params;

/// Tables whose rows are read in the order of their writing, by the `rowid` that every SQLite table has.
#[cfg(feature = "postgres")]
const ORDERED_TABLES: [&str; 2] = ["cycles", "outgoing_parts"];

/// Why a statement wasn't done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// As SQLite says it. Values that aren't of the kind that was asked for are told so by both engines.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// As PostgreSQL says it, or the connection to it.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl Error {
    /// A text in a column that can't be what it should be.
    pub(crate) fn unreadable(column: usize, why: &str) -> Self {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into()).into()
    }

    /// Whether a value isn't what it should be: that is its row's fault alone.
    pub(crate) fn is_of_value(&self) -> bool {
        use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType};
        matches!(self, Self::Sqlite(FromSqlConversionFailure(..) | InvalidColumnType(..)))
    }
}

/// What statements return.
pub(crate) type QueryResult<T> = std::result::Result<T, Error>;

/// That there is no row is often an answer.
pub(crate) trait OptionalExtension<T> {
    /// `None` in place of the error that says that there is no row.
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

/// What a transaction is for.
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
    /// The connection itself, for what is SQLite's alone: pragmas, the write-ahead log, copies. None: it is another engine's.
    pub(crate) fn sqlite(&self) -> Option<&rusqlite::Connection> {
        match &self.engine {
            Engine::Sqlite(conn) => Some(conn),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => None,
        }
    }

    /// Which of two statements this engine reads, where one can't be both's.
    pub(crate) fn either<'s>(&self, sqlite: &'s str, postgres: &'s str) -> &'s str {
        if self.sqlite().is_some() { sqlite } else { postgres }
    }

    /// From now on a server that goes away is waited for so long. A file is there or it isn't.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file is never waited for"))]
    pub(crate) fn wait_for_server(&self, patience: Duration) {
        match &self.engine {
            Engine::Sqlite(_) => {}
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.wait_for_server(patience),
        }
    }

    /// Tells connections of other processes that there is something new, once the transaction under way is committed.
    pub(crate) fn notify(&self) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.notify()?),
        }
    }

    /// Waits until another connection has told that there is something new, at most for so long. Says whether it did; none: this
    /// engine can't tell, so that one has to look.
    pub(crate) fn hears(&self, at_most: Duration) -> Option<bool> {
        match &self.engine {
            Engine::Sqlite(_) => {
                thread::sleep(at_most);
                None
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Some(postgres.wait_for_notice(at_most)),
        }
    }

    /// A statement, which is kept for the next time.
    pub(crate) fn prepare(&self, sql: &str) -> QueryResult<Statement<'_>> {
        match &self.engine {
            Engine::Sqlite(conn) => Ok(Statement::Sqlite(conn.prepare_cached(sql)?)),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(Statement::Postgres(postgres, postgres.translate(sql))),
        }
    }

    /// Runs a statement that gives no rows; says how many it changed.
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

    /// Makes or changes tables.
    pub(crate) fn change_schema(&self, sql: &str) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(conn) => Ok(conn.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.change_schema(sql, &ORDERED_TABLES)?),
        }
    }

    /// Makes the functions that the verbs' statements call, where the engine doesn't have them.
    #[cfg(feature = "postgres")]
    pub(crate) fn make_functions(&self) -> QueryResult<()> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(postgres) => Ok(postgres.make_functions()?),
        }
    }

    /// The first row of an answer.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> QueryResult<T>,
    ) -> QueryResult<T> {
        self.prepare(sql)?.query_row(values, read)
    }

    /// Begins a transaction in which nobody else writes until its end.
    pub(crate) fn begin_write(&self) -> QueryResult<Transaction<'_>> {
        self.begin(Begin::Write)
    }

    /// Begins a transaction that locks only the rows that it writes, where the engine can. Others write other rows beside it.
    pub(crate) fn begin_rows(&self) -> QueryResult<Transaction<'_>> {
        self.begin(Begin::Rows)
    }

    /// Begins a transaction whose statements all read the same moment.
    pub(crate) fn begin_read(&self) -> QueryResult<Transaction<'_>> {
        self.begin(Begin::Read)
    }

    fn begin(&self, begin: Begin) -> QueryResult<Transaction<'_>> {
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

/// A transaction: dropped, it never was.
pub(crate) struct Transaction<'c> {
    conn: &'c SqlConnection,
    under_way: UnderWay<'c>,
}

enum UnderWay<'c> {
    Sqlite(rusqlite::Transaction<'c>),
    #[cfg(feature = "postgres")]
    Postgres(RolledBack<'c>),
}

/// Rolls back what wasn't committed.
#[cfg(feature = "postgres")]
struct RolledBack<'c>(&'c Postgres);

#[cfg(feature = "postgres")]
impl Drop for RolledBack<'_> {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

impl Transaction<'_> {
    /// Makes it so.
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

/// A statement that can be run with other values again.
pub(crate) enum Statement<'c> {
    /// SQLite's, given back to be kept.
    Sqlite(rusqlite::CachedStatement<'c>),
    /// PostgreSQL's: its text, under which the connection keeps it.
    #[cfg(feature = "postgres")]
    Postgres(&'c Postgres, std::sync::Arc<str>),
}

impl Statement<'_> {
    /// Runs it; says how many rows it changed.
    pub(crate) fn execute(&mut self, values: impl Params) -> QueryResult<usize> {
        match self {
            Self::Sqlite(statement) => Ok(statement.execute(values)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres, sql) => {
                Ok(usize::try_from(postgres.run(sql, &values.values()?)?.changed).unwrap_or(usize::MAX))
            }
        }
    }

    /// Runs it for its rows, which are asked for one by one.
    pub(crate) fn query(&mut self, values: impl Params) -> QueryResult<Rows<'_>> {
        match self {
            Self::Sqlite(statement) => Ok(Rows::Sqlite(statement.query(values)?)),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres, sql) => Ok(Rows::gathered(postgres.run(sql, &values.values()?)?.rows)),
        }
    }

    /// Runs it for its rows, each read as `read` does.
    pub(crate) fn query_map<T, F>(&mut self, values: impl Params, read: F) -> QueryResult<MappedRows<'_, F>>
    where
        F: FnMut(&Row<'_>) -> QueryResult<T>,
    {
        Ok(MappedRows::new(self.query(values)?, read))
    }

    /// The first row.
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
