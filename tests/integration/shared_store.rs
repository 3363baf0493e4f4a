//! The programs over a PostgreSQL that machines share: the real bot, wakes and health on a real server, and nothing of theirs in a file.

use std::time::Duration;

use reveille::{
    clock::parse_time,
    process::Identity,
    store::{DatabaseAddress, Store},
};

use crate::support::{
    env::{CHAT, TestEnv, eventually},
    postgres,
    telegram::FakeTelegram,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A world whose store is a database of its own, and that database's name; none, said aloud, where there is no PostgreSQL.
fn shared(telegram: &FakeTelegram) -> Option<(TestEnv, String)> {
    let Some(url) = postgres::new_database() else {
        eprintln!("NOT RUN: PostgreSQL isn't installed here");
        return None;
    };
    let mut env = TestEnv::with_telegram(telegram);
    env.set("DATABASE_URL", &url);
    let (_, name) = url.split_once("search_path%3D").unwrap();
    Some((env, name.to_owned()))
}

fn value(sql: &str, name: &str) -> String {
    postgres::ask(sql, name).unwrap()
}

#[test]
fn what_the_bot_stores_a_wake_answers_and_nothing_stands_in_a_file() {
    let telegram = FakeTelegram::start();
    let Some((env, name)) = shared(&telegram) else { return };
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")]);
    telegram.push_text(CHAT, CHAT, "remind me to call Ben tomorrow at 9");
    let sent = telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.contains("Ben"), "{sent:#?}");
    eventually("the message is answered, and the answer is sent", || {
        let sql = "SELECT count(*) FROM incoming_messages JOIN outgoing_messages o ON o.sent_at IS NOT NULL WHERE processed = 1";
        value(sql, &name) != "0" && value("SELECT is_locked FROM processing_lock", &name) == "0"
    });
    bot.signal(rustix::process::Signal::TERM);
    bot.end();
    assert_eq!(value("SELECT text FROM reminders", &name), "call Ben");
    assert!(!env.workspace().join("messages.db").exists());
    assert!(env.memory("claude.md").len() > 100, "the memory was made");
    // The same by a person's commands.
    let reminders = env.wake(&["queue", "list"]).ok();
    assert_eq!(reminders.stdout, "");
    let health = env.health(&["check", "--json"]).json();
    let database = health["checks"].as_array().unwrap().iter().find(|check| check["id"] == "database").unwrap();
    assert_eq!(database["status"], "ok", "{database}");
}

#[test]
fn two_machines_work_on_one_database_and_one_wake_at_a_time_does() {
    let telegram = FakeTelegram::start();
    let Some((here, name)) = shared(&telegram) else { return };
    // Another workspace, as another machine has: its lock file is another one.
    let mut there = TestEnv::with_telegram(&telegram);
    there.set("DATABASE_URL", here.get("DATABASE_URL"));
    here.once();
    let address = DatabaseAddress::parse(here.get("DATABASE_URL"), None).unwrap();
    let mut elsewhere = Store::open_shared(&address).unwrap();
    elsewhere.take_lease(&Identity::current(), parse_time(here.now()).unwrap()).unwrap();
    let sql = "INSERT INTO incoming_messages (chat_id, message_text) VALUES (0, 'remind me to call Ben tomorrow at 9')";
    postgres::ask(sql, &name);
    assert_eq!(there.once()["outcome"], "locked");
    assert_eq!(value("SELECT count(*) FROM incoming_messages WHERE processed = 1", &name), "0");
    drop(elsewhere);
    eventually("the other wake's connection is gone", || {
        there.once();
        value("SELECT count(*) FROM incoming_messages WHERE processed = 1", &name) == "1"
    });
    assert_eq!(value("SELECT text FROM reminders", &name), "call Ben");
}

#[test]
fn a_database_that_cannot_be_reached_is_said_and_the_password_is_not() {
    let mut env = TestEnv::new();
    let nowhere = env.path("nowhere").display().to_string().replace('/', "%2F");
    env.set("DATABASE_URL", &format!("postgres://me@{nowhere}/mine")).set("DATABASE_PASSWORD", "s3cret-word");
    let ran = env.wake(&["--once"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("PostgreSQL") && !ran.stderr.contains("s3cret-word"), "{ran:#?}");
    env.set("DATABASE_URL", "postgres://me:s3cret-word@example.org/mine");
    let ran = env.wake(&["--once"]);
    assert!(ran.stderr.contains("DATABASE_PASSWORD_FILE"), "{ran:#?}");
}

#[test]
fn the_store_moves_into_a_shared_database_and_back() {
    let telegram = FakeTelegram::start();
    let Some((mut env, name)) = shared(&telegram) else { return };
    let url = env.get("DATABASE_URL").to_owned();
    env.unset("DATABASE_URL");
    env.receive(CHAT, "remind me to call Ben tomorrow at 9");
    env.once();
    env.receive(CHAT, "hello");
    let moved = env.wake(&["store", "move", "--to", &url]).ok();
    assert!(moved.stdout.contains("rows were moved") && !env.workspace().join("messages.db").exists(), "{moved:#?}");
    // Settings that don't know of it yet make no new one.
    let lost = env.wake(&["--once"]);
    assert!(lost.code != 0 && lost.stderr.contains("gone"), "{lost:#?}");
    env.set("DATABASE_URL", &url);
    env.once();
    assert_eq!(value("SELECT count(*) FROM incoming_messages WHERE processed = 1", &name), "2");
    let twice = env.wake(&["store", "move", "--to", &url]);
    assert!(twice.code != 0 && twice.stderr.contains("shared already"), "{twice:#?}");
    env.wake(&["store", "move", "--to", "file"]).ok();
    env.unset("DATABASE_URL");
    assert_eq!(env.query::<i64>("SELECT count(*) FROM incoming_messages WHERE processed = 1"), 2);
    assert_eq!(env.query::<String>("SELECT text FROM reminders"), "call Ben");
    env.receive(CHAT, "hello again");
    env.once();
    assert_eq!(env.query::<i64>("SELECT count(*) FROM incoming_messages WHERE processed = 1"), 3);
}
