//! Commands while a wake is held in the middle of a request, and `/stop`: what ends, what stays silent, what goes on as it was.

use super::{
    lease::{hanging_transport, identity_in},
    support::story::{commits, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        database::queue::Received,
        env::{CHAT, Running, TestEnv, eventually},
        http::Gate,
        telegram::FakeTelegram,
    },
};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A bot whose wakes are real, polling.
fn start_bot(env: &TestEnv, telegram: &FakeTelegram) -> Running {
    let polls = telegram.calls("getUpdates").len();
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    telegram.wait_for_calls("getUpdates", polls + 1, PATIENCE);
    bot
}

/// One reminder and one fact.
fn two_calls() -> Reply {
    Reply::tools(vec![
        Block::tool("t1", "reminder_set", json!({"text": "Stretch", "when": "tomorrow at 9"})),
        Block::tool("t2", "remember", json!({"fact": "Cats purr"})),
    ])
}

/// The mind was asked twice and is silent.
fn hold_in_second_request(env: &TestEnv, telegram: &FakeTelegram, claude: &FakeClaude) {
    claude.expect(two_calls());
    claude.expect(Reply::text("Both are done, I think.").stalled_after(4, &Gate::default()));
    telegram.push_text(CHAT, CHAT, "remind me to stretch, and cats purr");
    wait_for_request(claude, 2);
    assert_eq!(env.cycle().state, "running");
}

/// The bot's answer to what is said now.
#[track_caller]
fn command(telegram: &FakeTelegram, text: &str) -> String {
    let n = telegram.sent().len();
    telegram.push_text(CHAT, CHAT, text);
    telegram.wait_for_sent(n + 1, PATIENCE).remove(n).visible
}

fn journal(env: &TestEnv) -> usize {
    env.journal().len()
}

#[test]
fn every_command_is_answered_while_a_wake_waits_for_the_mind() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let bot = start_bot(&env, &telegram);
    hold_in_second_request(&env, &telegram, &claude);
    for (text, part) in [
        ("/status", "Working"),
        ("/tasks", "No tasks"),
        ("/memory", "semantic-memory.md"),
        ("/memory cats", "I have no notes about “cats”."),
        ("/remind", "1. Stretch"),
        ("/remind drink in 2 hours", "Reminder set: drink"),
        ("/cost", "Today"),
        ("/log", "under way"),
        ("/undo", "set the reminder “drink”"),
        ("/retry", "nothing to try again"),
        ("/rules", "There are no rules"),
        ("/wake", "I'm working now"),
        ("/whoami", "id 4242"),
        ("/resume", "I'm not stopped"),
        ("/help", "/memory"),
        ("/memroy", "Did you mean /memory?"),
    ] {
        let answer = command(&telegram, text);
        assert!(answer.contains(part), "{text}: {answer}");
    }
    assert_eq!(env.count_received(), 1, "commands are no messages");
    assert_eq!(claude.requests().len(), 2);
    command(&telegram, "/stop");
    bot.signal(Signal::TERM);
    bot.end().ok();
}

#[test]
fn stop_drops_the_request_and_outlives_restarts_and_resume_goes_on_as_it_was() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let before = commits(&env);
    let bot = start_bot(&env, &telegram);
    hold_in_second_request(&env, &telegram, &claude);
    let entries = journal(&env);
    assert!(command(&telegram, "/stop").starts_with("Stopped."));
    eventually("the wake lets go", || env.cycle().state == "waiting");
    env.wait_for_end_of_wake();
    assert_eq!(journal(&env), entries, "nothing was done after the order");
    assert_eq!((commits(&env), env.cycle().tries), (before, 0));

    // Another bot, a reminder that is due, a message, a wake from cron: nothing is done.
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.put_reminder(CHAT, "Tea", "2026-11-21T14:59:00", "2026-11-21T13:59:00Z");
    let bot = start_bot(&env, &telegram);
    let stopped = "Stopped since 15:00. Your message is kept; send /resume to continue.";
    assert_eq!(command(&telegram, "and dogs bark"), stopped);
    eventually("it is kept", || env.queued().len() == 2);
    let told = telegram.sent().len();
    let ran = env.wake(&["--once", "--json"]).ok();
    assert_eq!(ran.json()["outcome"], "idle");
    ran.assert_tells("Stopped since Sat 21 Nov 2026, 15:00. New messages will wait");
    assert!(env.health(&["status"]).ok().stdout.contains("stopped"));
    let ran = env.wake(&["--once", "--say", "hello"]).ok();
    ran.assert_tells("Your message is safe; I'll answer it after `wake resume`.");
    assert_eq!((journal(&env), claude.requests().len()), (entries, 2));
    assert!(command(&telegram, "/status").contains("Stopped since today 15:00"));
    assert_eq!(telegram.sent().len(), told + 1, "nothing else was said");
    for message in env.received().iter().filter(|message| message.chat_id == 0) {
        env.put_outcome(message.id, "dropped");
    }

    claude.expect(Reply::text("Both are done."));
    claude.expect(Reply::text("They do."));
    assert!(command(&telegram, "/resume").starts_with("Resuming"));
    eventually("all is answered", || sent(&telegram).iter().any(|text| text == "They do."));
    let requests = claude.requests();
    assert_eq!(requests[2].raw, requests[1].raw, "the conversation goes on as it was");
    eventually("the reminder is sent", || sent(&telegram).iter().any(|text| text.contains("Tea")));
    assert_eq!(sent(&telegram).iter().filter(|text| *text == "Both are done.").count(), 1);
    assert_eq!(env.reminders().iter().filter(|reminder| reminder.text == "Stretch").count(), 1);
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.wait_for_end_of_wake();
    env.check_sound();
}

