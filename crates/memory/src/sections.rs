//! The lossless splitter for every document: a preamble and `## ` sections, as byte ranges that tile the text.
//!
//! Only headings with hash marks cut. An underlined heading counts as text and is reported, because a person's `---` under a paragraph is
//! more often a rule.

use std::ops::Range;

use super::{
    Problem,
    markdown::{BlockKind, MarkdownBlock, find_range, hash_heading, read_blocks},
    text::{detect_line_ending, ends_line, is_blank, line_end, line_start, slice, splice, split_comment, split_lines},
    view,
};

/// A text and its parts, in order and without gaps. The first part is the preamble, which may be empty.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The parts, whose ranges tile the text.
    pub parts: Vec<Part>,
    line_starts: Vec<usize>,
    underlined: Vec<usize>,
    headings: Vec<Range<usize>>,
    fences: Vec<Range<usize>>,
    comments: Vec<Range<usize>>,
}

/// The preamble, or a level 1 or 2 heading with its content up to the next such heading.
#[derive(Debug, Clone)]
pub struct Part {
    /// The heading's level: 0 for the preamble, otherwise 1 or 2. Only level 2 is a section.
    pub level: u8,
    /// The heading as written, without its marks; empty for the preamble.
    pub title: String,
    /// The line of the heading, counted from 1.
    pub line: usize,
    /// The part's bytes, including the heading.
    pub range: Range<usize>,
    /// The end of the heading's line, where the body begins.
    pub body_start: usize,
    /// The bullet items directly in the part, as whole lines without trailing blank ones.
    pub items: Vec<Range<usize>>,
}

