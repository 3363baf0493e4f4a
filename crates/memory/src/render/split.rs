//! Cuts a long text into parts: preferably between paragraphs, then lines, then words.
//!
//! Cuts are made in the visible text after rendering. Lengths are UTF-16 code units, as Telegram counts.

use std::ops::Range;

use super::styled::{Style, Styled};

/// The maximum HTML size of one part, in bytes. Only masses of long links reach it: 4,096 escaped characters stay far below.
pub(super) const HTML_BYTES_MAX: usize = 32 * 1024;

/// The maximum number of formatted ranges per part. Telegram ignores those after a hundred; the marks and a file's note need some of them.
pub(super) const ENTITIES_MAX: usize = 96;

/// The maximum bytes of link addresses per part: Telegram refuses messages from about 9,500 on.
pub(super) const ADDRESS_BYTES_MAX: usize = 9_000;

/// Returns the length of `text` for Telegram.
pub(super) fn count_units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns whether a reader would see nothing. Telegram refuses such a message as empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// Returns whether a character is invisible by itself.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}')
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Cuts `styled` into parts, each at most `units_max` long and [`HTML_BYTES_MAX`] as HTML, with an amount of formatting accepted by
/// Telegram. Only white space and invisible parts are dropped.
pub(super) fn cut_parts(styled: &Styled, units_max: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(part) = next_part(styled, start, units_max) {
        start = part.end;
        let trimmed = trim_part(styled, part);
        if !is_blank(styled.visible_text(&trimmed)) {
            parts.push(trimmed);
        }
    }
    parts
}

/// Returns the part that begins at `start`, with white space at its ends. `None` at the end of the text.
fn next_part(styled: &Styled, start: usize, units_max: usize) -> Option<Range<usize>> {
    let mut units_max = units_max;
    loop {
        let part = start..find_cut(styled, start, units_max)?;
        // Halving terminates: a single character has few tags around it and at most one bounded link.
        if units_max < 4 || is_light(styled, &part) {
            return Some(part);
        }
        units_max /= 2;
    }
}

fn is_light(styled: &Styled, part: &Range<usize>) -> bool {
    let entities = styled.count_entities(part);
    let bare = super::addresses::count_bare(styled, part);
    entities.count + bare <= ENTITIES_MAX
        && entities.address_bytes <= ADDRESS_BYTES_MAX
        && styled.render_html(part).len() <= HTML_BYTES_MAX
}

/// Trims leading line breaks and trailing white space. Leading blanks stay, because they may indent code.
fn trim_part(styled: &Styled, part: Range<usize>) -> Range<usize> {
    let text = styled.visible_text(&part);
    let before = text.len() - text.trim_start_matches('\n').len();
    let start = part.start + before;
    let len = styled.visible_text(&(start..part.end)).trim_end().len();
    start..start + len
}

/// Returns the end of the part that begins at `start`, including the white space at the cut.
fn find_cut(styled: &Styled, start: usize, units_max: usize) -> Option<usize> {
    let rest = styled.text.get(start..).filter(|rest| !rest.is_empty())?;
    let mut best = Cuts::default();
    let mut seen_units = 0;
    let mut lead = true;
    let mut previous = ' ';
    for (at, c) in rest.char_indices() {
        // Leading line breaks are trimmed later and don't count.
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

/// The last possible cut of each kind, as a byte offset after its white space.
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
        } else if previous == '\n' && !is_in_code_block(styled, start + at) {
            self.paragraph = Some(end);
        } else {
            self.line = Some(end);
        }
    }

    fn choose(&self, hard: usize) -> usize {
        self.paragraph.or(self.line).or(self.word).unwrap_or(hard)
    }
}

/// Returns whether the byte at `at` is inside a code block, whose blank lines separate nothing. Code blocks contain no other spans, which
/// makes the last span that begins before `at` the only candidate.
fn is_in_code_block(styled: &Styled, at: usize) -> bool {
    let begun = styled.spans.partition_point(|span| span.range.start <= at);
    let last = begun.checked_sub(1).and_then(|last| styled.spans.get(last));
    last.is_some_and(|span| matches!(span.style, Style::Pre { .. }) && span.range.contains(&at))
}
