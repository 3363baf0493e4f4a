//! Where to cut a long text into parts: between paragraphs if it can be, then lines, then words.
//!
//! Cuts are made in what a reader sees, after the Markdown is rendered; lengths are what Telegram counts, UTF-16 code units.

use std::ops::Range;

use super::styled::{Style, Styled};

/// The longest HTML of one part, in bytes: far above 4,096 escaped characters, reached only by masses of long links.
pub(super) const HTML_BYTES_MAX: usize = 32 * 1024;

/// The most formatted stretches of one part. Telegram passes over what comes after a hundred; the marks and the note of a file are
/// some of them.
pub(super) const ENTITIES_MAX: usize = 96;

/// The most bytes of addresses behind the links of one part: of about 9,500 on Telegram refuses the message.
pub(super) const ADDRESS_BYTES_MAX: usize = 9_000;

/// How long `text` is for Telegram.
pub(super) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Whether a reader would see nothing: Telegram refuses such a message as empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// Characters that show nothing by themselves.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// The parts of `styled`, in order, each at most `units_max` long and [`HTML_BYTES_MAX`] as HTML, with formatting that Telegram takes. Between them only
/// white space is left out; parts in which nothing could be seen are left out too.
pub(super) fn parts(styled: &Styled, units_max: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(part) = next_part(styled, start, units_max) {
        start = part.end;
        let trimmed = trim(styled, part);
        if !is_blank(styled.visible(&trimmed)) {
            parts.push(trimmed);
        }
    }
    parts
}

/// The part that begins at `start`, white space at its ends included; none when nothing is left.
fn next_part(styled: &Styled, start: usize, units_max: usize) -> Option<Range<usize>> {
    let mut units_max = units_max;
    loop {
        let part = start..cut_after(styled, start, units_max)?;
        // Halving ends: a single character has few tags around it and at most one bounded link.
        if units_max < 4 || is_light(styled, &part) {
            return Some(part);
        }
        units_max /= 2;
    }
}

fn is_light(styled: &Styled, part: &Range<usize>) -> bool {
    let entities = styled.entities(part);
    let bare = super::addresses::count_bare(styled, part);
    entities.count + bare <= ENTITIES_MAX
        && entities.address_bytes <= ADDRESS_BYTES_MAX
        && styled.html(part).len() <= HTML_BYTES_MAX
}

/// Without the line breaks before and the white space after. Blanks at the beginning stay: they are some code's indentation.
fn trim(styled: &Styled, part: Range<usize>) -> Range<usize> {
    let text = styled.visible(&part);
    let before = text.len() - text.trim_start_matches('\n').len();
    let start = part.start + before;
    let len = styled.visible(&(start..part.end)).trim_end().len();
    start..start + len
}

/// The end of the part that begins at `start`, the white space it is cut at included.
fn cut_after(styled: &Styled, start: usize, units_max: usize) -> Option<usize> {
    let rest = styled.text.get(start..).filter(|rest| !rest.is_empty())?;
    let mut best = Cuts::default();
    let mut seen_units = 0;
    let mut lead = true;
    let mut previous = ' ';
    for (at, c) in rest.char_indices() {
        // Line breaks that lead are trimmed, and don't count.
        lead &= c == '\n';
        if !lead {
            seen_units += c.len_utf16();
        }
        if seen_units > units_max {
            if c.is_whitespace() {
                best.consider(styled, start, at, c, previous);
            }
            return Some(start + best.choose(at));
        }
        if c.is_whitespace() && !lead && seen_units >= units_max / 4 {
            best.consider(styled, start, at, c, previous);
        }
        previous = c;
    }
    Some(styled.text.len())
}

/// The last place of each kind where a part could end, as bytes from its start; each is behind its white space.
#[derive(Default)]
struct Cuts {
    paragraph: Option<usize>,
    line: Option<usize>,
    word: Option<usize>,
}

impl Cuts {
    fn consider(&mut self, styled: &Styled, start: usize, at: usize, c: char, previous: char) {
        let end = at + c.len_utf8();
        if c != '\n' {
            self.word = Some(end);
        } else if previous == '\n' && !in_pre(styled, start + at) {
            self.paragraph = Some(end);
        } else {
            self.line = Some(end);
        }
    }

    fn choose(&self, hard: usize) -> usize {
        self.paragraph.or(self.line).or(self.word).unwrap_or(hard)
    }
}

/// Whether the byte at `at` is inside a code block, where blank lines separate nothing. Nothing begins within a code
/// block, so it can only be the last span that begins before.
fn in_pre(styled: &Styled, at: usize) -> bool {
    let begun = styled.spans.partition_point(|span| span.range.start <= at);
    let last = begun.checked_sub(1).and_then(|last| styled.spans.get(last));
    last.is_some_and(|span| matches!(span.style, Style::Pre { .. }) && span.range.contains(&at))
}
