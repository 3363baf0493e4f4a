//! Reads an assistant with its memory in Markdown: `memory/*.md`, flat or in `agent-memory/` and `project-memory/`, `claude.md`,
//! `.claude/skills/` and `.env`. Facts and tasks become facts and tasks; the rest is kept as it came.

use reveille_config::OldSetting;
use reveille_memory::{
    facts::Facts,
    sections::Document,
    tasks::{Task, TaskDraft, TaskList},
};

use super::{
    ImportError,
    boxes::{BoxState, TaskBox, read_boxes},
    found::{FoundContent, FoundFact, FoundTask},
    names::TakenNames,
    notes,
    source::{ImportSource, MAX_WHOLE_BYTES, SourceEntry},
};

const FOLDER: &str = "markdown-agent";
const OF_THE_PROGRAM: &str = "files of the program, not of its memory";
const INTERRUPTED: &str = "remains of an interrupted run";
const DONE: &str = "tasks that were finished";
const CANCELLED: &str = "tasks that were cancelled";
const BAD_LINES: &str = "unreadable lines of settings";
/// The statuses of finished tasks.
const OVER: [&str; 6] = ["done", "completed", "complete", "dropped", "cancelled", "archived"];
/// Keys handled separately or dropped: another program can't assign a task to a chat.
const OWN_KEYS: [&str; 7] = ["status", "touched", "next", "why", "due", "chat", "unconfirmed"];

pub(super) fn read(source: &ImportSource) -> Result<FoundContent, ImportError> {
    let mut found = FoundContent::default();
    let mut taken = TakenNames::default();
    // If the source is itself a memory folder, everything in it counts as memory.
    let has_folder = source.entries().iter().any(|entry| strip_folder(&entry.path, "memory").is_some());
    for entry in source.entries() {
        let name = entry.file_name().to_lowercase();
        let of_memory = if has_folder { strip_folder(&entry.path, "memory") } else { Some(entry.path.as_str()) };
        let of_skills = strip_folder(&entry.path, "skills");
        match (of_memory, name.as_str()) {
            (_, ".env") => read_settings(source, entry, &mut found),
            (_, name) if name.starts_with("plan-") && name.ends_with(".md") => {
                found.leave_out(&entry.path, INTERRUPTED);
            }
            (Some(path), "semantic-memory.md") => {
                let Some(text) = read_text(source, entry, &mut found) else { continue };
                if take_facts(&text, path, &mut found) {
                    notes::add_document(&text, FOLDER, path, &mut found, &mut taken);
                }
            }
            (Some(path), "active.md" | "backlog.md") => {
                let Some(text) = read_text(source, entry, &mut found) else { continue };
                if take_tasks(&text, path, &mut found) {
                    notes::add_document(&text, FOLDER, path, &mut found, &mut taken);
                }
            }
            (Some(path), _) if entry.has_ending(notes::ENDINGS) => {
                notes::take_file(source, entry, FOLDER, path, &mut found, &mut taken);
            }
            (_, "claude.md") => notes::take_file(source, entry, FOLDER, "claude.md", &mut found, &mut taken),
            _ if of_skills.is_some() && entry.has_ending(notes::ENDINGS) => {
                let path = format!("skills/{}", of_skills.unwrap_or_default());
                notes::take_file(source, entry, FOLDER, &path, &mut found, &mut taken);
            }
            _ => found.leave_out(&entry.path, OF_THE_PROGRAM),
        }
    }
    Ok(found)
}

/// Returns the rest of a path below a folder of this name, at any depth.
fn strip_folder<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let within = format!("/{folder}/");
    let start = format!("{folder}/");
    path.strip_prefix(&start).or_else(|| path.split_once(&within).map(|(_, below)| below))
}

fn read_text(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent) -> Option<String> {
    let text = source.read_text(entry, notes::MAX_NOTE_BYTES);
    text.map_err(|why| found.leave_out(&entry.path, why)).ok()
}

/// Reads settings; their values are remembered for masking.
pub(super) fn read_settings(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent) {
    match source.read_text(entry, MAX_WHOLE_BYTES) {
        Ok(text) => {
            let (settings, unreadable) = OldSetting::parse_file(&text);
            (0..unreadable).for_each(|_| found.leave_out(&entry.path, BAD_LINES));
            found.secrets.extend(settings.iter().filter_map(OldSetting::secret));
            found.settings.extend(settings);
        }
        Err(why) => found.leave_out(&entry.path, why),
    }
}

/// Takes the facts of a document. Returns whether it has other content too.
fn take_facts(text: &str, path: &str, found: &mut FoundContent) -> bool {
    let (facts, _) = Facts::parse(text);
    let taken = facts.iter().map(|(topic, fact)| {
        let from = if topic.is_empty() { path.to_owned() } else { format!("{path}, {topic}") };
        FoundFact { text: fact.text.clone(), from }
    });
    found.facts.extend(taken);
    Document::split(text).holds_more_than_items()
}

/// Takes the tasks of a document. Returns whether to keep the document itself: it has other content, or nothing that reads like a task.
fn take_tasks(text: &str, path: &str, found: &mut FoundContent) -> bool {
    let (boxes, has_more) = read_boxes(text);
    if !boxes.is_empty() {
        // In a list of checkboxes, headings aren't tasks.
        for TaskBox { title, due, state } in boxes {
            match state {
                BoxState::Open => {
                    let draft = TaskDraft { title, status: Some("waiting".to_owned()), ..TaskDraft::default() };
                    found.tasks.push(FoundTask { draft, due, from: path.to_owned() });
                }
                BoxState::Ticked => found.leave_out(title, DONE),
                BoxState::Cancelled => found.leave_out(title, CANCELLED),
            }
        }
        return has_more;
    }
    let before = found.tasks.len() + found.left_out.len();
    let (list, _) = TaskList::parse(text);
    for task in list.tasks() {
        let status = task.status().unwrap_or_default().to_lowercase();
        if OVER.iter().any(|over| status.starts_with(over)) {
            found.leave_out(&task.title, DONE);
        } else {
            found.tasks.push(to_found_task(task, path));
        }
    }
    before == found.tasks.len() + found.left_out.len() && has_more
}

fn to_found_task(task: &Task, path: &str) -> FoundTask {
    let others = task.keys.iter().filter(|key| !OWN_KEYS.contains(&key.name.to_lowercase().as_str()));
    let mut body: String = others.map(|key| format!("{}: {}\n", key.name, key.value)).collect();
    if !body.is_empty() && !task.body.is_empty() {
        body.push('\n');
    }
    body.push_str(&task.body);
    let value = |key: &str| task.get(key).map(str::to_owned);
    let draft = TaskDraft {
        title: task.title.clone(),
        status: Some("waiting".to_owned()),
        next: value("next"),
        why: value("why"),
        body,
        ..TaskDraft::default()
    };
    FoundTask { draft, due: value("due"), from: path.to_owned() }
}
