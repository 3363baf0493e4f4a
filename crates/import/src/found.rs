//! What a source holds, as values: texts for the memory, and what was left out and why.

use chrono::NaiveDate;

use reveille_base::redact::Secret;
use reveille_config::OldSetting;
use reveille_memory::tasks::TaskDraft;

/// All that a source holds.
#[derive(Debug, Default)]
pub struct FoundThings {
    /// Texts.
    pub documents: Vec<FoundDocument>,
    /// Single facts.
    pub facts: Vec<FoundFact>,
    /// Tasks.
    pub tasks: Vec<FoundTask>,
    /// Reminders that weren't over.
    pub reminders: Vec<FoundReminder>,
    /// The old settings: shown, never taken over.
    pub settings: Vec<OldSetting>,
    /// Secrets of the old settings, to be masked wherever they stand.
    pub secrets: Vec<Secret>,
    /// Texts in which a secret was masked.
    pub masked: usize,
    /// What isn't taken.
    pub left_out: Vec<ImportLeftOut>,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentSort {
    /// A note, or another text.
    Note,
    /// A conversation, or a part of one that is long.
    Conversation,
    /// Orders for another assistant. They aren't in force here.
    Orders,
    /// A skill of another assistant. It isn't in force here.
    Skill,
}

/// A text for the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocument {
    /// Where it goes, below the folder of what came in.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its day, if it has one: the newest come first where there are too many.
    pub day: Option<NaiveDate>,
    /// What it is.
    pub sort: DocumentSort,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFact {
    /// What is known.
    pub text: String,
    /// The file that says it.
    pub from: String,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTask {
    /// The task.
    pub draft: TaskDraft,
    /// Until when it is to be done, as written there.
    pub due: Option<String>,
    /// The file that says it.
    pub from: String,
}

/// A reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundReminder {
    /// What of.
    pub text: String,
    /// When, as written there.
    pub due: String,
    /// The file that says it.
    pub from: String,
}

/// What wasn't taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportLeftOut {
    /// What, as its source calls it.
    pub what: String,
    /// Why: the same words for the same reason.
    pub why: &'static str,
    /// How many times.
    pub times: usize,
}

/// What came only in part.
pub(super) const CUT_SHORT: &str = "longer than is kept: its beginning came";
/// Why a document isn't taken that is called so.
const SECRET_NAME: &str = "its name holds a key or token";

impl FoundThings {
    /// Leaves something out.
    pub(super) fn leave(&mut self, what: impl Into<String>, why: &'static str) {
        self.leave_times(what, why, 1);
    }

    /// Leaves something out that is there several times, or never.
    pub(super) fn leave_times(&mut self, what: impl Into<String>, why: &'static str, times: usize) {
        if times > 0 {
            self.left_out.push(ImportLeftOut { what: what.into(), why, times });
        }
    }

    /// Masks secrets in all texts.
    pub(super) fn mask(&mut self, redact: &dyn Fn(&str) -> String) {
        let mut masked = 0;
        let mut mask = |text: &mut String| {
            let clean = redact(text);
            masked += usize::from(clean != *text);
            *text = clean;
        };
        self.documents.iter_mut().for_each(|document| mask(&mut document.text));
        for FoundFact { text, from } in &mut self.facts {
            [text, from].into_iter().for_each(&mut mask);
        }
        for FoundReminder { text, due, from } in &mut self.reminders {
            [text, due, from].into_iter().for_each(&mut mask);
        }
        for FoundTask { draft, due, from } in &mut self.tasks {
            let values = [&mut draft.next, &mut draft.why, due].into_iter().flatten();
            values.chain([&mut draft.title, &mut draft.body, from]).for_each(&mut mask);
        }
        self.left_out.iter_mut().for_each(|left| mask(&mut left.what));
        self.masked += masked;
        let holds_secret = |document: &mut FoundDocument| redact(&document.path) != document.path;
        let unnamed = self.documents.extract_if(.., holds_secret).count();
        (0..unnamed).for_each(|_| self.leave("", SECRET_NAME));
    }
}
