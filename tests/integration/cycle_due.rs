//! What wakes the mind, how often, and what it may cost.

use super::{
    support::story::{block_of, commits, last, opening, sent, with_claude},
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv},
    },
};
use reveille_base::types::ApprovalAnswer;
use serde_json::json;

/// Why the mind says it was woken.
fn situation(claude: &FakeClaude) -> String {
    opening(&last(claude), "<situation")
}

fn write_task(env: &TestEnv, lines: &str) {
    env.write_memory("memory/project-memory/active.md", &format!("# Active tasks\n\n## Tax return\n\n{lines}"));
}

#[test]
fn without_a_reason_nothing_is_asked() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    for _ in 0..3 {
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!((claude.connections(), telegram.sent().len(), commits(&env)), (0, 0, 1));
    env.check_sound();
}

#[test]
fn a_spent_budget_is_said_once_and_the_messages_wait_for_tomorrow() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello.").using(0, 500_000));
    env.once();
    env.receive(CHAT, "how are you?");
    env.once();
    env.receive(CHAT, "hello?");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(claude.requests().len(), 1);
    let said = sent(&telegram);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[1].contains("budget") && said[1].contains("tomorrow"), "{said:#?}");
    // Still today in UTC, but not in Berlin.
    env.at("2026-11-21T22:59:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T23:01:00Z");
    claude.expect(Reply::text("Fine."));
    assert_eq!(env.once()["answered"], 2);
    assert_eq!(sent(&telegram)[2..], ["Fine."]);
    env.check_sound();
}

#[test]
fn a_budget_that_ends_in_the_middle_is_gone_on_from_tomorrow() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "remember that cats purr");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})).using(0, 500_000));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(telegram.sent().len(), 1);
    env.at("2026-11-22T08:00:00Z");
    claude.expect(Reply::text("Kept."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(last(&claude).messages.len(), 3);
    assert_eq!(sent(&telegram)[1..], ["Kept."]);
    env.check_sound();
}

#[test]
fn a_try_that_broke_off_counts_against_the_budget_before_the_next() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello, this is the first try.").using(2_500_000, 1).cut_after(4));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(claude.requests().len(), 1);
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("budget"), "{said:#?}");
    assert_eq!(env.queued().len(), 1);
    env.check_sound();
}

