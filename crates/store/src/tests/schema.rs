//! What is SQLite's alone: its file, its log. Databases from before are in `convert.rs`.

use std::os::unix::fs::PermissionsExt as _;

use reveille_base::{clock::FixedClock, types::ChatRef};

use super::{
    tests::{World, at, me},
    *,
};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_database_and_its_log_are_readable_by_their_owner_alone() {
    let world = World::new();
    assert_eq!(mode(world.store.path()), 0o600);
    assert_eq!(mode(&world.store.path().with_extension("db-wal")), 0o600);
    assert_eq!(world.store.path(), world.store.path());
}

#[test]
fn it_syncs_each_commit_and_bounds_its_log() {
    let world = World::new();
    let store = Store::open(world.store.path()).unwrap();
    let pragma = |name: &str| {
        store.conn.as_sqlite().unwrap().pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(pragma("synchronous"), 2, "FULL");
    assert_eq!(pragma("fullfsync"), 1);
    assert_eq!(pragma("foreign_keys"), 1);
    assert_eq!(pragma("journal_size_limit"), WAL_LIMIT_BYTES);
    assert_eq!(world.value::<String>("PRAGMA journal_mode"), "wal");
}

#[test]
fn after_a_write_that_may_be_lost_commits_are_synced_again() {
    let world = World::new();
    let mut store = Store::open(world.store.path()).unwrap();
    let synchronous = |store: &Store| -> i64 {
        store.conn.as_sqlite().unwrap().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    };
    let fence = store.take_lease(&me(), at(1)).unwrap();
    assert_eq!(synchronous(&store), 2);
    FencedStore::new(&mut store, fence, &FixedClock(at(1))).maintenance_mut().upkeep_ok(UpkeepKind::Push).unwrap();
    let refused =
        FencedStore::new(&mut store, world.fence, &FixedClock(at(2))).maintenance_mut().upkeep_ok(UpkeepKind::Push);
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })), "{refused:?}");
    assert_eq!(synchronous(&store), 2);
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let mut world = World::new();
    world.store.inbox_mut().queue_message(ChatRef::TERMINAL, "keep me", at(0)).unwrap();
    let again = Store::open(world.store.path()).unwrap();
    assert_eq!(again.inbox().list_queued_messages().unwrap()[0].text, "keep me");
    assert_eq!(again.check_integrity().unwrap(), Ok(()));
    let looking = Store::open_read_only(world.store.path()).unwrap().unwrap();
    assert_eq!(looking.inbox().list_queued_messages().unwrap().len(), 1);
    assert!(looking.conn.execute("DELETE FROM incoming_messages", []).is_err());
}

#[test]
fn looking_makes_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.db");
    assert!(Store::open_read_only(&path).unwrap().is_none());
    assert!(!path.exists());
}

#[test]
fn a_database_that_is_being_created_is_none_yet() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.db");
    std::fs::write(&path, "").unwrap();
    assert!(Store::open_read_only(&path).unwrap().is_none());
    let creating = rusqlite::Connection::open(&path).unwrap();
    creating.pragma_update(None, "journal_mode", "WAL").unwrap();
    creating.execute_batch("BEGIN IMMEDIATE; CREATE TABLE incoming_messages (id INTEGER PRIMARY KEY)").unwrap();
    assert!(Store::open_read_only(&path).unwrap().is_none());
    drop(creating);
    Store::open(&path).unwrap();
    assert!(Store::open_read_only(&path).unwrap().is_some());
}

#[test]
fn what_a_newer_program_has_added_is_in_nobodys_way() {
    let world = World::new();
    world.by_hand(
        "PRAGMA user_version = 99; CREATE TABLE newer (id INTEGER PRIMARY KEY);
         ALTER TABLE incoming_messages ADD COLUMN newer TEXT",
    );
    drop(Store::open(world.store.path()).unwrap());
    world.by_hand("INSERT INTO incoming_messages (chat_id, message_text) VALUES (7, 'hello')");
    assert_eq!(Store::open(world.store.path()).unwrap().inbox().list_queued_messages().unwrap().len(), 1);
    assert_eq!(world.value::<i64>("PRAGMA user_version"), 99);
}

#[test]
fn a_newer_schema_that_changed_what_was_there_is_refused_and_left_alone() {
    let world = World::new();
    world.by_hand("PRAGMA user_version = 99; UPDATE readable_from SET version = 98");
    let refused = Store::open(world.store.path()).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("a newer reveille has used it"));
    assert_eq!(world.value::<i64>("PRAGMA user_version"), 99);
}

#[test]
fn an_empty_file_is_a_database_to_be_made_and_a_damaged_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.db");
    std::fs::write(&path, "").unwrap();
    Store::open(&path).unwrap().inbox_mut().queue_message(ChatRef::TERMINAL, "hello", at(0)).unwrap();
    let damaged = dir.path().join("damaged.db");
    std::fs::write(&damaged, "this is a letter, not a database, and long enough to be told from one".repeat(20))
        .unwrap();
    let refused = Store::open(&damaged).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
}

#[test]
fn many_can_open_a_new_database_at_once() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("messages.db");
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    Store::open(path)
                        .unwrap()
                        .inbox_mut()
                        .queue_message(ChatRef::from_telegram(number), "me too", at(0))
                        .unwrap();
                });
            }
        });
        assert_eq!(Store::open(&path).unwrap().inbox().list_queued_messages().unwrap().len(), 8);
        assert_eq!(mode(&path), 0o600);
    }
}

/// Nobody can begin a log anew that somebody reads. Once they have gone, it is cut back; meanwhile writing goes on.
#[test]
fn a_reader_that_stays_is_waited_for_now_and_then_and_the_log_is_cut_back_after_it() {
    let mut world = World::new();
    let reader = rusqlite::Connection::open(world.store.path()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM incoming_messages").unwrap();
    let text = "x".repeat(100_000);
    while world.store.log_bytes() <= WAL_BOUND_BYTES {
        world.store.inbox_mut().queue_message(ChatRef::TERMINAL, &text, at(0)).unwrap();
    }
    // Not tried again with each write.
    assert!(world.store.restart_at_bytes > WAL_RESTART_BYTES);
    reader.execute_batch("COMMIT").unwrap();
    for _ in 0..2 {
        world.store.inbox_mut().queue_message(ChatRef::TERMINAL, &text, at(1)).unwrap();
    }
    assert!(world.store.log_bytes() <= WAL_LIMIT_BYTES as u64, "{}", world.store.log_bytes());
    assert_eq!(world.store.check_integrity().unwrap(), Ok(()));
}
