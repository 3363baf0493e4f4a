//! The access rights of a document's parts: the guests who may see them, and the untrusted lines.

use std::collections::BTreeSet;

use reveille_base::types::ChatRef;
use reveille_memory::{
    others,
    view::{self, NOBODY, View},
};

use super::{
    chunk::{self, BETWEEN_HEADINGS, Chunk},
    days::find_day,
};

/// The maximum number of chats distinguished per document. Parts of further chats are visible only to the owner.
const MAX_CHATS: usize = 64;
/// The folder with separate documents for each chat.
const CHATS: &str = "memory/chats/";

/// Ranges of first and last lines, in order.
type LineRanges = Vec<(usize, usize)>;

/// The access rights of a document's lines. `untrusted` lists the untrusted ones.
pub(super) struct LineAccess {
    untrusted: LineRanges,
    views: Vec<ChatView>,
}

/// The part of a document visible to one chat.
struct ChatView {
    chat: ChatRef,
    shown: LineRanges,
    /// The lines that are untrusted from this chat's point of view.
    untrusted: LineRanges,
    /// The visible headings; `None` for all.
    headings: Option<BTreeSet<String>>,
}

/// The access rights of a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChunkReaders {
    /// The guest who may see the chunk.
    pub(super) chat: Option<ChatRef>,
    pub(super) is_for_all: bool,
    /// Whether the chunk is untrusted for the owner.
    pub(super) is_untrusted: bool,
    /// Whether the chunk is untrusted for other readers.
    pub(super) is_untrusted_to_guest: bool,
}

impl LineAccess {
    pub(super) fn for_document(path: &str, text: &str) -> Self {
        let untrusted = others::line_ranges(path, text, None);
        let all = || vec![(1, usize::MAX)];
        if let Some(chat) = path.strip_prefix(CHATS).and_then(|below| below.split('/').next()?.parse().ok()) {
            let own = ChatView { chat, shown: all(), untrusted: Vec::new(), headings: None };
            return Self { untrusted, views: vec![own] };
        }
        // Skills apply in every chat, but only the owner may search them.
        if path.starts_with("skills/") {
            return Self { untrusted, views: Vec::new() };
        }
        let chats = view::find_marked_chats(path, text).into_iter().take(MAX_CHATS);
        let views = chats.map(|chat| {
            let shown = View::for_chat(chat).shown_lines(path, text);
            let lines = text.lines().enumerate().filter(|(at, _)| is_covered(&shown, at + 1, at + 1));
            let headings = Some(lines.filter_map(|(_, line)| chunk::parse_title(line)).collect());
            ChatView { chat, shown, untrusted: others::line_ranges(path, text, Some(chat)), headings }
        });
        Self { untrusted, views: views.filter(|view| !view.shown.is_empty()).collect() }
    }

    /// Returns the access rights of a range of lines.
    pub(super) fn find_readers(&self, first: usize, last: usize) -> ChunkReaders {
        let sees = |view: &&ChatView| is_covered(&view.shown, first, last);
        // What a chat without any rights sees is for all.
        let seen_by = self.views.iter().filter(|view| view.chat == NOBODY).find(sees);
        let seen_by = seen_by.or_else(|| self.views.iter().find(sees));
        let touches = |ranges: &LineRanges| {
            let next = ranges.partition_point(|(_, end)| *end < first);
            ranges.get(next).is_some_and(|(begin, _)| *begin <= last)
        };
        ChunkReaders {
            chat: seen_by.map(|view| view.chat).filter(|chat| *chat != NOBODY),
            is_for_all: seen_by.is_some_and(|view| view.chat == NOBODY),
            is_untrusted: touches(&self.untrusted),
            is_untrusted_to_guest: seen_by.is_some_and(|view| touches(&view.untrusted)),
        }
    }

    /// Removes from a chunk the headings hidden from its guest, and a day taken from such a heading.
    pub(super) fn hide_headings(&self, readers: ChunkReaders, chunk: &mut Chunk) {
        let chat = if readers.is_for_all { Some(NOBODY) } else { readers.chat };
        let Some(view) = chat.and_then(|chat| self.views.iter().find(|view| view.chat == chat)) else { return };
        let Some(shown) = &view.headings else { return };
        let headings = chunk.above.split(BETWEEN_HEADINGS).chain([chunk.heading.as_str()]);
        // The day came from the nearest dated heading.
        let dated = headings.filter(|title| find_day(title).is_some()).last();
        if dated.is_some_and(|title| !shown.contains(title)) {
            chunk.date = None;
        }
        if !shown.contains(&chunk.heading) {
            chunk.heading.clear();
        }
        if !chunk.above.split(BETWEEN_HEADINGS).all(|title| shown.contains(title)) {
            chunk.above.clear();
        }
    }
}

/// Returns whether the ranges cover every line from `first` to `last`.
fn is_covered(ranges: &LineRanges, first: usize, last: usize) -> bool {
    let mut line = first;
    let from = ranges.partition_point(|(_, end)| *end < first);
    for (begin, end) in ranges.iter().skip(from) {
        if *begin > line {
            return false;
        }
        if *end >= last {
            return true;
        }
        line = end + 1;
    }
    false
}
