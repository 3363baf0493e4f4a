//! Tests of the bot over real sockets: storing and confirming messages, permissions, its own answers, starting wakes, and surviving
//! faults.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

use reveille_base::{process::Identity, types::ChatRef};
use reveille_store::wake_lock::{LockedWork, WakeLock};

use crate::support::{
    bot::{Stage, assert_token_hidden, times},
    env::{CHAT, TestEnv, eventually},
    telegram::{FakeTelegram, Fault},
};

const GROUP: i64 = -1001;
const STRANGER: i64 = 666;
const PATIENCE: Duration = Duration::from_secs(60);

fn edited(update_id: i64, message_id: i64, text: &str) -> Value {
    json!({"update_id": update_id, "edited_message": {"message_id": message_id, "date": 1_795_000_000,
        "edit_date": 1_795_000_009, "text": text, "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}}})
}

#[test]
fn a_message_is_stored_before_it_is_confirmed_and_never_twice() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    // The poll that would confirm the message is never answered, so it confirms nothing.
    stage.telegram.fail_next("getUpdates", Fault::Stall);
    stage.say("keep me");
    stage.telegram.wait_for_calls("getUpdates", 2, PATIENCE);
    assert_eq!((stage.stored(), stage.telegram.unconfirmed()), (1, 1));
    bot.signal(Signal::KILL);
    assert_token_hidden(&bot.end());

    // The next bot confirms what the dead one stored.
    let bot = stage.start();
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.stored(), 1);

    // Without the stored offset, the same update comes again, and is recognised.
    let again = stage.telegram.calls("getUpdates").last().unwrap()["offset"].as_i64().unwrap() - 1;
    stage.env.forget_updates();
    stage.telegram.push_raw(json!({"update_id": again, "message": {"message_id": again - 900, "date": 1_795_000_000,
        "text": "keep me", "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}}}));
    let bot = stage.start();
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.stored(), 1);
}

#[test]
fn a_message_that_cannot_be_stored_is_not_confirmed_and_comes_again() {
    let mut stage = Stage::new();
    stage.env.set("REVEILLE_LOG", "info");
    let bot = stage.start_polling();
    stage.env.refuse("INSERT", "incoming_messages", "TRUE");
    stage.say("keep me");
    stage.telegram.wait_for_calls("getUpdates", 3, PATIENCE);
    assert_eq!((stage.stored(), stage.telegram.unconfirmed()), (0, 1));
    let polls = stage.telegram.calls("getUpdates");
    assert!(polls.iter().all(|poll| poll.get("offset").is_none()), "{polls:?}");
    let told = || stage.telegram.sent().iter().filter(|sent| sent.visible.contains("can't use my database")).count();
    eventually("the owner is told in the chat", || told() == 1);
    stage.env.refuse_no_more("incoming_messages");
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 1);
    let ran = stage.end(bot);
    assert_eq!(times(&ran, "couldn't store new messages"), 1, "{}", ran.notices());
    assert_eq!(times(&ran, "stored again"), 1, "{}", ran.notices());
    assert_eq!(told(), 1);
}

#[test]
fn a_stranger_gets_silence_and_leaves_a_count() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    for text in ["/start", "hello?", "/status"] {
        stage.telegram.push_text(STRANGER, STRANGER, text);
    }
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.stored(), 0);
    assert_eq!(stage.env.count_from_strangers(), 3);
    assert_eq!(stage.env.outbox().len(), 0);
    assert!(stage.telegram.sent().is_empty() && stage.starts().is_empty());
}

#[test]
fn in_a_group_both_the_group_and_the_sender_must_be_listed() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    let bot = stage.start_polling();
    stage.telegram.push_text(GROUP, CHAT, "Reveille, listed twice");
    stage.telegram.push_text(GROUP, STRANGER, "Reveille, a listed group only");
    stage.telegram.push_text(-1002, CHAT, "Reveille, a listed person only");
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.stored(), 1);
    let text = stage.env.message(1).text;
    assert_eq!(text, "Reveille, listed twice");
    assert_eq!(stage.env.count_from_strangers(), 2);
}