#[test]
fn what_went_stale_is_closed_with_a_word_and_the_rest_is_answered_with_its_date_in_mind() {
    let (telegram, claude, mut env) = with_claude();
    env.once();
    for text in ["ok", "why is the sky blue?", "what time is it?"] {
        env.receive(CHAT, text);
    }
    env.keep_queued_for_another_than("offline");
    env.at("2026-12-10T14:06:00Z");
    claude.expect(Reply::text("Because of the air."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(
        sent(&telegram),
        [
            "I've closed 2 older messages of yours without an answer, because their moment has passed: “ok” (1), “what time is it?” (3). \
             /retry 1 brings the first back.",
            "Because of the air."
        ]
    );
    let shown = opening(&last(&claude), "<messages>");
    assert!(
        shown.contains(" kept=\"said on Sat 21 Nov 2026 at 15:00, 19 days ago: answer with that in mind\""),
        "{shown}"
    );
    assert!(shown.contains("sky") && !shown.contains("what time"), "{shown}");
    assert_eq!(env.once()["outcome"], "idle");
    assert!(!env.wake(&["queue", "list"]).ok().stdout.contains("what time"));
    let all = env.wake(&["queue", "list", "--all"]).ok().stdout;
    assert!(all.contains("closed: its time is over") && all.contains("what time is it?"), "{all}");
    // Brought back, it is answered, however old it is.
    env.wake(&["queue", "retry", "3"]).ok();
    claude.expect(Reply::text("Six past three."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(sent(&telegram)[2..], ["Six past three."]);
    env.check_sound();
}

#[test]
fn a_budget_of_nothing_asks_nothing_and_says_so() {
    let (telegram, claude, mut env) = with_claude();
    env.set("DAILY_BUDGET_USD", "0").receive(CHAT, "explain black tea");
    env.once();
    for day in 22..25 {
        env.at(&format!("2026-11-{day}T14:00:00Z"));
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!(claude.connections(), 0);
    let said = sent(&telegram);
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].contains("DAILY_BUDGET_USD is 0") && !said[0].contains("tomorrow"), "{said:#?}");
    env.set("DAILY_BUDGET_USD", "1");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    env.check_sound();
}

#[test]
fn a_quiet_task_wakes_the_mind_once_at_each_line_and_not_at_night() {
    let (telegram, claude, mut env) = with_claude();
    env.set("QUIET_HOURS", "22:00-08:00").at("2026-11-20T23:30:00Z").wake(&["--once"]).ok();
    write_task(&env, "- status: active\n- touched: 2026-11-14\n");
    assert_eq!(env.once()["outcome"], "idle", "half past midnight");
    for (at, stage, days) in [
        ("2026-11-21T07:30:00Z", "nudge", 7),
        ("2026-11-24T07:30:00Z", "challenge", 10),
        ("2026-11-28T07:30:00Z", "decide", 14),
    ] {
        env.at(at);
        let tell = json!({"key": format!("tax/{stage}"), "text": format!("The tax return, {days} days")});
        claude.expect(Reply::tool("t1", "tell", tell));
        claude.expect(Reply::text("Told."));
        assert_eq!(env.once()["outcome"], "worked");
        assert!(situation(&claude).contains(&format!("is quiet: {stage}")), "{}", situation(&claude));
        assert_eq!(sent(&telegram).last().unwrap(), &format!("The tax return, {days} days"));
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!(telegram.sent().len(), 3);
    env.at("2026-12-15T07:30:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_tasks_own_time_wakes_the_mind_once() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write_task(&env, "- touched: 2026-11-21\n- next: look up the form\n- at: 2026-11-21 16:00\n");
    env.git(&["commit", "-qam", "A task"]);
    claude.expect(Reply::text("Seen."));
    env.once();
    env.at("2026-11-21T14:59:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T15:00:00Z");
    claude.expect(Reply::text("I looked it up."));
    env.once();
    assert!(situation(&claude).contains("&quot;Tax return&quot; has its next step now"), "{}", situation(&claude));
    assert_eq!(env.once()["outcome"], "idle");
    assert!(telegram.sent().is_empty(), "nobody asked, so the last words are for nobody");
    env.check_sound();
}

#[test]
fn what_a_parked_cycle_was_told_of_begins_no_other() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    env.set("AUTONOMY", "0");
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: low\n");
    env.git(&["commit", "-qam", "I am tired"]);
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "They are tired"})));
    assert_eq!(env.once()["outcome"], "parked");
    env.once();
    assert_eq!((claude.requests().len(), telegram.sent().len()), (1, 1), "asked once, by one cycle");
    let mut store = env.store();
    let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap();
    let asked = store.approvals().pending_approvals(now).unwrap().pop().unwrap();
    assert!(store.approvals_mut().decide_approval(asked.id, ApprovalAnswer::No, now).unwrap());
    claude.expect(Reply::text(""));
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

/// A cycle that waited for its person ends after one that was shown more: what that one saw isn't due again.
#[test]
fn what_others_saw_while_a_cycle_was_parked_stays_seen() {
    let (_telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    env.set("AUTONOMY", "0");
    let commit = |text: &str| {
        env.write_memory("memory/project-memory/context.md", &format!("# Context\n\n- energy: {text}\n"));
        env.git(&["commit", "-qam", text]);
    };
    commit("low");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "They are tired"})));
    assert_eq!(env.once()["outcome"], "parked");
    commit("high");
    claude.expect(Reply::text(""));
    assert_eq!(env.once()["outcome"], "worked");
    let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap();
    let mut store = env.store();
    let asked = store.approvals().pending_approvals(now).unwrap().pop().unwrap();
    assert!(store.approvals_mut().decide_approval(asked.id, ApprovalAnswer::No, now).unwrap());
    claude.expect(Reply::text(""));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(claude.requests().len(), 3);
    env.check_sound();
}

