//! `wake chat`: a person at a terminal, and lines from a pipe.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::json;

use super::{
    support::story::{results, wait_for_request},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{Talk, TestEnv, eventually},
        http::Gate,
    },
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const PROMPT: &str = "\x1b[?2004h";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// A chat that is open, and its prompt there.
fn open(env: &TestEnv) -> Talk {
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text(PROMPT);
    talk
}

/// Says something, and waits for this and for the next prompt.
#[track_caller]
fn say(talk: &mut Talk, text: &str, answer: &str) -> String {
    talk.types(&format!("{text}\r"));
    let before = talk.wait_for_text(answer);
    talk.wait_for_text(PROMPT);
    before
}

#[track_caller]
fn leave(mut talk: Talk) -> String {
    talk.types(CTRL_D);
    let (code, shown) = talk.end();
    assert_eq!(code, 0, "{shown}");
    shown
}

fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm");
    env
}

fn with_claude() -> (FakeClaude, TestEnv) {
    let (claude, mut env) = (FakeClaude::start(), world());
    env.think_with(&claude);
    (claude, env)
}

#[test]
fn a_person_says_several_things_and_what_they_typed_comes_back_in_the_next_chat() {
    let env = world();
    let mut talk = env.talk(WAKE, &["chat"]);
    let greeting = talk.wait_for_text(PROMPT);
    assert!(greeting.contains("No AI model is set") && greeting.contains("/quit leaves."), "{greeting}");
    say(&mut talk, "remember that tea is at five", "Remembered: tea is at five\n");
    say(&mut talk, "milk and \\\reggs", "without an AI model");
    assert_eq!(env.message(2).text, "milk and \neggs");
    say(&mut talk, "/tasks", "No tasks");
    assert!(leave(talk).ends_with("Bye.\n"));
    let history = env.workspace().join("chat-history");
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let mut talk = open(&env);
    talk.types("\x1b[A\x1b[A\x1b[A\x1b[A");
    talk.wait_for_text("tea is at five");
    talk.types(CTRL_C);
    talk.wait_for_text("press Ctrl-C again or Ctrl-D");
    talk.wait_for_text(PROMPT);
    talk.types(CTRL_C);
    assert_eq!(talk.end().0, 0);
    assert_eq!(env.count_received(), 2);
    assert_eq!(env.count_sessions(), 0);
    env.check_sound();
}

#[test]
fn the_plan_and_each_step_are_shown_before_the_answer() {
    let (claude, env) = with_claude();
    let plan = json!({"understood": "u", "complexity": "quick",
        "steps": [{"what": "Write it down", "tool": "remember"}, {"what": "Say so", "tool": "reply"}]});
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "plan", plan),
        Block::tool("t2", "remember", json!({"fact": "Cats \x1b[31mpurr"})),
        Block::tool("t3", "task_done", json!({"task": "nothing"})),
    ]));
    claude.expect(Reply::text("It is **done**, \x1b]0;title\x07I think."));
    let mut talk = open(&env);
    let before = say(&mut talk, "cats purr", "It is \x1b[1mdone\x1b[0m, I think.\n");
    let at = |text: &str| before.find(text).unwrap_or_else(|| panic!("{text}: {before}"));
    assert!(at("  1. Write it down\n") < at("  2. Say so\n") && at("  2. Say so\n") < at("  ✓ "), "{before}");
    assert!(at("  ✓ ") < at("  ✗ task_done nothing: "), "{before}");
    assert!(!before.contains("\x1b[31m") && !before.contains("  ✓ plan"), "{before}");
    leave(talk);
    env.check_sound();
}

#[test]
fn a_terminal_that_shows_nothing_else_gets_plain_text() {
    let mut env = world();
    env.set("TERM", "dumb");
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text("> ");
    talk.types("/whoami\n");
    talk.wait_for_text("> ");
    assert!(!leave(talk).contains('\x1b'));
}

/// A world whose chat asks whether it may remember something.
fn asking() -> (FakeClaude, TestEnv, Talk) {
    let (claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "The code is 1\u{200b}2"}))]));
    let mut talk = open(&env);
    talk.types("remember the code\r");
    let question = talk.wait_for_text("Enter to decide later: ");
    assert!(question.contains("Question 1: May I remember “The code is 1\\u{200b}2”? Risk: "), "{question}");
    assert_eq!(question.matches("The code is").count(), 1, "{question}");
    (claude, env, talk)
}

