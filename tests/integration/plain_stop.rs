//! "Stop" in plain words: an order while a wake works in the chat, and an ordinary message otherwise.

use std::time::Duration;

use rustix::process::Signal;

use super::support::{
    claude::{FakeClaude, Reply},
    env::{CHAT, Running, TestEnv, eventually},
    http::Gate,
    story::{reply, sent, wait_for_request, with_claude},
    telegram::FakeTelegram,
};

const PATIENCE: Duration = Duration::from_secs(60);
const BOB: i64 = 5555;

fn start_bot(env: &TestEnv, telegram: &FakeTelegram) -> Running {
    let polls = telegram.calls("getUpdates").len();
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    telegram.wait_for_calls("getUpdates", polls + 1, PATIENCE);
    bot
}

fn end(bot: Running) {
    bot.signal(Signal::TERM);
    bot.end().ok();
}

/// A wake works for the chat, and the model is silent.
fn hold_in_request(telegram: &FakeTelegram, claude: &FakeClaude) -> Gate {
    let gate = Gate::default();
    claude.expect(reply("t1", "It is blue, I think.").stalled_after(2, &gate));
    telegram.push_text(CHAT, CHAT, "why is the sky blue?");
    wait_for_request(claude, 1);
    gate
}

#[test]
fn a_plain_stop_stops_the_work_in_its_chat_at_once() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let bot = start_bot(&env, &telegram);
    hold_in_request(&telegram, &claude);
    telegram.push_text(CHAT, CHAT, "Stop, please!");
    telegram.wait_for_sent(1, PATIENCE);
    assert!(sent(&telegram)[0].starts_with("Stopped."), "{:?}", sent(&telegram));
    eventually("the wake lets go", || env.cycle().state == "waiting");
    env.wait_for_end_of_wake();
    assert_eq!(env.count_received(), 1, "an order is no message");
    telegram.push_text(CHAT, CHAT, "stop");
    eventually("it is kept", || env.count_received() == 2);
    claude.expect(reply("t2", "It is blue."));
    claude.expect(Reply::text("Done."));
    telegram.push_text(CHAT, CHAT, "/resume");
    eventually("all is answered", || sent(&telegram).iter().any(|text| text == "It is blue."));
    end(bot);
    env.wait_for_end_of_wake();
}

#[test]
fn a_sentence_with_the_word_joins_the_conversation_and_a_stop_elsewhere_stops_nothing_here() {
    let (telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}"));
    env.wake(&["--once"]).ok();
    let bot = start_bot(&env, &telegram);
    let gate = hold_in_request(&telegram, &claude);
    telegram.push_text(CHAT, CHAT, "stop by the shop");
    telegram.push_text(BOB, BOB, "stop");
    eventually("both are kept", || env.count_received() == 3);
    claude.expect(reply("t2", "Noted."));
    claude.expect(Reply::text("Done."));
    claude.expect(reply("t3", "I wasn't doing anything."));
    claude.expect(Reply::text("Done."));
    gate.open();
    eventually("all is answered", || sent(&telegram).iter().any(|text| text == "I wasn't doing anything."));
    assert!(claude.requests()[1].last_text().contains("stop by the shop"));
    assert!(!sent(&telegram).iter().any(|text| text.starts_with("Stopped")));
    end(bot);
    env.wait_for_end_of_wake();
}

#[test]
fn a_plain_stop_at_the_terminal_stops_the_wake_that_works_for_it() {
    let mut env = TestEnv::new();
    let claude = FakeClaude::start();
    env.think_with(&claude);
    claude.expect(reply("t1", "It is blue.").stalled_after(2, &Gate::default()));
    let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["say", "hello"]);
    wait_for_request(&claude, 1);
    let ran = env.wake(&["say", "stop"]).ok();
    assert!(ran.shown().contains("Stopped."), "{}", ran.shown());
    wake.end();
    assert_eq!((env.cycle().state.as_str(), env.count_received()), ("waiting", 1));
}
