//! Reads Claude's export: `conversations.json` with `chat_messages`, projects with documents and instructions, and Claude's notes.

use std::collections::BTreeMap;

use serde_json::Value;

use reveille_base::zone::Tz;

use super::{
    ImportError, ImportKind,
    conversation::{ExportedConversation, ImportedConversation, ImportedMessage},
    export::{
        EMPTY, NOT_NEEDED, OTHER_BRANCHES, OTHER_EXPORT, THOUGHTS, TOOL_CALLS, name_conversation, read_conversations,
        read_title, report_unreadable, visit_values,
    },
    found::{DocumentKind, FoundContent, FoundDocument},
    names::{self, TakenNames},
    recognise::{ExportFiles, plain_stem},
    source::{ImportSource, SourceEntry, TOO_LARGE},
    stores::{find_list, find_text, find_time},
    thread::{ThreadNode, find_shown_branch},
};

const FILES: &str = "files of conversations, which the export only lists";
const UNREADABLE_PROJECT: &str = "an unreadable project";
const UNREADABLE_NOTES: &str = "unreadable notes about you";
/// The maximum number of thoughts removed from a text.
const MAX_THOUGHTS: usize = 100;
/// The export's placeholders for content it can't show.
const PLACEHOLDERS: [&str; 3] = [
    "This block is not supported on your current device yet.",
    "Viewing artifacts created via the Analysis Tool web feature preview isn’t yet supported on mobile.",
    "Viewing artifacts created via the Analysis Tool web feature preview isn't yet supported on mobile.",
];

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundContent, ImportError> {
    let mut found = FoundContent::default();
    let mut taken = TakenNames::default();
    let files = ExportFiles::find(source, ImportKind::Claude);
    for entry in source.entries().iter().filter(|entry| !files.own.contains(entry)) {
        let in_projects = entry.path.split('/').rev().skip(1).any(|folder| folder == "projects");
        let is_json = entry.has_ending(&[".json"]);
        match plain_stem(entry).as_str() {
            _ if files.others.contains(&entry) => found.leave_out(&entry.path, OTHER_EXPORT),
            "projects" if is_json => {
                visit_elements(source, entry, &mut found, UNREADABLE_PROJECT, &mut |value, found| {
                    take_project(value, found, &mut taken)
                });
            }
            _ if is_json && (in_projects || files.projects.contains(&entry)) => {
                visit_elements(source, entry, &mut found, UNREADABLE_PROJECT, &mut |value, found| {
                    take_project(value, found, &mut taken)
                });
            }
            "memories" if is_json => {
                visit_elements(source, entry, &mut found, UNREADABLE_NOTES, &mut |value, found| {
                    take_memories(value, found, &mut taken)
                });
            }
            _ => found.leave_out(&entry.path, NOT_NEEDED),
        }
    }
    match read_conversations(source, &files.own, "claude", tz, &mut found, &read_conversation) {
        Err(error) if found.documents.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// Passes each element of a file to `work`, which returns whether it understood the element.
fn visit_elements(
    source: &ImportSource,
    entry: &SourceEntry,
    found: &mut FoundContent,
    not_understood: &'static str,
    work: &mut dyn FnMut(&Value, &mut FoundContent) -> bool,
) {
    let mut own = FoundContent::default();
    let end = visit_values(source, entry, &mut |raw, value| {
        let is_understood = value.is_some_and(|value| work(value, &mut own));
        if !is_understood {
            own.leave_out(
                name_conversation(raw),
                if value.is_none() && raw.is_empty() { TOO_LARGE } else { not_understood },
            );
        }
    });
    match end {
        Ok(damage) => {
            found.documents.append(&mut own.documents);
            found.left_out.append(&mut own.left_out);
            if let Some(why) = damage {
                found.leave_out(&entry.path, why);
            }
        }
        Err(_) => found.leave_out(&entry.path, super::source::UNREADABLE),
    }
}

fn read_conversation(conversation: &Value, found: &mut FoundContent) -> Option<ExportedConversation> {
    let title = read_title(conversation, &["name", "title"]);
    let is_list = |name: &str| conversation.get(name).is_none_or(|list| list.is_array() || list.is_null());
    if !conversation.is_object() || !is_list("chat_messages") || !is_list("messages") {
        report_unreadable(&title, found);
        return None;
    }
    let messages = find_list(conversation, &["chat_messages", "messages"]);
    let current = find_text(conversation, &["current_leaf_message_uuid"]);
    let mut imported = ImportedConversation { title, said: Vec::new() };
    let mut is_shown = vec![false; messages.len()];
    for at in find_shown_branch(&build_thread(messages), current) {
        let (Some(shown), Some(message)) = (is_shown.get_mut(at), messages.get(at)) else { continue };
        *shown = true;
        let words = read_words(message);
        words.left_out.iter().for_each(|(why, times)| found.add_left_out(&imported.title, why, *times));
        if !words.text.is_empty() {
            let speaker = match find_text(message, &["sender", "role"]) {
                Some("human" | "user") => "You",
                Some("assistant") | None => "Claude",
                Some(other) => other,
            };
            let at = find_time(message, &["created_at", "updated_at"]);
            imported.said.push(ImportedMessage { who: speaker.to_owned(), at, text: words.text });
        }
    }
    let replaced =
        messages.iter().zip(is_shown).filter(|(message, shown)| !shown && !read_words(message).text.is_empty());
    found.add_left_out(&imported.title, OTHER_BRANCHES, replaced.count());
    if imported.said.is_empty() {
        found.leave_out(imported.title, EMPTY);
        return None;
    }
    let id = find_text(conversation, &["uuid", "id"]).map(str::to_owned);
    Some(ExportedConversation { id, begun: find_time(conversation, &["created_at"]), read: imported })
}

/// Builds the message tree. If no message has a parent, or all have the same one, the messages follow each other in their order.
fn build_thread(messages: &[Value]) -> Vec<ThreadNode<'_>> {
    let sender = |message: &Value| find_text(message, &["sender", "role"]).map(str::to_owned);
    let mut nodes: Vec<_> = messages.iter().map(to_thread_node).collect();
    let is_flat = nodes.windows(2).all(|pair| matches!(pair, [one, other] if one.parent == other.parent))
        && messages.windows(2).any(|pair| matches!(pair, [one, other] if sender(one) != sender(other)));
    if is_flat {
        nodes.iter_mut().for_each(|node| node.parent = None);
    }
    nodes
}

fn to_thread_node(message: &Value) -> ThreadNode<'_> {
    ThreadNode {
        id: find_text(message, &["uuid", "id"]).unwrap_or_default(),
        parent: find_text(message, &["parent_message_uuid"]),
        at: find_time(message, &["created_at"]).map(|at| at.timestamp_millis() as f64 / 1000.0),
    }
}

