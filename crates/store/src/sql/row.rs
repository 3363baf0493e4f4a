//! Rows of an answer, and the values in them.

use rusqlite::types::{FromSql, ValueRef};
#[cfg(feature = "postgres")]
use rusqlite::types::{FromSqlError, Value};

use super::QueryResult;

/// One row while it is being read.
pub(crate) enum Row<'a> {
    /// SQLite's row.
    Sqlite(&'a rusqlite::Row<'a>),
    /// PostgreSQL's row.
    #[cfg(feature = "postgres")]
    Postgres(&'a [Value]),
}

impl Row<'_> {
    /// The value of a column, by its number from 0.
    pub(crate) fn get<I: ColumnIndex, T: FromSql>(&self, column: I) -> QueryResult<T> {
        let column = column.number();
        match self {
            Self::Sqlite(row) => Ok(row.get(column)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {
                let value = self.get_ref(column)?;
                let read = T::column_result(value).map_err(|error| match error {
                    FromSqlError::InvalidType => {
                        rusqlite::Error::InvalidColumnType(column, format!("column {column}"), value.data_type())
                    }
                    FromSqlError::OutOfRange(number) => rusqlite::Error::IntegralValueOutOfRange(column, number),
                    other => rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(other)),
                });
                Ok(read?)
            }
        }
    }

    /// The stored value without conversion.
    pub(crate) fn get_ref(&self, column: usize) -> QueryResult<ValueRef<'_>> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(column)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(values) => {
                let value = values.get(column).ok_or(rusqlite::Error::InvalidColumnIndex(column))?;
                Ok(ValueRef::from(value))
            }
        }
    }

    /// The number of columns.
    pub(crate) fn column_count(&self) -> usize {
        match self {
            Self::Sqlite(row) => row.as_ref().column_count(),
            #[cfg(feature = "postgres")]
            Self::Postgres(values) => values.len(),
        }
    }
}

/// A column by its number. The trait gives `get` the same form as rusqlite's.
pub(crate) trait ColumnIndex {
    /// The column's number from 0.
    fn number(self) -> usize;
}

impl ColumnIndex for usize {
    fn number(self) -> usize {
        self
    }
}

/// Rows fetched one by one.
pub(crate) enum Rows<'s> {
    /// SQLite's rows, fetched on demand.
    Sqlite(rusqlite::Rows<'s>),
    /// PostgreSQL's rows, all received at once, since another statement may run before the last row is read. The second field is the
    /// present row.
    #[cfg(feature = "postgres")]
    Postgres(std::vec::IntoIter<Vec<Value>>, Vec<Value>),
}

impl Rows<'_> {
    #[cfg(feature = "postgres")]
    pub(super) fn from_values(rows: Vec<Vec<Value>>) -> Self {
        Self::Postgres(rows.into_iter(), Vec::new())
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> QueryResult<Option<Row<'_>>> {
        match self {
            Self::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
            #[cfg(feature = "postgres")]
            Self::Postgres(rows, present) => Ok(rows.next().map(|row| {
                *present = row;
                Row::Postgres(present)
            })),
        }
    }
}

/// Rows mapped while they are fetched.
pub(crate) struct MappedRows<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<'s, F> MappedRows<'s, F> {
    pub(super) fn new(rows: Rows<'s>, read: F) -> Self {
        Self { rows, read }
    }
}

impl<T, F: FnMut(&Row<'_>) -> QueryResult<T>> Iterator for MappedRows<'_, F> {
    type Item = QueryResult<T>;

    fn next(&mut self) -> Option<QueryResult<T>> {
        let row = self.rows.next().transpose()?;
        Some(row.and_then(|row| (self.read)(&row)))
    }
}
