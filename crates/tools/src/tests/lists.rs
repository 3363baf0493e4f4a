use reveille_base::types::ChatRef;
use reveille_memory::ACTIVE;

use super::*;

const TASKS: &str = "## Call the plumber\n- status: active\n- touched: 2026-11-21\n\n## Buy milk frother\n- status: active\n- touched: 2026-11-21\n";

#[test]
fn what_was_done_finishes_the_task_of_these_words_and_no_other() {
    let scene = Scene::new().with(ACTIVE, TASKS);
    let told = |task: &str, items: &[&str]| json!({"task": task, "items": items});
    assert_eq!(scene.done("told_done", &told("call plumber", &[])).content, "Done: Call the plumber");
    let near = scene.refused("told_done", &told("buy milk", &["milk"]));
    assert!(near.starts_with("There's no task exactly like that, but “Buy milk frother”"), "{near}");
    assert_eq!(scene.refused("told_done", &told("call the bank", &[])), "There's no task like that.");
}

#[test]
fn what_was_bought_goes_off_the_shopping_list_first() {
    let mut scene = Scene::new().with(ACTIVE, TASKS);
    scene.act("list_add", &json!({"list": "Shopping list", "items": ["milk", "eggs"]}));
    let bought = scene.act("told_done", &json!({"task": "buy milk", "items": ["milk"]}));
    assert_eq!(bought.content, "Off the shopping list: milk.");
    assert_eq!(scene.done("list_show", &json!({"list": "Shopping list"})).content, "Shopping list:\n- eggs");
    let refused = scene.refused("list_take", &json!({"list": "Shopping list", "items": ["milk"]}));
    assert!(refused.starts_with("There's no list item “milk”"), "{refused}");
}

#[test]
fn only_the_owner_has_lists_and_states_facts() {
    let mut scene = Scene::new();
    scene.world.unasked.owner_chat = ChatRef::from_telegram(9);
    assert!(scene.world.foreign_chat().is_some(), "the scene's chat is another");
    for (tool, input) in [
        ("remember_stated", json!({"fact": "my son is called Max"})),
        ("list_add", json!({"list": "Shopping list", "items": ["milk"]})),
        ("list_show", json!({"list": "Shopping list"})),
        ("told_done", json!({"task": "buy milk"})),
    ] {
        let refused = scene.refused(tool, &input);
        assert!(refused.starts_with("Only my owner"), "{tool}: {refused}");
    }
    let mut tainted = Scene::new();
    tainted.world.cycle.taint = Some("https://example.org".to_owned());
    assert!(tainted.refused("remember_stated", &json!({"fact": "the moon is cheese"})).contains("Nothing was done"));
}
