//! Writes text with spans, line breaks and indentation in the right places.
//!
//! Line breaks are asked for and written only when text follows, and a span begins with its first text: so no span holds
//! the white space around it, and none is empty.

use super::styled::{Span, Style, Styled};

/// One level of a list's indentation.
const INDENT: &str = "   ";
/// Deeper levels aren't indented further, so that text grows with its source and no faster.
const INDENT_LEVELS_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Writer {
    text: String,
    spans: Vec<Span>,
    open: Vec<Open>,
    /// Line breaks to be written before the next text.
    breaks: usize,
    /// Right after a list's marker: what follows stays on its line.
    after_marker: bool,
    depth: usize,
}

/// A span that isn't closed yet.
enum Open {
    /// Waits for its first text.
    Waiting(Style),
    /// Begun, by its place among the spans.
    Begun(usize),
    /// Left out, because what it stands in excludes it.
    LeftOut,
}

impl Writer {
    pub(super) fn open(&mut self, style: Style) {
        let excluded = self.open.iter().any(|open| match open {
            Open::Waiting(outer) => outer.excludes(&style),
            Open::Begun(index) => self.spans.get(*index).is_some_and(|outer| outer.style.excludes(&style)),
            Open::LeftOut => false,
        });
        self.open.push(if excluded { Open::LeftOut } else { Open::Waiting(style) });
    }

    /// Closes what was opened last.
    pub(super) fn close(&mut self) {
        if let Some(Open::Begun(index)) = self.open.pop()
            && let Some(span) = self.spans.get_mut(index)
        {
            span.range.end = self.text.len();
        }
    }

    /// At least so many line breaks before the next text, unless it follows a marker.
    pub(super) fn need_breaks(&mut self, breaks: usize) {
        if !self.after_marker {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// A line break that the author wrote.
    pub(super) fn line_break(&mut self) {
        self.after_marker = false;
        self.breaks = self.breaks.max(1);
    }

    /// How many lists the next line is in.
    pub(super) fn set_depth(&mut self, depth: usize) {
        self.depth = depth.min(INDENT_LEVELS_MAX);
    }

    /// What stands before a list's item.
    pub(super) fn marker(&mut self, marker: &str) {
        self.text(marker);
        self.after_marker = true;
    }

    /// An item is over, even an empty one.
    pub(super) fn end_item(&mut self) {
        self.after_marker = false;
        self.need_breaks(1);
    }

    /// Text without line breaks. Control characters, which Telegram doesn't take, are left out.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin(self.depth);
        self.text.extend(text.chars().filter(|c| !c.is_control() || *c == '\t'));
    }

    /// A block of lines as they are, not indented, beginning on a line of its own.
    pub(super) fn verbatim(&mut self, style: Style, lines: &str) {
        self.line_break();
        self.open(style);
        self.begin(0);
        self.text.extend(lines.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')));
        self.close();
    }

    /// Writes the breaks that are due and begins the spans that wait.
    fn begin(&mut self, depth: usize) {
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
