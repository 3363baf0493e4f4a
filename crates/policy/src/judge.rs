//! The decision on one call: each source says allow, ask or deny with a reason, and the strictest wins. The sources are the table of risks
//! and autonomy levels, a person's rule, the cycle's taint, and the object of the call.

use std::path::{Component, Path};

use chrono::{DateTime, Utc};

use reveille_base::types::Effect;
use reveille_config::Autonomy;

use super::{
    Access, Circumstances, Consent, Decision, NO_SANDBOX, PolicyReason, Reach, Risk, Rules, Subject, Verdict, What,
    classify::{self, ClassifiedText, places},
    rules::{self, RuleQuestion},
};

/// The reason an application always asks, at any level and under any rules.
const APP: &str = "It would run as you, outside the sandbox, as if you had started it. I can't see what it does then.";

/// The reason to run a command without further rights.
const READS: &str = "In the sandbox it can change nothing but the scratch folder: granted folders are read-only, and it has no network.";
/// The reason to run a command whose changes can be undone.
const COPIED: &str = "It may change your files in the granted folders. I copy them first, so `/undo` gives them back.";

/// The reason to ask despite a rule that allows.
const VOID: &str = "You allowed this for good, but since then I changed files in your granted folders after reading untrusted text. This may run them.";

/// The reason to ask because a rule may apply.
const UNREAD: &str = "Your rules hold some commands back, and I can't tell for sure which commands this runs.";

/// Judges a call. Every call gets an answer, and an unknown one never gets "allow".
pub fn judge(subject: &Subject, rules: &Rules, circumstances: &Circumstances) -> Verdict {
    if subject.is_free
        && let Some((Decision::Deny, rule)) = rules.decide(subject.tool, &RuleQuestion::Tool)
    {
        return Verdict::new(subject.risk, Decision::Deny, rule);
    }
    let outlives_taint = circumstances.taint.is_some() && subject.reach != Reach::Within;
    // fault: notes-stay-free-others
    if subject.is_free && subject.reach != Reach::Steers && !outlives_taint {
        let why = "Planning, notes and answers to the asking chat are always allowed.";
        return Verdict::new(subject.risk, Decision::Allow, why);
    }
    let mut scales = Scales::default();
    // A rule about exact arguments doesn't count in a tainted cycle: untrusted text could have chosen this very call.
    let exact = rules.find_exact_rule(subject.tool, subject.arguments).filter(|_| circumstances.taint.is_none());
    let exact = exact.map(|rule| (Decision::Allow, rule));
    let (risk, reach) = match subject.what {
        What::Shell { text, access } => {
            let call = ShellCall { tool: subject.tool, arguments: subject.arguments, exact };
            (judge_shell(text, access, call, rules, circumstances, &mut scales), access.reach())
        }
        _ => (judge_plain(subject, exact, rules, circumstances, &mut scales), subject.reach),
    };
    if risk == Risk::Destructive {
        scales.ask("What can't be undone always needs your yes.");
    }
    if reach == Reach::Steers {
        scales.ask("It changes my standing orders, a skill or a standing job, which steer what I do later.");
    }
    match (circumstances.taint, reach) {
        (Some(taint), Reach::Leaves) => {
            // fault: leaves-others-words-neednt
            scales.ask(format!("I have read text from {taint}, and this would send something off this machine."));
        }
        (Some(taint), Reach::Persists) => {
            // fault: persists-others-words-neednt
            scales.ask(format!("I have read text from {taint}, and this would last beyond this task."));
        }
        _ => {}
    }
    if let Some(why) = rules.refusal() {
        scales.ask(why);
    }
    scales.into_verdict(risk)
}

/// The decisions on a call so far, with their reasons.
#[derive(Debug, Default)]
struct Scales {
    decisions: Vec<(Decision, PolicyReason)>,
}

impl Scales {
    fn record_decision(&mut self, decision: Decision, why: impl Into<PolicyReason>) {
        let why = why.into();
        if !self.decisions.iter().any(|(_, other)| *other == why) {
            self.decisions.push((decision, why));
        }
    }

    fn ask(&mut self, why: impl Into<PolicyReason>) {
        self.record_decision(Decision::Ask, why);
    }

    /// Returns the strictest decision with its reasons: all objections for a question, the prohibitions for a denial. The model reads the
    /// reasons of a denial. They therefore omit the reasons to ask, which may quote untrusted text.
    fn into_verdict(mut self, risk: Risk) -> Verdict {
        // The sort is stable: within a decision the reasons keep their order.
        self.decisions.sort_by_key(|(decision, _)| std::cmp::Reverse(*decision));
        let decision = self.decisions.first().map_or(Decision::Ask, |(decision, _)| *decision);
        let (mut reasons, mut consents) = (Vec::new(), Vec::new());
        for (_, why) in self.decisions.into_iter().filter(|(other, _)| *other == decision) {
            reasons.push(why.words);
            consents.extend(why.consent);
        }
        if reasons.is_empty() {
            reasons.push("I don't know what this does, so I ask.".to_owned());
        }
        Verdict { risk, decision, reasons, consents }
    }

