//! Rows of an answer, and the values in them.

use rusqlite::types::{FromSql, ValueRef};

use super::Result;

/// One row, for as long as it is looked at.
pub(in crate::store) enum Row<'a> {
    /// As SQLite has it.
    Sqlite(&'a rusqlite::Row<'a>),
}

impl Row<'_> {
    /// The value of a column, by its number from 0.
    pub(in crate::store) fn get<I: Index, T: FromSql>(&self, column: I) -> Result<T> {
        match self {
            Self::Sqlite(row) => Ok(row.get(column.number())?),
        }
    }

    /// The same as it is kept.
    pub(in crate::store) fn get_ref(&self, column: usize) -> Result<ValueRef<'_>> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(column)?),
        }
    }

    /// How many columns there are.
    pub(in crate::store) fn column_count(&self) -> usize {
        match self {
            Self::Sqlite(row) => row.as_ref().column_count(),
        }
    }
}

/// A column by its number. It is a type of its own so that `get` is written as rusqlite's is.
pub(in crate::store) trait Index {
    /// From 0.
    fn number(self) -> usize;
}

impl Index for usize {
    fn number(self) -> usize {
        self
    }
}

/// Rows that are asked for one by one.
pub(in crate::store) enum Rows<'s> {
    /// As SQLite finds them.
    Sqlite(rusqlite::Rows<'s>),
}

impl Rows<'_> {
    /// The next one.
    pub(in crate::store) fn next(&mut self) -> Result<Option<Row<'_>>> {
        match self {
            Self::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
        }
    }
}

/// Rows that are read as they come.
pub(in crate::store) struct MappedRows<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<'s, F> MappedRows<'s, F> {
    pub(super) fn new(rows: Rows<'s>, read: F) -> Self {
        Self { rows, read }
    }
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let row = self.rows.next().transpose()?;
        Some(row.and_then(|row| (self.read)(&row)))
    }
}