#[test]
fn a_guests_stop_ends_what_is_done_for_them_and_nothing_of_the_owners() {
    const BOB: i64 = 5555;
    let (telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}"));
    env.wake(&["--once"]).ok();
    let bot = start_bot(&env, &telegram);
    let guests_command = |text: &str| {
        let told = telegram.sent().len();
        telegram.push_text(BOB, BOB, text);
        eventually("a command is answered", || telegram.sent().len() > told);
        telegram.sent().remove(told).visible
    };
    // In the middle of the owner's work.
    let gate = Gate::default();
    claude.expect(Reply::text("It is blue.").stalled_after(1, &gate));
    telegram.push_text(CHAT, CHAT, "why is the sky blue?");
    wait_for_request(&claude, 1);
    assert!(guests_command("/stop").starts_with("Stopped for this chat."));
    gate.open();
    eventually("the owner is answered", || sent(&telegram).iter().any(|text| text == "It is blue."));
    // What the guest writes is kept; what the owner writes is answered.
    telegram.push_text(BOB, BOB, "and the sea?");
    eventually("it is kept", || env.queued().len() == 1);
    eventually("they are told so", || sent(&telegram).iter().any(|text| text.starts_with("Stopped since")));
    claude.expect(Reply::text("It is wet."));
    telegram.push_text(CHAT, CHAT, "what is rain?");
    eventually("the owner is answered", || sent(&telegram).iter().any(|text| text == "It is wet."));
    assert_eq!((env.queued().len(), claude.requests().len()), (1, 2));
    assert!(!env.health(&["status"]).ok().stdout.contains("stopped"));

    // In the middle of the guest's own.
    let stalled = Gate::default();
    claude.expect(Reply::text("It is deep.").stalled_after(1, &stalled));
    assert!(guests_command("/resume").starts_with("Resuming here"));
    wait_for_request(&claude, 3);
    guests_command("/stop");
    env.wait_for_end_of_wake();
    let guests = env.cycles().into_iter().find(|cycle| cycle.chat_id == Some(5555)).unwrap();
    assert_eq!(guests.state, "waiting");
    assert_eq!(env.once()["outcome"], "idle");
    let health = env.health(&["check", "--json"]).ok().json();
    let checks = health["checks"].as_array().unwrap();
    let well = checks.iter().filter(|check| check["id"] == "queue" || check["id"] == "cycles");
    assert_eq!(well.map(|check| &check["status"]).collect::<Vec<_>>(), ["ok", "ok"], "{health:#}");
    claude.expect(Reply::text("It is salty."));
    guests_command("/resume");
    eventually("the guest is answered", || sent(&telegram).iter().any(|text| text == "It is salty."));
    assert!(!sent(&telegram).iter().any(|text| text == "It is deep."));
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.check_sound();
}

/// A stop that somebody forgot is no dead bot.
#[test]
fn the_first_message_after_a_stop_is_answered_in_words_and_then_the_first_of_each_day() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.wake(&["stop"]).ok();
    let restarted = |env: &TestEnv, bot: Running| {
        bot.signal(Signal::TERM);
        bot.end().ok();
        start_bot(env, &telegram)
    };
    let mut bot = start_bot(&env, &telegram);
    let stopped = "Stopped since 15:00. Your message is kept; send /resume to continue.";
    assert_eq!(command(&telegram, "remember that cats purr"), stopped);
    for n in 2..4 {
        bot = restarted(&env, bot);
        telegram.push_text(CHAT, CHAT, "are you there?");
        eventually("it is kept", || env.queued().len() == n);
        assert!(command(&telegram, "/status").contains("Stopped since"), "the next that is said");
    }
    env.at("2026-11-22T08:00:00Z");
    bot = restarted(&env, bot);
    assert!(command(&telegram, "hello?").starts_with("Stopped since Sat 21 Nov 15:00. Your message is kept;"));
    // Another stop is another word.
    command(&telegram, "/resume");
    eventually("what is known is answered", || sent(&telegram).iter().any(|text| text.contains("purr")));
    let is_answerable = |message: &Received| !message.is_processed && message.held_for.is_none();
    eventually("all is said", || {
        !env.received().iter().any(is_answerable) && env.count_unsent() == 0 && !env.is_locked()
    });
    command(&telegram, "/stop");
    env.wait_for_end_of_wake();
    assert!(command(&telegram, "hello?").starts_with("Stopped since 09:00. "));
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.check_sound();
}

