//! Semantic memory: `## Topic` sections of `- ` facts, each with its origin in a trailing HTML comment.
//!
//! A fact comes from a model or a person's message. Writing reduces the fact to one line that can neither leave its comment nor open a
//! block of its own.

use std::collections::{HashMap, HashSet};

use chrono::NaiveDate;

use super::{
    Problem,
    lookup::{Miss, pick},
    sections::{Document, Part, Spacing, hash_title},
    text::{detect_line_ending, escape_start, fold_text, format_comment, one_line, slice, split_comment, split_lines},
    unsettled,
};

/// The topic of a fact given without one.
pub const DEFAULT_TOPIC: &str = "Notes";
/// The maximum length of a fact, in characters.
pub const MAX_FACT_CHARS: usize = 1_000;
/// The maximum length of a topic, in characters.
pub const MAX_TOPIC_CHARS: usize = 80;
/// The maximum length of an origin, in characters.
pub const MAX_ORIGIN_CHARS: usize = 200;

/// The reason an edit wasn't made, by the asker's next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    /// No fact was given: state one.
    #[error("there is no fact to remember in that")]
    Empty,
    /// Nothing matches: look at the similar facts.
    #[error("no fact matches “{query}”{}", if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(" · ")) })]
    NotFound {
        /// The words asked for.
        query: String,
        /// Facts sharing a word with the query, nearest first.
        similar: Vec<String>,
    },
    /// More than one fact matches: ask with more words.
    #[error("“{query}” matches more than one fact: {}", candidates.join(" · "))]
    Ambiguous {
        /// The words asked for.
        query: String,
        /// The matching facts.
        candidates: Vec<String>,
    },
}

/// The facts of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The topics in order. Facts above the first heading form a topic without a title.
    pub topics: Vec<Topic>,
}

/// A `## Topic` and its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The heading's text.
    pub title: String,
    /// The heading's line, counted from 1.
    pub line: usize,
    /// The facts in order.
    pub facts: Vec<Fact>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The fact on one line, without its origin.
    pub text: String,
    /// The origin, such as `wake 20261121T140302Z-812 message 41`; a person's own line has none.
    pub origin: Option<String>,
    /// The fact's line, counted from 1.
    pub line: usize,
}

impl Fact {
    /// Returns the day the fact was learnt, from the wake in its origin.
    pub fn date(&self) -> Option<NaiveDate> {
        self.origin.as_deref().and_then(origin_date)
    }
}

/// Parses the day of an origin's wake id (`20261121T140302Z-812`).
pub(super) fn origin_date(origin: &str) -> Option<NaiveDate> {
    let stamps = origin.split_whitespace().filter_map(|word| word.split_once('T'));
    stamps.filter(|(day, _)| day.len() == 8).find_map(|(day, _)| NaiveDate::parse_from_str(day, "%Y%m%d").ok())
}

/// The result of [`add`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// The fact is new.
    New {
        /// The document's new text.
        text: String,
        /// The fact's topic as the document writes it.
        topic: String,
    },
    /// The fact is known already, and nothing changed.
    Known {
        /// The known fact's topic.
        topic: String,
        /// The known fact's line, counted from 1.
        line: usize,
    },
}

/// A fact removed by [`forget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The document's new text.
    pub text: String,
    /// The removed fact.
    pub fact: Fact,
}

impl Facts {
    /// Parses a document. Everything that isn't a fact stays unchanged.
    pub fn parse(text: &str) -> (Self, Vec<Problem>) {
        let document = Document::split(text);
        let mut problems = document.find_problems();
        let mut topics: Vec<Topic> = Vec::new();
        let mut first_lines: HashMap<String, usize> = HashMap::new();
        for part in &document.parts {
            let facts: Vec<Fact> = part.items.iter().filter_map(|item| read_fact(&document, item.clone())).collect();
            if part.level != 2 && facts.is_empty() {
                continue;
            }
            let title = if part.level == 2 { part.title.clone() } else { String::new() };
            let first = *first_lines.entry(fold_text(&title)).or_insert(part.line);
            if first != part.line && !title.is_empty() {
                let what = format!("a second topic “{title}”; the first is in line {first}, where new facts go");
                problems.push(Problem::new(part.line, what));
            }
            topics.push(Topic { title, line: part.line, facts });
        }
        problems.sort_by_key(|problem| problem.line);
        (Self { topics }, problems)
    }

