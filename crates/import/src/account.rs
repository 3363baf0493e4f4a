//! The report on an import: new, known and skipped content with reasons, and the next steps.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;

use reveille_base::words::{format_count, one_line, quote_for_shell, truncate_text};
use reveille_config::OldSetting;

use super::{ImportKind, found::SkippedItem};

/// The maximum number of skipped items named per reason.
const MAX_NAMED: usize = 3;
/// The maximum length of a name shown, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The report on an import.
#[derive(Debug, Clone, Default)]
pub struct ImportAccount {
    /// The kind of source.
    pub kind: Option<ImportKind>,
    /// The new content.
    pub new: ImportCounts,
    /// The number of earlier imported documents that have grown since.
    pub updated: usize,
    /// The number of items imported before or known otherwise.
    pub known: usize,
    /// The number of texts with a masked secret.
    pub masked: usize,
    /// The documents' paths in the memory.
    pub documents: Vec<String>,
    /// The future reminders, each waiting for the person to set it.
    pub reminders: Vec<SetReminder>,
    /// The old assistant's settings.
    pub settings: Vec<OldSetting>,
    /// The skipped items, by reason.
    pub left_out: Vec<LeftOutFor>,
}

/// The number of new items, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportCounts {
    /// Notes and other texts.
    pub notes: usize,
    /// Conversations; a long one counts once per document.
    pub conversations: usize,
    /// Facts.
    pub facts: usize,
    /// Tasks.
    pub tasks: usize,
    /// Reminders.
    pub reminders: usize,
    /// Instructions for another assistant.
    pub orders: usize,
    /// Skills of another assistant.
    pub skills: usize,
}

/// A future reminder with the command that sets it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SetReminder {
    /// The reminder's text.
    pub text: String,
    /// The local time.
    pub at: String,
    /// The shell command.
    pub command: String,
}

/// The items skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOutFor {
    /// The reason.
    pub why: &'static str,
    /// The number of items.
    pub count: usize,
    /// Some of the items' names.
    pub named: Vec<String>,
}

impl SetReminder {
    pub(super) fn new(text: &str, at: NaiveDateTime) -> Self {
        let (text, at) = (one_line(text), at.format("%Y-%m-%d %H:%M").to_string());
        // Quoted as a single shell word, and never taken as an option.
        let command = format!("wake remind --at '{at}' -- {}", quote_for_shell(std::path::Path::new(&text)));
        Self { text, at, command }
    }
}

impl ImportAccount {
    /// Describes the new content, such as `2 facts, 1 task`; empty if there is none.
    pub fn describe_counts(&self) -> String {
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
        let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format_count(*n, what));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Groups the skipped items by reason.
    pub(super) fn group_left_out(&mut self, left_out: Vec<SkippedItem>) {
        let mut by_reason: BTreeMap<&'static str, (usize, Vec<String>)> = BTreeMap::new();
        for SkippedItem { what, why, times } in left_out {
            let (count, named) = by_reason.entry(why).or_default();
            *count += times;
            let name = truncate_text(&one_line(&what), MAX_NAME_CHARS);
            if named.len() < MAX_NAMED && !name.is_empty() && !named.contains(&name) {
                named.push(name);
            }
        }
        let groups = by_reason.into_iter().map(|(why, (count, named))| LeftOutFor { why, count, named });
        self.left_out = groups.collect();
    }

    /// Returns whether the import brings nothing.
    pub fn is_empty(&self) -> bool {
        self.new == ImportCounts::default() && self.updated == 0
    }
}
