//! What is ordered from within a chat besides work: a fresh start, another model, a look at the settings, a restart.

use super::{
    approvals::{end_bot, start_bot},
    support::story::{end_well, last, opening, results, start_wake, wait_for_request, with_claude},
    support::{
        claude::{API_KEY, Block, FakeClaude, Reply},
        env::{CHAT, Running, TestEnv, eventually},
        http::Gate,
        telegram::{FakeTelegram, Fault, TOKEN},
    },
};
use rustix::process::Signal;
use serde_json::json;
use std::{os::unix::fs::PermissionsExt, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);
const GUEST: i64 = 777;

/// A world with a mind, in which the owner and a guest may speak.
fn world() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    // What the world has received counts as fetched.
    telegram.number_updates_from(2_000);
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GUEST}"));
    (telegram, claude, env)
}

/// What a running bot answers to a command.
#[track_caller]
fn said_to(telegram: &FakeTelegram, chat: i64, text: &str) -> String {
    let n = telegram.sent().len();
    telegram.push_text(chat, chat, text);
    telegram.wait_for_sent(n + 1, PATIENCE).remove(n).visible
}

/// The same of a bot that runs for it alone.
#[track_caller]
fn command(telegram: &FakeTelegram, env: &TestEnv, chat: i64, text: &str) -> String {
    let bot = start_bot(env);
    let answer = said_to(telegram, chat, text);
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    answer
}

/// A message that the mind answers, and how it was asked.
#[track_caller]
fn answered(claude: &FakeClaude, env: &TestEnv, chat: i64, text: &str, answer: &str) -> String {
    env.receive(chat, text);
    claude.expect(Reply::text(answer));
    env.once();
    last(claude).raw
}

#[test]
fn after_new_no_opening_tells_of_the_time_before_and_a_search_still_finds_it() {
    let (telegram, claude, env) = world();
    answered(&claude, &env, CHAT, "My dog is called Rex.", "A fine name for a dog.");
    answered(&claude, &env, GUEST, "My cat is called Tom.", "A fine name for a cat.");
    let before = answered(&claude, &env, CHAT, "What is the name of my dog?", "Rex.");
    assert!(before.contains("My dog is called Rex."), "{before}");
    let told = command(&telegram, &env, CHAT, "/new");
    assert!(
        told.starts_with("Started afresh: from now on I leave out what we said here before")
            && !told.contains("memory_search")
    );

    env.receive(CHAT, "What is the name of my dog?");
    claude.expect(Reply::tools(vec![Block::tool("t1", "memory_search", json!({"query": "dog called"}))]));
    claude.expect(Reply::text("It is Rex, you once said."));
    env.once();
    let requests = claude.requests();
    let first = &requests[requests.len() - 2];
    assert!(!first.raw.contains("Rex") && !first.raw.contains("fine name"), "{}", first.raw);
    let (found, is_error) = results(&last(&claude)).remove(0);
    assert!(!is_error && found.contains("My dog is called Rex."), "{found}");
    // What is said from then on is told of, and the others' chats go on as they were.
    let after = answered(&claude, &env, CHAT, "And the cat?", "You didn't say.");
    assert!(after.contains("It is Rex, you once said."), "{after}");
    let guest = answered(&claude, &env, GUEST, "And mine?", "Tom.");
    assert!(guest.contains("My cat is called Tom."), "{guest}");
    command(&telegram, &env, GUEST, "/new");
    let guest = answered(&claude, &env, GUEST, "And mine now?", "Who knows.");
    assert!(!guest.contains("Tom"), "{guest}");
    env.check_sound();
}

#[test]
fn a_cycle_that_runs_ends_as_it_was_and_what_is_said_after_new_has_its_own() {
    let (telegram, claude, env) = world();
    env.receive(CHAT, "Think hard about Rex.");
    let gate = Gate::default();
    claude.expect(Reply::text("He is a good dog.").stalled_after(2, &gate));
    claude.expect(Reply::text("Hello."));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    let told = command(&telegram, &env, CHAT, "/new");
    assert!(told.contains("I'll finish what I'm working on first."), "{told}");
    env.receive(CHAT, "Hello?");
    gate.open();
    end_well(wake);
    let second = last(&claude);
    assert_eq!((claude.requests().len(), second.messages.len()), (2, 1));
    assert!(opening(&second, "<messages>").contains("Hello?") && !second.raw.contains("Think hard about"));
    assert!(!second.raw.contains("He is a good dog."), "an answer goes with its question: {}", second.raw);
    env.check_sound();
}