/// Nobody signals it: it looks for itself.
#[test]
fn a_wake_from_cron_ends_in_order_when_all_is_stopped_from_the_terminal() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remind me to stretch, and cats purr");
    claude.expect(two_calls());
    claude.expect(Reply::text("Both are done.").stalled_after(4, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    let entries = journal(&env);
    let ran = env.wake(&["stop"]).ok();
    ran.assert_tells("`wake resume`");
    let report = wake.end().ok().json();
    assert_eq!(journal(&env), entries, "it didn't wait for the mind to give up");
    assert_eq!((report["outcome"].as_str(), report["error"].as_str()), (Some("parked"), None));
    env.wake(&["resume"]).ok().assert_tells("Resuming");
    env.wake(&["resume"]).ok().assert_tells("Nothing was stopped");
    claude.expect(Reply::text("Both are done."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(claude.requests()[2].raw, claude.requests()[1].raw);
    assert_eq!(sent(&telegram), ["Both are done."]);
    env.check_sound();
}

#[test]
fn what_was_committed_but_not_sent_waits_for_the_word_to_go_on() {
    let (telegram, _claude, mut env) = with_claude();
    env.unset("ANTHROPIC_API_KEY");
    env.receive(CHAT, "remember that cats purr");
    // Between the commit and the delivery.
    env.wake(&["--once"]).ok();
    env.send_all_again();
    let told = telegram.sent().len();
    env.wake(&["stop"]).ok();
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(telegram.sent().len(), told);
    assert!(!env.health(&["check"]).stdout.contains("isn't delivered"));
    env.wake(&["resume"]).ok();
    env.once();
    assert_eq!(telegram.sent().len(), told + 1);
}

#[test]
fn what_is_sent_by_hand_while_all_is_stopped_says_so_and_leaves_afterwards() {
    let (telegram, _claude, mut env) = with_claude();
    env.unset("ANTHROPIC_API_KEY");
    env.wake(&["stop"]).ok();
    let ran = env.bot(&["send", "--chat", &CHAT.to_string(), "backup done"]).ok();
    assert_eq!(ran.stdout, "queued: it will be sent after `wake resume`\n");
    ran.assert_tells("Stopped since Sat 21 Nov 2026, 15:00. New messages will wait");
    env.once();
    assert_eq!(sent(&telegram), [""; 0]);
    env.wake(&["resume"]).ok();
    env.once();
    assert_eq!(sent(&telegram), ["backup done"]);
}

/// As when somebody is unpaired while their question waits.
#[test]
fn an_interrupted_conversation_ends_when_its_messages_are_taken_out_of_the_queue() {
    let (telegram, claude, env) = with_claude();
    let id = env.receive(CHAT, "remind me to stretch, and cats purr");
    claude.expect(two_calls());
    claude.expect(Reply::text("Both are done.").stalled_after(4, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    env.wake(&["stop"]).ok();
    wake.end().ok();
    env.wake(&["queue", "drop", &id.to_string()]).ok();
    env.wake(&["resume"]).ok();
    env.once();
    assert_eq!((claude.requests().len(), sent(&telegram).len()), (2, 0), "nobody is asked or told anything");
    let cycle = env.cycle();
    assert_eq!(cycle.state, "abandoned");
    assert_eq!(cycle.error.as_deref(), Some("its messages were removed from the queue"));
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

/// What came later is taken out, by hand: nobody waits for the mind any more, but what it had answered was true.
#[test]
fn what_was_answered_before_the_rest_was_taken_out_of_the_queue_is_in_the_memory() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remember that cats purr");
    let gate = Gate::default();
    let calls = vec![
        Block::tool("t1", "remember", json!({"fact": "Cats purr"})),
        Block::tool("t2", "reply", json!({"text": "Kept: cats purr."})),
    ];
    claude.expect(Reply::tools(calls).stalled_after(4, &gate));
    claude.expect(Reply::text("The sea, the sea.").stalled_after(4, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    let second = env.receive(CHAT, "and write me a poem");
    gate.open();
    wait_for_request(&claude, 2);
    assert!(claude.requests()[1].last_text().contains("write me a poem"), "it has joined the conversation");
    env.wake(&["stop"]).ok();
    wake.end().ok();
    env.wake(&["queue", "drop", &second.to_string()]).ok();
    env.wake(&["resume"]).ok();
    assert_eq!(env.once()["answered"], 1);
    assert_eq!((claude.requests().len(), sent(&telegram)), (2, vec!["Kept: cats purr.".to_owned()]));
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("Cats purr"));
    assert_eq!(env.cycle().state, "done");
    assert_eq!(env.outcome(second), "dropped");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn programs_that_a_stopped_wake_has_started_are_dead_when_the_order_is_carried_out() {
    let mut env = TestEnv::new();
    let pid = hanging_transport(&mut env);
    env.once();
    env.git(&["remote", "add", "origin", "ssh://git@remote.invalid/memory.git"]);
    let wake = start_wake(&env);
    let transport = identity_in(&pid);
    env.wake(&["stop"]).ok();
    assert!(!transport.is_alive());
    wake.end().ok().assert_tells("Stopped since ");
    assert!(!pid.exists(), "nothing else was started");
}
