//! Projects: each has a document with its goal, context and log, shown when a message mentions it. Its tasks are in the task lists.

use serde_json::{Value, json};

use super::{
    support::story::{last, opening, results, sent, with_claude},
    support::{
        claude::{ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, TestEnv},
    },
};

const ACTIVE: &str = "memory/project-memory/active.md";
const GREENHOUSE: &str = "memory/project-memory/greenhouse.md";
const BOAT: &str = "memory/project-memory/boat.md";

/// Two projects with a task each.
fn with_projects(env: &TestEnv, claude: &FakeClaude) {
    env.wake(&["--once"]).ok();
    env.write_memory(GREENHOUSE, "# Greenhouse\n\n## Goal\nTomatoes in May.\n");
    env.write_memory(BOAT, "# Boat\n\n## Goal\nA secret launch.\n");
    let tasks = "## Order the glass\n- status: active\n- touched: 2026-11-21\n- project: greenhouse\n\n\
                 ## Varnish\n- status: active\n- touched: 2026-11-21\n- project: boat\n";
    env.write_memory(ACTIVE, &format!("# Active tasks\n\n{tasks}"));
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "By hand"]);
    claude.expect(Reply::text(""));
    env.once();
}

fn tools(request: &ClaudeRequest) -> Vec<String> {
    let tools = request.json["tools"].as_array().unwrap().iter();
    tools.filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect()
}

#[test]
fn a_project_is_started_shown_when_mentioned_and_logs_finished_tasks() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "Let's begin a project: a greenhouse, for tomatoes in May");
    let note = json!({"project": "Greenhouse", "goal": "Tomatoes in May.", "log": "Began."});
    claude.expect(Reply::tool("t1", "project_note", note));
    let task = json!({"do": "add", "title": "Order the glass", "project": "Greenhouse"});
    claude.expect(Reply::tool("t2", "tasks", task)).expect(Reply::text("Begun."));
    env.once();
    assert!(tools(&last(&claude)).contains(&"project_note".to_owned()));
    let document = env.memory(GREENHOUSE);
    assert!(
        document.starts_with("# Greenhouse\n\n## Goal\nTomatoes in May.\n\n## Log\n- 2026-11-21 Began. <!-- wake ")
    );
    assert!(
        env.memory(ACTIVE).contains("## Order the glass\n") && env.memory(ACTIVE).contains("- project: greenhouse")
    );
    env.write_memory(BOAT, "# Boat\n\n## Goal\nA secret launch.\n");

    env.receive(CHAT, "How is the greenhouse coming along?");
    claude.expect(Reply::tool("t3", "tasks", json!({"do": "done", "task": "Order the glass"})));
    claude.expect(Reply::text("Well."));
    env.once();
    let shown = opening(&last(&claude), "<projects");
    assert!(shown.contains("Tomatoes in May.") && shown.contains("<task>Order the glass (in hand)</task>"), "{shown}");
    assert!(!last(&claude).raw.contains("A secret launch"), "another project isn't shown");
    assert!(tools(&last(&claude)).contains(&"project_note".to_owned()), "a mentioned project can be written");
    let log = env.memory(GREENHOUSE);
    assert!(log.contains("- 2026-11-21 Finished the task “Order the glass” <!-- wake "), "{log}");

    env.receive(CHAT, "Hello");
    claude.expect(Reply::text("Hi."));
    env.once();
    assert!(!last(&claude).raw.contains("<projects") && !tools(&last(&claude)).contains(&"project_note".to_owned()));
    assert_eq!(sent(&telegram), ["Begun.", "Well.", "Hi."]);
    env.check_sound();
}

