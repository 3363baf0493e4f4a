//! The programs over a PostgreSQL that machines share: the real bot, wakes and health on a real server, and nothing of theirs in a file.

use std::time::Duration;

use serde_json::json;

use reveille_base::{clock::parse_time, process::Identity};
use reveille_store::{DatabaseAddress, Store};

use crate::support::{
    claude::{Block, FakeClaude, Reply},
    env::{CHAT, TestEnv, eventually},
    http::free_port,
    postgres::{self, OwnServer},
    telegram::FakeTelegram,
    tls,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A world whose store is a database of its own; none, said aloud, where there is no PostgreSQL.
fn shared(telegram: &FakeTelegram) -> Option<TestEnv> {
    let Some(url) = postgres::new_database() else {
        eprintln!("NOT RUN: PostgreSQL isn't installed here");
        return None;
    };
    let mut env = TestEnv::with_telegram(telegram);
    env.set("DATABASE_URL", &url);
    Some(env)
}

/// A role and a database of its own, as an administrator makes them.
fn make_role(server: &OwnServer) {
    server.ask("CREATE ROLE me LOGIN PASSWORD 's3cret-word'; CREATE SCHEMA mine AUTHORIZATION me");
}

/// The one message in that role's database, as an administrator reads it.
fn message_of_role(server: &OwnServer) -> String {
    server.ask("SELECT message_text FROM mine.incoming_messages")
}

#[test]
fn what_the_bot_stores_a_wake_answers_and_nothing_stands_in_a_file() {
    let telegram = FakeTelegram::start();
    let Some(env) = shared(&telegram) else { return };
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")]);
    telegram.push_text(CHAT, CHAT, "remind me to call Ben tomorrow at 9");
    let sent = telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.contains("Ben"), "{sent:#?}");
    eventually("the message is answered, and the answer is sent", || {
        env.count_processed() == 1 && env.outbox().iter().any(|message| message.sent_at.is_some()) && !env.is_locked()
    });
    bot.signal(rustix::process::Signal::TERM);
    bot.end();
    assert_eq!(env.reminders()[0].text, "call Ben");
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
    let Some(here) = shared(&telegram) else { return };
    // Another workspace, as another machine has: its lock file is another one.
    let mut there = TestEnv::with_telegram(&telegram);
    there.set("DATABASE_URL", here.get("DATABASE_URL"));
    here.once();
    let address = DatabaseAddress::parse(here.get("DATABASE_URL"), None).unwrap();
    let mut elsewhere = Store::open_shared_database(&address).unwrap();
    elsewhere.take_lease(&Identity::current(), parse_time(here.now()).unwrap()).unwrap();
    // The server's clock isn't the test's: by night, "tomorrow" would be asked about.
    here.queue_many(0, "remind me to call Ben tomorrow at 9", here.now(), 1);
    assert_eq!(there.once()["outcome"], "locked");
    assert_eq!(there.count_processed(), 0);
    drop(elsewhere);
    eventually("the other wake's connection is gone", || {
        there.once();
        there.count_processed() == 1
    });
    assert_eq!(here.reminders()[0].text, "call Ben");
}

