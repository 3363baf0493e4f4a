//! The decision about an interrupted cycle: resume, end or give up.

use reveille_config::OFFLINE_MODEL;
use reveille_store::{CycleRow, Entry};

/// The name in place of a model's for a cycle that an MCP client makes, in its row and its commit.
pub const OUTSIDE: &str = "mcp";

/// The number of interruptions by a crash, kill or time-out after which a cycle is given up.
pub const MAX_TRIES: u32 = 3;

/// The decision about an interrupted cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uptake {
    /// The commit exists: only the cycle's end must be recorded.
    Conclude,
    /// A rule has done the work without a model: commit it and end the cycle.
    Publish,
    /// Resume from the journal.
    GoOn,
    /// The cycle can't be resumed: its unanswered messages are due again.
    GiveUp(GivingUp),
}

/// The reason for giving up a cycle. Each text is for people, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivingUp {
    /// The journal is empty, so nothing has happened: the messages are due again, and no notice is sent.
    Unheard,
    /// A person took the messages out of the queue, so no notice is sent either.
    Dropped,
    /// The cycle can't be resumed, but its messages aren't the cause: a new cycle starts with them.
    Blameless {
        /// The reason.
        why: String,
        /// The time of that new cycle, in words.
        when: &'static str,
    },
    /// The cycle failed on its messages, which counts against them.
    Failed(String),
    /// The messages are too long for the model, so another attempt is useless.
    TooLong(String),
}

impl GivingUp {
    pub(crate) fn without_blame(why: impl Into<String>) -> Self {
        Self::Blameless { why: why.into(), when: "soon" }
    }

    pub(crate) fn cut_off(times: u32) -> Self {
        Self::Failed(format!("it was cut off {times} times"))
    }

    /// Returns `true` if the failure counts against the messages.
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::TooLong(_))
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Unheard => "it was cut off before it began",
            Self::Dropped => "its messages were removed from the queue",
            Self::Blameless { why, .. } | Self::Failed(why) | Self::TooLong(why) => why,
        }
    }
}

/// How a cycle was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff {
    /// Its commit was made.
    pub is_committed: bool,
    /// Its wake was killed.
    pub has_crashed: bool,
}

/// Decides about an interrupted cycle. `model` is the name of the model that would resume it. Pure.
pub fn decide_resumption(row: &CycleRow, journal: &[Entry], model: &str, cut: CutOff) -> Uptake {
    let CutOff { is_committed, has_crashed } = cut;
    let first_model = row.cycle.model.as_str();
    let cuts = row.tries + u32::from(has_crashed);
    // fault: cycle-taken-up-again
    if is_committed {
        Uptake::Conclude
    } else if journal.is_empty() {
        // Nothing has started: the messages are due again.
        Uptake::GiveUp(GivingUp::Unheard)
    // fault: rule-done-given-up
    } else if row.cycle.is_by_rule() {
        Uptake::Publish
    } else if first_model != model && first_model != OUTSIDE && [first_model, model].contains(&OFFLINE_MODEL) {
        // A model can't continue what the fallback grammar began, nor the reverse. Between models the journal is enough to continue.
        Uptake::GiveUp(GivingUp::without_blame(format!(
            "it was begun with {first_model}, which is no longer my AI model"
        )))
    // fault: cycle-given-up-first
    // fault: cycle-taken-up-once
    } else if cuts >= MAX_TRIES {
        // The count is stored before this decision. If giving up fails, the next wake therefore gives up again instead of resuming.
        Uptake::GiveUp(GivingUp::cut_off(cuts))
    } else {
        Uptake::GoOn
    }
}
