//! Splits texts into search terms: normalised words reduced to stems, and pairs of signs for scripts without blanks.
//!
//! Index and queries use the same code, which leaves FTS5 only to compare.

use icu_normalizer::DecomposingNormalizerBorrowed;

use super::stem::stem_word;

/// The maximum length of a run of letters or signs, in characters; the rest is ignored.
const MAX_WORD_CHARS: usize = 64;

/// Words that don't tell the subject of a text, as spelt by [`for_each_word`].
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anything",
    "are",
    "as",
    "at",
    "be",
    "been",
    "being",
    "but",
    "by",
    "can",
    "could",
    "did",
    "didnt",
    "do",
    "does",
    "doesnt",
    "doing",
    "done",
    "dont",
    "ever",
    "for",
    "from",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "hers",
    "him",
    "his",
    "how",
    "i",
    "id",
    "if",
    "ill",
    "im",
    "in",
    "into",
    "is",
    "isnt",
    "it",
    "its",
    "ive",
    "just",
    "me",
    "more",
    "my",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "please",
    "she",
    "should",
    "so",
    "some",
    "something",
    "such",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "too",
    "us",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "yours",
];

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextWord {
    /// The normalised word: lower case, without accents.
    pub(super) folded: String,
    /// The stem used for comparison.
    pub(super) stem: String,
}

/// The place of a word in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    Text,
    Heading,
    Speaker,
    /// Beside a number, because a word and a number together say more than each alone.
    Beside,
}

impl WordPlace {
    /// Returns the token of a word in this place. The prefixes are private-use characters, absent from texts.
    pub(super) fn token(self, stem: &str) -> String {
        match self {
            Self::Text => stem.to_owned(),
            Self::Heading => format!("\u{e000}{stem}"),
            Self::Speaker => format!("\u{e001}{stem}"),
            Self::Beside => format!("\u{e002}{stem}"),
        }
    }
}

/// Returns the token of two neighbouring words if one is a number: finds `book 5` among all texts with a 5.
pub(super) fn pair_token(one: &str, other: &str) -> Option<String> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(one) || is_number(other)).then(|| WordPlace::Beside.token(&format!("{one}\u{e002}{other}")))
}

/// Returns the words of a text, in order. Hyphenated words also appear joined.
pub(super) fn split_words(text: &str) -> Vec<TextWord> {
    let mut found = Vec::new();
    for_each_word(text, |folded| found.push(TextWord { folded: folded.to_owned(), stem: stem_word(folded) }));
    found
}

/// Returns the stems of a text's words.
pub(super) fn split_stems(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for_each_word(text, |folded| found.push(stem_word(folded)));
    found
}

/// Returns whether a word doesn't tell the subject of a text.
pub(super) fn is_stop_word(folded: &str) -> bool {
    STOP_WORDS.binary_search(&folded).is_ok()
}

/// Passes on each normalised word.
pub(super) fn for_each_word(text: &str, mut take: impl FnMut(&str)) {
    if text.is_ascii() {
        for_each_ascii_word(text.as_bytes(), &mut take);
    } else {
        for_each_folded_word(text, &mut take);
    }
}

/// Handles ASCII several times as fast as [`for_each_folded_word`]: a search splits some hundred texts.
fn for_each_ascii_word(text: &[u8], take: &mut impl FnMut(&str)) {
    let mut word = String::with_capacity(MAX_WORD_CHARS + 1);
    let mut before_hyphen: Option<String> = None;
    for (at, byte) in text.iter().enumerate() {
        let goes_on = || text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if byte.is_ascii_alphanumeric() {
            if word.len() < MAX_WORD_CHARS {
                word.push(char::from(byte.to_ascii_lowercase()));
            }
        } else if *byte == b'\'' && !word.is_empty() && goes_on() {
            word.push('\'');
        } else {
            let end = if *byte == b'-' && goes_on() { WordEnd::Hyphen } else { WordEnd::Other };
            end_word(&mut word, &mut before_hyphen, end, take);
        }
    }
    end_word(&mut word, &mut before_hyphen, WordEnd::Other, take);
}

