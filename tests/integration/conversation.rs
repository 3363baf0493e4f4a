//! How people talk, over real sockets: albums and long texts in parts, words taken back, groups and their topics.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

use reveille_base::{clock::parse_time, types::ChatRef};
use reveille_store::{NewOutgoing, OutgoingKind};

use crate::{
    support::story::with_claude,
    support::{
        bot::{Stage, assert_token_hidden},
        claude::Reply,
        env::{CHAT, NOW, TestEnv, eventually},
        telegram::{FakeTelegram, Fault},
    },
};

const PATIENCE: Duration = Duration::from_secs(60);
const GROUP: i64 = -1001;
/// The bot, as the fake server has it.
const BOT: i64 = 99;

/// A message of Ana's in her private chat, with more fields or other ones.
fn message(update_id: i64, with: &Value) -> Value {
    let mut message = json!({"message_id": update_id - 900, "date": 1_795_000_000,
        "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}});
    for (field, value) in with.as_object().unwrap() {
        message[field] = value.clone();
    }
    json!({"update_id": update_id, "message": message})
}

/// The same in a group that has topics.
fn in_group(update_id: i64, with: &Value) -> Value {
    let mut update = message(update_id, with);
    update["message"]["chat"] = json!({"id": GROUP, "type": "supergroup", "title": "Home", "is_forum": true});
    update
}

fn edit_of(update: &Value, update_id: i64, with: &Value) -> Value {
    let mut message = update["message"].clone();
    message["edit_date"] = json!(1_795_000_009);
    for (field, value) in with.as_object().unwrap() {
        message[field] = value.clone();
    }
    json!({"update_id": update_id, "edited_message": message})
}

fn picture(update_id: i64, caption: &str) -> Value {
    let size = json!({"file_id": format!("F{update_id}"), "file_unique_id": format!("U{update_id}"), "width": 90, "height": 60});
    message(update_id, &json!({"photo": [size], "caption": caption, "media_group_id": "1375"}))
}

/// A stage on which time passes: what is held is held by the clock.
fn stage_with_time() -> Stage {
    let mut stage = Stage::new();
    stage.env.unset("REVEILLE_NOW");
    stage
}

/// Telegram has the files of [`picture`]s with these updates.
fn keep_pictures(stage: &Stage, update_ids: std::ops::Range<i64>) {
    update_ids.for_each(|id| stage.telegram.keep_file(&format!("F{id}"), b"\xff\xd8\xff a picture"));
}

fn reply(chat: i64, text: &str) -> NewOutgoing {
    NewOutgoing {
        chat: ChatRef::from_telegram(chat),
        text: text.to_owned(),
        kind: OutgoingKind::Reply,
        ..NewOutgoing::default()
    }
}

fn texts(stage: &Stage) -> Vec<String> {
    stage.env.received().into_iter().map(|message| message.text).collect()
}

#[test]
fn an_album_is_taken_up_whole_though_the_bot_is_killed_between_its_parts() {
    let stage = stage_with_time();
    keep_pictures(&stage, 1000..1003);
    let bot = stage.start_polling();
    stage.telegram.push_raw(picture(1000, "the roof"));
    eventually("the first part is stored", || stage.stored() == 1);
    bot.signal(Signal::KILL);
    assert_token_hidden(&bot.end());
    stage.telegram.push_raw(picture(1001, ""));
    stage.telegram.push_raw(picture(1002, "the bill"));
    // Enough time for the rest, whatever the machine does meanwhile.
    stage.env.put_off_queued(60);
    let bot = stage.start_polling();
    stage.wait_until_confirmed();
    eventually("all parts are there", || texts(&stage) == ["[photo]\nthe roof\n[photo]\n[photo]\nthe bill"]);
    assert_eq!(stage.env.attachments_of(1).len(), 3);
    assert_eq!(stage.starts().len(), 0, "it waits for what may come");
    stage.env.put_off_queued(1);
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_wake_does_not_take_up_half_an_album() {
    let stage = Stage::new();
    keep_pictures(&stage, 1000..1001);
    let bot = stage.start_polling();
    stage.telegram.push_raw(picture(1000, "the roof"));
    stage.wait_until_confirmed();
    eventually("its file is here", || stage.env.attachments_in("kept").len() == 1);
    stage.end(bot);
    // Cron comes by at the same moment, and a little later.
    let early = stage.env.once();
    assert_eq!((&early["reasons"], stage.env.queued()[0].cycle_id.as_ref()), (&json!([]), None), "{early}");
    let mut env = stage.env;
    env.at("2026-11-21T14:00:03Z");
    let later = env.once();
    assert_eq!(later["reasons"], json!(["1 message in chat 4242"]), "{later}");
}

#[test]
fn a_long_paste_is_one_message_again() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let (head, tail) = ("word ".repeat(819).trim_end().to_owned(), "and the last words".to_owned());
    stage.telegram.push_raw(message(1000, &json!({"text": head})));
    eventually("the first part is stored", || stage.stored() == 1);
    stage.telegram.push_raw(message(1001, &json!({"text": tail, "date": 1_795_000_001})));
    stage.say("by the way");
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(texts(&stage), [format!("{head}\n{tail}"), "by the way".to_owned()]);
}

#[test]
fn a_live_location_counts_once_and_an_edit_without_a_change_is_none() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let at = |latitude: f64| json!({"location": {"latitude": latitude, "longitude": 13.4, "live_period": 900}});
    let (location, link) = (message(1000, &at(52.5)), message(1001, &json!({"text": "see https://example.org"})));
    stage.telegram.push_raw(location.clone());
    stage.telegram.push_raw(link.clone());
    stage.wait_until_confirmed();
    stage.wait_for_starts(1);
    stage.answer_all();
    stage.telegram.push_raw(edit_of(&location, 1002, &at(52.6)));
    // The preview was made.
    stage.telegram.push_raw(edit_of(&link, 1003, &json!({"link_preview_options": {"url": "https://example.org"}})));
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(texts(&stage), ["[live location 52.50000, 13.40000]", "see https://example.org"]);
}

#[test]
fn in_a_group_it_hears_what_is_said_to_it_alone() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    let bot = stage.start_polling();
    let said = [
        json!({"text": "Reveille: what's due?"}),
        json!({"text": "ask @reveille_bot", "entities": [{"type": "mention", "offset": 4, "length": 13}]}),
        json!({"text": "🙂 you there", "entities": [{"type": "text_mention", "offset": 3, "length": 3,
            "user": {"id": BOT, "is_bot": true, "first_name": "Reveille"}}]}),
        json!({"text": "why?", "reply_to_message": {"message_id": 5, "date": 1, "text": "Done.",
            "chat": {"id": GROUP, "type": "supergroup", "title": "Home"}, "from": {"id": BOT, "is_bot": true, "first_name": "R"}}}),
        json!({"text": "/weather@reveille_bot"}),
    ];
    let others = [
        json!({"text": "what's for dinner?"}),
        json!({"text": "Reveilles are early"}),
        json!({"text": "ask @other_bot", "entities": [{"type": "mention", "offset": 4, "length": 10}]}),
        json!({"text": "no, you", "reply_to_message": {"message_id": 5, "date": 1, "text": "me?",
            "chat": {"id": GROUP, "type": "supergroup", "title": "Home"}, "from": {"id": 8, "is_bot": false, "first_name": "Bo"}}}),
        json!({"text": "/weather"}),
        json!({"text": "/weather@other_bot"}),
        json!({"sticker": {"file_id": "S", "file_unique_id": "S", "type": "regular", "width": 1, "height": 1,
            "is_animated": false, "is_video": false, "emoji": "👍"}}),
        json!({"hologram": {"beams": 3}}),
    ];
    for (id, with) in (1000..).zip(said.iter().chain(&others)) {
        stage.telegram.push_raw(in_group(id, with));
    }
    stage.wait_until_confirmed();
    let heard: Vec<String> = said.iter().map(|with| with["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts(&stage), heard);
    // What was overheard isn't kept when it is edited, unless it is said to the bot then.
    let overheard = in_group(1005, &others[0]);
    stage.telegram.push_raw(edit_of(&overheard, 1100, &json!({"text": "what's for lunch?"})));
    stage.telegram.push_raw(edit_of(&overheard, 1101, &json!({"text": "Reveille, what's for lunch?"})));
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(texts(&stage)[said.len()..], ["Reveille, what's for lunch?"]);
}

#[test]
fn an_album_in_a_group_is_said_to_it_by_one_caption() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    keep_pictures(&stage, 1000..1004);
    let in_group = |update: Value| {
        let mut update = update;
        update["message"]["chat"] = json!({"id": GROUP, "type": "supergroup", "title": "Home"});
        update
    };
    // Each comes in a batch of its own.
    stage.telegram.push_raw(in_group(picture(1000, "")));
    let bot = stage.start_polling();
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 0);
    stage.telegram.push_raw(in_group(picture(1001, "Reveille, which is better?")));
    stage.wait_until_confirmed();
    stage.telegram.push_raw(in_group(picture(1002, "")));
    let mut others = in_group(picture(1003, "what a day"));
    others["message"]["media_group_id"] = json!("another");
    stage.telegram.push_raw(others);
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(texts(&stage), ["[photo]\n[photo]\nReveille, which is better?\n[photo]"]);
}

