//! A look at the store and the repository: what there is, without changing anything.

pub(in crate::cycle) mod initiative;
pub(in crate::cycle) mod jobs;
pub mod observe;
pub(in crate::cycle) mod own_work;
mod reflecting;
pub(crate) mod retention;
pub(in crate::cycle) mod undoable;
pub mod waiting;
