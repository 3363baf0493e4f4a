//! A working wake: reads the situation, takes the lock, runs cycles from start to commit, and ends.

pub(crate) mod ask;
pub(crate) mod begin;
pub(crate) mod by_rule;
pub(crate) mod finish;
pub(crate) mod once;
pub mod outside;
pub(crate) mod record;
pub(crate) mod step;
pub(crate) mod wake;
