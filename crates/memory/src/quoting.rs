//! The fallback grammar's rule for answering a question: quote facts that contain its words. Real searches use `index`.
//!
//! Words are compared in lower case with plurals folded; the commonest English words don't count.

use std::collections::{BTreeSet, HashSet};

use chrono::NaiveDate;

use super::{
    DocKind,
    episodic::part_date,
    facts::origin_date,
    sections::{Document, Part},
    text::{is_blank, split_comment, split_lines, split_words},
    unsettled::{self, Unsettled},
};

/// The maximum number of facts quoted as an answer.
pub const MAX_QUOTES: usize = 5;

/// The maximum number of facts quoted if none answers.
pub const MAX_NEAREST: usize = 2;

/// Common words that don't tell the subject of a text, in the folded form of [`split_words`].
const STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "anything", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "doe", "dont", "ever", "for", "from", "had", "has", "have", "her", "him", "his", "how", "i", "if",
    "in", "is", "it", "its", "know", "me", "my", "of", "on", "or", "our", "please", "say", "she", "he", "should", "so",
    "tell", "that", "the", "their", "them", "there", "they", "this", "this", "to", "us", "was", "we", "were", "what",
    "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

/// A quoted fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedFact {
    /// The document's path, as given.
    pub path: String,
    /// The line number, counted from 1.
    pub line: usize,
    /// The line without list mark, indent and trailing HTML comment.
    pub text: String,
    /// The heading above: a task's title, a topic, a day; empty above the first heading.
    pub heading: String,
    /// The day of writing: the log's day, or the day of a fact's origin.
    pub date: Option<NaiveDate>,
    /// The unsettled conflict the line belongs to.
    pub unsettled: Option<Unsettled>,
}

/// Words that ask for or give a name, in the folded form of [`split_words`].
const NAMING: [&str; 3] = ["name", "called", "named"];

/// Returns the meaningful words of a query, without repetition.
pub fn content_words(query: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    split_words(query)
        .into_iter()
        .filter(|word| !STOP_WORDS.contains(&word.as_str()) && seen.insert(word.clone()))
        .collect()
}

/// Returns the words of a fact or a question, treating "my dog's name is", "my dog is named" and "my dog is called" alike.
pub(super) fn fold_naming_words(text: &str) -> Vec<String> {
    let plain = |word: String| if NAMING.contains(&word.as_str()) { NAMING[0].to_owned() } else { word };
    split_words(text).into_iter().map(plain).collect()
}

/// Returns the facts that answer a question without a model. A fact must contain all content words of the question; of three or more, one
/// may be missing. A fact's topic counts too, but the fact itself must have at least one of the words. Only the best matches are quoted, at
/// most [`MAX_QUOTES`], each with the other version of its unsettled conflict. `None` if no fact answers.
pub fn quote(docs: &[(&str, &str)], question: &str) -> Option<Vec<QuotedFact>> {
    let mut seen = HashSet::new();
    let wanted: Vec<String> = fold_naming_words(question)
        .into_iter()
        .filter(|word| !STOP_WORDS.contains(&word.as_str()) && seen.insert(word.clone()))
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let needed = if wanted.len() <= 2 { wanted.len() } else { wanted.len() - 1 };
    let mut found: Vec<(usize, QuotedFact)> = Vec::new();
    let mut versions: Vec<QuotedFact> = Vec::new();
    for (path, text) in docs.iter().filter(|(path, _)| DocKind::from_path(path) == DocKind::Facts) {
        visit_lines(path, text, |hit, is_item| {
            let own: BTreeSet<String> = fold_naming_words(&hit.text).into_iter().collect();
            let topic: BTreeSet<String> = fold_naming_words(&hit.heading).into_iter().collect();
            let matched = wanted.iter().filter(|word| own.contains(*word) || topic.contains(*word)).count();
            let by_itself = wanted.iter().any(|word| own.contains(word));
            versions.extend(hit.unsettled.is_some().then(|| hit.clone()));
            found.extend((is_item && by_itself && matched >= needed).then_some((matched, hit)));
        });
    }
    let best = found.iter().map(|(matched, _)| *matched).max()?;
    let mut quoted: Vec<QuotedFact> =
        found.into_iter().filter(|(matched, _)| *matched == best).map(|(_, hit)| hit).take(MAX_QUOTES).collect();
    let belongs =
        |version: &QuotedFact, hit: &QuotedFact| hit.path == version.path && hit.unsettled == version.unsettled;
    versions.retain(|version| !quoted.contains(version) && quoted.iter().any(|hit| belongs(version, hit)));
    quoted.extend(versions);
    Some(quoted)
}