#[test]
fn a_yes_in_place_runs_what_was_shown_and_the_work_goes_on() {
    let (claude, env, mut talk) = asking();
    claude.expect(Reply::text("It is written down."));
    talk.types("maybe\r");
    talk.wait_for_text("Please answer y or n.");
    talk.types("y\r");
    talk.wait_for_text("It is written down.\n");
    talk.wait_for_text("> ");
    leave(talk);
    assert!(!results(claude.requests().last().unwrap())[0].1);
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("The code is"));
    let approval = env.approval();
    assert_eq!((approval.state.as_str(), approval.decided_by.as_deref()), ("approved", Some("console")));
    env.check_sound();
}

#[test]
fn a_question_that_is_put_off_waits_and_is_asked_again_by_the_next_chat() {
    let (claude, env, mut talk) = asking();
    talk.types("\r");
    talk.wait_for_text("Question 1 stays open");
    talk.wait_for_text(PROMPT);
    leave(talk);
    assert_eq!(env.approval().state, "pending");
    // What can't be undone wants the whole word.
    env.alter_approvals("risk", "destructive");
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text("Type `yes` to allow it once");
    talk.types("y\r");
    talk.wait_for_text("Only the whole word");
    assert_eq!(env.approval().state, "pending");
    claude.expect(Reply::text("Then I leave it."));
    talk.wait_for_text("later: ");
    talk.types("n\r");
    talk.wait_for_text("Then I leave it.\n");
    talk.wait_for_text("> ");
    leave(talk);
    assert!(results(claude.requests().last().unwrap())[0].1);
    assert_eq!(env.approval().state, "denied");
}

/// A chat whose wake waits for a model that is silent.
fn held() -> (FakeClaude, TestEnv, Talk) {
    let (claude, env) = with_claude();
    claude.expect(Reply::text("Cats purr.").stalled_after(2, &Gate::default()));
    let mut talk = open(&env);
    talk.types("why do cats purr\r");
    wait_for_request(&claude, 1);
    talk.signal(Signal::INT);
    talk.wait_for_text("Pausing before the next step");
    (claude, env, talk)
}

#[test]
fn ctrl_c_pauses_the_work_until_the_person_says_go_on() {
    let (claude, env, mut talk) = held();
    talk.wait_for_text("Paused. `go on` continues");
    talk.wait_for_text(PROMPT);
    // Neither cron nor another message goes on with it.
    assert_eq!(env.once()["outcome"], "idle");
    say(&mut talk, "and dogs?", "Your message is safe.");
    assert_eq!((claude.requests().len(), env.queued().len()), (1, 2));
    claude.answer_with(|_| Reply::text("Both are content."));
    say(&mut talk, "Go on", "Both are content.\n");
    leave(talk);
    assert_eq!(env.queued(), []);
    env.check_sound();
}

#[test]
fn a_second_ctrl_c_leaves_and_the_request_waits_for_a_word() {
    let (claude, env, mut talk) = held();
    talk.wait_for_text("Paused. `go on` continues");
    talk.wait_for_text(PROMPT);
    talk.types(CTRL_C);
    let (code, shown) = talk.end();
    assert!(code == 0 && shown.contains("Your request is paused"), "{shown}");
    assert_eq!(env.once()["outcome"], "idle");
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text("Earlier work is paused");
    talk.wait_for_text(PROMPT);
    leave(talk);
    env.wake(&["resume"]).ok().assert_tells("Resuming");
    claude.expect(Reply::text("Cats purr."));
    assert_eq!(env.run_for_terminal_replies().stdout, "Cats purr.\n");
    env.check_sound();
}