    /// Applies the table of four risks and three levels of autonomy. A rule by which a person allows the call overrides only the
    /// table's question.
    fn apply_table(&mut self, risk: Risk, why: Option<&str>, autonomy: Autonomy, rule: Option<(Decision, String)>) {
        let asks = match (risk, autonomy) {
            (Risk::Destructive, _) | (_, Autonomy::AskAll) => true,
            (Risk::Dangerous, autonomy) => autonomy < Autonomy::Full,
            (Risk::Safe | Risk::Caution, _) => false,
        };
        let level = autonomy as u8;
        match rule {
            Some((Decision::Allow, rule)) => self.record_decision(Decision::Allow, rule),
            rule if asks => {
                let what = match (risk, why) {
                    (_, Some(why)) => why.to_owned(),
                    (Risk::Destructive, None) => "It can't be undone.".to_owned(),
                    (Risk::Dangerous, None) => "It is hard to undo.".to_owned(),
                    (Risk::Safe | Risk::Caution, None) => String::new(),
                };
                let when = match risk {
                    Risk::Destructive => "",
                    _ if autonomy == Autonomy::AskAll => " You asked me to check before every action.",
                    _ => " You asked me to check before actions like this.",
                };
                self.ask(format!("{what}{when}").trim_start());
                if let Some((decision, rule)) = rule {
                    self.record_decision(decision, rule);
                }
            }
            Some((decision, rule)) => self.record_decision(decision, rule),
            None => self.record_decision(
                Decision::Allow,
                match (risk, why) {
                    (Risk::Safe, why) => {
                        why.unwrap_or("It only reads, or changes nothing outside this task.").to_owned()
                    }
                    (_, Some(why)) => format!("{why} You allow that (AUTONOMY={level})."),
                    (_, None) => format!("The risk is {}, which you allow (AUTONOMY={level}).", risk.describe()),
                },
            ),
        }
    }
}

/// Judges everything except shell text. `exact` is a rule that allows exactly this call.
fn judge_plain(
    subject: &Subject,
    exact: Option<(Decision, String)>,
    rules: &Rules,
    circumstances: &Circumstances,
    scales: &mut Scales,
) -> Risk {
    let rule = match subject.what {
        What::Path { path, .. } => rules.decide(subject.tool, &RuleQuestion::Path(path)),
        What::Url(url) => rules.decide(subject.tool, &RuleQuestion::Url(url)),
        What::Plain | What::Shell { .. } | What::App => rules.decide(subject.tool, &RuleQuestion::Tool),
        What::Documents(paths) => rules.decide_paths(subject.tool, paths),
    };
    let rule = match rule {
        Some((decision, _)) if decision > Decision::Allow => rule,
        _ => exact.or(rule),
    };
    let reads_memory = subject.effect == Effect::Read
        && matches!(subject.what, What::Plain | What::Documents(_))
        && subject.reach == Reach::Within
        && rule.is_none();
    if reads_memory {
        scales.record_decision(Decision::Allow, "It only reads my own notes.");
    } else {
        scales.apply_table(subject.risk, None, circumstances.autonomy, rule);
    }
    match subject.what {
        What::Path { path, is_write } => judge_path(path, is_write, rules, scales),
        What::Url(url) => judge_url(url, scales),
        // fault: app-starts-unasked
        What::App => scales.ask(APP),
        What::Plain | What::Shell { .. } | What::Documents(_) => {}
    }
    subject.risk
}

/// A call of the shell.
struct ShellCall<'a> {
    tool: &'a str,
    arguments: &'a str,
    /// The rule that allows exactly this call, if any.
    exact: Option<(Decision, String)>,
}

