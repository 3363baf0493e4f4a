//! The lossless splitter under every document: a preamble and `## ` sections, as byte ranges that tile the text.
//!
//! Where a block begins and ends is asked of the Markdown parser, never of a pattern: a heading in a code fence, a
//! quote or a comment is no heading. Only headings with hash marks cut; an underlined one is text (a person's `---`
//! under a paragraph is more often a rule) and is reported.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag};

use super::{
    Problem,
    text::{eol, is_blank, line_end, line_start, lines, slice},
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
        let mut document = Self { text, parts: Vec::new(), line_starts, underlined: Vec::new() };
        document.parts.push(Part {
            level: 0,
            title: String::new(),
            line: 1,
            range: 0..text.len(),
            body_start: 0,
            items: Vec::new(),
        });
        document.read_blocks();
        document
    }

    fn read_blocks(&mut self) {
        let text = self.text;
        let skipped = front_matter_length(text);
        let mut depth = 0_usize;
        for (event, range) in Parser::new(slice(text, skipped..text.len())).into_offset_iter() {
            let range = range.start + skipped..range.end + skipped;
            match event {
                Event::Start(tag) => {
                    match (depth, tag) {
                        (0, Tag::Heading { level, .. }) => self.heading(level, range.start),
                        (1, Tag::Item) => self.item(&range),
                        _ => {}
                    }
                    depth += 1;
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn heading(&mut self, level: HeadingLevel, at: usize) {
        let level = match level {
            HeadingLevel::H1 => 1,
            HeadingLevel::H2 => 2,
            _ => return,
        };
        let start = line_start(self.text, at);
        let end = line_end(self.text, at);
        let line = self.line_of(start);
        let Some(title) = hash_title(slice(self.text, start..end), level) else {
            if level == 2 {
                self.underlined.push(line);
            }
            return;
        };
        let Some(previous) = self.parts.last_mut() else { return };
        if start < previous.body_start || (start == previous.range.start && previous.level > 0) {
            return;
        }
        previous.range.end = start;
        let range = start..self.text.len();
        self.parts.push(Part { level, title, line, range, body_start: end, items: Vec::new() });
    }

    fn item(&mut self, range: &Range<usize>) {
        let start = line_start(self.text, range.start);
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
            problems.push(Problem::new(line, format!("{what} is opened here and never closed; all below it is hidden")));
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
        let mut new = slice(self.text, 0..at).to_owned();
        new.push_str(&bridge(before, eol(self.text), spacing));
        new.push_str(block);
        let after = slice(self.text, at..self.text.len());
        let wants_blank_line = spacing == Spacing::BlankLine && !after.is_empty();
        if wants_blank_line && !lines(after).next().is_some_and(is_blank) {
            new.push_str(eol(self.text));
        }
        new + after
    }

    /// The text with a block added at its end, after a blank line.
    pub fn append(&self, block: &str) -> String {
        self.parts.last().map_or_else(
            || block.to_owned(),
            |last| self.insert(last, self.text.len(), block, Spacing::BlankLine),
        )
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

/// The title of a heading line with `level` hash marks; nothing if the line isn't one.
pub(super) fn hash_title(line: &str, level: u8) -> Option<String> {
    let line = line.trim_start_matches('\u{feff}').trim();
    let rest = line.trim_start_matches('#');
    if line.len() - rest.len() != usize::from(level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let unmarked = title.trim_end_matches('#');
    let closed = unmarked.is_empty() || unmarked.ends_with([' ', '\t']);
    Some(if closed { unmarked.trim_end().to_owned() } else { title.to_owned() })
}

/// The length of a byte order mark and a `---` front matter at the very start. Lines between two rules are front
/// matter only while no section stands among them.
fn front_matter_length(text: &str) -> usize {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut length = mark;
    for (number, line) in lines(slice(text, mark..text.len())).enumerate() {
        length += line.len();
        match line.trim_end() {
            "---" if number == 0 => {}
            _ if number == 0 => return mark,
            "---" | "..." => return length,
            heading if hash_title(heading, 2).is_some() => return mark,
            _ => {}
        }
    }
    mark
}

/// The marks that end an HTML block which a blank line doesn't end, with the block's name.
const HTML_CLOSERS: [(&str, &str); 5] = [
    ("-->", "a comment"),
    ("</script>", "an HTML block"),
    ("?>", "an HTML block"),
    ("]]>", "an HTML block"),
    (">", "an HTML block"),
];

/// What to write between `before` (one part's bytes) and a block so that the block is read as Markdown of its own.
fn bridge(before: &str, eol: &str, spacing: Spacing) -> String {
    let ended = before.is_empty() || before.ends_with(['\n', '\r']);
    let mut bridge = if ended { String::new() } else { eol.to_owned() };
    let blank_above = before.is_empty() || (ended && lines(before).last().is_some_and(is_blank));
    if let Some(closer) = closer(before) {
        bridge.push_str(&closer);
        bridge.push_str(eol);
    }
    if !blank_above && (spacing == Spacing::BlankLine || !opens_section(before, &bridge)) {
        bridge.push_str(eol);
    }
    bridge
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
    let closer = closer(part)?;
    if let Some((at, fence)) = open_fence(part)
        && fence == closer
    {
        return Some((at, "a code block"));
    }
    let name = HTML_CLOSERS.iter().find(|(mark, _)| *mark == closer).map_or("a block", |(_, name)| *name);
    let mut depth = 0_usize;
    let mut start = 0;
    for (event, range) in Parser::new(part).into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) if depth == 0 => (start, depth) = (range.start, 1),
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Some((start, name))
}

/// Where the last fenced code block of a part begins, and its fence.
fn open_fence(part: &str) -> Option<(usize, String)> {
    let fences = Parser::new(part).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some(range.start),
        _ => None,
    });
    let at = fences.last()?;
    let rest = slice(part, at..part.len()).trim_start_matches(' ');
    let mark = rest.chars().next()?;
    Some((at, rest.chars().take_while(|c| *c == mark).collect()))
}

/// Whether a heading written after `before` and `bridge` would be read as one.
fn opens_section(before: &str, bridge: &str) -> bool {
    let probe = format!("{before}{bridge}## x");
    let at = before.len() + bridge.len();
    let mut depth = 0_usize;
    let mut found = false;
    for (event, range) in Parser::new(&probe).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                found = depth == 0 && range.start == at && matches!(tag, Tag::Heading { .. });
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}
