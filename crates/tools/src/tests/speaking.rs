//! Tests `plan`, `reply`, `tell`, `keep`: the text, the recipient, and the limits.

use chrono::NaiveTime;

use reveille_base::types::ChatRef;
use reveille_config::QuietHours;

use super::*;

#[test]
fn a_plan_changes_nothing_but_is_bounded() {
    let scene = Scene::new();
    let step = json!({"what": "answer", "tool": "reply"});
    let done = scene.done("plan", &json!({"understood": "They ask.", "steps": [step], "complexity": "medium"}));
    assert_eq!((done.receipt, done.changes), (None, vec![]));
    assert!(scene.refused("plan", &json!({"understood": " "})).contains("understood is empty"));
    assert!(
        scene.refused("plan", &json!({"understood": "x", "steps": vec![step; 31]})).contains("31 steps are too many")
    );
    assert!(scene.refused("plan", &json!({"understood": "x", "complexity": "huge"})).contains("unknown variant"));
    let nameless = json!({"understood": "x", "steps": [{"what": "answer", "tool": ""}]});
    assert!(scene.refused("plan", &nameless).contains("a step's tool is empty"));
}

#[test]
fn a_reply_answers_every_open_message_of_its_chat() {
    let mut scene = Scene::new();
    scene.world.conversation.open_messages = vec![41, 42];
    let done = scene.done("reply", &json!({"text": " Four. \n"}));
    let message = sent(&done);
    assert_eq!((message.chat.id, message.thread_id, message.reply_to), (7, Some(3), Some(100)));
    assert_eq!((message.text.as_str(), message.kind, &message.key), ("Four.", OutgoingKind::Reply, &None));
    let closed = Change::Done { messages: vec![41, 42], outcome: MessageOutcome::Answered };
    assert_eq!(done.changes[1..], [closed]);
    assert_eq!(done.receipt.as_deref(), Some("Answered 2 messages: Four."));
}

#[test]
fn a_reply_needs_words_a_chat_and_room() {
    let mut scene = Scene::new();
    assert!(scene.refused("reply", &json!({"text": "\n "})).contains("text is empty"));
    assert!(scene.refused("reply", &json!({"text": "x".repeat(30_001)})).contains("at most 30000"));
    assert!(scene.call("reply", &json!({"text": "ü".repeat(30_000)})).is_ok());
    scene.world.conversation.open_messages.clear();
    scene.world.cycle.replies = 5;
    assert_eq!(scene.done("reply", &json!({"text": "And"})).receipt.as_deref(), Some("Added to the answer: And"));
    scene.world.cycle.replies = 6;
    assert!(scene.refused("reply", &json!({"text": "x"})).starts_with("6 texts were already sent"));
    scene.world.conversation.chat = None;
    assert!(scene.refused("reply", &json!({"text": "x"})).contains("`tell` speaks unasked"));
    assert_eq!(answer_open_messages(&scene.world, "x".to_owned(), MessageOutcome::Answered), []);
}

#[test]
fn telling_goes_to_the_owner_under_a_key() {
    let mut scene = Scene::new();
    scene.world.unasked.owner_chat = ChatRef::from_telegram(9);
    let done = scene.done("tell", &json!({"key": " Decay/Tax ", "text": "Still on it?"}));
    let message = sent(&done);
    assert_eq!((message.chat.id, message.thread_id, message.kind), (9, None, OutgoingKind::Tell));
    assert_eq!(message.key.as_deref(), Some("tell/decay/tax"));
    assert_eq!(done.changes.len(), 1, "nobody's question is answered by it");
}

#[test]
fn telling_is_refused_twice_too_often_and_in_quiet_hours() {
    let mut scene = Scene::new();
    let tell = json!({"key": "Decay/Tax", "text": "x"});
    scene.world.unasked.told_keys.insert("tell/decay/tax".to_owned());
    assert!(scene.refused("tell", &tell).contains("was told before"));
    scene.world.unasked.told_keys.clear();
    scene.world.unasked.told_today = 3;
    assert!(scene.refused("tell", &tell).contains("3 times today, which is the limit"));
    scene.world.unasked.told_today = 2;
    assert!(scene.call("tell", &tell).is_ok());
    assert!(scene.refused("tell", &json!({"key": "", "text": "x"})).contains("key is empty"));
    assert!(scene.refused("tell", &json!({"key": "k", "text": "x".repeat(4_001)})).contains("at most 4000"));
}

