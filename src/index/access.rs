//! ChunkReaders a part of a document is: what a guest may see of it, and what others may have had a hand in.

use crate::{
    memory::{
        others,
        view::{self, NOBODY, View},
    },
    types::ChatRef,
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
    /// The chat, what it may see, and what of that others may have had a hand in.
    views: Vec<(ChatRef, LineRanges, LineRanges)>,
}

/// ChunkReaders a chunk is.
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
            return Self { of_others, views: vec![(chat, all(), Vec::new())] };
        }
        // The standing orders' skills hold in each chat, and are the owner's to look through.
        if path.starts_with("skills/") {
            return Self { of_others, views: Vec::new() };
        }
        let chats = view::chats_marked(path, text).into_iter().take(MAX_CHATS);
        let views = chats.map(|chat| {
            let shown = View::of(chat).shown_lines(path, text);
            (chat, shown, others::line_ranges(path, text, Some(chat)))
        });
        Self { of_others, views: views.filter(|(_, shown, _)| !shown.is_empty()).collect() }
    }

    /// ChunkReaders the lines from one to another are.
    pub(super) fn whose(&self, first: usize, last: usize) -> ChunkReaders {
        let sees = |shown: &LineRanges| has(shown, first) && has(shown, last);
        let seen_by = self.views.iter().find(|(chat, shown, _)| *chat == NOBODY && sees(shown));
        let seen_by = seen_by.or_else(|| self.views.iter().find(|(_, shown, _)| sees(shown)));
        let touches = |ranges: &LineRanges| {
            let next = ranges.partition_point(|(_, end)| *end < first);
            ranges.get(next).is_some_and(|(begin, _)| *begin <= last)
        };
        ChunkReaders {
            chat: seen_by.map(|(chat, ..)| *chat).filter(|chat| *chat != NOBODY),
            is_for_all: seen_by.is_some_and(|(chat, ..)| *chat == NOBODY),
            is_of_others: touches(&self.of_others),
            is_of_others_to_guest: seen_by.is_some_and(|(.., of_others)| touches(of_others)),
        }
    }
}

fn has(ranges: &LineRanges, line: usize) -> bool {
    let next = ranges.partition_point(|(_, end)| *end < line);
    ranges.get(next).is_some_and(|(begin, _)| *begin <= line)
}
