//! Reads a history's database directly, with the same statements on both engines.

#[cfg(feature = "postgres")]
use rusqlite::types::Value;
use rusqlite::{Connection, Row, types::FromSql};

#[cfg(feature = "postgres")]
use super::shared::Session;
use super::wake::text;

/// A connection only for reading, and for harm the store offers no method for.
pub(super) enum Look {
    Sqlite(Connection),
    #[cfg(feature = "postgres")]
    Postgres(Session),
}

/// A row of a query's result.
pub(super) enum Found<'r> {
    Sqlite(&'r Row<'r>),
    #[cfg(feature = "postgres")]
    Postgres(Vec<Value>),
}

impl Found<'_> {
    /// The value of a column, by its number.
    pub(super) fn get<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        match self {
            Self::Sqlite(row) => row.get(column),
            #[cfg(feature = "postgres")]
            Self::Postgres(values) => {
                let value = values.get(column).ok_or(rusqlite::Error::InvalidColumnIndex(column))?;
                let unlike =
                    |error| rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error));
                T::column_result(value.into()).map_err(unlike)
            }
        }
    }
}

impl Look {
    /// The rows of a query.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        mut read: impl FnMut(&Found<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, String> {
        match self {
            Self::Sqlite(conn) => {
                let mut statement = conn.prepare_cached(sql).map_err(text)?;
                let found = statement.query_map([], |row| read(&Found::Sqlite(row)));
                found.and_then(Iterator::collect).map_err(text)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => {
                let found = session.rows(sql)?;
                found.into_iter().map(|row| read(&Found::Postgres(row)).map_err(text)).collect()
            }
        }
    }

    /// The only number a query returns; 0 without a row.
    pub(super) fn one(&self, sql: &str) -> Result<i64, String> {
        Ok(self.rows(sql, |row| row.get(0))?.pop().unwrap_or_default())
    }

    /// Runs a statement with one value, `$1`, a notation both engines accept.
    pub(super) fn execute(&self, sql: &str, value: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(conn) => conn.execute(sql, [value]).map(drop).map_err(text),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.execute(sql, value),
        }
    }

    /// Cuts off all other connections of a shared database; a file has none.
    pub(super) fn cut_off_others(&self) -> Result<(), String> {
        match self {
            Self::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.cut_off_others(),
        }
    }
}
