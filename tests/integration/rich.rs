//! Rich messages: answers that need a table, a heading or more room, once the owner has seen that a sample shows well.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::support::{
    claude::{FakeClaude, Reply},
    env::{CHAT, TestEnv, eventually},
    story::{reply, start_wake, with_claude},
    telegram::{FakeTelegram, Fault, SentMessage},
};

const PATIENCE: Duration = Duration::from_secs(60);
const BOB: i64 = 5555;
const TABLE: &str = "## Rivers\n\n| River | km |\n|---|--:|\n| Rhine | 1230 |";
const RICH_TABLE: &str = "<h2>Rivers</h2><table bordered><tr><th>River</th><th align=\"right\">km</th></tr>\
    <tr><td>Rhine</td><td align=\"right\">1230</td></tr></table>";
const MARK: &str = "This may be a repeat";

/// A model and a Telegram whose owner needs no sample.
fn with_rich_messages() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    env.set("TELEGRAM_RICH", "always");
    (telegram, claude, env)
}

/// Somebody asks, and the model answers this.
fn answer(claude: &FakeClaude, env: &TestEnv, (chat, text): (i64, &str)) {
    env.receive(chat, "tell me about rivers");
    claude.expect(reply("t1", text));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["answered"], 1);
}

fn forms(telegram: &FakeTelegram) -> Vec<bool> {
    telegram.sent().iter().map(|message| message.is_rich).collect()
}

/// The owner presses a button of the sample while a bot listens.
fn press(telegram: &FakeTelegram, env: &TestEnv, sample: &SentMessage, data: &str) {
    telegram.number_updates_from(10_000);
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    let presses = telegram.calls("answerCallbackQuery").len();
    telegram.tap(CHAT, CHAT, sample.message_id, data);
    telegram.wait_for_calls("answerCallbackQuery", presses + 1, PATIENCE);
    eventually("the answer is shown", || telegram.standing().iter().any(|text| text.contains("TELEGRAM_RICH")));
    bot.signal(Signal::TERM);
    bot.end().ok();
}

#[test]
fn the_owner_confirms_a_sample_once_and_then_a_table_comes_as_a_table() {
    let (telegram, claude, env) = with_claude();
    answer(&claude, &env, (CHAT, "The Rhine."));
    assert_eq!(forms(&telegram), [false], "a text without structure needs no sample");
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, false, true]);
    let sample = telegram.sent()[2].clone();
    assert!(sample.text.contains("<table bordered>") && sample.text.contains("<h2>"), "{}", sample.text);
    assert_eq!(sample.buttons.len(), 2);
    // Nobody has answered yet, and nobody is asked again.
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, false, true, false]);

    press(&telegram, &env, &sample, &sample.buttons[0]);
    answer(&claude, &env, (CHAT, TABLE));
    let last = telegram.sent().pop().unwrap();
    assert_eq!((last.is_rich, last.text.as_str(), last.reply_to.is_some()), (true, RICH_TABLE, true));
    answer(&claude, &env, (CHAT, "Also **this**."));
    assert_eq!(forms(&telegram), [false, false, true, false, true, false]);
    env.check_sound();
}

#[test]
fn an_owner_who_sees_no_table_gets_plain_messages_from_then_on() {
    let (telegram, claude, env) = with_claude();
    answer(&claude, &env, (CHAT, TABLE));
    let sample = telegram.sent()[1].clone();
    press(&telegram, &env, &sample, &sample.buttons[1]);
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, true, false]);
    env.check_sound();
}

#[test]
fn with_never_nobody_is_asked() {
    let (telegram, claude, mut env) = with_claude();
    env.set("TELEGRAM_RICH", "never");
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false]);
}

#[test]
fn a_long_answer_is_one_rich_message_and_a_table_beyond_the_limits_goes_plain() {
    let (telegram, claude, env) = with_rich_messages();
    let long = "All rivers flow into the sea, and the sea is never full. ".repeat(400);
    answer(&claude, &env, (CHAT, &long));
    let sent = telegram.sent();
    assert_eq!((forms(&telegram), sent[0].visible.trim()), (vec![true], long.trim()));
    let columns = 21;
    answer(
        &claude,
        &env,
        (CHAT, &format!("|{}\n|{}\n|{}", "a|".repeat(columns), "-|".repeat(columns), "b|".repeat(columns))),
    );
    assert_eq!(forms(&telegram), [true, false]);
    env.check_sound();
}

