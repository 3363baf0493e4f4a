//! Tests of initiative: off by default, weighed by a written rule, and at most one message until it is answered.

use serde_json::json;

use super::{
    support::story::{commits, last, opening, results, sent, with_claude},
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
};

const ACTIVE: &str = "memory/project-memory/active.md";
const LOG: &str = "memory/agent-memory/episodic-memory.md";
/// 09:00 in Berlin on the next day; the other times are 13:00 and 17:00.
const NINE: &str = "2026-11-22T08:00:00Z";
const ONE: &str = "2026-11-22T12:00:00Z";
const FIVE: &str = "2026-11-22T16:00:00Z";

/// An environment with a task that is due the day after tomorrow, and one that isn't urgent.
fn with_tasks(level: &str) -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    env.wake(&["task", "add", "Tax return", "--due", "2026-11-23", "--next", "find the receipts"]).ok();
    env.wake(&["task", "add", "Sail"]).ok();
    env.set("INITIATIVE", level);
    (telegram, claude, env)
}

#[test]
fn nothing_is_done_unasked_by_default() {
    let (_telegram, claude, mut env) = with_tasks("off");
    let before = commits(&env);
    for at in ["2026-11-22T06:00:00Z", NINE, "2026-11-22T09:59:00Z", ONE, FIVE, "2026-11-22T22:00:00Z"] {
        env.at(at);
        assert_eq!(env.once()["outcome"], "idle", "{at}");
    }
    assert_eq!((claude.requests().len(), commits(&env)), (0, before));
}

#[test]
fn one_useful_thing_is_done_and_the_log_names_the_alternatives() {
    let (telegram, claude, mut env) = with_tasks("low");
    let before = commits(&env);
    env.at("2026-11-22T07:59:00Z");
    assert_eq!(env.once()["outcome"], "idle", "before its time");
    let found =
        json!({"do": "update", "task": "Tax return", "key": "next", "value": "sort the receipts in the blue folder"});
    claude.expect(Reply::tool("t1", "tasks", found)).expect(Reply::text(""));
    env.at(NINE);
    let report = env.once();
    assert_eq!(report["outcome"], "worked");
    let request = last(&claude);
    let block = opening(&request, "<initiative>");
    assert!(
        block.contains("“Tax return” 13 points (urgency 3, importance 1, fit 2, age 0, due 2026-11-23)"),
        "{block}"
    );
    assert!(block.contains("Its next step: find the receipts") && !block.contains("Sail"), "{block}");
    assert!(env.memory(ACTIVE).contains("- next: sort the receipts in the blue folder"));
    assert_eq!((sent(&telegram).len(), commits(&env)), (0, before + 1), "no message, one commit");
    let log = env.memory(LOG);
    assert!(log.contains("Weighed what to do unasked: “Tax return” 13 points (urgency 3"), "{log}");
    assert!(log.contains("“Sail” 3 points"), "{log}");
    let shown = env.wake(&["show", report["cycle_id"].as_str().unwrap()]).ok().stdout;
    assert!(shown.contains("something useful unasked: “Tax return”") && shown.contains("“Sail” 3 points"), "{shown}");
    for later in ["2026-11-22T08:30:00Z", ONE, FIVE] {
        env.at(later);
        assert_eq!(env.once()["outcome"], "idle", "{later}");
    }
    assert_eq!(claude.requests().len(), 2);
    env.check_sound();
}

#[test]
fn unworthy_tasks_cost_a_line_of_the_log_and_no_request() {
    let (_telegram, claude, mut env) = with_tasks("low");
    env.wake(&["task", "done", "Tax return"]).ok();
    let before = commits(&env);
    env.at(NINE);
    assert_eq!(env.once()["outcome"], "worked");
    let log = env.memory(LOG);
    let line = "Looked for something useful unasked; nothing was worth it: “Sail” 3 points";
    assert!(log.contains(line), "{log}");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-23T10:30:00Z");
    assert_eq!(env.once()["outcome"], "idle", "a time missed by over two hours is skipped");
    env.wake(&["task", "drop", "Sail"]).ok();
    env.at("2026-11-24T08:00:00Z");
    assert_eq!(env.once()["outcome"], "idle", "without any task there isn't even a line in the log");
    assert_eq!((claude.requests().len(), commits(&env)), (0, before + 2));
    env.check_sound();
}

#[test]
fn the_next_time_is_skipped_until_the_last_proposal_is_answered() {
    let (telegram, claude, mut env) = with_tasks("high");
    let tell = |key: &str| json!({"key": key, "text": "Shall I sort the receipts?", "task": "Tax return"});
    claude.expect(Reply::tool("t1", "tell", tell("tax"))).expect(Reply::tool("t2", "tell", tell("again")));
    claude.expect(Reply::text(""));
    env.at(NINE).once();
    assert_eq!(sent(&telegram), ["Shall I sort the receipts?"], "one message, whatever its key");
    assert!(results(&last(&claude))[0].1, "{:?}", results(&last(&claude)));
    assert_eq!(env.outbox_of("tell").remove(0).key.unwrap(), "tell/initiative/2026-11-22T09:00");
    env.at(ONE);
    assert_eq!(env.once()["outcome"], "idle", "nobody has answered");
    env.at("2026-11-22T15:00:00Z").receive(CHAT, "not now");
    claude.expect(Reply::text("Fine."));
    env.once();
    claude.expect(Reply::text(""));
    env.at(FIVE);
    assert_eq!(env.once()["outcome"], "worked", "an answer frees the next time");
    assert!(last(&claude).raw.contains("<initiative>"));
    env.check_sound();
}

