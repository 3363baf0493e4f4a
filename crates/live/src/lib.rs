//! The preview of what a wake is writing: the model's words, each call and each result, while they happen.
//!
//! A preview counts for nothing. The wake appends events to one private file of the workspace ([`LiveFeed`]); the terminal, the page and
//! the bot read them there ([`LiveReader`]). Nothing waits for the file, nothing depends on it, and it is removed when the cycle ends. The
//! answer itself is delivered through the store as if there were no preview, so a kill in between loses and doubles nothing.
//!
//! Text reaches the file only once it can't be the beginning of a secret.

mod feed;
mod reader;

use serde::{Deserialize, Serialize};

use reveille_base::types::ChatRef;

pub use self::{
    feed::{LiveFeed, remove_stale},
    reader::{HeldPreview, LiveReader, Preview, PreviewStep},
};

/// A cycle that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedCycle {
    /// The cycle.
    pub cycle_id: String,
    /// The chat that it works for.
    pub chat: ChatRef,
    /// The forum topic.
    pub thread_id: Option<i64>,
}

/// An event of a watched cycle. Texts have no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum LiveEvent {
    /// The cycle begins, or goes on.
    Begin(WatchedCycle),
    /// The cycle has read untrusted text: from here on links are shown as text.
    Taint,
    /// The model begins a turn. What it said before stays or was narration.
    Turn,
    /// More of what the model says between calls.
    Narration {
        /// The text to append.
        text: String,
    },
    /// More of its answer.
    Answer {
        /// The text to append.
        text: String,
    },
    /// The turn is discarded, and its text disappears.
    Withdraw,
    /// A message has joined the conversation.
    Joined {
        /// Its beginning, on one line.
        text: String,
    },
    /// A call begins.
    Call {
        /// The call's id.
        id: String,
        /// What it does, on one line.
        what: String,
    },
    /// A call has ended.
    Result {
        /// The call's id.
        id: String,
        /// True if it failed or was refused.
        is_error: bool,
    },
}
