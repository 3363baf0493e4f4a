//! Facts that contradict each other by their words. Both stay, with marks, until the person says which is right.

use std::collections::BTreeSet;

use super::{CONTRADICTION, PersonMemoryEdits, hash_key, list_untrusted_lines};
use crate::{
    claim,
    facts::{self, Fact, Facts},
    text::fold_text,
    unsettled::{self, Version},
};

/// The maximum number of contradictions marked per reflection.
const DISPUTES_MAX: usize = 3;

/// Two facts that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispute {
    /// The fact that comes first in the document.
    pub one: String,
    /// The other fact.
    pub other: String,
}

impl Dispute {
    /// Returns the key that limits marking and asking to once. It doesn't reveal the facts.
    pub fn key(&self) -> String {
        let mut pair = [fold_text(&self.one), fold_text(&self.other)];
        pair.sort();
        hash_key(CONTRADICTION, &pair.join("\n"))
    }

    /// Marks both facts. A person's own line keeps every byte, and only the contradicting one is marked.
    #[must_use]
    pub fn mark_facts(&self, text: &str, by_hand: &PersonMemoryEdits) -> String {
        let number = unsettled::next_number(&[text]);
        let (known, _) = Facts::parse(text);
        let is_theirs = |words: &str| known.iter().any(|(_, fact)| fact.text == words && by_hand.has_written(fact));
        let (one, other) = match (is_theirs(&self.one), is_theirs(&self.other)) {
            (true, true) => return text.to_owned(),
            (true, false) => (None, Some(Version::Disputed)),
            (false, true) => (Some(Version::Disputed), None),
            (false, false) => (Some(Version::Doubted), Some(Version::Doubted)),
        };
        facts::edit_facts(text, |fact, item| {
            let version = if fact.text == self.one {
                one
            } else if fact.text == self.other {
                other
            } else {
                None
            };
            version.map(|version| unsettled::add_mark(item, (number, version)))
        })
    }
}

/// Settles a contradiction after the person confirmed one fact: removes the facts they were asked about together with `right`, and the mark
/// of `right`. `asked` holds the keys of earlier questions. Returns the new text and the removed facts. `None` if no question matches.
pub fn settle_dispute(text: &str, right: &str, asked: &BTreeSet<String>) -> Option<(String, Vec<String>)> {
    let (known, _) = Facts::parse(text);
    let right = known.iter().map(|(_, fact)| &fact.text).find(|fact| facts::is_same(fact, right))?.clone();
    let is_wrong = |fact: &Fact| {
        fact.text != right && asked.contains(&Dispute { one: right.clone(), other: fact.text.clone() }.key())
    };
    let of_others = list_untrusted_lines(text);
    let wrong: Vec<&Fact> =
        known.iter().map(|(_, fact)| fact).filter(|fact| is_wrong(fact) && !of_others.contains(&fact.line)).collect();
    let forgotten: Vec<String> = wrong.iter().map(|fact| fact.text.clone()).collect();
    let settled = facts::edit_facts(text, |fact, item| {
        if wrong.contains(&fact) {
            return Some(String::new());
        }
        (fact.text == right).then(|| unsettled::remove_marks(item).into_owned())
    });
    (!forgotten.is_empty()).then_some((settled, forgotten))
}

/// Finds new contradictions between known facts, without marked, unsettled and untrusted ones.
pub(super) fn find_disputes(text: &str, marked: &BTreeSet<String>) -> Vec<Dispute> {
    let (known, _) = Facts::parse(text);
    let standing: BTreeSet<usize> =
        unsettled::find_conflicts(text).into_iter().flat_map(|conflict| conflict.lines).collect();
    let of_others = list_untrusted_lines(text);
    let is_clear = |fact: &&Fact| !standing.contains(&fact.line) && !of_others.contains(&fact.line);
    let known: Vec<&Fact> = known.iter().map(|(_, fact)| fact).filter(is_clear).collect();
    let texts: Vec<&str> = known.iter().map(|fact| fact.text.as_str()).collect();
    let pairs = claim::find_contradictions(&texts).into_iter().filter_map(|(one, other)| {
        Some(Dispute { one: (*texts.get(one)?).to_owned(), other: (*texts.get(other)?).to_owned() })
    });
    pairs.filter(|pair| !marked.contains(&pair.key())).take(DISPUTES_MAX).collect()
}

/// Finds two facts by words that only they have.
///
/// # Errors
/// [`facts::FactError`] for words that don't match exactly one fact.
pub fn find_dispute(text: &str, one: &str, other: &str) -> Result<Dispute, facts::FactError> {
    let one = facts::find(text, one)?;
    let other = facts::find(text, other)?;
    Ok(Dispute { one: one.text, other: other.text })
}
