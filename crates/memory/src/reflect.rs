//! Reflection on past days by rule, without a model: summaries of each chat's day, repeated requests, facts that may be outdated,
//! contradictions, and the state of the tasks. Pure values in and out.
//!
//! A person's own writing outranks all of it: their lines keep every byte, and facts they removed never come back ([`PersonMemoryEdits`]).

mod days;
mod disputes;
mod patterns;
mod stale;
mod tasks;

use std::{collections::BTreeSet, ops::Range};

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{format_count, truncate_text},
};

pub use self::{
    days::add_reworded_summary,
    disputes::{Dispute, find_dispute, settle_dispute},
    patterns::PastMessage,
};
use super::{
    ACTIVE, BACKLOG, DAYS_DIR, EPISODIC_MEMORY, SEMANTIC_MEMORY,
    facts::{self, Facts},
    others,
    text::fold_text,
};

/// The words with which the reason of a reflecting wake begins. No other reason begins with them.
pub const REFLECTION: &str = "reflection on";

/// The prefix of the keys of contradictions.
pub const CONTRADICTION: &str = "contradiction/";
/// The prefix of the keys of repeated requests.
pub const HABIT: &str = "habit/";

/// Returns the path of the monthly document with a day's summaries.
pub fn days_path(date: NaiveDate) -> String {
    format!("{DAYS_DIR}/{}.md", date.format("%Y-%m"))
}

/// The person's own edits of the facts, from the memory's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonMemoryEdits {
    written: BTreeSet<String>,
    removed: BTreeSet<String>,
}

impl PersonMemoryEdits {
    /// Records a person's edit of the facts. Call with the newest edit first: older edits of the same fact are then ignored.
    pub fn note_edit(&mut self, before: &str, after: &str) {
        let texts = |text: &str| -> BTreeSet<String> {
            Facts::parse(text).0.iter().map(|(_, fact)| fold_text(&fact.text)).collect()
        };
        let (before, after) = (texts(before), texts(after));
        let written: Vec<String> =
            after.difference(&before).filter(|fact| !self.removed.contains(*fact)).cloned().collect();
        let removed: Vec<String> =
            before.difference(&after).filter(|fact| !self.written.contains(*fact)).cloned().collect();
        self.written.extend(written);
        self.removed.extend(removed);
    }

    /// Returns whether a person wrote or changed this fact: no wake is named as its origin, or a person's edit added it.
    pub fn has_written(&self, fact: &facts::Fact) -> bool {
        let is_of_wake = fact.origin.as_deref().is_some_and(|origin| origin.starts_with("wake "));
        !is_of_wake || self.written.contains(&fold_text(&fact.text))
    }

    /// Returns whether a person removed a fact with this text.
    pub fn took_out(&self, fact: &str) -> bool {
        self.removed.contains(&fold_text(fact))
    }
}

/// The input of a reflection.
pub struct ReflectionInput<'a> {
    /// The id of the reflecting wake.
    pub wake: &'a str,
    /// The days to reflect on, excluding the end.
    pub days: Range<NaiveDate>,
    /// Today.
    pub today: NaiveDate,
    /// Returns a document's text; empty if it doesn't exist.
    pub read: &'a dyn Fn(&str) -> String,
    /// The texts of the log's archived files.
    pub archive: &'a [String],
    /// Recent messages of people, in their own words.
    pub asked: &'a [PastMessage],
    /// The person's own edits.
    pub by_hand: &'a PersonMemoryEdits,
    /// The keys noted by earlier reflections. A key is noted only once.
    pub noted: &'a BTreeSet<String>,
    /// The chat of tasks without a chat of their own.
    pub owner_chat: ChatRef,
    /// Whether to mark contradictions.
    pub disputes: bool,
}