#[test]
fn a_long_text_in_a_group_is_said_to_it_by_its_last_part() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    let first = "word ".repeat(816);
    let rest =
        json!({"text": "@reveille_bot, summarise", "entities": [{"type": "mention", "offset": 0, "length": 13}]});
    stage.telegram.push_raw(in_group(1000, &json!({"text": first.trim()})));
    stage.telegram.push_raw(in_group(1001, &rest));
    let bot = stage.start_polling();
    stage.wait_until_confirmed();
    // To others alone, it isn't kept.
    stage.telegram.push_raw(in_group(1002, &json!({"text": first, "date": 1_795_000_060})));
    stage.wait_until_confirmed();
    stage.end(bot);
    assert_eq!(texts(&stage), [format!("{}\n@reveille_bot, summarise", first.trim())]);
}

#[test]
fn an_answer_goes_to_the_topic_of_its_question() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &[]);
    let asked = |text: &str, topic: i64| {
        json!({"text": format!("@reveille_bot {text}"), "message_thread_id": topic, "is_topic_message": true,
            "entities": [{"type": "mention", "offset": 0, "length": 13}]})
    };
    telegram.push_raw(in_group(1000, &asked("remember that the wifi code is 1234", 3)));
    let sent = telegram.wait_for_sent(1, PATIENCE);
    assert_eq!((sent[0].chat_id, sent[0].thread_id, sent[0].reply_to), (GROUP, Some(3), Some(100)), "{sent:#?}");
    // The general topic has a number and isn't written to by it.
    telegram.push_raw(in_group(1001, &asked("list reminders", 1)));
    telegram.push_raw(in_group(
        1002,
        &json!({"text": "/status@reveille_bot", "message_thread_id": 4, "is_topic_message": true}),
    ));
    let sent = telegram.wait_for_sent(3, PATIENCE);
    let mut threads: Vec<_> = sent[1..].iter().map(|message| message.thread_id).collect();
    threads.sort_unstable();
    assert_eq!(threads, [None, Some(4)], "{sent:#?}");
    bot.signal(Signal::TERM);
    bot.end().ok();
}