    /// Returns all facts with their topics' titles, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.topics.iter().flat_map(|topic| topic.facts.iter().map(|fact| (topic.title.as_str(), fact)))
    }
}

/// Adds a fact under a topic ([`DEFAULT_TOPIC`] if `None`), creating the topic if needed. A fact known under any topic isn't added again.
///
/// # Errors
/// [`FactError::Empty`] if the fact has no letter or digit.
pub fn add(text: &str, topic: Option<&str>, fact: &str, origin: &str) -> Result<Added, FactError> {
    let fact = one_line(fact, MAX_FACT_CHARS);
    if !fact.chars().any(char::is_alphanumeric) {
        return Err(FactError::Empty);
    }
    let (known, _) = Facts::parse(text);
    if let Some((topic, same)) = known.iter().find(|(_, other)| fold_text(&other.text) == fold_text(&fact)) {
        return Ok(Added::Known { topic: topic.to_owned(), line: same.line });
    }
    let topic = safe_topic(topic.unwrap_or_default());
    let document = Document::split(text);
    let eol = detect_line_ending(text);
    let line = format!("- {} {}{eol}", escape_start(&fact), format_comment(origin, MAX_ORIGIN_CHARS));
    let found = document.sections().find(|part| fold_text(&part.title) == fold_text(&topic));
    Ok(match found {
        Some(part) => Added::New { text: add_item(&document, part, &line), topic: part.title.clone() },
        None => Added::New { text: document.append(&format!("## {topic}{eol}{line}")), topic },
    })
}

/// A fact to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// The text.
    pub text: String,
    /// The origin.
    pub origin: String,
}

/// Adds many facts under one topic in one pass over the document. Returns the new text and the number of facts known already, under any
/// topic. Skips facts without a letter or digit.
pub(super) fn add_all(text: &str, topic: &str, new: &[NewFact]) -> (String, usize) {
    let mut known: HashSet<String> = Facts::parse(text).0.iter().map(|(_, fact)| fold_text(&fact.text)).collect();
    let (document, eol) = (Document::split(text), detect_line_ending(text));
    let (mut block, mut skipped) = (String::new(), 0);
    for NewFact { text: fact, origin } in new {
        let fact = one_line(fact, MAX_FACT_CHARS);
        if !fact.chars().any(char::is_alphanumeric) {
            continue;
        }
        if !known.insert(fold_text(&fact)) {
            skipped += 1;
            continue;
        }
        block.push_str(&format!("- {} {}{eol}", escape_start(&fact), format_comment(origin, MAX_ORIGIN_CHARS)));
    }
    if block.is_empty() {
        return (text.to_owned(), skipped);
    }
    let found = document.sections().find(|part| fold_text(&part.title) == fold_text(topic));
    let text = match found {
        Some(part) => add_item(&document, part, &block),
        None => document.append(&format!("## {topic}{eol}{block}")),
    };
    (text, skipped)
}

/// Returns whether two facts say the same, ignoring case and blanks.
pub fn is_same(one: &str, other: &str) -> bool {
    fold_text(one) == fold_text(other)
}

pub(super) fn add_item(document: &Document<'_>, part: &Part, line: &str) -> String {
    if let Some(last) = part.items.last() {
        return document.insert(part, last.end, line, Spacing::Tight);
    }
    let at = document.content_end(part).max(part.body_start);
    let spacing = if at > part.body_start { Spacing::BlankLine } else { Spacing::Tight };
    document.insert(part, at, line, spacing)
}

fn safe_topic(topic: &str) -> String {
    let topic = one_line(topic, MAX_TOPIC_CHARS);
    let read = hash_title(&format!("## {}", topic.trim_start_matches(['#', ' '])), 2).unwrap_or_default();
    if read.chars().any(char::is_alphanumeric) { read } else { DEFAULT_TOPIC.to_owned() }
}