impl<'a> Document<'a> {
    /// Splits a text, in linear time.
    pub fn split(text: &'a str) -> Self {
        let mut line_starts = Vec::new();
        let mut at = 0;
        for line in split_lines(text) {
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
                BlockKind::Heading(level) if depth == 0 => document.add_heading(level, range.start),
                BlockKind::Underlined(2) if depth == 0 => document.underlined.push(document.line_number(range.start)),
                BlockKind::Item if depth == 1 => document.add_item(&range),
                BlockKind::Fence { .. } => document.fences.push(range),
                BlockKind::Html => document.note_comment(&range),
                _ => {}
            }
        }
        document
    }

    /// Notes a comment that forms its own block. An unclosed comment is damage and hides nothing.
    fn note_comment(&mut self, block: &Range<usize>) {
        let text = slice(self.text, block.clone());
        if let (true, Some(end)) = (text.trim_start().starts_with("<!--"), text.find("-->")) {
            self.comments.push(self.line_start(block.start)..block.start + end + "-->".len());
        }
    }

    /// Returns whether a line, given by its bytes, lies completely in a comment, which is an explanation for editors of the file.
    pub(super) fn is_comment(&self, line: &Range<usize>) -> bool {
        let end = line.start + slice(self.text, line.clone()).trim_end().len();
        self.comments.iter().any(|comment| comment.start <= line.start && end <= comment.end)
    }

    /// Returns whether a line, given by its bytes, is a heading with hash marks of any level. A byte order mark may precede it.
    pub(super) fn is_heading(&self, line: &Range<usize>) -> bool {
        find_range(&self.headings, line.end.saturating_sub(1)).is_some()
    }

    /// Returns whether a line, given by its bytes, belongs to a fenced code block.
    pub(super) fn is_fenced(&self, line: &Range<usize>) -> bool {
        find_range(&self.fences, line.end.saturating_sub(1)).is_some()
    }

    /// Returns whether a code fence opens in a part.
    pub(super) fn has_fence(&self, part: &Part) -> bool {
        self.fences.iter().any(|fence| part.range.contains(&fence.start))
    }

    /// Returns whether the text has words outside its bullet items, headings and comments.
    pub fn holds_more_than_items(&self) -> bool {
        let items: Vec<Range<usize>> = self.parts.iter().flat_map(|part| part.items.iter().cloned()).collect();
        let mut at = 0;
        split_lines(self.text).any(|line| {
            let range = at..at + line.len();
            at = range.end;
            let is_read =
                find_range(&items, range.start).is_some() || self.is_heading(&range) || self.is_comment(&range);
            line.chars().any(char::is_alphanumeric) && !is_read
        })
    }

    fn add_heading(&mut self, level: u8, at: usize) {
        let (start, end) = (self.line_start(at), line_end(self.text, at));
        let Some(title) = hash_title(slice(self.text, start..end), level) else { return };
        self.headings.push(start..end);
        let line = self.line_number(start);
        let Some(previous) = self.parts.last_mut() else { return };
        if level > 2 || start < previous.body_start || (start == previous.range.start && previous.level > 0) {
            return;
        }
        previous.range.end = start;
        let range = start..self.text.len();
        self.parts.push(Part { level, title, line, range, body_start: end, items: Vec::new() });
    }

    fn add_item(&mut self, range: &Range<usize>) {
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

    /// Returns the start of a byte's line; a byte order mark doesn't belong to the first line.
    fn line_start(&self, at: usize) -> usize {
        line_start(self.text, at).max(mark_length(self.text))
    }

    /// Returns the `## ` sections.
    pub fn sections(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.parts.iter().filter(|part| part.level == 2)
    }

    /// Returns the text of a byte range.
    pub fn slice(&self, range: &Range<usize>) -> &'a str {
        slice(self.text, range.clone())
    }

    /// Returns the line, counted from 1, that contains a byte.
    pub fn line_number(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at).max(1)
    }

    /// Returns the problems independent of the document's kind: sections without a title, underlined headings, and an unclosed block that
    /// hides the text below.
    pub fn find_problems(&self) -> Vec<Problem> {
        let untitled = self.sections().filter(|part| part.title.is_empty());
        let mut problems: Vec<Problem> =
            untitled.map(|part| Problem::new(part.line, "this heading has no title")).collect();
        problems.extend(self.underlined.iter().map(|line| {
            Problem::new(*line, "an underlined heading is read as plain text; write it as `## Title` to open a section")
        }));
        if let Some(last) = self.parts.last()
            && let Some((at, what)) = find_unclosed_block(self.slice(&last.range))
        {
            let line = self.line_number(last.range.start + at);
            problems
                .push(Problem::new(line, format!("{what} is opened here and never closed; all below it is hidden")));
        }
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// Returns the insertion point for a block in a part: after its last non-blank line.
    pub fn content_end(&self, part: &Part) -> usize {
        let content = self.slice(&part.range).trim_end_matches([' ', '\t', '\n', '\r']);
        if content.is_empty() {
            return part.range.start;
        }
        line_end(self.text, part.range.start + content.len())
    }

    /// Inserts a block of lines at `at`, a position in `part` at a line's start or the text's end. An unclosed fence or comment before it
    /// is closed first, because it would swallow the block; [`Document::find_problems`] has reported it.
    pub fn insert(&self, part: &Part, at: usize, block: &str, spacing: Spacing) -> String {
        let before = slice(self.text, part.range.start..at);
        let mut with = build_bridge(before, detect_line_ending(self.text), spacing);
        with.push_str(block);
        let next_line = split_lines(slice(self.text, at..self.text.len())).next();
        if spacing == Spacing::BlankLine && next_line.is_some_and(|line| !is_blank(line)) {
            with.push_str(detect_line_ending(self.text));
        }
        self.splice(at..at, &with)
    }

    /// Replaces one range and keeps the reading of everything after it. If indented text would slip into a list item that now precedes it,
    /// an empty comment is put between.
    pub fn splice(&self, range: Range<usize>, with: &str) -> String {
        let new = splice(self.text, range.clone(), with);
        let end = range.start + with.len();
        let followers = |document: &Document<'_>, from| {
            document.parts.iter().filter(|part| part.level > 0 && part.range.start >= from).count()
        };
        let after = slice(&new, end..new.len());
        let next = split_lines(after).find(|line| !is_blank(line)).unwrap_or_default();
        let slips = (range.is_empty() && next.starts_with([' ', '\t']))
            || followers(&Document::split(&new), end) < followers(self, range.end);
        if slips { splice(&new, end..end, &format!("<!-- -->{}", detect_line_ending(self.text))) } else { new }
    }

    /// Appends a block after a blank line.
    pub fn append(&self, block: &str) -> String {
        self.parts
            .last()
            .map_or_else(|| block.to_owned(), |last| self.insert(last, self.text.len(), block, Spacing::BlankLine))
    }
}

