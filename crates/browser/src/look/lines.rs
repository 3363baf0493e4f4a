//! The lines of a look, as they are made.

use reveille_base::words;

use super::clean::clean_line;
use crate::references::NodeAddress;

/// Maximum length of a line of text, in characters.
const MAX_TEXT_CHARS: usize = 400;

/// A line of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LookLine {
    pub(crate) depth: usize,
    pub(crate) text: String,
    pub(crate) kind: LookLineKind,
    /// The node where the text of a text line begins.
    pub(crate) node: Option<NodeAddress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookLineKind {
    /// Text alone.
    Text,
    /// A heading.
    Heading,
    /// Something with a reference.
    Control,
    /// A part of the page, which holds the deeper lines after it.
    Part,
}

/// Lines in the making, and text that waits for the end of its block.
#[derive(Default)]
pub(super) struct LineBuffer {
    pub(super) lines: Vec<LookLine>,
    text: String,
    /// The node where that text begins.
    node: Option<NodeAddress>,
}

impl LineBuffer {
    pub(super) fn add_text(&mut self, text: &str, node: Option<NodeAddress>) {
        let text = clean_line(text, usize::MAX);
        if !text.is_empty() {
            if self.text.is_empty() {
                self.node = node;
            } else {
                self.text.push(' ');
            }
            self.text.push_str(&text);
        }
    }

    pub(super) fn flush(&mut self, depth: usize) {
        let text = words::truncate_text(&std::mem::take(&mut self.text), MAX_TEXT_CHARS);
        if !text.is_empty() {
            self.lines.push(LookLine { depth, text, kind: LookLineKind::Text, node: self.node.take() });
        }
    }

    pub(super) fn push(&mut self, depth: usize, kind: LookLineKind, text: String) {
        self.flush(depth);
        self.lines.push(LookLine { depth, text, kind, node: None });
    }

    /// Drops the last line if it is a label that the next control repeats.
    pub(super) fn drop_label(&mut self, depth: usize, name: &str) {
        self.flush(depth);
        let plain = |text: &str| text.trim_end_matches([':', '*', ' ']).to_lowercase();
        let is_label = |line: &LookLine| line.kind == LookLineKind::Text && plain(&line.text) == plain(name);
        self.lines.pop_if(|line| !name.is_empty() && is_label(line));
    }

    /// Adds a part with its lines, or nothing if it holds none.
    pub(super) fn push_part(&mut self, depth: usize, head: String, inner: Vec<LookLine>) {
        if !inner.is_empty() {
            self.push(depth, LookLineKind::Part, head);
            self.lines.extend(inner);
        }
    }
}
