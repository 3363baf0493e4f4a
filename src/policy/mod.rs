//! What may be done without asking: a decision on every call, outside the conversation and outside the repository.
//!
//! Values in, values out: [`judge`] weighs what a call would do (its risk, and for shell text what `classify` makes of what two
//! readers in `shell` agree on) against the level of autonomy, a person's own [`Rules`], and what the cycle has read. The
//! strictest voice wins, each voice leaves its reason, and what nobody knows asks. Only [`load`] touches a file.

mod classify;
mod load;
mod rules;
mod shell;
#[cfg(test)]
mod tests;

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use self::{
    classify::{Line, places},
    rules::Asked,
};
pub use self::{
    load::{Loaded, load},
    rules::{Host, Problem, Rules},
    shell::MAX_TEXT_BYTES as MAX_SHELL_BYTES,
};
use crate::{config::Autonomy, tool::Effect};

/// A `policy.toml` to begin with: everything in it is commented.
pub const EXAMPLE: &str = include_str!("../../docs/policy.toml");

/// Why a command asks where no sandbox can be had. Whoever was told this, and only they, has agreed to its running unconfined.
pub const NO_SANDBOX: &str = "There is no sandbox here that could hold it, so every command asks.";

/// Whether a path leads to keys or to our own state: no tool reads or writes those, whatever is granted. Neither case nor what
/// some file systems make of it (`ſ` is an `s` there) tells names apart.
pub fn is_private(path: &str) -> bool {
    places::is_private(&path.to_uppercase())
}

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
    /// It edits what steers the mind: `claude.md` or `skills/`.
    Steers,
}

