//! The offline mind: what can be answered without a key and without a network.
//!
//! It knows a small [`grammar`] of commands and nothing else. What it doesn't understand for certain it leaves alone: an unclear
//! message is kept for a better mind, a wrong command would be a mistake.

pub mod grammar;
