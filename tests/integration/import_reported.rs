//! Tests of imports that failed for people who reported them, each through the command line. To cover a new report, add one line: its
//! name, its files, the texts that the documents or tasks must contain, and the number of things left out.

use std::{io::Write as _, path::PathBuf};

use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::support::env::TestEnv;

const BACKLOG: &str = "memory/project-memory/backlog.md";

/// A report: its name, the files of the source with their bytes (`a.zip!b` is a file in an archive), more arguments, the expected texts in
/// the imported documents, and the expected number of things left out, by reason.
type Report =
    (&'static str, Vec<(&'static str, Vec<u8>)>, Vec<&'static str>, Vec<&'static str>, Vec<(&'static str, u64)>);

fn claude(messages: &Value) -> Vec<u8> {
    json!([{"uuid": "ffeeddcc-bbaa-0011", "name": "Bread", "created_at": "2025-05-02T22:30:00Z", "chat_messages": messages},
        {"uuid": "0a1b2c3d-4e5f-6789", "name": "Other", "chat_messages": [{"sender": "human", "text": "The other one"}]}])
    .to_string()
    .into_bytes()
}

fn chatgpt(title: &str, words: &str) -> String {
    let message = |words: &str| {
        let content = json!({"content_type": "text", "parts": [words]});
        json!({"a": {"id": "a", "parent": null, "children": [], "message": {"author": {"role": "user"}, "create_time": null, "content": content}}})
    };
    format!(
        r#"[{{"title": "{title}", "create_time": 1741957380, "mapping": {}, "current_node": "a", "id": "0a1b2c3d-4e5f-6789"}},{}]"#,
        message(words),
        json!({"title": "Other", "mapping": message("The other one"), "current_node": "a", "id": "ffeeddcc-bbaa-0011"})
    )
}

fn import(env: &TestEnv, name: &str, files: &[(&str, Vec<u8>)], more: &[&str]) -> Value {
    let root = env.path(name);
    let mut archives: std::collections::BTreeMap<PathBuf, ZipWriter<std::fs::File>> = std::collections::BTreeMap::new();
    for (file, bytes) in files {
        let (outer, inner) = file.split_once('!').map_or((*file, None), |(outer, inner)| (outer, Some(inner)));
        let path = root.join(outer);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match inner {
            None => std::fs::write(&path, bytes).unwrap(),
            Some(inner) => {
                let writer = archives
                    .entry(path.clone())
                    .or_insert_with(|| ZipWriter::new(std::fs::File::create(path).unwrap()));
                writer.start_file(inner, SimpleFileOptions::default()).unwrap();
                writer.write_all(bytes).unwrap();
            }
        }
    }
    let archives: Vec<PathBuf> =
        archives.into_iter().map(|(path, writer)| writer.finish().map(|_| path).unwrap()).collect();
    let source = match (archives.as_slice(), files) {
        ([archive], files) if files.iter().all(|(file, _)| file.contains('!')) => archive.clone(),
        ([], [(file, _)]) if !file.contains('/') => root.join(file),
        _ => root,
    };
    env.wake(&[&["import", &source.display().to_string(), "--json"], more].concat()).ok().json()
}

/// Everything that was imported: the paths and texts of documents, and the backlog.
fn imported(env: &TestEnv, account: &Value) -> String {
    let paths = account["documents"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
    let documents: String = paths.map(|path| format!("{path}\n{}\n", env.memory(path))).collect();
    let backlog = std::fs::read_to_string(env.brain().join(BACKLOG));
    documents + &backlog.unwrap_or_default()
}

fn count(account: &Value, why: &str) -> u64 {
    let groups = account["left_out"].as_array().unwrap().iter();
    groups
        .filter(|group| group["why"].as_str().unwrap().contains(why))
        .map(|group| group["count"].as_u64().unwrap())
        .sum()
}

fn reports() -> Vec<Report> {
    let call = json!([{"type": "tool_use", "name": "web_search", "input": {}}]);
    let placeholder = "```\nThis block is not supported on your current device yet.\n```";
    let nulls =
        json!([{"sender": "human", "text": "Which flour?", "attachments": null, "content": null, "files": null}]);
    let unsupported = json!([{"sender": "human", "text": "Which flour?"}, {"sender": "assistant", "text": placeholder, "content": call}]);
    let halves = [b"[".as_slice(), chatgpt("Laughter HALVES", "First").replace("HALVES", "\u{1}").as_bytes()].concat();
    let halves: Vec<u8> = halves
        .iter()
        .skip(1)
        .flat_map(|byte| if *byte == 1 { b"\xed\xa0\xbd\xed\xb8\x82".to_vec() } else { vec![*byte] })
        .collect();
    let marked = chatgpt("Rye", "Rye rises \u{e200}cite\u{e202}turn0search0\u{e201}.").into_bytes();
    let whole = chatgpt("A", "First").into_bytes();
    let both = ["First", "The other one"];
    vec![
        ("claude's nulls", vec![("c/conversations.json", claude(&nulls))], vec![], vec!["Which flour?", "The other one"], vec![]),
        ("claude's placeholder", vec![("c/conversations.json", claude(&unsupported))], vec![], vec!["Which flour?"], vec![("tool calls", 1)]),
        ("halves of an emoji in a title", vec![("c/conversations.json", halves)], vec![], vec!["# Laughter 😂\n", "First", "The other one"], vec![]),
        ("half an emoji as an escape", vec![("c/conversations.json", chatgpt("Half \\ud83d", "First").into_bytes())], vec![], both.to_vec(), vec![]),
        ("citations", vec![("c/conversations.json", marked)], vec![], vec!["**You**: Rye rises.\n"], vec![]),
        ("a browser's second download", vec![("conversations (1).json", chatgpt("A", "First").into_bytes())], vec![], both.to_vec(), vec![]),
        ("the same, said", vec![("conversations (1).json", chatgpt("A", "First").into_bytes())], vec!["--as", "chatgpt"], both.to_vec(), vec![]),
        ("another name", vec![("export.json", claude(&nulls))], vec![], vec!["Which flour?"], vec![]),
        ("another name, said", vec![("export.txt", claude(&nulls))], vec!["--as", "claude"], vec!["Which flour?"], vec![]),
        (
            "an export of several files",
            vec![("c/conversations-000.json", chatgpt("A", "First").into_bytes()), ("c/shared_conversations.json", b"[{\"id\": \"1\", \"title\": \"A\"}]".to_vec()), ("c/chat.html", b"<html>".to_vec())],
            vec![],
            both.to_vec(),
            vec![("account data", 2), ("an unreadable conversation", 0)],
        ),
        (
            "a file that breaks off",
            vec![("c/conversations.json", whole[..whole.len() - 40].to_vec())],
            vec![],
            vec!["First"],
            vec![("cut off", 1)],
        ),
        (
            "folders of Windows",
            vec![("v.zip!Vault\\Notes\\a.md", b"# A\n".to_vec()), ("v.zip!Vault\\.obsidian\\s.md", b"# S\n".to_vec())],
            vec![],
            vec!["memory/imported/notes/Vault/Notes/a.md\n# A\n"],
            vec![("hidden", 1)],
        ),
        (
            "tasks and examples",
            vec![("old/memory/backlog.md", b"# Backlog\n- [ ] Paint the shed \xf0\x9f\x93\x85 2026-11-30\n- [-] Roof\n\n```\n- [ ] example\n```\n".to_vec()), ("old/memory/semantic-memory.md", b"# Facts\n".to_vec())],
            vec![],
            vec!["## Paint the shed\n", "due: 2026-11-30"],
            vec![("cancelled", 1)],
        ),
    ]
}

#[test]
fn reported_sources_are_imported() {
    for (name, files, more, expected, left) in reports() {
        let env = TestEnv::new();
        env.wake(&["say", "remember that the gate is green"]).ok();
        let account = import(&env, "source", &files, &more);
        let imported = imported(&env, &account);
        for words in expected {
            assert!(imported.contains(words), "{name}: {words:?} is missing in {imported}\n{account:#}");
        }
        for unwanted in ["not supported", "\u{e200}", "turn0", "# S\n", "## example", "unconfirmed: example"] {
            assert!(!imported.contains(unwanted), "{name}: {unwanted:?} is in {imported}");
        }
        for (why, times) in left {
            assert_eq!(count(&account, why), times, "{name}: {why}: {account:#}");
        }
        let again = import(&env, "source", &files, &more);
        assert_eq!((&again["commit"], &again["new"]["tasks"]), (&Value::Null, &json!(0)), "{name}: {again:#}");
    }
}