#[test]
fn commands_are_answered_by_the_bot_itself() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    for command in ["/start", "/help", "/status"] {
        stage.say(command);
    }
    let sent = stage.telegram.wait_for_sent(3, PATIENCE);
    assert!(sent[0].visible.starts_with("Hello!"), "{sent:#?}");
    assert!(sent[1].visible.contains("remind me"), "{sent:#?}");
    assert!(sent[2].visible.contains("Idle") && sent[2].visible.contains("I haven't done anything yet"), "{sent:#?}");
    assert!(sent.iter().all(|message| message.chat_id == CHAT && message.reply_to.is_some()));
    eventually("every answer is marked as sent", || {
        stage.env.outbox_of("command").iter().filter(|message| message.sent_at.is_some()).count() == 3
    });
    stage.telegram.wait_for_calls("setMyCommands", 1, PATIENCE);
    let menu = stage.telegram.calls("setMyCommands");
    assert_eq!((menu.len(), menu[0]["commands"][0]["command"].as_str()), (1, Some("status")));
    stage.end(bot);
    // Commands aren't stored as messages, and none of them needed a wake.
    assert_eq!((stage.stored(), stage.starts().len()), (0, 0));
}

#[test]
fn the_menu_is_registered_as_soon_as_possible_and_nothing_waits_for_it() {
    let stage = Stage::new();
    for fault in [Fault::CloseBefore, Fault::Status(429, Some(1)), Fault::Stall] {
        stage.telegram.fail_next("setMyCommands", fault);
    }
    let bot = stage.start_polling();
    stage.telegram.wait_for_calls("setMyCommands", 3, PATIENCE);
    // The third attempt hangs.
    stage.say("/help");
    stage.telegram.wait_for_sent(1, PATIENCE);
    stage.end(bot);
    let bot = stage.start();
    stage.telegram.wait_for_calls("setMyCommands", 4, PATIENCE);
    stage.say("/help");
    stage.telegram.wait_for_sent(2, PATIENCE);
    stage.end(bot);
    assert_eq!(stage.telegram.calls("setMyCommands").len(), 4, "an accepted menu isn't sent again");
}

#[test]
fn a_command_is_answered_while_a_wake_runs() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    stage.say("work on this");
    stage.wait_for_starts(1);
    stage.say("/status");
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.contains("1 message waiting"), "{sent:#?}");
    stage.answer_all();
    stage.end(bot);
    assert_eq!(stage.starts().len(), 1);
}

#[test]
fn nobody_waits_for_the_answers_to_anothers_flood_of_commands() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555"));
    stage.telegram.fail_next("sendMessage", Fault::Held);
    let bot = stage.start_polling();
    for _ in 0..25 {
        stage.say("/help");
    }
    stage.telegram.wait_for_calls("sendMessage", 1, PATIENCE);
    stage.wait_until_confirmed();
    stage.telegram.push_text(5555, 5555, "/help");
    stage.wait_until_confirmed();
    stage.telegram.release();
    let sent = stage.telegram.wait_for_sent(22, PATIENCE);
    let chats: Vec<i64> = sent.iter().map(|message| message.chat_id).collect();
    assert_eq!(chats[..3], [CHAT, 5555, CHAT]);
    assert!(sent[21].visible.contains("I'm leaving out some answers"), "{:#?}", sent[21]);
    stage.end(bot);
    assert_eq!(stage.telegram.sent().len(), 22);
}

#[test]
fn an_answer_that_a_kill_cut_off_is_repeated_with_a_mark() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &[]);
    telegram.fail_next("sendMessage", Fault::Stall);
    telegram.push_text(CHAT, CHAT, "/status");
    telegram.wait_for_calls("sendMessage", 1, PATIENCE);
    bot.signal(Signal::KILL);
    bot.end();
    // The next bot finds the answer and starts a wake for it: wakes settle answers in doubt.
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &[]);
    let sent = telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.ends_with("the first try wasn't confirmed."), "{sent:#?}");
    eventually("the answer is marked as sent", || env.count_unsent() == 0);
    bot.signal(Signal::TERM);
    assert_token_hidden(&bot.end().ok());
    assert_eq!(telegram.sent().len(), 1);
}

#[test]
fn a_burst_of_messages_starts_one_wake() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    for n in 0..7 {
        stage.say(&format!("message {n}"));
    }
    stage.wait_for_starts(1);
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 7);
    stage.answer_all();
    stage.end(bot);
    assert_eq!(stage.starts(), ["--once --reason nudge --no-console"]);
}

