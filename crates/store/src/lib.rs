//! The store, in SQLite or a shared PostgreSQL: inbox, outbox, journal, lease, reminders, ledger. This crate holds all SQL on the
//! store's database; the search index has a database of its own.
//!
//! The bot writes the inbox. A wake writes while it holds the lock, and each such write carries the wake's [`Fence`]. So a wake that lost
//! the lock while the machine slept can't write any more, except to record how its own sending ended ([`Outbox::settle_part`]). No
//! transaction stays open across a network call.

#![expect(private_bounds, reason = "areas wrap only the stores of this crate")]

pub mod access;
mod areas;
mod chats;
mod clock_rollback;
mod cycles;
pub mod database;
mod fence;
mod fleet;
pub mod in_force;
mod in_place;
mod inspect;
mod intake;
mod jobs;
mod lease;
mod messages;
#[cfg(feature = "postgres")]
mod moving;
mod odd_rows;
mod outbox;
mod outcome;
mod people;
mod place;
mod recordings;
mod reminders;
mod restored;
mod schema;
mod shapes;
#[cfg(feature = "postgres")]
mod shared;
mod sql;
mod steps;
mod upkeep;
pub mod wake_lock;

use reveille_base::{file, process::Identity};

pub use areas::{
    Approvals, Attachments, Chats, CycleHistory, Cycles, Inbox, Jobs, Journal, Ledger, Maintenance, Outbox, People,
    Proposals, Recordings, Reminders, Retention, Rules, StatusLines, Terminals, Undos,
};
pub use chats::{chosen::ChosenSetting, moved::Moved, stop::Stopped};
pub use cycles::{
    approvals::{Approval, ApprovalState, ApprovedAction, NewApproval, Tap, Unshown},
    days::{ModelDay, StateDay, TurnTimes},
    journal::{Change, Entry, FoldAsk, StagedFile},
    ledger::{Cap, Reservation, Settlement, SpendCap, Spent},
    parked::{CycleReports, ParkedCycle},
    proposals::{COMPARED_OVER, NewProposal, Proposal},
    rows::{CycleEnd, CycleRow, CycleState, NO_MODEL, NewCycle},
    rules::{RuleRemoval, RuleState},
    status_lines::StatusLine,
    told::{JournalLine, PaidRequest, WrittenText},
    undo::{TakenBack, Undo},
    undo_line::UndoStep,
};
pub use fence::{Fence, FencedStore};
pub use fleet::{FleetMember, FleetRegistry, TurnClaim, TurnEnd};
pub use in_place::Displaced;
pub use inspect::UnsentPart;
pub use intake::{
    batch::{Accepted, Batch},
    orders::{Order, Ordered},
    poll::KEPT_BY_CHANNEL,
    reported::BotReport,
    terminals::{Awaited, TalkMark, TalkPart, TerminalSession},
};
pub use jobs::{
    rows::{JobPlan, JobRow},
    runs::{JobEnd, JobLook, JobRun, JobState, MessageTime, NewJobRun},
};
pub use lease::LeaseHolder;
pub use messages::{
    attachments::{Attachment, FailedFetch, FileOnDisk, FileState, LandedFile, NO_SPEECH_MODEL, NewAttachment},
    fresh::FreshStart,
    parts::PartOf,
    queue::{Exchange, Incoming, MAX_ATTEMPTS, NewIncoming},
    spoken::{Spoken, SpokenRows},
};
pub use odd_rows::OddRow;
pub use outbox::{
    attempts::{Claimed, PartOutcome, PartState, Pick},
    flood::MAX_WAITING_UNTOLD,
    outgoing::{NewNudge, NewOutgoing, OutgoingKind},
    proposed::PROPOSED,
    provenance::names_others,
    questions::is_long,
    rich::{AnsweredSample, RichConsent, RichRefusal, RichRule},
    shown::ShownTask,
    undelivered::{Outstanding, Prospect, Undelivered},
};
pub use outcome::MessageOutcome;
pub use people::pairing::{CodeState, MAX_WRONG_CODES, NewPaired, Paired, SettingsListing};
pub use place::StorePlace;
pub use recordings::rows::{EncoderPlace, MAX_RECORDINGS, NewRecording, RecordedCall, RecordedRequest, Recording};
pub use reminders::{
    answered::AnsweredMessage,
    nudged::OpenNudge,
    rows::{Firing, NewReminder, Reminder, Round},
};
pub use restored::{SetAside, StoreSize};
#[cfg(feature = "postgres")]
pub use reveille_postgres::DatabaseAddress;
pub use schema::Schema;
pub use shapes::{CycleShape, TableShape};
pub use steps::{NewStep, PersonsStep};
pub use upkeep::{
    backoff::{HEAD_SEEN, Upkeep, UpkeepKind, compute_retry_wait},
    breaker::{ModelBreaker, ModelFault},
    forgetting::{FORGOTTEN_ROW, HeldInRows, HeldWords, HoldsWords},
    reflecting::{OwnWords, REFLECTED},
    retention::FIRINGS_KEPT,
};

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{OpenFlags, config::DbConfig};
use sql::{OptionalExtension as _, SqlConnection, Transaction};

