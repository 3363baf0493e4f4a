//! Reads ChatGPT's export: a list in `conversations.json`, or several such files. Each conversation is a tree of messages, because editing
//! a question begins another branch; the branch shown last is used.

use serde_json::Value;

use reveille_base::zone::Tz;

use super::{
    ImportError, ImportKind,
    conversation::{ExportedConversation, ImportedConversation, ImportedMessage},
    export::{
        EMPTY, NOT_NEEDED, OTHER_BRANCHES, OTHER_EXPORT, THOUGHTS, TOOL_CALLS, read_conversations, read_title,
        report_unreadable,
    },
    found::FoundContent,
    marks::{find_cited_sources, replace_marks},
    recognise::ExportFiles,
    repair::parse_json,
    source::ImportSource,
    stores::{find_list, find_text, find_time},
    thread::{ThreadNode, find_shown_branch},
};

const PICTURES: &str = "pictures, sound and files of conversations";
/// Content types that only a program sees.
const UNSEEN: [&str; 5] =
    ["user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "app_pairing_content"];
/// Content types of tool calls and their results.
const CALLS: [&str; 6] =
    ["code", "execution_output", "tether_quote", "tether_browsing_display", "tether_browsing_code", "system_error"];

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundContent, ImportError> {
    let mut found = FoundContent::default();
    let files = ExportFiles::find(source, ImportKind::Chatgpt);
    if files.own.is_empty() {
        return Err(ImportError::Refused("There is no conversations.json in it.".to_owned()));
    }
    read_conversations(source, &files.own, "chatgpt", tz, &mut found, &read_one)?;
    for entry in source.entries().iter().filter(|entry| !files.own.contains(entry)) {
        let why = match () {
            () if files.others.contains(&entry) => OTHER_EXPORT,
            () if entry.has_ending(&[".json", ".html"]) => NOT_NEEDED,
            () => PICTURES,
        };
        found.leave_out(&entry.path, why);
    }
    Ok(found)
}

fn read_one(conversation: &Value, found: &mut FoundContent) -> Option<ExportedConversation> {
    let title = read_title(conversation, &["title"]);
    let nodes: Vec<_> = match conversation.get("mapping") {
        Some(Value::Object(mapping)) => mapping.iter().collect(),
        Some(Value::Null) => Vec::new(),
        _ => {
            report_unreadable(&title, found);
            return None;
        }
    };
    let mut read = ImportedConversation { title, said: Vec::new() };
    let branch = find_shown_branch(&build_thread(&nodes), conversation.get("current_node").and_then(Value::as_str));
    let messages: Vec<_> =
        nodes.iter().map(|(_, node)| read_message(node.get("message").unwrap_or(&Value::Null))).collect();
    let mut is_shown = vec![false; nodes.len()];
    for at in branch {
        if let (Some(shown), Some(message)) = (is_shown.get_mut(at), messages.get(at)) {
            *shown = true;
            found.add_left_out(&read.title, PICTURES, message.pictures);
            message.left_out.iter().for_each(|why| found.leave_out(&read.title, why));
            read.said.extend(message.said.clone());
        }
    }
    let replaced = messages.iter().zip(is_shown).filter(|(message, is_shown)| !is_shown && message.said.is_some());
    found.add_left_out(&read.title, OTHER_BRANCHES, replaced.count());
    if read.said.is_empty() {
        found.leave_out(read.title, EMPTY);
        return None;
    }
    let id = find_text(conversation, &["conversation_id", "id"]).map(str::to_owned);
    Some(ExportedConversation { id, begun: find_time(conversation, &["create_time"]), read })
}

/// Builds the message tree. A message's parent is its own field, or else found in the parent's list of children.
fn build_thread<'a>(nodes: &[(&'a String, &'a Value)]) -> Vec<ThreadNode<'a>> {
    let mut parents = std::collections::HashMap::new();
    for (id, node) in nodes {
        for child in find_list(node, &["children"]).iter().filter_map(Value::as_str) {
            parents.entry(child).or_insert(id.as_str());
        }
    }
    let node = |(id, node): &(&'a String, &'a Value)| ThreadNode {
        id: id.as_str(),
        parent: find_text(node, &["parent"]).or_else(|| parents.get(id.as_str()).copied()),
        at: node.get("message").and_then(|message| Some(find_time(message, &["create_time"])?.timestamp() as f64)),
    };
    nodes.iter().map(node).collect()
}

/// A message, with its parts other than text.
#[derive(Default)]
struct ChatgptMessage {
    said: Option<ImportedMessage>,
    pictures: usize,
    left_out: Option<&'static str>,
}

fn read_message(message: &Value) -> ChatgptMessage {
    let none = ChatgptMessage::default();
    let metadata = message.get("metadata").unwrap_or(&Value::Null);
    let author = message.get("author").unwrap_or(&Value::Null);
    let role = find_text(author, &["role"]).or_else(|| author.as_str()).or_else(|| find_text(message, &["role"]));
    if let Some(text) = find_report(metadata).filter(|_| role != Some("user")) {
        let at = find_time(message, &["create_time", "update_time"]);
        return ChatgptMessage { said: Some(ImportedMessage { who: "ChatGPT".to_owned(), at, text }), ..none };
    }
    // Skip content that only a program sees.
    let is_hidden = metadata.get("is_visually_hidden_from_conversation").and_then(Value::as_bool) == Some(true);
    let who = match role {
        _ if is_hidden => return none,
        Some("user") => "You",
        Some("assistant") => "ChatGPT",
        _ => return none,
    };
    let content = message.get("content").unwrap_or(&Value::Null);
    let kind = find_text(content, &["content_type"]).unwrap_or("text");
    let recipient = find_text(message, &["recipient"]).unwrap_or("all");
    let (texts, pictures) = match () {
        () if UNSEEN.contains(&kind) => return ChatgptMessage { left_out: Some(THOUGHTS), ..none },
        () if who == "ChatGPT" && recipient.starts_with("canmore.") => (read_canvas(content), 0),
        () if CALLS.contains(&kind) => (Vec::new(), 0),
        () if who == "ChatGPT" && !matches!(recipient, "all" | "user" | "assistant") => (Vec::new(), 0),
        () => read_texts(content),
    };
    let sources = find_cited_sources(metadata);
    let text = replace_marks(&texts.join("\n\n"), &sources);
    if text.trim().is_empty() {
        let is_call = pictures == 0 && (CALLS.contains(&kind) || recipient != "all");
        return ChatgptMessage { pictures, left_out: is_call.then_some(TOOL_CALLS), ..none };
    }
    let at = find_time(message, &["create_time", "update_time"]);
    ChatgptMessage { said: Some(ImportedMessage { who: who.to_owned(), at, text }), pictures, ..none }
}

/// Returns a research report, stored in the state of its widget. The message itself is empty and may be hidden.
fn find_report(metadata: &Value) -> Option<String> {
    let state = metadata.pointer("/chatgpt_sdk/widget_state").or_else(|| metadata.get("widget_state"))?;
    let parsed = state.as_str().and_then(|state| parse_json(state.as_bytes()));
    let report = parsed.as_ref().unwrap_or(state).get("report_message")?;
    let (texts, _) = read_texts(report.get("content")?);
    let sources = find_cited_sources(report.get("metadata").unwrap_or(&Value::Null));
    Some(replace_marks(&texts.join("\n\n"), &sources)).filter(|text| !text.trim().is_empty())
}

/// Returns the texts of a content, and the number of other parts.
fn read_texts(content: &Value) -> (Vec<String>, usize) {
    let parts = match (content, content.get("parts")) {
        (Value::String(text), _) | (_, Some(Value::String(text))) => return (vec![text.clone()], 0),
        (_, Some(Value::Array(parts))) => parts.as_slice(),
        _ => return (find_text(content, &["text"]).map(str::to_owned).into_iter().collect(), 0),
    };
    let (mut texts, mut others) = (Vec::new(), 0);
    for part in parts {
        // Speech is an object with a transcript.
        match part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
            Some(text) => texts.push(text.to_owned()),
            None => others += usize::from(part.is_object()),
        }
    }
    (texts, others)
}

