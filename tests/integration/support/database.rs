//! Where the stories' worlds keep their store: in a file, or all of them in a PostgreSQL (`REVEILLE_TEST_STORE=postgres`), so that the
//! same stories are told on both.

use rusqlite::types::{FromSql, ValueRef};

use reveille_store::Store;

#[cfg(not(feature = "postgres"))]
mod postgres {
    //! A build that knows no PostgreSQL.

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

/// The address of a new world's database; none: it is a file.
pub(crate) fn of_a_world() -> Option<String> {
    let wanted = super::env::variable("REVEILLE_TEST_STORE")?;
    assert_eq!(wanted, "postgres", "REVEILLE_TEST_STORE names a store that isn't known");
    Some(postgres::new_database().expect("PostgreSQL is installed, as REVEILLE_TEST_STORE says"))
}

#[cfg(feature = "postgres")]
pub(crate) fn open(url: &str) -> Store {
    let address = reveille_store::DatabaseAddress::parse(url, None).unwrap();
    Store::open_shared(&address).unwrap()
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn open(url: &str) -> Store {
    panic!("this build can't open {url}")
}

/// Another database with all that is in this one.
pub(crate) fn copy(url: &str) -> String {
    let copy = postgres::new_database().unwrap();
    open(url).copy_to(&mut open(&copy)).unwrap();
    copy
}

/// One value.
#[track_caller]
pub(crate) fn query<T: FromSql>(url: &str, sql: &str) -> T {
    let text = postgres::ask(sql, schema(url)).unwrap();
    let value = match (text.as_str(), text.parse::<i64>(), text.parse::<f64>()) {
        (postgres::NULL, ..) => ValueRef::Null,
        ("t", ..) => ValueRef::Integer(1),
        ("f", ..) => ValueRef::Integer(0),
        (_, Ok(number), _) => ValueRef::Integer(number),
        (_, _, Ok(number)) => ValueRef::Real(number),
        (text, ..) => ValueRef::Text(text.as_bytes()),
    };
    // Numbers may be asked for as text.
    T::column_result(value)
        .or_else(|_| T::column_result(ValueRef::Text(text.as_bytes())))
        .unwrap_or_else(|error| panic!("{sql}: {error}: {text}"))
}

#[track_caller]
pub(crate) fn execute(url: &str, sql: &str) {
    postgres::ask(sql, schema(url)).unwrap();
}

/// From now on what is done to a table fails, for rows that a condition chooses: `INSERT`, `UPDATE` or `DELETE`.
pub(crate) fn refusal(url: Option<&str>, what: &str, table: &str, when: &str) -> String {
    let trigger = format!("CREATE TRIGGER refused BEFORE {what} ON {table}");
    match url {
        Some(_) => format!("{trigger} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()"),
        None => format!("{trigger} WHEN {when} BEGIN SELECT RAISE(FAIL, 'as if broken'); END"),
    }
}

fn schema(url: &str) -> &str {
    url.split_once("search_path%3D").unwrap().1
}