fn for_each_folded_word(text: &str, take: &mut impl FnMut(&str)) {
    let mut word = String::new();
    let mut signs: Option<(char, bool)> = None;
    let mut before_hyphen: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_sign(c) {
            end_word(&mut word, &mut before_hyphen, WordEnd::Other, take);
            // Pairs of neighbouring signs; a lone sign is a word.
            if let Some((last, _)) = signs {
                take(&[last, c].into_iter().collect::<String>());
            }
            signs = Some((c, signs.is_some()));
            continue;
        }
        if let Some((alone, false)) = signs.take() {
            take(&alone.to_string());
        }
        if is_letter(c) {
            if word.len() < MAX_WORD_CHARS {
                fold_letter(c, &mut word);
            }
        } else if is_apostrophe(c) && !word.is_empty() && chars.peek().is_some_and(|next| next.is_alphanumeric()) {
            word.push('\'');
        } else {
            let goes_on =
                matches!(c, '-' | '\u{2010}' | '\u{2011}') && chars.peek().is_some_and(|next| is_letter(*next));
            let end = if goes_on { WordEnd::Hyphen } else { WordEnd::Other };
            end_word(&mut word, &mut before_hyphen, end, take);
        }
    }
    if let Some((alone, false)) = signs {
        take(&alone.to_string());
    }
    end_word(&mut word, &mut before_hyphen, WordEnd::Other, take);
}

/// The end of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordEnd {
    /// A hyphen with another word after it.
    Hyphen,
    Other,
}

fn end_word(word: &mut String, before_hyphen: &mut Option<String>, end: WordEnd, take: &mut impl FnMut(&str)) {
    if word.ends_with("'s") {
        word.truncate(word.len() - 2);
    }
    if word.contains('\'') {
        word.retain(|c| c != '\'');
    }
    if word.is_empty() {
        *before_hyphen = None;
        return;
    }
    take(word);
    if let Some(first) = before_hyphen.take() {
        take(&format!("{first}{word}"));
    }
    *before_hyphen = (end == WordEnd::Hyphen).then(|| word.clone());
    word.clear();
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{02bc}')
}

/// Returns whether a character belongs to a script without blanks between words, or with long compound words.
fn is_sign(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2fa1f}')
}

/// Returns whether a character is a letter, a digit, or part of a letter such as an accent or a vowel sign.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{0300}'..='\u{036f}' | '\u{0900}'..='\u{0dff}')
}

/// Appends a letter in lower case without its accent.
fn fold_letter(c: char, into: &mut String) {
    if c.is_ascii() {
        into.push(c.to_ascii_lowercase());
        return;
    }
    match c {
        'ß' | 'ẞ' => into.push_str("ss"),
        'æ' | 'Æ' => into.push_str("ae"),
        'œ' | 'Œ' => into.push_str("oe"),
        'ø' | 'Ø' => into.push('o'),
        'ł' | 'Ł' => into.push('l'),
        'đ' | 'Đ' => into.push('d'),
        'ς' => into.push('σ'),
        _ if c < '\u{0530}' || matches!(c, '\u{1e00}'..='\u{1fff}') => {
            let mut bytes = [0; 4];
            for part in DecomposingNormalizerBorrowed::new_nfd().normalize(c.encode_utf8(&mut bytes)).chars() {
                if !matches!(part, '\u{0300}'..='\u{036f}') {
                    into.extend(part.to_lowercase());
                }
            }
        }
        _ => into.extend(c.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_come_in_one_spelling() {
        assert_eq!(split_stems("Anna’s boxes, BERRIES & tasks: don't!"), ["anna", "box", "berri", "task", "dont"]);
        assert_eq!(split_stems("Müller Straße naïve Ωmega Ёлка"), ["muller", "strass", "naiv", "ωmega", "елка"]);
        assert_eq!(split_stems("the Wi-Fi code is 1234"), ["the", "wi", "fi", "wifi", "code", "is", "1234"]);
    }

    #[test]
    fn scripts_without_blanks_are_cut_into_pairs() {
        assert_eq!(split_stems("東京都へ行く"), ["東京", "京都", "都へ", "へ行", "行く"]);
        assert_eq!(split_stems("a 水 b"), ["a", "水", "b"]);
        assert_eq!(split_stems("หมา"), ["หม", "มา"]);
        assert_eq!(split_stems("नमस्ते दुनिया").len(), 2);
    }

    #[test]
    fn stop_words_are_found() {
        assert!(STOP_WORDS.is_sorted(), "searched by halves");
        assert!(is_stop_word("the") && !is_stop_word("tea"));
    }

    proptest! {
        #[test]
        fn plain_text_is_cut_as_any_other(text in "[ -~\n]{0,80}|[a-c'-]{0,12}") {
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            for_each_ascii_word(text.as_bytes(), &mut |word| fast.push(word.to_owned()));
            for_each_folded_word(&text, &mut |word| slow.push(word.to_owned()));
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,200}") {
            for word in split_words(&text) {
                prop_assert!(!word.folded.is_empty() && !word.folded.contains(char::is_whitespace));
            }
        }
    }
}
