//! Verify: the plan against the receipts, and what is written of the wake. Pure; nothing here takes the mind's word for it.

use super::{machine::Receipt, orient::count};
use crate::tool::Plan;

/// Receipts named in a commit's subject.
const SUBJECT_RECEIPTS: usize = 2;

/// Steps of the plan that no successful call of their tool stands for, in order. A tool that is planned twice needs two
/// receipts.
pub fn not_done(plan: &Plan, receipts: &[Receipt]) -> Vec<String> {
    let mut unused: Vec<&str> = receipts.iter().map(|receipt| receipt.tool.as_str()).collect();
    let mut missing = Vec::new();
    for step in &plan.steps {
        match unused.iter().position(|tool| *tool == step.tool) {
            Some(at) => {
                unused.swap_remove(at);
            }
            None => missing.push(step.what.clone()),
        }
    }
    missing
}

/// What the person is told of steps that weren't done; `None` when all were.
pub fn notice(not_done: &[String]) -> Option<String> {
    if not_done.is_empty() {
        return None;
    }
    let lines: Vec<_> = not_done.iter().map(|what| format!("- {what}")).collect();
    Some(format!(
        "I had planned this too, but it was **not done**:\n{}",
        lines.join("\n")
    ))
}

/// What really happened in a wake, for its one entry and its one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// What happened, in order, each a short sentence in the past tense.
    pub receipts: Vec<String>,
    /// Steps that were planned and not done.
    pub not_done: Vec<String>,
    /// Anything a later reader should know: repairs, merges, trouble.
    pub notes: Vec<String>,
}

impl Account {
    /// The lines of the episodic entry: the first is its head.
    pub fn episodic_lines(&self, reasons: &[String]) -> Vec<String> {
        let mut lines = vec![format!(
            "Woke for {}.",
            if reasons.is_empty() {
                "upkeep".to_owned()
            } else {
                reasons.join("; ")
            }
        )];
        lines.extend(self.receipts.iter().cloned());
        lines.extend(self.not_done.iter().map(|what| format!("Not done: {what}")));
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// The commit message's subject and body, without trailers.
    pub fn commit_message(&self) -> String {
        let subject = match self.receipts.as_slice() {
            [] if self.notes.is_empty() => "Wake: nothing to do".to_owned(),
            [] => "Wake: notes".to_owned(),
            receipts if receipts.len() <= SUBJECT_RECEIPTS => format!("Wake: {}", receipts.join("; ")),
            [first, rest @ ..] => format!("Wake: {first}, and {}", count(rest.len(), "more thing")),
        };
        let mut body: Vec<String> = self.receipts.iter().map(|what| format!("- {what}")).collect();
        body.extend(self.not_done.iter().map(|what| format!("- not done: {what}")));
        body.extend(self.notes.iter().map(|what| format!("- {what}")));
        let subject = one_line(&subject, 100);
        if body.is_empty() {
            format!("{subject}\n")
        } else {
            format!("{subject}\n\n{}\n", body.join("\n"))
        }
    }
}

fn one_line(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max_chars {
        line
    } else {
        format!("{}…", line.chars().take(max_chars).collect::<String>())
    }
}
