//! Classifies the lines of a document: headings, list items, code and front matter.
//!
//! The blocks come from the memory's Markdown reader. Front matter isn't Markdown and is parsed here.

use std::{borrow::Cow, ops::Range};

use reveille_memory::markdown::{BlockKind, MarkdownBlock, read_blocks};

use super::chunk::{COMMENT, COMMENT_END};

/// The replacement for a comment mark that never closes, to keep the parser from hiding the text after it. Equal in length.
const NO_COMMENT: &str = "(!--";
const _: () = assert!(NO_COMMENT.len() == COMMENT.len());
/// The maximum length of an underlined heading, in bytes. An underline below a longer line is a rule.
const MAX_UNDERLINED_BYTES: usize = 100;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Any other line.
    Text,
    /// A heading with hash marks.
    Heading,
    /// The text of an underlined heading, with its level.
    Underlined(usize),
    /// The first line of a list item.
    Item,
    /// A line in a fence.
    Code,
    /// A line of only marks: a fence, an underline, the bounds of front matter, and its comments.
    Mark,
    /// A key of the front matter, or a line below one.
    Key,
}

/// A line with its kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkedLine<'a> {
    /// The line number as counted by [`str::lines`], from 1.
    pub(super) number: usize,
    /// The text without its ending.
    pub(super) text: &'a str,
    pub(super) kind: LineKind,
}

/// Classifies the lines of a document, which end in a line feed, a carriage return or both. In conversations (`has_comments` is false)
/// comment marks are text.
pub(super) fn read_lines(text: &str, has_comments: bool) -> Vec<MarkedLine<'_>> {
    let mut lines = Lines::from_text(text);
    let front = lines.mark_front_matter(text);
    // An unclosed comment hides nothing.
    let last_end = if has_comments { text.rfind(COMMENT_END).unwrap_or(0) } else { 0 };
    let (closed, open) = text.split_at(last_end);
    let parsed = match open.contains(COMMENT) {
        true => Cow::Owned(format!("{closed}{}", open.replace(COMMENT, NO_COMMENT))),
        false => Cow::Borrowed(text),
    };
    for MarkdownBlock { kind, range, depth, .. } in read_blocks(&parsed, front) {
        let first = range.start..range.start;
        match kind {
            BlockKind::Heading(_) if depth == 0 => lines.mark_lines(&first, LineKind::Heading),
            BlockKind::Underlined(level) if depth == 0 => lines.mark_underlined_heading(text, &range, level.into()),
            BlockKind::Item => lines.mark_lines(&first, LineKind::Item),
            BlockKind::Fence { code } => {
                lines.mark_lines(&range, LineKind::Mark);
                if !code.is_empty() {
                    lines.mark_lines(&code, LineKind::Code);
                }
            }
            _ => {}
        }
    }
    lines.to_marked_lines(text)
}

/// Lines as byte ranges without their endings.
struct Lines {
    ranges: Vec<Range<usize>>,
    kinds: Vec<LineKind>,
}

impl Lines {
    fn from_text(text: &str) -> Self {
        let (mut ranges, mut at) = (Vec::new(), 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
            ranges.push(at..at + end);
            let ending = rest.get(end..).unwrap_or_default();
            at += end + if ending.starts_with("\r\n") { 2 } else { ending.len().min(1) };
        }
        Self { kinds: vec![LineKind::Text; ranges.len()], ranges }
    }

    /// Returns the index of the line that contains a byte.
    fn line_index(&self, byte: usize) -> usize {
        self.ranges.partition_point(|range| range.start <= byte).saturating_sub(1)
    }

    fn mark_lines(&mut self, bytes: &Range<usize>, kind: LineKind) {
        let (first, last) =
            (self.line_index(bytes.start), self.line_index(bytes.end.saturating_sub(1).max(bytes.start)));
        for line_kind in self.kinds.get_mut(first..=last).into_iter().flatten() {
            *line_kind = kind;
        }
    }

