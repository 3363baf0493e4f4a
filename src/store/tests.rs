//! The store on real SQLite files. Histories with crashes between any two steps are in the campaign (`tests/campaign/histories.rs`).

mod attachments;
mod door;
mod inbox;
mod jobs;
mod joined;
mod journal;
mod lease;
mod ledger;
mod moved;
mod outbox;
mod provenance;
mod recordings;
mod reminders;
mod retention;
mod schema;
mod undelivered;

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::{
    clock::{FixedClock, parse_time},
    process::Identity,
    store::{CycleEnd, CycleState, NewCycle, NewOutgoing, OutgoingKind},
    types::ChatRef,
};

/// A store in a directory of its own.
pub(super) struct World {
    pub(super) store: Store,
    pub(super) fence: Fence,
    clock: FixedClock,
    dir: tempfile::TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("messages.db")).unwrap();
        // Power is not cut in these tests, and syncing would be most of their time.
        store.conn.sqlite().unwrap().pragma_update(None, "synchronous", "OFF").unwrap();
        let fence = store.take_lease(&me(), at(0)).unwrap();
        Self { store, fence, clock: FixedClock(at(0)), dir }
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

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("messages.db")
    }

    /// Runs a statement as a person with a SQLite shell would.
    pub(super) fn by_hand(&self, sql: &str) {
        self.store.conn.execute_batch(sql).unwrap();
    }

    pub(super) fn value<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.store.conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(super) fn begin(&mut self, id: &str) {
        self.held(at(0)).begin_cycle(&cycle(id), &[], &[]).unwrap();
    }

    pub(super) fn end(&mut self, id: &str, state: CycleState, failed_messages: &[i64]) {
        let end = CycleEnd { failed_messages, ..CycleEnd::new(state) };
        self.held(at(9)).end_cycle(id, &end).unwrap();
    }

    pub(super) fn plan(&mut self, chat: ChatRef, text: &str) -> i64 {
        let message = outgoing(chat, text);
        self.store.plan_message(&message, at(0)).unwrap().unwrap()
    }

    /// Claims whatever may be sent and confirms it; the texts in the order in which they left.
    pub(super) fn deliver_all(&mut self, seconds: i64) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(claimed) = self.store.claim_part(Pick::default(), &me(), at(seconds)).unwrap() {
            self.store.settle_part(&claimed, &PartOutcome::Sent(1), at(seconds)).unwrap();
            sent.push(claimed.plain);
        }
        sent
    }
}

/// So many seconds after an agreed moment.
pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    parse_time("2026-11-21T14:00:00Z").unwrap() + TimeDelta::seconds(seconds)
}

pub(super) fn me() -> Identity {
    Identity::current()
}

/// A process of a boot that is over.
pub(super) fn dead() -> Identity {
    Identity { boot_id: "an earlier boot".to_owned(), ..me() }
}

pub(super) fn cycle(id: &str) -> NewCycle {
    NewCycle {
        id: id.to_owned(),
        trigger: "say".to_owned(),
        reasons: vec!["1 message from the console".to_owned()],
        chat: Some(ChatRef::telegram(7)),
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
