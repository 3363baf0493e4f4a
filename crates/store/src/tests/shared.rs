//! Tests of what only a database with several users can show. Without PostgreSQL they are skipped, with a message.

use reveille_base::types::AssistantName;
use reveille_postgres::{DatabaseAccess, DatabaseAddress, Postgres};

use super::*;
use crate::sql::SqlConnection;

fn address() -> Option<DatabaseAddress> {
    // This file is in two modules; the one for SQLite skips these tests.
    let address = module_path!().contains("on_postgres").then(server::database).flatten();
    if address.is_none() && module_path!().contains("on_postgres") {
        eprintln!("NOT RUN: PostgreSQL isn't installed here");
    }
    address
}

#[test]
fn many_can_open_a_new_database_at_once() {
    let Some(address) = address() else { return };
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (address, barrier) = (&address, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let mut store = Store::open_shared_database(address).unwrap();
                store.inbox_mut().queue_message(ChatRef::from_telegram(number), "me too", at(0)).unwrap();
            });
        }
    });
    assert_eq!(Store::open_shared_database(&address).unwrap().inbox().list_queued_messages().unwrap().len(), 8);
}

/// The same test for files is in `convert.rs`.
#[test]
fn an_older_database_gets_what_it_lacks_and_keeps_its_rows() {
    let Some(address) = address() else { return };
    let mut store = Store::open_shared_database(&address).unwrap();
    let shape = |store: &Store| -> Vec<String> {
        let mut statement = store
            .conn
            .prepare(
                "SELECT concat_ws(' ', table_name, column_name, data_type, collation_name, is_nullable, column_default, is_identity)
                 FROM information_schema.columns WHERE table_schema = current_schema()
                 UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
            )
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(|row| row.unwrap()).collect()
    };
    let new = shape(&store);
    store.inbox_mut().queue_message(ChatRef::TERMINAL, "keep me", at(0)).unwrap();
    let fence = store.take_lease(&me(), at(0)).unwrap();
    FencedStore::new(&mut store, fence, &FixedClock(at(1)))
        .cycles_mut()
        .begin_cycle(&cycle("c1"), &[Entry::Asked], &[])
        .unwrap();
    store
        .conn
        .execute_batch(
            "UPDATE cycles SET state = 'failed', has_copies = 1; DROP TABLE undo_line; DROP TABLE proposals;
             DROP INDEX approvals_rules; ALTER TABLE approvals DROP COLUMN named;
             ALTER TABLE ledger DROP COLUMN reserved; UPDATE schema_version SET version = 36",
        )
        .unwrap();
    assert_ne!(shape(&store), new);
    let schema = Store::open_shared_read_only(&address).unwrap().unwrap().read_schema().unwrap();
    assert_eq!((schema.found, schema.known), (36, crate::schema::VERSION));
    let store = Store::open_shared_database(&address).unwrap();
    assert_eq!(shape(&store), new);
    assert_eq!(store.read_schema().unwrap().found, crate::schema::VERSION);
    assert_eq!(store.inbox().list_queued_messages().unwrap()[0].text, "keep me");
    let line: String = store.conn.query_row("SELECT cycle_id FROM undo_line", [], |row| row.get(0)).unwrap();
    assert_eq!(line, "c1");
}