#[test]
fn a_chat_that_is_ended_from_outside_at_its_prompt_leaves_nothing() {
    let env = world();
    let talk = open(&env);
    talk.signal(Signal::TERM);
    assert_eq!(talk.end().0, 143);
    assert_eq!(env.wake(&["say", "remember that tea is at five"]).ok().stdout, "Remembered: tea is at five\n");
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0";

#[test]
fn a_picture_by_its_path_is_shown_to_the_model_and_a_path_that_is_not_there_stays_words() {
    let (claude, env) = with_claude();
    std::fs::write(env.path("a cat.png"), PNG).unwrap();
    claude.expect(Reply::text("A cat."));
    let mut talk = open(&env);
    let before = say(&mut talk, "what is './a cat.png' and ./gone.png?", "A cat.\n");
    assert!(before.contains("📎 \"a cat.png\", image/png, "), "{before}");
    let request = claude.requests().remove(0).json.to_string();
    assert!(
        request.contains(r#""type":"image""#) && request.contains("what is a cat.png and ./gone.png?"),
        "{request}"
    );
    leave(talk);
    assert_eq!(env.attachments_in("kept").len(), 1);
    let path = env.workspace().join(env.attachments()[0].path.clone().unwrap());
    assert_eq!(std::fs::read(path).unwrap(), PNG);
    env.check_sound();
}

#[test]
fn a_pipe_says_a_message_a_line_and_gets_plain_answers() {
    let env = world();
    let ran = env
        .run_with_input(WAKE, &["chat"], "remember that **tea** is at five\n\n/whoami\nremember that lunch is at one")
        .ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("Remembered: **tea** is at five", "Remembered: lunch is at one"));
    assert!(ran.stdout.contains("you're my owner") && !ran.stdout.contains('\x1b'), "{}", ran.stdout);
    ran.assert_never_tells("/quit").assert_never_tells("working");
    assert!(!env.workspace().join("chat-history").exists());
    env.check_sound();
}

#[test]
fn a_pipe_opens_no_path_and_shows_what_is_asked() {
    let (claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    std::fs::write(env.path("cat.png"), PNG).unwrap();
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "A cat"}))]));
    let ran = env.run_with_input(WAKE, &["chat"], "remember ./cat.png\n").ok();
    ran.assert_tells("May I remember");
    assert!(ran.stdout.is_empty(), "{ran:?}");
    assert_eq!(env.attachments().len(), 0);
    assert_eq!(env.approval().state, "pending");
}

#[test]
fn a_pipe_whose_message_fails_ends_with_an_error_and_goes_on_before() {
    let (claude, env) = with_claude();
    claude.answer_with(|request| match request.last_text().contains("first") {
        true => Reply::error(401, "authentication_error", "invalid x-api-key"),
        false => Reply::text("Second."),
    });
    let ran = env.run_with_input(WAKE, &["chat"], "the first\n/whoami\n");
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("you're my owner"), "{ran:?}");
    assert_eq!(env.queued().len(), 1);
}

#[test]
fn another_wake_is_waited_for() {
    let env = world();
    env.wake(&["--once"]).ok();
    let lock =
        std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(env.workspace().join(".wake-lock"));
    let lock = lock.unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    let mut talk = open(&env);
    talk.types("remember that tea is at five\r");
    talk.wait_for_text("another wake is working");
    eventually("it is stored", || env.queued().len() == 1);
    drop(lock);
    talk.wait_for_text("Remembered: tea is at five\n");
    talk.wait_for_text(PROMPT);
    leave(talk);
}

#[test]
fn a_paused_request_is_given_up_by_a_word() {
    let (claude, env, mut talk) = held();
    talk.wait_for_text("Paused. `go on` continues");
    talk.wait_for_text(PROMPT);
    say(&mut talk, "/drop", "Dropped: 1 message.");
    claude.expect(Reply::text("Dogs bark."));
    say(&mut talk, "and dogs?", "Dogs bark.\n");
    assert!(leave(talk).ends_with("Bye.\n"));
    assert_eq!(env.outcome(1), "dropped");
    env.check_sound();
}

#[test]
fn ctrl_c_ends_the_program_that_is_waited_for() {
    let (claude, mut env) = with_claude();
    env.set("AUTONOMY", "2");
    claude.expect(Reply::tools(vec![Block::tool(
        "t1",
        "bash",
        json!({"command": "echo begun > started; sleep 1000"}),
    )]));
    let mut talk = open(&env);
    talk.types("wait for it\r");
    talk.wait_for_text("working: bash echo begun");
    talk.signal(Signal::INT);
    talk.wait_for_text("Paused. `go on` continues");
    talk.wait_for_text(PROMPT);
    claude.expect(Reply::text("It was cut short."));
    say(&mut talk, "go on", "It was cut short.\n");
    leave(talk);
    env.check_sound();
}

#[test]
fn what_another_wake_says_is_shown_above_the_line_that_is_typed() {
    let mut env = world();
    env.wake(&["say", "remind me to call Anna at 16:00"]).ok();
    let mut talk = open(&env);
    talk.types("remember that tea");
    talk.wait_for_text("tea");
    env.at("2026-11-21T15:00:00Z").wake(&["--once"]).ok();
    talk.wait_for_text("⏰ call Anna\n");
    talk.wait_for_text("remember that tea");
    talk.types(" is at five\r");
    talk.wait_for_text("Remembered: tea is at five\n");
    talk.wait_for_text(PROMPT);
    leave(talk);
    assert_eq!(env.count_unsent(), 0);
}