#[test]
fn a_message_left_after_a_wake_starts_another() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    stage.say("first");
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.say("second, while it runs");
    stage.wait_until_confirmed();
    assert_eq!(stage.starts().len(), 1);
    stage.let_wakes_end();
    stage.wait_for_starts(2);
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_reminder_starts_a_wake_at_its_time() {
    let mut stage = Stage::new();
    stage.env.unset("REVEILLE_NOW");
    let bot = stage.start_polling();
    stage.env.put_reminder_in(2, CHAT, "stretch");
    // The message makes the bot look at the database, where it finds the reminder.
    stage.let_wakes_end();
    stage.say("hello");
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.wait_for_starts(2);
    stage.env.end_reminders();
    stage.end(bot);
}

#[test]
fn a_clock_that_was_set_back_starts_a_wake_to_plan_reminders_again() {
    let mut stage = Stage::new();
    stage.env.at("2026-11-21T14:00:00Z");
    let bot = stage.start_polling();
    stage.let_wakes_end();
    stage.env.put_daily_reminder(CHAT, "stretch", "09:00", "2026-11-26T09:00:00");
    stage.env.put_reminders_written("2026-11-25T09:00:00.000Z");
    // The message makes the bot look at the database.
    stage.say("hello");
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.wait_for_starts(2);
    stage.env.put_reminders_written("2026-11-21T14:00:00.000Z");
    stage.end(bot);
}

#[test]
fn typing_is_shown_while_a_wake_runs_and_not_after() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let me = Identity::current();
    let now = reveille_base::clock::parse_time(crate::support::env::NOW).unwrap();
    let lock_path = stage.env.workspace().join(".wake-lock");
    let mut lock = WakeLock::try_acquire(&lock_path, &me, now).unwrap();
    lock.write_holder(
        &me,
        now,
        LockedWork { cycle_id: Some("c"), chat: Some(ChatRef::from_telegram(CHAT)), thread_id: Some(3), messages: &[] },
    )
    .unwrap();
    stage.telegram.wait_for_calls("getUpdates", 1, PATIENCE);
    // A wake that the bot didn't start: typing is shown while it holds the lock, and no second wake is started.
    stage.say("think about this");
    stage.telegram.wait_for_calls("sendChatAction", 2, PATIENCE);
    assert!(stage.starts().is_empty());
    let typing = (CHAT, Some(3), "typing".to_owned());
    assert!(stage.telegram.actions().iter().all(|action| *action == typing));
    drop(lock);
    // A wake that the bot started, which works for the terminal.
    stage.wait_for_starts(1);
    let shown = stage.telegram.actions().len();
    let mut lock = WakeLock::try_acquire(&lock_path, &me, now).unwrap();
    lock.write_holder(
        &me,
        now,
        LockedWork { cycle_id: Some("c"), chat: Some(ChatRef::TERMINAL), ..LockedWork::default() },
    )
    .unwrap();
    stage.answer_all();
    drop(lock);
    stage.let_wakes_end();
    // The bot finds a message that was queued by hand only at its next periodic look, long after typing would have been shown
    // again.
    stage.env.queue_by_hand(0, "by hand");
    stage.wait_for_starts(2);
    stage.answer_all();
    assert_eq!(stage.telegram.actions().len(), shown);
    stage.end(bot);
}

#[test]
fn network_failures_are_survived_and_reported_once() {
    let mut stage = Stage::new();
    stage.env.set("REVEILLE_LOG", "info");
    // The network fails at the start, and again later.
    stage.telegram.fail_next("getMe", Fault::CloseBefore);
    stage.telegram.fail_next("getMe", Fault::Foreign(502));
    stage.telegram.fail_next("setMyCommands", Fault::CloseBefore);
    let bot = stage.start();
    stage.say("hello");
    stage.wait_until_confirmed();
    stage.telegram.fail_next("getUpdates", Fault::Malformed);
    stage.telegram.fail_next("getUpdates", Fault::Status(500, None));
    stage.say("still there?");
    eventually("both are stored", || stage.stored() == 2);
    stage.wait_until_confirmed();
    // The poll for this message fails first, and the batch comes again.
    stage.say("and now?");
    eventually("all are stored", || stage.stored() == 3);
    stage.wait_until_confirmed();
    let ran = stage.end(bot);
    // Two periods of trouble, each reported once.
    assert_eq!(times(&ran, "keep trying to fetch"), 2, "{}", ran.notices());
    assert_eq!(times(&ran, "can be reached again"), 2, "{}", ran.notices());
}

