//! PostgreSQL behind an interface like SQLite's, for a store that several machines share.
//!
//! Callers write SQL for SQLite; `dialect` translates it. Values are rusqlite's in both directions, so each type needs only one
//! conversion. The crate knows no tables: the caller brings them.
//!
//! **A thread for each connection.** The store's methods block until the database answers, as with SQLite. `tokio-postgres` is
//! asynchronous, so each connection lives in a thread with a small runtime; a call sends a statement there and waits for the answer. The
//! blocking `postgres` crate has a runtime inside, and must not be entered from another runtime, as the bot would. `sqlx` brings three
//! times the crates, a needless pool, and macros that want a database at build time.
//!
//! **One writer at a time.** SQLite allows one write at a time, and the store's methods rely on it: a row read by a transaction is
//! unchanged when the transaction writes. Here each writing transaction first takes one lock for the whole schema
//! (`pg_advisory_xact_lock`), released at the end of the transaction. All machines' writes therefore follow each other in the order of
//! their commits, and row ids grow in that order. Claims by rows (`FOR UPDATE SKIP LOCKED`) would let two senders claim parts at the same
//! time; a claim is one short transaction, so the lock is enough. A fleet's registry needs no such order: its workers claim by rows,
//! without the lock ([`Postgres::begin_rows`]), and `NOTIFY` hints at new work. Readers take no lock and see every write committed before
//! their statement.
//!
//! **Lost connections.** The next call outside a transaction reconnects. During a model's turn it also waits for a server that can't be
//! reached for a moment ([`Postgres::wait_for_server`]). Within a transaction all further statements fail, and the server rolls back. One
//! case stays open: a commit without an answer may have happened. The caller sees an error like a disk's; the next wake finds out by the
//! journal and the unique keys. A statement waits at most ten seconds for a lock.

mod address;
mod connection;
mod dialect;
mod error;
mod link;
mod tls;
mod values;

pub use address::DatabaseAddress;
pub use connection::{DatabaseAccess, Postgres};
pub use error::PostgresError;
pub use link::StatementAnswer;