#[test]
fn a_file_that_the_bot_fetched_is_seen_by_a_wake_on_another_machine() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let Some(mut here) = shared(&telegram) else { return };
    let mut there = TestEnv::with_telegram(&telegram);
    let media = here.path("media");
    std::fs::create_dir(&media).unwrap();
    let (media_dir, url) = (media.display().to_string(), here.get("DATABASE_URL").to_owned());
    there.think_with(&claude).set("DATABASE_URL", &url).set("MEDIA_DIR", &media_dir);
    here.set("MEDIA_DIR", &media_dir).once();
    // It only receives: the other machine does the work.
    let nobody = here.path("nobody");
    std::fs::write(&nobody, "#!/bin/sh\n").unwrap();
    here.run("chmod", &["755", &nobody.display().to_string()]).ok();
    let bot = here.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", &nobody.display().to_string()]);
    telegram.keep_file("doc", b"Lentils, salt and an onion");
    let document =
        json!({"file_id": "doc", "file_unique_id": "u", "file_name": "shopping.txt", "mime_type": "text/plain"});
    telegram.push_message(CHAT, &json!({"caption": "what is on it?", "document": document}));
    eventually("the file is kept", || here.attachments_in("kept").len() == 1);
    assert!(media.join("files/1.txt").exists() && !here.workspace().join("files").exists());
    claude.expect(Reply::tools(vec![Block::tool("t1", "read_attachment", json!({"id": 1}))]));
    claude.expect(Reply::text("Lentils."));
    there.once();
    let requests = claude.requests();
    assert!(requests[1].json.to_string().contains("Lentils, salt and an onion"), "{:#}", requests[1].json);
    // A second file: restoring could begin with it, and be refused for the first.
    telegram.keep_file("doc2", b"Bread");
    let document =
        json!({"file_id": "doc2", "file_unique_id": "v", "file_name": "more.txt", "mime_type": "text/plain"});
    telegram.push_message(CHAT, &json!({"caption": "and this", "document": document}));
    eventually("the second is kept", || here.attachments_in("kept").len() == 2);
    bot.signal(rustix::process::Signal::TERM);
    bot.end();
    // A backup takes it along, and restored elsewhere it stands where that machine's settings say.
    let backup = here.path("backup");
    there.wake(&["backup", "create", &backup.display().to_string()]).ok();
    let mut fresh = TestEnv::new();
    let elsewhere = fresh.path("elsewhere").display().to_string();
    fresh.set("MEDIA_DIR", &elsewhere);
    // Another file under one of their names is another database's: nothing is restored over it, or beside it.
    std::fs::create_dir_all(fresh.path("elsewhere/files")).unwrap();
    let restore = ["backup", "restore", &backup.display().to_string()];
    for (taken, free) in [("1.txt", "2.txt"), ("2.txt", "1.txt")] {
        let [taken_at, free_at] = [taken, free].map(|name| fresh.path("elsewhere/files").join(name));
        std::fs::write(&taken_at, "another's").unwrap();
        let refused = fresh.wake(&restore);
        refused.assert_tells(taken);
        assert!(refused.code != 0, "{refused:#?}");
        assert!(!fresh.brain().exists() && !free_at.exists(), "{refused:#?}");
        assert_eq!(std::fs::read_to_string(&taken_at).unwrap(), "another's");
        std::fs::remove_file(&taken_at).unwrap();
    }
    fresh.wake(&restore).ok();
    let kept = std::fs::read(fresh.path("elsewhere/files/1.txt")).unwrap();
    assert!(kept == b"Lentils, salt and an onion" && !fresh.workspace().join("files").exists());
    assert!(fresh.path("elsewhere/files/2.txt").exists());
}

#[test]
fn a_database_that_cannot_be_reached_is_said_and_the_password_is_not() {
    let mut env = TestEnv::new();
    let nowhere = env.path("nowhere").display().to_string().replace('/', "%2F");
    env.set("DATABASE_URL", &format!("postgres://me@{nowhere}/mine")).set("DATABASE_PASSWORD", "s3cret-word");
    let ran = env.wake(&["--once"]);
    assert_ne!(ran.code, 0);
    ran.assert_tells("PostgreSQL").assert_never_tells("s3cret-word");
    // Nothing is said of files, which have no part in it.
    let checked = env.run(env!("CARGO_BIN_EXE_health"), &["check"]);
    for said in [ran.notices(), &checked.stdout] {
        assert!(said.contains("server of DATABASE_URL") && !said.contains("messages.db"), "{said}");
    }
    env.set("DATABASE_URL", "postgres://me:s3cret-word@example.org/mine");
    let ran = env.wake(&["--once"]);
    ran.assert_tells("DATABASE_PASSWORD_FILE");
}

