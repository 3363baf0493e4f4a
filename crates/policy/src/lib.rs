//! What may be done without asking: a decision on every call, outside the conversation and outside the repository.
//!
//! Values in, values out: [`judge`] weighs what a call would do (its risk, and for a command what it is given) against the level of
//! autonomy, a person's own [`Rules`], and what the cycle has read. The strictest voice wins, each voice leaves its reason, and
//! what nobody knows asks. Only [`load`] and [`change`] touch a file.

pub mod amend;
mod classify;
mod judge;
mod keep;
mod load;
mod named;
mod rules;
mod shell;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use reveille_base::types::Effect;
use reveille_config::Autonomy;

use self::classify::places;
pub use self::{
    classify::places::is_private,
    judge::{commands, is_allowed_by_rule, judge},
    keep::change,
    load::{Loaded, load, text},
    named::{NamedWords, named_words},
    rules::{Host, Rules, RulesProblem, SHELL},
    shell::MAX_TEXT_BYTES as MAX_SHELL_BYTES,
};

/// A `policy.toml` to begin with: everything in it is commented.
pub const EXAMPLE: &str = include_str!("../../../docs/policy.toml");

/// Tools that never ask: planning, notes, and answers to the asking chat. A rule can deny them.
pub const FREE: [&str; 6] = ["plan", "reply", "note", "context_update", "keep", "step_end"];

/// Why a command asks where no sandbox can be had. Whoever was told this, and only they, has agreed to its running unconfined.
pub const NO_SANDBOX: &str = "There is no sandbox here to contain it, so every command needs your yes.";

/// Whether a path is one that a tool doesn't come upon by itself: private, or asked about when it is named.
pub fn is_sensitive(path: &str) -> bool {
    is_private(path) || places::why(path).is_some()
}

/// What a call can do to the person's things. The policy turns it and the autonomy into allow, ask or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Notes, plans, answers to the asking chat, reading.
    Safe,
    /// Visible outside, easily undone.
    Caution,
    /// Not easily undone, or not known.
    Dangerous,
    /// Never undone.
    Destructive,
}

impl Risk {
    /// Its name, as in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Caution => "caution",
            Self::Dangerous => "dangerous",
            Self::Destructive => "destructive",
        }
    }

    /// The risk of this name. What isn't known is as bad as it gets.
    pub fn named(name: &str) -> Self {
        let all = [Self::Safe, Self::Caution, Self::Dangerous, Self::Destructive];
        all.into_iter().find(|risk| risk.name() == name).unwrap_or(Self::Destructive)
    }

    /// As a person reads it, after "Risk:".
    pub fn told(self) -> &'static str {
        match self {
            Self::Safe => "none known",
            Self::Caution => "low",
            Self::Dangerous => "high",
            Self::Destructive => "it can't be undone",
        }
    }
}

/// What the policy says of a call; the later, the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Carry it out.
    Allow,
    /// A person has to agree first.
    Ask,
    /// It isn't done, and nobody is asked.
    Deny,
}

impl Decision {
    /// Its name, as in `policy.toml` and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How much the call can harm.
    pub risk: Risk,
    /// Whether it may be carried out.
    pub decision: Decision,
    /// Plain sentences for people, at least one, the weightiest decision's first.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// For a call that can't be judged: an unknown tool, arguments that don't fit, an error on the way.
    pub fn denied(why: impl Into<String>) -> Self {
        Self { risk: Risk::Dangerous, decision: Decision::Deny, reasons: vec![why.into()] }
    }

    /// The same, which asks at least, and says why. What was said for the call is left out then.
    #[must_use]
    pub fn asking(mut self, why: String) -> Self {
        if self.decision == Decision::Allow {
            self.decision = Decision::Ask;
            self.reasons.clear();
        }
        self.reasons.push(why);
        self
    }
}

/// How far a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Not beyond the cycle, the memory's quarantine and the asking chat.
    Within,
    /// It leaves the machine.
    Leaves,
    /// It outlives the cycle.
    Persists,
    /// It edits what steers the model: `claude.md`, `skills/` or `memory/jobs/`.
    Steers,
}

/// What a command is given in the sandbox. It may always read the machine, but for what is hidden, and write in the scratch folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// The folders that are granted for writing can be written to; else they are read-only.
    pub writes: bool,
    /// Granted hosts can be reached; else nobody.
    pub network: bool,
}

impl Access {
    /// Whether it is given nothing that outlives its cycle.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// How far what is given so much can reach.
    pub fn reach(self) -> Reach {
        match self {
            Self { network: true, .. } => Reach::Leaves,
            Self { writes: true, .. } => Reach::Persists,
            Self { .. } => Reach::Within,
        }
    }
}

/// What a call acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// Nothing that needs a look of its own.
    Plain,
    /// Shell text, and what it would be given.
    Shell {
        /// What would be run.
        text: &'a str,
        /// See [`Rules::access`].
        access: Access,
    },
    /// A file or folder.
    Path {
        /// As the tool was given it, relative paths being the scratch folder's.
        path: &'a Path,
        /// Whether it is written.
        is_write: bool,
    },
    /// An address that is fetched.
    Url(&'a str),
    /// An application of the person's that is started.
    App,
    /// Documents of the memory, by where they are kept: a person's rules about these paths count, and nothing else of a path.
    Documents(&'a [PathBuf]),
}

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What its tool risks. Shell text is rated by itself.
    pub risk: Risk,
    /// What repeating it would do.
    pub effect: Effect,
    /// Whether its tool never asks.
    pub is_free: bool,
    /// How far it reaches at most.
    pub reach: Reach,
    /// What it acts on.
    pub what: What<'a>,
    /// Its arguments as they were written, JSON: a rule can be about exactly these.
    pub arguments: &'a str,
}

/// What a call is judged under.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// How much may be done without asking.
    pub autonomy: Autonomy,
    /// Where untrusted bytes came from that the cycle has read; `None` if it has read none.
    pub taint: Option<&'a str>,
    /// Whether shell text would run in a sandbox.
    pub is_sandboxed: bool,
    /// Why what a command may write to can't be copied before; none: it can, or it writes to nothing.
    pub uncovered: Option<&'a str>,
    /// When a cycle that had read untrusted text last wrote to a folder that a command works in or is granted; `None` if none did.
    pub tainted_write: Option<DateTime<Utc>>,
}
