//! Finds repeated requests by counting their words.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{format_list, one_line, truncate_text},
};

use super::{HABIT, PersonMemoryEdits, hash_key};
use crate::{
    facts::{self, Added, Facts},
    quoting::fold_naming_words,
    view,
};

/// Three occurrences make a pattern.
const OFTEN: usize = 3;
/// The maximum length of a habitual message, in characters.
const CHARS_MAX: usize = 160;
/// The minimum number of meaningful words; everybody says `ok`.
const WORDS_MIN: usize = 2;
/// The maximum number of messages named as sources.
const SOURCES_MAX: usize = 5;
/// The maximum number of patterns noted per reflection.
const PATTERNS_MAX: usize = 5;
const TOPIC: &str = "Habits";
/// The beginning of such a fact.
const BEGINS: &str = "Asked again and again: “";

/// A person's message, in their own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMessage {
    /// The database row.
    pub message: i64,
    /// The chat, if not the owner's.
    pub chat: Option<ChatRef>,
    /// The day by the person's clock.
    pub date: NaiveDate,
    /// The text on one line.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    chat: Option<ChatRef>,
    text: String,
    messages: Vec<i64>,
}

impl Pattern {
    /// Returns the key that limits noting to once, ever, because the person may have deleted the fact on purpose.
    pub(super) fn key(&self) -> String {
        build_key(self.chat, &sort_words(&self.text))
    }

    /// Describes the pattern for the log and the commit. Both belong to the owner, so no guest is quoted.
    pub(super) fn describe(&self) -> String {
        match self.chat {
            Some(chat) => format!("Noted a frequent request in chat {chat}"),
            None => format!("Noted a frequent request: “{}”", truncate_text(&self.text, 60)),
        }
    }

    /// Adds the pattern to the facts. `None` if it is there already.
    pub(super) fn add_to_facts(&self, text: &str, wake: &str) -> Option<String> {
        let skipped = self.messages.len().saturating_sub(SOURCES_MAX);
        let sources = format_list(self.messages.iter().skip(skipped).map(|id| format!("message {id}")));
        let fact = format!("{BEGINS}{}” ({} times; {sources})", self.text, self.messages.len());
        let last = self.messages.last().map(|id| format!(" message {id}")).unwrap_or_default();
        let origin = format!("wake {wake}{last}{}", view::format_origin(self.chat));
        match facts::add(text, Some(TOPIC), &fact, &origin) {
            Ok(Added::New { text, .. }) => Some(text),
            _ => None,
        }
    }
}

/// Returns the words of the repeated request in a fact.
fn parse_words(fact: &str) -> Option<Vec<String>> {
    fact.strip_prefix(BEGINS)?.split_once('”').map(|(asked, _)| sort_words(asked))
}

fn build_key(chat: Option<ChatRef>, words: &[String]) -> String {
    hash_key(HABIT, &format!("{}\n{}", view::format_origin(chat), words.join("\n")))
}

fn sort_words(text: &str) -> Vec<String> {
    let mut words = fold_naming_words(text);
    words.sort();
    words
}

/// Returns frequent requests that are new: not in the facts, never noted before, and never removed by a person.
pub(super) fn find_patterns(
    asked: &[PastMessage],
    facts: &str,
    by_hand: &PersonMemoryEdits,
    noted: &BTreeSet<String>,
) -> Vec<Pattern> {
    let mut by_words: BTreeMap<(Option<ChatRef>, Vec<String>), Vec<&PastMessage>> = BTreeMap::new();
    for one in asked.iter().filter(|one| one.text.chars().count() <= CHARS_MAX) {
        let words = sort_words(&one.text);
        if words.len() >= WORDS_MIN {
            by_words.entry((one.chat, words)).or_default().push(one);
        }
    }
    let (known, _) = Facts::parse(facts);
    let known: Vec<Vec<String>> = known.iter().filter_map(|(_, fact)| parse_words(&fact.text)).collect();
    let gone: Vec<Vec<String>> = by_hand.removed.iter().filter_map(|fact| parse_folded_words(fact)).collect();
    let often = by_words.into_iter().filter(|(_, said)| said.len() >= OFTEN);
    let new = often.filter(|((_, words), _)| !known.contains(words) && !gone.contains(words));
    new.filter(|((chat, words), _)| !noted.contains(&build_key(*chat, words)))
        .take(PATTERNS_MAX)
        .filter_map(|((chat, _), said)| {
            let text = one_line(&said.last()?.text).replace(['“', '”'], "\"");
            Some(Pattern { chat, text, messages: said.iter().map(|one| one.message).collect() })
        })
        .collect()
}

fn parse_folded_words(fact: &str) -> Option<Vec<String>> {
    fact.split_once('“')?.1.split_once('”').map(|(asked, _)| sort_words(asked))
}