/// The time a statement waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_millis(10_000);
/// The write-ahead log is cut back to this many bytes after a checkpoint.
const WAL_LIMIT_BYTES: i64 = 4 * 1024 * 1024;

/// Memory for cached database pages per connection, in KiB. The bot keeps several connections open and reads little.
const CACHE_KIB: i64 = 128;
/// Prepared statements kept per connection. A wake with a message runs about 125 different ones; preparing them each time would
/// take a tenth of its computing time.
const KEPT_STATEMENTS: usize = 192;

/// The maximum length of the write-ahead log, in bytes. SQLite restarts the log when a write finds everything copied and no reader
/// active; a steady stream of readers would prevent the restart forever.
pub const WAL_BOUND_BYTES: u64 = 16 * 1024 * 1024;
/// The log length in bytes from which a write waits for a moment without readers. The log never grows this long without readers, and
/// the bound leaves room for several attempts.
const WAL_RESTART_BYTES: u64 = 5 * 1024 * 1024;
/// How long such a write waits. Our own readers take milliseconds; other writers are blocked meanwhile.
const RESTART_TIMEOUT: Duration = Duration::from_millis(250);

/// The database, opened for one process.
pub struct Store {
    conn: SqlConnection,
    path: PathBuf,
    /// The log length in bytes from which the next restart is tried. It grows with each attempt that a reader prevents.
    restart_at_bytes: u64,
    opened: in_place::Opened,
}