#[test]
fn a_plain_text_proposal_is_sent_and_a_fruitless_request_is_not_repeated() {
    let (telegram, claude, mut env) = with_tasks("high");
    claude.expect(Reply::text("Shall I sort the receipts?"));
    env.at(NINE);
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(sent(&telegram), ["Shall I sort the receipts?"]);
    assert!(env.memory(LOG).contains("Told unasked: Shall I sort the receipts?"), "{}", env.memory(LOG));
    env.at(ONE);
    assert_eq!(env.once()["outcome"], "idle", "the proposal waits for its answer");
    env.at("2026-11-22T15:00:00Z").receive(CHAT, "no");
    claude.expect(Reply::text("Fine."));
    env.once();

    claude.expect(Reply::text("Nothing is worth their attention."));
    env.at(FIVE);
    assert_eq!(env.once()["outcome"], "worked");
    let asked = claude.requests().len();
    for later in ["2026-11-22T16:30:00Z", "2026-11-22T17:30:00Z"] {
        assert_eq!(env.at(later).once()["outcome"], "idle", "{later}");
    }
    claude.expect(Reply::text(""));
    assert_eq!(env.at("2026-11-23T08:00:00Z").once()["outcome"], "worked", "the task is more urgent now");
    for later in ["2026-11-23T12:00:00Z", "2026-11-23T16:00:00Z"] {
        assert_eq!(env.at(later).once()["outcome"], "idle", "{later}");
    }
    let told = sent(&telegram);
    assert_eq!((claude.requests().len(), told.len()), (asked + 1, 3), "{told:?}");
    assert!(told[2].contains("Tax return") && told[2].contains("due"), "{told:?}");
    env.check_sound();
}

#[test]
fn calls_that_need_approval_are_refused_and_proposed_instead() {
    let (telegram, claude, mut env) = with_tasks("low");
    env.set("AUTONOMY", "0");
    let change = json!({"do": "update", "task": "Tax return", "key": "next", "value": "x"});
    claude.expect(Reply::tool("t1", "tasks", change));
    let proposal = json!({"key": "tax", "text": "May I note what is next for the tax return?"});
    claude.expect(Reply::tool("t2", "tell", proposal)).expect(Reply::text(""));
    env.at(NINE);
    assert_eq!(env.once()["outcome"], "worked");
    let refused = claude.requests().into_iter().nth(1).unwrap();
    assert!(results(&refused)[0].0.contains("Propose it with `tell`"), "{:?}", results(&refused));
    assert_eq!(sent(&telegram), ["May I note what is next for the tax return?"]);
    assert_eq!(env.approvals().len(), 0);
    assert!(env.memory(ACTIVE).contains("- next: find the receipts"));
    env.check_sound();
}

#[test]
fn without_a_model_the_time_waits_and_is_then_skipped_with_a_line_in_the_log() {
    let (telegram, claude, mut env) = with_tasks("low");
    env.set("DAILY_BUDGET_USD", "0").at(NINE);
    assert_eq!(env.once()["outcome"], "idle", "the time waits for a model");
    env.at("2026-11-22T09:30:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    let log = env.memory(LOG);
    assert!(log.contains("no AI model was available, so this time is skipped: “Tax return” 13 points"), "{log}");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!((claude.requests().len(), sent(&telegram).len()), (0, 0));
    env.check_sound();
}

#[test]
fn initiative_ends_after_eight_turns_without_asking_to_continue() {
    let (telegram, claude, mut env) = with_tasks("low");
    for n in 0..8 {
        let look = json!({"do": "file", "path": ACTIVE, "from_line": n + 1});
        claude.expect(Reply::tool(&format!("t{n}"), "look_up", look));
    }
    env.at(NINE);
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!((claude.requests().len(), sent(&telegram).len()), (8, 0));
    assert_eq!(env.approvals().len(), 0);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn low_energy_leaves_only_urgent_tasks_and_disabled_nudges_leave_none() {
    let (_telegram, claude, mut env) = with_tasks("low");
    env.wake(&["task", "set", "Tax return", "due", "2026-11-28"]).ok();
    env.wake(&["task", "set", "Tax return", "priority", "high"]).ok();
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: low\n");
    // The person's edit is a separate reason for a cycle, and comes first.
    claude.expect(Reply::text(""));
    env.at(NINE);
    env.once();
    assert!(env.memory(LOG).contains("energy is low, so only what is due by tomorrow counts"), "{}", env.memory(LOG));
    env.forget_handled("own/initiative/");
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- nudges: off\n");
    assert_eq!(env.once()["outcome"], "idle", "not even a line");
    assert!(!claude.requests().iter().any(|request| request.raw.contains("<initiative>")));
}