/// Judges shell text and returns its risk, by its rights. The command's name counts only if a table lists it as destructive: it
/// destroys more than files, or files that no copy could restore.
fn judge_shell(
    text: &str,
    access: Access,
    call: ShellCall<'_>,
    rules: &Rules,
    circumstances: &Circumstances,
    scales: &mut Scales,
) -> Risk {
    let ShellCall { tool, arguments, exact } = call;
    let classified = classify::classify_text(text);
    let decisions = decide_commands(&classified, tool, rules);
    if let (true, Some((decision, rule))) = (classified.commands.is_empty(), rules.decide(tool, &RuleQuestion::Tool)) {
        scales.record_decision(decision, rule);
    }
    let command_rule = find_allowing_rule(&classified, &decisions).map(|rule| (Decision::Allow, rule));
    let tainted_write = circumstances.tainted_write.filter(|_| !access.is_none());
    let had_any_rule = command_rule.is_some() || exact.is_some();
    let (command_rule, exact) = match tainted_write {
        Some(since) => (
            command_rule.filter(|_| all_allowed_since(since, &classified, &decisions, tool, rules)),
            exact.filter(|_| rules.allows_exactly_since(since, tool, arguments)),
        ),
        None => (command_rule, exact),
    };
    if had_any_rule && command_rule.is_none() && exact.is_none() {
        scales.ask(VOID);
    }
    // Unlike a rule about commands, a rule about exactly this call needs copies: the person who made it may rely on them.
    let has_command_rule = command_rule.is_some();
    for (decision, rule) in decisions.into_iter().flatten().filter(|(decision, _)| *decision > Decision::Allow) {
        scales.record_decision(decision, rule);
    }
    let ClassifiedText { not_plain, destroys, .. } = classified;
    // fault: writing-granted-folder-neednt
    let uncovered = circumstances.uncovered.filter(|_| access.writes);
    let is_contained = circumstances.is_sandboxed && !access.network && uncovered.is_none();
    // fault: destroys-more-files-runs
    let (risk, why) = match destroys.filter(|found| !(found.is_files && is_contained)) {
        Some(found) => (Risk::Destructive, found.what),
        None if is_contained && access.writes => (Risk::Caution, COPIED.to_owned()),
        None if is_contained => (Risk::Safe, READS.to_owned()),
        None if access.network => (Risk::Dangerous, "It may reach the granted hosts.".to_owned()),
        None => (Risk::Dangerous, "I can't tell what it does.".to_owned()),
    };
    scales.apply_table(risk, Some(&why), circumstances.autonomy, command_rule.or(exact));
    if let (Some(why), false) = (uncovered, has_command_rule) {
        scales.ask(format!("It may change your files in the granted folders, and I can't copy them first: {why}."));
    }
    if let (Some(why), Risk::Dangerous | Risk::Destructive) = (&not_plain, risk) {
        scales.ask(why.to_string());
    }
    if not_plain.is_some() && rules.restrains_commands(tool) {
        scales.ask(UNREAD);
    }
    // fault: sandbox-command-neednt-ask
    if !circumstances.is_sandboxed {
        scales.ask(PolicyReason::with_consent(NO_SANDBOX, Consent::UnconfinedCommand));
    }
    risk
}

/// Returns the rules' decision on each command.
fn decide_commands(classified: &ClassifiedText, tool: &str, rules: &Rules) -> Vec<Option<(Decision, String)>> {
    let is_certain = classified.not_plain.is_none();
    classified.commands.iter().map(|words| rules.decide(tool, &RuleQuestion::Command { words, is_certain })).collect()
}

/// Finds the allowing rule of a text, if each command except `cd` is allowed by a rule. Guessed commands can be forbidden but never
/// allowed.
fn find_allowing_rule(classified: &ClassifiedText, decisions: &[Option<(Decision, String)>]) -> Option<String> {
    let mut commands = classified.commands.iter().zip(decisions);
    let is_allowed = classified.not_plain.is_none()
        && commands.all(|(words, decision)| match decision {
            Some((decision, _)) => *decision == Decision::Allow,
            None => words.first().is_some_and(|name| name == "cd"),
        });
    decisions.iter().flatten().next_back().filter(|_| is_allowed).map(|(_, rule)| rule.clone())
}

/// Returns `true` if the rules that allow a text were made after `since`, at least one for each command.
fn all_allowed_since(
    since: DateTime<Utc>,
    classified: &ClassifiedText,
    decisions: &[Option<(Decision, String)>],
    tool: &str,
    rules: &Rules,
) -> bool {
    let mut ruled = classified.commands.iter().zip(decisions).filter(|(_, decision)| decision.is_some());
    ruled.all(|(words, _)| rules.allows_since(since, tool, &RuleQuestion::Command { words, is_certain: true }))
}

/// Returns the words of a shell text's commands, guessed if the text isn't plain.
pub fn list_commands(text: &str) -> Vec<Vec<String>> {
    classify::classify_text(text).commands
}

/// Returns `true` if a person's rules about commands allow a shell text, wherever it writes.
pub fn is_allowed_by_rule(tool: &str, text: &str, rules: &Rules) -> bool {
    let classified = classify::classify_text(text);
    find_allowing_rule(&classified, &decide_commands(&classified, tool, rules)).is_some()
}

/// Judges a path: it must be plain, in the scratch folder or beneath a granted root, and not a place with keys or our own state.
fn judge_path(path: &Path, is_write: bool, rules: &Rules, scales: &mut Scales) {
    let text = path.to_string_lossy();
    if text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) || text.is_empty() {
        scales.record_decision(Decision::Deny, "The path is empty or holds characters that can't be shown.");
    }
    if path.components().any(|part| part == Component::ParentDir) {
        scales.ask("The path goes up a folder (`..`).");
    }
    if places::is_private(&text) {
        scales.record_decision(Decision::Deny, "No tool may reach keys or my own files.");
    } else if let Some(why) = places::find_sensitive_place(&text) {
        scales.ask(why);
    }
    if path.is_absolute() && !rules.is_granted(path, is_write) {
        let (verb, list) = if is_write { ("written", "write") } else { ("read", "read") };
        scales.ask(format!("`{text}` isn't beneath a folder that may be {verb} (`[files] {list}` in policy.toml)."));
    }
}

/// Judges an address, which must be a web address without a password. Its destination is checked when it is dialled.
fn judge_url(url: &str, scales: &mut Scales) {
    match rules::web_host(url) {
        Ok(_) => {}
        Err(why) => scales.ask(why),
    }
}