#[test]
fn a_terminal_can_begin_afresh_too() {
    let (_telegram, claude, env) = world();
    let say = |text: &str, answer: &str| {
        claude.expect(Reply::text(answer));
        env.wake(&["say", text]).ok();
        last(&claude).raw
    };
    say("My dog is called Rex.", "Fine.");
    assert!(say("And?", "Nothing.").contains("Rex"));
    assert!(env.wake(&["say", "/new"]).ok().stdout.starts_with("Started afresh"));
    assert!(!say("Who are you?", "Reveille.").contains("Rex"));
    assert!(env.wake(&["say", "/restart"]).ok().stdout.starts_with("This terminal isn't the bot"));
    assert!(env.wake(&["say", "/settings"]).ok().stdout.contains("- MODEL: `claude-sonnet-5-5` (environment)"));
}

#[test]
fn the_owner_chooses_a_model_that_answers_from_then_on_until_the_settings_say_another() {
    let (telegram, claude, mut env) = world();
    let model = |env: &TestEnv| {
        env.receive(CHAT, "Hello");
        claude.expect(Reply::text("Hello."));
        env.once();
        last(&claude).json["model"].as_str().unwrap().to_owned()
    };
    assert_eq!(model(&env), "claude-sonnet-5-5");
    let listed = command(&telegram, &env, CHAT, "/model");
    assert!(listed.starts_with("claude-sonnet-5-5 answers here and in every chat"), "{listed}");
    assert!(listed.contains("claude-haiku-5-5: $0.10 for a million tokens in, $0.50 out"), "{listed}");
    let refused = command(&telegram, &env, CHAT, "/model gpt-9");
    assert!(
        refused.starts_with("I don't know the model gpt-9. Nothing was changed.") && refused.contains("claude-opus-5")
    );
    let guests = command(&telegram, &env, GUEST, "/model claude-haiku-5-5");
    assert_eq!(guests, "Only my owner can use /model. Nothing was done.");
    assert_eq!(model(&env), "claude-sonnet-5-5");

    let chosen = command(&telegram, &env, CHAT, "/model claude-haiku-5-5");
    assert!(chosen.starts_with("claude-haiku-5-5 answers from now on, in every chat ($0.10"), "{chosen}");
    assert_eq!(model(&env), "claude-haiku-5-5");
    assert_eq!(env.trailer("Model"), "claude-haiku-5-5");
    assert!(command(&telegram, &env, CHAT, "/status").contains("AI model: claude-haiku-5-5 (chosen with /model)"));
    let check = env.wake(&["init", "--check"]).stdout;
    assert!(check.contains("claude-haiku-5-5, chosen in a chat with /model (MODEL says claude-sonnet-5-5)"), "{check}");
    assert!(env.health(&["status"]).ok().stdout.contains("claude-haiku-5-5"));
    assert!(command(&telegram, &env, CHAT, "/settings").contains("You chose claude-haiku-5-5 with /model"));

    env.set("MODEL", "claude-opus-5");
    assert_eq!(model(&env), "claude-opus-5", "who changes the settings has the last word");
    env.set("MODEL", "claude-sonnet-5-5");
    assert!(command(&telegram, &env, CHAT, "/model default").starts_with("Back to the settings: claude-sonnet-5-5"));
    assert_eq!(model(&env), "claude-sonnet-5-5");
    env.check_sound();
}

#[test]
fn the_settings_are_shown_as_they_stand_with_their_sources_and_without_a_secret() {
    let (telegram, _claude, env) = world();
    std::fs::create_dir_all(env.workspace()).unwrap();
    let file = env.workspace().join(".env");
    let write = |text: &str| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    write("KEEP_DAYS=7\n");
    let bot = start_bot(&env);
    let shown = said_to(&telegram, CHAT, "/settings");
    for part in [
        "TELEGRAM_BOT_TOKEN: set (environment)",
        "BRAVE_API_KEY: not set (default)",
        "KEEP_DAYS: 7 (.env)",
        "AUTONOMY: 1 (default)",
        "To change them: wake init in a terminal",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(API_KEY) && !shown.contains("⚠️") && !shown.contains("Changed since"), "{shown}");
    write("KEEP_DAYS=8\n");
    let shown = said_to(&telegram, CHAT, "/settings");
    assert!(shown.contains("Changed since I started: KEEP_DAYS. To apply it, send /restart."), "{shown}");
    write("KEEP_DAYS=many\n");
    let shown = said_to(&telegram, CHAT, "/settings");
    assert!(shown.contains("⚠️ Settings with errors: 1.") && shown.contains("⚠️ KEEP_DAYS: expected"), "{shown}");
    assert_eq!(said_to(&telegram, GUEST, "/settings"), "Only my owner can use /settings. Nothing was done.");
    // With them it wouldn't start again, so it doesn't try.
    let refused = said_to(&telegram, CHAT, "/restart");
    assert_eq!(refused, "Restarting…");
    let why = telegram.wait_for_sent(6, PATIENCE).remove(5).visible;
    assert!(why.starts_with("I can't restart: the settings have errors:") && why.contains("KEEP_DAYS"), "{why}");
    assert!(said_to(&telegram, CHAT, "/whoami").contains("4242"));
    end_bot(bot);
}