/// Returns the canvas that an answer wrote: a document beside the conversation, or the text that replaces one.
fn read_canvas(content: &Value) -> Vec<String> {
    let (texts, _) = read_texts(content);
    let Some(call) = texts.first().and_then(|text| parse_json(text.as_bytes())) else { return Vec::new() };
    let title = find_text(&call, &["name"]).map(|name| format!("[{name}]\n")).unwrap_or_default();
    let whole = find_text(&call, &["content"]);
    let rewritten = find_list(&call, &["updates"]).iter().filter_map(|update| find_text(update, &["replacement"]));
    whole.into_iter().chain(rewritten).map(|text| format!("{title}{text}")).collect()
}

#[cfg(test)]
mod tests {
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

    /// The imported messages of a conversation, as `who: words` joined by ` | `, and the reasons for skipped content.
    fn taken(conversation: &Value) -> (String, Vec<&'static str>) {
        let mut found = FoundContent::default();
        let read = read_one(conversation, &mut found);
        let said = read.into_iter().flat_map(|conversation| conversation.read.said);
        let said: Vec<_> = said.map(|said| format!("{}: {}", said.who, said.text)).collect();
        (said.join(" | "), reasons(&found))
    }

    fn node(role: &str, content: &Value, parent: &str) -> Value {
        json!({"message": {"author": {"role": role}, "content": content, "recipient": "all"}, "parent": parent})
    }

