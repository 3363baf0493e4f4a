//! The lossless splitter under every document: a preamble and `## ` sections, as byte ranges that tile the text.
//!
//! Only headings with hash marks cut; an underlined one is text (a person's `---` under a paragraph is more often a rule) and is
//! reported.

use std::ops::Range;

use super::{
    Problem,
    markdown::{BlockKind, MarkdownBlock, hash_heading, range_at, read_blocks},
    text::{ends_line, eol, is_blank, line_end, line_start, lines, slice, splice, split_comment},
    view,
};

/// A text and its parts, in order and without gaps: the first is the preamble, which may be empty.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The parts, whose ranges joined are the text.
    pub parts: Vec<Part>,
    line_starts: Vec<usize>,
    underlined: Vec<usize>,
    headings: Vec<Range<usize>>,
    fences: Vec<Range<usize>>,
    comments: Vec<Range<usize>>,
}

/// The preamble, or a level 1 or 2 heading with all that follows it up to the next one.
#[derive(Debug, Clone)]
pub struct Part {
    /// The heading's level: 0 for the preamble, 1 or 2 otherwise. Only level 2 is a section.
    pub level: u8,
    /// The heading as written, without its marks; empty for the preamble.
    pub title: String,
    /// The line of the heading, counted from 1.
    pub line: usize,
    /// The part's bytes, heading included.
    pub range: Range<usize>,
    /// Where the heading's line ends and the body begins.
    pub body_start: usize,
    /// The bullet items that stand directly in the part, as whole lines without the blank ones at their end.
    pub items: Vec<Range<usize>>,
}

impl<'a> Document<'a> {
    /// Splits a text. Linear in its length.
    pub fn split(text: &'a str) -> Self {
        let mut line_starts = Vec::new();
        let mut at = 0;
        for line in lines(text) {
            line_starts.push(at);
            at += line.len();
        }
        let (level, title, range) = (0, String::new(), 0..text.len());
        let preamble = Part { level, title, line: 1, range, body_start: 0, items: Vec::new() };
        let mut document = Self {
            text,
            parts: vec![preamble],
            line_starts,
            underlined: Vec::new(),
            headings: Vec::new(),
            fences: Vec::new(),
            comments: Vec::new(),
        };
        for MarkdownBlock { kind, range, depth, .. } in read_blocks(text, front_matter_length(text)) {
            match kind {
                BlockKind::Heading(level) if depth == 0 => document.heading(level, range.start),
                BlockKind::Underlined(2) if depth == 0 => document.underlined.push(document.line_of(range.start)),
                BlockKind::Item if depth == 1 => document.item(&range),
                BlockKind::Fence { .. } => document.fences.push(range),
                BlockKind::Html => document.comment(&range),
                _ => {}
            }
        }
        document
    }

    /// Notes a comment that is a block of its own. One that is never closed is damage, and hides nothing.
    fn comment(&mut self, block: &Range<usize>) {
        let text = slice(self.text, block.clone());
        if let (true, Some(end)) = (text.trim_start().starts_with("<!--"), text.find("-->")) {
            self.comments.push(self.line_start(block.start)..block.start + end + "-->".len());
        }
    }

    /// Whether all of a line, given by its bytes, stands in a comment: explanations for the one who edits the file.
    pub(super) fn is_comment(&self, line: &Range<usize>) -> bool {
        let end = line.start + slice(self.text, line.clone()).trim_end().len();
        self.comments.iter().any(|comment| comment.start <= line.start && end <= comment.end)
    }

    /// Whether a line, given by its bytes, is a heading with hash marks, of any level. A byte order mark may stand before it.
    pub(super) fn is_heading(&self, line: &Range<usize>) -> bool {
        range_at(&self.headings, line.end.saturating_sub(1)).is_some()
    }

    /// Whether a line, given by its bytes, is one of a code block between fences.
    pub(super) fn is_fenced(&self, line: &Range<usize>) -> bool {
        range_at(&self.fences, line.end.saturating_sub(1)).is_some()
    }

    /// Whether a code fence opens in a part.
    pub(super) fn has_fence(&self, part: &Part) -> bool {
        self.fences.iter().any(|fence| part.range.contains(&fence.start))
    }

    /// Whether the text holds words besides its bullet items, headings and comments.
    pub fn holds_more_than_items(&self) -> bool {
        let items: Vec<Range<usize>> = self.parts.iter().flat_map(|part| part.items.iter().cloned()).collect();
        let mut at = 0;
        lines(self.text).any(|line| {
            let range = at..at + line.len();
            at = range.end;
            let is_read = range_at(&items, range.start).is_some() || self.is_heading(&range) || self.is_comment(&range);
            line.chars().any(char::is_alphanumeric) && !is_read
        })
    }