/// The reason for a failed store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has been writing for longer than we wait: try again.
    #[error("the database is busy: another process has been writing to it for over {} s", BUSY_TIMEOUT.as_secs())]
    Busy,
    /// Another wake took over the lock: stop at once and write nothing more.
    #[error("the lease was lost: another wake holds fence {now}, this one had {held}")]
    LeaseLost {
        /// The fence of this process.
        held: i64,
        /// The fence in force.
        now: i64,
    },
    /// A newer program wrote this database: upgrade this program.
    #[error("{} has schema version {found}, but this program only knows {known}: a newer reveille has used it", path.display())]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The schema version of the file.
        found: i64,
        /// The latest version this program knows.
        known: i64,
    },
    /// An older program wrote this database, and it is open read-only: a wake or the bot upgrades it.
    #[error("{} has schema version {found}, but this program needs {known}: the next wake upgrades it", path.display())]
    Older {
        /// The database file.
        path: PathBuf,
        /// The schema version of the file.
        found: i64,
        /// The latest version this program knows.
        known: i64,
    },
    /// The database has vanished from a workspace that wakes have used: a person restores it or starts a new one.
    #[error("{} is {}, though I have worked here before. Nothing was changed. Put the file back{}, or start without \
             what was queued and set in it: health check --new-database", path.display(), if *is_empty { "empty" } else { "gone" }, saved_copy(path, saved.as_deref()))]
    Gone {
        /// The database file.
        path: PathBuf,
        /// Whether an empty file is there.
        is_empty: bool,
        /// The newest copy saved by the bot.
        saved: Option<PathBuf>,
    },
    /// The disk is full; nothing was changed.
    #[error("the disk is full: nothing was changed in the database")]
    Full,
    /// The file is damaged: see `health check`.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// An error of a shared database's server, or of the connection to it.
    #[error("database: {0}")]
    Server(String),
    /// Any other error of SQLite or the file system.
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<sql::Error> for StoreError {
    fn from(error: sql::Error) -> Self {
        match error {
            sql::Error::Sqlite(error) => error.into(),
            #[cfg(feature = "postgres")]
            sql::Error::Postgres(error) if error.is_busy() => Self::Busy,
            #[cfg(feature = "postgres")]
            sql::Error::Postgres(error) if error.is_full() => Self::Full,
            #[cfg(feature = "postgres")]
            sql::Error::Postgres(error) if error.is_damaged() => Self::Damaged(error.to_string()),
            #[cfg(feature = "postgres")]
            sql::Error::Postgres(error) => Self::Server(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

fn saved_copy(path: &Path, saved: Option<&Path>) -> String {
    saved
        .map_or_else(String::new, |saved| format!(" (the bot saved a copy: mv {} {})", saved.display(), path.display()))
}

/// The result of a store call.
pub type Result<T> = std::result::Result<T, StoreError>;

impl Store {
    /// Opens the database. Creates the file (readable by its owner alone) and upgrades its schema if necessary.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            create_private(path);
        }
        let conn = rusqlite::Connection::open(path)?;
        write_durably(&conn)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
        conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
        conn.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
        // Without QPSG, SQLite prepares some statements again for each bound value.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let opened = in_place::Opened::default();
        let mut store = Self { conn: conn.into(), path: path.to_owned(), restart_at_bytes: WAL_RESTART_BYTES, opened };
        store.bring_up_to_date()?;
        store.opened = in_place::Opened::from_files(&store.files());
        Ok(store)
    }

    /// Opens an existing database read-only; `None` if the file is missing or holds no tables yet, as while another process creates it.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>> {
        // What can't be read is told by the first query.
        let is_made = |store: &Self| !store.read_schema().is_ok_and(|schema| schema.found == 0);
        Ok(Self::open_file_read_only(path)?.filter(is_made))
    }

    /// Opens any existing database file read-only, whatever it holds; `None` if it is missing.
    fn open_file_read_only(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let conn = rusqlite::Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        let opened = in_place::Opened::default();
        Ok(Some(Self { conn: conn.into(), path: path.to_owned(), restart_at_bytes: u64::MAX, opened }))
    }

    /// Returns whether several machines share this database.
    pub fn is_shared(&self) -> bool {
        self.conn.as_sqlite().is_none()
    }

    /// Sets how long to wait for a shared database's server that can't be reached, for example because it restarts.
    pub fn wait_for_server(&self, patience: Duration) {
        self.conn.wait_for_server(patience);
    }

    /// Returns whether a process may still be alive. A shared database can't tell for a process on another machine, or one before this
    /// machine's restart.
    fn may_live(&self, who: &Identity) -> bool {
        who.is_alive() || self.is_shared() && who.boot_id != Identity::current().boot_id
    }

    /// The path of the database file; for a shared database its address, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs several reads on one snapshot, so that they are consistent, and the file is locked once instead of once per statement.
    pub fn with_snapshot<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let snapshot = self.conn.begin_read().map_err(StoreError::from)?;
        let read = work();
        // The snapshot holds no writes, so dropping it loses nothing.
        drop(snapshot);
        read
    }

    /// Runs SQLite's own check of the whole file: `Ok` if sound, else the problems, a line each.
    pub fn check_integrity(&self) -> Result<std::result::Result<(), Vec<String>>> {
        // A server looks after its own files.
        let Some(conn) = self.conn.as_sqlite() else { return Ok(Ok(())) };
        let mut statement = conn.prepare("PRAGMA integrity_check(20)")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(if lines.iter().all(|line| line == "ok") { Ok(()) } else { Err(lines) })
    }

    /// The value of a counter. Counters cover events whose text is not stored, such as messages from strangers.
    pub fn read_counter(&self, name: &str) -> Result<i64> {
        let n = self.conn.query_row("SELECT n FROM counters WHERE name = ?1", [name], |row| row.get(0)).optional()?;
        Ok(n.unwrap_or(0))
    }

    fn bring_up_to_date(&self) -> Result<()> {
        let schema = self.read_schema()?;
        let Schema { found, known, .. } = schema;
        if schema.is_too_new() {
            return Err(StoreError::Newer { path: self.path.clone(), found, known });
        }
        // A newer program's additions don't disturb this one, so an upgrade can be undone.
        if found >= known {
            return Ok(());
        }
        let tx = self.conn.begin_write()?;
        schema::bring_up_to_date(&tx)?;
        tx.commit()?;
        Ok(())
    }

    /// Runs one immediate transaction, rolled back if `work` fails.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let tx = self.conn.begin_write()?;
        let value = work(&tx)?;
        tx.commit()?;
        self.bound_log();
        Ok(value)
    }

    /// Restarts the log once it is long: copies all of it into the database, then waits for the readers that still need the log. Readers
    /// that come meanwhile read the database itself. Committed data is safe either way, so failures are only logged.
    fn bound_log(&mut self) {
        let bytes = self.log_bytes();
        // fault: long-log-left-grow
        if bytes < self.restart_at_bytes {
            return;
        }
        // A lasting reader or another process's checkpoint prevents the restart. Retrying at each write would hold up all other writers,
        // so the next attempt waits until the log has grown by an eighth.
        self.restart_at_bytes = match self.restart_log() {
            Ok(true) => WAL_RESTART_BYTES,
            Ok(false) | Err(_) => bytes.saturating_add(bytes / 8),
        };
        tracing::debug!(bytes, next_at = self.restart_at_bytes, "tried to restart a long write-ahead log");
    }

    /// Tries to restart the log; `false` if readers kept it busy.
    fn restart_log(&self) -> Result<bool> {
        let Some(conn) = self.conn.as_sqlite() else { return Ok(true) };
        conn.busy_timeout(RESTART_TIMEOUT)?;
        let is_busy = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        conn.busy_timeout(BUSY_TIMEOUT)?;
        Ok(!is_busy?)
    }

    /// The length of the write-ahead log, in bytes.
    pub fn log_bytes(&self) -> u64 {
        let [_, log, _] = self.files();
        std::fs::metadata(log).map_or(0, |found| found.len())
    }

    /// Like [`Store::write`], but doesn't wait for the disk. Use it for data that may be lost in a power cut, either because it is read
    /// afresh anyway, or because a synced write follows before anything leaves this machine. A killed process loses nothing, and the next
    /// synced write makes this data durable too.
    fn write_without_sync<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        const NORMAL: i64 = 1;
        let Some(conn) = self.conn.as_sqlite() else {
            return self.write(|tx| {
                tx.execute_batch("SET LOCAL synchronous_commit = off")?;
                work(tx)
            });
        };
        let usual: i64 = conn.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        conn.pragma_update(None, "synchronous", usual.min(NORMAL))?;
        let written = self.write(work);
        if let Some(conn) = self.conn.as_sqlite() {
            conn.pragma_update(None, "synchronous", usual)?;
        }
        written
    }
}

/// Makes commits reach the disk, and writers wait for each other.
fn write_durably(conn: &rusqlite::Connection) -> Result<()> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    use_log(conn)?;
    // fault: sqlite-doesnt-sync
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "fullfsync", true)?;
    Ok(())
}

/// Switches the database to a write-ahead log. The switch locks the whole file for an instant, and SQLite itself doesn't wait for other
/// processes that are switching too.
fn use_log(conn: &rusqlite::Connection) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    let begun = std::time::Instant::now();
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL").map_err(StoreError::from) {
            Err(StoreError::Busy) if begun.elapsed() < BUSY_TIMEOUT => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Creates the file readable by its owner alone, since it holds conversations. Best effort: `open` reports real trouble.
fn create_private(path: &Path) {
    if let Err(error) = file::create_private(path) {
        tracing::debug!(%error, "couldn't create the database file in advance");
    }
}

/// Serializes a value for a JSON column. If that fails, which is a bug of ours, the text is `null`.
fn to_json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
#[path = "tests/schema.rs"]
mod schema_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[cfg(feature = "postgres")]
#[path = "tests.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests, on the other engine")]
mod tests_on_postgres;
