//! The PostgreSQL of a run of the tests.

#[path = "../../../../tests/integration/support/postgres.rs"]
#[expect(dead_code, reason = "the stories need more of it")]
mod postgres;

use crate::DatabaseAddress;

/// A new database; none where there is no PostgreSQL.
pub(super) fn database() -> Option<DatabaseAddress> {
    postgres::new_database().map(|url| DatabaseAddress::parse(&url, None).unwrap())
}

/// The same for what makes schemas of its own.
pub(super) fn server_database() -> Option<DatabaseAddress> {
    postgres::new_server_database().map(|url| DatabaseAddress::parse(&url, None).unwrap())
}
