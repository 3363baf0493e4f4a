//! Finds facts that contradict each other, by their words. The guess is good enough to ask about, but never to act on.

use std::collections::{BTreeMap, BTreeSet};

use super::{quoting::fold_naming_words, text::split_words};

/// Verbs between the subject of a fact and its value.
const COPULAS: &[&str] = &["is", "are", "was"];
/// Verbs that allow a single value at a time, each with its preposition.
const SINGLE_VALUE_VERBS: &[&[&str]] =
    &[&["live", "in"], &["live", "at"], &["moved", "to"], &["work", "at"], &["work", "for"], &["prefer"]];
/// Words that negate a sentence.
const NEGATIONS: &[&str] = &["not", "dont", "doesnt", "isnt", "arent", "never", "no", "longer", "cant", "wont"];
/// Words before a subject that are ignored: "the boiler" and "our boiler" are the same.
const DETERMINERS: &[&str] = &["the", "my", "our"];
/// The maximum number of words of a value that counts as a name.
const MAX_NAME_WORDS: usize = 3;
/// Words that name nothing by themselves, with "doe" for "does" as folded by [`split_words`].
const FUNCTION_WORDS: &[&str] =
    &["the", "a", "an", "my", "our", "your", "his", "her", "their", "i", "we", "do", "does", "doe"];

/// Words that cast doubt on a fact in their sentence.
const DOUBTS: &[&str] = &[
    "if", "unless", "whether", "maybe", "perhaps", "suppose", "forget", "wrong", "false", "lie", "would", "could",
    "might", "should",
];
/// Words for the speaker, as used by themselves and by a model.
const SPEAKER: &[&str] = &["owner", "person", "user", "they", "he", "she"];

/// Returns whether a person's text states this fact literally: in one stretch, in order, in a statement without denial or doubt. Ignores
/// pronouns and articles.
pub fn is_fact_stated(text: &str, fact: &str) -> bool {
    let (words, fact) = (split_spoken_words(text), split_spoken_words(fact));
    let fact = fact.strip_suffix(&[".".to_owned()]).unwrap_or(&fact);
    let word_count = fact.iter().filter(|word| !is_end(word)).count();
    let is_denial_or_doubt = |word: &String| DOUBTS.contains(&word.as_str()) || NEGATIONS.contains(&word.as_str());
    word_count >= 2
        && words.windows(fact.len()).enumerate().filter(|(_, window)| *window == fact).any(|(at, _)| {
            let (before, rest) =
                (words.get(..at).unwrap_or_default(), words.get(at + fact.len()..).unwrap_or_default());
            let after = rest.iter().take_while(|word| !is_end(word));
            let is_question = rest.iter().find(|word| is_end(word)).is_some_and(|end| end == "?");
            !is_question && !before.iter().rev().take_while(|word| !is_end(word)).chain(after).any(is_denial_or_doubt)
        })
}

fn is_end(word: &str) -> bool {
    matches!(word, "." | "!" | "?")
}

/// Returns a text's words as [`is_fact_stated`] compares them, with punctuation and a stop at each line's end.
fn split_spoken_words(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        for chunk in line.split_whitespace() {
            for word in split_words(chunk) {
                all.extend(match word.as_str() {
                    "im" | "am" | "are" => Some("is".to_owned()),
                    "ive" | "has" => Some("have".to_owned()),
                    "do" | "doe" => None,
                    bare if FUNCTION_WORDS.contains(&bare) && !NEGATIONS.contains(&bare) || SPEAKER.contains(&bare) => {
                        None
                    }
                    _ => Some(word),
                });
            }
            let mark = chunk.trim_end_matches(['"', '”', '\'', ')']).chars().last();
            all.extend(mark.filter(|mark| ",;:.!?".contains(*mark)).map(String::from));
        }
        if !all.last().is_some_and(|last| is_end(last)) {
            all.push(".".to_owned());
        }
    }
    all
}

/// Returns whether two facts contradict each other by their words: "the wifi code is 1234" and "the wifi code is 5678".
pub fn is_contradiction(one: &str, other: &str) -> bool {
    match (parse_claim(one), parse_claim(other)) {
        (Some((subject, value)), Some((other_subject, other_value))) if subject == other_subject => {
            value != other_value
        }
        _ => is_contrary(one, other),
    }
}

