//! What a source is, by the files that it holds.

use std::io::Read as _;

use super::{
    ImportError, ImportKind,
    source::{ImportSource, SourceEntry},
};

/// How much of an export is looked at to tell whose it is, in bytes.
const PEEK_BYTES: u64 = 1 << 20;

/// Tells the kind.
///
/// # Errors
/// It is none that is known.
pub(super) fn kind_of(source: &ImportSource) -> Result<ImportKind, ImportError> {
    for entry in conversations(source) {
        let mut begin = Vec::new();
        let read = source.with_reader(entry, u64::MAX, |reader| reader.take(PEEK_BYTES).read_to_end(&mut begin))?;
        read.map_err(|error| ImportError::unreadable(&entry.path, error))?;
        let begin = String::from_utf8_lossy(&begin);
        if begin.contains("\"chat_messages\"") {
            return Ok(ImportKind::Claude);
        }
        if begin.contains("\"mapping\"") {
            return Ok(ImportKind::Chatgpt);
        }
    }
    let has = |names: &[&str]| names.iter().any(|name| source.find(name).is_some());
    if has(&["projects.json", "memories.json"]) && has(&["users.json"]) {
        return Ok(ImportKind::Claude);
    }
    if has(&["memory/knowledge.json", "memory/conversation_log.jsonl", "memory/reminders.json", "knowledge.json"]) {
        return Ok(ImportKind::JsonAgent);
    }
    let memory = ["working-memory.md", "episodic-memory.md", "semantic-memory.md"];
    let is_memory = |entry: &SourceEntry| {
        entry.path.split('/').rev().skip(1).any(|folder| folder == "memory") && memory.contains(&entry.file_name())
    };
    if source.entries().iter().any(is_memory) || has(&memory) {
        return Ok(ImportKind::MarkdownAgent);
    }
    if source.entries().iter().any(|entry| entry.ends_in(super::notes::ENDINGS)) {
        return Ok(ImportKind::Notes);
    }
    Err(ImportError::Refused(
        "I don't recognise what this is. I know: a folder of Markdown notes, ChatGPT's and Claude's exports (zip, or unpacked), and \
         two assistants' memories. `--as KIND` decides."
            .to_owned(),
    ))
}

/// The files of conversations in an export; a large one has several.
pub(super) fn conversations(source: &ImportSource) -> impl Iterator<Item = &SourceEntry> {
    source.entries().iter().filter(|entry| {
        let name = entry.file_name();
        let number = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
        let is_numbered = number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit() || c == '-'));
        is_numbered && entry.path.split('/').count() <= 2
    })
}
