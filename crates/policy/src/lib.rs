//! The policy decides on every call. Its rules lie outside the conversation and outside the repository.
//!
//! Most of it is pure: [`judge`] weighs a call's risk, and for a command its [`Access`], against the level of autonomy, a person's own
//! [`Rules`] and the cycle's taint. Each source gives a decision with a reason, and the strictest wins; an unknown call needs approval.
//! Only [`load`] and [`change_file`] touch a file.

pub mod amend;
mod classify;
pub mod folders;
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
    judge::{is_allowed_by_rule, judge, list_commands},
    keep::change_file,
    load::{Loaded, load, read_text},
    named::{NamedWords, find_named_words},
    rules::{Host, Rules, RulesProblem, SHELL},
    shell::MAX_TEXT_BYTES as MAX_SHELL_BYTES,
};

/// An example `policy.toml`, with every setting commented.
pub const EXAMPLE: &str = include_str!("../../../docs/policy.toml");

/// Tools that never need approval: planning, notes, and answers to the asking chat. A rule can deny them.
pub const FREE: [&str; 6] = ["plan", "reply", "note", "context_update", "keep", "step_end"];

/// The reason that every command needs approval without a sandbox.
pub(crate) const NO_SANDBOX: &str = "There is no sandbox here to contain it, so every command needs your yes.";

/// Returns `true` for a path that tools skip unless a call names it: a private path, or one that needs approval.
pub fn is_sensitive(path: &str) -> bool {
    is_private(path) || places::find_sensitive_place(path).is_some()
}

/// The possible harm of a call. The policy turns risk and autonomy into allow, ask or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Notes, plans, reading, and answers to the asking chat.
    Safe,
    /// Visible outside, but easily undone.
    Caution,
    /// Hard to undo, or unknown.
    Dangerous,
    /// Impossible to undo.
    Destructive,
}

impl Risk {
    /// Returns the name used in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Caution => "caution",
            Self::Dangerous => "dangerous",
            Self::Destructive => "destructive",
        }
    }

    /// Returns the risk of this name; the highest for an unknown one.
    pub fn from_name(name: &str) -> Self {
        let all = [Self::Safe, Self::Caution, Self::Dangerous, Self::Destructive];
        all.into_iter().find(|risk| risk.name() == name).unwrap_or(Self::Destructive)
    }

    /// Returns the wording for people, after "Risk:".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Safe => "none known",
            Self::Caution => "low",
            Self::Dangerous => "high",
            Self::Destructive => "it can't be undone",
        }
    }
}

/// The policy's decision on a call; later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Carry it out.
    Allow,
    /// A person has to agree first.
    Ask,
    /// The call is refused without asking.
    Deny,
}

impl Decision {
    /// Returns the name used in `policy.toml` and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The possible harm of the call.
    pub risk: Risk,
    /// The decision.
    pub decision: Decision,
    /// Plain sentences for people, at least one, the weightiest first.
    pub reasons: Vec<String>,
    /// The consents that an approval of the question gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<Consent>,
}

/// Something that an approval permits besides the call itself. It is compared as a value, so the words of a question may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// A command may run although there is no sandbox.
    UnconfinedCommand,
    /// The program of an MCP server may start although there is no sandbox.
    UnconfinedServer,
    /// The tools that an MCP server lists are accepted.
    ServerTools {
        /// The name of the server.
        server: String,
        /// The digest of its list.
        sha256: String,
    },
}

/// A reason for a decision, in a plain sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyReason {
    /// The sentence.
    pub words: String,
    /// The consent that an approval gives, where the reason asks for one.
    pub consent: Option<Consent>,
}

impl PolicyReason {
    /// Creates a reason whose approval also gives this consent.
    pub fn with_consent(words: impl Into<String>, consent: Consent) -> Self {
        Self { words: words.into(), consent: Some(consent) }
    }
}

impl From<String> for PolicyReason {
    fn from(words: String) -> Self {
        Self { words, consent: None }
    }
}

impl From<&str> for PolicyReason {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl Verdict {
    /// Creates a verdict for one reason.
    pub fn new(risk: Risk, decision: Decision, why: impl Into<String>) -> Self {
        Self { risk, decision, reasons: vec![why.into()], consents: Vec::new() }
    }

    /// Denies a call that can't be judged: an unknown tool, invalid arguments, an error.
    pub fn deny(why: impl Into<String>) -> Self {
        Self::new(Risk::Dangerous, Decision::Deny, why)
    }

    /// Raises the decision to at least [`Decision::Ask`], and adds a reason. The reasons of an earlier [`Decision::Allow`] are dropped.
    #[must_use]
    pub fn raise_to_ask(mut self, why: PolicyReason) -> Self {
        if self.decision == Decision::Allow {
            self.decision = Decision::Ask;
            self.reasons.clear();
        }
        self.reasons.push(why.words);
        self.consents.extend(why.consent);
        self
    }
}

/// The reach of a call's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Confined to the cycle, the memory's quarantine and the asking chat.
    Within,
    /// Leaves the machine.
    Leaves,
    /// Outlives the cycle.
    Persists,
    /// Edits files that steer the model: `claude.md`, `skills/` or `memory/jobs/`.
    Steers,
}

/// The rights of a command in the sandbox. It may always read the machine, except hidden places, and write in the scratch folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// `true` to write in the folders granted for writing, which are read-only otherwise.
    pub writes: bool,
    /// `true` to reach the granted hosts; otherwise there is no network.
    pub network: bool,
}

impl Access {
    /// Returns `true` if the command has no rights beyond its cycle.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns the reach of a command with these rights.
    pub fn reach(self) -> Reach {
        match self {
            Self { network: true, .. } => Reach::Leaves,
            Self { writes: true, .. } => Reach::Persists,
            Self { .. } => Reach::Within,
        }
    }
}

/// The object of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// An object without a check of its own.
    Plain,
    /// Shell text and its rights.
    Shell {
        /// The text to run.
        text: &'a str,
        /// See [`Rules::limit_access`].
        access: Access,
    },
    /// A file or folder.
    Path {
        /// The path as given to the tool; relative paths start in the scratch folder.
        path: &'a Path,
        /// `true` if the call writes.
        is_write: bool,
    },
    /// A web address to fetch.
    Url(&'a str),
    /// An application to start for the person.
    App,
    /// Documents of the memory, by their paths. A person's rules about these paths apply, without the other checks of paths.
    Documents(&'a [PathBuf]),
}

/// A call to judge.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The tool's risk. Shell text is rated separately.
    pub risk: Risk,
    /// The effect of repeating the call.
    pub effect: Effect,
    /// `true` if the tool never asks.
    pub is_free: bool,
    /// The call's furthest reach.
    pub reach: Reach,
    /// The object of the call.
    pub what: What<'a>,
    /// The arguments in JSON, verbatim: a rule can be about exactly these.
    pub arguments: &'a str,
}

/// The circumstances of a judgement.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// The level of autonomy.
    pub autonomy: Autonomy,
    /// The source of untrusted text read by the cycle; `None` if untainted.
    pub taint: Option<&'a str>,
    /// `true` if shell text would run in a sandbox.
    pub is_sandboxed: bool,
    /// The reason the command's writable folders can't be copied before it runs; `None` if they can, or if there are none.
    pub uncovered: Option<&'a str>,
    /// The time of a tainted cycle's last write to a folder the command works in or may write to; `None` if there was none.
    pub tainted_write: Option<DateTime<Utc>>,
}
