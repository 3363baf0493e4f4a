//! Remembers words of people and models that a report must not repeat: sequences of words, known by their hashes.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

/// The mark that replaces removed words.
const MARK: &str = "[…]";
/// Number of words in a phrase.
const PHRASE_WORDS: usize = 4;
/// Minimum bytes of a shorter phrase, used if the whole text has fewer words.
const MIN_PHRASE_BYTES: usize = 12;
/// Minimum bytes of a word that counts as a phrase by itself, for languages without blanks.
const LONG_WORD_BYTES: usize = 18;
/// Minimum characters of a name's word that is removed by itself; shorter ones occur in every log.
const MIN_NAME_CHARS: usize = 3;
/// Maximum number of phrases; later texts aren't learnt.
const MAX_PHRASES: usize = 4_000_000;

/// The known phrases.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    known: HashSet<u64>,
}

impl Phrases {
    /// Learns the phrases of a text.
    pub(super) fn learn_text(&mut self, text: &str) {
        let words = split_words(text);
        let mut learn = |words: &[Word]| {
            if self.known.len() < MAX_PHRASES {
                self.known.insert(hash_words(words));
            }
        };
        words.windows(PHRASE_WORDS).for_each(&mut learn);
        words
            .iter()
            .filter(|word| word.text.len() >= LONG_WORD_BYTES)
            .for_each(|word| learn(std::slice::from_ref(word)));
        let bytes: usize = words.iter().map(|word| word.text.len()).sum();
        if (2..PHRASE_WORDS).contains(&words.len()) && bytes >= MIN_PHRASE_BYTES {
            learn(&words);
        }
    }

    /// Learns the name of a person or a thing of theirs: as a whole, and word by word.
    pub(super) fn learn_name(&mut self, name: &str) {
        let words = split_words(name);
        let single = words.iter().filter(|word| word.text.chars().count() >= MIN_NAME_CHARS).map(std::slice::from_ref);
        self.known.extend(single.map(hash_words));
        if (2..=PHRASE_WORDS).contains(&words.len()) {
            self.known.insert(hash_words(&words));
        }
    }

    /// Returns the text without known phrases.
    pub(super) fn mask(&self, text: &str) -> String {
        let words = split_words(text);
        let mut spans: Vec<Range<usize>> = Vec::new();
        for at in 0..words.len() {
            let longest = (1..=PHRASE_WORDS).rev().filter_map(|count| words.get(at..at + count));
            let found = longest.into_iter().find(|words| self.known.contains(&hash_words(words)));
            let Some((first, last)) = found.and_then(|words| words.first().zip(words.last())) else { continue };
            match spans.last_mut().filter(|span| span.end >= first.span.start) {
                Some(span) => span.end = span.end.max(last.span.end),
                None => spans.push(first.span.start..last.span.end),
            }
        }
        let (mut masked, mut kept_to) = (String::with_capacity(text.len()), 0);
        for span in spans {
            masked.push_str(text.get(kept_to..span.start).unwrap_or_default());
            masked.push_str(MARK);
            kept_to = span.end;
        }
        masked + text.get(kept_to..).unwrap_or_default()
    }
}

struct Word {
    text: String,
    span: Range<usize>,
}

fn split_words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push(Word { text: text.get(from..at).unwrap_or_default().to_lowercase(), span: from..at });
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn hash_words(words: &[Word]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.iter().for_each(|word| word.text.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_text_are_taken_out_wherever_four_of_them_stand_in_a_row() {
        let mut phrases = Phrases::default();
        phrases.learn_text("Please call Aunt Hilda about the garden gate tomorrow.");
        phrases.learn_text("Hilda's birthday");
        phrases.learn_text("ok, thanks");
        phrases.learn_name("Zoë O. Sample");
        phrases.learn_text("庭の門について叔母に電話してください");
        for (text, masked) in [
            ("can't parse \"call aunt hilda about the\\ngarden\": x", "can't parse \"[…]\": x"),
            ("INFO hilda's  BIRTHDAY came", "INFO […] came"),
            ("the garden gate is shut", "the garden gate is shut"),
            ("ok, thanks", "ok, thanks"),
            ("error in 庭の門について叔母に電話してください!", "error in […]!"),
            ("the chat of zoë is shut: O. Sample", "the chat of […] is shut: O. […]"),
            ("", ""),
        ] {
            let text = text.replace("\\n", "\n");
            assert_eq!(phrases.mask(&text), masked);
        }
        assert_eq!(Phrases::default().mask("call Aunt Hilda about"), "call Aunt Hilda about");
    }
}