/// What a call acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// Nothing that needs a look of its own.
    Plain,
    /// Shell text.
    Shell(&'a str),
    /// A file or folder.
    Path {
        /// As the tool was given it, relative paths being the scratch folder's.
        path: &'a Path,
        /// Whether it is written.
        is_write: bool,
    },
    /// An address that is fetched.
    Url(&'a str),
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
}

/// Judges a call. Total: there is an answer to everything, and to what isn't understood it isn't "allow".
pub fn judge(subject: &Subject, rules: &Rules, circumstances: &Circumstances) -> Verdict {
    if subject.is_free
        && let Some((Decision::Deny, rule)) = rules.decide(subject.tool, &Asked::Tool)
    {
        return Verdict { risk: subject.risk, decision: Decision::Deny, reasons: vec![rule] };
    }
    let outlives_taint = circumstances.taint.is_some() && subject.reach != Reach::Within;
    if subject.is_free && subject.reach != Reach::Steers && !outlives_taint {
        let why = "It never asks: planning, notes and answers to the asking chat are always allowed.";
        return Verdict { risk: subject.risk, decision: Decision::Allow, reasons: vec![why.to_owned()] };
    }
    let mut scales = Scales::default();
    let (risk, reach) = match subject.what {
        What::Shell(text) => shell(text, subject, rules, circumstances, &mut scales),
        _ => (plain(subject, rules, circumstances, &mut scales), subject.reach),
    };
    if risk == Risk::Destructive {
        scales.ask("What can't be undone always asks.");
    }
    if reach == Reach::Steers {
        scales.ask("It changes the standing orders or a skill, which steer everything after: that always asks.");
    }
    match (circumstances.taint, reach) {
        (Some(taint), Reach::Leaves) => {
            scales.ask(format!("Text from {taint} was read in this cycle, and this leaves the machine."));
        }
        (Some(taint), Reach::Persists) => {
            scales.ask(format!("Text from {taint} was read in this cycle, and this outlives it."));
        }
        _ => {}
    }
    if let Some(why) = rules.refusal() {
        scales.ask(why);
    }
    scales.verdict(risk)
}

/// What was said for and against a call so far.
#[derive(Debug, Default)]
struct Scales {
    said: Vec<(Decision, String)>,
}

impl Scales {
    fn say(&mut self, decision: Decision, why: impl Into<String>) {
        let why = why.into();
        if !self.said.iter().any(|(_, said)| *said == why) {
            self.said.push((decision, why));
        }
    }

    fn ask(&mut self, why: impl Into<String>) {
        self.say(Decision::Ask, why);
    }

    /// The strictest decision, with its reasons and those of what else speaks against the call.
    fn verdict(mut self, risk: Risk) -> Verdict {
        // Stable: within a decision the reasons stay in the order in which they came up.
        self.said.sort_by_key(|(decision, _)| std::cmp::Reverse(*decision));
        let decision = self.said.first().map_or(Decision::Ask, |(decision, _)| *decision);
        let mut reasons: Vec<String> = self
            .said
            .into_iter()
            .filter(|(said, _)| decision == Decision::Allow || *said > Decision::Allow)
            .map(|(_, why)| why)
            .collect();
        if reasons.is_empty() {
            reasons.push("Nothing is known of it, so it asks.".to_owned());
        }
        Verdict { risk, decision, reasons }
    }

    /// Four risks, three levels of autonomy; a rule of the person's that allows lifts an ask of this table and nothing else.
    fn table(&mut self, risk: Risk, why: Option<&str>, autonomy: Autonomy, rule: Option<(Decision, String)>) {
        let asks = match (risk, autonomy) {
            (Risk::Destructive, _) | (_, Autonomy::AskAll) => true,
            (Risk::Dangerous, autonomy) => autonomy < Autonomy::Full,
            (Risk::Safe | Risk::Caution, _) => false,
        };
        let level = autonomy as u8;
        match rule {
            Some((Decision::Allow, rule)) => self.say(Decision::Allow, rule),
            rule if asks => {
                let what = match (risk, why) {
                    (_, Some(why)) => why.to_owned(),
                    (Risk::Destructive, None) => "It can't be undone.".to_owned(),
                    (Risk::Dangerous, None) => "It isn't easily undone.".to_owned(),
                    (Risk::Safe | Risk::Caution, None) => "It does something.".to_owned(),
                };
                let when = match risk {
                    Risk::Destructive => "",
                    _ if autonomy == Autonomy::AskAll => " At AUTONOMY=0 everything asks.",
                    _ => " What is dangerous asks below AUTONOMY=2.",
                };
                self.ask(format!("{what}{when}"));
                if let Some((decision, rule)) = rule {
                    self.say(decision, rule);
                }
            }
            Some((decision, rule)) => self.say(decision, rule),
            None => self.say(
                Decision::Allow,
                match (risk, why) {
                    (Risk::Safe, _) => "It only reads, or stays within the cycle.".to_owned(),
                    (_, Some(why)) => format!("{why} Allowed at AUTONOMY={level}."),
                    (_, None) => format!("It is rated {}, which is allowed at AUTONOMY={level}.", risk.name()),
                },
            ),
        }
    }
}

/// Judges everything but shell text.
fn plain(subject: &Subject, rules: &Rules, circumstances: &Circumstances, scales: &mut Scales) -> Risk {
    let asked = match subject.what {
        What::Path { path, .. } => Asked::Path(path),
        What::Url(url) => Asked::Url(url),
        What::Plain | What::Shell(_) => Asked::Tool,
    };
    let rule = rules.decide(subject.tool, &asked);
    let reads_memory = subject.effect == Effect::Read
        && subject.what == What::Plain
        && subject.reach == Reach::Within
        && rule.is_none();
    if reads_memory {
        scales.say(Decision::Allow, "It only reads, and nothing that comes from elsewhere.");
    } else {
        scales.table(subject.risk, None, circumstances.autonomy, rule);
    }
    match subject.what {
        What::Path { path, is_write } => file(path, is_write, rules, scales),
        What::Url(url) => address(url, scales),
        What::Plain | What::Shell(_) => {}
    }
    subject.risk
}

/// Judges shell text: its risk, and how far it reaches after all.
fn shell(
    text: &str,
    subject: &Subject,
    rules: &Rules,
    circumstances: &Circumstances,
    scales: &mut Scales,
) -> (Risk, Reach) {
    let Line { not_plain, commands, worst } = classify::line(text);
    for (words, rated) in &commands {
        let rule = rules.decide(subject.tool, &Asked::Command { words, is_certain: not_plain.is_none() });
        match &not_plain {
            None => scales.table(rated.risk, rated.why.as_deref(), circumstances.autonomy, rule),
            // What was only guessed can be forbidden, and not allowed.
            Some(_) => {
                if let Some((decision @ (Decision::Ask | Decision::Deny), rule)) = rule {
                    scales.say(decision, rule);
                }
            }
        }
    }
    if let (true, Some((decision, rule))) = (commands.is_empty(), rules.decide(subject.tool, &Asked::Tool)) {
        scales.say(decision, rule);
    }
    if let Some(why) = &not_plain {
        if let (Risk::Destructive, Some(what)) = (worst.risk, &worst.why) {
            scales.ask(what.clone());
        }
        scales.ask(why.to_string());
    }
    if !circumstances.is_sandboxed {
        scales.ask(NO_SANDBOX);
    }
    let only_reads = worst.risk == Risk::Safe && subject.reach != Reach::Steers;
    (worst.risk, if only_reads { Reach::Within } else { subject.reach })
}

/// A path must be what it seems, in the scratch folder or beneath a granted root, and not a place of keys or of our own state.
fn file(path: &Path, is_write: bool, rules: &Rules, scales: &mut Scales) {
    let text = path.to_string_lossy();
    if text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) || text.is_empty() {
        scales.say(Decision::Deny, "The path is empty or holds characters that aren't text.");
    }
    if path.components().any(|part| part == Component::ParentDir) {
        scales.ask("The path leads upwards (`..`).");
    }
    if places::is_private(&text) {
        scales.say(Decision::Deny, "Keys and the assistant's own state are out of every tool's reach.");
    } else if let Some(why) = places::why(&text) {
        scales.ask(why);
    }
    if path.is_absolute() && !rules.grants(path, is_write) {
        let (verb, list) = if is_write { ("written", "write") } else { ("read", "read") };
        scales.ask(format!("`{text}` isn't beneath a folder that may be {verb} (`[files] {list}` in policy.toml)."));
    }
}

/// An address must be one of the web's, without a password. Where it leads is looked at when it is dialled.
fn address(url: &str, scales: &mut Scales) {
    match rules::web_host(url) {
        Ok(_) => {}
        Err(why) => scales.ask(why),
    }
}
