//! HTML as text. Parsing is html5ever's, which reads what browsers read; the tree and the text are our own.
//!
//! Converters that exist lay tables out, recurse, or have panicked on pages made for it, and the release build aborts on a
//! panic: a page must not be able to end a wake. Here nothing recurses, each piece of work is bounded, and what a browser
//! wouldn't show is left out.

mod dom;
mod text;

pub(super) use self::{
    dom::{Id, PageTree},
    text::readable,
};
