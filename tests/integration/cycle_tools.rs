//! What the mind's tools leave: in the memory, in the reminders, in the outbox.

use super::{
    support::story::{last, results, sent, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv},
    },
};
use serde_json::{Value, json};

/// One wake in which the mind makes these calls and answers "Done."; gives each call's result.
#[track_caller]
fn calls(env: &TestEnv, claude: &FakeClaude, calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    env.receive(CHAT, "please do it");
    let blocks = calls.iter().enumerate().map(|(n, (name, input))| Block::tool(&format!("t{n}"), name, input));
    claude.expect(Reply::tools(blocks.collect()));
    claude.expect(Reply::text("Done."));
    env.once();
    let results = results(&last(claude));
    assert_eq!(results.len(), calls.len());
    results
}

#[track_caller]
fn all_well(results: &[(String, bool)]) {
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:#?}");
}

#[test]
fn facts_are_kept_once_and_forgotten_when_asked() {
    let (_telegram, claude, env) = with_claude();
    all_well(&calls(
        &env,
        &claude,
        &[
            ("remember", json!({"fact": "Bob is allergic to nuts", "topic": "Friends"})),
            ("remember", json!({"fact": "Bob is allergic to nuts", "topic": "Friends"})),
            ("remember", json!({"fact": "The boiler was serviced in May"})),
        ],
    ));
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("## Friends\n- Bob is allergic to nuts <!-- wake "), "{facts}");
    assert_eq!(facts.matches("Bob").count(), 1);
    all_well(&calls(&env, &claude, &[("forget", json!({"fact": "boiler"}))]));
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("Bob") && !facts.contains("boiler"), "{facts}");
    assert!(env.git(&["log", "-p"]).contains("boiler"));
    env.check_sound();
}

#[test]
fn the_two_small_documents_are_rewritten_but_not_gutted() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let habits =
        (8..18).map(|hour| format!("- {hour}:00 is a good time for one kind of work and a bad one for all others\n"));
    let context = format!("# Context\n\n- energy: low, had a bad night\n{}", habits.collect::<String>());
    let context = context.trim_end();
    all_well(&calls(
        &env,
        &claude,
        &[
            ("note", json!({"text": "# Working memory\n\nWaiting for Bob's call about the boat.", "shorten": true})),
            ("context_update", json!({"text": context, "shorten": true})),
        ],
    ));
    assert!(env.memory("memory/agent-memory/working-memory.md").ends_with("Waiting for Bob's call about the boat.\n"));
    assert_eq!(env.memory("memory/project-memory/context.md"), format!("{context}\n"));

    let told = calls(&env, &claude, &[("context_update", json!({"text": "- energy: fine"}))]);
    assert!(told[0].1 && told[0].0.contains("more than half"), "{told:?}");
    assert_eq!(env.memory("memory/project-memory/context.md"), format!("{context}\n"));
    env.check_sound();
}

#[test]
fn tasks_are_added_changed_finished_and_moved_and_seven_are_active_at_most() {
    let (_telegram, claude, env) = with_claude();
    let add = |n: usize| ("task_add", json!({"title": format!("Job {n}"), "next": "begin"}));
    let told = calls(&env, &claude, &(1..=8).map(add).collect::<Vec<_>>());
    assert_eq!(told.iter().filter(|(_, is_error)| *is_error).count(), 1);
    assert!(told[7].1 && told[7].0.contains('7'), "{:?}", told[7]);
    let told = calls(
        &env,
        &claude,
        &[
            ("task_update", json!({"task": "Job 1", "key": "next", "value": "call Anna"})),
            ("task_update", json!({"task": "Job 2", "key": "at", "value": "sometime"})),
            ("task_done", json!({"task": "Job 3"})),
            ("task_move", json!({"task": "Job 4", "to": "backlog"})),
            ("task_add", json!({"title": "Job 8", "at": "2026-11-23 09:00", "why": "it was asked for"})),
            ("task_done", json!({"task": "Job"})),
            ("task_touch", json!({"task": "nothing like it"})),
            ("task_list", json!({})),
        ],
    );
    let errors: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, true, false, false, false, true, true, false], "{told:#?}");
    assert!(told[7].0.starts_with("- Job 1 — next: call Anna\n- Job 2"), "{told:#?}");
    let active = env.memory("memory/project-memory/active.md");
    assert!(active.contains("## Job 1\n- status: active\n- touched: 2026-11-21\n- next: call Anna\n"), "{active}");
    assert!(active.contains("- at: 2026-11-23 09:00\n- why: it was asked for\n"), "{active}");
    assert_eq!(active.matches("## ").count(), 6 + usize::from(active.contains("\"## Title\"")), "{active}");
    assert!(!active.contains("Job 3") && !active.contains("Job 4"), "{active}");
    let backlog = env.memory("memory/project-memory/backlog.md");
    assert!(backlog.contains("## Job 4\n- status: waiting\n"), "{backlog}");
    env.check_sound();
}