#[test]
fn required_waits_are_obeyed_and_a_rival_is_explained_once() {
    let stage = Stage::new();
    stage.telegram.fail_next("getUpdates", Fault::Status(429, Some(1)));
    for _ in 0..2 {
        let description = "Conflict: terminated by other getUpdates request";
        stage.telegram.fail_next("getUpdates", Fault::Refuse(409, description, json!({})));
    }
    let bot = stage.start();
    stage.say("hello");
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 1);
    let ran = stage.end(bot);
    assert_eq!(times(&ran, "asks me to wait 1 s"), 1, "{}", ran.notices());
    assert_eq!(times(&ran, "something else is fetching this bot's messages"), 1, "{}", ran.notices());
}

#[test]
fn health_reports_a_rival_for_as_long_as_it_takes_the_messages() {
    let stage = Stage::new();
    let of_telegram = || {
        let report = stage.env.health(&["check", "--json"]).json();
        report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "telegram").unwrap().clone()
    };
    let description = "Conflict: terminated by other getUpdates request";
    stage.telegram.fail_next("getUpdates", Fault::Refuse(409, description, json!({})));
    stage.telegram.fail_next("getUpdates", Fault::Held);
    let bot = stage.start();
    stage.telegram.wait_for_calls("getUpdates", 2, PATIENCE);
    assert_eq!(of_telegram()["status"], "warn");
    assert!(of_telegram()["detail"].as_str().unwrap().contains("fetches no messages"), "{}", of_telegram());
    stage.telegram.release();
    stage.say("hello");
    stage.wait_until_confirmed();
    assert_eq!(of_telegram()["status"], "ok");
    stage.end(bot);
}

#[test]
fn an_update_of_an_unknown_kind_is_kept() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let person = json!({"id": CHAT, "is_bot": false, "first_name": "Ana"});
    stage.telegram.push_raw(json!({"update_id": 1000, "hologram": {"from": person, "beams": 3,
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}}}));
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.env.message(1).kind, "unsupported");
    assert!(stage.env.message(1).raw.unwrap().contains("beams"));
}

#[test]
fn an_edit_changes_a_queued_message_and_corrects_an_answered_one() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let first = stage.say("buy mlik");
    let message_id = first - 900;
    stage.telegram.push_raw(edited(first + 1, message_id, "buy milk"));
    stage.wait_until_confirmed();
    let text = || stage.env.message(1).text;
    assert_eq!((stage.stored(), text()), (1, "buy milk".to_owned()));
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.telegram.push_raw(edited(first + 2, message_id, "/status"));
    stage.wait_until_confirmed();
    // An edit never runs a command: the bot says so, and stores a correction of the earlier message.
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.starts_with("I don't run commands from edited messages"), "{sent:#?}");
    assert_eq!((stage.stored(), stage.telegram.sent().len()), (2, 1));
    let correction = "[edited an earlier message, which said: “buy milk”; it says now:]\n/status";
    assert!(stage.env.received().iter().any(|message| message.kind == "correction" && message.text == correction));
    assert_eq!(text(), "buy milk");
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_new_token_does_not_mix_offsets() {
    let stage = Stage::new();
    drop(stage.env.store());
    stage.env.put_next_update(98, 700_000);
    let bot = stage.start_polling();
    assert!(stage.telegram.calls("getUpdates")[0].get("offset").is_none());
    stage.say("hello");
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!((stage.env.next_update(98), stage.env.next_update(99)), (700_000, 1_001));
}

#[test]
fn a_second_bot_is_refused() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let second = stage.env.bot(&[]);
    assert_eq!(second.code, 1, "{second:#?}");
    second.assert_tells("another bot is already running on this workspace");
    // The bot that cron starts is silent about it, since cron starts one every five minutes.
    let crons = stage.env.bot(&["--unless-running"]).ok();
    crons.assert_never_tells("another bot");
    stage.say("the first one goes on");
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(stage.stored(), 1);
}

