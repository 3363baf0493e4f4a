//! Values for a statement in the forms that callers use: tuples, arrays, `params!`. SQLite gets them through rusqlite without a copy.

use rusqlite::ToSql;
#[cfg(feature = "postgres")]
use rusqlite::types::{ToSqlOutput, Value};

#[cfg(feature = "postgres")]
use super::QueryResult;

/// Values for a statement.
pub(crate) trait Params: rusqlite::Params {
    /// Copies the values for an engine that runs elsewhere.
    #[cfg(feature = "postgres")]
    fn values(&self) -> QueryResult<Vec<Value>>;
}

#[cfg(feature = "postgres")]
fn copy_value<T: ToSql + ?Sized>(value: &T) -> QueryResult<Value> {
    Ok(match value.to_sql()? {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(value) => {
            value.try_into().map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?
        }
        // Streams and pointers, which are never used here.
        _ => Value::Null,
    })
}

impl Params for [&(dyn ToSql + Send + Sync); 0] {
    #[cfg(feature = "postgres")]
    fn values(&self) -> QueryResult<Vec<Value>> {
        Ok(Vec::new())
    }
}

impl Params for &[&dyn ToSql] {
    #[cfg(feature = "postgres")]
    fn values(&self) -> QueryResult<Vec<Value>> {
        self.iter().map(|value| copy_value(*value)).collect()
    }
}

macro_rules! arrays {
    ($($count:literal)+) => {$(
        impl<T: ToSql> Params for [T; $count] {
            #[cfg(feature = "postgres")]
            fn values(&self) -> QueryResult<Vec<Value>> {
                self.iter().map(copy_value).collect()
            }
        }
        impl<T: ToSql + ?Sized> Params for &[&T; $count] {
            #[cfg(feature = "postgres")]
            fn values(&self) -> QueryResult<Vec<Value>> {
                self.iter().map(|value| copy_value(*value)).collect()
            }
        }
    )+};
}

arrays!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

macro_rules! tuple {
    ($($field:tt $kind:ident),+) => {
        impl<$($kind: ToSql),+> Params for ($($kind,)+) {
            #[cfg(feature = "postgres")]
            fn values(&self) -> QueryResult<Vec<Value>> {
                Ok(vec![$(copy_value(&self.$field)?),+])
            }
        }
    };
}

tuple!(0 A);
tuple!(0 A, 1 B);
tuple!(0 A, 1 B, 2 C);
tuple!(0 A, 1 B, 2 C, 3 D);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K);
tuple!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H, 8 I, 9 J, 10 K, 11 L);