/// The text of a message, and the number of skipped parts by reason.
#[derive(Default)]
struct ClaudeWords {
    text: String,
    left_out: BTreeMap<&'static str, usize>,
}

impl ClaudeWords {
    fn leave_out(&mut self, why: &'static str, times: usize) {
        *self.left_out.entry(why).or_default() += times;
    }
}

/// Extracts the text of a message with its attachments.
fn read_words(message: &Value) -> ClaudeWords {
    let mut words = ClaudeWords::default();
    let mut texts: Vec<String> = Vec::new();
    let mut thoughts: Vec<&str> = Vec::new();
    let content = message.get("content");
    texts.extend(content.and_then(Value::as_str).map(str::to_owned));
    for block in find_list(message, &["content"]) {
        let kind = find_text(block, &["type"]).unwrap_or("text");
        match (kind, read_artifact(block)) {
            ("tool_use", Some(artifact)) => texts.push(artifact),
            (kind, _) if kind.starts_with("tool_") => words.leave_out(TOOL_CALLS, 1),
            ("thinking" | "redacted_thinking", _) => {
                thoughts.extend(find_text(block, &["thinking"]));
                words.leave_out(THOUGHTS, 1);
            }
            _ => texts.extend(block.as_str().or_else(|| find_text(block, &["text"])).map(str::to_owned)),
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    if texts.is_empty() {
        // The text field joins all blocks, with placeholders for other content.
        let whole = find_text(message, &["text"]).unwrap_or_default().to_owned();
        texts.push(thoughts.into_iter().take(MAX_THOUGHTS).fold(whole, |text, thought| text.replace(thought, "")));
    }
    let (text, placeholders) = remove_placeholders(&texts.join("\n\n"));
    if placeholders > 0 && words.left_out.is_empty() {
        words.leave_out(TOOL_CALLS, placeholders);
    }
    words.text = text;
    for attachment in find_list(message, &["attachments"]) {
        match find_text(attachment, &["extracted_content"]) {
            Some(content) => {
                let name = find_text(attachment, &["file_name"]).unwrap_or("a file");
                words.text.push_str(&format!("\n\n[{name}]\n{content}"));
            }
            None => words.leave_out(FILES, 1),
        }
    }
    words.leave_out(FILES, find_list(message, &["files"]).len());
    words.text = words.text.trim().to_owned();
    words
}

/// Returns the document that Claude wrote with a tool call and shows beside the conversation.
fn read_artifact(block: &Value) -> Option<String> {
    let input = block.get("input")?;
    let name = find_text(block, &["name"]).filter(|name| ["artifacts", "create_file"].contains(name))?;
    let content = find_text(input, &["content", "file_text"])?;
    let title = find_text(input, &["title", "path", "id"]).unwrap_or(name);
    Some(format!("[{title}]\n{content}"))
}

/// Removes placeholders, and the fence around a placeholder. Returns the rest, and the number of removed placeholders. Works by lines,
/// because an unclosed fence in an answer would make a Markdown parser pair the fences wrongly.
fn remove_placeholders(text: &str) -> (String, usize) {
    if !PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder)) {
        return (text.trim().to_owned(), 0);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut removed = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !PLACEHOLDERS.contains(&line.trim()) {
            kept.push(line);
            continue;
        }
        removed += 1;
        let is_fenced = kept.last().is_some_and(|line| line.trim() == "```");
        if is_fenced && lines.next_if(|line| line.trim() == "```").is_some() {
            kept.pop();
        }
    }
    (kept.join("\n").trim().to_owned(), removed)
}

