//! Reads the state of the store and the repository, changing nothing.

pub mod observe;
pub(crate) mod retention;
pub(crate) mod undoable;
pub mod waiting;
