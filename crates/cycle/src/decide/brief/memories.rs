//! The memory's documents in an opening, each within its limit. Pure.
//!
//! Small documents that concern every wake appear whole: the context, the active tasks, the working memory. Facts, backlog and log appear
//! as far as there is room, or as search results (`recalled`). A cut is marked, with the tool that shows the rest.

use reveille_base::{
    types::ChatRef,
    words::{format_count, truncate_text},
};
use reveille_memory as memory;
use reveille_memory::{
    DocKind, episodic, others, sections::Document, templates::without_explanation, unsettled::find_conflicts,
};
use reveille_tools::Documents;

use crate::decide::{brief::text::escape, tokens::TokenRate};

/// The extent to which an opening shows the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryExtent {
    /// All that fits.
    Whole,
    /// Less, because search results are shown too.
    BesideHits,
}

impl MemoryExtent {
    /// The extent beside these search results, if any.
    pub(crate) fn beside_hits<T>(recalled: Option<&[T]>) -> Self {
        if recalled.is_some() { Self::BesideHits } else { Self::Whole }
    }
}

/// Documents that most wakes leave unchanged. They come first, so that the next wake's prompt begins the same way.
const LASTING: [&str; 3] = [memory::CONTEXT, memory::BACKLOG, memory::SEMANTIC_MEMORY];
/// Documents that a wake changes.
const CURRENT: [&str; 3] = [memory::ACTIVE, memory::WORKING_MEMORY, memory::EPISODIC_MEMORY];
/// Documents that concern every wake.
const WHOLE: [&str; 3] = [memory::CONTEXT, memory::ACTIVE, memory::WORKING_MEMORY];
/// The maximum size of each of them, in bytes, because a person may have made them huge.
pub(super) const MAX_DOCUMENT_BYTES: usize = 16 * 1024;
/// The maximum size of each other document if search results are shown too, in tokens. Longer facts are replaced by search results alone.
const MAX_OTHER_DOCUMENT_TOKENS: u64 = 3_000;
/// The number of log lines shown.
const LOG_LINES: usize = 40;
/// The number of log lines shown if search results are shown too.
const LOG_LINES_WITH_RESULTS: usize = 12;
/// The maximum length of the list of fact topics, in characters.
const TOPICS_CHARS_MAX: usize = 1_000;
/// The hint for reading the rest of a document.
const CUT: &str = "look_up shows the rest";

/// Returns `true` if an opening always shows this document.
pub(super) fn is_whole(path: &str) -> bool {
    WHOLE.contains(&path)
}

/// Renders the lasting and the changing documents.
pub(super) fn render_memories(
    documents: &Documents,
    reader: Option<ChatRef>,
    rate: &TokenRate,
    extent: MemoryExtent,
) -> [String; 2] {
    [LASTING, CURRENT].map(|paths| render_memory(&paths, documents, reader, rate, extent))
}

fn render_memory(
    paths: &[&str],
    documents: &Documents,
    reader: Option<ChatRef>,
    rate: &TokenRate,
    extent: MemoryExtent,
) -> String {
    let mut text = String::from("<memory>");
    for &path in paths {
        let Some(content) = documents.get(path) else {
            text.push_str(&format!("\n<file path=\"{path}\" missing=\"true\"/>"));
            continue;
        };
        let content = without_explanation(path, &content);
        let (content, withheld) = others::remove_untrusted(path, &content, reader);
        let Shown { text: shown, cut } = fit_document(path, &content, rate, extent);
        let cut = cut.map(|cut| format!(" cut=\"{}\"", escape(&cut))).unwrap_or_default();
        let withheld =
            render_withheld(path, withheld) + if find_conflicts(&content).is_empty() { "" } else { UNSETTLED };
        text.push_str(&format!("\n<file path=\"{path}\"{cut}{withheld}>\n{}\n</file>", escape(shown.trim_end())));
    }
    text.push_str("\n</memory>");
    text
}

/// The shown part of a document, and the note on the rest.
struct Shown {
    text: String,
    cut: Option<String>,
}

fn fit_document(path: &str, content: &str, rate: &TokenRate, extent: MemoryExtent) -> Shown {
    let is_cut_short = extent == MemoryExtent::BesideHits;
    let room = if is_cut_short && !is_whole(path) {
        rate.count_fitting_bytes(MAX_OTHER_DOCUMENT_TOKENS)
    } else {
        MAX_DOCUMENT_BYTES
    };
    let text = match path {
        memory::EPISODIC_MEMORY => {
            episodic::take_recent_lines(content, if is_cut_short { LOG_LINES_WITH_RESULTS } else { LOG_LINES })
        }
        memory::SEMANTIC_MEMORY if is_cut_short && content.len() > room => return shorten_to_topics(content),
        _ => take_first_lines(content, room),
    };
    let cut = (text.len() < content.len()).then(|| CUT.to_owned());
    Shown { text, cut }
}

/// Replaces the facts by their topics, for lack of room.
fn shorten_to_topics(content: &str) -> Shown {
    let document = Document::split(content);
    let facts = format_count(document.parts.iter().map(|part| part.items.len()).sum(), "fact");
    let topics: Vec<&str> = document.sections().map(|section| section.title.as_str()).collect();
    let text = match topics.as_slice() {
        [] => String::new(),
        topics => truncate_text(&format!("Topics: {}", topics.join("; ")), TOPICS_CHARS_MAX),
    };
    Shown { text, cut: Some(format!("{facts}: those that fit stand in recalled; look_up shows the others")) }
}

/// The attribute that explains the marks on unsettled lines.
pub(super) const UNSETTLED: &str = " unsettled=\"the lines marked so with one number contradict each other, or contradict what the person wrote: take none of them as true, and say so where it matters\"";

/// Renders the attribute that counts the withheld entries of a document.
fn render_withheld(path: &str, count: usize) -> String {
    let withheld = match DocKind::from_path(path) {
        DocKind::Log => "entries of other chats, or of wakes that had, or may have, read untrusted text",
        DocKind::Tasks => "tasks of other chats, or that nobody has confirmed",
        _ => "facts of other chats, or that nobody has confirmed",
    };
    if count == 0 { String::new() } else { format!(" withheld=\"{withheld}: {count}; look_up shows them\"") }
}

/// Returns the first whole lines of a text within a limit.
pub(super) fn take_first_lines(text: &str, max_bytes: usize) -> String {
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
