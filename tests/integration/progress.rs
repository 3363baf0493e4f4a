//! What people see while they wait: that it has arrived, and how far a long cycle is.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use reveille_store::wake_lock;

use super::{
    support::story::{plan, reply, wait_for_request, with_claude},
    support::{
        bot::{Stage, assert_token_hidden},
        claude::{FakeClaude, Reply},
        env::{CHAT, Running, TestEnv, eventually},
        http::Gate,
        telegram::{FakeTelegram, Fault},
    },
};
use rustix::process::Signal;
use serde_json::json;

/// A bot whose wakes are real.
fn start_bot(env: &TestEnv) -> Running {
    env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")])
}

fn end(bot: Running) {
    bot.signal(Signal::TERM);
    let ran = bot.end();
    assert_token_hidden(&ran);
    ran.ok();
}

/// A cycle of two steps; each of its requests waits for its gate.
fn long_work(claude: &FakeClaude) -> [Gate; 2] {
    let gates = [Gate::default(), Gate::default()];
    claude.expect(Reply::tools(vec![plan("t1", &[("read the <tasks>", "task_list"), ("say what there is", "reply")])]));
    claude.expect(Reply::tool("t2", "task_list", json!({})).stalled_after(2, &gates[0]));
    claude.expect(reply("t3", "There is nothing.").stalled_after(2, &gates[1]));
    claude.expect(Reply::text("Done."));
    gates
}

#[track_caller]
fn shows(telegram: &FakeTelegram, line: &str) {
    eventually(line, || telegram.standing().iter().any(|text| text == line));
}

#[test]
fn each_chat_sees_that_its_message_has_arrived() {
    let stage = Stage::new();
    // A courtesy that fails is none.
    stage.telegram.fail_next("setMessageReaction", Fault::Status(400, None));
    let bot = stage.start_polling();
    let first = stage.say("one");
    stage.telegram.wait_for_calls("setMessageReaction", 1, std::time::Duration::from_secs(60));
    let second = stage.say("two");
    stage.telegram.wait_for_calls("setMessageReaction", 2, std::time::Duration::from_secs(60));
    let on: Vec<_> = stage.telegram.calls("setMessageReaction").iter().map(|call| call["message_id"].clone()).collect();
    assert_eq!(on, [json!(first - 900), json!(second - 900)]);
    assert_eq!(stage.stored(), 2);
    stage.end(bot);
}

#[test]
fn a_long_cycle_says_how_far_it_is_and_then_only_the_answer_stands() {
    let (telegram, claude, env) = with_claude();
    let [first, second] = long_work(&claude);
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    wait_for_request(&claude, 2);
    shows(&telegram, "⏳ Step 1 of 2: read the <tasks>");
    assert!(telegram.sent()[0].silent, "nobody is called for it");
    first.open();
    shows(&telegram, "⏳ Step 2 of 2: say what there is");
    second.open();
    eventually("only the answer stands", || telegram.standing() == ["There is nothing."]);
    assert_eq!(telegram.sent().len(), 2, "one line, which was changed: {:#?}", telegram.sent());
    eventually("its row is gone", || env.count_status_lines() == 0);
    end(bot);
    env.check_sound();
}

#[test]
fn no_step_of_a_plan_is_a_link_in_the_line() {
    let (telegram, claude, env) = with_claude();
    let gates = [Gate::default(), Gate::default()];
    let steps = [("open https://evil.example/?d=tea", "task_list"), ("see www.evil.example", "reply")];
    claude.expect(Reply::tools(vec![plan("t1", &steps)]));
    claude.expect(Reply::tool("t2", "task_list", json!({})).stalled_after(2, &gates[0]));
    claude.expect(reply("t3", "There is nothing.").stalled_after(2, &gates[1]));
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    wait_for_request(&claude, 2);
    // Sent, and changed.
    shows(&telegram, "⏳ Step 1 of 2: open https:··evil·example/?d=tea");
    gates[0].open();
    shows(&telegram, "⏳ Step 2 of 2: see www·evil·example");
    gates[1].open();
    eventually("only the answer stands", || telegram.standing() == ["There is nothing."]);
    end(bot);
    env.check_sound();
}

#[test]
fn once_the_answer_is_there_nothing_says_that_it_is_worked_on_however_long_the_push_takes() {
    let (telegram, claude, mut env) = with_claude();
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.once();
    let hook = remote.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\ntouch began; until [ -e go ]; do sleep 0.1; done\n").unwrap();
    std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    let [first, second] = long_work(&claude);
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    wait_for_request(&claude, 2);
    shows(&telegram, "⏳ Step 1 of 2: read the <tasks>");
    first.open();
    second.open();
    let lock_path = env.workspace().join(".wake-lock");
    eventually("the push is held", || remote.join("began").exists());
    eventually("only the answer stands", || telegram.standing() == ["There is nothing."]);
    assert!(wake_lock::is_held(&lock_path), "the push is still under way");
    assert_eq!(wake_lock::read_holder(&lock_path).and_then(|holder| holder.cycle_id), None);
    std::fs::write(remote.join("go"), "").unwrap();
    end(bot);
    env.check_sound();
}

#[test]
fn the_line_of_a_bot_that_was_killed_is_taken_away_by_the_next() {
    let (telegram, claude, env) = with_claude();
    let [first, second] = long_work(&claude);
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    wait_for_request(&claude, 2);
    shows(&telegram, "⏳ Step 1 of 2: read the <tasks>");
    // Killed before, it would leave the line for good.
    eventually("its id is written down", || env.count_sent_status_lines() == 1);
    bot.signal(Signal::KILL);
    // Its wake goes on without it.
    first.open();
    second.open();
    bot.end();
    assert_eq!(telegram.standing(), ["⏳ Step 1 of 2: read the <tasks>", "There is nothing."]);
    let bot = start_bot(&env);
    eventually("only the answer stands", || telegram.standing() == ["There is nothing."]);
    end(bot);
    env.check_sound();
}

#[test]
fn a_line_that_was_being_sent_when_the_wake_ended_is_taken_away() {
    let (telegram, claude, env) = with_claude();
    let [first, second] = long_work(&claude);
    telegram.fail_next("sendMessage", Fault::Held);
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    telegram.wait_for_calls("sendMessage", 1, std::time::Duration::from_secs(60));
    first.open();
    second.open();
    eventually("the answer is there", || telegram.standing() == ["There is nothing."]);
    eventually("the wake has ended", || !wake_lock::is_held(&env.workspace().join(".wake-lock")));
    telegram.release();
    eventually("only the answer stands", || telegram.sent().len() == 2 && telegram.standing() == ["There is nothing."]);
    eventually("it is forgotten", || env.count_status_lines() == 0);
    end(bot);
    env.check_sound();
}

#[test]
fn a_line_that_telegram_puts_off_is_sent_later() {
    let (telegram, claude, env) = with_claude();
    let [first, second] = long_work(&claude);
    telegram.fail_next("sendMessage", Fault::Status(429, Some(1)));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there?");
    wait_for_request(&claude, 2);
    shows(&telegram, "⏳ Step 1 of 2: read the <tasks>");
    telegram.fail_next("editMessageText", Fault::Status(429, Some(1)));
    first.open();
    shows(&telegram, "⏳ Step 2 of 2: say what there is");
    second.open();
    eventually("only the answer stands", || telegram.standing() == ["There is nothing."]);
    end(bot);
    env.check_sound();
}
