//! Histories on PostgreSQL: one server for all histories, and a schema for each.
//!
//! Each schema belongs to its own role, so that the server can cut off all connections of a history at once.

use rusqlite::types::Value;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::{self, Runtime};
use tokio_postgres::{Client, NoTls, Row, types::Type};

use reveille_store::{DatabaseAddress, Store};

use super::wake::text;
use crate::support::postgres;

/// Time allowed for the server to end cut-off connections; it takes milliseconds.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The server, with a session that creates and drops schemas.
pub(super) struct Server {
    /// The address without the role: the socket and the database.
    place: String,
    keeper: Mutex<Session>,
}

impl Server {
    /// The server of this run; `None` if PostgreSQL isn't installed.
    pub(super) fn find() -> Option<Self> {
        let url = postgres::new_database()?;
        let keeper = Session::connect(&url).expect("the server that was just started");
        let place = url.split_once('@').and_then(|(_, place)| place.split_once('?'));
        let place = place.expect("an address with a role and a schema").0.to_owned();
        Some(Self { place, keeper: Mutex::new(keeper) })
    }

    /// Creates an empty schema.
    pub(super) fn new_schema(self: &Arc<Self>) -> Result<Schema, String> {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let name = format!("h{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
        self.execute_as_keeper(&format!("CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}"))?;
        // By default a role uses the schema with its own name.
        let url = format!("postgres://{name}@{}", self.place);
        Ok(Schema { server: Arc::clone(self), address: DatabaseAddress::parse(&url, None)?, url, name })
    }

    fn execute_as_keeper(&self, sql: &str) -> Result<(), String> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).batch(sql)
    }
}

/// A history's database; dropping the value removes it.
pub(super) struct Schema {
    server: Arc<Server>,
    name: String,
    url: String,
    address: DatabaseAddress,
}

impl Schema {
    pub(super) fn open(&self) -> Result<Store, String> {
        Store::open_shared_database(&self.address).map_err(text)
    }

    /// A direct connection, without the store.
    pub(super) fn session(&self) -> Result<Session, String> {
        Session::connect(&self.url)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let name = &self.name;
        // After a failure a transaction may still be open, so the connections are ended first.
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'");
        if let Err(why) = self.server.execute_as_keeper(&format!("{end}; DROP SCHEMA {name} CASCADE; DROP ROLE {name}"))
        {
            eprintln!("the schema {name} stays until the server ends: {why}");
        }
    }
}

/// A connection with blocking calls, in the caller's thread.
pub(super) struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    fn connect(url: &str) -> Result<Self, String> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(url, NoTls)).map_err(|error| error_text(&error))?;
        drop(runtime.spawn(connection));
        Ok(Self { runtime, client })
    }

    /// Runs several statements.
    pub(super) fn batch(&self, sql: &str) -> Result<(), String> {
        self.runtime.block_on(self.client.batch_execute(sql)).map_err(|error| error_text(&error))
    }

    /// Runs a statement with one value.
    pub(super) fn execute(&self, sql: &str, value: &str) -> Result<(), String> {
        self.runtime.block_on(self.client.execute(sql, &[&value])).map(drop).map_err(|error| error_text(&error))
    }

    /// Returns the rows of a query.
    pub(super) fn rows(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let found = self.runtime.block_on(self.client.query_typed(sql, &[])).map_err(|error| error_text(&error))?;
        let cells = |row: &Row| {
            (0..row.len()).map(|at| cell(row, at)).collect::<Result<_, _>>().map_err(|error| error_text(&error))
        };
        found.iter().map(cells).collect()
    }

    /// Cuts off every other connection of its role, and waits until the server has ended them.
    pub(super) fn cut_off_others(&self) -> Result<(), String> {
        let others = "FROM pg_stat_activity WHERE usename = current_user AND pid != pg_backend_pid()";
        self.batch(&format!("SELECT pg_terminate_backend(pid) {others}"))?;
        let begun = Instant::now();
        while !self.rows(&format!("SELECT pid {others}"))?.is_empty() {
            if begun.elapsed() > END_TIMEOUT {
                return Err("a connection that was cut off is still open".to_owned());
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Reads a value as SQLite would return it.
fn cell(row: &Row, at: usize) -> Result<Value, tokio_postgres::Error> {
    let kind = row.columns().get(at).map(|column| column.type_().clone());
    let value = match kind {
        Some(Type::BOOL) => row.try_get::<_, Option<bool>>(at)?.map(Value::from),
        Some(Type::INT4) => row.try_get::<_, Option<i32>>(at)?.map(Value::from),
        Some(Type::INT8) => row.try_get::<_, Option<i64>>(at)?.map(Value::from),
        _ => row.try_get::<_, Option<String>>(at)?.map(Value::from),
    };
    Ok(value.unwrap_or(Value::Null))
}

/// The text of an error: the server's message, which the client's own text omits.
fn error_text(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| text(error), text)
}
