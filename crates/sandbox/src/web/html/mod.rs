//! HTML as text. html5ever parses like browsers; the tree and the text are our own.
//!
//! Existing converters lay out tables, recurse, or panic on hostile pages, and the release build aborts on a panic: a
//! page must not end a wake. This code doesn't recurse, bounds each step, and leaves out everything that a browser
//! wouldn't show.

mod dom;
mod text;

pub(super) use self::{
    dom::{Id, PageTree},
    text::extract_readable,
};