/// Returns facts near a question without an answer: facts about somebody the question names, or about its "my" or "the" something. At most
/// [`MAX_NEAREST`], in document order.
pub fn find_nearest_facts(docs: &[(&str, &str)], question: &str) -> Vec<QuotedFact> {
    let subjects = find_subjects(question);
    let wanted = content_words(question);
    let asks_age = question.to_lowercase().contains("old am i");
    let mut found = Vec::new();
    for (path, text) in docs.iter().filter(|(path, _)| DocKind::from_path(path) == DocKind::Facts) {
        visit_lines(path, text, |hit, is_item| {
            let names = find_names(&hit.text);
            let own = split_words(&hit.text);
            let is_near = wanted.iter().any(|word| names.contains(word))
                || subjects.iter().any(|word| own.contains(word))
                || asks_age && hit.text.to_lowercase().starts_with("i was born");
            if is_item && is_near && found.len() < MAX_NEAREST {
                found.push(hit);
            }
        });
    }
    found
}

/// Splits a text into words as written.
fn written_words(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    let plain = |word: &'_ str| word.trim_end_matches("'s").trim_end_matches("’s").len();
    parts.map(|word| word.get(..plain(word)).unwrap_or_default()).filter(|word| !word.is_empty()).collect()
}

/// Returns the names in a text: capitalised words, in the folded form of [`split_words`]. A capitalised first word counts unless it is common.
fn find_names(text: &str) -> HashSet<String> {
    let names = written_words(text).into_iter().filter(|word| word.starts_with(char::is_uppercase));
    names
        .flat_map(split_words)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()) && word.chars().count() > 2)
        .collect()
}

/// Returns the subjects of a question: the words after "my", "our" or "the".
fn find_subjects(question: &str) -> Vec<String> {
    let words = written_words(question);
    let is_lead = |word: &str| ["my", "our", "the"].iter().any(|lead| word.eq_ignore_ascii_case(lead));
    let behind = words.windows(2).filter(|pair| matches!(pair, [lead, _] if is_lead(lead)));
    let mut subjects: Vec<String> = behind.filter_map(|pair| pair.last()).flat_map(|word| split_words(word)).collect();
    subjects.retain(|word| !STOP_WORDS.contains(&word.as_str()) && word.chars().count() > 2);
    subjects
}

/// Calls `take` for each line except blank ones, comments and headings, and tells it whether the line is a bullet item. A wrapped item
/// counts as a single line.
fn visit_lines(path: &str, text: &str, mut take: impl FnMut(QuotedFact, bool)) {
    let document = Document::split(text);
    let conflicts = unsettled::find_conflicts(text);
    let hit = |part: &Part, line: usize, raw: &str| {
        let own = line..line + split_lines(raw).count();
        let conflict = conflicts.iter().find(|conflict| conflict.lines.iter().any(|line| own.contains(line)));
        QuotedFact { unsettled: conflict.cloned(), ..build_quote(path, part, line, raw) }
    };
    for part in &document.parts {
        let mut at = part.body_start;
        let mut take_other_lines = |from: usize, to: usize| {
            let mut at = from;
            for line in split_lines(document.slice(&(from..to))) {
                let range = at..at + line.len();
                at = range.end;
                let hit = hit(part, document.line_number(range.start), line);
                if !is_blank(&hit.text) && !document.is_comment(&range) {
                    take(hit, false);
                }
            }
        };
        for item in &part.items {
            take_other_lines(at, item.start);
            at = item.end;
        }
        take_other_lines(at, part.range.end);
        for item in &part.items {
            take(hit(part, document.line_number(item.start), document.slice(item)), true);
        }
    }
}