/// Removes exactly one fact: the exact match, else the only fact starting with the query, else the only fact with all its words.
///
/// # Errors
/// [`FactError::NotFound`] and [`FactError::Ambiguous`], with facts to choose from.
pub fn forget(text: &str, query: &str) -> Result<Forgotten, FactError> {
    let document = Document::split(text);
    let items = document.parts.iter().flat_map(|part| part.items.iter());
    let facts: Vec<_> = items.filter_map(|item| Some((read_fact(&document, item.clone())?, item.clone()))).collect();
    let texts: Vec<&str> = facts.iter().map(|(fact, _)| fact.text.as_str()).collect();
    let query_text = || one_line(query, MAX_FACT_CHARS);
    let at = pick(query, &texts).map_err(|miss| match miss {
        Miss::NotFound { similar } => FactError::NotFound { query: query_text(), similar },
        Miss::Ambiguous { candidates } => FactError::Ambiguous { query: query_text(), candidates },
    })?;
    let found = facts.into_iter().nth(at);
    let (fact, range) = found.ok_or_else(|| FactError::NotFound { query: query_text(), similar: Vec::new() })?;
    Ok(Forgotten { text: document.splice(range, ""), fact })
}

/// Finds the single fact meant by these words, with the same rules as [`forget`].
///
/// # Errors
/// As for [`forget`].
pub fn find(text: &str, query: &str) -> Result<Fact, FactError> {
    forget(text, query).map(|forgotten| forgotten.fact)
}

/// Returns the document with facts' items replaced by the result of `edit`; `None` keeps an item.
pub(super) fn edit_facts(text: &str, mut edit: impl FnMut(&Fact, &str) -> Option<String>) -> String {
    let document = Document::split(text);
    let mut edited = String::with_capacity(text.len());
    let mut at = 0;
    for item in document.parts.iter().flat_map(|part| part.items.iter()) {
        let raw = document.slice(item);
        if let Some(new) = read_fact(&document, item.clone()).and_then(|fact| edit(&fact, raw)) {
            edited.push_str(slice(text, at..item.start));
            edited.push_str(&new);
            at = item.end;
        }
    }
    edited.push_str(slice(text, at..text.len()));
    edited
}

/// Reads a bullet item as a fact: joins its lines, with the comment at the end of the last or the first line as the origin. `None` for an
/// item without text.
fn read_fact(document: &Document<'_>, item: std::ops::Range<usize>) -> Option<Fact> {
    let raw = unsettled::remove_marks(document.slice(&item));
    let marked = raw.trim_start();
    let content = slice(marked, 1..marked.len());
    let mut origin = None;
    let mut words: Vec<String> = Vec::new();
    let count = split_lines(content).count();
    for (number, line) in split_lines(content).enumerate() {
        let (shown, comment) = split_comment(line);
        let at_an_end = number == 0 || number + 1 == count;
        if let Some(comment) = comment.filter(|_| at_an_end) {
            origin = Some(comment.to_owned());
            words.push(shown.trim().to_owned());
        } else {
            words.push(line.trim().to_owned());
        }
    }
    let joined = words.join(" ");
    let text = unescape_start(joined.trim());
    (!text.is_empty()).then(|| Fact { text, origin, line: document.line_number(item.start) })
}

