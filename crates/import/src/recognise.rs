//! Recognises the kind of a source by its files. Exports are identified by content, because people and browsers rename files.

use std::io::Read as _;

use super::{
    ImportError, ImportKind,
    encoding::decode_lossy,
    found::SkippedItem,
    source::{ImportSource, SourceEntry},
};

/// How many bytes of a file are read to identify it.
const PEEK_BYTES: u64 = 1 << 20;
/// How many are read if there are many files.
const PEEK_BYTES_OF_MANY: u64 = 64 << 10;
/// The number of files that counts as many.
const MANY: usize = 200;
/// Browser pages, which also contain the conversations.
const PAGES: &[&str] = &[".html", ".htm"];
/// The plain names of export files without conversations.
const NO_CONVERSATIONS: [&str; 11] = [
    "user",
    "users",
    "projects",
    "memories",
    "message_feedback",
    "model_comparisons",
    "shared_conversations",
    "user_settings",
    "export_manifest",
    "manifest",
    "login_history",
];

/// Returns the kind of a source.
///
/// # Errors
/// The kind is unknown, or the source can't be read.
pub(super) fn detect_kind(source: &ImportSource) -> Result<ImportKind, ImportError> {
    let mut unreadable = None;
    for entry in source.entries().iter().filter(|entry| is_conversations(entry) && entry.path.split('/').count() <= 2) {
        match peek_file(source, entry, PEEK_BYTES) {
            Ok(Some(file)) => return Ok(file.kind()),
            Ok(None) => {}
            Err(error) => unreadable = Some(error),
        }
    }
    let has = |names: &[&str]| names.iter().any(|name| source.find(name).is_some());
    let has_stem =
        |stem: &str| source.entries().iter().any(|entry| entry.has_ending(&[".json"]) && plain_stem(entry) == stem);
    if (has_stem("projects") || has_stem("memories")) && has_stem("users") {
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
    if source.entries().iter().any(|entry| entry.has_ending(super::notes::ENDINGS)) {
        return Ok(ImportKind::Notes);
    }
    let max_bytes = peek_bytes(source);
    let candidates = source.entries().iter().filter(|entry| may_be_conversations(entry, source));
    if let Some(file) = candidates.into_iter().find_map(|entry| peek_file(source, entry, max_bytes).ok().flatten()) {
        return Ok(file.kind());
    }
    if let Some(error) = unreadable {
        return Err(error);
    }
    Err(ImportError::Refused(format!(
        "I don't recognise this. I can import a folder of Markdown notes, ChatGPT's and Claude's exports (zip, or unpacked), and \
         two other assistants' memories. To say which it is, use `--as KIND`.{}",
        describe_skipped(source.left_out())
    )))
}

/// Lists the first reasons for skipped files, which may explain why the kind is unknown.
fn describe_skipped(left_out: &[SkippedItem]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for SkippedItem { what, why, .. } in left_out {
        if reasons.len() < 3 && !reasons.iter().any(|reason| reason.starts_with(why)) {
            reasons.push(format!(
                "{why}: {}",
                reveille_base::words::truncate_text(&reveille_base::words::one_line(what), 60)
            ));
        }
    }
    if reasons.is_empty() { String::new() } else { format!(" Left out: {}.", reasons.join("; ")) }
}

/// The conversation files of an export; a large export has several.
#[derive(Debug, Default)]
pub(super) struct ExportFiles<'a> {
    /// The files of the export being read.
    pub(super) own: Vec<&'a SourceEntry>,
    /// The files of another assistant's export.
    pub(super) others: Vec<&'a SourceEntry>,
    /// Claude's project files, recognised by content.
    pub(super) projects: Vec<&'a SourceEntry>,
}

