//! What a source is, by the files that it holds. Exports are told by what stands in them: people and browsers rename files.

use std::io::Read as _;

use super::{
    ImportError, ImportKind,
    encoding::decode_lossy,
    found::ImportLeftOut,
    source::{ImportSource, SourceEntry},
};

/// How much of a file is looked at to tell whose it is, in bytes.
const PEEK_BYTES: u64 = 1 << 20;
/// How much of one among many.
const PEEK_BYTES_OF_MANY: u64 = 64 << 10;
/// How many files are many.
const MANY: usize = 200;
/// Pages for browsers, which hold the conversations as well.
const PAGES: &[&str] = &[".html", ".htm"];
/// Files of exports that are no conversations, by their plain names.
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

/// Tells the kind.
///
/// # Errors
/// It is none that is known.
pub(super) fn kind_of(source: &ImportSource) -> Result<ImportKind, ImportError> {
    let mut unreadable = None;
    for entry in source.entries().iter().filter(|entry| is_conversations(entry) && entry.path.split('/').count() <= 2) {
        match peek(source, entry, PEEK_BYTES) {
            Ok(Some(file)) => return Ok(file.kind()),
            Ok(None) => {}
            Err(error) => unreadable = Some(error),
        }
    }
    let has = |names: &[&str]| names.iter().any(|name| source.find(name).is_some());
    let has_stem =
        |stem: &str| source.entries().iter().any(|entry| entry.ends_in(&[".json"]) && plain_stem(entry) == stem);
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
    if source.entries().iter().any(|entry| entry.ends_in(super::notes::ENDINGS)) {
        return Ok(ImportKind::Notes);
    }
    let most = peek_bytes(source);
    let told = source.entries().iter().filter(|entry| may_be_conversations(entry, source));
    if let Some(file) = told.into_iter().find_map(|entry| peek(source, entry, most).ok().flatten()) {
        return Ok(file.kind());
    }
    if let Some(error) = unreadable {
        return Err(error);
    }
    Err(ImportError::Refused(format!(
        "I don't recognise what this is. I know: a folder of Markdown notes, ChatGPT's and Claude's exports (zip, or unpacked), and \
         two assistants' memories. `--as KIND` decides.{}",
        name_left_out(source.left_out())
    )))
}

/// Names the first reasons for what a source's list left out: they may be why nothing was recognised.
fn name_left_out(left_out: &[ImportLeftOut]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for ImportLeftOut { what, why, .. } in left_out {
        if reasons.len() < 3 && !reasons.iter().any(|reason| reason.starts_with(why)) {
            reasons
                .push(format!("{why}: {}", reveille_base::words::shortened(&reveille_base::words::one_line(what), 60)));
        }
    }
    if reasons.is_empty() { String::new() } else { format!(" Left out: {}.", reasons.join("; ")) }
}

/// The files of conversations in an export; a large one has several.
#[derive(Debug, Default)]
pub(super) struct ExportFiles<'a> {
    /// Those of the export that is read.
    pub(super) own: Vec<&'a SourceEntry>,
    /// Those of another assistant.
    pub(super) others: Vec<&'a SourceEntry>,
    /// Projects of Claude's, by what stands in them.
    pub(super) projects: Vec<&'a SourceEntry>,
}

impl<'a> ExportFiles<'a> {
    /// Finds those of a kind by what stands in them, or by their names where that tells nothing. Where there are none, each file of JSON
    /// that may be one is taken: the person has said what it is.
    pub(super) fn find(source: &'a ImportSource, kind: ImportKind) -> Self {
        let mut files = Self::default();
        let most = peek_bytes(source);
        let (mut unknown, mut pages) = (Vec::new(), Vec::new());
        for entry in source.entries().iter().filter(|entry| may_be_conversations(entry, source)) {
            match peek(source, entry, most).ok().flatten() {
                Some(PeekedFile::Conversations(told)) if told != kind => files.others.push(entry),
                // A page for browsers holds them all once more.
                Some(PeekedFile::Conversations(_)) if entry.ends_in(PAGES) => pages.push(entry),
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

/// Whether a file may hold conversations: JSON that is nothing else by its name, or the only file.
fn may_be_conversations(entry: &SourceEntry, source: &ImportSource) -> bool {
    let is_json = entry.ends_in(&[".json", ".jsonl", ".ndjson", ".txt"]) || entry.ends_in(PAGES);
    let is_only = source.entries().len() == 1;
    let in_projects = entry.path.split('/').rev().skip(1).any(|folder| folder == "projects");
    (is_json || is_only) && !in_projects && !NO_CONVERSATIONS.contains(&plain_stem(entry).as_str())
}

/// Whether a file is called as exports call their conversations.
fn is_conversations(entry: &SourceEntry) -> bool {
    plain_stem(entry) == "conversations" && entry.ends_in(&[".json"])
}

/// A file's name in small letters without its ending, and without the number that a browser or an export of several files adds.
pub(super) fn plain_stem(entry: &SourceEntry) -> String {
    let name = entry.file_name().to_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let number = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '(' | ')' | '-' | '_' | '.');
    stem.trim_end_matches(number).to_owned()
}

/// What a file of an export is by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeekedFile {
    Conversations(ImportKind),
    Project,
}

impl PeekedFile {
    /// Of which export it is.
    fn kind(self) -> ImportKind {
        match self {
            Self::Conversations(kind) => kind,
            Self::Project => ImportKind::Claude,
        }
    }
}

/// Looks at a file's beginning.
fn peek(source: &ImportSource, entry: &SourceEntry, most: u64) -> Result<Option<PeekedFile>, ImportError> {
    let mut begin = Vec::new();
    let read = source.with_reader(entry, u64::MAX, |reader| reader.take(most).read_to_end(&mut begin))?;
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
    // Other programs' files have mappings too.
    let is_tree = has("\"message\"") || has("\"current_node\"") || has("\"conversation_id\"") || has("\"parent\"");
    let is_chatgpt = has("\"mapping\"") && (is_tree || is_conversations(entry));
    Ok(is_chatgpt.then_some(PeekedFile::Conversations(ImportKind::Chatgpt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_browsers_and_exports_are_no_part_of_a_name() {
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
