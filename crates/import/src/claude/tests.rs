//! Claude's exports as people reported them: a new report is one line.

use proptest::prelude::*;
use serde_json::json;

use super::{
    super::{
        any_json::{any_json, replace_value},
        export::NOT_UNDERSTOOD,
    },
    *,
};

fn reasons(found: &FoundContent) -> Vec<&'static str> {
    found.left_out.iter().flat_map(|left| std::iter::repeat_n(left.why, left.times)).collect()
}

/// What is kept of a conversation, as `who: words` joined by ` | `, and the reasons for what isn't.
fn taken(conversation: &Value) -> (String, Vec<&'static str>) {
    let mut found = FoundContent::default();
    let read = read_conversation(conversation, &mut found);
    let said = read.into_iter().flat_map(|conversation| conversation.read.said);
    let said: Vec<_> = said.map(|said| format!("{}: {}", said.who, said.text)).collect();
    (said.join(" | "), reasons(&found))
}

#[test]
fn messages_are_imported_and_all_else_is_reported() {
    const UNSUPPORTED: &str = "```\nThis block is not supported on your current device yet.\n```";
    let messages = |messages: Value| json!({"uuid": "1", "name": "T", "chat_messages": messages});
    let one = |message: Value| messages(json!([message]));
    let answer = |content: Value, text: &str| one(json!({"sender": "assistant", "content": content, "text": text}));
    let at = |id: &str, parent: &str, text: &str| json!({"uuid": id, "parent_message_uuid": parent, "sender": "human", "text": text});
    let root = "00000000-0000-4000-8000-000000000000";
    let call = json!({"type": "tool_use", "name": "web_search", "input": {}});
    for (name, conversation, expected, left) in [
        ("a text", one(json!({"sender": "human", "text": "one"})), "You: one", vec![]),
        (
            "blocks",
            answer(json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), "flat"),
            "Claude: one\n\ntwo",
            vec![],
        ),
        (
            "nothing but nulls",
            one(
                json!({"sender": "human", "text": "one", "content": null, "attachments": null, "files": null, "created_at": null, "uuid": null, "parent_message_uuid": null}),
            ),
            "You: one",
            vec![],
        ),
        (
            "fields of other types",
            one(
                json!({"sender": "human", "text": "one", "content": {}, "attachments": "x", "files": 7, "created_at": 7, "uuid": []}),
            ),
            "You: one",
            vec![],
        ),
        (
            "a conversation of nulls",
            json!({"uuid": null, "name": null, "created_at": null, "summary": null, "account": null, "chat_messages": [{"sender": "human", "text": "one"}]}),
            "You: one",
            vec![],
        ),
        (
            "a name that is a number",
            json!({"name": 7, "created_at": [], "chat_messages": [{"sender": "human", "text": "one"}]}),
            "You: one",
            vec![],
        ),
        (
            "messages that are none",
            messages(json!([null, 7, "x", {"sender": "human", "text": "one"}])),
            "You: one",
            vec![],
        ),
        ("content that is a text", one(json!({"sender": "human", "content": "one"})), "You: one", vec![]),
        (
            "blocks that are none",
            answer(json!([null, 7, {"text": "one"}, {"type": null}, {"type": "text", "text": null}]), ""),
            "Claude: one",
            vec![],
        ),
        (
            "a voice note",
            one(
                json!({"sender": "human", "text": "", "content": [{"type": "voice_note", "title": "x", "text": "one"}]}),
            ),
            "You: one",
            vec![],
        ),
        ("by its role", json!({"messages": [{"role": "user", "text": "one"}]}), "You: one", vec![]),
        (
            "calls",
            answer(json!([call, {"type": "tool_result", "content": []}, {"type": "text", "text": "one"}]), ""),
            "Claude: one",
            vec![TOOL_CALLS, TOOL_CALLS],
        ),
        ("a placeholder for calls", answer(json!([call]), UNSUPPORTED), "", vec![TOOL_CALLS, EMPTY]),
        (
            "a placeholder without a fence",
            answer(json!([call]), "This block is not supported on your current device yet."),
            "",
            vec![TOOL_CALLS, EMPTY],
        ),
        (
            "a placeholder without blocks",
            answer(Value::Null, &format!("one\n{UNSUPPORTED}\ntwo")),
            "Claude: one\ntwo",
            vec![TOOL_CALLS],
        ),
        (
            "a placeholder in a block",
            answer(json!([{"type": "text", "text": UNSUPPORTED}, {"type": "text", "text": "one"}]), ""),
            "Claude: one",
            vec![TOOL_CALLS],
        ),
        (
            "an artifact's placeholder",
            answer(
                json!([{"type": "text", "text": "```\nViewing artifacts created via the Analysis Tool web feature preview isn’t yet supported on mobile.\n```"}]),
                "",
            ),
            "",
            vec![TOOL_CALLS, EMPTY],
        ),
        (
            "a sentence about it",
            one(
                json!({"sender": "human", "text": "It says: This block is not supported on your current device yet. Why?"}),
            ),
            "You: It says: This block is not supported on your current device yet. Why?",
            vec![],
        ),
        (
            "thoughts",
            answer(json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one"}]), ""),
            "Claude: one",
            vec![THOUGHTS],
        ),
        (
            "thoughts in the text",
            answer(json!([{"type": "thinking", "thinking": "hm hm"}]), "hm hm\n\none"),
            "Claude: one",
            vec![THOUGHTS],
        ),
        (
            "an artifact",
            answer(
                json!([{"type": "tool_use", "name": "artifacts", "input": {"command": "create", "title": "Bread", "content": "500 g"}}]),
                "",
            ),
            "Claude: [Bread]\n500 g",
            vec![],
        ),
        (
            "an attachment",
            one(
                json!({"sender": "human", "text": "one", "attachments": [{"file_name": "a.txt", "extracted_content": "500 g"}, {"file_name": "b", "extracted_content": null}, null]}),
            ),
            "You: one\n\n[a.txt]\n500 g",
            vec![FILES, FILES],
        ),
        (
            "an attachment alone",
            one(json!({"sender": "human", "text": "", "attachments": [{"extracted_content": "500 g"}]})),
            "You: [a file]\n500 g",
            vec![],
        ),
        (
            "files",
            one(json!({"sender": "human", "text": "one", "files": [{"file_name": "a.png"}]})),
            "You: one",
            vec![FILES],
        ),
        (
            "an edited question",
            messages(json!([at("a", root, "one"), at("b", root, "two"), at("c", "b", "three")])),
            "You: two | You: three",
            vec![OTHER_BRANCHES],
        ),
        (
            "parents that are gone",
            messages(json!([at("a", root, "one"), at("b", "gone", "two")])),
            "You: one | You: two",
            vec![],
        ),
        (
            "one parent for all",
            messages(
                json!([at("a", root, "one"), {"uuid": "b", "parent_message_uuid": root, "sender": "assistant", "text": "two"}]),
            ),
            "You: one | Claude: two",
            vec![],
        ),
        ("no messages", json!({"uuid": "1", "name": "x", "chat_messages": null}), "", vec![EMPTY]),
        ("messages that are a text", json!({"name": "x", "chat_messages": "x"}), "", vec![NOT_UNDERSTOOD]),
        ("a number", json!(7), "", vec![NOT_UNDERSTOOD]),
    ] {
        assert_eq!(taken(&conversation), (expected.to_owned(), left), "{name}");
    }
}
proptest! {
    #[test]
    fn every_message_comes_whatever_stands_beside_its_words(
        texts in prop::collection::vec("[a-z]{1,8}", 1..6),
        odd in prop::collection::vec(any_json(), 6),
        in_blocks in any::<bool>(),
    ) {
        let messages = texts.iter().enumerate().map(|(n, text)| {
            let parent = n.checked_sub(1).map(|above| format!("m{above}"));
            let content = if in_blocks { json!([{"type": "text", "text": text, "citations": odd[0], "flags": odd[1]}]) } else { Value::Null };
            json!({"uuid": format!("m{n}"), "sender": "human", "text": text, "content": content, "created_at": odd[2],
                "parent_message_uuid": parent, "input_mode": odd[3]})
        });
        let conversation = json!({"uuid": odd[3], "name": odd[4], "created_at": odd[5], "account": odd[0],
            "current_leaf_message_uuid": odd[1], "chat_messages": messages.collect::<Vec<_>>()});
        let expected: Vec<String> = texts.iter().map(|text| format!("You: {text}")).collect();
        prop_assert_eq!(taken(&conversation).0, expected.join(" | "));
    }

    #[test]
    fn an_export_with_any_field_changed_ends(changes in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..4)) {
        let block = json!({"type": "tool_use", "name": "artifacts", "input": {"content": "x"}});
        let mut conversation = json!({"uuid": "1", "name": "T", "created_at": "2025-05-02T22:30:00Z", "chat_messages": [
            {"uuid": "a", "sender": "human", "text": "one", "content": [block], "attachments": [{"extracted_content": "x"}], "files": [{}], "parent_message_uuid": "b"}]});
        let mut other = json!({"name": "P", "prompt_template": "x", "docs": [{"filename": "a", "content": "x"}], "conversations_memory": "x", "project_memories": {"a": "b"}});
        for (at, value) in changes {
            replace_value(&mut conversation, at, value.clone());
            replace_value(&mut other, at, value);
        }
        taken(&conversation);
        let (mut found, mut names) = (FoundContent::default(), TakenNames::default());
        take_project(&other, &mut found, &mut names);
        take_memories(&other, &mut found, &mut names);
    }
}
