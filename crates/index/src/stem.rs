//! The Porter stemmer (1980, as published by its author), which maps English words with different endings to one stem.
//!
//! Our own implementation replaces FTS5's, because scoring must stem the found texts exactly like the index.

/// The maximum length of stemmed words, in bytes.
const MAX_BYTES: usize = 40;

/// Returns a word's stem. A very short or long word, or one with anything but lower-case ASCII letters, is returned unchanged.
pub(super) fn stem_word(word: &str) -> String {
    if word.len() < 3 || word.len() > MAX_BYTES || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stemmer = Stemmer { word: word.as_bytes().to_vec() };
    stemmer.strip_plural();
    stemmer.strip_past();
    stemmer.y_to_i();
    stemmer.replace_suffix(STEP_2, 0);
    stemmer.replace_suffix(STEP_3, 0);
    stemmer.drop_suffix();
    stemmer.tidy_ending();
    String::from_utf8(stemmer.word).unwrap_or_else(|_| word.to_owned())
}

/// Returns the letters with which every word of this stem begins: all but the last, which a rule may have added.
pub(super) fn common_prefix(stem: &str) -> &str {
    let last = stem.char_indices().next_back().map_or(0, |(at, _)| at);
    stem.get(..last).unwrap_or_default()
}

/// Suffixes and their replacements, applied if the rest has a positive measure ([`Stemmer::measure`]).
const STEP_2: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const STEP_3: &[(&str, &str)] =
    &[("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
/// Suffixes removed if the rest has a measure of more than one.
const STEP_4: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
];

struct Stemmer {
    word: Vec<u8>,
}

impl Stemmer {
    fn is_consonant(&self, at: usize) -> bool {
        match self.word.get(at) {
            Some(b'a' | b'e' | b'i' | b'o' | b'u') | None => false,
            Some(b'y') => at == 0 || !self.is_consonant(at - 1),
            Some(_) => true,
        }
    }

    /// Returns the paper's "measure" of the first `length` letters: how many times consonants follow vowels.
    fn measure(&self, length: usize) -> usize {
        let mut count = 0;
        let mut after_vowel = false;
        let mut consonant = false;
        for at in 0..length {
            // Each `y` in a run depends only on the letter before, which was just classified.
            consonant = match self.word.get(at) {
                Some(b'y') => at == 0 || !consonant,
                _ => self.is_consonant(at),
            };
            count += usize::from(consonant && after_vowel);
            after_vowel = !consonant;
        }
        count
    }

    fn has_vowel(&self, length: usize) -> bool {
        (0..length).any(|at| !self.is_consonant(at))
    }

    fn ends_double(&self) -> bool {
        let length = self.word.len();
        length >= 2 && self.word.get(length - 1) == self.word.get(length - 2) && self.is_consonant(length - 1)
    }

    /// Returns whether the first `length` letters end in consonant, vowel, consonant, where the last isn't w, x or y.
    fn ends_cvc(&self, length: usize) -> bool {
        length >= 3
            && self.is_consonant(length - 1)
            && !self.is_consonant(length - 2)
            && self.is_consonant(length - 3)
            && !matches!(self.word.get(length - 1), Some(b'w' | b'x' | b'y'))
    }

    /// Returns the number of letters before a suffix. `None` if the word ends otherwise.
    fn length_before(&self, suffix: &str) -> Option<usize> {
        let suffix = suffix.as_bytes();
        // Most words are rejected by their last letter.
        let may_end = self.word.last() == suffix.last();
        (may_end && self.word.ends_with(suffix)).then(|| self.word.len() - suffix.len())
    }

    fn set_ending(&mut self, length: usize, ending: &str) {
        self.word.truncate(length);
        self.word.extend_from_slice(ending.as_bytes());
    }

    fn strip_plural(&mut self) {
        if let Some(left) = self.length_before("sses").or_else(|| self.length_before("ies")) {
            let is_ies = self.word.ends_with(b"ies");
            self.set_ending(left, if is_ies { "i" } else { "ss" });
        } else if self.length_before("ss").is_none()
            && let Some(left) = self.length_before("s")
        {
            self.set_ending(left, "");
        }
    }

    fn strip_past(&mut self) {
        if let Some(left) = self.length_before("eed") {
            if self.measure(left) > 0 {
                self.set_ending(left, "ee");
            }
            return;
        }
        let Some(left) =
            self.length_before("ed").or_else(|| self.length_before("ing")).filter(|left| self.has_vowel(*left))
        else {
            return;
        };
        self.set_ending(left, "");
        if ["at", "bl", "iz"].iter().any(|ending| self.length_before(ending).is_some()) {
            self.word.push(b'e');
        } else if self.ends_double() && !matches!(self.word.last(), Some(b'l' | b's' | b'z')) {
            self.word.pop();
        } else if self.measure(self.word.len()) == 1 && self.ends_cvc(self.word.len()) {
            self.word.push(b'e');
        }
    }

    fn y_to_i(&mut self) {
        if let Some(left) = self.length_before("y").filter(|left| self.has_vowel(*left)) {
            self.set_ending(left, "i");
        }
    }

    fn replace_suffix(&mut self, table: &[(&str, &str)], least: usize) {
        let longest = table
            .iter()
            .filter(|(suffix, _)| self.length_before(suffix).is_some())
            .max_by_key(|(suffix, _)| suffix.len());
        if let Some((suffix, ending)) = longest
            && let Some(left) = self.length_before(suffix)
            && self.measure(left) > least
        {
            self.set_ending(left, ending);
        }
    }

    fn drop_suffix(&mut self) {
        let longest =
            STEP_4.iter().filter(|suffix| self.length_before(suffix).is_some()).max_by_key(|suffix| suffix.len());
        let Some(left) = longest.and_then(|suffix| self.length_before(suffix)) else { return };
        let is_ion = self.word.ends_with(b"ion");
        let may_go = !is_ion || left.checked_sub(1).is_some_and(|at| matches!(self.word.get(at), Some(b's' | b't')));
        if may_go && self.measure(left) > 1 {
            self.set_ending(left, "");
        }
    }

    fn tidy_ending(&mut self) {
        if let Some(left) = self.length_before("e") {
            let measure = self.measure(left);
            if measure > 1 || measure == 1 && !self.ends_cvc(left) {
                self.set_ending(left, "");
            }
        }
        if self.word.ends_with(b"ll") && self.measure(self.word.len()) > 1 {
            self.word.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_papers_examples_get_their_published_stems() {
        for (word, stemmed) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("vietnamization", "vietnam"),
            ("hopefulness", "hope"),
            ("triplicate", "triplic"),
            ("electrical", "electr"),
            ("revival", "reviv"),
            ("adoption", "adopt"),
            ("replacement", "replac"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controll", "control"),
            ("painting", "paint"),
            ("painted", "paint"),
        ] {
            assert_eq!(stem_word(word), stemmed, "{word}");
        }
    }

    #[test]
    fn only_words_of_lower_case_ascii_letters_are_stemmed() {
        for word in ["is", "Ärger", "müssen", "3rds", "東京", ""] {
            assert_eq!(stem_word(word), word);
        }
    }

    proptest! {
        #[test]
        fn a_word_begins_with_the_kept_part_of_its_stem(word in "[a-z]{1,12}(y|ies|ed|ing|ational|izer|biliti|iviti|abli|ness|ll|eed)?|.{1,8}") {
            prop_assert!(word.starts_with(common_prefix(&stem_word(&word))), "{word} {}", stem_word(&word));
        }

        #[test]
        fn a_stem_is_at_most_one_byte_longer_than_its_word(word in "[a-z]{0,60}|y{0,60}|.{0,12}") {
            prop_assert!(stem_word(&word).len() <= word.len().max(word.len() + 1));
        }
    }
}
