//! `/undo` and `wake undo`: what a wake did is taken back once, whatever was edited since and wherever it is killed.

use super::{
    support::story::{sent, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, ProgramOutput, TestEnv, eventually},
        http::Gate,
        telegram::{FakeTelegram, Fault},
    },
};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
const ACTIVE: &str = "memory/project-memory/active.md";
const LOG: &str = "memory/agent-memory/episodic-memory.md";

/// An offline world in which something was remembered, then a reminder set and something else remembered.
fn lived_in() -> TestEnv {
    let env = TestEnv::new();
    say(&env, "remember that cats purr");
    say(&env, "remember that dogs bark. Remind me tomorrow at 9 to stretch");
    env
}

fn say(env: &TestEnv, text: &str) -> ProgramOutput {
    env.wake(&["say", text]).ok()
}

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "HEAD"])
}

fn reminders(env: &TestEnv) -> usize {
    env.active_reminders().len()
}

#[test]
fn the_last_wake_is_taken_back_in_one_commit_that_says_so() {
    let env = lived_in();
    let (undone, before) = (env.trailer("Wake-Id"), env.git(&["show", &format!("HEAD^:{SEMANTIC}")]));
    assert_eq!(reminders(&env), 1);
    let ran = env.wake(&["undo"]).ok();
    assert!(
        ran.stdout.starts_with("I've undone what I did at 15:00: remembered “") && ran.stdout.contains("“stretch”"),
        "{ran:#?}"
    );
    ran.assert_tells("Undoing what I did at 15:00: remembered “");
    assert!(ran.stdout.contains("can't be unsent") && ran.stdout.contains("wake queue retry 2"), "{ran:#?}");
    assert_eq!(env.memory(SEMANTIC).trim_end(), before.trim_end());
    assert_eq!(env.trailer("Undoes"), undone);
    assert_eq!(env.git(&["rev-list", "--count", "HEAD"]), "4");
    assert_eq!(reminders(&env), 0);
    let log = env.memory(LOG);
    assert!(log.contains("dogs bark") && log.contains(&format!("Undid the wake {undone}")), "{log}");
    assert_eq!(env.outcome(2), "undone");
    assert!(env.wake(&["queue", "list"]).ok().stdout.contains("undone"), "it is listed");
    assert_eq!(env.once()["outcome"], "idle", "it is put aside");

    // Once more is the wake before, then there is none; a given one isn't undone twice.
    assert!(env.wake(&["undo"]).ok().stdout.contains("cats purr"));
    assert!(!env.memory(SEMANTIC).contains("purr"));
    let ran = env.wake(&["undo"]);
    ran.assert_fails(1, "There's nothing to undo");
    let ran = env.wake(&["undo", &undone]);
    ran.assert_fails(1, "That's already undone");

    env.wake(&["queue", "retry", "2"]).ok();
    env.once();
    assert!(env.memory(SEMANTIC).contains("dogs bark"));
    assert_eq!(reminders(&env), 1);
    env.check_sound();
}

#[test]
fn without_an_id_the_last_wake_that_did_something_is_meant() {
    let env = lived_in();
    say(&env, "list reminders");
    let answered = env.trailer("Wake-Id");
    let ran = env.wake(&["undo"]).ok();
    assert!(ran.stdout.contains("remembered “dogs bark") || ran.stdout.contains("remembered “Dogs bark"), "{ran:#?}");
    say(&env, "remind me tomorrow at 9 to stretch");
    say(&env, "list reminders");
    assert_eq!(reminders(&env), 1);
    let ran = env.wake(&["undo"]).ok();
    assert!(ran.stdout.contains("Cancelled: the reminder “stretch”"), "{ran:#?}");
    assert_eq!(reminders(&env), 0);
    assert!(env.wake(&["undo"]).ok().stdout.contains("cats purr"));
    let ran = env.wake(&["undo"]);
    ran.assert_fails(1, "There's nothing to undo");
    // By its id it can be: its message is tried afresh after it.
    let ran = env.wake(&["undo", &answered]).ok();
    assert!(ran.stdout.contains("Nothing had been saved, so nothing changed."), "{ran:#?}");
    env.check_sound();
}