#[test]
fn a_persons_commit_wakes_the_mind_once_and_is_shown() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: low\n");
    env.git(&["commit", "-qam", "I am <tired>"]);
    claude.expect(Reply::text("Noted."));
    assert_eq!(env.once()["outcome"], "worked");
    let situation = situation(&claude);
    assert!(situation.contains("A person committed ") && situation.contains("I am &lt;tired>"), "{situation}");
    assert!(opening(&last(&claude), "<memory>").contains("- energy: low"));
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(claude.requests().len(), 1);
    env.check_sound();
}

#[test]
fn a_wake_ends_and_has_seen_what_a_person_committed_in_one_step() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: low\n");
    env.git(&["commit", "-qam", "I am tired"]);
    env.refuse("INSERT", "handled", "NEW.key = 'head'");
    claude.expect(Reply::text("Noted."));
    assert_eq!(env.wake(&["--once"]).code, 1);
    env.refuse_no_more("handled");
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!((env.once()["outcome"].as_str(), claude.requests().len()), (Some("idle"), 1));
    env.check_sound();
}

#[test]
fn a_reason_that_could_not_be_thought_about_is_thought_about_later() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write_task(&env, "- touched: 2026-11-14\n");
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T14:01:00Z");
    claude.expect(Reply::text("Seen."));
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    assert!(telegram.sent().is_empty());
    env.check_sound();
}

#[test]
fn a_reason_that_the_server_refuses_to_hear_of_is_told_and_not_tried_for_ever() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write_task(&env, "- touched: 2026-11-14\n");
    claude.expect(Reply::error(400, "invalid_request_error", "broken"));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert!(sent(&telegram)[0].contains("Tax return"), "{:?}", sent(&telegram));
    env.at("2026-11-22T14:00:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn what_the_offline_mind_kept_is_answered_once_there_is_a_key() {
    let (telegram, claude, mut env) = with_claude();
    env.unset("ANTHROPIC_API_KEY").unset("MODEL").receive(CHAT, "write me a poem");
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    assert!(sent(&telegram)[0].contains("I'll keep your message"), "{:?}", sent(&telegram));
    env.think_with(&claude).at("2026-11-21T15:00:00Z");
    claude.expect(Reply::text("The sea, the sea."));
    assert_eq!(env.once()["answered"], 1);
    let request = last(&claude);
    assert!(opening(&request, "<messages>").contains("write me a poem"));
    assert!(block_of(&request.json["messages"][0], "<recent_exchange>").contains("I'll keep your message"));
    assert_eq!(sent(&telegram)[1..], ["The sea, the sea."]);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_persons_commit_is_shown_however_much_was_committed_by_rule_since() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.git(&["commit", "-q", "--allow-empty", "-m", "I drink tea"]);
    for n in 0..20 {
        env.git(&["commit", "-q", "--allow-empty", "-m", &format!("Reminded of {n}\n\nWake-Id: w-{n}")]);
    }
    claude.expect(Reply::text("Seen."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(claude.requests()[0].last_text().contains("I drink tea"), "{}", claude.requests()[0].last_text());
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn what_a_person_commits_while_the_mind_works_is_shown_to_the_next_wake() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "hello");
    let brain = env.brain().display().to_string();
    let commit = env.command(
        "git",
        &[
            "-C",
            &brain,
            "-c",
            "user.name=Ann",
            "-c",
            "user.email=ann@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "I drink tea",
        ],
    );
    let commit = std::sync::Mutex::new(commit);
    claude.expect(Reply::with(move |_| {
        assert!(commit.lock().unwrap().status().unwrap().success());
        Reply::text("Hello!")
    }));
    // The same wake looks again, and finds the commit.
    claude.expect(Reply::with(|request| {
        assert!(request.last_text().contains("I drink tea"), "{}", request.last_text());
        Reply::text("Seen.")
    }));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(sent(&telegram), ["Hello!"]);
    env.check_sound();
}