#[test]
fn without_a_token_the_bot_never_runs() {
    let mut stage = Stage::new();
    stage.env.unset("TELEGRAM_BOT_TOKEN");
    for arguments in [&[][..], &["run"], &["send", "--chat", "4242", "hi"], &["pair"], &["webhook"]] {
        let ran = stage.env.bot(arguments);
        assert_eq!(ran.code, 78, "{ran:#?}");
        ran.assert_tells("TELEGRAM_BOT_TOKEN");
    }
    assert!(!stage.env.workspace().exists());
}

#[test]
fn an_unknown_token_is_a_configuration_error() {
    let mut stage = Stage::new();
    stage.env.set("TELEGRAM_BOT_TOKEN", "99:AAotherSecretSecretSecret-Secret_abc");
    let ran = stage.env.bot(&["run"]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    ran.assert_tells("TELEGRAM_BOT_TOKEN").assert_tells("BotFather");
    assert_token_hidden(&ran);
}

#[test]
fn a_bot_asked_to_end_lets_the_running_wake_finish() {
    let stage = Stage::new();
    let (bot, log) = stage.start_logged("fake-wake");
    stage.say("hello");
    stage.wait_for_starts(1);
    stage.answer_all();
    bot.signal(Signal::TERM);
    let logged = |what: &str| std::fs::read_to_string(&log).unwrap().contains(what);
    eventually("the bot stops polling", || logged("no more polling"));
    // The bot waits for the wake, and accepts no new messages.
    stage.say("too late for this one");
    assert!(Identity::for_pid(bot.pid()).is_some());
    stage.let_wakes_end();
    bot.end().ok();
    assert!(logged("the wake has ended"));
    assert_eq!((stage.stored(), stage.telegram.unconfirmed()), (1, 1));
}

#[test]
fn a_wake_that_cannot_be_started_is_tried_again() {
    let stage = Stage::new();
    let (bot, log) = stage.start_logged("not-there-yet");
    stage.say("hello");
    eventually("the start fails", || {
        std::fs::read_to_string(&log).unwrap().contains("not-there-yet could not be started")
    });
    stage.say("/status");
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.contains("1 message waiting"), "{sent:#?}");
    std::fs::hard_link(stage.env.path("fake-wake"), stage.env.path("not-there-yet")).unwrap();
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn send_delivers_at_once_while_a_bot_runs() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let ran = stage.env.bot(&["send", "--chat", "4242", "**done**:", "3 < 4"]).ok();
    assert_eq!(ran.stdout, "delivered\n");
    let sent = stage.telegram.sent();
    assert_eq!((sent.len(), sent[0].visible.as_str(), sent[0].html), (1, "done: 3 < 4", true));
    stage.end(bot);
}

#[test]
fn send_splits_long_texts() {
    let stage = Stage::new();
    let text = format!("A log:\n\n```\n{}```\nThe end.", "a line of the log\n".repeat(500));
    let ran = stage.env.run_with_input(env!("CARGO_BIN_EXE_bot"), &["send", "--chat", "4242", "-"], &text).ok();
    assert_eq!(ran.stdout, "delivered\n");
    let sent = stage.telegram.sent();
    assert!(sent.len() >= 3, "{}", sent.len());
    let lines: usize = sent.iter().map(|part| part.visible.matches("a line of the log").count()).sum();
    assert_eq!(lines, 500);
    assert!(sent.last().unwrap().visible.ends_with("The end."));
}

#[test]
fn send_reports_the_outcome() {
    let stage = Stage::new();
    let send = |text: &str| stage.env.bot(&["send", "--chat", "4242", text]);
    stage.telegram.fail_next("sendMessage", Fault::Status(429, Some(3600)));
    let ran = send("waits").ok();
    assert!(ran.stdout.starts_with("queued: a later wake delivers it, not before Sat 2026-11-21 16:00"), "{ran:#?}");
    stage.telegram.fail_next("sendMessage", Fault::CloseAfterTaking);
    let ran = send("in doubt").ok();
    assert!(ran.stdout.contains("may have arrived"), "{ran:#?}");
    stage.telegram.fail_next("sendMessage", Fault::Refuse(403, "Forbidden: bot was blocked by the user", json!({})));
    let ran = send("never");
    ran.assert_fails(1, "blocked");
    assert_eq!(stage.env.outbox().len(), 3);
}