#[test]
fn a_group_that_moved_is_told_to_the_owner_once() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},-77"));
    let bot = stage.start_polling();
    // What is open there: an answer that is put off, a reminder that is due, a question.
    let answer = reply(-77, "the bill is paid");
    let answer = stage.env.store().outbox_mut().plan_message(&answer, parse_time(NOW).unwrap()).unwrap().unwrap();
    stage.env.put_reply_to(answer, 100);
    stage.env.put_off_parts("2026-11-21T14:10:00.000Z", "the group has become a supergroup");
    stage.env.put_reminder(-77, "Tea", "2026-11-21T14:59:00", "2026-11-21T13:59:00Z");
    stage.env.receive(-77, "remember that the wifi code is 1234");
    let mut old = message(1000, &json!({"migrate_to_chat_id": GROUP}));
    old["message"]["chat"] = json!({"id": -77, "type": "group", "title": "Home"});
    let mut new = message(1001, &json!({"migrate_from_chat_id": -77}));
    new["message"]["chat"] = json!({"id": GROUP, "type": "supergroup", "title": "Home"});
    let mut unlisted = message(1002, &json!({"migrate_to_chat_id": -1009}));
    unlisted["message"]["chat"] = json!({"id": -78, "type": "group", "title": "Elsewhere"});
    for update in [old, new, unlisted] {
        stage.telegram.push_raw(update);
    }
    stage.wait_until_confirmed();
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    stage.end(bot);
    assert_eq!((stage.telegram.sent().len(), sent[0].chat_id, stage.stored()), (1, CHAT, 1));
    assert!(
        sent[0].visible.contains("replace -77 with -1001") && sent[0].visible.contains("ALLOWED_CHAT_IDS"),
        "{sent:#?}"
    );
    // Wakes work, and nothing is sent to a group that nobody has listed.
    while stage.env.once()["outcome"] != "idle" {}
    assert_eq!(stage.telegram.sent().len(), 1);
    let mut states = stage.env.part_states();
    states.retain(|state| state != "sent");
    assert!(!states.is_empty() && states.iter().all(|state| state == "planned"), "{states:?}");
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GROUP}"));
    stage.env.once();
    let sent = stage.telegram.sent();
    let there: Vec<_> = sent[1..].iter().map(|message| (message.chat_id, message.reply_to)).collect();
    assert_eq!(there, [(GROUP, None); 3], "{sent:#?}");
    let said = |words: &str| sent[1..].iter().any(|message| message.visible.contains(words));
    assert!(said("the bill is paid") && said("Tea") && said("1234"), "{sent:#?}");
}

