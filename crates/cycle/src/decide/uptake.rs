//! What becomes of a cycle that was cut off: it is taken up again, ended, or given up.

use reveille_config::OFFLINE_MODEL;
use reveille_store::{CycleRow, Entry};

/// The model of such a cycle, as its row and its commit name it.
pub const OUTSIDE: &str = "mcp";

/// So often a cycle is cut off by a crash, a kill or a time-out; then it is given up.
pub const MAX_TRIES: u32 = 3;

/// What becomes of a cycle that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uptake {
    /// Its commit was made: only its end has to be written down.
    Conclude,
    /// A rule has done all of it: it is committed and ended.
    Publish,
    /// It goes on from its journal.
    GoOn,
    /// It can't go on: what it had not answered is due again.
    GiveUp(GivingUp),
}

/// How a cycle that can't be gone on with is given up. Each `why` is for people, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivingUp {
    /// It holds no conversation: what it was about is due again, and nothing is to be told.
    Unheard,
    /// Nobody waits for its end any more: its messages were taken out of the queue. Nothing is to be told either.
    Dropped,
    /// It can't be resumed, which is no fault of its messages: they are begun again.
    Blameless {
        /// Why it can't.
        why: String,
        /// When they are begun again.
        when: &'static str,
    },
    /// It failed on its messages, which counts against them.
    Failed(String),
    /// Its messages are too long for its model: trying them again is no use.
    TooLong(String),
}

impl GivingUp {
    pub(crate) fn blameless(why: impl Into<String>) -> Self {
        Self::Blameless { why: why.into(), when: "soon" }
    }

    pub(crate) fn cut_off(times: u32) -> Self {
        Self::Failed(format!("it was cut off {times} times"))
    }

    /// Whether it counts against its messages.
    pub fn counts(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::TooLong(_))
    }

    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Unheard => "it was cut off before it began",
            Self::Dropped => "its messages were taken out of the queue",
            Self::Blameless { why, .. } | Self::Failed(why) | Self::TooLong(why) => why,
        }
    }
}

/// Decides it for the model called `model`. Pure.
pub fn uptake(row: &CycleRow, journal: &[Entry], is_committed: bool, model: &str, has_crashed: bool) -> Uptake {
    let begun_by = row.cycle.model.as_str();
    let cuts = row.tries + u32::from(has_crashed);
    // fault: cycle-taken-up-again
    if is_committed {
        Uptake::Conclude
    } else if journal.is_empty() {
        // Nothing has begun: what it was about is due again.
        Uptake::GiveUp(GivingUp::Unheard)
    // fault: rule-done-given-up
    } else if row.cycle.is_by_rule() {
        Uptake::Publish
    } else if begun_by != model && begun_by != OUTSIDE && [begun_by, model].contains(&OFFLINE_MODEL) {
        // Any other model goes on from the journal's account.
        Uptake::GiveUp(GivingUp::blameless(format!("it was begun with {begun_by}, which is no longer my AI model")))
    // fault: cycle-given-up-first
    // fault: cycle-taken-up-once
    } else if cuts >= MAX_TRIES {
        // Its tries are counted before this look, so a giving-up that failed is repeated, and not gone on with.
        Uptake::GiveUp(GivingUp::cut_off(cuts))
    } else {
        Uptake::GoOn
    }
}