#[test]
fn opening_read_only_neither_creates_nor_changes_a_store() {
    let Some(address) = address() else { return };
    assert!(Store::open_shared_read_only(&address).unwrap().is_none(), "the database holds no store yet");
    Store::open_shared_database(&address)
        .unwrap()
        .inbox_mut()
        .queue_message(ChatRef::TERMINAL, "keep me", at(0))
        .unwrap();
    let mut looking = Store::open_shared_read_only(&address).unwrap().unwrap();
    assert_eq!(looking.inbox().list_queued_messages().unwrap()[0].text, "keep me");
    let refused = looking.inbox_mut().queue_message(ChatRef::TERMINAL, "more", at(0)).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

/// A worker skips an assistant that another worker is claiming: it takes the next one, without waiting.
#[test]
fn workers_of_a_fleet_never_wait_for_each_others_claims() {
    if !module_path!().contains("on_postgres") {
        return;
    }
    let Some(address) = server::server_database() else { return eprintln!("NOT RUN: PostgreSQL isn't installed here") };
    let mut registry = FleetRegistry::open(&StorePlace::Shared(Box::new(address.clone()))).unwrap();
    let [ana, ben] = ["ana", "ben"].map(|name| name.parse::<AssistantName>().unwrap());
    for name in [&ana, &ben] {
        registry.add(name, at(0)).unwrap();
    }
    let list = address.with_schema("reveille_fleet");
    let other = SqlConnection::from(Postgres::new(&list, DatabaseAccess::ReadWrite));
    let taking = other.begin_rows().unwrap();
    taking.execute("UPDATE assistants SET claimed_by = 'other' WHERE name = ?1", [ana.as_str()]).unwrap();
    let mut claim = || registry.claim_turn("w", at(1), at(60)).unwrap().map(|claim| claim.name);
    assert_eq!((claim(), claim()), (Some(ben), None));
    drop(taking);
    assert_eq!(claim(), Some(ana));
}

/// A waiting worker is notified of due assistants. After its connection was cut, it is notified again from its next call on.
#[test]
fn workers_of_a_fleet_are_notified_of_due_assistants() {
    const FOR_EVER: Duration = Duration::from_secs(3600);
    if !module_path!().contains("on_postgres") {
        return;
    }
    let Some(address) = server::server_database() else { return eprintln!("NOT RUN: PostgreSQL isn't installed here") };
    let open = || FleetRegistry::open(&StorePlace::Shared(Box::new(address.clone()))).unwrap();
    let (mut receiver, mut worker) = (open(), open());
    let ana: AssistantName = "ana".parse().unwrap();
    receiver.add(&ana, at(0)).unwrap();
    assert_eq!(worker.wait_for_change(FOR_EVER), Some(true));
    let turn = worker.claim_turn("w", at(1), at(60)).unwrap().unwrap();
    receiver.wake_assistant(&ana, at(2)).unwrap();
    receiver.wake_assistant(&ana, at(3)).unwrap();
    assert_eq!(worker.wait_for_change(FOR_EVER), Some(true));
    // The two calls may have arrived as two notices.
    while worker.wait_for_change(Duration::ZERO) == Some(true) {}
    worker.give_back("w", &turn, &TurnEnd { due_at: at(9), trouble: None }, at(4)).unwrap();
    assert_eq!(receiver.wait_for_change(FOR_EVER), Some(true));

    let list = address.with_schema("reveille_fleet");
    let other = SqlConnection::from(Postgres::new(&list, DatabaseAccess::ReadWrite));
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()";
    assert_eq!(other.query_row(end, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    while worker.wait_for_change(Duration::ZERO) == Some(true) {}
    assert_eq!(worker.find_next_due_time(at(3)).unwrap(), Some(at(4)));
    receiver.wake_assistant(&ana, at(5)).unwrap();
    assert_eq!(worker.wait_for_change(FOR_EVER), Some(true));
}

/// Each part goes to one of the senders that compete for it.
#[test]
fn several_senders_take_each_part_once() {
    const MESSAGES: i64 = 40;
    let Some(address) = address() else { return };
    let mut store = Store::open_shared_database(&address).unwrap();
    for number in 0..MESSAGES {
        store.outbox_mut().plan_message(&outgoing(ChatRef::from_telegram(number + 1), "hello"), at(0)).unwrap();
    }
    let taken = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open_shared_database(&address).unwrap();
                while let Some(claimed) = store.outbox_mut().claim_part(Pick::default(), &me(), at(1)).unwrap() {
                    taken.lock().unwrap().push(claimed.outgoing_id);
                    store.outbox_mut().settle_part(&claimed, &PartOutcome::Sent { id: 1, date: None }, at(1)).unwrap();
                }
            });
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    assert_eq!(taken, (1..=MESSAGES).collect::<Vec<_>>());
}

/// Each writer sees what earlier writers have written, so no count is lost.
#[test]
fn writes_of_several_connections_follow_each_other() {
    const EACH: usize = 25;
    let Some(address) = address() else { return };
    let mut store = Store::open_shared_database(&address).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open_shared_database(&address).unwrap();
                for _ in 0..EACH {
                    store
                        .write(|tx| {
                            let n: i64 = tx.query_row("SELECT count(*) FROM handled", [], |row| row.get(0))?;
                            tx.execute("INSERT INTO handled (key, at) VALUES (?1, '')", [n.to_string()])?;
                            Ok(())
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(store.maintenance().handled_keys("").unwrap().len(), 4 * EACH);
    let fence = store.take_lease(&me(), at(0)).unwrap();
    let mut other = Store::open_shared_database(&address).unwrap();
    assert!(matches!(other.take_lease(&dead(), at(1)), Err(StoreError::Busy)), "a wake is at work");
    // As if the connection had been lost and another wake had begun meanwhile.
    store.conn.execute_batch("SELECT pg_advisory_unlock_all()").unwrap();
    other.take_lease(&dead(), at(1)).unwrap();
    let lost = FencedStore::new(&mut store, fence, &FixedClock(at(2)))
        .maintenance_mut()
        .set_handled_value("k", "v")
        .unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }), "{lost}");
}

#[test]
fn a_lost_connection_is_reopened_and_its_transaction_rolled_back() {
    let Some(address) = address() else { return };
    let mut store = Store::open_shared_database(&address).unwrap();
    store.inbox_mut().queue_message(ChatRef::TERMINAL, "before", at(0)).unwrap();
    let own: i64 = store.conn.query_row("SELECT pg_backend_pid()", [], |row| row.get(0)).unwrap();
    let other = Store::open_shared_database(&address).unwrap();
    let end = || {
        other
            .conn
            .query_row("SELECT pg_terminate_backend(CAST(?1 AS INT))", [own], |row| row.get::<_, bool>(0))
            .unwrap()
    };
    let cut_off = store.write(|tx| {
        tx.execute("INSERT INTO handled (key, at) VALUES ('lost', '')", [])?;
        assert!(end());
        tx.execute("INSERT INTO handled (key, at) VALUES ('never', '')", [])?;
        Ok(())
    });
    assert!(matches!(cut_off, Err(StoreError::Server(_))), "{cut_off:?}");
    store.inbox_mut().queue_message(ChatRef::TERMINAL, "after", at(1)).unwrap();
    assert_eq!(store.inbox().list_queued_messages().unwrap().len(), 2);
    assert!(store.maintenance().handled_keys("").unwrap().is_empty());
}

#[test]
fn an_unreachable_address_is_reported_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().display().to_string().replace('/', "%2F");
    let address = DatabaseAddress::parse(&format!("postgres://me@{socket}/mine"), Some("secret-word")).unwrap();
    let error = Store::open_shared_database(&address).map(drop).unwrap_err().to_string();
    assert!(error.contains("PostgreSQL") && !error.contains("secret-word"), "{error}");
    assert_eq!(format!("{address:?}"), format!("postgres://{}/mine", dir.path().display()));
    for wrong in ["postgres://me:secret-word@host:no/port", "postgres://me:secret-word@host/mine"] {
        assert!(!DatabaseAddress::parse(wrong, None).unwrap_err().contains("secret"));
    }
}

