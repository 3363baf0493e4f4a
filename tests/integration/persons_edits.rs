//! People's edits outrank the model's own writing, in each document: what they wrote stays, and where both changed the same line theirs
//! stands, whether they had committed it, left it in the work tree, or wrote it while a cycle was open.

use std::sync::Mutex;

use serde_json::json;

use crate::{
    exec_shell::approve,
    support::story::{end_well, results, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, TestEnv},
        http::{Gate, lock},
    },
};

const LOG: &str = "memory/agent-memory/episodic-memory.md";
const ORDERS: &str = "claude.md";
const SKILL: &str = "skills/notes/SKILL.md";
const TASK: &str = "# Tasks\n\n## Paint\n- status: active\n- touched: 2026-11-20\n- next: line one\n- why: joy\n\nline two\n\nIn between.\n\nline three\n";
const LINES: &str = "# Lines\n\n## Here\n- line one\n- apples\n- line two\n- pears\n- line three\n";
const DOCUMENTS: [(&str, &str); 8] = [
    ("memory/agent-memory/working-memory.md", LINES),
    ("memory/agent-memory/semantic-memory.md", LINES),
    ("memory/project-memory/context.md", LINES),
    ("memory/project-memory/active.md", TASK),
    ("memory/project-memory/backlog.md", TASK),
    (LOG, "# Log\n\n## 2026-11-20\n- 09:00 line one\n- 10:00 line two\n- 11:00 line three\n"),
    (ORDERS, LINES),
    (
        SKILL,
        "---\nname: notes\ndescription: Keep notes.\n---\n\n- line one\n- apples\n- line two\n- pears\n- line three\n",
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Committed,
    Uncommitted,
    WhileOpen,
}

/// A mind that changes the first and the third line of the document that it is asked about, as it knew them, and nothing else.
fn mind(request: &ClaudeRequest, gate: Option<&Gate>) -> Reply {
    let messages = request.json["messages"].as_array().unwrap();
    let blocks = messages[0]["content"].as_array().unwrap();
    let said: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let is_asked =
        |path: &str| said.split("<messages>").nth(1).is_some_and(|said| said.contains(&format!("rewrite {path}.")));
    let Some((path, _)) = DOCUMENTS.iter().find(|(path, _)| is_asked(path)) else { return Reply::text("Seen.") };
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let Some(line) = ["line one\n", "line three\n"].get(turn) else {
        let done = Reply::text("Done.");
        return gate.map_or_else(|| Reply::text("Done."), |gate| done.stalled_after(2, gate));
    };
    let new = line.replace('\n', " by the model\n");
    if [ORDERS, SKILL].contains(path) {
        let edits = json!([{"path": path, "old": format!("- {line}"), "new": format!("- {new}")}]);
        let change =
            json!({"title": "Other lines", "why": "As asked.", "figure": "rounds", "aim": "less", "edits": edits});
        let call = json!({"name": "propose_change", "arguments": change});
        return Reply::tools(vec![Block::tool(&format!("t{turn}"), "use_tool", call)]);
    }
    let path = format!("/memories/{}", path.strip_prefix("memory/").unwrap_or(path));
    let edit = json!({"command": "str_replace", "path": path, "old_str": line, "new_str": new});
    Reply::tools(vec![Block::tool(&format!("t{turn}"), "use_tool", json!({"name": "memory", "arguments": edit}))])
}

fn edit_by_hand(env: &TestEnv, path: &str) {
    let text = env.memory(path);
    env.write_memory(
        path,
        &text.replace("line one\n", "line one by hand\n").replace("line two\n", "line two by hand\n"),
    );
}

/// Lets the model write, and a person agree to whatever asks.
fn write(env: &TestEnv, claude: &FakeClaude, gate: &Mutex<Option<Gate>>, path: &str, when: When) {
    match when {
        When::Committed => {
            edit_by_hand(env, path);
            env.git(&["commit", "-qam", "By hand"]);
        }
        When::Uncommitted => edit_by_hand(env, path),
        When::WhileOpen => {}
    }
    let is_steering = [ORDERS, SKILL].contains(&path);
    let opened = (when == When::WhileOpen && !is_steering).then(Gate::default);
    lock(gate).clone_from(&opened);
    env.receive(CHAT, &format!("rewrite {path}."));
    let before = claude.requests().len();
    match opened {
        Some(gate) => {
            let wake = start_wake(env);
            wait_for_request(claude, before + 3);
            edit_by_hand(env, path);
            gate.open();
            end_well(wake);
        }
        None => {
            let mut outcome = env.once()["outcome"].clone();
            // What steers the model waits for a person's word: then the cycle is open.
            if when == When::WhileOpen {
                edit_by_hand(env, path);
            }
            while outcome == "parked" {
                approve(env);
                outcome = env.once()["outcome"].clone();
            }
        }
    }
    lock(gate).take();
}

#[track_caller]
fn stands(env: &TestEnv, path: &str) {
    let text = env.memory(path);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('>')).collect();
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(has("line one by hand") && has("line two by hand"), "{path}: {text}");
    assert!(!has("line one by the model"), "{path}: {text}");
    assert!(has("line three by the model") || path == LOG, "{path}: {text}");
}

