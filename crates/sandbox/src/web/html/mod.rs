//! HTML as text. html5ever parses as browsers do; the tree and the conversion to text are our own code.
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