#[test]
fn a_correction_is_no_second_command() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &[]);
    let asked = message(1000, &json!({"text": "remind me tomorrow at 5 pm to call Anna"}));
    telegram.push_raw(asked.clone());
    telegram.wait_for_sent(1, PATIENCE);
    telegram.push_raw(edit_of(&asked, 1001, &json!({"text": "remind me tomorrow at 6 pm to call Anna"})));
    let sent = telegram.wait_for_sent(2, PATIENCE);
    assert!(sent[1].visible.contains("I have changed nothing"), "{sent:#?}");
    assert_eq!(sent[1].reply_to, Some(100));
    env.wait_for_end_of_wake();
    bot.signal(Signal::TERM);
    bot.end().ok();
    assert_eq!(env.reminders().len(), 1);
    assert!(env.queued().is_empty());
}

/// A long answer is one message and one sound, whatever becomes of the first try.
#[test]
fn an_answer_of_many_messages_comes_as_one_file_with_its_beginning() {
    let (telegram, claude, mut env) = with_claude();
    env.set("TELEGRAM_RICH", "never");
    let long = format!("**All of it**, as on https://e.org:\n\n{}", "- another line of it\n".repeat(3_000).trim_end());
    env.receive(CHAT, "tell me all");
    claude.expect(Reply::text(&long));
    telegram.fail_next("sendDocument", Fault::CloseAfterTaking);
    env.once();
    env.once();
    let said = telegram.sent();
    assert_eq!(said.len(), 2, "{said:#?}");
    for message in &said {
        assert_eq!(message.file.as_deref(), Some(long.as_str()));
        assert!(message.visible.starts_with("All of it, as on https://e.org:"), "{}", message.visible);
        assert!(message.visible.contains("The whole answer is in the file."), "{}", message.visible);
    }
    assert!(said[1].visible.contains("This may be a repeat"), "{}", said[1].visible);
    assert_eq!(env.once()["outcome"], "idle");
    // A shorter one is told in parts, and only the first makes a sound.
    env.receive(CHAT, "and a little less");
    claude.expect(Reply::text(&"What is long. ".repeat(600)));
    env.once();
    let silent: Vec<bool> = telegram.sent()[2..].iter().map(|message| message.silent).collect();
    assert_eq!(silent, [false, true, true]);
    env.check_sound();
}
