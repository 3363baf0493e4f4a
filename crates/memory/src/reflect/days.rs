//! Summaries of each chat's day, from the effects in the log, the questions asked, and the facts learned.
//!
//! The documents have the shape of the log. The log's rules for ownership and untrusted parts therefore apply to their entries.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{format_count, truncate_text},
};

use super::{PastMessage, REFLECTION};
use crate::{
    episodic::{self, Log},
    facts::Facts,
    others,
    sections::Document,
    text::{split_comment, split_lines},
    view,
};

/// The beginning of a summary of the owner's day.
const OWN: &str = "With you";
/// The maximum number of effects listed per day.
const EFFECTS_MAX: usize = 20;
/// The maximum number of questions quoted per day.
const ASKED_MAX: usize = 8;
/// The maximum number of characters quoted per question.
const ASKED_CHARS_MAX: usize = 100;
/// The maximum number of facts listed per day.
const FACTS_MAX: usize = 8;

/// One chat's day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatDay {
    pub(super) date: NaiveDate,
    chat: Option<ChatRef>,
    has_read_others: bool,
    lines: Vec<String>,
}

impl ChatDay {
    /// Appends the summary to the month's document.
    pub(super) fn append_summary(&self, text: &str, wake: &str) -> String {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        let mark = format!("{wake}{}{}", view::format_origin(self.chat), others::format_mark(self.has_read_others));
        episodic::append_untimed_entry(text, self.date, &lines, &mark)
    }
}

/// Builds the entry for the state of the tasks at the end of a day.
pub(super) fn build_health_day(date: NaiveDate, health: &[String]) -> ChatDay {
    let lines = std::iter::once("Tasks".to_owned()).chain(health.iter().map(|line| format!("- {line}"))).collect();
    ChatDay { date, chat: None, has_read_others: false, lines }
}

/// The group of a summary: effects for another chat and effects of tainted wakes are summed up separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SummaryGroup {
    date: NaiveDate,
    chat: Option<ChatRef>,
    has_read_others: bool,
}

/// The origin of a log entry, by its comment.
#[derive(PartialEq, Eq)]
struct EntryOrigin<'a> {
    /// `None` for a person's own line.
    wake: Option<&'a str>,
    chat: Option<ChatRef>,
    /// True if the wake was clean. A person's own line counts as clean.
    is_own: bool,
}

#[derive(Default)]
struct DayEffects {
    wakes: BTreeSet<String>,
    lines: Vec<String>,
}

pub(super) fn chat_days(logs: &[&str], facts: &str, asked: &[PastMessage], days: &Range<NaiveDate>) -> Vec<ChatDay> {
    let mut by_whom: BTreeMap<SummaryGroup, DayEffects> = BTreeMap::new();
    for log in logs {
        for day in Log::parse(log).0.days.into_iter().filter(|day| days.contains(&day.date)) {
            for entry in &day.entries {
                let comment = entry.wake.as_deref().unwrap_or_default();
                let mut lines = entry.text.lines().map(|line| line.trim_start_matches("- ").trim());
                let first = lines.next().unwrap_or_default();
                if first.starts_with(&format!("Woke for {REFLECTION}")) {
                    continue;
                }
                let EntryOrigin { wake, chat, is_own } = parse_comment(comment);
                let group = SummaryGroup { date: day.date, chat, has_read_others: !is_own };
                let effects = by_whom.entry(group).or_default();
                effects.wakes.extend(wake.map(str::to_owned));
                // An entry without a wake is a person's own line.
                let first = wake.is_none().then_some(first);
                for line in first.into_iter().chain(lines).filter(|line| !line.is_empty()) {
                    if !effects.lines.iter().any(|other| other == line) {
                        effects.lines.push(line.to_owned());
                    }
                }
            }
        }
    }
    let (known, _) = Facts::parse(facts);
    by_whom.into_iter().map(|(group, effects)| summarize_day(group, &effects, &known, asked)).collect()
}

/// Parses an entry's comment.
fn parse_comment(comment: &str) -> EntryOrigin<'_> {
    let words: Vec<&str> = comment.split_whitespace().collect();
    let ["wake", wake, rest @ ..] = words.as_slice() else {
        return EntryOrigin { wake: None, chat: None, is_own: true };
    };
    let (chat, is_own) = match rest {
        ["own"] => (None, true),
        ["chat", chat, "own"] => (chat.parse().ok(), chat.parse::<ChatRef>().is_ok()),
        ["chat", chat, ..] => (chat.parse().ok(), false),
        _ => (None, false),
    };
    EntryOrigin { wake: Some(wake), chat, is_own }
}

fn summarize_day(group: SummaryGroup, effects: &DayEffects, known: &Facts, asked: &[PastMessage]) -> ChatDay {
    let SummaryGroup { date, chat, has_read_others } = group;
    let who = chat.map_or_else(|| OWN.to_owned(), |chat| format!("In chat {chat}"));
    let mut all = vec![format!("{who}: {}", format_count(effects.wakes.len(), "wake"))];
    // A person's words appear in only one of their two summaries.
    let said: Vec<&PastMessage> =
        asked.iter().filter(|asked| !has_read_others && asked.chat == chat && asked.date == date).collect();
    let quoted = |asked: &&PastMessage| format!("- Asked: “{}”", truncate_text(&asked.text, ASKED_CHARS_MAX));
    all.extend(said.iter().take(ASKED_MAX).map(quoted));
    all.extend(
        (said.len() > ASKED_MAX).then(|| format!("- and {} more", format_count(said.len() - ASKED_MAX, "message"))),
    );
    all.extend(effects.lines.iter().take(EFFECTS_MAX).map(|line| format!("- {line}")));
    let left_out = effects.lines.len().saturating_sub(EFFECTS_MAX);
    all.extend((left_out > 0).then(|| format!("- and {left_out} more")));
    let is_of_day = |origin: &str| origin.split_whitespace().nth(1).is_some_and(|wake| effects.wakes.contains(wake));
    let facts = known.iter().filter(|(_, fact)| fact.origin.as_deref().is_some_and(is_of_day));
    all.extend(facts.take(FACTS_MAX).map(|(_, fact)| format!("- Key fact: {}", fact.text)));
    ChatDay { date, chat, has_read_others, lines: all }
}

/// Adds a reworded summary of the owner's day to the month's document. It replaces the summary by rule of the same wake, if present.
pub fn add_reworded_summary(
    text: &str,
    date: NaiveDate,
    (wake, has_read_others): (&str, bool),
    words: &[String],
) -> String {
    let head = std::iter::once(format!("{OWN}: {}", words.first().map_or("", String::as_str)));
    let all: Vec<String> = head.chain(words.iter().skip(1).map(|line| format!("- {line}"))).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let document = Document::split(text);
    let is_same = |item: &&Range<usize>| {
        let first = split_lines(document.slice(item)).next().unwrap_or_default();
        let (text, comment) = split_comment(first);
        let is_ours =
            parse_comment(comment.unwrap_or_default()) == EntryOrigin { wake: Some(wake), chat: None, is_own: true };
        is_ours && text.trim_start_matches("- ").starts_with(OWN)
    };
    let days = document.sections().filter(|part| episodic::part_date(part) == Some(date));
    let found = days.flat_map(|part| part.items.iter()).find(is_same).cloned();
    let rest = found.map_or_else(|| text.to_owned(), |item| document.splice(item, ""));
    episodic::append_untimed_entry(&rest, date, &all, &format!("{wake}{}", others::format_mark(has_read_others)))
}