/// The space between an inserted block and its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Only the line ending, for an item of a list.
    Tight,
    /// A blank line, for a section or a paragraph.
    BlankLine,
}

/// Returns the title of a heading line with `level` hash marks, without the mark that shows its section to every chat. `None` for any other
/// line.
pub(super) fn hash_title(line: &str, level: u8) -> Option<String> {
    let (_, title) = hash_heading(line).filter(|(found, _)| *found == level)?;
    let title = match split_comment(line) {
        (line, Some(comment)) if view::is_for_all(comment) => hash_heading(line)?.1,
        _ => title,
    };
    Some(title.to_owned())
}

/// Returns the length of the byte order marks at the start of a text. Programs sometimes put theirs before another's.
fn mark_length(text: &str) -> usize {
    text.len() - text.trim_start_matches('\u{feff}').len()
}

/// Returns the length of a byte order mark and a `---` front matter at the very start. Lines between two rules are front matter only if no
/// section begins among them.
pub fn front_matter_length(text: &str) -> usize {
    let mark = mark_length(text);
    let mut length = mark;
    for (number, line) in split_lines(slice(text, mark..text.len())).enumerate() {
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

/// The marks that end an HTML block unaffected by blank lines, with the block's name.
const HTML_CLOSERS: [(&str, &str); 5] = [
    (">", "an HTML block"),
    ("-->", "a comment"),
    ("</script>", "an HTML block"),
    ("?>", "an HTML block"),
    ("]]>", "an HTML block"),
];

/// Returns the bytes to insert between `before` (one part's bytes) and a block, to make Markdown read the block on its own: the first
/// combination of line ending, blank lines and closing marks after which a heading is recognised.
pub(super) fn build_bridge(before: &str, eol: &str, spacing: Spacing) -> String {
    let before = slice(before, mark_length(before)..before.len());
    let lead = if ends_line(before) { "" } else { eol };
    let before = slice(before, front_matter_length(before)..before.len());
    let blank_above = before.is_empty() || (lead.is_empty() && split_lines(before).last().is_some_and(is_blank));
    let wanted = if spacing == Spacing::BlankLine && !blank_above { eol } else { "" };
    let plain = [format!("{lead}{wanted}"), format!("{lead}{eol}"), format!("{lead}{eol}{eol}")];
    let closing = || find_closing_line(before).map(|mark| format!("{lead}{mark}{eol}{wanted}"));
    let found = plain.iter().find(|bridge| opens_section(before, bridge)).cloned();
    found.or_else(closing).unwrap_or_else(|| plain.concat())
}

/// Returns the line that closes the block still open at the end of a part. `None` if nothing is open.
fn find_closing_line(part: &str) -> Option<String> {
    if opens_section(part, "\n\n") {
        return None;
    }
    let fence = open_fence(part).map(|(_, fence)| fence);
    let marks = fence.as_deref().into_iter().chain(HTML_CLOSERS.iter().map(|(mark, _)| *mark));
    marks.into_iter().find(|mark| opens_section(part, &format!("\n{mark}\n\n"))).map(str::to_owned)
}

/// Returns the start and the name of the block still open at the end of a part.
fn find_unclosed_block(part: &str) -> Option<(usize, &'static str)> {
    let skipped = front_matter_length(part);
    let part = slice(part, skipped..part.len());
    let closer = find_closing_line(part)?;
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

/// Returns the start and the fence of the last fenced code block in a part.
fn open_fence(part: &str) -> Option<(usize, String)> {
    let is_fence = |block: &MarkdownBlock| matches!(block.kind, BlockKind::Fence { .. });
    let at = read_blocks(part, 0).into_iter().rfind(is_fence)?.range.start;
    let rest = slice(part, at..part.len()).trim_start_matches(' ');
    let mark = rest.chars().next()?;
    Some((at, rest.chars().take_while(|c| *c == mark).collect()))
}

/// Returns whether a heading written after `before` and `bridge` would be read as one.
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
            assert_eq!(Document::split(open).find_problems().len(), 1);
            assert_eq!(Document::split(&text).find_problems(), []);
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
            let _problems = document.find_problems();
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
