//! Whether two facts say different things of the same: a guess by their words, good enough to ask about and never to act on.

use std::collections::{BTreeMap, BTreeSet};

use super::{quoting::meant_words, text::words};

/// Between what is spoken of and what is said of it.
const COPULAS: &[&str] = &["is", "are", "was"];
/// Verbs of which one thing is true at a time, with what goes before the value.
const SINGLE: &[&[&str]] =
    &[&["live", "in"], &["live", "at"], &["moved", "to"], &["work", "at"], &["work", "for"], &["prefer"]];
/// What says the contrary.
const NEGATIONS: &[&str] = &["not", "dont", "doesnt", "isnt", "arent", "never", "no", "longer", "cant", "wont"];
/// Words that name nothing by themselves.
const BARE: &[&str] = &["the", "a", "an", "my", "our", "your", "his", "her", "their", "i", "we", "do", "does", "doe"];

/// Whether both can't be so, by their words: "the wifi code is 1234" and "the wifi code is 5678".
pub fn differs(one: &str, other: &str) -> bool {
    match (claim(one), claim(other)) {
        (Some((of, is)), Some((of_other, is_other))) if of == of_other => is != is_other,
        _ => is_contrary(one, other),
    }
}

/// Pairs of these facts that differ, each fact in one pair at most. Linear in their number, but for many of one subject.
pub(super) fn contradictions(facts: &[&str]) -> Vec<(usize, usize)> {
    let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for (at, fact) in facts.iter().enumerate() {
        if let Some((of, _)) = claim(fact) {
            groups.entry(of).or_default().push(at);
        }
        let same =
            words(fact).into_iter().filter(|word| !NEGATIONS.contains(&word.as_str()) && word != "do" && word != "doe");
        groups.entry(same.collect()).or_default().push(at);
    }
    let (mut pairs, mut taken) = (Vec::new(), BTreeSet::new());
    for group in groups.values() {
        for (nth, one) in group.iter().enumerate() {
            let differing = |other: &&usize| {
                !taken.contains(*other)
                    && matches!((facts.get(*one), facts.get(**other)), (Some(one), Some(other)) if differs(one, other))
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

/// What a fact is about, and what it says of that. None where much can be so at a time: "Anna is vegan".
fn claim(fact: &str) -> Option<(Vec<String>, Vec<String>)> {
    let all = meant_words(fact);
    let name = |word: &String| word == "name";
    if let Some(at) = all.iter().position(|word| COPULAS.contains(&word.as_str())) {
        let (of, is) = (all.get(..at)?, all.get(at + 1..)?);
        // "My dog is called Rex" is of the dog's name.
        let (of, is) = match is.split_first() {
            Some((first, rest)) if name(first) => (of.iter().cloned().chain([first.clone()]).collect(), rest),
            _ => (of.to_vec(), is),
        };
        let told = of.iter().filter(|word| !BARE.contains(&word.as_str())).count();
        return (told >= 2 && !is.is_empty()).then(|| (of, is.to_vec()));
    }
    SINGLE.iter().find_map(|verb| {
        let at =
            all.windows(verb.len()).position(|window| window.iter().map(String::as_str).eq(verb.iter().copied()))?;
        let (of, is) = (all.get(..at)?, all.get(at + verb.len()..)?);
        let is_plain = !of.is_empty() && of.len() <= 3 && !is.is_empty();
        is_plain.then(|| (of.iter().cloned().chain([verb.join(" ")]).collect(), is.to_vec()))
    })
}

/// The same words but for a "not": "I like tea", "I don't like tea".
fn is_contrary(one: &str, other: &str) -> bool {
    let split = |text: &str| -> (Vec<String>, bool) {
        let (negations, rest): (Vec<_>, Vec<_>) =
            words(text).into_iter().partition(|word| NEGATIONS.contains(&word.as_str()));
        (rest.into_iter().filter(|word| !matches!(word.as_str(), "do" | "doe")).collect(), negations.is_empty())
    };
    let ((one, is_so), (other, is_other_so)) = (split(one), split(other));
    one == other && is_so != is_other_so && !one.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_both_be_so_differs() {
        for (one, other) in [
            ("the wifi code is 1234", "the wifi code is 5678"),
            ("my favourite colour is blue", "My favourite colour is green."),
            ("my dog is called Rex", "my dog's name is Max"),
            ("Anna's birthday is 3 May", "Anna’s birthday is 4 May"),
            ("I live in Kiel", "I live in Rome"),
            ("I like tea", "I don't like tea"),
            ("Anna is vegan", "Anna is not vegan"),
        ] {
            assert!(differs(one, other) && differs(other, one), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn what_can_both_be_so_does_not() {
        for (one, other) in [
            ("Anna is vegan", "Anna is my sister"),
            ("my sister is vegan", "my sister is 30"),
            ("the wifi code is 1234", "The wifi code is 1234."),
            ("my dog is called Rex", "my cat is called Tom"),
            ("I'm allergic to nuts", "I'm allergic to penicillin"),
            ("I like tea", "I like coffee"),
            ("Bob lives in Kiel", "Anna lives in Kiel"),
            ("", ""),
        ] {
            assert!(!differs(one, other), "{one:?} and {other:?}");
        }
    }
}