    fn heading(&mut self, level: u8, at: usize) {
        let (start, end) = (self.line_start(at), line_end(self.text, at));
        let Some(title) = hash_title(slice(self.text, start..end), level) else { return };
        self.headings.push(start..end);
        let line = self.line_of(start);
        let Some(previous) = self.parts.last_mut() else { return };
        if level > 2 || start < previous.body_start || (start == previous.range.start && previous.level > 0) {
            return;
        }
        previous.range.end = start;
        let range = start..self.text.len();
        self.parts.push(Part { level, title, line, range, body_start: end, items: Vec::new() });
    }

    fn item(&mut self, range: &Range<usize>) {
        let start = self.line_start(range.start);
        let raw = slice(self.text, start..range.end);
        let content = raw.trim_end_matches([' ', '\t', '\n', '\r']);
        if !content.trim_start_matches([' ', '\t']).starts_with(['-', '*', '+']) {
            return;
        }
        let end = line_end(self.text, start + content.len());
        let Some(part) = self.parts.last_mut() else { return };
        let previous_end = part.items.last().map_or(part.body_start, |previous| previous.end);
        if start >= previous_end {
            part.items.push(start..end);
        }
    }

    /// Where the line of a byte begins; a byte order mark is no part of the first line.
    fn line_start(&self, at: usize) -> usize {
        line_start(self.text, at).max(mark_length(self.text))
    }

    /// The `## ` sections.
    pub fn sections(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.parts.iter().filter(|part| part.level == 2)
    }

    /// The bytes of a range of this text.
    pub fn slice(&self, range: &Range<usize>) -> &'a str {
        slice(self.text, range.clone())
    }

    /// The line, counted from 1, that holds a byte.
    pub fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).max(1)
    }

    /// What is damaged whatever the document's kind: sections without a title, underlined headings, a block that is
    /// never closed and so hides what follows.
    pub fn problems(&self) -> Vec<Problem> {
        let untitled = self.sections().filter(|part| part.title.is_empty());
        let mut problems: Vec<Problem> =
            untitled.map(|part| Problem::new(part.line, "this heading has no title")).collect();
        problems.extend(self.underlined.iter().map(|line| {
            Problem::new(*line, "an underlined heading is read as plain text; write it as `## Title` to open a section")
        }));
        if let Some(last) = self.parts.last()
            && let Some((at, what)) = never_closed(self.slice(&last.range))
        {
            let line = self.line_of(last.range.start + at);
            problems
                .push(Problem::new(line, format!("{what} is opened here and never closed; all below it is hidden")));
        }
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// Where a block can be added to a part: after its last line that isn't blank.
    pub fn content_end(&self, part: &Part) -> usize {
        let content = self.slice(&part.range).trim_end_matches([' ', '\t', '\n', '\r']);
        if content.is_empty() {
            return part.range.start;
        }
        line_end(self.text, part.range.start + content.len())
    }

    /// The text with a whole block of lines put in at `at`, a position in `part` where a line begins or the text
    /// ends. If what stands before it would swallow the block (a fence or comment that is never closed), it is closed
    /// first: [`Document::problems`] has reported it.
    pub fn insert(&self, part: &Part, at: usize, block: &str, spacing: Spacing) -> String {
        let before = slice(self.text, part.range.start..at);
        let mut with = bridge(before, eol(self.text), spacing);
        with.push_str(block);
        let next_line = lines(slice(self.text, at..self.text.len())).next();
        if spacing == Spacing::BlankLine && next_line.is_some_and(|line| !is_blank(line)) {
            with.push_str(eol(self.text));
        }
        self.splice(at..at, &with)
    }

    /// The text with one range replaced, and everything after it still read as it was: where an indented heading or
    /// text would slip into a list item that now stands before it, an empty comment is put between.
    pub fn splice(&self, range: Range<usize>, with: &str) -> String {
        let new = splice(self.text, range.clone(), with);
        let end = range.start + with.len();
        let followers = |document: &Document<'_>, from| {
            document.parts.iter().filter(|part| part.level > 0 && part.range.start >= from).count()
        };
        let after = slice(&new, end..new.len());
        let next = lines(after).find(|line| !is_blank(line)).unwrap_or_default();
        let slips = (range.is_empty() && next.starts_with([' ', '\t']))
            || followers(&Document::split(&new), end) < followers(self, range.end);
        if slips { splice(&new, end..end, &format!("<!-- -->{}", eol(self.text))) } else { new }
    }

    /// The text with a block added at its end, after a blank line.
    pub fn append(&self, block: &str) -> String {
        self.parts
            .last()
            .map_or_else(|| block.to_owned(), |last| self.insert(last, self.text.len(), block, Spacing::BlankLine))
    }
}

