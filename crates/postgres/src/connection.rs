//! One connection as callers see it: statements, transactions and notifications.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::types::Value;
use tokio_postgres::Config;

use super::{
    address::DatabaseAddress,
    dialect,
    error::PostgresError,
    link::{Link, ServerCall, StatementAnswer},
    tls::Tls,
};

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts to reach the server.
const RECONNECT_EVERY: Duration = Duration::from_millis(250);
/// First number of the writers' lock; the second is the schema's hash. Any number unused elsewhere in the database will do.
const WRITERS_LOCK: i32 = 0x7265_7665;
/// Settings of each connection. A machine that falls asleep within a transaction must not block the other writers.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; SET jit = off;
    SET TIME ZONE 'UTC'; SET client_min_messages = warning";

/// A channel of `NOTIFY`. A notice is a hint to look, and may get lost. At most one is kept, and stands for all that came after it.
struct NoticeChannel {
    name: &'static str,
    sender: SyncSender<()>,
    notices: Receiver<()>,
}

/// State of the transaction under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    Sound,
    /// One of its statements failed, so a commit is impossible.
    Failed,
}

/// The use of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseAccess {
    /// Reading and writing.
    ReadWrite,
    /// Reading only.
    ReadOnly,
}

/// A connection, opened by its first use and again after a loss.
pub struct Postgres {
    config: Config,
    tls: Tls,
    access: DatabaseAccess,
    channel: Option<NoticeChannel>,
    link: RefCell<Option<Link>>,
    transaction: Cell<Option<TransactionState>>,
    /// How long to wait for a server that can't be reached.
    patience: Cell<Duration>,
    translated: RefCell<HashMap<String, Arc<str>>>,
}

impl Postgres {
    /// Prepares a connection to this database. The first call opens it.
    pub fn new(address: &DatabaseAddress, access: DatabaseAccess) -> Self {
        let (mut config, tls) = (address.config.clone(), address.tls.clone());
        config.application_name("reveille").connect_timeout(CONNECT_TIMEOUT);
        let (link, transaction, translated) = (RefCell::default(), Cell::default(), RefCell::default());
        Self { config, tls, access, channel: None, link, transaction, patience: Cell::default(), translated }
    }

    /// Adds a channel for notifications, to send and to receive.
    #[must_use]
    pub fn with_channel(self, name: &'static str) -> Self {
        let (sender, notices) = sync_channel(1);
        Self { channel: Some(NoticeChannel { name, sender, notices }), ..self }
    }

