//! The ground that everything stands on: it knows nothing of messages, memory or models.
//!
//! [`types`] are values that several crates speak of. [`clock`] alone asks the time, [`zone`] alone reads zone files, and [`schedule`]
//! reads and counts times. [`process`] alone starts children, and [`random`] alone makes what nobody guesses. [`redact`] masks secrets,
//! [`approval_text`] makes text safe to show, [`words`] writes times and counts for people. [`mod@file`] writes files that are private
//! or last, [`disk`] looks after the room for them, [`logs`] are files of lines. [`json`] sees what a reader of JSON passes over, [`sse`]
//! reads streams of events, and [`net_guard`] knows which addresses are public.

pub mod approval_text;
pub mod clock;
pub mod disk;
pub mod file;
pub mod json;
pub mod logs;
pub mod net_guard;
pub mod process;
pub mod random;
pub mod redact;
pub mod schedule;
pub mod sse;
pub mod types;
pub mod words;
pub mod zone;