#[test]
fn tainted_answers_and_answers_to_others_are_never_rich() {
    let (telegram, claude, mut env) = with_rich_messages();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB},-77"));
    answer(&claude, &env, (BOB, TABLE));
    assert_eq!(forms(&telegram), [false]);
    telegram.number_updates_from(10_000);
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")]);
    claude.expect(reply("t1", TABLE));
    claude.expect(Reply::text("Done."));
    let origin = json!({"type": "hidden_user", "date": 1_763_730_000, "sender_user_name": "Eve"});
    telegram.push_message(CHAT, &json!({"text": "Rivers are long", "forward_origin": origin}));
    telegram.wait_for_sent(2, PATIENCE);
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.wait_for_end_of_wake();
    assert_eq!(forms(&telegram), [false, false]);
    assert!(telegram.calls("sendRichMessage").is_empty());
    env.check_sound();
}

#[test]
fn a_server_without_rich_messages_gets_plain_ones_at_once_and_isnt_asked_for_a_day() {
    let (telegram, claude, mut env) = with_rich_messages();
    telegram.fail_next("sendRichMessage", Fault::Refuse(404, "Not Found: method not found", json!(null)));
    answer(&claude, &env, (CHAT, TABLE));
    assert!(telegram.sent()[0].visible.contains("Rhine") && !telegram.sent()[0].visible.contains(MARK));
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!((forms(&telegram), telegram.calls("sendRichMessage").len()), (vec![false, false], 1));
    env.at("2026-11-22T15:00:00Z");
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, false, true]);
    env.check_sound();
}

#[test]
fn a_refused_sample_is_withdrawn_and_sent_again_another_day() {
    let (telegram, claude, mut env) = with_claude();
    telegram.fail_next("sendRichMessage", Fault::Refuse(404, "Not Found: method not found", json!(null)));
    answer(&claude, &env, (CHAT, TABLE));
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!((forms(&telegram), telegram.calls("sendRichMessage").len()), (vec![false, false], 1));
    assert_eq!(env.count_unsent(), 0);
    env.at("2026-11-22T15:00:00Z");
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, false, false, true]);
    // A chat that can't have them isn't asked again.
    let (telegram, claude, mut env) = with_claude();
    telegram.fail_next("sendRichMessage", Fault::Refuse(400, "Bad Request: RICH_MESSAGE_UNSUPPORTED", json!(null)));
    answer(&claude, &env, (CHAT, TABLE));
    env.at("2026-12-21T15:00:00Z");
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!((forms(&telegram), telegram.calls("sendRichMessage").len()), (vec![false, false], 1));
}

#[test]
fn a_refused_content_goes_plain_and_the_next_answer_is_rich() {
    let (telegram, claude, env) = with_rich_messages();
    telegram.fail_next("sendRichMessage", Fault::Refuse(400, "Bad Request: can't parse rich message", json!(null)));
    let long = "All rivers flow into the sea, and the sea is never full. ".repeat(150);
    answer(&claude, &env, (CHAT, &long));
    assert_eq!(forms(&telegram), [false, false, false], "all of its parts, in order");
    let text: Vec<String> = telegram.sent().into_iter().map(|message| message.visible).collect();
    assert_eq!(text.join(" "), long.trim());
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [false, false, false, true]);
    env.check_sound();
}

#[test]
fn a_rich_message_in_doubt_is_repeated_once_with_the_mark() {
    let (telegram, claude, env) = with_rich_messages();
    telegram.fail_next("sendRichMessage", Fault::CloseAfterTaking);
    answer(&claude, &env, (CHAT, TABLE));
    assert_eq!(forms(&telegram), [true]);
    env.once();
    env.once();
    let sent = telegram.sent();
    assert_eq!(forms(&telegram), [true, true]);
    assert!(!sent[0].visible.contains(MARK) && sent[1].visible.contains(MARK));
    // A repeat that is refused goes plain, and bears the mark too.
    telegram.fail_next("sendRichMessage", Fault::CloseAfterTaking);
    answer(&claude, &env, (CHAT, TABLE));
    telegram.fail_next("sendRichMessage", Fault::Refuse(400, "Bad Request: can't parse rich message", json!(null)));
    env.once();
    env.once();
    assert_eq!(forms(&telegram), [true, true, true, false]);
    assert!(telegram.sent()[3].visible.contains(MARK));
    env.check_sound();
}

#[test]
fn a_kill_while_a_rich_message_is_sent_loses_nothing() {
    let (telegram, claude, env) = with_rich_messages();
    telegram.fail_next("sendRichMessage", Fault::Stall);
    env.receive(CHAT, "tell me about rivers");
    claude.expect(reply("t1", TABLE));
    claude.expect(Reply::text("Done."));
    let wake = start_wake(&env);
    telegram.wait_for_calls("sendRichMessage", 1, PATIENCE);
    wake.signal(Signal::KILL);
    wake.end();
    env.once();
    env.once();
    assert_eq!(forms(&telegram), [true]);
    assert!(telegram.sent()[0].text.starts_with(RICH_TABLE) && telegram.sent()[0].visible.contains(MARK));
    env.check_sound();
}