/// Takes a project: its instructions as orders, its documents as notes.
fn take_project(project: &Value, found: &mut FoundContent, taken: &mut TakenNames) -> bool {
    if !project.is_object() {
        return false;
    }
    let name = find_text(project, &["name"]).unwrap_or("project");
    let step = names::to_safe_step(name).unwrap_or_else(|| "project".to_owned());
    let folder = format!("claude/projects/{step}");
    if let Some(orders) = find_text(project, &["prompt_template"]) {
        let path = taken.reserve_path(format!("{folder}/instructions.md"));
        let text = format!("# {name}\n\n{orders}\n");
        found.documents.push(FoundDocument { path, text, day: None, kind: DocumentKind::Orders });
    }
    for document in find_list(project, &["docs"]) {
        let file = find_text(document, &["filename", "file_name"]).unwrap_or("document");
        let Some(content) = find_text(document, &["content"]) else {
            found.leave_out(file, FILES);
            continue;
        };
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let path = names::to_document_path(&folder, file).unwrap_or_else(|| format!("{folder}/document.md"));
        let text = format!("{content}\n");
        found.documents.push(FoundDocument {
            path: taken.reserve_path(path),
            text,
            day: None,
            kind: DocumentKind::Note,
        });
    }
    true
}

/// Takes Claude's notes on the person. An empty element is valid, too: it belongs to an account without notes.
fn take_memories(memory: &Value, found: &mut FoundContent, taken: &mut TakenNames) -> bool {
    let Some(fields) = memory.as_object() else { return false };
    let mut text = find_text(memory, &["conversations_memory", "memory"]).unwrap_or_default().to_owned();
    let projects = memory.get("project_memories");
    let values = projects.and_then(Value::as_object).into_iter().flat_map(|projects| projects.values());
    for note in values.chain(find_list(memory, &["project_memories"])) {
        if let Some(note) = note.as_str().or_else(|| find_text(note, &["memory", "content", "text"])) {
            text.push_str(&format!("\n\n{note}"));
        }
    }
    if !text.trim().is_empty() {
        let text = format!("# What Claude had noted\n\n{}\n", text.trim());
        let path = taken.reserve_path("claude/memories.md".to_owned());
        found.documents.push(FoundDocument { path, text, day: None, kind: DocumentKind::Note });
        return true;
    }
    ["conversations_memory", "memory", "project_memories"].iter().any(|name| fields.contains_key(*name))
        || fields.is_empty()
}

#[cfg(test)]
mod tests;