#[test]
fn a_projects_handwritten_text_stays_and_reserved_names_are_refused_with_a_reason() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "a project for the greenhouse");
    claude.expect(Reply::tool("t1", "project_note", json!({"project": "greenhouse", "goal": "Tomatoes."})));
    claude.expect(Reply::text("Begun."));
    env.once();
    let by_hand = "# Our greenhouse\n\n## Goal\nFigs, says Ana.\n\nMy own words.\n";
    env.write_memory(GREENHOUSE, by_hand);
    env.receive(CHAT, "note in the project that the glass is ordered");
    let over = json!({"project": "Greenhouse", "goal": "Tomatoes and peppers."});
    claude.expect(Reply::tool("t2", "project_note", over));
    claude.expect(Reply::tool("t3", "project_note", json!({"project": "Greenhouse", "log": "The glass is ordered."})));
    claude.expect(Reply::tool("t4", "project_note", json!({"project": "Active", "log": "x"})));
    claude.expect(Reply::tool("t5", "tasks", json!({"do": "add", "title": "x", "project": "plans"})));
    claude.expect(Reply::text("Noted."));
    env.once();
    let said: Vec<Value> = claude.requests().into_iter().map(|request| json!(results(&request))).collect();
    let said = json!(said).to_string();
    assert!(said.contains("By hand, your person wrote this") && said.contains("Figs, says Ana"), "{said}");
    assert!(said.contains("“active” is reserved for the memory's own documents"), "{said}");
    assert!(said.contains("“plans” is reserved for the memory's own documents"), "{said}");
    let document = env.memory(GREENHOUSE);
    assert!(document.starts_with(by_hand) && document.contains("The glass is ordered."), "{document}");
    assert!(!env.memory(ACTIVE).contains("## x"));
    env.write_memory("memory/project-memory/Plans.md", "# Plans\n");
    let told = env.health(&["check", "--json"]).stdout;
    assert!(told.contains("Plans.md") && told.contains("reserved for the memory's own documents"), "{told}");
    std::fs::remove_file(env.brain().join("memory/project-memory/Plans.md")).unwrap();
}

#[test]
fn a_guest_sees_none_of_the_owners_projects() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555"));
    with_projects(&env, &claude);
    env.receive(5555, "How is the project greenhouse? And varnish?");
    claude.expect(Reply::tool("t1", "project_note", json!({"project": "greenhouse", "log": "I was here."})));
    claude.expect(Reply::text("I can't tell."));
    env.once();
    let request = last(&claude);
    for theirs in ["Tomatoes", "secret launch", "<projects", "Order the glass"] {
        assert!(!request.raw.contains(theirs), "{theirs}");
    }
    assert!(!tools(&request).contains(&"project_note".to_owned()));
    assert!(results(&request)[0].1, "{:?}", results(&request));
    assert!(!env.memory(GREENHOUSE).contains("I was here"));
    env.check_sound();
}

#[test]
fn a_person_names_a_tasks_project_at_the_terminal_and_sees_it_in_the_lists() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.write_memory(GREENHOUSE, "# Greenhouse\n");
    env.wake(&["task", "add", "Order the glass", "--project", "Greenhouse"]).ok();
    assert!(env.wake(&["task", "list"]).ok().stdout.contains("1. Order the glass, project greenhouse"));
    let listed: Value = serde_json::from_str(env.wake(&["task", "list", "--json"]).ok().stdout.trim()).unwrap();
    assert_eq!(listed["project"], "greenhouse");
    assert!(env.wake(&["today"]).ok().stdout.contains("Order the glass, project greenhouse"));
    let refused = env.wake(&["task", "add", "x", "--project", "context"]);
    refused.assert_tells("reserved for the memory's own documents");
    assert!(refused.code != 0, "{}", refused.notices());
    env.wake(&["task", "done", "1"]).ok();
    let document = env.memory(GREENHOUSE);
    assert_eq!(document, "# Greenhouse\n\n## Log\n- 2026-11-21 Finished the task “Order the glass”\n");
    assert_eq!(env.git(&["log", "-1", "--format=%an"]), "Owner");
    assert_eq!(env.git(&["status", "--short"]), "");
}