fn is_back(telegram: &FakeTelegram) -> usize {
    telegram.sent().iter().filter(|message| message.visible.starts_with("I'm back")).count()
}

fn end(bot: Running) {
    bot.signal(Signal::TERM);
    bot.end().ok();
}

#[test]
fn a_restarted_bot_is_the_same_process_says_so_once_and_has_taken_over_the_settings() {
    let (telegram, _claude, env) = world();
    env.once();
    let bot = start_bot(&env);
    let pid = bot.pid();
    said_to(&telegram, CHAT, "/whoami");
    std::fs::write(env.workspace().join(".env"), "KEEP_DAYS=7\n").unwrap();
    assert_eq!(said_to(&telegram, GUEST, "/restart"), "Only my owner can use /restart. Nothing was done.");
    assert_eq!(said_to(&telegram, CHAT, "/restart"), "Restarting…");
    eventually("it is back", || is_back(&telegram) == 1);
    let shown = said_to(&telegram, CHAT, "/settings");
    assert!(shown.contains("KEEP_DAYS: 7 (.env)") && !shown.contains("Changed since"), "{shown}");
    eventually("all is confirmed", || telegram.unconfirmed() == 0);
    assert_eq!((bot.pid(), is_back(&telegram)), (pid, 1));
    assert_eq!(env.count_told_restarts(), 1);
    end(bot);
    // One that was killed before it could say so: the next one does, once.
    env.ask_for_restart(CHAT, "2026-11-21T14:00:00Z");
    for _ in 0..2 {
        let bot = start_bot(&env);
        said_to(&telegram, CHAT, "/whoami");
        eventually("it is told", || is_back(&telegram) == 2);
        end(bot);
    }
    assert_eq!(is_back(&telegram), 2);
    env.check_sound();
}

#[test]
fn a_bot_that_is_asked_to_end_while_it_restarts_ends() {
    let (telegram, _claude, env) = world();
    let bot = start_bot(&env);
    said_to(&telegram, CHAT, "/whoami");
    // The last answer is waited for, for a while.
    telegram.fail_next("sendMessage", Fault::Stall);
    telegram.push_text(CHAT, CHAT, "/restart");
    telegram.wait_for_calls("sendMessage", 2, PATIENCE);
    end(bot);
    assert_eq!(is_back(&telegram), 0);
}

#[test]
fn a_new_token_that_telegram_refuses_keeps_the_bot_running() {
    let (telegram, _claude, mut env) = world();
    let file = env.path("token");
    let write = |token: &str| {
        std::fs::write(&file, token).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    write(TOKEN);
    env.unset("TELEGRAM_BOT_TOKEN").set("TELEGRAM_BOT_TOKEN_FILE", file.to_str().unwrap());
    let bot = start_bot(&env);
    said_to(&telegram, CHAT, "/whoami");
    write("99:AAotherSecretSecretSecret-Secret_abc");
    assert_eq!(said_to(&telegram, CHAT, "/restart"), "Restarting…");
    let why = telegram.wait_for_sent(3, PATIENCE).remove(2).visible;
    assert!(why.starts_with("I can't restart: Telegram doesn't accept the new TELEGRAM_BOT_TOKEN"), "{why}");
    assert!(said_to(&telegram, CHAT, "/whoami").contains("4242"));
    assert_eq!(is_back(&telegram), 0);
    end_bot(bot);
}

#[test]
fn a_bot_whose_program_is_gone_or_broken_says_so_and_runs_on() {
    let (telegram, _claude, env) = world();
    let folder = env.path("programs");
    std::fs::create_dir(&folder).unwrap();
    // `bot` is a launcher: `wake` beside it is the program.
    let (launcher, program) = (folder.join("bot"), folder.join("wake"));
    std::fs::copy(env!("CARGO_BIN_EXE_bot"), &launcher).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_wake"), &program).unwrap();
    let bot = env.start(launcher.to_str().unwrap(), &["run", "--wake", "/bin/true"]);
    let refused = |n: usize| {
        assert_eq!(said_to(&telegram, CHAT, "/restart"), "Restarting…");
        telegram.wait_for_sent(n, PATIENCE).remove(n - 1).visible
    };
    assert!(said_to(&telegram, CHAT, "/whoami").contains("4242"), "it is under way");
    std::fs::remove_file(&program).unwrap();
    let why = refused(3);
    assert!(why.starts_with("I can't restart: ") && why.ends_with("I'm still running as before."), "{why}");
    std::fs::write(&program, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let why = refused(5);
    assert!(why.contains("failed: exit code 3"), "{why}");
    assert!(said_to(&telegram, CHAT, "/whoami").contains("4242"));
    assert_eq!(is_back(&telegram), 0);
    end_bot(bot);
}