/// The result of a reflection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookedBack {
    /// The changed documents as pairs of path and new text.
    pub files: Vec<(String, String)>,
    /// Descriptions of the changes, in the past tense.
    pub receipts: Vec<String>,
    /// The state of the tasks, and backlog tasks worth reviewing.
    pub health: Vec<String>,
    /// New contradictions to ask about.
    pub disputes: Vec<Dispute>,
    /// The keys noted now.
    pub keys: Vec<String>,
}

/// Runs the reflection.
pub fn look_back(input: &ReflectionInput<'_>) -> LookedBack {
    let mut done = LookedBack::default();
    let known = (input.read)(SEMANTIC_MEMORY);
    let log = (input.read)(EPISODIC_MEMORY);
    let logs: Vec<&str> = input.archive.iter().map(String::as_str).chain([log.as_str()]).collect();
    done.health = tasks::describe_health(&(input.read)(ACTIVE), &(input.read)(BACKLOG), input.today, input.owner_chat);
    let mut days = days::chat_days(&logs, &known, input.asked, &input.days);
    let dates: BTreeSet<NaiveDate> = days.iter().map(|day| day.date).collect();
    if !days.is_empty() {
        done.receipts.push(format!("Summed up {}, each chat separately", format_count(dates.len(), "day")));
    }
    if let (false, Some(last)) = (done.health.is_empty(), input.days.end.pred_opt()) {
        days.push(days::build_health_day(last, &done.health));
        done.receipts.push("Looked at the tasks and the backlog".to_owned());
    }
    let mut files: Vec<(String, String)> = Vec::new();
    for day in &days {
        let path = days_path(day.date);
        match files.iter_mut().find(|(other, _)| *other == path) {
            Some((_, text)) => *text = day.append_summary(text, input.wake),
            None => files.push((path.clone(), day.append_summary(&(input.read)(&path), input.wake))),
        }
    }
    let mut facts = known.clone();
    for pattern in patterns::find_patterns(input.asked, &known, input.by_hand, input.noted) {
        if let Some(text) = pattern.add_to_facts(&facts, input.wake) {
            facts = text;
            done.keys.push(pattern.key());
            done.receipts.push(pattern.describe());
        }
    }
    let (dated, stale) = stale::mark_stale_facts(&facts, input.today, input.by_hand);
    if stale > 0 {
        facts = dated;
        done.receipts.push(format!("Dated {} that may be outdated", format_count(stale, "fact")));
    }
    let disputes = if input.disputes { disputes::find_disputes(&facts, input.noted) } else { Vec::new() };
    for found in disputes {
        facts = found.mark_facts(&facts, input.by_hand);
        done.receipts.push(format!(
            "Found a contradiction: “{}” and “{}”",
            shorten_text(&found.one),
            shorten_text(&found.other)
        ));
        done.keys.push(found.key());
        done.disputes.push(found);
    }
    if facts != known {
        files.push((SEMANTIC_MEMORY.to_owned(), facts));
    }
    done.files = files;
    done
}

/// Hashes a text into a key that doesn't reveal the text.
fn hash_key(begins: &str, text: &str) -> String {
    // FNV-1a is stable between runs.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{begins}{hash:016x}")
}

fn shorten_text(text: &str) -> String {
    truncate_text(text, 60)
}

/// Returns the untrusted lines of the facts, counted from 1.
fn list_untrusted_lines(text: &str) -> BTreeSet<usize> {
    others::line_ranges(SEMANTIC_MEMORY, text, None).into_iter().flat_map(|(first, last)| first..=last).collect()
}

/// Appends words to an item's text, before the origin comment.
fn append_words(item: &str, words: &str) -> String {
    let end = item.trim_end().len();
    let (kept, blank) = item.split_at_checked(end).unwrap_or((item, ""));
    let start = kept.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let (before, last) = kept.split_at_checked(start).unwrap_or(("", kept));
    let (text, comment) = super::text::split_comment(last);
    let origin = comment.map(|_| last.get(text.len()..).unwrap_or_default().trim()).unwrap_or_default();
    let shown = [text, words, origin].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    format!("{before}{shown}{blank}")
}

#[cfg(test)]
mod tests;
