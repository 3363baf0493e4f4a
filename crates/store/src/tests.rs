//! The store on real SQLite files; and the same once more on a real PostgreSQL (`tests_on_postgres`), but for what is SQLite's alone. Histories with crashes between any two steps are in the campaign (`tests/campaign/histories.rs`).

#[path = "tests/attachments.rs"]
mod attachments;
#[path = "tests/door.rs"]
mod door;
#[path = "tests/inbox.rs"]
mod inbox;
#[path = "tests/jobs.rs"]
mod jobs;
#[path = "tests/joined.rs"]
mod joined;
#[path = "tests/journal.rs"]
mod journal;
#[path = "tests/lease.rs"]
mod lease;
#[path = "tests/ledger.rs"]
mod ledger;
#[path = "tests/moved.rs"]
mod moved;
#[path = "tests/outbox.rs"]
mod outbox;
#[path = "tests/provenance.rs"]
mod provenance;
#[path = "tests/recordings.rs"]
mod recordings;
#[path = "tests/reminders.rs"]
mod reminders;
#[path = "tests/retention.rs"]
mod retention;
#[cfg(feature = "postgres")]
#[path = "tests/server.rs"]
mod server;
#[cfg(feature = "postgres")]
#[path = "tests/shared.rs"]
mod shared;
#[path = "tests/undelivered.rs"]
mod undelivered;

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{FixedClock, parse_time},
    process::Identity,
    types::ChatRef,
};

use super::*;
use crate::{CycleEnd, CycleState, NewCycle, NewOutgoing, OutgoingKind};

/// A store in a directory of its own.
pub(super) struct World {
    pub(super) store: Store,
    pub(super) fence: Fence,
    clock: FixedClock,
    _dir: tempfile::TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(&dir.path().join("messages.db"));
        // Power is not cut in these tests, and syncing would be most of their time.
        if let Some(conn) = store.conn.as_sqlite() {
            conn.pragma_update(None, "synchronous", "OFF").unwrap();
        }
        let fence = store.take_lease(&me(), at(0)).unwrap();
        Self { store, fence, clock: FixedClock(at(0)), _dir: dir }
    }

    /// The store in the hands of its lease's holder, at this time.
    pub(super) fn held(&mut self, now: DateTime<Utc>) -> FencedStore<'_> {
        self.held_by(self.fence, now)
    }

    /// The same for the holder of this fence.
    pub(super) fn held_by(&mut self, fence: Fence, now: DateTime<Utc>) -> FencedStore<'_> {
        self.clock = FixedClock(now);
        FencedStore::new(&mut self.store, fence, &self.clock)
    }

    /// Runs a statement as a person with a SQLite shell would.
    pub(super) fn by_hand(&self, sql: &str) {
        self.store.conn.execute_batch(sql).unwrap();
    }

    /// Whether it is on PostgreSQL.
    pub(super) fn is_shared(&self) -> bool {
        self.store.conn.as_sqlite().is_none()
    }

    /// From now on the database refuses this in that table.
    pub(super) fn refuse(&self, what: &str, table: &str) {
        let sqlite = format!("CREATE TRIGGER refuse BEFORE {what} ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END");
        let postgres = format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
             CREATE TRIGGER refuse BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        self.by_hand(self.store.conn.pick_statement(&sqlite, &postgres));
    }

    pub(super) fn refuse_no_more(&self, table: &str) {
        self.by_hand(self.store.conn.pick_statement("DROP TRIGGER refuse", &format!("DROP TRIGGER refuse ON {table}")));
    }

    pub(super) fn value<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.store.conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(super) fn begin(&mut self, id: &str) {
        self.held(at(0)).cycles_mut().begin_cycle(&cycle(id), &[], &[]).unwrap();
    }

    pub(super) fn end(&mut self, id: &str, state: CycleState, failed_messages: &[i64]) {
        let end = CycleEnd { failed_messages, ..CycleEnd::new(state) };
        self.held(at(9)).cycles_mut().end_cycle(id, &end).unwrap();
    }

    pub(super) fn plan(&mut self, chat: ChatRef, text: &str) -> i64 {
        let message = outgoing(chat, text);
        self.store.outbox_mut().plan_message(&message, at(0)).unwrap().unwrap()
    }

    /// Claims whatever may be sent and confirms it; the texts in the order in which they left.
    pub(super) fn deliver_all(&mut self, seconds: i64) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(claimed) = self.store.outbox_mut().claim_part(Pick::default(), &me(), at(seconds)).unwrap() {
            self.store
                .outbox_mut()
                .settle_part(&claimed, &PartOutcome::Sent { id: 1, date: None }, at(seconds))
                .unwrap();
            sent.push(claimed.plain);
        }
        sent
    }
}

/// A new store: at this path, or in a database of its own, by which of the two modules this is.
#[cfg(feature = "postgres")]
fn open(path: &Path) -> Store {
    let is_shared = module_path!().ends_with("on_postgres");
    match is_shared.then(server::database) {
        Some(Some(address)) => Store::open_shared_database(&address).unwrap(),
        Some(None) => {
            eprintln!("NOT RUN on PostgreSQL, which isn't installed here: run on SQLite once more");
            Store::open(path).unwrap()
        }
        None => Store::open(path).unwrap(),
    }
}

#[cfg(not(feature = "postgres"))]
fn open(path: &Path) -> Store {
    Store::open(path).unwrap()
}

/// So many seconds after an agreed moment.
pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    parse_time("2026-11-21T14:00:00Z").unwrap() + TimeDelta::seconds(seconds)
}

pub(super) fn me() -> Identity {
    Identity::current()
}

/// A process that is over: another one has its number now.
pub(super) fn dead() -> Identity {
    Identity { started: "an earlier time".to_owned(), ..me() }
}

pub(super) fn cycle(id: &str) -> NewCycle {
    NewCycle {
        id: id.to_owned(),
        trigger: "say".to_owned(),
        reasons: vec!["1 message from the console".to_owned()],
        chat: Some(ChatRef::from_telegram(7)),
        thread_id: None,
        model: "offline".to_owned(),
        system: r#"[{"type":"text","text":"be kind"}]"#.to_owned(),
        tools: "[]".to_owned(),
        work: None,
    }
}

pub(super) fn outgoing(chat: ChatRef, text: &str) -> NewOutgoing {
    NewOutgoing { chat, text: text.to_owned(), kind: OutgoingKind::Reply, ..NewOutgoing::default() }
}
