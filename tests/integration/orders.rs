//! What a person orders at the terminal without a model: tasks, reminders, and a look at today.

use serde_json::{Value, json};

use super::{
    support::story::{end_well, start_wake, wait_for_request, with_claude},
    support::{claude::Reply, env::TestEnv, http::Gate},
};

const ACTIVE: &str = "memory/project-memory/active.md";
const BACKLOG: &str = "memory/project-memory/backlog.md";

fn lines(ran: &str) -> Vec<Value> {
    ran.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A world with a memory.
fn world() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env
}

#[test]
fn a_task_is_added_moved_changed_and_finished_each_as_a_commit_of_the_persons_own() {
    let env = world();
    let told = |args: &[&str]| env.wake(&[&["task"], args].concat()).ok().notices().to_owned();
    assert!(env.wake(&["task", "list"]).ok().stdout.starts_with("No tasks."));
    let added = told(&["add", "Write the report", "--due", "friday", "--priority", "high", "--next", "an outline"]);
    assert!(added.contains("Added to the active tasks: Write the report"), "{added}");
    told(&["add", "Learn the cello", "--backlog"]);
    let active = env.memory(ACTIVE);
    for line in
        ["## Write the report", "- touched: 2026-11-21", "- due: 2026-11-27", "- priority: high", "- next: an outline"]
    {
        assert!(active.contains(line), "{line}: {active}");
    }
    insta::assert_snapshot!(env.wake(&["task", "list"]).ok().stdout, @r"
    **In hand** (1 of 7):
    1. Write the report, priority high, due Fri 27 Nov, next: an outline

    **Waiting** (1):
    2. Learn the cello
    ");
    let listed = lines(&env.wake(&["task", "list", "--json"]).ok().stdout);
    assert_eq!((&listed[0]["due"], &listed[1]["list"]), (&json!("2026-11-27"), &json!("backlog")));
    // A number means the list that was shown last, whatever became of the tasks since.
    told(&["start", "2"]);
    assert!(env.memory(ACTIVE).contains("## Learn the cello") && !env.memory(BACKLOG).contains("cello"));
    told(&["done", "1"]);
    assert!(!env.memory(ACTIVE).contains("report"));
    told(&["set", "cello", "at", "tomorrow 9"]);
    assert!(env.memory(ACTIVE).contains("- at: 2026-11-22 09:00"), "{}", env.memory(ACTIVE));
    assert!(env.wake(&["task", "show", "2"]).ok().stdout.contains("- at: 2026-11-22 09:00"));
    assert_eq!(
        env.git(&["log", "-1", "--format=%s %an"]),
        "Updated the task “Learn the cello”: at now “2026-11-22 09:00” Owner"
    );
    assert_eq!(env.git(&["status", "--short"]), "");
    // It is no reason to wake, but for the task's own time.
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn what_the_person_was_editing_is_committed_first_and_stays() {
    let env = world();
    env.write_memory(
        ACTIVE,
        "# Active tasks\n\n## Call Anna\n- status: active\n- touched: 2026-11-20\n\nHer number is 77.\n",
    );
    env.wake(&["task", "add", "Tea"]).ok();
    let active = env.memory(ACTIVE);
    assert!(active.contains("Her number is 77.") && active.contains("## Tea"), "{active}");
    let subjects = env.git(&["log", "-2", "--format=%s"]);
    assert!(subjects.starts_with("Added the task “Tea”"), "{subjects}");
    assert!(!env.git(&["show", "HEAD"]).contains("+Her number"), "it is in the commit before");
    env.check_sound();
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_type_and_changes_nothing() {
    let env = world();
    let before = env.git(&["rev-parse", "HEAD"]);
    for (args, why) in [
        (
            &["task", "done", "nothing"][..],
            "There is no task “nothing”. Nothing was done; `wake task list` shows them.",
        ),
        (&["task", "done", "3"], "yet. Nothing was done; `wake task list` shows them"),
        (&["task", "add", "x", "--due", "soonish"], "due: “soonish” isn't understood as a time. Try"),
        (&["task", "add", "x", "--at", "every friday"], "set a reminder for that"),
        (&["task", "show", "x"], "`wake task list` shows them"),
        (&["task", "add", "the key is sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"], "key or token"),
        (&["remind", "done", "9"], "There's no reminder 9. Nothing was done; `wake remind list` shows them."),
        (&["remind", "tea", "--at", "soonish"], "No time was understood"),
        (&["remind", "tea"], "wake remind \"call Anna\" --at \"tomorrow 9\""),
    ] {
        let ran = env.wake(args);
        ran.assert_fails(1, why);
        assert!(ran.stdout.is_empty(), "{args:?}: {ran:#?}");
    }
    assert_eq!(env.wake(&["remind", "--at", "tomorrow 9"]).code, 2);
    assert_eq!((env.git(&["rev-parse", "HEAD"]), env.reminders().len()), (before, 0));
}

#[test]
fn reminders_are_set_listed_put_off_and_ended_while_a_wake_is_at_work() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(4242, "Think hard.");
    let gate = Gate::default();
    claude.expect(Reply::text("Done.").stalled_after(2, &gate));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    let told = |args: &[&str]| env.wake(&[&["remind"], args].concat()).ok().notices().to_owned();
    assert!(told(&["call Anna", "--at", "tomorrow 9"]).contains("Reminder set: call Anna — Sun 22 Nov 2026 at 09:00"));
    told(&["stretch every weekday at 8"]);
    told(&["tea", "--at", "20min"]);
    insta::assert_snapshot!(env.wake(&["remind", "list"]).ok().stdout, @r"
    3. tea — Sat 21 Nov 2026 at 15:20
    1. call Anna — Sun 22 Nov 2026 at 09:00
    2. stretch — every weekday at 08:00, next Mon 23 Nov 2026 at 08:00
    ");
    told(&["snooze", "3", "2h"]);
    told(&["cancel", "1"]);
    let listed = lines(&env.wake(&["remind", "list", "--json"]).ok().stdout);
    let left: Vec<(&str, &str)> =
        listed.iter().map(|one| (one["text"].as_str().unwrap(), one["local"].as_str().unwrap())).collect();
    assert_eq!(left, [("tea", "2026-11-21 17:20"), ("stretch", "2026-11-23 08:00")]);
    let today = env.wake(&["today"]).ok().stdout;
    assert!(today.contains("- 17:20 tea (reminder 4)") && !today.contains("stretch"), "{today}");
    gate.open();
    end_well(wake);
    env.check_sound();
}

#[test]
fn a_reminder_that_has_come_can_be_put_off() {
    let mut env = world();
    env.wake(&["remind", "tea", "--at", "20min"]).ok();
    env.at("2026-11-21T14:30:00Z");
    assert!(env.run_for_terminal_replies().stdout.contains("tea"));
    let ran = env.wake(&["remind", "snooze", "1", "30min"]).ok();
    ran.assert_tells("Moved: tea — Sat 21 Nov 2026 at 16:00");
    let states: Vec<String> = env.reminders().into_iter().map(|reminder| reminder.state).collect();
    assert_eq!(states, ["done", "active"]);
    env.check_sound();
}

#[test]
fn a_shell_completes_the_commands_and_the_manual_has_a_page_for_each() {
    // Settings that are wrong don't stand in the way.
    let mut env = TestEnv::new();
    env.set("AUTONOMY", "9");
    for (shell, part) in [("bash", "complete -F _wake"), ("zsh", "#compdef wake"), ("fish", "complete -c wake")] {
        let script = env.wake(&["completions", shell]).ok().stdout;
        assert!(script.contains(part) && script.contains("remind"), "{shell}");
    }
    assert!(env.wake(&["completions", "fish", "health"]).ok().stdout.contains("complete -c health"));
    let page = env.wake(&["man", "memory", "search"]).ok().stdout;
    assert!(page.contains(".TH wake-memory-search 1") && page.contains("as\\-of"), "{page}");
    let ran = env.wake(&["man", "tea"]);
    ran.assert_fails(2, "wake has no command \"tea\"");
}

#[test]
fn today_shows_tasks_with_their_age_and_what_waits_and_nothing_empty() {
    let env = world();
    assert_eq!(env.wake(&["today"]).ok().stdout, "Nothing is due today.\n");
    env.write_memory(ACTIVE, "# Active tasks\n\n## Call Anna\n- status: active\n- touched: 2026-11-17\n");
    env.wake(&["say", "Why is the sky blue on Mars?"]);
    let today = env.wake(&["today"]).ok().stdout;
    insta::assert_snapshot!(today, @r"
    **In hand**
    - Call Anna (untouched for 4 days)

    **Waiting for an answer**
    - today 15:00: Why is the sky blue on Mars? (message 1)
    ");
    let document = env.wake(&["today", "--json"]).ok().json();
    assert_eq!((&document["tasks"][0]["quiet_days"], &document["messages"][0]["id"]), (&json!(4), &json!(1)));
}
