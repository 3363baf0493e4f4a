//! The ground that every other crate stands on. Nothing here knows of messages, memory or models.
//!
//! [`types`] holds values that several crates share. Only [`clock`] reads the clock, only [`zone`] reads zone files, and [`schedule`]
//! parses and calculates times. Only [`process`] starts children, and only [`random`] makes unguessable values. [`redact`] masks
//! secrets, [`approval_text`] makes text safe to show, and [`words`] writes times and counts for people. [`mod@file`] writes private
//! and durable files, [`disk`] checks the free space for them, and [`logs`] keeps files of lines. [`json`] finds faults that JSON
//! parsers ignore, [`sse`] reads event streams, and [`net_guard`] tells public addresses from private ones.

pub mod approval_text;
pub mod clock;
pub mod disk;
pub mod file;
pub mod growing_json;
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