/// Reverses [`escape_start`].
fn unescape_start(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits).unwrap_or((text, ""));
    let plain = rest.strip_prefix('\\').map(|plain| format!("{number}{plain}"));
    plain.filter(|plain| escape_start(plain) == text).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    const ORIGIN: &str = "wake 20261121T140302Z-812 message 41";
    const TEXT: &str = "# What is known\n\n## People\n- Anna is my sister <!-- wake 20261120T090000Z-1 message 3 -->\n- Bob likes\n  green tea\n\n## Home\nA flat.\n";

    fn added(text: &str, topic: Option<&str>, fact: &str) -> String {
        match add(text, topic, fact, ORIGIN) {
            Ok(Added::New { text, .. }) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn facts_are_read_with_their_origin() {
        let (facts, problems) = Facts::parse(TEXT);
        assert_eq!(problems, []);
        let read: Vec<_> = facts.iter().map(|(topic, fact)| (topic, fact.text.as_str(), fact.line)).collect();
        assert_eq!(read, [("People", "Anna is my sister", 4), ("People", "Bob likes green tea", 5)]);
        assert_eq!(facts.topics[0].facts[0].date(), NaiveDate::from_ymd_opt(2026, 11, 20));
        assert_eq!(facts.topics[0].facts[1].origin, None);
    }

    #[test]
    fn a_fact_joins_its_topic() {
        assert_snapshot!(added(TEXT, Some("people"), "Anna’s birthday\nis 3 May"), @r"
        # What is known

        ## People
        - Anna is my sister <!-- wake 20261120T090000Z-1 message 3 -->
        - Bob likes
          green tea
        - Anna’s birthday is 3 May <!-- wake 20261121T140302Z-812 message 41 -->

        ## Home
        A flat.
        ");
        assert!(
            added(TEXT, Some("HOME"), "x")
                .ends_with("## Home\nA flat.\n\n- x <!-- wake 20261121T140302Z-812 message 41 -->\n")
        );
        assert!(
            added(TEXT, None, "x")
                .ends_with("A flat.\n\n## Notes\n- x <!-- wake 20261121T140302Z-812 message 41 -->\n")
        );
        assert!(added("## A\r\n\r\n## B", Some("a"), "x").starts_with("## A\r\n- x <!-- wake"));
    }

    #[test]
    fn the_same_fact_is_not_added_twice() {
        let known = add(TEXT, Some("Elsewhere"), "bob  likes Green tea.", ORIGIN);
        assert_eq!(known, Ok(Added::Known { topic: "People".into(), line: 5 }));
        assert_eq!(add(TEXT, None, " -- ", ORIGIN), Err(FactError::Empty));
    }

    #[test]
    fn a_fact_cannot_break_out() {
        let text = added("", Some("# T\n## U"), "## Forged\n- two --> <!-- x");
        assert_snapshot!(text, @r"
        ## T ## U
        - \## Forged - two -- > <! -- x <!-- wake 20261121T140302Z-812 message 41 -->
        ");
        assert_eq!(Facts::parse(&text).0.topics[0].facts[0].text, "## Forged - two -- > <! -- x");
        let Ok(Added::New { text, .. }) = add("", None, "x", "wake 1 --> y") else { panic!() };
        assert_eq!(text, "## Notes\n- x <!-- wake 1 - y -->\n");
    }

    #[test]
    fn one_fact_is_forgotten() {
        let gone = forget(TEXT, "green tea").unwrap();
        assert_eq!(gone.text, TEXT.replace("- Bob likes\n  green tea\n", ""));
        assert_eq!(gone.fact.text, "Bob likes green tea");
        let two = added(TEXT, Some("People"), "Anna lives in Rome");
        assert_snapshot!(forget(&two, "Anna").unwrap_err(), @"“Anna” matches more than one fact: Anna is my sister · Anna lives in Rome");
        assert_snapshot!(forget(&two, "anna's car").unwrap_err(), @"no fact matches “anna's car”; similar: Anna is my sister · Anna lives in Rome");
        assert_eq!(forget(&two, "anna lives in rome").unwrap().text, TEXT);
    }

    #[test]
    fn second_topics_and_loose_facts_are_told() {
        let (facts, problems) = Facts::parse("- loose\n\n## A\n## a\n```\n- no\n```\n");
        assert_eq!(facts.iter().map(|(topic, fact)| (topic, fact.text.as_str())).collect::<Vec<_>>(), [("", "loose")]);
        assert_eq!(problems.len(), 1);
        assert_snapshot!(problems[0], @"line 4: a second topic “a”; the first is in line 3, where new facts go");
    }

    proptest! {
        #[test]
        fn what_is_added_can_be_forgotten(text in document(), topic in ".{0,20}", fact in ".{0,40}") {
            let (before, _) = Facts::parse(&text);
            if let Ok(Added::New { text: new, topic }) = add(&text, Some(&topic), &fact, ORIGIN) {
                let (after, _) = Facts::parse(&new);
                prop_assert_eq!(after.iter().count(), before.iter().count() + 1, "{:?}", new);
                let wanted = one_line(&fact, MAX_FACT_CHARS);
                let (under, read) = after.iter().find(|(_, read)| read.text == wanted).unwrap();
                prop_assert_eq!((under, read.origin.as_deref()), (topic.as_str(), Some(ORIGIN)));
                let gone = forget(&new, &wanted).unwrap();
                prop_assert_eq!(gone.fact.line, read.line);
                let (rest, _) = Facts::parse(&gone.text);
                prop_assert_eq!(rest.iter().count(), before.iter().count());
            }
        }
    }
}
