//! What is decided: what is due, what a conversation needs next, what the model is told, what is written of a wake. Pure: values in,
//! values out; but for [`budget`], which reads what was spent.

pub mod brief;
pub mod budget;
pub mod feed_news;
pub mod fold;
pub mod gate;
pub mod initiative;
pub(crate) mod interrupt;
pub mod limits;
pub mod lineup;
pub mod machine;
pub(crate) mod merge;
#[cfg(test)]
mod offline_tests;
pub mod orient;
pub(crate) mod recording;
pub(crate) mod similar;
pub mod situation;
pub(crate) mod stale;
pub(crate) mod taint;
pub mod tokens;
pub mod uptake;
pub mod verify;
pub mod watched;
