//! What only a database with several at work can show. Without PostgreSQL these are not run, which is said.

use super::*;
use crate::store::DatabaseAddress;

fn address() -> Option<DatabaseAddress> {
    // Once is enough: the other module is SQLite's.
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
                let mut store = Store::open_shared(address).unwrap();
                store.say(ChatRef::telegram(number), "me too", at(0)).unwrap();
            });
        }
    });
    assert_eq!(Store::open_shared(&address).unwrap().queued().unwrap().len(), 8);
}

#[test]
fn what_is_only_looked_at_is_neither_made_nor_changed() {
    let Some(address) = address() else { return };
    assert!(Store::open_shared_read_only(&address).unwrap().is_none(), "there is nothing of ours in it");
    Store::open_shared(&address).unwrap().say(ChatRef::TERMINAL, "keep me", at(0)).unwrap();
    let mut looking = Store::open_shared_read_only(&address).unwrap().unwrap();
    assert_eq!(looking.queued().unwrap()[0].text, "keep me");
    let refused = looking.say(ChatRef::TERMINAL, "more", at(0)).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

/// Of parts that several senders want, each goes to one of them.
#[test]
fn several_senders_take_each_part_once() {
    const MESSAGES: i64 = 40;
    let Some(address) = address() else { return };
    let mut store = Store::open_shared(&address).unwrap();
    for number in 0..MESSAGES {
        store.plan_message(&outgoing(ChatRef::telegram(number + 1), "hello"), at(0)).unwrap();
    }
    let taken = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open_shared(&address).unwrap();
                while let Some(claimed) = store.claim_part(Pick::default(), &me(), at(1)).unwrap() {
                    taken.lock().unwrap().push(claimed.outgoing_id);
                    store.settle_part(&claimed, &PartOutcome::Sent(1), at(1)).unwrap();
                }
            });
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    assert_eq!(taken, (1..=MESSAGES).collect::<Vec<_>>());
}

/// Each sees what the others have written when its turn comes: nothing that was counted is lost.
#[test]
fn writes_of_several_follow_each_other() {
    const EACH: usize = 25;
    let Some(address) = address() else { return };
    let mut store = Store::open_shared(&address).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open_shared(&address).unwrap();
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
    assert_eq!(store.handled_keys("").unwrap().len(), 4 * EACH);
    let fence = store.take_lease(&me(), at(0)).unwrap();
    let mut other = Store::open_shared(&address).unwrap();
    other.take_lease(&dead(), at(1)).unwrap();
    let lost = FencedStore::new(&mut store, fence, &FixedClock(at(2))).set_handled("k", "v").unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { .. }), "{lost}");
}

#[test]
fn a_connection_that_was_lost_is_made_anew_and_no_transaction_outlives_it() {
    let Some(address) = address() else { return };
    let mut store = Store::open_shared(&address).unwrap();
    store.say(ChatRef::TERMINAL, "before", at(0)).unwrap();
    let own: i64 = store.conn.query_row("SELECT pg_backend_pid()", [], |row| row.get(0)).unwrap();
    let other = Store::open_shared(&address).unwrap();
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
    store.say(ChatRef::TERMINAL, "after", at(1)).unwrap();
    assert_eq!(store.queued().unwrap().len(), 2);
    assert!(store.handled_keys("").unwrap().is_empty());
}

#[test]
fn an_address_that_nobody_answers_at_is_told_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().display().to_string().replace('/', "%2F");
    let address = DatabaseAddress::parse(&format!("postgres://me:secret-word@{socket}/mine"), None).unwrap();
    let error = Store::open_shared(&address).map(drop).unwrap_err().to_string();
    assert!(error.contains("PostgreSQL") && !error.contains("secret-word"), "{error}");
    assert_eq!(format!("{address:?}"), format!("postgres://{}/mine", dir.path().display()));
    assert!(!DatabaseAddress::parse("postgres://me:secret-word@host:no/port", None).unwrap_err().contains("secret"));
}
