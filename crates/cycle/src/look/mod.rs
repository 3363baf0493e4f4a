//! Reads the state of the store and the repository, changing nothing.

pub(crate) mod initiative;
pub(crate) mod jobs;
pub mod observe;
pub(crate) mod own_work;
mod reflecting;
pub(crate) mod retention;
pub(crate) mod undoable;
pub mod waiting;
