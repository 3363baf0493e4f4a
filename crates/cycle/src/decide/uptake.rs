//! The decision about an interrupted cycle: resume, end or give up.

use reveille_config::OFFLINE_MODEL;
use reveille_store::{CycleRow, Entry};

/// The model name of a cycle made by an MCP client, in its row and its commit.
pub const OUTSIDE: &str = "mcp";

/// The number of interruptions by a crash, kill or time-out after which a cycle is given up.
pub const MAX_TRIES: u32 = 3;

/// The decision about an interrupted cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uptake {
    /// The commit exists: only the cycle's end must be recorded.
    Conclude,
    /// A rule has completed the work: commit and end the cycle.
    Publish,
    /// Resume from the journal.
    GoOn,
    /// The cycle can't be resumed: its unanswered messages are due again.
    GiveUp(GivingUp),
}

/// The kind of giving up. Each `why` is for people, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivingUp {
    /// The cycle has no conversation: its messages are due again, and no notice is sent.
    Unheard,
    /// Its messages were taken out of the queue, so no notice is sent either.
    Dropped,
    /// The cycle can't be resumed through no fault of its messages: they start again.
    Blameless {
        /// The reason.
        why: String,
        /// When they start again.
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

/// Decides about a cut-off cycle for the model called `model`. Pure.
pub fn decide_resumption(row: &CycleRow, journal: &[Entry], model: &str, cut: CutOff) -> Uptake {
    let CutOff { is_committed, has_crashed } = cut;
    let begun_by = row.cycle.model.as_str();
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
    } else if begun_by != model && begun_by != OUTSIDE && [begun_by, model].contains(&OFFLINE_MODEL) {
        // Any other model continues from the journal's account.
        Uptake::GiveUp(GivingUp::without_blame(format!("it was begun with {begun_by}, which is no longer my AI model")))
    // fault: cycle-given-up-first
    // fault: cycle-taken-up-once
    } else if cuts >= MAX_TRIES {
        // The tries were counted before this decision, so a failed giving-up is repeated instead of resumed.
        Uptake::GiveUp(GivingUp::cut_off(cuts))
    } else {
        Uptake::GoOn
    }
}