#[test]
fn quiet_hours_are_the_persons_and_reach_over_midnight() {
    let mut scene = Scene::new();
    let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
    scene.world.unasked.quiet_hours = Some(QuietHours { from: time(22), until: time(7) });
    // Berlin is an hour ahead of UTC in November and two in July.
    for (utc, is_quiet) in [
        ("2026-11-21T20:59:59Z", false),
        ("2026-11-21T21:00:00Z", true),
        ("2026-11-21T23:30:00Z", true),
        ("2026-11-22T05:59:59Z", true),
        ("2026-11-22T06:00:00Z", false),
        ("2026-07-01T20:00:00Z", true),
        ("2026-07-02T05:00:00Z", false),
    ] {
        scene.world.clock.now = parse_time(utc).unwrap();
        assert_eq!(scene.world.is_quiet(), is_quiet, "{utc}");
        let told = scene.call("tell", &json!({"key": "k", "text": "x"}));
        assert_eq!(told.is_err(), is_quiet, "{utc}");
    }
    scene.world.clock.now = parse_time("2026-11-21T23:30:00Z").unwrap();
    assert!(scene.refused("tell", &json!({"key": "k", "text": "x"})).starts_with("It is 00:30 for your person"));
}

#[test]
fn what_cannot_be_answered_is_kept_for_another_model_and_said_once() {
    let mut scene = Scene::new();
    scene.world.conversation.open_messages = vec![41, 42];
    let done = scene.done("keep", &json!({"messages": [42], "notice": "Kept."}));
    assert_eq!(sent(&done).key.as_deref(), Some("kept/42"));
    assert_eq!((sent(&done).chat.id, sent(&done).kind), (7, OutgoingKind::Notice));
    let hold = Change::Hold { messages: vec![42], model: "offline".to_owned() };
    assert_eq!(done.changes[1..], [hold]);
    assert!(
        scene.refused("keep", &json!({"messages": [41, 7], "notice": "x"})).starts_with("Message 7 is not an open")
    );
    assert!(scene.refused("keep", &json!({"messages": [], "notice": "x"})).contains("messages is empty"));
    assert!(scene.refused("keep", &json!({"messages": [41], "notice": ""})).contains("notice is empty"));
    scene.world.conversation.chat = None;
    assert!(scene.refused("keep", &json!({"messages": [41], "notice": "x"})).contains("No message is being answered"));
}

#[test]
fn a_contradiction_is_noted_once_and_only_when_the_person_can_be_asked() {
    const BOTH: &str = "## Home\n- The wifi code is 1234 <!-- wake a -->\n- The wifi code is 5678 <!-- wake b -->\n";
    let input = json!({"one": "1234", "other": "5678"});
    let call = |scene: &Scene| Registry::for_thinking_model().call("contradiction", &input.to_string(), &scene.world);
    let refused = |scene: &Scene| call(scene).unwrap_err().to_string();
    let scene_of = |facts: &str| {
        let mut scene = Scene::new().with(reveille_memory::SEMANTIC_MEMORY, facts);
        scene.world.cycle.assignment =
            Some(super::super::Assignment::Reflection(reveille_memory::reflect::PersonMemoryEdits::default()));
        scene
    };
    let mut scene = scene_of(BOTH);
    // In quiet hours a reminder asks instead, which leaves no key of a message.
    scene.world.unasked.quiet_hours =
        Some(QuietHours { from: NaiveTime::MIN, until: NaiveTime::from_hms_opt(23, 59, 0).unwrap() });
    let done = call(&scene).unwrap();
    let [Change::File(file), Change::Handled { key, .. }, Change::AddReminder(_)] = done.changes.as_slice() else {
        panic!("{done:?}")
    };
    assert!(refused(&scene_of(&file.content)).contains("noted before"));
    scene.world.unasked.told_keys.insert(key.clone());
    assert!(refused(&scene).contains("noted before"));
    scene.world.unasked.told_keys.clear();
    scene.world.unasked.told_today = 3;
    assert!(refused(&scene).contains("can't be asked today"));
    let theirs = scene_of(&BOTH.replace(" <!-- wake a -->", "").replace(" <!-- wake b -->", ""));
    assert!(call(&theirs).unwrap().content.contains("stay as they are"));
}
