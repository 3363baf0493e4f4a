//! Markdown as HTML. Raw HTML is shown as text; pictures are named, never loaded. What others may have written shows links as text.

use maud::{Markup, html};

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// The person, or the assistant from their words alone.
    Own,
    /// Others had a word in it.
    Others,
}

/// A text as HTML.
pub(super) fn markdown(text: &str, _by: WrittenBy) -> Markup {
    html! { pre { (text) } }
}
