//! A working wake: reads the situation, takes the lock, runs cycles from start to commit, and ends.
//!
//! `once` is one call of the program, `wake` its work under the lock. A cycle goes through `begin`, `step`, `ask` (if a person must decide),
//! `record` and `finish`. `by_rule` is the work without a model, `outside` that of an MCP client.

pub(crate) mod ask;
pub(crate) mod begin;
pub(crate) mod by_rule;
pub(crate) mod finish;
pub(crate) mod once;
pub mod outside;
pub(crate) mod record;
pub(crate) mod step;
pub(crate) mod wake;
