//! One message from the queue to the answer, the commit and the remote; and a wake with nothing to do.

use reveille_base::approval_text;

use super::support::{
    claude::{FakeClaude, Reply},
    env::{CHAT, TestEnv, eventually},
    telegram::FakeTelegram,
};
use rustix::process::Signal;

#[test]
fn a_first_run_on_an_empty_directory_makes_the_memory_and_answers() {
    let env = TestEnv::new();
    let ran = env.wake(&["--once", "--say", "remember that the wifi code is 1234"]).ok();
    assert_eq!(ran.stdout, "Remembered: the wifi code is 1234\n");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("- the wifi code is 1234 <!-- wake "));
    assert_eq!(env.trailer("Trigger"), "say");
    assert_eq!(env.trailer("Messages"), "1");
    assert_eq!(env.trailer("Model"), "offline");
    assert_eq!(env.trailer("Cost-USD"), "0.0000");
    assert_eq!(env.count_queued(), 0);
    env.check_sound();
}

#[test]
fn with_nothing_due_a_wake_writes_nothing() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let head = env.git(&["rev-parse", "HEAD"]);
    let before = std::fs::read(env.workspace().join("messages.db")).unwrap();
    let report = env.once();
    assert_eq!(report["outcome"], "idle");
    assert_eq!(report["commit"], serde_json::Value::Null);
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(std::fs::read(env.workspace().join("messages.db")).unwrap(), before);
}

#[test]
fn a_message_is_answered_committed_delivered_and_pushed() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    let id = env.receive(CHAT, "remember that Anna's birthday is 3 May");
    let report = env.once();
    assert_eq!(report["outcome"], "worked");
    assert_eq!(report["answered"], 1);
    assert_eq!(report["pushed"], true);
    let sent = telegram.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].chat_id, sent[0].reply_to), (CHAT, Some(100)));
    assert_eq!(sent[0].visible, "Remembered: Anna's birthday is 3 May");
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "HEAD"]));
    assert_eq!(env.trailer("Messages"), id.to_string());
    let sent_at: Option<String> = env.outbox()[0].sent_at.clone();
    assert!(sent_at.is_some());
    env.check_sound();
}

#[test]
fn a_message_that_needs_a_model_stays_queued_and_the_person_is_told_once() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    env.receive(CHAT, "write me a poem about the sea");
    assert_eq!(env.once()["outcome"], "worked");
    for _ in 0..3 {
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!(telegram.sent().len(), 1);
    assert!(telegram.sent()[0].visible.contains("I'll keep your message"));
    assert_eq!(env.queued().len(), 1);
    env.check_sound();
}

#[test]
fn a_second_wake_changes_nothing_and_succeeds() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.receive(0, "list reminders");
    let lock = std::fs::File::open(env.workspace().join(".wake-lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    let ran = env.wake(&["--once", "--json"]).ok();
    assert_eq!(ran.json()["outcome"], "locked");
    ran.assert_tells("Another wake is working");
    assert_eq!(env.queued().len(), 1);
    drop(lock);
    assert_eq!(env.once()["answered"], 1);
}

#[test]
fn the_given_reason_is_in_the_trailer() {
    let env = TestEnv::new();
    env.wake(&["--once", "--reason", "alarm", "--say", "remember that tea is at five"]).ok();
    assert_eq!(env.trailer("Trigger"), "alarm");
}

#[test]
fn a_wake_that_stays_works_when_something_is_due_and_ends_when_asked() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.receive(0, "remember that tea is at five");
    let staying = env.start(env!("CARGO_BIN_EXE_wake"), &["--json"]);
    eventually("the message is answered", || env.queued().is_empty());
    eventually("the wake has ended", || std::fs::read(env.workspace().join(".wake-lock")).unwrap().is_empty());
    staying.signal(Signal::TERM);
    let ran = staying.end();
    assert_eq!((ran.code, ran.json()["replies"][0]["text"].as_str()), (0, Some("Remembered: tea is at five")));
    assert_eq!(env.trailer("Trigger"), "stay");
    env.check_sound();
}

#[test]
fn a_wake_that_stays_masks_secrets_that_were_added_since_it_began() {
    const SECRET: &str = "swordfish-and-chips";
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.receive(0, "remember that tea is at five");
    let staying = env.start(env!("CARGO_BIN_EXE_wake"), &[]);
    let has_ended = || std::fs::read(env.workspace().join(".wake-lock")).unwrap().is_empty();
    eventually("the first message is answered", || env.queued().is_empty());
    eventually("the first wake has ended", has_ended);
    let server =
        format!("[[server]]\nname = \"a\"\nurl = \"https://a.example\"\nheaders = {{ X-Key = \"{SECRET}\" }}\n");
    let path = env.workspace().join("mcp.toml");
    std::fs::write(&path, server).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    env.receive(0, &format!("remember that the key is {SECRET}"));
    eventually("the second message is answered", || env.queued().is_empty());
    eventually("the second wake has ended", has_ended);
    staying.signal(Signal::TERM);
    let ran = staying.end();
    ran.assert_never_tells(SECRET);
    assert!(!ran.stdout.contains(SECRET), "{ran:#?}");
    let history = env.git(&["log", "-p", "--all"]);
    assert!(history.contains("tea is at five") && !history.contains(SECRET), "{history}");
    env.check_sound();
}

