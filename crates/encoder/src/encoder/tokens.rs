//! The tokens of a text: WordPiece over BERT's vocabulary, by the rules of the `tokenizers` library, with which the model was trained.

use std::{collections::HashMap, path::Path};

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::{CodePointMapData, props::GeneralCategory};

use crate::EncoderError;

/// The length above which a whole word becomes the unknown token.
const MAX_WORD_CHARS: usize = 100;
/// The largest vocabulary read, in bytes.
const MAX_VOCABULARY_BYTES: u64 = 16 << 20;

/// The rules that normalize text for the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// Converts text to lower case.
    pub(super) lowercases: bool,
    /// Removes accents from letters.
    pub(super) strips_accents: bool,
    /// Makes each ideograph a word.
    pub(super) splits_ideographs: bool,
}

/// The vocabulary, and the marker tokens around a text.
#[derive(Debug)]
pub(super) struct WordPieces {
    ids: HashMap<String, u32>,
    longest_bytes: usize,
    unknown: u32,
    begin: u32,
    end: u32,
    spelling: Spelling,
}

impl WordPieces {
    /// Reads a `vocab.txt`: one token per line, numbered by line.
    pub(super) fn open(path: &Path, spelling: Spelling) -> Result<Self, EncoderError> {
        let text = super::read_text(path, MAX_VOCABULARY_BYTES)?;
        let ids: HashMap<String, u32> =
            text.lines().map(str::to_owned).zip(0..).filter(|(token, _)| !token.is_empty()).collect();
        let mark = |token: &str| {
            ids.get(token).copied().ok_or_else(|| EncoderError::for_damaged_file(path, format!("it has no {token}")))
        };
        let (unknown, begin, end) = (mark("[UNK]")?, mark("[CLS]")?, mark("[SEP]")?);
        let longest_bytes = ids.keys().map(String::len).max().unwrap_or(0);
        Ok(Self { ids, longest_bytes, unknown, begin, end, spelling })
    }

    /// Returns the number of rows that the vocabulary needs in the model: the highest token number plus one.
    pub(super) fn count_rows(&self) -> usize {
        self.ids.values().max().map_or(0, |most| *most as usize + 1)
    }

    /// Returns the text's tokens between the two markers, at most `most` in all; the rest is cut off.
    pub(super) fn encode(&self, text: &str, most: usize) -> Vec<u32> {
        let mut tokens = vec![self.begin];
        let room = most.saturating_sub(1);
        let mut word = String::new();
        for c in self.normalise_text(text) {
            if tokens.len() >= room {
                break;
            }
            let stands_alone = is_punctuation(c) || (self.spelling.splits_ideographs && is_ideograph(c));
            if c.is_whitespace() || stands_alone {
                self.push_word(&mut tokens, &word);
                word.clear();
            } else {
                word.push(c);
            }
            if stands_alone {
                self.push_word(&mut tokens, c.encode_utf8(&mut [0; 4]));
            }
        }
        self.push_word(&mut tokens, &word);
        tokens.truncate(room);
        tokens.push(self.end);
        tokens
    }

    /// Returns the text's characters, normalized like those of the vocabulary.
    fn normalise_text<'a>(&self, text: &'a str) -> Box<dyn Iterator<Item = char> + 'a> {
        let categories = CodePointMapData::<GeneralCategory>::new();
        let Spelling { lowercases, strips_accents, .. } = self.spelling;
        let clean = text.chars().filter(|c| !is_dropped(*c));
        let bare: Box<dyn Iterator<Item = char>> = if strips_accents {
            let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(clean);
            Box::new(decomposed.filter(move |c| categories.get(*c) != GeneralCategory::NonspacingMark))
        } else {
            Box::new(clean)
        };
        if lowercases { Box::new(bare.flat_map(char::to_lowercase)) } else { bare }
    }

    /// Appends a word, split from its beginning into the longest known pieces. If a part fits no piece, the whole word is unknown.
    fn push_word(&self, tokens: &mut Vec<u32>, word: &str) {
        if word.is_empty() {
            return;
        }
        if word.chars().count() > MAX_WORD_CHARS {
            return tokens.push(self.unknown);
        }
        let known = tokens.len();
        let (mut rest, mut piece) = (word, String::new());
        while !rest.is_empty() {
            let found = list_piece_ends(rest).find_map(|end| {
                let head = rest.get(..end)?;
                if end > self.longest_bytes {
                    return None;
                }
                piece.clear();
                piece.push_str(if rest.len() < word.len() { "##" } else { "" });
                piece.push_str(head);
                Some((*self.ids.get(&piece)?, rest.get(end..)?))
            });
            let Some((id, after)) = found else {
                tokens.truncate(known);
                return tokens.push(self.unknown);
            };
            tokens.push(id);
            rest = after;
        }
    }
}

/// Returns the possible ends of a piece, longest first.
fn list_piece_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.char_indices().rev().map(|(at, c)| at + c.len_utf8())
}

/// Returns `true` for characters that the tokenizer skips: control, format and private-use characters.
fn is_dropped(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    match c {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ => matches!(CodePointMapData::<GeneralCategory>::new().get(c), Control | Format | PrivateUse),
    }
}

fn is_punctuation(c: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation, OpenPunctuation,
        OtherPunctuation,
    };
    c.is_ascii_punctuation()
        || matches!(
            CodePointMapData::<GeneralCategory>::new().get(c),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

/// Recognises the blocks of ideographs that BERT splits, which exclude kana and hangul.
fn is_ideograph(c: char) -> bool {
    matches!(
        u32::from(c),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}