fn outrank(when: When) {
    let (_telegram, claude, env) = with_claude();
    let gate: &'static Mutex<Option<Gate>> = Box::leak(Box::default());
    claude.answer_with(move |request| mind(request, lock(gate).as_ref()));
    env.wake(&["--once"]).ok();
    for (path, text) in DOCUMENTS {
        std::fs::create_dir_all(env.brain().join(path).parent().unwrap()).unwrap();
        env.write_memory(path, text);
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "Begin"]);
    env.once();
    for (path, _) in DOCUMENTS {
        write(&env, &claude, gate, path, when);
        stands(&env, path);
    }
    // Nothing of it is reverted later.
    env.receive(CHAT, "hello");
    env.once();
    for (path, _) in DOCUMENTS {
        stands(&env, path);
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.check_sound();
}

/// The two documents that are rewritten whole: a rewriting that passes over what a person did by hand since is refused.
fn rewritten(when: When) {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let calls = std::cell::Cell::new(0);
    let tools =
        [("note", "memory/agent-memory/working-memory.md"), ("context_update", "memory/project-memory/context.md")];
    for (tool, path) in tools {
        let rewrite = |text: &str, over_theirs: bool| {
            let text = json!({"text": text, "shorten": true, "over_theirs": over_theirs});
            calls.set(calls.get() + 1);
            claude.expect(Reply::tools(vec![Block::tool(&format!("t{}", calls.get()), tool, text)]));
        };
        let wakes = || {
            env.receive(CHAT, "go on");
            claude.expect(Reply::text("Done."));
            assert_eq!(env.once()["outcome"], "worked");
        };
        rewrite("# Now\n\n- ours one\n- ours two", false);
        wakes();
        env.write_memory(path, &env.memory(path).replace("- ours two\n", "- by hand\n"));
        if when == When::Committed {
            env.git(&["commit", "-qam", "By hand"]);
        }
        rewrite("# Now\n\n- ours three", false);
        rewrite("# Now\n\n- ours two\n- by hand", false);
        rewrite("# Now\n\n- ours three\n- by hand", false);
        wakes();
        let requests = claude.requests();
        let told: Vec<(String, bool)> = requests.iter().rev().take(3).rev().flat_map(results).collect();
        assert!(told[0].1 && told[0].0.contains("wrote this") && told[0].0.contains("- by hand"), "{told:?}");
        assert!(told[1].1 && told[1].0.contains("took this out") && told[1].0.contains("- ours two"), "{told:?}");
        assert_eq!(env.memory(path), "# Now\n\n- ours three\n- by hand\n");
        rewrite("# Now\n\n- ours four", true);
        wakes();
        assert_eq!(env.memory(path), "# Now\n\n- ours four\n");
    }
    env.check_sound();
}

#[test]
fn a_rewriting_goes_over_nothing_that_a_person_committed() {
    rewritten(When::Committed);
}

#[test]
fn a_rewriting_goes_over_nothing_that_a_person_left_in_the_work_tree() {
    rewritten(When::Uncommitted);
}

#[test]
fn what_a_person_committed_stands_against_what_the_model_writes() {
    outrank(When::Committed);
}

#[test]
fn what_a_person_left_in_the_work_tree_stands_against_what_the_model_writes() {
    outrank(When::Uncommitted);
}

#[test]
fn what_a_person_writes_while_a_cycle_is_open_stands_against_what_the_model_writes() {
    outrank(When::WhileOpen);
}