#[test]
fn a_touched_task_counts_from_today() {
    let (_telegram, claude, mut env) = with_claude();
    all_well(&calls(&env, &claude, &[("task_add", json!({"title": "Paint the fence"}))]));
    env.at("2026-11-24T14:00:00Z");
    all_well(&calls(&env, &claude, &[("task_touch", json!({"task": "fence"}))]));
    assert!(env.memory("memory/project-memory/active.md").contains("- touched: 2026-11-24\n"));
    env.check_sound();
}

#[test]
fn reminders_are_set_listed_fired_once_and_ended() {
    let (telegram, claude, mut env) = with_claude();
    let told = calls(
        &env,
        &claude,
        &[
            ("reminder_set", json!({"text": "Call the dentist", "when": "2026-11-23 09:00"})),
            ("reminder_set", json!({"text": "Stand up", "when": "every weekday at 8"})),
            ("reminder_set", json!({"text": "Never", "when": "in the green season"})),
            ("reminder_set", json!({"text": "Past", "when": "2020-01-01 09:00"})),
            ("reminder_list", json!({})),
        ],
    );
    assert_eq!(told.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, false, true, true, false]);
    assert!(told[4].0.contains("Call the dentist — Mon 23 Nov 2026 at 09:00"), "{told:#?}");
    assert!(told[4].0.contains("Stand up — every weekday at 08:00, next Mon 23 Nov 2026 at 08:00"), "{told:#?}");
    assert_eq!(env.reminder("Call the dentist").next_at, "2026-11-23T08:00:00.000Z");

    // No mind is asked for what a reminder says; its next slot is Tuesday's.
    env.at("2026-11-23T08:00:00Z");
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    let fired = sent(&telegram);
    assert_eq!(fired.len(), 3, "{fired:#?}");
    assert!(fired.contains(&"⏰ Call the dentist".to_owned()), "{fired:#?}");
    assert!(fired.iter().any(|text| text.starts_with("⏰ Stand up")), "{fired:#?}");
    assert_eq!(env.reminder("Stand up").next_at, "2026-11-24T07:00:00.000Z");

    let told = calls(&env, &claude, &[("reminder_done", json!({"reminder": "stand"})), ("reminder_list", json!({}))]);
    assert_eq!(told[1], ("No reminders are set.".to_owned(), false));
    env.at("2026-11-24T08:00:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(telegram.sent().len(), 4);
    env.check_sound();
}

