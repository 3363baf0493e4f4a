//! Escaped and shortened texts within elements.

use reveille_base::words;

/// The maximum length of a shown name, in characters.
const MAX_ATTRIBUTE_CHARS: usize = 100;

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Escapes a short quoted value on one line, because an element's own text begins after the line's end.
pub(crate) fn escape_attribute(value: &str) -> String {
    escape(&clip(&words::one_line(value), MAX_ATTRIBUTE_CHARS))
}

/// Shortens a text and marks the cut.
pub(crate) fn clip(text: &str, max_chars: usize) -> String {
    words::cut_text(text, max_chars, "… (cut)")
}
