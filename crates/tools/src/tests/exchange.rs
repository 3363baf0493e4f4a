//! Tests `read_exchange`.

use reveille_store::Exchange;

use super::*;

fn entry(row: i64, from: Option<&str>, taint: Option<&str>) -> Exchange {
    Exchange {
        row,
        from: from.map(str::to_owned),
        text: format!("words {row}"),
        taint: taint.map(str::to_owned),
        ..Exchange::default()
    }
}

fn call(scene: &Scene, entries: &[&str]) -> Outcome {
    Registry::for_thinking_model().call("read_exchange", &json!({ "entries": entries }).to_string(), &scene.world)
}

#[test]
fn what_is_withheld_is_shown_with_its_origin() {
    let mut scene = Scene::new();
    scene.world.conversation.exchanges = vec![
        entry(17, Some("Ann"), Some("a forwarded message")),
        entry(17, None, Some("https://example.org")),
        entry(18, None, None),
        Exchange { text: "ü".repeat(5_000), ..entry(19, None, None) },
    ];
    let done = call(&scene, &["m17", " a17"]).unwrap();
    assert!(done.content.ends_with("m17, said by Ann:\nwords 17\n\na17, said by you:\nwords 17"), "{}", done.content);
    assert_eq!(done.taint.as_deref(), Some("an earlier exchange (a forwarded message, https://example.org)"));
    assert_eq!(call(&scene, &["a18"]).unwrap().taint, None);
    let long = call(&scene, &["a19"]).unwrap().content;
    assert!(long.ends_with("\n(Cut: it has 5000 characters.)") && long.chars().count() < 4_200, "{}", long.len());
}

#[test]
fn only_a_few_entries_of_this_chat_are_read_at_a_time() {
    let mut scene = Scene::new();
    scene.world.conversation.exchanges = vec![entry(17, None, None)];
    for entries in [&[] as &[&str], &["a17"; 5], &["m17"], &["17"], &["a18"], &["a17", "a99"]] {
        assert!(call(&scene, entries).is_err(), "{entries:?}");
    }
}