#[test]
fn what_was_undone_is_neither_found_nor_quoted_and_can_be_forgotten() {
    let env = lived_in();
    assert!(say(&env, "what do you know about dogs?").stdout.contains("dogs bark"));
    env.wake(&["undo"]).ok();
    let answered = say(&env, "what do you know about dogs?").stdout;
    assert!(!answered.contains("bark"), "{answered}");
    let found = env.wake(&["memory", "search", "remember dogs bark"]).ok().stdout;
    assert!(!found.contains("bark"), "nor in the answer that quoted it before: {found}");
    // What is told again may be quoted again.
    say(&env, "remember that dogs bark");
    assert!(say(&env, "what do you know about dogs?").stdout.contains("dogs bark"));
    assert!(env.wake(&["memory", "search", "dogs bark"]).ok().stdout.contains("answers/"));
    assert!(say(&env, "what do you know about cats?").stdout.contains("cats purr"), "what stands is found");
    env.wake(&["memory", "forget", "dogs bark", "--yes"]).ok();
    let left = env.wake(&["memory", "search", "bark"]).ok().stdout;
    assert!(!left.contains("bark"), "{left}");
    env.check_sound();
}

/// The commands of a person's own, from the newest on, and what each undo says that it is.
#[test]
fn what_a_person_does_themselves_is_undone_in_the_same_line() {
    let env = lived_in();
    let orders: [&[&str]; 4] = [
        &["task", "add", "Write the report"],
        &["task", "done", "report"],
        &["remind", "call Anna", "--at", "tomorrow 10"],
        &["remind", "done", "stretch"],
    ];
    for order in orders {
        env.wake(order).ok();
    }
    let undo = |named: &str| {
        let ran = say(&env, "undo that");
        assert!(ran.stdout.contains(&format!("Undoing what {named}")), "{named}: {ran:#?}");
        assert!(ran.stdout.contains(&format!("I've undone what {named}")), "{named}: {ran:#?}");
    };
    undo("you did at 15:00: ended the reminder “stretch”");
    assert_eq!(reminders(&env), 2);
    undo("you did at 15:00: set the reminder “call Anna”");
    assert_eq!(reminders(&env), 1);
    undo("you did at 15:00: finished the task “Write the report”");
    assert!(env.memory(ACTIVE).contains("Write the report"));
    assert_eq!(env.trailer("Undoes"), "step/4");
    undo("you did at 15:00: added the task “Write the report”");
    assert!(!env.memory(ACTIVE).contains("Write the report"));
    undo("I did at 15:00: remembered “");
    assert_eq!(reminders(&env), 0);
    assert!(env.memory(SEMANTIC).contains("cats purr"), "that was before");
    env.check_sound();
}

#[test]
fn a_given_wake_is_taken_back_and_what_came_later_stays() {
    let env = lived_in();
    let id = env.git(&["log", "--format=%h", "--grep", "cats purr"]);
    let text = env.memory(SEMANTIC);
    env.write_memory(SEMANTIC, &format!("{text}\n## Person\n- mine\n"));
    env.wake(&["undo", &id]).ok();
    let text = env.memory(SEMANTIC);
    assert!(!text.contains("purr") && text.contains("dogs bark") && text.contains("## Person\n- mine\n"), "{text}");
    assert_eq!(reminders(&env), 1, "that is another wake's");
    env.check_sound();
}

#[test]
fn what_waits_on_a_branch_is_said_to_be_taken_back_there() {
    let env = lived_in();
    env.git(&["checkout", "-q", "--detach"]);
    say(&env, "remember that fish swim");
    let branch = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/parked/"]);
    let ran = env.wake(&["undo"]).ok();
    assert!(ran.stdout.contains(&format!("`git branch -D {branch}` drops it before that")), "{ran:#?}");
    env.git(&["branch", "-q", "-D", &branch]);
    env.git(&["checkout", "-q", "main"]);
    env.once();
    assert!(!env.memory(SEMANTIC).contains("fish swim"));
    assert!(env.memory(LOG).contains("Undid the wake"));
}

