//! A look at the store and the repository: what there is, without changing anything.

pub(crate) mod initiative;
pub(crate) mod jobs;
pub mod observe;
pub(crate) mod own_work;
mod reflecting;
pub(crate) mod retention;
pub(crate) mod undoable;
pub mod waiting;