#[test]
fn a_person_who_wants_to_be_asked_first_is_asked() {
    let mut env = TestEnv::new();
    env.set("AUTONOMY", "0");
    let ran = env.wake(&["--once", "--say", "remember that the wifi code is 1234"]).ok();
    assert!(ran.stdout.contains("May I remember") && ran.stdout.contains("the wifi code is 1234"), "{ran:#?}");
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("1234"));
    env.wake(&["approvals", "deny", "1"]).ok();
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("1234"));
    env.check_sound();
}

#[test]
fn a_failure_is_reported_in_whole_sentences() {
    let env = TestEnv::new();
    let ran = env.wake(&["say", "task done paint the shed"]).ok();
    assert_eq!(ran.stdout, "There's no task or reminder “paint the shed”, so nothing has changed.\n");
}

#[test]
fn an_error_contains_no_hidden_characters() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    std::fs::write(env.brain().join(".git/config"), "[core\n").unwrap();
    let failed = env.wake(&["--json", "--once"]);
    assert_ne!(failed.code, 0, "{failed:#?}");
    let error = failed.json()["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("git: `"), "{error}");
    for text in [error.as_str(), failed.notices()] {
        assert!(!text.replace('\n', " ").chars().any(approval_text::is_hidden), "{text:?}");
    }
}

#[test]
fn a_burst_of_many_messages_is_planned_like_any_other() {
    let env = TestEnv::new();
    for n in 0..40 {
        env.receive(0, &format!("remember that box {n} is blue"));
    }
    assert_eq!(env.once()["answered"], 40);
    assert!(env.steps("outcome").iter().all(|step| step.field("is_error") != true));
    env.check_sound();
}

#[test]
fn queued_messages_can_be_listed_retried_and_dropped() {
    let mut env = TestEnv::new();
    let nothing = env.wake(&["queue", "list"]);
    assert_eq!(nothing.code, 1);
    nothing.assert_tells("no queue");

    env.wake(&["--once", "--say", "write me a poem"]).ok();
    let dead = env.receive(CHAT, "what broke you?");
    env.give_up_message(dead);
    let list = || env.wake(&["queue", "list"]).ok().stdout;
    assert_eq!(
        list(),
        "1  Sat 2026-11-21 15:00  kept: offline can't answer it  terminal  write me a poem\n\
         2  Sat 2026-11-21 15:00  given up after 3 tries  chat 4242  what broke you?\n"
    );

    env.wake(&["queue", "drop", "1"]).ok();
    env.wake(&["queue", "retry", "2"]).ok();
    assert_eq!(list(), "2  Sat 2026-11-21 15:00  waits  chat 4242  what broke you?\n");
    assert_eq!(env.outcome(1), "dropped");
    let all = env.wake(&["queue", "list", "--all"]).ok().stdout;
    assert_eq!(all, format!("{}1  Sat 2026-11-21 15:00  dropped  terminal  write me a poem\n", list()));
    for wrong in [["queue", "drop", "1"], ["queue", "retry", "99"]] {
        assert_eq!(env.wake(&wrong).code, 1, "{wrong:?}");
    }
    // A dropped message can be retried, and the fallback grammar answers its new text.
    env.wake(&["queue", "retry", "1"]).ok();
    env.put_text(1, "list reminders");
    env.at("2026-11-21T14:05:00Z");
    let ran = env.run_for_terminal_replies();
    assert!(ran.stdout.contains("No reminders are set."), "{ran:#?}");
}

#[test]
fn a_long_code_block_arrives_in_complete_parts() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.set("TELEGRAM_RICH", "never").think_with(&claude);
    let lines: Vec<String> = (0..300).map(|n| format!("let x{n} = a < {n} && b > {n};")).collect();
    claude.expect(Reply::text(&format!("Here it is:\n\n```rust\n{}\n```\n\nThat is **all**.", lines.join("\n"))));
    env.receive(CHAT, "show me the code");
    assert_eq!(env.once()["answered"], 1);
    // The fake server has checked the length and the markup of each part.
    let sent = telegram.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|part| part.html));
    let within: Vec<&str> = sent.iter().map(|part| part.text.as_str()).collect();
    let opened = "<pre><code class=\"language-rust\">";
    assert!(within[1..within.len() - 1].iter().all(|text| text.starts_with(opened)), "{within:#?}");
    let visible: Vec<&str> = sent.iter().flat_map(|part| part.visible.lines()).collect();
    assert!(lines.iter().all(|line| visible.contains(&line.as_str())), "a line was broken or lost");
    let states = env.part_states();
    assert!(!states.is_empty() && states.iter().all(|state| state == "sent"), "{states:?}");
    env.check_sound();
}