    /// Makes calls wait up to this long for a server that can't be reached, for example because it restarts, so that no work is lost.
    pub fn wait_for_server(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// Waits for a notification; returns whether one came in time. None comes over a lost connection.
    pub fn wait_for_notice(&self, at_most: Duration) -> bool {
        match &self.channel {
            Some(channel) => channel.notices.recv_timeout(at_most).is_ok(),
            None => {
                thread::sleep(at_most);
                false
            }
        }
    }

    /// Notifies all connections with the same channel, once the transaction under way is committed.
    ///
    /// # Errors
    /// The server's error.
    pub fn notify(&self) -> Result<(), PostgresError> {
        match &self.channel {
            Some(channel) => self.send_batch(&format!("NOTIFY {}", channel.name)),
            None => Ok(()),
        }
    }

    /// Translates a statement, for [`Self::run`]. Keeps the translation for the next time.
    pub fn translate(&self, sql: &str) -> Arc<str> {
        if let Some(text) = self.translated.borrow().get(sql) {
            return Arc::clone(text);
        }
        let text: Arc<str> = dialect::translate_statement(sql).into();
        self.translated.borrow_mut().insert(sql.to_owned(), Arc::clone(&text));
        text
    }

    /// Runs a translated statement with these values.
    ///
    /// # Errors
    /// The server's error.
    pub fn run(&self, sql: &Arc<str>, values: &[Value]) -> Result<StatementAnswer, PostgresError> {
        self.send_call(|| ServerCall::Run { sql: Arc::clone(sql), values: values.to_vec() })
    }

    /// Runs several statements, written as SQLite reads them.
    ///
    /// # Errors
    /// The server's error.
    pub fn execute_batch(&self, sql: &str) -> Result<(), PostgresError> {
        self.send_batch(&dialect::translate_statement(sql))
    }

    /// Creates or changes tables, written as SQLite reads them. The tables in `ordered` get a column `rowid`, as every SQLite table has,
    /// because their rows are read in the order of writing.
    ///
    /// # Errors
    /// The server's error.
    pub fn change_schema(&self, sql: &str, ordered: &[&str]) -> Result<(), PostgresError> {
        self.send_batch(&dialect::translate_schema(sql, ordered))
    }

    /// Creates the functions of SQLite that PostgreSQL lacks, once per schema.
    ///
    /// # Errors
    /// The server's error.
    pub fn make_functions(&self) -> Result<(), PostgresError> {
        self.send_batch(dialect::FUNCTIONS)
    }

    /// Begins a transaction whose statements all read the same snapshot.
    ///
    /// # Errors
    /// A transaction is under way already, or the server reports an error.
    pub fn begin_read(&self) -> Result<(), PostgresError> {
        self.begin_transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    /// Waits for the writers' lock and begins a transaction that excludes all other writers.
    ///
    /// # Errors
    /// A transaction is under way already, the lock stayed busy, or the server reports an error.
    pub fn begin_write(&self) -> Result<(), PostgresError> {
        self.begin_transaction(&format!(
            "BEGIN; SELECT pg_advisory_xact_lock({WRITERS_LOCK}, hashtext(current_schema()))"
        ))
    }

    /// Begins a transaction that locks only the rows it writes.
    ///
    /// # Errors
    /// A transaction is under way already, or the server reports an error.
    pub fn begin_rows(&self) -> Result<(), PostgresError> {
        self.begin_transaction("BEGIN")
    }

    fn begin_transaction(&self, sql: &str) -> Result<(), PostgresError> {
        if self.transaction.get().is_some() {
            return Err(PostgresError::with_code("25001", "a transaction is under way already"));
        }
        self.send_batch(sql).inspect_err(|_| {
            // The transaction may have begun without the lock.
            self.send_batch("ROLLBACK").ok();
        })?;
        self.transaction.set(Some(TransactionState::Sound));
        Ok(())
    }

    /// Commits the transaction under way.
    ///
    /// # Errors
    /// No transaction is under way, one of its statements failed, or the server reports an error.
    pub fn commit(&self) -> Result<(), PostgresError> {
        if self.transaction.get() != Some(TransactionState::Sound) {
            // The server would roll back here and report success.
            self.roll_back();
            return Err(PostgresError::with_code("25P02", "a statement of the transaction failed"));
        }
        let done = self.send_batch("COMMIT");
        self.transaction.set(None);
        done
    }

    /// Rolls back the transaction under way, if any.
    pub fn roll_back(&self) {
        if self.transaction.take().is_some() && self.link.borrow().is_some() {
            self.send_batch("ROLLBACK").ok();
        }
    }

    fn send_batch(&self, sql: &str) -> Result<(), PostgresError> {
        self.send_call(|| ServerCall::Batch(sql.to_owned())).map(drop)
    }

    /// Sends a call to the server; reconnects if only the connection was lost.
    fn send_call(&self, call: impl Fn() -> ServerCall) -> Result<StatementAnswer, PostgresError> {
        // An open link may turn out to be lost, so it gets one repeat. Without a link, the first try has reconnected already.
        let is_repeat_due = self.link.borrow().is_some() || !self.patience.get().is_zero();
        let may_repeat = self.transaction.get().is_none() && is_repeat_due;
        let mut done = self.send_once(call());
        let started = Instant::now();
        // Calls outside a transaction only read or begin one, so a repeat is safe.
        // fault: lost-connection-shared-database
        while may_repeat && done.as_ref().is_err_and(PostgresError::is_connection_lost) {
            done = self.send_once(call());
            if done.is_ok() || started.elapsed() >= self.patience.get() {
                break;
            }
            thread::sleep(RECONNECT_EVERY);
        }
        if done.is_err() && self.transaction.get().is_some() {
            self.transaction.set(Some(TransactionState::Failed));
        }
        done
    }

    fn send_once(&self, call: ServerCall) -> Result<StatementAnswer, PostgresError> {
        if self.link.borrow().is_none() {
            if self.transaction.get().is_some() {
                return Err(PostgresError::from_connection(
                    "the connection to PostgreSQL was lost within a transaction",
                ));
            }
            *self.link.borrow_mut() = Some(self.open_link()?);
        }
        let lost = || PostgresError::from_connection("the connection to PostgreSQL was lost");
        let done = self.link.borrow().as_ref().map_or_else(|| Err(lost()), |link| link.send(call));
        if done.as_ref().is_err_and(PostgresError::is_connection_lost) {
            *self.link.borrow_mut() = None;
        }
        done
    }

    fn open_link(&self) -> Result<Link, PostgresError> {
        let mut settings = SETTINGS.to_owned();
        if self.access == DatabaseAccess::ReadOnly {
            settings.push_str("; SET default_transaction_read_only = on");
        }
        let mut notices = None;
        if let Some(channel) = &self.channel {
            settings.push_str(&format!("; LISTEN {}", channel.name));
            notices = Some(channel.sender.clone());
        }
        Link::open(&self.config, &self.tls, settings, notices)
    }
}