#[test]
fn where_the_same_was_edited_since_the_edit_stays_and_is_told() {
    let env = lived_in();
    env.write_memory(SEMANTIC, &env.memory(SEMANTIC).replace("dogs bark", "dogs howl"));
    let ran = env.wake(&["undo"]).ok();
    assert!(
        ran.stdout.contains("Left as it is, because it was changed since: memory/agent-memory/semantic"),
        "{ran:#?}"
    );
    let text = env.memory(SEMANTIC);
    assert!(text.contains("dogs howl") && text.contains("cats purr") && !text.contains("Both of us"), "{text}");
    let body = env.git(&["log", "--grep", "Undid the wake", "--format=%b"]);
    assert!(body.contains("Not undone, changed since: "), "{body}");
    env.check_sound();
}

/// A wake that set a reminder, ended another one, began a task and answered in two messages, of which none was sent.
fn with_unsent_replies() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remind me of the water");
    claude.expect(Reply::tool("t0", "reminder_set", json!({"text": "Water", "when": "tomorrow at 8"})));
    claude.expect(Reply::text("Set."));
    env.once();
    env.receive(CHAT, "and of stretching instead, and I write a report");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "reminder_set", json!({"text": "Stretch", "when": "tomorrow at 9"})),
        Block::tool("t2", "reminder_done", json!({"reminder": "Water"})),
        Block::tool("t3", "task_add", json!({"title": "Write a report"})),
    ]));
    claude.expect(Reply::text("All done."));
    telegram.fail_next("sendMessage", Fault::Status(429, Some(3_600)));
    env.once();
    assert_eq!(sent(&telegram), ["Set."]);
    (telegram, claude, env)
}

#[test]
fn reminders_and_unsent_replies_are_taken_back_and_the_message_waits_for_retry() {
    let (telegram, claude, env) = with_unsent_replies();
    // The messages so far came from another update stream than the fake's.
    env.forget_updates();
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    telegram.push_text(CHAT, CHAT, "/undo");
    let said = telegram.wait_for_sent(3, Duration::from_secs(60));
    assert!(said[1].visible.starts_with("Undoing what I did at 15:00: "), "{said:#?}");
    insta::assert_snapshot!(said[2].visible, @r"
    I've undone what I did at 15:00: set the reminder “Stretch”, Sun 22 Nov 2026 at 09:00, and 3 more things.

    • Those changes are gone from my memory, in 1 file. The log still shows that they happened.
    • Cancelled: the reminder “Stretch”.
    • Active again: the reminder “Water”.
    • One message that wasn't sent yet won't be.
    • Your message is on hold. Send /retry to run it again.
    ");
    let state = |text: &str| env.reminder(text).state;
    assert_eq!((state("Stretch").as_str(), state("Water").as_str()), ("cancelled", "active"));
    assert!(!env.memory(ACTIVE).contains("Write a report"));
    telegram.push_text(CHAT, CHAT, "/undo");
    let said = telegram.wait_for_sent(5, Duration::from_secs(60));
    assert!(said[4].visible.contains("My reply can't be unsent"), "{said:#?}");

    claude.expect(Reply::text("Again."));
    telegram.push_text(CHAT, CHAT, "/retry");
    eventually("it is answered anew", || sent(&telegram).iter().any(|text| text == "Again."));
    let undone = env.received().into_iter().filter(|message| message.outcome.as_deref() == Some("undone"));
    assert_eq!(undone.count(), 1);
    assert!(!sent(&telegram).contains(&"All done.".to_owned()));
    bot.signal(Signal::TERM);
    bot.end().ok();
    env.wait_for_end_of_wake();
    env.check_sound();
}

/// The wake that runs is held in a request: what it does is its own, and stays.
#[test]
fn what_is_ordered_while_a_wake_runs_is_acknowledged_at_once_and_done_after_it() {
    let (telegram, claude, env) = with_claude();
    telegram.number_updates_from(2_000);
    env.receive(CHAT, "cats purr");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})));
    claude.expect(Reply::text("They do."));
    env.once();
    let undone = env.trailer("Wake-Id");
    let gate = Gate::default();
    claude.expect(Reply::tool("t2", "remember", json!({"fact": "Dogs bark"})));
    claude.expect(Reply::text("So they do.").stalled_after(4, &gate));
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    telegram.push_text(CHAT, CHAT, "and dogs bark");
    wait_for_request(&claude, 4);

    // But for a line that tells of a long cycle's progress.
    let said = |n: usize| {
        let texts = || sent(&telegram).into_iter().filter(|text| !text.starts_with('⏳')).collect::<Vec<_>>();
        eventually(&format!("text {n}"), || texts().len() >= n);
        texts().remove(n - 1)
    };
    telegram.push_text(CHAT, CHAT, "/undo");
    let told = said(2);
    assert!(told.starts_with("Undoing what I did at 15:00: "), "{told}");
    assert!(told.ends_with(". I'll tell you when it's done."), "{told}");
    let open = || env.count_open_undos();
    assert_eq!((open(), env.trailer("Wake-Id") == undone), (1, true), "the wake still runs");
    assert!(env.is_locked());
    // Asked for again it is another wake's, of which there is none.
    telegram.push_text(CHAT, CHAT, "/undo");
    assert!(said(3).contains("There's nothing to undo"), "{}", said(3));

    gate.open();
    assert_eq!(said(4), "So they do.");
    assert!(said(5).starts_with("I've undone what I did at 15:00: "), "{}", said(5));
    env.wait_for_end_of_wake();
    bot.signal(Signal::TERM);
    bot.end().ok();
    assert_eq!((open(), env.trailer("Undoes")), (0, undone));
    let text = env.memory(SEMANTIC);
    assert!(text.contains("Dogs bark") && !text.contains("Cats purr"), "{text}");
    env.check_sound();
}

