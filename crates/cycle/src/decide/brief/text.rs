//! Texts within elements: escaped, and within bounds.

use reveille_base::words;

/// Characters of a name that are shown.
const MAX_ATTRIBUTE_CHARS: usize = 100;

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A short value within quotes, on one line: the line's end is where an element's own text begins.
pub(crate) fn attribute(value: &str) -> String {
    escape(&clip(&words::one_line(value), MAX_ATTRIBUTE_CHARS))
}

/// A text within a bound; the cut is said.
pub(crate) fn clip(text: &str, max_chars: usize) -> String {
    words::cut_with(text, max_chars, "… (cut)")
}
