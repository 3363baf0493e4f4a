//! Reads a folder of Markdown notes, plain or packed. Each note stays as it came, under its own name.

use reveille_memory::imported::break_comments;

use super::{
    ImportError,
    found::{DocumentKind, FoundContent, FoundDocument},
    names::{self, TakenNames},
    source::{INNER, ImportSource, SourceEntry},
};

/// The endings of notes.
pub(super) const ENDINGS: &[&str] = &[".md", ".markdown"];
/// The maximum size of a note, in bytes.
pub(super) const MAX_NOTE_BYTES: u64 = 1 << 20;

const NO_NOTE: &str = "no Markdown";
const NO_NAME: &str = "its name has no letters or digits";
const EMPTY: &str = "empty";
const BACKUP: &str = "Logseq's backup copies";
/// Names of files with instructions for an assistant.
const ORDERS: [&str; 9] = [
    "claude.md",
    "agents.md",
    "gemini.md",
    "personality.md",
    "system-prompt.md",
    ".cursorrules",
    "soul.md",
    "heartbeat.md",
    "bootstrap.md",
];

pub(super) fn read(source: &ImportSource) -> Result<FoundContent, ImportError> {
    let mut found = FoundContent::default();
    let mut taken = TakenNames::default();
    let outer = source.outer_folder();
    // A single note goes with the others; a folder keeps its name.
    let folder = match (source.entries(), outer) {
        (_, Some(outer)) => names::to_safe_step(outer),
        ([only], None) if only.path == only.file_name() => None,
        (_, None) => names::to_safe_step(source.name()),
    };
    let folder = folder.map_or_else(|| "notes".to_owned(), |name| format!("notes/{name}"));
    for entry in source.entries() {
        if is_backup(&entry.path) {
            found.leave_out(&entry.path, BACKUP);
        } else if entry.has_ending(ENDINGS) {
            let path = outer.and_then(|outer| entry.path.get(outer.len() + 1..)).unwrap_or(&entry.path);
            take_file(source, entry, &folder, path, &mut found, &mut taken);
        } else {
            found.leave_out(&entry.path, if entry.has_ending(&[".zip"]) { INNER } else { NO_NOTE });
        }
    }
    Ok(found)
}

/// Returns whether a file is one of Logseq's backup copies.
fn is_backup(path: &str) -> bool {
    format!("/{path}").contains("/logseq/bak/") || format!("/{path}").contains("/logseq/version-files/")
}

/// Takes a file as a document at a path below a folder.
pub(super) fn take_file(
    source: &ImportSource,
    entry: &SourceEntry,
    folder: &str,
    path: &str,
    found: &mut FoundContent,
    taken: &mut TakenNames,
) {
    match source.read_text(entry, MAX_NOTE_BYTES) {
        Ok(text) => add_document(&text, folder, path, found, taken),
        Err(why) => found.leave_out(&entry.path, why),
    }
}

/// Adds a text as a document.
pub(super) fn add_document(text: &str, folder: &str, path: &str, found: &mut FoundContent, taken: &mut TakenNames) {
    if text.trim().is_empty() {
        return found.leave_out(path, EMPTY);
    }
    let Some(to) = names::to_document_path(folder, path) else { return found.leave_out(path, NO_NAME) };
    let (path, text, kind) = (taken.reserve_path(to), break_comments(text), classify_document(path));
    found.documents.push(FoundDocument { path, text, day: None, kind });
}

/// Returns the kind of a document, by its path.
fn classify_document(path: &str) -> DocumentKind {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let in_skills = lower.split('/').rev().skip(1).any(|folder| folder == "skills");
    match name {
        "skill.md" => DocumentKind::Skill,
        _ if in_skills => DocumentKind::Skill,
        name if ORDERS.contains(&name) => DocumentKind::Orders,
        _ => DocumentKind::Note,
    }
}