fn build_quote(path: &str, part: &Part, line: usize, raw: &str) -> QuotedFact {
    let mut date = part_date(part);
    let mut shown: Vec<&str> = Vec::new();
    let raw = unsettled::remove_marks(raw);
    for line in split_lines(&raw) {
        let (text, comment) = split_comment(line);
        date = date.or_else(|| comment.and_then(origin_date));
        shown.push(text.trim());
    }
    let joined = shown.join(" ");
    let text = joined.trim().trim_start_matches(['-', '*', '+']).trim();
    QuotedFact {
        path: path.to_owned(),
        line,
        text: text.to_owned(),
        heading: part.title.clone(),
        date,
        unsettled: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ACTIVE, EPISODIC_MEMORY, SEMANTIC_MEMORY, strategies::document};

    const FACTS: &str = "## People\n- Anna’s birthday is 3 May <!-- wake 20261121T140302Z-812 message 41 -->\n- Bob likes\n  green tea\n\n## Car\n- plate is B-XY 12\n\nThe birthday of nobody.\n";

    #[test]
    fn the_nearest_facts_share_a_questions_subject() {
        const PEOPLE: &str = "# Facts\n\n## People\n- My daughter's name is Ottilie and she goes to Birchwood Primary\n- I lent Rasmus 40 quid\n\
                             - my dad was born in 1954\n- I was born on 22 February 1986\n- the boiler is a Bosch\n";
        let docs = [(SEMANTIC_MEMORY, PEOPLE)];
        for (question, near) in [
            ("which school does ottilie go to", "Birchwood"),
            ("how much does Rasmus owe me", "40 quid"),
            ("how old is my dad", "1954"),
            ("how old am I", "1986"),
            ("what make is the boiler", "Bosch"),
        ] {
            let found = find_nearest_facts(&docs, question);
            assert!(found.first().is_some_and(|fact| fact.text.contains(near)), "{question}: {found:?}");
        }
        for question in ["who won the cup in 1998", "do I have a brother", "where is my key", "is today a holiday"] {
            assert_eq!(find_nearest_facts(&docs, question), [], "{question}");
        }
    }

    const LOG: &str =
        "## 2026-11-20\n- 09:00 told Anna of tea\n\n## 2026-11-21\n- 10:00 told Bob of tea\n- 11:00 told Anna of tea\n";

    fn docs() -> [(&'static str, &'static str); 3] {
        [(SEMANTIC_MEMORY, FACTS), (EPISODIC_MEMORY, LOG), (ACTIVE, "## Buy teas\n- why: Bob\n\ngreen ones\n")]
    }

    fn quoted(question: &str) -> Vec<String> {
        quote(&docs(), question).unwrap_or_default().into_iter().map(|hit| hit.text).collect()
    }

    #[test]
    fn comments_are_not_quoted() {
        let found = |text: &str| quote(&[(SEMANTIC_MEMORY, text)], "tea").map_or(0, |hits| hits.len());
        assert_eq!(found("<!-- - tea\n  - tea\n-->\n\n- a <!-- tea -->\n"), 0);
        assert_eq!(found("- tea <!-- kept -->\n"), 1);
        for (path, text) in crate::templates::list_files() {
            assert_eq!(quote(&[(path, text)], "topic fact"), None, "{path}");
        }
    }

    #[test]
    fn a_question_is_answered_by_a_fact_or_not_at_all() {
        assert_eq!(quoted("When is Anna's birthday?"), ["Anna’s birthday is 3 May"]);
        assert_eq!(quoted("what is the plate of my car"), ["plate is B-XY 12"]);
        assert_eq!(quoted("which green tea does Bob prefer"), ["Bob likes green tea"]);
        for no_answer in
            ["What is it?", "Who is Bob's boss?", "birthday", "what about Anna and her car?", "?", "people"]
        {
            if no_answer == "birthday" {
                assert_eq!(quoted(no_answer).len(), 1);
            } else {
                assert_eq!(quoted(no_answer), Vec::<String>::new(), "{no_answer}");
            }
        }
        let hits = quote(&docs(), "Anna's birthday").unwrap();
        assert_eq!(hits[0].date, NaiveDate::from_ymd_opt(2026, 11, 21));
        assert_eq!((hits[0].line, hits[0].heading.as_str()), (2, "People"));
    }

    proptest! {
        #[test]
        fn quotes_begin_with_a_word_of_the_text(text in document(), query in "[a-z ]{0,20}|fact|hello code") {
            for hit in quote(&[(SEMANTIC_MEMORY, &text)], &query).unwrap_or_default() {
                let first = hit.text.split_whitespace().next().unwrap_or_default().to_owned();
                prop_assert!(text.contains(&first));
            }
        }
    }
}
