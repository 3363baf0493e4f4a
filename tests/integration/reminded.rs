//! The buttons under a reminder: done, or once more later, by whom it belongs to, once.

use super::{
    approvals::{press, question},
    support::{
        env::{CHAT, TestEnv, eventually},
        telegram::{FakeTelegram, SentMessage},
    },
};

/// A world in which a reminder has come.
fn reminded(when: &str) -> (FakeTelegram, TestEnv, SentMessage) {
    let telegram = FakeTelegram::start();
    // What the world has received counts as fetched.
    telegram.number_updates_from(2_000);
    let mut env = TestEnv::with_telegram(&telegram);
    env.receive(CHAT, &format!("remind me {when} to call Anna"));
    env.once();
    env.at("2026-11-21T15:00:00Z").once();
    let message = question(&telegram);
    assert!(message.visible.contains("call Anna") && message.chat_id == CHAT, "{message:?}");
    (telegram, env, message)
}

fn active(env: &TestEnv) -> String {
    let times: Vec<String> = env.active_reminders().into_iter().map(|reminder| reminder.next_at).collect();
    format!("{} {}", times.len(), times.iter().min().map_or("", String::as_str))
}

#[test]
fn done_ends_it_and_takes_the_buttons_away() {
    let (telegram, env, message) = reminded("in 10 minutes");
    assert_eq!(message.buttons.len(), 3);
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[0])), "✅ Done.");
    eventually("the answer is shown", || {
        telegram.standing().iter().any(|text| text.contains("call Anna") && text.ends_with("✅ Done."))
    });
    assert_eq!(
        press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[1])),
        "You've already answered this."
    );
    assert_eq!(active(&env), "0 ");
    assert_eq!(env.count_received(), 1, "no press is a message");
    env.check_sound();
}

#[test]
fn a_snoozed_reminder_comes_again_in_an_hour_once_however_often_it_is_pressed() {
    let (telegram, mut env, message) = reminded("in 10 minutes");
    let said = press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[1]));
    assert!(said.starts_with("💤 I'll remind you again Sat 21 Nov"), "{said}");
    for button in &message.buttons {
        press(&telegram, &env, (CHAT, CHAT, message.message_id, button));
    }
    assert_eq!(active(&env), "1 2026-11-21T16:00:00.000Z");
    env.at("2026-11-21T16:00:00Z").once();
    let came: Vec<SentMessage> =
        telegram.sent().into_iter().filter(|message| message.visible.starts_with("⏰ call Anna")).collect();
    assert_eq!((came.len(), came[1].buttons.len()), (2, 3), "{came:?}");
    env.check_sound();
}

#[test]
fn one_that_recurs_goes_on_beside_what_was_snoozed() {
    let (telegram, env, message) = reminded("every day at 15:30");
    press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[2]));
    let (recurring, once): (Vec<_>, Vec<_>) =
        env.active_reminders().into_iter().partition(|reminder| reminder.rule.is_some());
    assert_eq!((recurring.len(), once.len()), (1, 1));
}

#[test]
fn nobody_elses_press_and_no_other_message_answers_a_reminder() {
    const LISTED: i64 = 777;
    let (telegram, mut env, message) = reminded("in 10 minutes");
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{LISTED}"));
    let (id, later) = (message.message_id, message.buttons[1].as_str());
    for (chat, who, message) in [(LISTED, LISTED, id), (CHAT, CHAT, id + 1)] {
        assert_eq!(
            press(&telegram, &env, (chat, who, message, later)),
            "This button no longer works. Nothing was done."
        );
    }
    assert_eq!(active(&env), "0 ");
}

const CONTEXT: &str = "memory/project-memory/context.md";
const ACTIVE: &str = "memory/project-memory/active.md";

/// A world in which a task has been quiet for a week, and was mentioned.
fn nudged() -> (FakeTelegram, TestEnv, SentMessage) {
    let telegram = FakeTelegram::start();
    telegram.number_updates_from(2_000);
    let mut env = TestEnv::with_telegram(&telegram);
    env.once();
    env.write_memory(ACTIVE, "# Active tasks\n\n## Write the report\n- status: active\n- touched: 2026-11-13\n");
    env.at("2026-11-21T15:00:00Z").once();
    let message = question(&telegram);
    assert!(message.visible.contains("“Write the report” has been quiet for 8 days"), "{message:?}");
    (telegram, env, message)
}