#[test]
fn memory_and_skills_are_read_and_nothing_outside_of_them() {
    let (_telegram, claude, env) = with_claude();
    std::fs::create_dir_all(env.workspace()).unwrap();
    std::fs::write(env.workspace().join("secret.md"), "outside").unwrap();
    all_well(&calls(&env, &claude, &[("remember", json!({"fact": "The spare key is with Mrs Novak"}))]));
    let head = env.git(&["rev-parse", "HEAD^{tree}"]);
    let told = calls(
        &env,
        &claude,
        &[
            ("memory_search", json!({"query": "spare key"})),
            ("memory_read", json!({})),
            ("memory_read", json!({"path": "memory/agent-memory/semantic-memory.md"})),
            ("read_skill", json!({"name": "tdd"})),
            ("memory_read", json!({"path": "../secret.md"})),
            ("memory_read", json!({"path": "memory/../../secret.md"})),
            ("memory_read", json!({"path": "memory/nothing.md"})),
            ("read_skill", json!({"name": "flying"})),
            ("memory_search", json!({"query": "zzzz"})),
        ],
    );
    let errors: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, false, false, true, true, true, true, false], "{told:#?}");
    assert!(
        told[0].0.contains("memory/agent-memory/semantic-memory.md:7: The spare key is with Mrs Novak"),
        "{}",
        told[0].0
    );
    assert!(told[1].0.contains("skills/tdd/SKILL.md") && !told[1].0.contains("secret"), "{}", told[1].0);
    assert!(told[2].0.contains("# Semantic memory"), "{}", told[2].0);
    assert!(told[3].0.contains("# Test-driven development") && !told[3].0.contains("description:"), "{}", told[3].0);
    assert!(told[7].0.contains("tdd"), "{}", told[7].0);
    assert_eq!(told[8].0, "Nothing was found.");
    assert_ne!(env.git(&["rev-parse", "HEAD^{tree}"]), head, "the entry is written");
    assert_eq!(env.git(&["show", "--name-only", "--format="]), "memory/agent-memory/episodic-memory.md");
    env.check_sound();
}

#[test]
fn the_same_is_told_once_so_many_times_a_day_and_not_in_quiet_hours() {
    let (telegram, claude, mut env) = with_claude();
    env.set("TELL_PER_DAY", "2");
    let tell = |key: &str| ("tell", json!({"key": key, "text": format!("About {key}")}));
    let told = calls(&env, &claude, &[tell("Tax"), tell("tax"), tell("boat"), tell("car")]);
    assert_eq!(told.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, true, false, true], "{told:#?}");
    assert!(told[1].0.contains("told before") && told[3].0.contains("limit"), "{told:#?}");
    assert_eq!(sent(&telegram), ["About Tax", "About boat", "Done."]);

    env.at("2026-11-22T14:00:00Z").set("QUIET_HOURS", "14:00-16:00");
    let told = calls(&env, &claude, &[tell("car")]);
    assert!(told[0].1 && told[0].0.contains("quiet hours"), "{told:#?}");
    env.at("2026-11-22T15:00:00Z");
    let told = calls(&env, &claude, &[tell("car"), tell("tax")]);
    assert_eq!(told.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, true], "{told:#?}");
    assert_eq!(env.outbox_of("tell").len(), 3);
    env.check_sound();
}

#[test]
fn documents_of_its_own_are_committed_like_any_others_and_what_steers_it_asks() {
    let (_telegram, claude, env) = with_claude();
    let memory = |id: &str, arguments: Value| {
        Reply::tools(vec![Block::tool(id, "use_tool", json!({"name": "memory", "arguments": arguments}))])
    };
    env.receive(CHAT, "keep a page about Oslo");
    claude.expect(memory("t1", json!({"command": "create", "path": "/memories/trips/rome.md", "file_text": "# Rome"})));
    let rename =
        json!({"command": "rename", "old_path": "/memories/trips/rome.md", "new_path": "/memories/trips/oslo.md"});
    claude.expect(memory(
        "t2",
        json!({"command": "insert", "path": "/memories/trips/rome.md", "insert_line": 1, "insert_text": "- hills"}),
    ));
    claude.expect(Reply::text("Kept."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.memory("memory/trips/rome.md"), "# Rome\n- hills\n");
    assert_eq!(env.git(&["status", "--porcelain"]), "");

    env.receive(CHAT, "call it Oslo");
    claude.expect(memory("t3", rename));
    assert_eq!(env.once()["outcome"], "parked", "a document goes");
    claude.expect(Reply::text("It is."));
    env.wake(&["approvals", "approve", "1"]).ok();
    assert_eq!(
        (env.memory("memory/trips/oslo.md").as_str(), env.memory("memory/trips/rome.md").as_str()),
        ("# Rome\n- hills\n", "")
    );

    env.check_sound();
}
