//! Writes text with spans, line breaks and indentation.
//!
//! Requested line breaks are written only when text follows, and a span begins with its first text. No span therefore contains surrounding
//! white space or is empty.

use super::styled::{Span, Style, Styled};

/// The indentation per list level.
const INDENT: &str = "   ";
/// The maximum indented levels. Deeper lists aren't indented further, to keep the output proportional to the source.
const INDENT_LEVELS_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Writer {
    text: String,
    spans: Vec<Span>,
    open: Vec<Open>,
    /// The line breaks due before the next text.
    breaks: usize,
    /// Set right after a list marker, whose text stays on the same line.
    after_marker: bool,
    depth: usize,
}

/// An open span.
enum Open {
    /// Waiting for its first text.
    Waiting(Style),
    /// Started, with its index among the spans.
    Begun(usize),
    /// Dropped, because an outer span excludes it.
    LeftOut,
}

impl Writer {
    pub(super) fn open(&mut self, style: Style) {
        let excluded = self.open.iter().any(|open| match open {
            Open::Waiting(outer) => outer.is_incompatible_with(&style),
            Open::Begun(index) => self.spans.get(*index).is_some_and(|outer| outer.style.is_incompatible_with(&style)),
            Open::LeftOut => false,
        });
        self.open.push(if excluded { Open::LeftOut } else { Open::Waiting(style) });
    }

    /// Closes the span opened last.
    pub(super) fn close(&mut self) {
        if let Some(Open::Begun(index)) = self.open.pop()
            && let Some(span) = self.spans.get_mut(index)
        {
            span.range.end = self.text.len();
        }
    }

    /// Requests at least this many line breaks before the next text, except after a marker.
    pub(super) fn need_breaks(&mut self, breaks: usize) {
        if !self.after_marker {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// Requests a line break written by the author.
    pub(super) fn line_break(&mut self) {
        self.after_marker = false;
        self.breaks = self.breaks.max(1);
    }

    /// Sets the list depth of the next line.
    pub(super) fn set_depth(&mut self, depth: usize) {
        self.depth = depth.min(INDENT_LEVELS_MAX);
    }

    /// Writes the marker of a list item.
    pub(super) fn write_marker(&mut self, marker: &str) {
        self.write_text(marker);
        self.after_marker = true;
    }

    /// Ends an item, even an empty one.
    pub(super) fn end_item(&mut self) {
        self.after_marker = false;
        self.need_breaks(1);
    }

    /// Appends text without line breaks. Drops control characters, which Telegram rejects.
    pub(super) fn write_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.write_pending(self.depth);
        self.text.extend(text.chars().filter(|c| !c.is_control() || *c == '\t'));
    }

    /// Appends a verbatim block of lines, unindented and on a line of its own.
    pub(super) fn write_verbatim(&mut self, style: Style, lines: &str) {
        self.line_break();
        self.open(style);
        self.write_pending(0);
        self.text.extend(lines.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')));
        self.close();
    }

    /// Writes the pending breaks and begins the waiting spans.
    fn write_pending(&mut self, depth: usize) {
        if !self.text.is_empty() && self.breaks > 0 {
            self.text.extend(std::iter::repeat_n('\n', self.breaks));
            self.text.push_str(&INDENT.repeat(depth));
        }
        self.breaks = 0;
        self.after_marker = false;
        let start = self.text.len();
        for open in &mut self.open {
            if let Open::Waiting(style) = open {
                self.spans.push(Span { range: start..start, style: style.clone() });
                *open = Open::Begun(self.spans.len() - 1);
            }
        }
    }

    pub(super) fn finish(mut self) -> Styled {
        while !self.open.is_empty() {
            self.close();
        }
        self.spans.retain(|span| !span.range.is_empty());
        Styled { text: self.text, spans: self.spans }
    }
}