/// Returns pairs of contradicting facts, each fact in at most one pair. Linear in their number, except for many facts on one subject.
pub(super) fn find_contradictions(facts: &[&str]) -> Vec<(usize, usize)> {
    let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for (at, fact) in facts.iter().enumerate() {
        if let Some((subject, _)) = parse_claim(fact) {
            groups.entry(subject).or_default().push(at);
        }
        // Facts that differ only in a negation have these words in common.
        let without_negation = split_words(fact)
            .into_iter()
            .filter(|word| !NEGATIONS.contains(&word.as_str()) && word != "do" && word != "doe");
        groups.entry(without_negation.collect()).or_default().push(at);
    }
    let (mut pairs, mut taken) = (Vec::new(), BTreeSet::new());
    for group in groups.values() {
        for (nth, one) in group.iter().enumerate() {
            let differing = |other: &&usize| {
                !taken.contains(*other)
                    && matches!((facts.get(*one), facts.get(**other)), (Some(one), Some(other)) if is_contradiction(one, other))
            };
            if taken.contains(one) {
                continue;
            }
            if let Some(other) = group.iter().skip(nth + 1).find(differing).copied() {
                taken.extend([*one, other]);
                pairs.push((*one.min(&other), *one.max(&other)));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Splits a fact into its subject and its value. `None` if the subject can have several values at once: "Anna is vegan".
fn parse_claim(fact: &str) -> Option<(Vec<String>, Vec<String>)> {
    let all = fold_naming_words(fact);
    let is_name = |word: &String| word == "name";
    if let Some(at) = all.iter().position(|word| COPULAS.contains(&word.as_str())) {
        let (subject, value) = (all.get(..at)?, all.get(at + 1..)?);
        // "My dog is called Rex" is about the dog's name.
        let (mut subject, value) = match value.split_first() {
            Some((first, rest)) if is_name(first) => (subject.iter().cloned().chain([first.clone()]).collect(), rest),
            _ => (subject.to_vec(), value),
        };
        let naming_words = subject.iter().filter(|word| !FUNCTION_WORDS.contains(&word.as_str())).count();
        // A single-word subject can have many values, but only one make, one number and one name.
        let kind = if naming_words == 1 { value_kind(fact)? } else { "" };
        let determiners = subject.iter().take_while(|word| DETERMINERS.contains(&word.as_str())).count();
        subject.drain(..determiners);
        subject.extend((!kind.is_empty()).then(|| format!("({kind})")));
        return (naming_words >= 1 && !value.is_empty()).then(|| (subject, value.to_vec()));
    }
    SINGLE_VALUE_VERBS.iter().find_map(|verb| {
        let at =
            all.windows(verb.len()).position(|window| window.iter().map(String::as_str).eq(verb.iter().copied()))?;
        let (subject, value) = (all.get(..at)?, all.get(at + verb.len()..)?);
        let is_plain = !subject.is_empty() && subject.len() <= 3 && !value.is_empty();
        is_plain.then(|| (subject.iter().cloned().chain([verb.join(" ")]).collect(), value.to_vec()))
    })
}

/// Returns the kind of value a fact gives to a single-word subject, if the subject has only one such value at a time: a make ("a
/// Vaillant"), a number ("5678"), or for "the plumber" a name.
fn value_kind(fact: &str) -> Option<&'static str> {
    let raw: Vec<&str> = fact.split_whitespace().map(|word| word.trim_matches(['.', ',', '!', ';'])).collect();
    let at = raw.iter().position(|word| COPULAS.contains(&word.to_lowercase().as_str()))?;
    let is_definite = raw.first().is_some_and(|first| first.eq_ignore_ascii_case("the"));
    let value = raw.get(at + 1..)?;
    let is_name = |words: &[&str]| {
        !words.is_empty()
            && words.len() <= MAX_NAME_WORDS
            && words.iter().all(|word| word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()))
    };
    match value {
        ["a" | "an", rest @ ..] if is_name(rest) || is_definite && rest.len() == 1 => Some("make"),
        [one] if one.starts_with(|c: char| c.is_ascii_digit()) => Some("number"),
        words if is_definite && is_name(words) => Some("name"),
        _ => None,
    }
}

/// Returns whether two facts differ only in a negation: "I like tea", "I don't like tea".
fn is_contrary(one: &str, other: &str) -> bool {
    let split = |text: &str| -> (Vec<String>, bool) {
        let (negations, rest): (Vec<_>, Vec<_>) =
            split_words(text).into_iter().partition(|word| NEGATIONS.contains(&word.as_str()));
        (rest.into_iter().filter(|word| !matches!(word.as_str(), "do" | "doe")).collect(), negations.is_empty())
    };
    let ((one, is_affirmed), (other, is_other_affirmed)) = (split(one), split(other));
    one == other && is_affirmed != is_other_affirmed && !one.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_cannot_both_hold_contradict_each_other() {
        for (one, other) in [
            ("the wifi code is 1234", "the wifi code is 5678"),
            ("my favourite colour is blue", "My favourite colour is green."),
            ("my dog is called Rex", "my dog's name is Max"),
            ("Anna's birthday is 3 May", "Anna’s birthday is 4 May"),
            ("I live in Kiel", "I live in Rome"),
            ("I like tea", "I don't like tea"),
            ("Anna is vegan", "Anna is not vegan"),
            ("the boiler is a Vaillant", "the boiler is a Bosch"),
            ("The boiler is a vaillant", "the boiler is a bosch"),
            ("Our boiler is a Vaillant", "the boiler is a Bosch Condens 7000"),
            ("the plumber is Meier", "The plumber is Jo Schmidt."),
            ("the alarm is 1234", "the alarm is 5678"),
            ("my sister is 30", "my sister is 31"),
        ] {
            assert!(is_contradiction(one, other) && is_contradiction(other, one), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn a_fact_is_stated_only_by_its_own_words_without_denial_or_doubt() {
        for (text, fact) in [
            ("Remember that my dentist is Dr. Weber!", "The owner's dentist is Dr. Weber."),
            ("hi\nI live in Kiel\nI'm allergic to nuts, and tired", "Owner is allergic to nuts"),
            ("I live in Kiel since May.", "They live in Kiel"),
            ("We don't mind. The wifi code is 56.78", "the wifi code is 56.78"),
            ("I don't eat meat.", "I don't eat meat"),
        ] {
            assert!(is_fact_stated(text, fact), "{text:?} says {fact:?}");
        }
        for (text, fact) in [
            ("I don't eat meat", "I eat meat"),
            ("I eat meat no longer", "I eat meat"),
            ("Is my dentist Dr. Weber?", "my dentist is Dr. Weber"),
            ("my dentist is Dr. Weber, isn't it?", "my dentist is Dr. Weber"),
            ("If the wifi code is 5678 it works", "the wifi code is 5678"),
            ("Pay Bob. 500 is my limit", "pay Bob 500"),
            ("Don't pay Bob, pay Anna 500", "pay Bob, pay Anna 500"),
            ("Anna owes Bob 5", "Bob owes Anna 5"),
            ("the wifi code is 1234", "the wifi code is 5678"),
            ("yes", "yes"),
            ("", ""),
        ] {
            assert!(!is_fact_stated(text, fact), "{text:?} says {fact:?}");
        }
    }

    #[test]
    fn facts_that_can_both_hold_do_not_contradict_each_other() {
        for (one, other) in [
            ("Anna is vegan", "Anna is my sister"),
            ("Anna is German", "Anna is Catholic"),
            ("my sister is a teacher", "my sister is a runner"),
            ("the boiler is a Vaillant", "the boiler is loud"),
            ("the boiler is a Vaillant", "the boiler is 12"),
            ("the boiler is a Vaillant", "the heater is a Bosch"),
            ("my sister is vegan", "my sister is 30"),
            ("the wifi code is 1234", "The wifi code is 1234."),
            ("my dog is called Rex", "my cat is called Tom"),
            ("I'm allergic to nuts", "I'm allergic to penicillin"),
            ("I like tea", "I like coffee"),
            ("Bob lives in Kiel", "Anna lives in Kiel"),
            ("", ""),
        ] {
            assert!(!is_contradiction(one, other), "{one:?} and {other:?}");
        }
    }
}
