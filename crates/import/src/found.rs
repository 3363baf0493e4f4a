//! The content of a source as values: texts for the memory, and skipped items with reasons.

use chrono::NaiveDate;

use reveille_base::redact::Secret;
use reveille_config::OldSetting;
use reveille_memory::tasks::TaskDraft;

/// The content of a source.
#[derive(Debug, Default)]
pub struct FoundContent {
    /// Texts that become documents of their own.
    pub documents: Vec<FoundDocument>,
    /// Single facts, for the semantic memory.
    pub facts: Vec<FoundFact>,
    /// Open tasks.
    pub tasks: Vec<FoundTask>,
    /// The open reminders.
    pub reminders: Vec<FoundReminder>,
    /// The old settings: shown, but never adopted.
    pub settings: Vec<OldSetting>,
    /// The secrets of the old settings, masked in all texts.
    pub secrets: Vec<Secret>,
    /// The number of texts with a masked secret.
    pub masked: usize,
    /// The skipped items, which the person is shown with the reasons.
    pub left_out: Vec<SkippedItem>,
}

/// The kind of a document. The account of an import counts each kind separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// A note, or another text.
    Note,
    /// A conversation, or a part of a long one.
    Conversation,
    /// Instructions for another assistant, without effect here.
    Orders,
    /// A skill of another assistant, without effect here.
    Skill,
}

/// A text for the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocument {
    /// The path below the import folder.
    pub path: String,
    /// The content in Markdown.
    pub text: String,
    /// The day that the text is from, if known: if there are too many documents, the newest are imported.
    pub day: Option<NaiveDate>,
    /// The kind of document, for the account of the import.
    pub kind: DocumentKind,
}

/// A fact that the old assistant had noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFact {
    /// The fact as one line.
    pub text: String,
    /// The source file.
    pub from: String,
}

/// A task of the old assistant's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTask {
    /// The task without its due time.
    pub draft: TaskDraft,
    /// The due time, as written in the source.
    pub due: Option<String>,
    /// The source file.
    pub from: String,
}

/// An open reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundReminder {
    /// The reminder's text.
    pub text: String,
    /// The due time, as written in the source.
    pub due: String,
    /// The source file.
    pub from: String,
}

/// A skipped item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedItem {
    /// The source's name for the item.
    pub what: String,
    /// The reason, with equal wording for equal reasons.
    pub why: &'static str,
    /// The number of occurrences.
    pub times: usize,
}

/// The reason for truncated content.
pub(super) const CUT_SHORT: &str = "too long: only its beginning is imported";
/// The reason for a document with a secret in its name.
const SECRET_NAME: &str = "its name holds a key or token";

impl FoundContent {
    /// Adds a skipped item.
    pub(super) fn leave_out(&mut self, what: impl Into<String>, why: &'static str) {
        self.add_left_out(what, why, 1);
    }

    /// Adds a skipped item that occurred `times` times; does nothing for 0.
    pub(super) fn add_left_out(&mut self, what: impl Into<String>, why: &'static str, times: usize) {
        if times > 0 {
            self.left_out.push(SkippedItem { what: what.into(), why, times });
        }
    }

    /// Masks secrets in all texts, and drops documents with a secret in their names.
    pub(super) fn mask_secrets(&mut self, redact: &dyn Fn(&str) -> String) {
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
        let dropped = self.documents.extract_if(.., holds_secret).count();
        (0..dropped).for_each(|_| self.leave_out("", SECRET_NAME));
    }
}