/// What stands between an inserted block and its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Nothing but the line ending: for an item of a list.
    Tight,
    /// A blank line: for a section or a paragraph.
    BlankLine,
}

/// The title of a heading line with `level` hash marks, without the mark that shows its section to all; nothing if the line isn't one.
pub(super) fn hash_title(line: &str, level: u8) -> Option<String> {
    let (_, title) = hash_heading(line).filter(|(found, _)| *found == level)?;
    let title = match split_comment(line) {
        (line, Some(comment)) if view::is_for_all(comment) => hash_heading(line)?.1,
        _ => title,
    };
    Some(title.to_owned())
}

/// The length of the byte order mark at the very start of a text, if it has one; of all of them, if programs have put theirs before
/// that of others.
fn mark_length(text: &str) -> usize {
    text.len() - text.trim_start_matches('\u{feff}').len()
}

/// The length of a byte order mark and a `---` front matter at the very start. Lines between two rules are front
/// matter only while no section stands among them.
pub fn front_matter_length(text: &str) -> usize {
    let mark = mark_length(text);
    let mut length = mark;
    for (number, line) in lines(slice(text, mark..text.len())).enumerate() {
        length += line.len();
        match line.trim_end() {
            "---" if number == 0 => {}
            _ if number == 0 => return mark,
            "---" | "..." => return length,
            line if hash_heading(line).is_some_and(|(level, _)| level == 2) => return mark,
            _ => {}
        }
    }
    mark
}

/// The marks that end an HTML block which a blank line doesn't end, with the block's name.
const HTML_CLOSERS: [(&str, &str); 5] = [
    (">", "an HTML block"),
    ("-->", "a comment"),
    ("</script>", "an HTML block"),
    ("?>", "an HTML block"),
    ("]]>", "an HTML block"),
];

/// What to write between `before` (one part's bytes) and a block so that the block is read as Markdown of its own: the
/// first of a line ending, blank lines and closing marks after which a heading would be read as one.
pub(super) fn bridge(before: &str, eol: &str, spacing: Spacing) -> String {
    let before = slice(before, mark_length(before)..before.len());
    let lead = if ends_line(before) { "" } else { eol };
    let before = slice(before, front_matter_length(before)..before.len());
    let blank_above = before.is_empty() || (lead.is_empty() && lines(before).last().is_some_and(is_blank));
    let wanted = if spacing == Spacing::BlankLine && !blank_above { eol } else { "" };
    let plain = [format!("{lead}{wanted}"), format!("{lead}{eol}"), format!("{lead}{eol}{eol}")];
    let closing = || closer(before).map(|mark| format!("{lead}{mark}{eol}{wanted}"));
    let found = plain.iter().find(|bridge| opens_section(before, bridge)).cloned();
    found.or_else(closing).unwrap_or_else(|| plain.concat())
}

/// The line that closes what is still open at the end of a part, if anything is.
fn closer(part: &str) -> Option<String> {
    if opens_section(part, "\n\n") {
        return None;
    }
    let fence = open_fence(part).map(|(_, fence)| fence);
    let marks = fence.as_deref().into_iter().chain(HTML_CLOSERS.iter().map(|(mark, _)| *mark));
    marks.into_iter().find(|mark| opens_section(part, &format!("\n{mark}\n\n"))).map(str::to_owned)
}

/// The block that is still open at the end of a part: where it begins and what it is.
fn never_closed(part: &str) -> Option<(usize, &'static str)> {
    let skipped = front_matter_length(part);
    let part = slice(part, skipped..part.len());
    let closer = closer(part)?;
    if let Some((at, fence)) = open_fence(part)
        && fence == closer
    {
        return Some((skipped + at, "a code block"));
    }
    let name = HTML_CLOSERS.iter().find(|(mark, _)| *mark == closer).map_or("a block", |(_, name)| *name);
    let is_open = |block: &MarkdownBlock| block.kind == BlockKind::Html && block.depth == 0;
    let start = read_blocks(part, 0).into_iter().rfind(is_open).map_or(0, |block| block.range.start);
    Some((skipped + start, name))
}

/// Where the last fenced code block of a part begins, and its fence.
fn open_fence(part: &str) -> Option<(usize, String)> {
    let is_fence = |block: &MarkdownBlock| matches!(block.kind, BlockKind::Fence { .. });
    let at = read_blocks(part, 0).into_iter().rfind(is_fence)?.range.start;
    let rest = slice(part, at..part.len()).trim_start_matches(' ');
    let mark = rest.chars().next()?;
    Some((at, rest.chars().take_while(|c| *c == mark).collect()))
}

