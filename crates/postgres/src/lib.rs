//! PostgreSQL behind the calls that callers make of SQLite, for a store that several machines share.
//!
//! Callers write their SQL as SQLite reads it; `dialect` translates it. Values are rusqlite's in both directions, so that a caller
//! converts its types in one way. The crate knows no tables: the caller brings them.
//!
//! **A thread for each connection.** The store's verbs block until their database answers, as they do with SQLite. `tokio-postgres` is
//! asynchronous, so each connection lives in a thread with a small runtime; a call sends it a statement and waits for the answer. The
//! blocking `postgres` crate has a runtime inside, which must not be entered from another runtime: the bot calls the verbs from one.
//! `sqlx` brings three times the crates, a pool that nobody needs here and macros that want a database at build time.
//!
//! **One writer at a time.** SQLite allows one write at a time, and the verbs rely on it: a row that a transaction has read is
//! unchanged when the transaction writes. Here each writing transaction first takes one lock for the whole schema
//! (`pg_advisory_xact_lock`), which ends with the transaction. So the writes of all machines follow each other in the order of their
//! commits, and the numbers of rows grow in that order. Claims by rows (`FOR UPDATE SKIP LOCKED`) would let two senders claim parts at
//! the same time; a claim is one short transaction, so the lock is enough. A fleet's list needs no such order: its workers claim by
//! rows, without the lock ([`Postgres::begin_rows`]), and `NOTIFY` hints at new work. Readers take no lock and see every write that was
//! committed before their statement.
//!
//! **Lost connections.** The next call outside a transaction reconnects. During a model's turn it also waits for a server that is
//! away for a moment ([`Postgres::wait_for_server`]). Within a transaction all further statements fail, and the server rolls it back.
//! One case stays open: a commit without an answer may have happened. It is an error like a disk's, and the journal and the keys of
//! the verbs tell the next wake. A statement waits at most ten seconds for a lock.

mod address;
mod connection;
mod dialect;
mod error;
mod link;
mod tls;
mod values;

pub use address::DatabaseAddress;
pub use connection::Postgres;
pub use error::PostgresError;
pub use link::StatementAnswer;
