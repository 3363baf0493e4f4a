use reveille_base::types::ChatRef;
use reveille_memory::{ACTIVE, BACKLOG};

use super::*;

const TASKS: &str = "# Active tasks\n\n## Call Bob\n- status: active\n- touched: 2026-11-10\n- mood: hopeful\n\nfree text\n\n## Write the report\n- status: active\n- touched: 2026-11-21\n";
const WAITING: &str = "# Backlog\n\n## Learn Dutch\n- status: waiting\n";

fn scene() -> Scene {
    Scene::new().with(ACTIVE, TASKS).with(BACKLOG, WAITING)
}

#[test]
fn a_task_is_added_with_all_that_was_said_of_it() {
    let done = scene().done(
        "task_add",
        &json!({"title": "Buy milk", "next": "go", "at": "2026-11-23 09:00", "why": "tea", "notes": "oat"}),
    );
    let text = &files(&done)[0].content;
    assert!(text.starts_with(TASKS));
    insta::assert_snapshot!(text.strip_prefix(TASKS).unwrap().trim(), @r"
    ## Buy milk
    - status: active
    - touched: 2026-11-21
    - next: go
    - at: 2026-11-23 09:00
    - why: tea

    oat
    ");
    assert_eq!(done.receipt.as_deref(), Some("Added the task “Buy milk” to the active tasks"));
    let done = scene().done("task_add", &json!({"title": "Sail", "list": "backlog"}));
    assert!(files(&done)[0].path == BACKLOG && files(&done)[0].content.contains("## Sail\n- status: waiting\n"));
}

#[test]
fn a_task_that_cannot_be_added_is_refused_with_what_to_do() {
    let scene = scene();
    let refused = |input: Value| scene.refused("task_add", &input);
    assert!(refused(json!({"title": " "})).contains("title is empty"));
    assert!(refused(json!({"title": "x".repeat(121)})).contains("at most 120"));
    assert!(refused(json!({"title": "call bob"})).contains("already"));
    assert!(refused(json!({"title": "learn dutch"})).contains("already in the backlog; move it instead"));
    assert!(refused(json!({"title": "x", "at": "soon"})).contains("a local time such as"));
    assert!(refused(json!({"title": "x", "list": "done"})).contains("unknown variant"));
}

#[test]
fn seven_are_active_at_most() {
    let mut scene = scene();
    for n in 0..5 {
        scene.act("task_add", &json!({"title": format!("Task {n}")}));
    }
    assert!(scene.refused("task_add", &json!({"title": "The eighth"})).starts_with("7 tasks are active already"));
    assert!(
        scene.refused("task_move", &json!({"task": "Learn Dutch", "to": "active"})).starts_with("7 tasks are active")
    );
    scene.act("task_add", &json!({"title": "The eighth", "list": "backlog"}));
    scene.act("task_done", &json!({"task": "Task 0"}));
    scene.act("task_move", &json!({"task": "The eighth", "to": "active"}));
}

#[test]
fn one_key_is_set_or_removed_and_nothing_else_changes_but_the_touch() {
    let mut scene = scene();
    let done = scene.act("task_update", &json!({"task": "bob", "key": "next", "value": "ring at noon"}));
    assert_eq!(done.receipt.as_deref(), Some("Updated the task “Call Bob”: next now “ring at noon”"));
    insta::assert_snapshot!(files(&done)[0].content, @r"
    # Active tasks

    ## Call Bob
    - status: active
    - touched: 2026-11-21
    - mood: hopeful
    - next: ring at noon

    free text

    ## Write the report
    - status: active
    - touched: 2026-11-21
    ");
    let done = scene.act("task_update", &json!({"task": "Call Bob", "key": "mood"}));
    assert!(!files(&done)[0].content.contains("mood"));
    assert!(scene.refused("task_update", &json!({"task": "bob", "key": "At", "value": "later"})).contains("`at` is"));
    assert!(
        scene.refused("task_update", &json!({"task": "bob", "key": "a b", "value": "x"})).contains("can't be a key")
    );
    assert!(scene.refused("task_update", &json!({"task": "zebra", "key": "x"})).contains("there is no task “zebra”"));
    let forged = scene.act("task_update", &json!({"task": "bob", "key": "next", "value": "x\n## Forged\n- status: y"}));
    assert!(!files(&forged)[0].content.contains("\n## Forged"));
}

#[test]
fn touching_finishing_and_moving() {
    let mut scene = scene();
    let touched = scene.act("task_touch", &json!({"task": "bob"}));
    assert!(files(&touched)[0].content.contains("- touched: 2026-11-21\n- mood"));
    let again = scene.act("task_touch", &json!({"task": "bob"}));
    assert_eq!((again.receipt, again.changes), (None, vec![]));

    let moved = scene.act("task_move", &json!({"task": "bob", "to": "backlog"}));
    let paths: Vec<_> = files(&moved).iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, [ACTIVE, BACKLOG]);
    assert!(!files(&moved)[0].content.contains("Bob"));
    let backlog = &files(&moved)[1].content;
    assert!(backlog.starts_with(WAITING) && backlog.contains("- mood: hopeful\n\nfree text"), "{backlog}");
    assert!(backlog.contains("## Call Bob\n- status: waiting\n"), "{backlog}");
    let still = scene.act("task_move", &json!({"task": "bob", "to": "backlog"}));
    assert_eq!(still.content, "“Call Bob” is already in the backlog.");

    scene.act("task_list", &json!({"numbered": true}));
    let done = scene.act("task_done", &json!({"task": "1"}));
    assert_eq!(done.receipt.as_deref(), Some("Finished the task “Write the report”"));
    assert_eq!(scene.done("task_list", &json!({})).content, "There's nothing in the active tasks.");
    let listed = scene.done("task_list", &json!({"list": "backlog"})).content;
    assert_eq!(listed, "- Learn Dutch\n- Call Bob");
}

#[test]
fn a_number_means_the_task_that_was_shown_or_none() {
    let mut scene = scene();
    let number = |n: &str| json!({"task": n});
    assert!(scene.refused("task_done", &number("1")).starts_with("I haven't shown you a list with numbers yet"));
    let shown = scene.act("task_list", &json!({"numbered": true}));
    assert_eq!(shown.content, "1. Call Bob\n2. Write the report");
    assert_eq!(scene.act("task_done", &number("t1")).content, "Done: Call Bob");
    assert!(scene.refused("task_done", &number("1")).starts_with("There is no longer a task 1 in the list"));
    assert!(scene.refused("task_done", &number("9")).contains("say the task's name"));
    // The number stays with the task when it moves, until the task is renamed.
    scene.act("task_move", &json!({"task": "#2", "to": "backlog"}));
    assert_eq!(scene.done("task_touch", &number("task 2")).receipt, None);
    scene.act("task_update", &json!({"task": "2", "key": "title", "value": "Write it all"}));
    assert!(scene.refused("task_done", &number("2")).contains("say the task's name"));
    // A list for the model alone renumbers nothing.
    scene.act("task_list", &json!({"list": "backlog"}));
    assert!(scene.refused("task_done", &number("2")).contains("say the task's name"));
    scene.act("task_list", &json!({"list": "backlog", "numbered": true}));
    assert_eq!(scene.done("task_done", &number("2")).content, "Done: Write it all");
}

#[test]
fn a_task_is_renamed_with_all_that_stands_under_it() {
    let mut scene = scene();
    let done = scene.act("task_update", &json!({"task": "bob", "key": "title", "value": "Call Bob's office"}));
    assert_eq!(done.receipt.as_deref(), Some("Renamed the task “Call Bob” to “Call Bob's office”"));
    let text = &files(&done)[0].content;
    assert!(
        text.contains("## Call Bob's office\n- status: active\n- touched: 2026-11-21\n- mood: hopeful\n\nfree text"),
        "{text}"
    );
    let rename = |to: &str| json!({"task": "office", "key": "title", "value": to});
    assert!(scene.refused("task_update", &rename("write the REPORT")).contains("already"));
    assert!(scene.refused("task_update", &rename("learn dutch")).contains("in the backlog already"));
    assert!(scene.refused("task_update", &rename(" ")).contains("title is empty"));
}

#[test]
fn a_task_can_be_dropped_and_a_whole_title_is_no_part_of_one() {
    let mut scene = scene();
    assert!(scene.refused("task_done", &json!({"task": "“the report”"})).starts_with("there is no task"));
    let dropped = scene.act("task_done", &json!({"task": "“write the report”", "dropped": true}));
    assert_eq!(
        (dropped.content.as_str(), dropped.receipt.as_deref()),
        ("Dropped: Write the report", Some("Dropped the task “Write the report”"))
    );
}

#[test]
fn what_stands_in_a_list_as_prose_is_told_with_it() {
    let scene =
        Scene::new().with(ACTIVE, "# Active tasks\n\nfix the gate\n\n## Call Bob\n- status: active\n- buy paint\n");
    insta::assert_snapshot!(scene.done("task_list", &json!({})).content, @r"
    - Call Bob

    Also written in active.md: “fix the gate”, “buy paint”, not as a task. Say “add task fix the gate” to make it one.
    ");
}

#[test]
fn words_that_fit_several_tasks_are_asked_back() {
    let scene = Scene::new().with(ACTIVE, "## Call Bob\n\n## Call Anna\n");
    let why = scene.refused("task_done", &json!({"task": "call"}));
    assert!(why.contains("“Call Bob”") && why.contains("“Call Anna”"), "{why}");
    assert!(scene.refused("task_done", &json!({"task": "dance with Anna"})).contains("similar: “Call Anna”"));
}

#[test]
fn a_guests_tasks_mark_the_owners_cycle_and_are_named_in_no_refusal() {
    let theirs = format!("{TASKS}\n## Call the plumber CANARY\n- status: active\n- chat: 5555\n");
    let mut scene = Scene::new().with(ACTIVE, &theirs).with(BACKLOG, WAITING);
    let taint = |tool: &str, input: Value| scene.done(tool, &input).taint.is_some();
    assert!(taint("task_list", json!({})) && !taint("task_list", json!({"list": "backlog"})));
    scene.world.conversation.shown_tasks = {
        let shown = |title: &str| reveille_store::ShownTask { path: ACTIVE.to_owned(), title: title.to_owned() };
        vec![shown("Call Bob"), shown("Write the report"), shown("Call the plumber CANARY")]
    };
    let taint = |tool: &str, input: Value| scene.done(tool, &input).taint.is_some();
    for tool in ["task_done", "task_touch"] {
        assert!(taint(tool, json!({"task": "3"})) && !taint(tool, json!({"task": "1"})), "{tool}");
    }
    assert!(taint("task_update", json!({"task": "canary", "key": "next", "value": "x"})));
    assert!(taint("task_move", json!({"task": "canary", "to": "backlog"})));
    for query in ["call", "plumber today"] {
        let why = scene.refused("task_done", &json!({"task": query}));
        assert!(!why.contains("CANARY") && why.contains("Tasks of other chats"), "{query}: {why}");
    }
    let mut guests = Scene::new().with(ACTIVE, &theirs);
    guests.world.unasked.owner_chat = ChatRef::from_telegram(9);
    guests.world.conversation.chat = Some(Chat { id: ChatRef::from_telegram(5555), thread_id: None, reply_to: None });
    assert_eq!(guests.done("task_done", &json!({"task": "canary"})).taint, None, "to the guest it is their own");
}