#[test]
fn it_is_done_while_all_else_is_stopped() {
    let env = lived_in();
    env.wake(&["stop"]).ok();
    env.wake(&["--once", "--say", "hello"]).ok();
    let ran = env.wake(&["undo"]).ok();
    assert!(ran.stdout.starts_with("I've undone "), "{ran:#?}");
    assert!(!env.memory(SEMANTIC).contains("dogs bark"));
    assert_eq!(env.queued().len(), 1, "only that was done");
}

/// Whatever is written at each of its steps, the next wake makes one undo of it.
#[test]
fn an_undo_that_is_killed_is_done_once() {
    for table in ["cycles", "undos", "reminders", "incoming_messages", "outgoing_messages"] {
        for when in ["INSERT", "UPDATE", "DELETE"] {
            let env = lived_in();
            let commits = env.git(&["rev-list", "--count", "HEAD"]);
            env.ask_for_undo("2026-11-21T14:00:00Z");
            env.refuse(when, table, "TRUE");
            env.wake(&["--once"]);
            env.refuse_no_more(table);
            let ran = env.wake(&["--once"]).ok();
            let shown = env.outbox_with("I've undone ");
            assert_eq!(shown.len(), 1, "{table} {when}: {ran:#?}");
            let text = &shown[0];
            assert!(text.contains("Cancelled: the reminder “stretch”"), "{table} {when}: {text}");
            assert_eq!(env.count_open_undos(), 0);
            let after = env.git(&["rev-list", "--count", "HEAD"]);
            assert_eq!(after.parse::<i64>().unwrap(), commits.parse::<i64>().unwrap() + 1, "{table} {when}");
            assert!(!env.memory(SEMANTIC).contains("dogs bark"));
            assert_eq!(reminders(&env), 0);
            env.check_sound();
            assert_eq!(head(&env), env.git(&["rev-parse", "main"]));
        }
    }
}

/// Cut off after the reminder was cancelled and before the commit: the next wake makes the commit, and still knows of both.
#[test]
fn what_was_taken_back_before_a_commit_that_failed_is_told_with_the_one_that_is_made() {
    let env = lived_in();
    let in_the_way = env.brain().join(".git/reveille/index");
    std::fs::remove_file(&in_the_way).ok();
    std::fs::create_dir_all(in_the_way.join("in-the-way")).unwrap();
    let ran = env.wake(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let half_done = env.undos().into_iter().filter(|undo| undo.taken_back.is_some() && undo.done_at.is_none());
    assert_eq!(half_done.count(), 1);
    assert!(env.memory(SEMANTIC).contains("dogs bark"));
    std::fs::remove_dir_all(&in_the_way).unwrap();
    let ran = env.run_for_terminal_replies();
    assert!(ran.stdout.contains("Cancelled: the reminder “stretch”"), "{ran:#?}");
    assert!(
        env.memory(LOG).contains("Cancelled its reminder “stretch”") && !env.memory(SEMANTIC).contains("dogs bark")
    );
    env.check_sound();
}