    fn line<'a>(&self, text: &'a str, at: usize) -> Option<&'a str> {
        text.get(self.ranges.get(at)?.clone())
    }

    fn mark_underlined_heading(&mut self, text: &str, bytes: &Range<usize>, level: usize) {
        let first = self.line_index(bytes.start);
        let Some(line) = self.line(text, first) else { return };
        let underline = self.line(text, first + 1).unwrap_or_default().trim();
        let is_underline = underline.starts_with(['=', '-']) && underline.trim_matches(['=', '-']).is_empty();
        let is_rule = underline.starts_with('-') && line.trim_end().ends_with(['.', '!', '?', ':', ';', ',']);
        if is_underline && !is_rule && line.len() <= MAX_UNDERLINED_BYTES {
            for (at, kind) in [(first, LineKind::Underlined(level)), (first + 1, LineKind::Mark)] {
                if let Some(place) = self.kinds.get_mut(at) {
                    *place = kind;
                }
            }
        }
    }

    /// Marks the lines of front matter at the very start. Returns the start of the text after it, or after byte order marks if there is
    /// none.
    fn mark_front_matter(&mut self, text: &str) -> usize {
        let start = text.len() - text.trim_start_matches('\u{feff}').len();
        let first = text.get(start..).and_then(|text| text.split(['\n', '\r']).next()).unwrap_or_default();
        let is_toml = match first.trim_end() {
            "---" => false,
            "+++" => true,
            _ => return start,
        };
        let is_end = |line: &str| if is_toml { line == "+++" } else { matches!(line, "---" | "...") };
        let inside = || (1..self.ranges.len()).map_while(|at| Some((at, self.line(text, at)?.trim_end())));
        let Some((end, _)) = inside().find(|(_, line)| is_end(line)) else { return start };
        let lines: Vec<&str> = inside().take(end - 1).map(|(_, line)| line).collect();
        let is_front = if is_toml { is_toml_table(&lines) } else { is_yaml(&lines) };
        if !is_front {
            return start;
        }
        for (at, kind) in self.kinds.iter_mut().enumerate().take(end + 1) {
            let is_key =
                (1..end).contains(&at) && lines.get(at - 1).is_some_and(|line| !line.trim_start().starts_with('#'));
            *kind = if is_key { LineKind::Key } else { LineKind::Mark };
        }
        self.ranges.get(end + 1).map_or(text.len(), |range| range.start)
    }

    fn to_marked_lines<'a>(&self, text: &'a str) -> Vec<MarkedLine<'a>> {
        let (mut number, mut counted_to) = (1, 0);
        let mut marked = Vec::with_capacity(self.ranges.len());
        for (range, kind) in self.ranges.iter().zip(&self.kinds) {
            number += text.get(counted_to..range.start).unwrap_or_default().matches('\n').count();
            counted_to = range.start;
            marked.push(MarkedLine { number, text: text.get(range.clone()).unwrap_or_default(), kind: *kind });
        }
        marked
    }
}

/// Returns whether lines between two `+++` are TOML.
fn is_toml_table(lines: &[&str]) -> bool {
    let is_key =
        |line: &&str| line.split_once('=').is_some_and(|(key, _)| !key.trim().is_empty()) || line.starts_with('[');
    lines.iter().all(|line| line.is_empty()) || lines.iter().any(is_key)
}

/// Returns whether lines between two rules are YAML rather than Markdown. A `## ` line after a blank one is taken for a Markdown heading,
/// every other `#` line for a YAML comment.
fn is_yaml(lines: &[&str]) -> bool {
    let is_key = |line: &str| {
        let (key, _) = line.split_once(':').unwrap_or_default();
        !key.is_empty() && !key.starts_with(['#', '*', '>']) && key.split_whitespace().count() <= 3
    };
    let may_be_yaml = |line: &str| {
        line.is_empty()
            || line.starts_with(['#', ' ', '\t', '-', '[', ']', '{', '}', '"', '\'', '%', '&'])
            || is_key(line)
    };
    let sections = lines.windows(2).filter(|pair| matches!(pair, ["", heading] if heading.starts_with("## ")));
    let has_text = lines.iter().any(|line| !line.is_empty());
    lines.iter().all(|line| may_be_yaml(line))
        && sections.count() == 0
        && (!has_text || lines.iter().any(|line| is_key(line)))
}