    fn said(words: &str, parent: &str) -> Value {
        node("user", &json!({"content_type": "text", "parts": [words]}), parent)
    }

    fn answer(content: &Value, parent: &str) -> Value {
        node("assistant", content, parent)
    }

    /// A message with one of its fields changed; a field is named by its path.
    fn with(mut node: Value, path: &str, value: Value) -> Value {
        match node.pointer_mut(path) {
            Some(field) => *field = value,
            None => {
                let (above, name) = path.rsplit_once('/').unwrap();
                node.pointer_mut(above).unwrap()[name] = value;
            }
        }
        node
    }

    #[test]
    fn messages_are_imported_and_all_else_is_reported() {
        let picture = json!({"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"});
        let one = |node: Value| json!({"title": "T", "mapping": {"a": node}, "current_node": "a"});
        let parts = |parts: Value| one(answer(&json!({"content_type": "multimodal_text", "parts": parts}), ""));
        let call =
            |recipient: &str, content: Value| one(with(answer(&content, ""), "/message/recipient", json!(recipient)));
        for (name, conversation, expected, left) in [
            ("plain", one(said("one", "")), "You: one", vec![]),
            (
                "no title, no times",
                json!({"title": null, "create_time": null, "mapping": {"a": said("one", "")}}),
                "You: one",
                vec![],
            ),
            (
                "a title that is a number",
                json!({"title": 7, "create_time": {}, "update_time": [], "mapping": {"a": said("one", "")}}),
                "You: one",
                vec![],
            ),
            (
                "a message that is null",
                json!({"mapping": {"r": {"message": null, "parent": null}, "a": said("one", "r"), "b": null, "c": 7}}),
                "You: one",
                vec![],
            ),
            (
                "hidden",
                one(with(said("one", ""), "/message/metadata", json!({"is_visually_hidden_from_conversation": true}))),
                "",
                vec![EMPTY],
            ),
            (
                "not hidden",
                one(with(
                    said("one", ""),
                    "/message/metadata",
                    json!({"is_visually_hidden_from_conversation": null, "x": [1]}),
                )),
                "You: one",
                vec![],
            ),
            ("metadata that is none", one(with(said("one", ""), "/message/metadata", json!("x"))), "You: one", vec![]),
            (
                "a system's",
                one(node("system", &json!({"content_type": "text", "parts": ["one"]}), "")),
                "",
                vec![EMPTY],
            ),
            ("a tool's", one(node("tool", &json!({"content_type": "text", "parts": ["one"]}), "")), "", vec![EMPTY]),
            ("no author", one(with(said("one", ""), "/message/author", Value::Null)), "", vec![EMPTY]),
            (
                "instructions",
                one(node("user", &json!({"content_type": "user_editable_context", "user_profile": "x"}), "")),
                "",
                vec![THOUGHTS, EMPTY],
            ),
            (
                "thoughts",
                one(answer(&json!({"content_type": "thoughts", "thoughts": [{"summary": "x", "content": "y"}]}), "")),
                "",
                vec![THOUGHTS, EMPTY],
            ),
            ("no kind", one(node("user", &json!({"parts": ["one"]}), "")), "You: one", vec![]),
            (
                "a kind that is new",
                one(node("user", &json!({"content_type": "rich_text", "parts": ["one"]}), "")),
                "You: one",
                vec![],
            ),
            ("content that is a text", one(node("user", &json!("one"), "")), "You: one", vec![]),
            ("content that is null", one(node("user", &Value::Null, "")), "", vec![EMPTY]),
            (
                "parts that are a text",
                one(node("user", &json!({"content_type": "text", "parts": "one"}), "")),
                "You: one",
                vec![],
            ),
            (
                "parts that are null",
                one(node("user", &json!({"content_type": "text", "parts": null}), "")),
                "",
                vec![EMPTY],
            ),
            (
                "odd parts",
                parts(json!(["one", null, {}, 7, picture, "two"])),
                "ChatGPT: one\n\ntwo",
                vec![PICTURES, PICTURES],
            ),
            ("a picture alone", parts(json!([picture])), "", vec![PICTURES, EMPTY]),
            (
                "a spoken message",
                parts(
                    json!([{"content_type": "audio_asset_pointer"}, {"content_type": "audio_transcription", "text": "one", "direction": "in"}]),
                ),
                "ChatGPT: one",
                vec![PICTURES],
            ),
            (
                "a call",
                call("browser", json!({"content_type": "code", "text": "search()"})),
                "",
                vec![TOOL_CALLS, EMPTY],
            ),
            (
                "a call as text",
                call("bio", json!({"content_type": "text", "parts": ["User bakes."]})),
                "",
                vec![TOOL_CALLS, EMPTY],
            ),
            (
                "the interpreter's code",
                call("python", json!({"content_type": "code", "text": "1 + 1"})),
                "",
                vec![TOOL_CALLS, EMPTY],
            ),
            (
                "the output of that code",
                one(node("tool", &json!({"content_type": "execution_output", "text": "2"}), "")),
                "",
                vec![EMPTY],
            ),
            (
                "a canvas",
                call(
                    "canmore.create_textdoc",
                    json!({"content_type": "code", "text": "{\"name\": \"Bread\", \"type\": \"document\", \"content\": \"500 g\"}"}),
                ),
                "ChatGPT: [Bread]\n500 g",
                vec![],
            ),
            (
                "a canvas as text",
                call(
                    "canmore.create_textdoc",
                    json!({"content_type": "text", "parts": ["{\"name\": \"Bread\", \"content\": \"500 g\"}"]}),
                ),
                "ChatGPT: [Bread]\n500 g",
                vec![],
            ),
            (
                "a canvas anew",
                call(
                    "canmore.update_textdoc",
                    json!({"content_type": "code", "text": "{\"updates\": [{\"pattern\": \".*\", \"replacement\": \"600 g\"}]}"}),
                ),
                "ChatGPT: 600 g",
                vec![],
            ),
            (
                "a research report",
                one(with(
                    node("tool", &json!({"content_type": "text", "parts": [""]}), ""),
                    "/message/metadata",
                    json!({"is_visually_hidden_from_conversation": true, "chatgpt_sdk": {"widget_state":
                        "{\"status\": \"completed\", \"report_message\": {\"content\": {\"parts\": [\"# Rye\"]}}}"}}),
                )),
                "ChatGPT: # Rye",
                vec![],
            ),
            (
                "a broken canvas",
                call("canmore.create_textdoc", json!({"content_type": "code", "text": "{\"name\""})),
                "",
                vec![TOOL_CALLS, EMPTY],
            ),
            ("marks", one(said("Rye \u{e200}cite\u{e202}turn0search0\u{e201}.", "")), "You: Rye.", vec![]),
            (
                "marks with a source",
                one(with(
                    said("Rye【3†source】.", ""),
                    "/message/metadata",
                    json!({"citations": [{"metadata": {"url": "https://example.org", "extra": {"cited_message_idx": 3}}}]}),
                )),
                "You: Rye (https://example.org).",
                vec![],
            ),
            ("marks alone", one(said("\u{e200}image_group\u{e202}{}\u{e201}", "")), "", vec![EMPTY]),
            (
                "another branch",
                json!({"mapping": {"r": said("q", ""), "a": said("one", "r"), "b": said("two", "r")}, "current_node": "a"}),
                "You: q | You: one",
                vec![OTHER_BRANCHES],
            ),
            (
                "a circle",
                json!({"mapping": {"a": said("one", "b"), "b": said("two", "a")}, "current_node": "a"}),
                "You: two | You: one",
                vec![],
            ),
            (
                "parents that are gone",
                json!({"mapping": {"a": said("one", "gone"), "b": said("two", "away")}, "current_node": "b"}),
                "You: one | You: two",
                vec![],
            ),
            (
                "no parents, but children",
                json!({"mapping": {"b": {"message": said("two", "")["message"]}, "a": {"message": said("one", "")["message"], "children": ["b"]}}, "current_node": "b"}),
                "You: one | You: two",
                vec![],
            ),
            ("no message", json!({"title": "x", "mapping": {}}), "", vec![EMPTY]),
            ("no tree", json!({"title": "x", "mapping": null}), "", vec![EMPTY]),
            ("a tree that is a list", json!({"title": "x", "mapping": []}), "", vec![NOT_UNDERSTOOD]),
            (
                "a shared conversation that only has a name",
                json!({"id": "1", "title": "x", "is_anonymous": true}),
                "",
                vec![NOT_UNDERSTOOD],
            ),
            ("a number", json!(7), "", vec![NOT_UNDERSTOOD]),
        ] {
            assert_eq!(taken(&conversation), (expected.to_owned(), left), "{name}");
        }
    }

