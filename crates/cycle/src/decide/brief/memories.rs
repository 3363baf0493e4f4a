//! The memory's documents in an opening, each within its bound. Pure.
//!
//! What is small and concerns every wake comes whole: the context, the active tasks, the working memory. Of facts, backlog and log only
//! as much comes as has room, or else what fits (`recalled`). A cut is named, with what shows the rest.

use reveille_base::{
    types::ChatRef,
    words::{count, shortened},
};
use reveille_memory as memory;
use reveille_memory::{
    DocKind, episodic, others, sections::Document, templates::without_explanation, unsettled::unsettled,
};
use reveille_tools::Documents;

use super::{super::tokens::TokenRate, text::escape};

/// Those that most wakes leave as they are: they come first, so that the next wake's prompt begins as this one's.
const LASTING: [&str; 3] = [memory::CONTEXT, memory::BACKLOG, memory::SEMANTIC_MEMORY];
/// Those that a wake changes.
const CURRENT: [&str; 3] = [memory::ACTIVE, memory::WORKING_MEMORY, memory::EPISODIC_MEMORY];
/// Those that concern every wake.
const WHOLE: [&str; 3] = [memory::CONTEXT, memory::ACTIVE, memory::WORKING_MEMORY];
/// Of each of them, at most so many bytes: a person may have made them huge.
pub(super) const MAX_DOCUMENT_BYTES: usize = 16 * 1024;
/// Of each other document, where what fits is found besides, in tokens. Facts come whole up to that, or by what fits alone.
const OTHERS_TOKENS: u64 = 3_000;
/// Lines of the log that are shown.
const LOG_LINES: usize = 40;
/// Lines of it where what fits is found besides.
const LAST_LOG_LINES: usize = 12;
/// The longest list of the topics that there are facts about, in characters.
const TOPICS_CHARS_MAX: usize = 1_000;
/// How the rest of a document is read.
const CUT: &str = "look_up shows the rest";

/// Whether an opening always shows this.
pub(super) fn is_whole(path: &str) -> bool {
    WHOLE.contains(&path)
}

/// The documents, those that last and those that a wake changes; `recall`: whether what fits is found besides.
pub(super) fn memories(documents: &Documents, reader: Option<ChatRef>, rate: &TokenRate, recall: bool) -> [String; 2] {
    [LASTING, CURRENT].map(|paths| element(&paths, documents, reader, rate, recall))
}

fn element(paths: &[&str], documents: &Documents, reader: Option<ChatRef>, rate: &TokenRate, recall: bool) -> String {
    let mut text = String::from("<memory>");
    for &path in paths {
        let Some(content) = documents.get(path) else {
            text.push_str(&format!("\n<file path=\"{path}\" missing=\"true\"/>"));
            continue;
        };
        let content = without_explanation(path, &content);
        let (content, withheld) = others::without(path, &content, reader);
        let Shown { text: shown, cut } = shown(path, &content, rate, recall);
        let cut = cut.map(|cut| format!(" cut=\"{}\"", escape(&cut))).unwrap_or_default();
        let withheld = withheld_parts(path, withheld) + if unsettled(&content).is_empty() { "" } else { UNSETTLED };
        text.push_str(&format!("\n<file path=\"{path}\"{cut}{withheld}>\n{}\n</file>", escape(shown.trim_end())));
    }
    text.push_str("\n</memory>");
    text
}

/// What is shown of a document, and what is said of the rest.
struct Shown {
    text: String,
    cut: Option<String>,
}

fn shown(path: &str, content: &str, rate: &TokenRate, recall: bool) -> Shown {
    let room = if recall && !is_whole(path) { rate.bytes_in(OTHERS_TOKENS) } else { MAX_DOCUMENT_BYTES };
    let text = match path {
        memory::EPISODIC_MEMORY => episodic::recent(content, if recall { LAST_LOG_LINES } else { LOG_LINES }),
        memory::SEMANTIC_MEMORY if recall && content.len() > room => return by_what_fits(content),
        _ => head(content, room),
    };
    let cut = (text.len() < content.len()).then(|| CUT.to_owned());
    Shown { text, cut }
}

/// Of facts that have no room: what they are about.
fn by_what_fits(content: &str) -> Shown {
    let is_fact = |line: &&str| line.starts_with("- ");
    let facts = count(content.lines().filter(is_fact).count(), "fact");
    let document = Document::split(content);
    let topics: Vec<&str> = document.sections().map(|section| section.title.as_str()).collect();
    let text = match topics.as_slice() {
        [] => String::new(),
        topics => shortened(&format!("Topics: {}", topics.join("; ")), TOPICS_CHARS_MAX),
    };
    Shown { text, cut: Some(format!("{facts}: those that fit stand in recalled; look_up shows the others")) }
}

/// The attribute that says what the marks of what the person hasn't settled mean.
pub(super) const UNSETTLED: &str = " unsettled=\"the lines marked so with one number contradict each other, or contradict what the person wrote: take none of them as true, and say so where it matters\"";

/// The attribute that says how much of a document isn't shown.
fn withheld_parts(path: &str, count: usize) -> String {
    let what = match DocKind::of(path) {
        DocKind::Log => "entries of other chats, or of wakes that had, or may have, read what others wrote",
        DocKind::Tasks => "tasks of other chats, or that nobody has confirmed",
        _ => "facts of other chats, or that nobody has confirmed",
    };
    if count == 0 { String::new() } else { format!(" withheld=\"{what}: {count}; look_up shows them\"") }
}

/// The first whole lines of a text within a bound.
pub(super) fn head(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mut bytes = 0;
    text.split_inclusive('\n')
        .take_while(|line| {
            bytes += line.len();
            bytes <= max_bytes
        })
        .collect()
}
