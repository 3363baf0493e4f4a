//! What may be done: a verdict on each call, decided outside the conversation.

use serde::{Deserialize, Serialize};

/// What a call can do to the person's things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Notes, plans, answers to the asking chat, reading memory.
    Safe,
    /// Visible outside, easily undone.
    Caution,
    /// Not easily undone.
    Dangerous,
    /// Never undone.
    Destructive,
}

/// What the policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Carry it out.
    Allow,
    /// A person has to agree first.
    Ask,
    /// It isn't done.
    Deny,
}

/// A decision, and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What the call can do.
    pub risk: Risk,
    /// Whether it is done.
    pub decision: Decision,
    /// Why, in sentences for people.
    pub reasons: Vec<String>,
}

impl Risk {
    /// Its name, as people and the database see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Caution => "caution",
            Self::Dangerous => "dangerous",
            Self::Destructive => "destructive",
        }
    }
}