impl<'a> ExportFiles<'a> {
    /// Finds the files of an export, by content or else by name. If there are none, every candidate JSON file is taken, because the person
    /// named the kind.
    pub(super) fn find(source: &'a ImportSource, kind: ImportKind) -> Self {
        let mut files = Self::default();
        let max_bytes = peek_bytes(source);
        let (mut unknown, mut pages) = (Vec::new(), Vec::new());
        for entry in source.entries().iter().filter(|entry| may_be_conversations(entry, source)) {
            match peek_file(source, entry, max_bytes).ok().flatten() {
                Some(PeekedFile::Conversations(recognised)) if recognised != kind => files.others.push(entry),
                // A browser page only repeats all conversations.
                Some(PeekedFile::Conversations(_)) if entry.has_ending(PAGES) => pages.push(entry),
                Some(PeekedFile::Conversations(_)) => files.own.push(entry),
                Some(PeekedFile::Project) => files.projects.push(entry),
                None if is_conversations(entry) => files.own.push(entry),
                None => unknown.push(entry),
            }
        }
        if files.own.is_empty() {
            files.own = pages;
        }
        if files.own.is_empty() && files.projects.is_empty() {
            files.own = unknown;
        }
        files
    }
}

fn peek_bytes(source: &ImportSource) -> u64 {
    if source.entries().len() > MANY { PEEK_BYTES_OF_MANY } else { PEEK_BYTES }
}

/// Returns whether a file may contain conversations: JSON whose name doesn't say otherwise, or the only file.
fn may_be_conversations(entry: &SourceEntry, source: &ImportSource) -> bool {
    let is_json = entry.has_ending(&[".json", ".jsonl", ".ndjson", ".txt"]) || entry.has_ending(PAGES);
    let is_only = source.entries().len() == 1;
    let in_projects = entry.path.split('/').rev().skip(1).any(|folder| folder == "projects");
    (is_json || is_only) && !in_projects && !NO_CONVERSATIONS.contains(&plain_stem(entry).as_str())
}

/// Returns whether a file has the usual name of exported conversations.
fn is_conversations(entry: &SourceEntry) -> bool {
    plain_stem(entry) == "conversations" && entry.has_ending(&[".json"])
}

/// Returns a file's lower-case name without its ending, and without a number added by a browser or a split export.
pub(super) fn plain_stem(entry: &SourceEntry) -> String {
    let name = entry.file_name().to_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let number = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '(' | ')' | '-' | '_' | '.');
    stem.trim_end_matches(number).to_owned()
}

/// The kind of an export file, judged by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeekedFile {
    Conversations(ImportKind),
    Project,
}

impl PeekedFile {
    /// Returns the kind of export.
    fn kind(self) -> ImportKind {
        match self {
            Self::Conversations(kind) => kind,
            Self::Project => ImportKind::Claude,
        }
    }
}

/// Identifies a file by its beginning.
fn peek_file(source: &ImportSource, entry: &SourceEntry, max_bytes: u64) -> Result<Option<PeekedFile>, ImportError> {
    let mut begin = Vec::new();
    let read = source.with_reader(entry, u64::MAX, |reader| reader.take(max_bytes).read_to_end(&mut begin))?;
    if let (Err(error), true) = (read, begin.is_empty()) {
        return Err(ImportError::unreadable(&entry.path, error));
    }
    let begin = decode_lossy(&begin);
    let has = |name: &str| begin.contains(name);
    if has("\"chat_messages\"") {
        return Ok(Some(PeekedFile::Conversations(ImportKind::Claude)));
    }
    if has("\"prompt_template\"") && has("\"docs\"") {
        return Ok(Some(PeekedFile::Project));
    }
    // Other programs' files also have a field `mapping`.
    let is_tree = has("\"message\"") || has("\"current_node\"") || has("\"conversation_id\"") || has("\"parent\"");
    let is_chatgpt = has("\"mapping\"") && (is_tree || is_conversations(entry));
    Ok(is_chatgpt.then_some(PeekedFile::Conversations(ImportKind::Chatgpt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_added_by_browsers_and_exports_are_no_part_of_a_name() {
        for (name, stem) in [
            ("conversations.json", "conversations"),
            ("conversations (1).json", "conversations"),
            ("conversations-000.json", "conversations"),
            ("a/Conversations_2.JSON", "conversations"),
            ("shared_conversations.json", "shared_conversations"),
            ("export", "export"),
        ] {
            assert_eq!(
                plain_stem(&SourceEntry { path: name.to_owned(), bytes: 0, at: 0, within: None }),
                stem,
                "{name}"
            );
        }
    }
}
