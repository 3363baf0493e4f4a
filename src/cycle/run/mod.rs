//! A wake at work: it looks, takes the lock, runs cycles from their beginning to their commit, and ends.

pub(crate) mod approve;
mod attached;
mod by_rule;
mod deeds;
mod finish;
mod fold;
pub(crate) mod given_up;
mod hand_over;
mod interrupted;
mod live;
pub(crate) mod once;
pub mod outside;
mod prepare;
mod pressed;
mod recall;
mod record;
mod recordings;
mod reflect;
mod remind;
mod resume;
mod step;
mod token_rate;
mod turn;
mod undo;
mod wake;
