//! Claude's export: `conversations.json` with `chat_messages`, `projects.json` with documents and instructions, `memories.json`.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ImportError,
    chatgpt::{EMPTY, MAX_CONVERSATIONS_BYTES, NOT_NEEDED, NOT_UNDERSTOOD, named, short_id},
    conversation::{self, ReadConversation, SaidThere},
    found::{DocumentSort, FoundDocument, FoundThings},
    names::{self, TakenNames},
    recognise,
    source::{ImportSource, MAX_WHOLE_BYTES, TOO_LARGE},
    stores::{self, text_of},
};
use crate::{clock::parse_time, zone::Tz};

const FILES: &str = "files of conversations, which the export only names";
const TOOL_CALLS: &str = "calls of tools and what came of them";

#[derive(Deserialize)]
struct ClaudeConversation {
    uuid: Option<String>,
    name: Option<String>,
    created_at: Option<String>,
    #[serde(default)]
    chat_messages: Vec<ClaudeMessage>,
}

#[derive(Deserialize)]
struct ClaudeMessage {
    sender: Option<String>,
    text: Option<String>,
    created_at: Option<String>,
    #[serde(default)]
    content: Vec<Value>,
    #[serde(default)]
    attachments: Vec<Value>,
    #[serde(default)]
    files: Vec<Value>,
}

/// Takes one thing of a list in.
type TakeOne<'a> = Box<dyn FnMut(&str, &mut FoundThings) + 'a>;

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundThings, ImportError> {
    let mut found = FoundThings::default();
    let mut taken = TakenNames::default();
    for entry in source.entries() {
        let is_conversations = recognise::conversations(source).any(|other| other == entry);
        let is_project =
            entry.file_name() == "projects.json" || entry.path.contains("projects/") && entry.ends_in(&[".json"]);
        let mut each: TakeOne<'_> = match entry.file_name() {
            _ if is_conversations => Box::new(|raw, found| take(raw, found, tz)),
            _ if is_project => Box::new(|raw, found| project(raw, found, &mut taken)),
            "memories.json" => Box::new(memories),
            _ => {
                found.leave(&entry.path, NOT_NEEDED);
                continue;
            }
        };
        let read = source.with_reader(entry, MAX_CONVERSATIONS_BYTES, |reader| -> serde_json::Result<()> {
            if is_project && entry.file_name() != "projects.json" {
                let one: Value = serde_json::from_reader(std::io::BufReader::new(reader))?;
                each(&one.to_string(), &mut found);
                return Ok(());
            }
            stores::each_of_list(reader, &mut |raw| each(raw, &mut found))
        })?;
        read.map_err(|error| ImportError::unreadable(&entry.path, error))?;
    }
    Ok(found)
}

fn take(raw: &str, found: &mut FoundThings, tz: Tz) {
    if raw.len() as u64 > MAX_WHOLE_BYTES {
        return found.leave("a conversation", TOO_LARGE);
    }
    let Ok(conversation) = serde_json::from_str::<ClaudeConversation>(raw) else {
        return found.leave(named(raw), NOT_UNDERSTOOD);
    };
    let title = conversation.name.clone().unwrap_or_default();
    let mut read = ReadConversation { title: title.clone(), said: Vec::new() };
    for message in &conversation.chat_messages {
        let who = if message.sender.as_deref() == Some("human") { "You" } else { "Claude" };
        let (text, calls) = words(message);
        (0..calls).for_each(|_| found.leave(&title, TOOL_CALLS));
        message.files.iter().for_each(|_| found.leave(&title, FILES));
        if !text.trim().is_empty() {
            let at = message.created_at.as_deref().and_then(parse_time);
            read.said.push(SaidThere { who: who.to_owned(), at, text });
        }
    }
    if read.said.is_empty() {
        return found.leave(title, EMPTY);
    }
    let begun: Option<DateTime<Utc>> = conversation.created_at.as_deref().and_then(parse_time);
    let day = begun.or_else(|| read.said.iter().find_map(|said| said.at)).map(|at| at.with_timezone(&tz).date_naive());
    let id = short_id(conversation.uuid.as_deref(), &read);
    conversation::keep(&format!("claude/{}", conversation::dated(day, &id)), day, &read, tz, found);
}

/// What a message says with the text of what was attached to it, and how many calls of tools are in it.
fn words(message: &ClaudeMessage) -> (String, usize) {
    let is_text = |block: &&Value| block.get("type").and_then(Value::as_str) == Some("text");
    let mut texts: Vec<&str> =
        message.content.iter().filter(is_text).filter_map(|block| text_of(block, &["text"])).collect();
    if texts.is_empty() {
        texts.extend(message.text.as_deref().map(str::trim));
    }
    let mut text = texts.join("\n\n");
    for attachment in &message.attachments {
        if let Some(content) = text_of(attachment, &["extracted_content"]) {
            let name = text_of(attachment, &["file_name"]).unwrap_or("a file");
            text.push_str(&format!("\n\n[{name}]\n{content}"));
        }
    }
    let is_call =
        |block: &&Value| block.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("tool_"));
    (text, message.content.iter().filter(is_call).count())
}

/// A project: its instructions are orders, its documents are notes.
fn project(raw: &str, found: &mut FoundThings, taken: &mut TakenNames) {
    let Ok(project) = serde_json::from_str::<Value>(raw) else { return };
    let name = text_of(&project, &["name"]).unwrap_or("project");
    let step = names::step(name).unwrap_or_else(|| "project".to_owned());
    let folder = format!("claude/projects/{step}");
    if let Some(orders) = text_of(&project, &["prompt_template"]) {
        let path = taken.free(format!("{folder}/instructions.md"));
        let text = format!("# {name}\n\n{orders}\n");
        found.documents.push(FoundDocument { path, text, day: None, sort: DocumentSort::Orders });
    }
    for document in project.get("docs").and_then(Value::as_array).into_iter().flatten() {
        let file = text_of(document, &["filename", "file_name"]).unwrap_or("document");
        let Some(content) = text_of(document, &["content"]) else { continue };
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let path = names::document(&folder, file).unwrap_or_else(|| format!("{folder}/document.md"));
        let text = format!("{content}\n");
        found.documents.push(FoundDocument { path: taken.free(path), text, day: None, sort: DocumentSort::Note });
    }
}

/// What Claude has noted of the person.
fn memories(raw: &str, found: &mut FoundThings) {
    let Ok(memory) = serde_json::from_str::<Value>(raw) else { return };
    let mut text = text_of(&memory, &["conversations_memory", "memory"]).unwrap_or_default().to_owned();
    let projects = memory.get("project_memories").and_then(Value::as_object);
    for said in projects.into_iter().flat_map(|projects| projects.values()).filter_map(Value::as_str) {
        text.push_str(&format!("\n\n{said}"));
    }
    if !text.trim().is_empty() {
        let text = format!("# What Claude had noted\n\n{}\n", text.trim());
        let path = "claude/memories.md".to_owned();
        found.documents.push(FoundDocument { path, text, day: None, sort: DocumentSort::Note });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_is_too_large_is_left_out() {
        let mut found = FoundThings::default();
        let raw = format!("{{\"name\": \"{}\"}}", "x".repeat(usize::try_from(MAX_WHOLE_BYTES).unwrap()));
        take(&raw, &mut found, "UTC".parse().unwrap());
        assert_eq!(found.left_out[0].why, TOO_LARGE);
    }
}
