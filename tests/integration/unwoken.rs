//! What is set for a time says so where nothing will wake for it, and `health` warns before it is late.

use std::{fs, time::SystemTime};

use super::{
    page::ServedPage,
    support::{
        env::{NOW, TestEnv, eventually},
        telegram::FakeTelegram,
    },
};

const NOTHING: &str = "Nothing wakes me on its own yet, so this will only come when you run `wake --once`.";

#[track_caller]
fn set(env: &TestEnv, text: &str) -> String {
    let said = env.wake(&["say", "remind", "me", "tomorrow", "at", "9", "to", text]).ok().stdout;
    assert!(said.contains(&format!("Reminder set: {text}")), "{said}");
    said
}

#[test]
fn what_is_set_says_that_nothing_wakes_and_how_to_mend_it() {
    let mut env = TestEnv::new();
    let said = set(&env, "call Anna");
    assert!(said.contains(NOTHING), "{said}");
    // The line works as it stands: cron knows nothing of this environment.
    let line = said.split('`').find(|part| part.starts_with("*/5 * * * * ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&format!("WORKSPACE_DIR={} ", env.workspace().display())), "{line}");
    assert!(line.ends_with(&format!("{} --once --reason cron", env!("CARGO_BIN_EXE_wake"))), "{line}");
    // A look by hand says nothing of the next one.
    env.wake(&["--once"]).ok();
    assert!(set(&env, "write").contains(NOTHING));
    env.at("2026-11-22T06:00:00Z");

    let command = line.trim_start_matches("*/5 * * * * ");
    env.run("sh", &["-c", command]).ok();
    env.at("2026-11-23T06:00:00Z");
    let said = set(&env, "rest");
    assert!(said.contains("Nothing has woken me on its own since Sun 22 Nov 07:00"), "{said}");
}

#[test]
fn what_cron_starts_leaves_a_sign_and_a_persons_word_does_not() {
    let mut env = TestEnv::new();
    env.wake(&["say", "help"]).ok();
    assert!(!env.workspace().join(".last-look").exists());
    env.wake(&["--once", "--reason", "timer"]).ok();
    env.at("2026-11-21T14:29:00Z");
    assert!(!set(&env, "call Anna").contains("wakes me"));
}

/// An idle wake touches one file, and writes neither it nor the database.
#[test]
fn the_sign_of_an_idle_wake_is_a_time() {
    let mut env = TestEnv::new();
    env.wake(&["--once", "--reason", "cron"]).ok();
    let all = || {
        let names = ["messages.db", "messages.db-wal"].map(|name| fs::read(env.workspace().join(name)).ok());
        let sign = fs::metadata(env.workspace().join(".last-look")).unwrap();
        (names, sign.len(), fs::read_dir(env.workspace()).unwrap().count())
    };
    let before = all();
    assert_eq!(before.1, 0);
    let when = "2026-11-21T14:10:00Z";
    let vars = [("REVEILLE_NOW", when)];
    let idle =
        env.command(env!("CARGO_BIN_EXE_wake"), &["--once", "--json", "--reason", "cron"]).envs(vars).output().unwrap();
    assert!(String::from_utf8_lossy(&idle.stdout).contains("\"outcome\":\"idle\""), "{idle:?}");
    assert_eq!(all(), before);
    let sign = fs::metadata(env.workspace().join(".last-look")).unwrap().modified().unwrap();
    let expected = reveille_base::clock::parse_time(when).unwrap();
    assert_eq!(sign, SystemTime::from(expected));
    env.at(NOW);
}

#[test]
fn a_bot_wakes_for_reminders() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    let said = set(&env, "call Anna");
    assert!(said.contains("To change that, run `wake install`"), "{said}");
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["--wake", "/bin/true"]);
    telegram.wait_for_calls("getUpdates", 1, std::time::Duration::from_secs(60));
    assert!(!set(&env, "write").contains("wakes me"));
    bot.signal(rustix::process::Signal::TERM);
    bot.end();
}

#[test]
fn health_warns_before_a_reminder_is_late() {
    let mut env = TestEnv::new();
    set(&env, "call Anna");
    let due = |env: &TestEnv| {
        let report = env.health(&["check", "--json"]).json();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["id"] == "due").unwrap()
    };
    let found = due(&env);
    assert_eq!(found["status"], "warn", "{found}");
    let detail = "1 reminder set, the next for Sun 22 Nov 09:00, but nothing wakes me automatically";
    assert_eq!(found["detail"], detail);
    assert!(found["fix"].as_str().unwrap().contains("*/5 * * * * WORKSPACE_DIR="), "{found}");
    env.wake(&["--once", "--reason", "cron"]).ok();
    assert_eq!(due(&env)["status"], "ok");
    env.at("2026-11-21T15:00:00Z");
    assert_eq!(due(&env)["status"], "warn");
}

/// What health says of a check.
fn check(env: &TestEnv, id: &str) -> serde_json::Value {
    let report = env.health(&["check", "--json"]).json();
    let checks = report["checks"].as_array().unwrap().clone();
    checks.into_iter().find(|check| check["id"] == id).unwrap()
}

/// A reminder that was set at the usual time, and a clock that is past it.
fn reminded_late() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm");
    set(&env, "call Anna");
    env.at("2026-11-22T08:00:30Z");
    let today = env.wake(&["today"]).ok().stdout;
    assert!(today.contains("Late, not sent yet") && !today.contains("Still to come"), "{today}");
    env
}

#[test]
fn an_open_page_reminds_and_is_named() {
    let env = reminded_late();
    assert_eq!(check(&env, "timers")["detail"], "nothing starts wakes automatically: never so far");
    let page = ServedPage::open(&env);
    eventually("the reminder was sent", || env.outbox_with("⏰ call Anna").len() == 1);
    assert!(page.get("/chat").ok().contains("call Anna"));
    let timers = check(&env, "timers");
    assert_eq!(timers["detail"], "only the page starts wakes, while open; by a timer: never so far");
    assert!(set(&env, "write").contains("This will come while the page is open."));
}

#[test]
fn an_open_chat_reminds_and_is_named() {
    let env = reminded_late();
    let mut talk = env.talk(env!("CARGO_BIN_EXE_wake"), &["chat"]);
    talk.wait_for_text("⏰ call Anna");
    assert_eq!(check(&env, "timers")["detail"], "only `wake chat` starts wakes, while open; by a timer: never so far");
    talk.types("\x04");
    assert_eq!(talk.end().0, 0);
}
