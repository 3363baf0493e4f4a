//! Whose a part of a document is: what a guest may see of it, and what others may have had a hand in.

use std::collections::BTreeSet;

use reveille_base::types::ChatRef;
use reveille_memory::{
    others,
    view::{self, NOBODY, View},
};

use super::{
    chunk::{self, BETWEEN_HEADINGS, Chunk},
    days::day_in,
};

/// Chats that one document's parts are told apart for at most: of further ones nobody but the owner sees them.
const MAX_CHATS: usize = 64;
/// Where each chat has documents of its own.
const CHATS: &str = "memory/chats/";

/// Lines, by their first and last ones, in order.
type LineRanges = Vec<(usize, usize)>;

/// A document's lines by whose they are.
pub(super) struct LineAccess {
    of_others: LineRanges,
    views: Vec<ChatView>,
}

/// What one chat may see of a document.
struct ChatView {
    chat: ChatRef,
    shown: LineRanges,
    /// What others than that chat may have had a hand in.
    of_others: LineRanges,
    /// The headings that it is shown; none: all.
    headings: Option<BTreeSet<String>>,
}

/// Whose a chunk is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChunkReaders {
    /// The guest who may see it.
    pub(super) chat: Option<ChatRef>,
    pub(super) is_for_all: bool,
    /// Others may have had a hand in it, for the owner.
    pub(super) is_of_others: bool,
    /// The same for who else may see it.
    pub(super) is_of_others_to_guest: bool,
}

impl LineAccess {
    pub(super) fn of(path: &str, text: &str) -> Self {
        let of_others = others::line_ranges(path, text, None);
        let all = || vec![(1, usize::MAX)];
        if let Some(chat) = path.strip_prefix(CHATS).and_then(|below| below.split('/').next()?.parse().ok()) {
            let own = ChatView { chat, shown: all(), of_others: Vec::new(), headings: None };
            return Self { of_others, views: vec![own] };
        }
        // The standing orders' skills hold in each chat, and are the owner's to look through.
        if path.starts_with("skills/") {
            return Self { of_others, views: Vec::new() };
        }
        let chats = view::chats_marked(path, text).into_iter().take(MAX_CHATS);
        let views = chats.map(|chat| {
            let shown = View::of(chat).shown_lines(path, text);
            let lines = text.lines().enumerate().filter(|(at, _)| covers(&shown, at + 1, at + 1));
            let headings = Some(lines.filter_map(|(_, line)| chunk::title(line)).collect());
            ChatView { chat, shown, of_others: others::line_ranges(path, text, Some(chat)), headings }
        });
        Self { of_others, views: views.filter(|view| !view.shown.is_empty()).collect() }
    }

    /// Whose the lines from one to another are.
    pub(super) fn whose(&self, first: usize, last: usize) -> ChunkReaders {
        let sees = |view: &&ChatView| covers(&view.shown, first, last);
        let seen_by = self.views.iter().filter(|view| view.chat == NOBODY).find(sees);
        let seen_by = seen_by.or_else(|| self.views.iter().find(sees));
        let touches = |ranges: &LineRanges| {
            let next = ranges.partition_point(|(_, end)| *end < first);
            ranges.get(next).is_some_and(|(begin, _)| *begin <= last)
        };
        ChunkReaders {
            chat: seen_by.map(|view| view.chat).filter(|chat| *chat != NOBODY),
            is_for_all: seen_by.is_some_and(|view| view.chat == NOBODY),
            is_of_others: touches(&self.of_others),
            is_of_others_to_guest: seen_by.is_some_and(|view| touches(&view.of_others)),
        }
    }

    /// Leaves out of a chunk that a guest may see the headings that the guest isn't shown, and the day of one.
    pub(super) fn hide_headings(&self, readers: ChunkReaders, chunk: &mut Chunk) {
        let chat = if readers.is_for_all { Some(NOBODY) } else { readers.chat };
        let Some(view) = chat.and_then(|chat| self.views.iter().find(|view| view.chat == chat)) else { return };
        let Some(shown) = &view.headings else { return };
        let headings = chunk.above.split(BETWEEN_HEADINGS).chain([chunk.heading.as_str()]);
        // The nearest heading with a day gave it.
        let dated = headings.filter(|title| day_in(title).is_some()).last();
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

/// Whether each line from one to another is within the ranges.
fn covers(ranges: &LineRanges, first: usize, last: usize) -> bool {
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