#[test]
fn done_under_a_nudge_finishes_its_task_as_a_wake_that_can_be_undone() {
    let (telegram, env, message) = nudged();
    assert_eq!(message.buttons.len(), 3);
    let said = press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[0]));
    assert_eq!(said, "✅ Done. I'll take it off your tasks.");
    let refused = env.wake(&["memory", "forget", "--yes", "Write the report"]);
    assert_eq!(refused.code, 1);
    refused.assert_tells("Not done yet: a button pressed under message");
    eventually("the answer is shown", || {
        telegram.standing().iter().any(|text| text.ends_with("I'll take it off your tasks."))
    });
    assert_eq!(env.once()["outcome"], "worked");
    assert!(!env.memory(ACTIVE).contains("report"), "{}", env.memory(ACTIVE));
    assert!(env.memory("memory/agent-memory/episodic-memory.md").contains("Finished the task “Write the report”"));
    assert_eq!(env.once()["outcome"], "idle", "once");
    for button in &message.buttons {
        let again = press(&telegram, &env, (CHAT, CHAT, message.message_id, button));
        assert_eq!(again, "You've already answered this.");
    }
    let wake = env.last_cycle().id;
    env.wake(&["undo", &wake]).ok();
    assert!(env.memory(ACTIVE).contains("## Write the report"));
    env.check_sound();
}

#[test]
fn a_nudge_comes_again_in_the_morning_as_a_reminder() {
    let (telegram, mut env, message) = nudged();
    let said = press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[1]));
    assert_eq!(said, "💤 I'll remind you again Sun 22 Nov 09:00.");
    assert_eq!(active(&env), "1 2026-11-22T08:00:00.000Z");
    env.at("2026-11-22T08:00:00Z").once();
    let again = telegram.sent().pop().unwrap();
    assert!(again.visible.starts_with("⏰ “Write the report” has been quiet") && again.buttons.len() == 3, "{again:?}");
    env.check_sound();
}

#[test]
fn nudges_that_are_not_wanted_stop_and_the_context_says_so() {
    let (telegram, mut env, message) = nudged();
    let said = press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[2]));
    assert!(said.starts_with("🔕 No more nudges."), "{said}");
    env.once();
    assert!(env.memory(CONTEXT).ends_with("- nudges: off\n"), "{}", env.memory(CONTEXT));
    let sent = telegram.sent().len();
    // The next line is crossed in silence.
    env.at("2026-11-24T15:00:00Z").once();
    assert_eq!(telegram.sent().len(), sent);
    env.check_sound();
}

#[test]
fn a_task_that_is_gone_by_then_is_told_of_and_nobody_elses_press_counts() {
    const LISTED: i64 = 777;
    let (telegram, mut env, message) = nudged();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{LISTED}"));
    let (id, done) = (message.message_id, message.buttons[0].as_str());
    for (chat, who, message) in [(LISTED, LISTED, id), (CHAT, CHAT, id + 1)] {
        let said = press(&telegram, &env, (chat, who, message, done));
        assert_eq!(said, "This button no longer works. Nothing was done.");
    }
    env.write_memory(ACTIVE, "# Active tasks\n\n## Write the other report\n- status: active\n- touched: 2026-11-21\n");
    press(&telegram, &env, (CHAT, CHAT, id, done));
    env.once();
    let told = telegram.sent().pop().unwrap().visible;
    assert!(told.starts_with("I couldn't finish “Write the report”: that task no longer exists."), "{told}");
    assert!(env.memory(ACTIVE).contains("## Write the other report"));
    env.check_sound();
}

/// A world with a desktop: what it shows is written down.
#[cfg(target_os = "linux")]
fn with_desktop(env: &mut TestEnv) {
    use std::os::unix::fs::PermissionsExt;
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\necho \"$4\" >> {}\n", env.path("shown").display());
    std::fs::write(bin.join("notify-send"), script).unwrap();
    std::fs::set_permissions(bin.join("notify-send"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), super::support::env::search_path());
    env.set("PATH", &path).set("DISPLAY", ":7");
}

#[cfg(target_os = "linux")]
fn shown(env: &TestEnv) -> Vec<String> {
    std::fs::read_to_string(env.path("shown")).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_desktop_shows_the_owners_reminders_and_open_questions_once_and_no_guests() {
    const GUEST: i64 = 777;
    let (telegram, claude, mut env) = super::support::story::with_claude();
    telegram.number_updates_from(2_000);
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GUEST}"));
    env.once();
    for (chat, text) in [(CHAT, "call Anna"), (GUEST, "feed Tom")] {
        env.put_reminder(chat, text, "2026-11-21T15:30:00", "2026-11-21T14:30:00Z");
    }
    with_desktop(&mut env);
    env.at("2026-11-21T14:30:00Z");
    // As the bot starts it.
    let wake = |env: &TestEnv| env.wake(&["--once", "--no-console"]).ok();
    wake(&env);
    assert_eq!(shown(&env), ["⏰ call Anna"]);
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    let remember =
        super::support::claude::Block::tool("t1", "remember", serde_json::json!({"fact": "The wifi is attic"}));
    claude.expect(super::support::claude::Reply::tools(vec![remember]));
    for _ in 0..3 {
        wake(&env);
    }
    let all = shown(&env);
    assert!(all.len() > 1 && all[1].starts_with("May I remember"), "{all:?}");
    assert_eq!(all.iter().filter(|line| line.contains("May I remember")).count(), 1, "{all:?}");
    assert_eq!(telegram.sent().iter().filter(|message| message.visible.contains("feed Tom")).count(), 1);
}