/// Nobody knows whether a sender on another machine is alive, so its part stays with it for as long as a send can take.
#[test]
fn a_sender_on_another_machine_is_given_its_time() {
    let Some(address) = address() else { return };
    let mut store = Store::open_shared_database(&address).unwrap();
    store.outbox_mut().plan_message(&outgoing(ChatRef::from_telegram(7), "hello"), at(0)).unwrap();
    let elsewhere = Identity { boot_id: "another machine's".to_owned(), ..me() };
    store.outbox_mut().claim_part(Pick::default(), &elsewhere, at(0)).unwrap().unwrap();
    let fence = store.take_lease(&me(), at(1)).unwrap();
    assert!(!store.outbox().has_doubtful(at(60)).unwrap());
    assert_eq!(FencedStore::new(&mut store, fence, &FixedClock(at(60))).outbox_mut().recover_outbox().unwrap(), 0);
    assert_eq!(FencedStore::new(&mut store, fence, &FixedClock(at(301))).outbox_mut().recover_outbox().unwrap(), 1);
}

/// Everything written before the move is read again after the move there and back, and ids continue.
#[test]
fn a_store_moves_into_a_shared_database_and_back() {
    let Some(address) = address() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut here = Store::open(&dir.path().join("here.db")).unwrap();
    let fence = here.take_lease(&me(), at(0)).unwrap();
    for text in ["one", "two", "three"] {
        here.inbox_mut().queue_message(ChatRef::from_telegram(7), text, at(0)).unwrap();
    }
    here.conn.execute("DELETE FROM incoming_messages WHERE message_text = 'three'", []).unwrap();
    FencedStore::new(&mut here, fence, &FixedClock(at(1)))
        .cycles_mut()
        .begin_cycle(&cycle("c1"), &[Entry::Asked], &[])
        .unwrap();
    here.outbox_mut().plan_message(&outgoing(ChatRef::from_telegram(7), "hello, \"ünï\"\n\t"), at(1)).unwrap();
    here.ledger_mut().reserve_apart("m", 0.1 + 0.2, &[], at(1)).unwrap().unwrap();
    let mut there = Store::open_shared_database(&address).unwrap();
    let count = here.copy_all_rows(&mut there).unwrap();
    assert!(count >= 8, "{count}");
    let again = here.copy_all_rows(&mut there).unwrap_err();
    assert!(again.to_string().contains("isn't empty"), "{again}");
    assert_eq!(
        there.inbox_mut().queue_message(ChatRef::from_telegram(7), "four", at(2)).unwrap(),
        4,
        "no id is used twice"
    );
    let back = dir.path().join("back.db");
    there.save_copy(&back).unwrap();
    let mut back = Store::open(&back).unwrap();
    let texts =
        |store: &Store| store.inbox().list_queued_messages().unwrap().into_iter().map(|it| it.text).collect::<Vec<_>>();
    assert_eq!(texts(&back), ["one", "two", "four"]);
    assert_eq!(back.inbox_mut().queue_message(ChatRef::from_telegram(7), "five", at(3)).unwrap(), 5);
    assert_eq!(back.journal().read_journal("c1").unwrap(), [Entry::Asked]);
    assert_eq!(back.ledger().reserved_since(at(0)).unwrap(), 0.1 + 0.2);
    let claimed = back.outbox_mut().claim_part(Pick::default(), &me(), at(3)).unwrap().unwrap();
    assert_eq!(claimed.plain, "hello, \"ünï\"");
}
