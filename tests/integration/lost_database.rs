//! A database that vanishes: under a running bot, which confirms nothing more and saves what it has open; and between two wakes, where none
//! is made in its place in silence.

use std::{fs, path::PathBuf};

use super::support::{
    bot::{PATIENCE, Stage},
    env::{CHAT, ProgramOutput, Running, TestEnv},
};

/// A stage in whose memory a wake has worked.
fn lived_in() -> Stage {
    let stage = Stage::new();
    // What the world has received counts as fetched.
    stage.telegram.number_updates_from(2_000);
    stage.env.receive(CHAT, "remember that tea is at five");
    assert_eq!(stage.env.once()["answered"], 1);
    stage
}

fn file(env: &TestEnv, ending: &str) -> PathBuf {
    env.workspace().join(format!("messages.db{ending}"))
}

fn saved(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.workspace()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains("messages.db.recovered-")).collect()
}

/// Waits for the bot's end, which is an error.
fn gives_up(stage: &Stage, bot: Running) -> ProgramOutput {
    stage.let_wakes_end();
    let ran = bot.end();
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells("so I've stopped fetching messages");
    ran
}

fn health_of_database(env: &TestEnv) -> serde_json::Value {
    let report = env.health(&["check", "--json"]).json();
    report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "database").unwrap().clone()
}

#[test]
fn a_bot_whose_database_was_removed_confirms_nothing_more_and_saves_what_it_has_open() {
    let stage = lived_in();
    let bot = stage.start_polling();
    stage.say("before");
    stage.wait_until_confirmed();
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(file(&stage.env, ending)).unwrap();
    }
    stage.say("after");
    let ran = gives_up(&stage, bot);
    ran.assert_tells("messages.db was removed").assert_never_tells("stay queued");
    assert_eq!(stage.telegram.unconfirmed(), 1, "Telegram still has it");
    let said = stage.telegram.sent().pop().unwrap();
    assert!(said.chat_id == CHAT && said.visible.contains("Telegram keeps what you send"), "{said:#?}");

    // Nothing takes its place in silence.
    for args in [&["--once"][..], &["say", "hello"], &["queue", "list"], &["stop"]] {
        let ran = stage.env.wake(args);
        assert_eq!(ran.code, 1, "{args:?}: {ran:#?}");
        ran.assert_tells("gone, though I have worked here before").assert_tells_only_if(args[0] == "say", "NOT stored");
    }
    // A bot that is started meanwhile says so in the chat, once, and waits.
    let before = stage.telegram.sent().len();
    let (bot, log) = stage.start_logged("wake");
    let said = stage.telegram.wait_for_sent(before + 1, PATIENCE).pop().unwrap();
    assert!(said.chat_id == CHAT && said.visible.contains("gone, though I have worked here before"), "{said:#?}");
    assert!(said.visible.contains("Telegram keeps what you send"), "{said:#?}");
    assert!(!file(&stage.env, "").exists());
    assert_eq!(stage.telegram.unconfirmed(), 1);
    let found = health_of_database(&stage.env);
    let saved = saved(&stage.env).pop().unwrap();
    assert_eq!(found["status"], "critical", "{found}");
    assert!(found["fix"].as_str().unwrap().contains(&format!("mv {}", saved.display())), "{found}");

    // Put back, it goes on where it was without being started again; what wasn't confirmed comes again.
    fs::rename(saved, file(&stage.env, "")).unwrap();
    stage.wait_until_confirmed();
    let written = fs::read_to_string(log).unwrap();
    assert_eq!(written.matches("can't open my database").count(), 1, "{written}");
    stage.answer_all();
    stage.end(bot);
    let texts: Vec<String> = stage.env.received().into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["remember that tea is at five", "before", "after"]);
    assert_eq!(health_of_database(&stage.env)["status"], "ok");
}

#[test]
fn a_bot_whose_database_was_replaced_or_emptied_confirms_nothing_more() {
    for is_emptied in [false, true] {
        let stage = lived_in();
        let bot = stage.start_polling();
        stage.say("before");
        stage.wait_until_confirmed();
        let other = stage.env.workspace().join("other");
        if is_emptied {
            fs::OpenOptions::new().write(true).open(file(&stage.env, "")).unwrap().set_len(0).unwrap();
        } else {
            drop(reveille_store::Store::open(&other).unwrap());
            fs::rename(&other, file(&stage.env, "")).unwrap();
        }
        stage.say("after");
        let ran = gives_up(&stage, bot);
        let what = if is_emptied { "was emptied" } else { "was replaced" };
        ran.assert_tells(what);
        assert_eq!(stage.telegram.unconfirmed(), 1);
        if is_emptied {
            let ran = stage.env.wake(&["--once"]);
            ran.assert_fails(1, "is empty, though");
            assert!(file(&stage.env, "-wal").exists(), "what is left stays");
        } else {
            assert_eq!(saved(&stage.env).len(), 1);
            assert!(!file(&stage.env, "-wal").exists(), "the new one isn't read with the old one's log");
            assert_eq!(health_of_database(&stage.env)["status"], "warn", "the saved one is named");
        }
    }
}

#[test]
fn a_new_database_is_begun_when_a_person_says_so() {
    let env = TestEnv::new();
    env.wake(&["--once", "--say", "remember that tea is at five"]).ok();
    let refused = env.health(&["check", "--new-database"]);
    refused.assert_fails(1, "isn't missing");

    fs::write(file(&env, ""), "").unwrap();
    assert_eq!(env.health(&["check"]).code, 1);
    assert_eq!(fs::metadata(file(&env, "")).unwrap().len(), 0);
    let begun = env.health(&["check", "--new-database"]).ok();
    begun.assert_tells("is new and empty now").assert_tells("messages.db.old-");
    env.wake(&["--once", "--say", "remember that Anna has a dog"]).ok();
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("tea is at five") && facts.contains("Anna has a dog"), "{facts}");
    env.check_sound();
}

#[test]
fn a_memory_that_this_very_run_clones_needs_no_database_from_before() {
    let mut env = TestEnv::new();
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.wake(&["--once", "--say", "remember that tea is at five"]).ok();
    let there = env.path("there").display().to_string();
    env.set("WORKSPACE_DIR", &there);
    env.wake(&["--once", "--say", "remember that Anna has a dog"]).ok();
    env.wake(&["--once"]).ok();
}