    #[test]
    fn a_chain_of_ten_thousand_messages_is_imported_whole() {
        let nodes = (0..10_000).map(|n: usize| {
            (
                format!("m{n}"),
                said(&format!("word {n}"), &n.checked_sub(1).map(|above| format!("m{above}")).unwrap_or_default()),
            )
        });
        let conversation = json!({"mapping": nodes.collect::<serde_json::Map<_, _>>(), "current_node": "m9999"});
        let (said, left) = taken(&conversation);
        assert_eq!((said.split(" | ").count(), left.len()), (10_000, 0));
        assert!(said.starts_with("You: word 0 | You: word 1 |") && said.ends_with("word 9999"));
    }
    proptest! {
        #[test]
        fn every_message_of_a_chain_is_imported_whatever_its_other_fields_hold(
            texts in prop::collection::vec("[a-z]{1,8}", 1..6),
            odd in prop::collection::vec(any_json(), 6),
        ) {
            let nodes = texts.iter().enumerate().map(|(n, text)| {
                let parent = n.checked_sub(1).map(|above| format!("m{above}"));
                let message = json!({
                    "author": {"role": "user", "name": odd[0], "metadata": odd[1]}, "create_time": odd[2], "metadata": {"x": odd[3]},
                    "content": {"content_type": "text", "parts": [odd[4].is_null().then_some(&odd[4]), text]}, "status": odd[5], "weight": odd[0],
                });
                (format!("m{n}"), json!({"id": odd[1], "parent": parent, "children": odd[2], "message": message}))
            });
            let mapping: serde_json::Map<_, _> = nodes.collect();
            let conversation = json!({"title": odd[3], "create_time": odd[4], "id": odd[5], "mapping": mapping, "current_node": odd[0]});
            let (said, _) = taken(&conversation);
            let expected: Vec<String> = texts.iter().map(|text| format!("You: {text}")).collect();
            prop_assert_eq!(said, expected.join(" | "));
        }

        #[test]
        fn a_conversation_with_any_field_changed_ends(changes in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..4)) {
            let mut conversation = json!({"title": "T", "create_time": 1, "mapping": {"a": said("one", ""), "b": answer(&json!({"content_type": "code", "text": "x"}), "a")}, "current_node": "b", "id": "1"});
            changes.into_iter().for_each(|(at, value)| replace_value(&mut conversation, at, value));
            taken(&conversation);
        }
    }
}