#[test]
fn send_refuses_other_chats_and_bad_texts() {
    let stage = Stage::new();
    for (chat, text, why) in
        [("666", "hi", "ALLOWED_CHAT_IDS"), ("-5", "hi", "ALLOWED_CHAT_IDS"), ("4242", " ", "empty")]
    {
        let ran = stage.env.bot(&["send", "--chat", chat, text]);
        ran.assert_fails(2, why).assert_tells("Nothing was queued");
    }
    let ran =
        stage.env.run_with_input(env!("CARGO_BIN_EXE_bot"), &["send", "--chat", "4242", "-"], &"x".repeat(100_001));
    ran.assert_fails(2, "longer than");
    assert!(stage.telegram.sent().is_empty() && !stage.env.workspace().exists());
}

#[test]
fn send_to_the_terminal_waits_for_one_or_goes_to_the_owners_chat() {
    let stage = Stage::new();
    let ran = stage.env.bot(&["send", "--chat", "0", "look here"]).ok();
    assert!(ran.stdout.contains("next wake in a terminal"), "{ran:#?}");
    let unseen = stage.env.wake(&["--once", "--no-console"]).ok();
    assert!(!unseen.stdout.contains("look here"), "{unseen:#?}");
    let seen = stage.env.run_for_terminal_replies();
    assert!(!seen.stdout.contains("look here"), "the message went to the owner's chat: {seen:#?}");
    assert_eq!(stage.telegram.sent()[0].visible, "look here");
    stage.env.bot(&["send", "--chat", "0", "look there"]).ok();
    let seen = stage.env.on_terminal(env!("CARGO_BIN_EXE_wake"), &["--once"]).ok();
    assert!(seen.stdout.contains("look there") && stage.telegram.sent().len() == 1, "{seen:#?}");
}

#[test]
fn a_real_wake_answers() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &[]);
    telegram.push_text(CHAT, CHAT, "remember that the wifi code is 1234");
    let sent = telegram.wait_for_sent(1, PATIENCE);
    assert_eq!((sent[0].chat_id, sent[0].reply_to), (CHAT, Some(100)));
    eventually("the wake has ended", || !env.is_locked() && env.queued().is_empty());
    bot.signal(Signal::TERM);
    let ran = bot.end().ok();
    assert_token_hidden(&ran);
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("1234"));
    assert_eq!(env.trailer("Trigger"), "nudge");
}

/// A core file would contain the token.
#[test]
fn a_program_that_dies_leaves_no_core_file() {
    use std::os::unix::process::ExitStatusExt as _;
    let stage = Stage::new();
    let died = |program: &str, args: &[&str], is_up: &dyn Fn() -> bool| {
        let script = ["-c", "ulimit -c unlimited && exec \"$0\" \"$@\"", program];
        let mut child = stage.env.command("/bin/sh", &[&script, args].concat()).spawn().unwrap();
        eventually("the program is running", is_up);
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::ABORT).unwrap();
        child.wait().unwrap()
    };
    let is_called = |name: &'static str| {
        move || {
            let named = |process: std::fs::DirEntry| std::fs::read_to_string(process.path().join("comm")).ok();
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(named).any(|comm| comm.trim_end() == name)
        }
    };
    std::fs::copy("/bin/sleep", stage.env.path("others-sleep")).unwrap();
    let other = stage.env.path("others-sleep").display().to_string();
    if !died(&other, &["600"], &is_called("others-sleep")).core_dumped() {
        eprintln!("not run: this system writes no core files");
        return;
    }
    let calls = || stage.telegram.calls("getUpdates").len();
    let bot = died(env!("CARGO_BIN_EXE_bot"), &["--wake", "/bin/true"], &|| calls() > 0);
    assert!(bot.signal().is_some() && !bot.core_dumped(), "{bot:?}");
    // A wake that keeps running, and has looked for work once.
    let has_looked =
        || stage.env.workspace().join("logs/wake.log").exists() || stage.env.workspace().join(".last-look").exists();
    let wake = died(env!("CARGO_BIN_EXE_wake"), &[], &has_looked);
    assert!(wake.signal().is_some() && !wake.core_dumped(), "{wake:?}");
}
