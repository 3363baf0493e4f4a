//! Decisions: what is due, the next step of a conversation, the model's input, and the record of a wake. Pure functions of values, except
//! for [`budget`], which reads the spending.

pub mod brief;
pub mod budget;
pub mod fold;
pub mod gate;
pub(crate) mod interrupt;
pub mod limits;
pub mod lineup;
pub mod machine;
pub(crate) mod merge;
#[cfg(test)]
mod offline_tests;
pub mod orient;
pub(crate) mod own_work;
pub(crate) mod recording;
pub(crate) mod similar;
pub mod situation;
pub(crate) mod stale;
pub(crate) mod taint;
pub mod tokens;
pub mod uptake;
pub mod verify;
