//! What an import is told by: what came, what was known, what was left out and why, and what to do next.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;

use reveille_base::words::{count, in_shell, one_line, shortened};
use reveille_config::OldSetting;

use super::{ImportKind, found::ImportLeftOut};

/// Of what was left out for one reason, how many are named.
const MAX_NAMED: usize = 3;
/// A name that is told, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The account of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportAccount {
    /// What it came from.
    pub kind: Option<ImportKind>,
    /// What is new.
    pub new: ImportCounts,
    /// Documents that came before and have grown since.
    pub updated: usize,
    /// What had come before, or was known here.
    pub known: usize,
    /// Texts in which a secret was masked.
    pub masked: usize,
    /// The documents, by their paths in the memory.
    pub documents: Vec<String>,
    /// Reminders that lie ahead: each waits for the person to set it.
    pub reminders: Vec<SetReminder>,
    /// The old settings.
    pub settings: Vec<OldSetting>,
    /// What was left out, by the reason.
    pub left_out: Vec<LeftOutFor>,
}

/// What is new, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportCounts {
    /// Notes and other texts.
    pub notes: usize,
    /// Conversations; a long one counts for each of its documents.
    pub conversations: usize,
    /// Facts.
    pub facts: usize,
    /// Tasks.
    pub tasks: usize,
    /// Reminders.
    pub reminders: usize,
    /// Orders for another assistant.
    pub orders: usize,
    /// Skills of another assistant.
    pub skills: usize,
}

/// A reminder that lies ahead, and the command that sets it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SetReminder {
    /// What of.
    pub text: String,
    /// When, on the person's wall.
    pub at: String,
    /// The command.
    pub command: String,
}

/// What was left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOutFor {
    /// Why.
    pub why: &'static str,
    /// How many.
    pub count: usize,
    /// Some of them by name.
    pub named: Vec<String>,
}

impl SetReminder {
    pub(super) fn new(text: &str, at: NaiveDateTime) -> Self {
        let (text, at) = (one_line(text), at.format("%Y-%m-%d %H:%M").to_string());
        // A word of its own for the shell, and no option for the command.
        let command = format!("wake remind --at '{at}' -- {}", in_shell(std::path::Path::new(&text)));
        Self { text, at, command }
    }
}

impl ImportAccount {
    /// `2 facts, 1 task`; empty where nothing is new.
    pub fn counted(&self) -> String {
        let ImportCounts { notes, conversations, facts, tasks, reminders, orders, skills } = self.new;
        let counts = [
            (conversations, "conversation"),
            (notes, "note"),
            (facts, "fact"),
            (tasks, "task"),
            (reminders, "reminder"),
            (orders, "document of orders"),
            (skills, "skill"),
        ];
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Gathers what was left out by its reason.
    pub(super) fn leave(&mut self, left_out: Vec<ImportLeftOut>) {
        let mut by_reason: BTreeMap<&'static str, (usize, Vec<String>)> = BTreeMap::new();
        for ImportLeftOut { what, why, times } in left_out {
            let (count, named) = by_reason.entry(why).or_default();
            *count += times;
            let name = shortened(&one_line(&what), MAX_NAME_CHARS);
            if named.len() < MAX_NAMED && !name.is_empty() && !named.contains(&name) {
                named.push(name);
            }
        }
        let groups = by_reason.into_iter().map(|(why, (count, named))| LeftOutFor { why, count, named });
        self.left_out = groups.collect();
    }

    /// Whether the import brings nothing.
    pub fn is_empty(&self) -> bool {
        self.new == ImportCounts::default() && self.updated == 0
    }
}