/// Whether a heading written after `before` and `bridge` would be read as one.
fn opens_section(before: &str, bridge: &str) -> bool {
    let probe = format!("{before}{bridge}## x");
    let at = before.len() + bridge.len();
    let last = read_blocks(&probe, 0).pop();
    last.is_some_and(|last| last.kind == BlockKind::Heading(2) && last.depth == 0 && last.range.start == at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    fn outline(text: &str) -> String {
        let document = Document::split(text);
        let part = |part: &Part| format!("{}|{}|{}|{} items", part.line, part.level, part.title, part.items.len());
        document.parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn only_real_headings_cut() {
        let text = "# Top\n\n## One ##\n- a\n- b\n  - c\n\n```\n## no\n```\n1. x\n## C#\nUnder\n---\n### deep\n- d\n";
        insta::assert_snapshot!(outline(text), @r"
        1|0||0 items
        1|1|Top|0 items
        3|2|One|2 items
        12|2|C#|1 items
        ");
        assert_eq!(outline(""), "1|0||0 items");
        assert_eq!(outline("\u{feff}## A"), "1|0||0 items\n1|2|A|0 items");
        let twice_marked = Document::split("\u{feff}\u{feff}```\n").append("## B\n");
        assert_eq!(outline(&twice_marked), "1|0||0 items\n4|2|B|0 items");
    }

    #[test]
    fn words_outside_of_items_headings_and_comments_are_more() {
        for text in ["", "# A\n\n### B\n- c\n  d\n\n<!-- e\n f -->\n---\n", "\u{feff}# A\n* b\n"] {
            assert!(!Document::split(text).holds_more_than_items(), "{text}");
        }
        for text in ["- a\n\nb\n", "```\n- a\n```\n", "A\n===\n", "1. a\n", "> - a\n", "#a\n", "<!-- a\n- b\n"] {
            assert!(Document::split(text).holds_more_than_items(), "{text}");
        }
    }

    #[test]
    fn front_matter_ends_or_is_none() {
        assert_eq!(outline("---\nname: x\n# y\n---\n## A\n"), "1|0||0 items\n5|2|A|0 items");
        assert_eq!(outline("---\n## A\n---\n"), "1|0||0 items\n2|2|A|0 items");
    }

    #[test]
    fn what_is_open_is_closed_before_a_block() {
        for (open, closer) in [
            ("```\nx", "```"),
            ("~~~~ rust\nx\n", "~~~~"),
            ("<!-- x\n", "-->"),
            ("<?php\n", "?>"),
            ("<script>\n", "</script>"),
            ("<![CDATA[\n", "]]>"),
            ("<!DOCTYPE\n", ">"),
        ] {
            let text = Document::split(open).append("## A\n");
            assert_eq!(text, format!("{}\n{closer}\n\n## A\n", open.trim_end()));
            assert_eq!(Document::split(&text).sections().count(), 1, "{text}");
            assert_eq!(Document::split(open).problems().len(), 1);
            assert_eq!(Document::split(&text).problems(), []);
        }
        assert_eq!(Document::split("<div>\n").append("## A\n"), "<div>\n\n## A\n");
    }

    #[test]
    fn ten_thousand_lines_are_split() {
        let text: String = (0..2_500).map(|n| format!("## Task {n}\n- status: active\n- next: x\n\n")).collect();
        let document = Document::split(&text);
        assert_eq!(document.sections().count(), 2_500);
        assert_eq!(document.parts.last().map(|part| part.line), Some(9_997));
        assert_eq!(Document::split(&"- [*`<".repeat(10_000)).parts.len(), 1);
    }

    proptest! {
        #[test]
        fn parts_tile_the_text(text in document()) {
            let document = Document::split(&text);
            let joined: String = document.parts.iter().map(|part| document.slice(&part.range)).collect();
            prop_assert_eq!(&joined, &text);
            for part in &document.parts {
                prop_assert!(part.range.start <= part.body_start && part.body_start <= part.range.end);
                let mut at = part.body_start;
                for item in &part.items {
                    prop_assert!(at <= item.start && item.start < item.end && item.end <= part.range.end);
                    at = item.end;
                }
            }
            let _problems = document.problems();
        }

        #[test]
        fn an_appended_section_is_always_read(text in document()) {
            let before = Document::split(&text);
            let new = before.append("## Zulu\n- x\n");
            prop_assert!(new.starts_with(&text));
            let after = Document::split(&new);
            prop_assert_eq!(after.parts.len(), before.parts.len() + 1, "{:?}", new);
            let last = after.parts.last().unwrap();
            prop_assert_eq!((last.title.as_str(), last.items.len()), ("Zulu", 1));
        }
    }
}