/// Each of these says why, keeps the password to itself, and makes nothing in the database's place.
#[track_caller]
fn is_refused(env: &TestEnv, why: &str) {
    let ran = env.wake(&["--once", "--say", "remember that dogs bark"]);
    ran.assert_tells(why);
    assert!(ran.code != 0, "{why}: {ran:#?}");
    ran.assert_never_tells("s3cret-word");
    assert!(!env.workspace().join("messages.db").exists(), "{ran:#?}");
}

#[test]
fn what_crosses_a_network_is_encrypted_and_the_server_shows_who_it_is() {
    let mut env = TestEnv::new();
    let Some(server) = OwnServer::start(OwnServer::place()) else {
        return eprintln!("NOT RUN: PostgreSQL isn't installed here");
    };
    let Some(authority) = tls::certificate(&env) else { return };
    let (certificate, key) = tls::certificate_by(&env, &authority);
    make_role(&server);
    assert!(server.stop("fast"), "it ran");
    let port = free_port();
    server.listen(port, Some((&certificate, &key)));
    let file = env.path("password");
    std::fs::write(&file, "s3cret-word\n").unwrap();
    let address = |host: &str, authority: &str| {
        format!("postgres://me@{host}:{port}/postgres?options=-csearch_path%3Dmine{authority}")
    };
    let trusted = format!("&sslrootcert={}", authority.0.display().to_string().replace('/', "%2F"));
    env.set("DATABASE_PASSWORD_FILE", &file.display().to_string());
    env.set("DATABASE_URL", &address("localhost", &trusted));
    let told = env.wake(&["--once", "--say", "remember that cats purr"]).ok();
    assert!(told.stdout.contains("ats purr"), "{told:#?}");
    // Whoever else answers for that name, or under another.
    for (host, authority, why) in
        [("localhost", "&sslmode=require", "no known authority"), ("127.0.0.1", &*trusted, "another host name")]
    {
        env.set("DATABASE_URL", &address(host, authority));
        is_refused(&env, why);
    }
    env.set("DATABASE_URL", &address("localhost", &trusted));
    std::fs::write(&file, "s3cret-word-of-another\n").unwrap();
    is_refused(&env, "password");
    assert!(server.stop("fast"), "it ran");
    server.listen(port, Some((&authority.0, &authority.1)));
    is_refused(&env, "an authority's own certificate");
    // One that would do without is told nothing.
    assert!(server.stop("fast"), "it ran");
    server.listen(port, None);
    is_refused(&env, "TLS");
    assert!(server.stop("fast"), "it ran");
    server.start_again();
    assert_eq!(message_of_role(&server), "remember that cats purr");
}

#[test]
fn the_store_moves_into_a_shared_database_and_back() {
    let telegram = FakeTelegram::start();
    let Some(mut env) = shared(&telegram) else { return };
    let url = env.get("DATABASE_URL").to_owned();
    env.unset("DATABASE_URL");
    env.receive(CHAT, "remind me to call Ben tomorrow at 9");
    env.once();
    env.receive(CHAT, "hello");
    let moved = env.wake(&["store", "move", "--to", &url]).ok();
    assert!(
        moved.stdout.contains("rows and compared them") && !env.workspace().join("messages.db").exists(),
        "{moved:#?}"
    );
    // Settings that don't know of it yet make no new one.
    let lost = env.wake(&["--once"]);
    lost.assert_tells("gone");
    assert!(lost.code != 0, "{lost:#?}");
    env.set("DATABASE_URL", &url);
    env.once();
    assert_eq!(env.count_processed(), 2);
    let twice = env.wake(&["store", "move", "--to", &url]);
    twice.assert_tells("shared already");
    assert!(twice.code != 0, "{twice:#?}");
    env.wake(&["store", "move", "--to", "file"]).ok();
    env.unset("DATABASE_URL");
    assert_eq!(env.count_processed(), 2);
    assert_eq!(env.reminders()[0].text, "call Ben");
    env.receive(CHAT, "hello again");
    env.once();
    assert_eq!(env.count_processed(), 3);
}
