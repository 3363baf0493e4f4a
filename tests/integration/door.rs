//! The door over real sockets: pairing, whom the bot hears and tells, how it lives through trouble with Telegram, and that the
//! token shows nowhere.

use std::{path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    bot::{Stage, assert_token_hidden, times},
    env::{CHAT, NOW, Running, eventually},
    telegram::Fault,
};

const PATIENCE: Duration = Duration::from_secs(60);
const BOB: i64 = 5555;
const STRANGER: i64 = 666;

/// The first code in a text, as `XXXX-XXXX`.
fn code_in(text: &str) -> Option<String> {
    let is_code = |word: &&str| {
        word.len() == 9
            && word
                .chars()
                .enumerate()
                .all(|(at, c)| if at == 4 { c == '-' } else { c.is_ascii_uppercase() || c.is_ascii_digit() })
    };
    text.split_whitespace().rfind(is_code).map(str::to_owned)
}

/// Another code than this one.
fn wrong(code: &str, n: usize) -> String {
    let last = if code.ends_with('7') { '8' } else { '7' };
    format!("{}{n}{last}", code.get(..7).unwrap())
}

/// A bot that nobody may talk to, and its log.
fn unpaired() -> (Stage, Running, std::path::PathBuf) {
    let mut stage = Stage::new();
    stage.env.unset("ALLOWED_CHAT_IDS");
    let (bot, log) = stage.start_logged("fake-wake");
    (stage, bot, log)
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

#[track_caller]
fn code_of(log: &Path) -> String {
    eventually("a code is shown", || code_in(&read(log)).is_some());
    code_in(&read(log)).unwrap()
}

#[test]
fn who_sends_the_code_from_the_terminal_is_paired_and_nobody_else() {
    let (stage, bot, log) = unpaired();
    let code = code_of(&log);
    // Before: silence for everybody, and nothing kept.
    stage.say("let me in");
    stage.telegram.push_text(STRANGER, STRANGER, &wrong(&code, 0));
    stage.telegram.push_text(-1001, CHAT, &code);
    stage.wait_until_confirmed();
    assert_eq!((stage.stored(), stage.telegram.sent().len()), (0, 0));
    assert_eq!(stage.env.pairing_codes()[0].wrong, 1);

    // The code, as people type it, and at once a message: that one is heard.
    stage.say(&code.to_lowercase().replace('-', " "));
    stage.say("can you hear me?");
    stage.wait_until_confirmed();
    let welcome = stage.telegram.wait_for_sent(1, PATIENCE);
    assert_eq!((welcome[0].chat_id, welcome[0].visible.contains("We're paired")), (CHAT, true));
    eventually("the message is stored", || stage.stored() == 1);
    assert_eq!(stage.env.message(1).text, "can you hear me?");
    assert_eq!(stage.env.paired()[0], CHAT);
    stage.wait_for_starts(1);
    stage.answer_all();

    // It was for once, and the bot doesn't ask any more.
    stage.telegram.push_text(STRANGER, STRANGER, &code);
    stage.wait_until_confirmed();
    assert_eq!(stage.env.paired().len(), 1);
    assert_eq!(stage.telegram.sent().len(), 1);
    stage.end(bot);
    assert_eq!(read(&log).matches("Nobody can talk to me yet").count(), 1);

    // The next bot knows them.
    let (bot, log) = stage.start_logged("fake-wake");
    stage.say("/status");
    stage.telegram.wait_for_sent(2, PATIENCE);
    stage.end(bot);
    assert_eq!(code_in(&read(&log)), None);
}

#[test]
fn the_first_who_pairs_is_the_owner_of_bot_and_wake() {
    let (stage, bot, log) = unpaired();
    stage.say(&code_of(&log));
    stage.telegram.wait_for_sent(1, PATIENCE);
    // `bot send` writes to them, and a task's time is told to them by a wake.
    assert_eq!(stage.env.bot(&["send", "--chat", &CHAT.to_string(), "hello"]).ok().stdout, "delivered\n");
    assert_eq!(stage.env.bot(&["send", "--chat", &BOB.to_string(), "hello"]).code, 2);
    stage.end(bot);
    stage.env.once();
    let task = "# Active tasks\n\n## Call mum\n- status: active\n- touched: 2026-11-21\n- at: 2026-11-21 14:30\n";
    stage.env.write_memory("memory/project-memory/active.md", task);
    stage.env.once();
    let told = stage.telegram.sent();
    assert_eq!((told[2].chat_id, told[2].visible.contains("Call mum")), (CHAT, true), "{told:#?}");
}

#[test]
fn wrong_codes_spoil_the_code_and_a_new_one_comes() {
    let (mut stage, bot, log) = unpaired();
    let code = code_of(&log);
    for n in 0..10 {
        stage.telegram.push_text(STRANGER, STRANGER, &wrong(&code, n % 10));
    }
    stage.wait_until_confirmed();
    stage.say(&code);
    stage.wait_until_confirmed();
    assert_eq!(stage.env.paired().len(), 0);
    stage.end(bot);

    // A code is good for ten minutes.
    let (bot, log) = stage.start_logged("fake-wake");
    let late = code_of(&log);
    assert_ne!(late, code);
    let until = stage.env.pairing_codes().into_iter().map(|code| code.expires_at).max();
    assert_eq!(until.unwrap(), "2026-11-21T14:10:00.000Z", "ten minutes");
    stage.env.expire_pairing_codes("2026-11-21T13:59:59.000Z");
    stage.say(&late);
    stage.wait_until_confirmed();
    assert_eq!((stage.env.paired().len(), stage.telegram.sent().len()), (0, 0));
    stage.end(bot);

    // Neither can be used after a restart, and the new one can.
    stage.env.set("REVEILLE_LOG", "error");
    let (bot, log) = stage.start_logged("fake-wake");
    let fresh = code_of(&log);
    stage.say(&late);
    stage.say(&fresh);
    stage.telegram.wait_for_sent(1, PATIENCE);
    stage.end(bot);
    // No code is kept as it is.
    let files = files_below(&stage.env.workspace());
    assert!(!holds(&files, &fresh) && !holds(&files, &fresh.replace('-', "")));
}

#[test]
fn a_code_of_bot_pair_lets_one_more_in_and_unpair_out_again() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    let out = stage.env.path("pair.out");
    let asking = stage.env.start_logged(env!("CARGO_BIN_EXE_bot"), &["pair"], &out);
    eventually("a code is offered", || stage.env.pairing_codes().len() == 1);
    asking.signal(Signal::TERM);
    let ran = asking.end();
    let taken_back = code_in(&ran.stdout).unwrap();
    assert_eq!((ran.code, stage.env.pairing_codes().len()), (1, 0));
    stage.telegram.push_text(BOB, BOB, &taken_back);
    stage.wait_until_confirmed();
    assert_eq!(stage.env.paired().len(), 0);

    let mut asking = stage.env.command(env!("CARGO_BIN_EXE_bot"), &["pair"]);
    let mut asking = asking.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut code = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(asking.stdout.as_mut().unwrap()), &mut code).unwrap();
    stage.telegram.push_text(BOB, BOB, code.trim());
    assert!(asking.wait().unwrap().success());
    // The owner is told, and Bob is heard by the bot that runs.
    let sent = stage.telegram.wait_for_sent(2, PATIENCE);
    let told: Vec<i64> = sent.iter().map(|message| message.chat_id).collect();
    assert_eq!(told, [BOB, CHAT]);
    assert!(sent[1].visible.contains("5555"), "{sent:#?}");
    stage.telegram.push_text(BOB, BOB, "hello from Bob");
    eventually("Bob's message is stored", || stage.stored() == 1);
    assert!(stage.env.bot(&["pair", "--list"]).ok().stdout.starts_with("5555  Ana"));

    let said = stage.env.bot(&["unpair", "5555"]).ok().notices().to_owned();
    assert!(said.contains("1 message of theirs will get no answer"), "{said}");
    assert!(stage.env.queued().is_empty());
    let listed = stage.env.wake(&["queue", "list", "--all"]).ok().stdout;
    assert!(listed.contains("dropped  chat 5555  hello from Bob"), "{listed}");
    stage.telegram.push_text(BOB, BOB, "still there?");
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 1);
    assert_eq!(stage.env.bot(&["unpair", "5555"]).code, 2);
    stage.env.bot(&["unpair", &CHAT.to_string()]).assert_tells("ALLOWED_CHAT_IDS lists them");
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_code_in_the_terminal_is_void_once_somebody_may_speak() {
    let (stage, bot, log) = unpaired();
    let code = code_of(&log);
    stage.env.pair(7, "Ana", "2026-11-01T10:00:00Z");
    stage.telegram.push_text(7, 7, "hello");
    eventually("it is stored", || stage.stored() == 1);
    stage.wait_until_confirmed();
    stage.telegram.push_text(BOB, BOB, &code);
    stage.wait_until_confirmed();
    assert_eq!(stage.env.paired(), [7]);
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn who_becomes_the_owner_by_an_unpairing_is_told() {
    let mut stage = Stage::new();
    stage.env.unset("ALLOWED_CHAT_IDS");
    drop(stage.env.store());
    stage.env.pair(7, "Ana", "2026-11-01T10:00:00Z");
    stage.env.pair(8, "Bob", "2026-11-02T10:00:00Z");
    stage.env.pair(9, "Eve", "2026-11-03T10:00:00Z");
    stage.env.bot(&["unpair", "9"]).ok().assert_never_tells("owner");
    stage.env.bot(&["unpair", "7"]).ok().assert_tells("8, who paired next, is the owner now");
    stage.env.bot(&["unpair", "8"]).ok().assert_tells("Whoever pairs next becomes the owner");
}

#[test]
fn a_webhook_is_explained_once_without_its_secret_and_removed_when_asked() {
    let stage = Stage::new();
    stage.telegram.set_webhook("https://bob:pass@hooks.example.org/secret-path?key=1");
    let (bot, log) = stage.start_logged("fake-wake");
    eventually("it is explained", || read(&log).contains("a webhook at hooks.example.org"));
    stage.telegram.wait_for_calls("getUpdates", 3, PATIENCE);
    let asked = stage.env.bot(&["webhook"]).ok();
    assert!(asked.stdout.contains("A webhook at hooks.example.org takes"), "{asked:#?}");
    assert!(stage.telegram.calls("deleteWebhook").is_empty());
    stage.env.bot(&["webhook", "delete"]).ok();
    stage.say("hello");
    stage.wait_until_confirmed();
    assert_eq!(stage.stored(), 1);
    assert_eq!(stage.telegram.calls("deleteWebhook")[0]["drop_pending_updates"], json!(false));
    stage.answer_all();
    stage.end(bot);
    let log = read(&log);
    assert_eq!(log.matches("a webhook at").count(), 1, "{log}");
    for secret in ["secret-path", "bob:", "pass@", "key=1"] {
        assert!(!log.contains(secret) && !asked.stdout.contains(secret), "{log}");
    }
    assert!(stage.env.bot(&["webhook"]).ok().stdout.contains("no webhook"));
}

#[test]
fn a_token_that_worked_once_is_tried_for_ever() {
    let stage = Stage::new();
    let refused = || Fault::Refuse(401, "Unauthorized", json!({}));
    let bot = stage.start_polling();
    stage.telegram.fail_next("getUpdates", refused());
    stage.telegram.fail_next("getUpdates", Fault::Refuse(404, "Not Found", json!({})));
    stage.say("hello");
    stage.say("hello again");
    eventually("both are stored", || stage.stored() == 2);
    stage.wait_until_confirmed();
    stage.answer_all();
    let ran = stage.end(bot);
    assert_eq!(times(&ran, "doesn't accept the bot's token"), 1, "{}", ran.notices());
    // A later bot that meets it at once goes on, too: the token was good on this workspace.
    stage.telegram.fail_next("getMe", refused());
    let bot = stage.start();
    stage.say("and now?");
    eventually("it is stored", || stage.stored() == 3);
    stage.wait_until_confirmed();
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_captive_portal_ends_nothing_not_even_at_the_first_start() {
    let stage = Stage::new();
    // Not all at one start: its pauses double from answer to answer.
    for (stored, statuses) in (1..).zip([&[404, 302][..], &[401], &[200], &[511]]) {
        for status in statuses {
            stage.telegram.fail_next("getMe", Fault::Foreign(*status));
        }
        let bot = stage.start_polling();
        stage.say("hello");
        eventually("it is stored", || stage.stored() == stored);
        stage.wait_until_confirmed();
        stage.answer_all();
        stage.end(bot);
    }
}

#[test]
fn completed_polls_are_written_down_even_when_they_bring_nothing() {
    let stage = Stage::new();
    let heard = || stage.env.last_poll();
    let bot = stage.start_polling();
    assert_eq!(heard(), None);
    stage.telegram.end_poll();
    eventually("it is written down", || heard().as_deref() == Some("2026-11-21T14:00:00.000Z"));
    assert!(stage.telegram.calls("getUpdates").iter().all(|poll| poll.get("offset").is_none()));
    let status = stage.env.health(&["status"]).ok().stdout;
    assert!(status.contains("telegram   last contact 0 s ago"), "{status}");
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn an_outage_of_more_than_a_day_is_told_once_to_each_who_may_have_lost_something() {
    let mut stage = Stage::new();
    // One of them has never written.
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555,6666"));
    let bot = stage.start_polling();
    stage.say("before");
    stage.telegram.push_text(5555, 5555, "before, too");
    stage.wait_until_confirmed();
    stage.answer_all();
    stage.end(bot);

    // Twenty-four hours are no gap.
    stage.env.at("2026-11-22T14:00:00Z");
    let bot = stage.start();
    stage.say("a day later");
    stage.wait_until_confirmed();
    stage.answer_all();
    stage.end(bot);
    assert!(stage.telegram.sent().is_empty());

    stage.env.at("2026-11-24T08:30:00Z");
    for _ in 0..2 {
        let polls = stage.telegram.calls("getUpdates").len();
        let bot = stage.start();
        stage.say("late");
        stage.telegram.wait_for_calls("getUpdates", polls + 2, PATIENCE);
        stage.wait_until_confirmed();
        stage.answer_all();
        stage.telegram.wait_for_sent(2, PATIENCE);
        stage.end(bot);
    }
    let sent = stage.telegram.sent();
    assert_eq!(sent.iter().map(|notice| notice.chat_id).collect::<Vec<_>>(), [CHAT, 5555], "{sent:#?}");
    assert_eq!(sent[0].visible, sent[1].visible);
    assert_eq!(
        sent[0].visible,
        "I couldn't receive messages from Sun 22 Nov 15:00 to Tue 24 Nov 09:30. Telegram keeps them for only a day, \
         so anything sent before Mon 23 Nov 09:30 is probably lost. Please send it again if it still matters. I have \
         everything sent after that."
    );
}

/// Every file below a directory, as it is on the disk.
fn files_below(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
    files
}

fn holds(files: &[(String, Vec<u8>)], what: &str) -> bool {
    files
        .iter()
        .any(|(path, bytes)| path.contains(what) || bytes.windows(what.len()).any(|window| window == what.as_bytes()))
}

#[test]
fn no_fault_shows_the_token_in_a_log_or_a_store() {
    let mut stage = Stage::new();
    stage.env.set("REVEILLE_LOG", "debug");
    let echo = "Bad Request: /bot99:AAsecretSecretSecretSecret-Secret_xyz/ and AAsecretSecretSecretSecret-Secret_xyz";
    let faults: [fn(&'static str) -> Fault; 8] = [
        |_| Fault::CloseBefore,
        |_| Fault::CloseAfterTaking,
        |_| Fault::Malformed,
        |_| Fault::Foreign(404),
        |_| Fault::Foreign(502),
        |echo| Fault::Refuse(500, echo, json!({})),
        |echo| Fault::Refuse(400, echo, json!({})),
        |echo| Fault::Refuse(409, echo, json!({})),
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        for method in ["getMe", "setMyCommands", "getUpdates", "sendMessage"] {
            stage.telegram.fail_next(method, fault(echo));
        }
        let polls = stage.telegram.calls("getUpdates").len();
        let (bot, log) = stage.start_logged("fake-wake");
        stage.say("/status");
        stage.telegram.wait_for_calls("getUpdates", polls + 3, PATIENCE);
        stage.telegram.wait_for_calls("sendMessage", n + 1, PATIENCE);
        stage.wait_until_confirmed();
        stage.env.fail_unsent("as if it failed");
        stage.end(bot);
        let log = read(&log);
        assert!(!log.contains("ecretSecret") && !log.contains("/bot9"), "{log}");
        for (method, arguments) in
            [("getWebhookInfo", &["webhook"][..]), ("sendMessage", &["send", "--chat", "4242", "hi"])]
        {
            stage.telegram.fail_next(method, fault(echo));
            assert_token_hidden(&stage.env.bot(arguments));
            stage.env.fail_unsent("as if it failed");
        }
        stage.env.empty_queue();
    }
    assert!(!holds(&files_below(&stage.env.workspace()), "ecretSecret"));
}

#[test]
fn a_refused_connection_is_made_anew() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    for _ in 0..2 {
        let description = "Conflict: terminated by other getUpdates request";
        stage.telegram.fail_next("getUpdates", Fault::Refuse(409, description, Value::Null));
    }
    let before = stage.telegram.connections();
    stage.say("hello");
    stage.say("hello again");
    eventually("both are stored", || stage.stored() == 2);
    stage.wait_until_confirmed();
    assert!(stage.telegram.connections() >= before + 2, "the old connection was used again after a conflict");
    stage.answer_all();
    stage.end(bot);
}

#[test]
fn a_flood_is_stored_whole_and_told_politely_once() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    stage.env.queue_many(CHAT, "no", NOW, 1_000);
    stage.say("one more");
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    assert_eq!(
        (sent[0].chat_id, sent[0].visible.as_str()),
        (
            CHAT,
            "1001 of your messages are waiting. They're all safe: I'll answer them 50 at a time, oldest first, \
             taking turns with other chats."
        )
    );
    stage.say("and another");
    stage.wait_until_confirmed();
    stage.answer_all();
    stage.end(bot);
    assert_eq!((stage.stored(), stage.telegram.sent().len()), (1002, 1));
}
