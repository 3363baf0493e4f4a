//! Gathers the chunks that may answer a question: by its rare words first, then similar spellings, days and vectors.

use std::{
    collections::HashMap,
    f32::consts::{LN_2, SQRT_2},
};

use chrono::Datelike as _;
use rusqlite::OptionalExtension as _;

use super::{
    Index, IndexError, SearchQuery,
    days::{self, DaySpan},
    hash::{ByNumber, KeySet},
    scope::Scope,
    sql_list,
    terms::{self, WordPlace},
    vectors::{Cosines, Direction},
    weights::ALIKE,
};

/// The maximum number of a question's words to search for. The rarest are searched.
const MAX_WORDS: usize = 32;
/// The maximum number of a question's distinct words to look up.
const MAX_LOOKED_UP: usize = 4 * MAX_WORDS;
/// The maximum number of unknown words to compare by spelling, because each comparison takes long.
const MAX_SPELT: usize = 8;
/// The maximum number of posting rows that add candidates for one question: common words tell little and take long.
const MAX_POSTINGS: i64 = 6_000;
/// The initial capacity for candidates, enough for most questions.
const CAPACITY: usize = 8_192;
/// The maximum number of chunks found by one word in a heading.
const MAX_BY_HEADING: i64 = 3_000;
/// The maximum number of chunks found by the days that a question names.
const MAX_BY_DAY: i64 = 1_000;
/// The maximum numbers of candidates by words and by vectors.
const MAX_BY_WORDS: usize = 240;
const MAX_BY_VECTOR: usize = 120;
/// The maximum number of candidates with the same text.
const MAX_PLACES: usize = 8;
/// The maximum number of words examined for a similar spelling.
const MAX_SPELLINGS: i64 = 500;
/// The maximum number of similar spellings used.
const MAX_ALIKE: usize = 3;
/// The minimum length of words compared by spelling, in characters.
const MIN_SPELT_CHARS: usize = 4;
/// The length from which a word may have two slips, in characters.
const TWO_SLIPS_CHARS: usize = 8;
/// The weight of a word in a heading relative to one in the text, and the weight of a day that the question names.
const HEADING_WEIGHT: f32 = 0.3;
const DAY_WEIGHT: f32 = 3.0;
/// The weight of two neighbouring words, one of them a number, that are neighbours in the text, too.
const PAIR_WEIGHT: f32 = 0.5;

/// A word to search for.
#[derive(Debug, Clone)]
pub(super) struct WantedWord {
    pub(super) folded: String,
    /// The matching stems with their weights.
    pub(super) stems: Vec<(String, f32)>,
    /// The word's rarity.
    pub(super) rarity: f32,
    /// The number of chunks with the word.
    chunks: i64,
    /// Whether a speaker has this name.
    pub(super) is_speaker: bool,
}

/// The parsed content of a question.
pub(super) struct QueryTerms {
    /// The words in the question's order.
    pub(super) words: Vec<WantedWord>,
    pub(super) span: Option<DaySpan>,
    /// The mean length of a chunk, in words.
    pub(super) mean_length: f32,
}

impl Index {
    /// Parses a question.
    pub(super) fn parse_query(&self, query: &SearchQuery<'_>) -> Result<QueryTerms, IndexError> {
        let all = self.read_state("chunks")?.unwrap_or(0).max(1);
        let length = self.read_state("length")?.unwrap_or(0);
        let mut words: Vec<terms::TextWord> = Vec::new();
        for word in terms::split_words(query.text) {
            if !terms::is_stop_word(&word.folded) && words.len() >= MAX_LOOKED_UP {
                break;
            }
            if !words.iter().any(|other| other.stem == word.stem) {
                words.push(word);
            }
        }
        // A question with only stop words is searched by them.
        if words.iter().any(|word| !terms::is_stop_word(&word.folded)) {
            words.retain(|word| !terms::is_stop_word(&word.folded));
        }
        let mut wanted = Vec::with_capacity(words.len());
        let mut spelt = MAX_SPELT;
        for word in words {
            wanted.push(self.look_up_word(word, all, &mut spelt)?);
        }
        if wanted.len() > MAX_WORDS {
            let mut rarities: Vec<f32> = wanted.iter().map(|word| word.rarity).collect();
            rarities.sort_by(|one, other| other.total_cmp(one));
            let least = rarities.get(MAX_WORDS - 1).copied().unwrap_or(0.0);
            wanted.retain(|word| word.rarity >= least);
            wanted.truncate(2 * MAX_WORDS);
        }
        Ok(QueryTerms {
            words: wanted,
            span: days::parse_asked_days(query.text, query.today),
            mean_length: (length as f32 / all as f32).max(1.0),
        })
    }

    /// Looks up a word. An unknown word is also compared by spelling, up to `spelt` times.
    fn look_up_word(&self, word: terms::TextWord, all: i64, spelt: &mut usize) -> Result<WantedWord, IndexError> {
        let terms::TextWord { folded, stem } = word;
        let mut chunks = self.count_chunks_with(&stem)?;
        let mut stems = vec![(stem, 1.0)];
        let mut is_speaker = self.is_speaker(stems.first().map_or("", |(stem, _)| stem))?;
        if chunks == 0 && !is_speaker && *spelt > 0 {
            *spelt -= 1;
            for (alike, count) in self.find_similar_words(&folded)? {
                is_speaker |= self.is_speaker(&alike)?;
                stems.push((alike, ALIKE));
                chunks += count;
            }
        }
        let (all, with_word) = (all as f32, chunks as f32);
        let rarity = natural_log(1.0 + (all - with_word + 0.5).max(0.5) / (with_word + 0.5));
        Ok(WantedWord { folded, stems, rarity, chunks, is_speaker })
    }

    fn count_chunks_with(&self, stem: &str) -> Result<i64, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT chunks FROM words WHERE word = ?1")?;
        Ok(statement.query_row([stem], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    fn is_speaker(&self, stem: &str) -> Result<bool, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT 1 FROM postings WHERE postings MATCH ?1 LIMIT 1")?;
        Ok(statement.exists([quote_token(WordPlace::Speaker, stem)])?)
    }

    /// Finds known words that are spelt almost like an unknown one, or begin with it. Covers slips, and parts of names and compounds.
    fn find_similar_words(&self, word: &str) -> Result<Vec<(String, i64)>, IndexError> {
        let letters: Vec<char> = word.chars().collect();
        if letters.len() < MIN_SPELT_CHARS || !letters.iter().all(|c| c.is_alphabetic()) {
            return Ok(Vec::new());
        }
        let slips = if letters.len() >= TWO_SLIPS_CHARS { 2 } else { 1 };
        // With one part more than the allowed slips, at least one part has no slip, and finds the word.
        let part = (letters.len() / (slips + 1)).max(3);
        let parts = letters.chunks(part).map(|letters| letters.iter().collect::<String>());
        let mut parts: Vec<String> = parts.filter(|part| part.chars().count() >= 3).collect();
        parts.push(letters.iter().rev().take(3).rev().collect());
        let any = parts.iter().map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(" OR ");
        let mut statement = self.conn.prepare_cached(
            "SELECT w.word, w.chunks FROM spellings s JOIN words w ON w.id = s.rowid WHERE s.word MATCH ?1 LIMIT ?2",
        )?;
        let rows = statement.query_map((any, MAX_SPELLINGS), |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
        let stem = super::stem::stem_word(word);
        let mut found: Vec<(usize, String, i64)> = Vec::new();
        for row in rows {
            let (other, chunks): (String, i64) = row?;
            let others: Vec<char> = other.chars().collect();
            let apart = edit_distance(&letters, &others).min(edit_distance(&stem.chars().collect::<Vec<_>>(), &others));
            let is_part = others.len() > letters.len() && other.starts_with(&stem);
            if apart <= slips {
                found.push((apart, other, chunks));
            } else if is_part {
                found.push((slips + 1, other, chunks));
            }
        }
        found.sort_by_key(|(apart, _, chunks)| (*apart, -chunks));
        let mut known = Vec::new();
        for (_, word, chunks) in found {
            if known.len() < MAX_ALIKE && (chunks > 0 || self.is_speaker(&word)?) {
                known.push((word, chunks));
            }
        }
        Ok(known)
    }

    /// Returns the candidate chunks, and the cosines of those found by vector, by key.
    pub(super) fn gather_candidates(
        &mut self,
        wanted: &QueryTerms,
        scope: &Scope,
        direction: Option<&Direction>,
    ) -> Result<(Vec<i64>, Cosines), IndexError> {
        let mut tally = Tally { counts: HashMap::with_capacity_and_hasher(CAPACITY, ByNumber::default()) };
        self.gather_by_words(&mut tally, wanted, scope)?;
        if let Some(span) = wanted.span {
            let mut statement = self
                .conn
                .prepare_cached("SELECT id FROM chunks WHERE date BETWEEN ?1 AND ?2 ORDER BY date DESC LIMIT ?3")?;
            let days = (span.first.num_days_from_ce(), span.last.num_days_from_ce(), MAX_BY_DAY);
            let mut rows = statement.query(days)?;
            while let Some(row) = rows.next()? {
                tally.add(scope, row.get(0)?, DAY_WEIGHT);
            }
        }
        let mut ids = tally.into_best(MAX_BY_WORDS);
        let mut cosines = Cosines::default();
        if let Some(direction) = direction {
            let near = self.find_nearest(direction, scope)?;
            let first: Vec<i64> = near.iter().take(MAX_BY_VECTOR).map(|(key, _)| *key).collect();
            ids.extend(self.find_chunks_by_key(&first, scope)?);
            cosines.extend(near);
        }
        let mut seen = KeySet::default();
        ids.retain(|id| seen.insert(*id));
        Ok((ids, cosines))
    }

    /// Returns the chunks with these keys, in the keys' order. A text that occurs several times yields several chunks, up to a limit.
    fn find_chunks_by_key(&self, keys: &[i64], scope: &Scope) -> Result<Vec<i64>, IndexError> {
        let mut of_key: HashMap<i64, Vec<i64>, ByNumber> = HashMap::default();
        // A single statement: a hundred separate ones take longer than the reading.
        let mut statement = self.conn.prepare_cached(
            "SELECT key, id FROM (SELECT value AS sought FROM json_each(?1)) CROSS JOIN chunks ON key = sought",
        )?;
        let mut sought = keys.to_vec();
        sought.sort_unstable();
        let mut rows = statement.query([sql_list(&sought)])?;
        while let Some(row) = rows.next()? {
            let (key, id) = (row.get(0)?, row.get(1)?);
            let places = of_key.entry(key).or_default();
            if places.len() < MAX_PLACES && scope.is_allowed(id) {
                places.push(id);
            }
        }
        Ok(keys.iter().filter_map(|key| of_key.get(key)).flatten().take(MAX_BY_VECTOR).copied().collect())
    }

    /// Adds candidates by the rarest words, up to a limit. Commoner words only raise existing candidates: a chunk without a rare word ranks
    /// low.
    fn gather_by_words(&self, tally: &mut Tally, wanted: &QueryTerms, scope: &Scope) -> Result<(), IndexError> {
        let has_others = wanted.words.iter().any(|word| !word.is_speaker && word.chunks > 0);
        let mut by_rarity: Vec<&WantedWord> = wanted.words.iter().collect();
        by_rarity.sort_by(|one, other| other.rarity.total_cmp(&one.rarity));
        let mut left = MAX_POSTINGS;
        let mut rare: Vec<String> = Vec::new();
        for word in by_rarity {
            let is_common = !rare.is_empty() && word.chunks > left;
            for (stem, counts) in &word.stems {
                let token = quote_token(WordPlace::Text, stem);
                let counts = word.rarity * counts;
                if is_common {
                    let matching = format!("{token} AND ({})", rare.join(" OR "));
                    self.visit_matches(&matching, MAX_POSTINGS, |id| tally.add_to_known(id, counts))?;
                } else {
                    left -= self.visit_matches(&token, left, |id| tally.add(scope, id, counts))?;
                    rare.push(token);
                }
                let heading = counts * HEADING_WEIGHT;
                self.visit_matches(&quote_token(WordPlace::Heading, stem), MAX_BY_HEADING, |id| {
                    tally.add(scope, id, heading);
                })?;
                if word.is_speaker && !has_others {
                    self.visit_matches(&quote_token(WordPlace::Speaker, stem), MAX_BY_HEADING, |id| {
                        tally.add(scope, id, counts);
                    })?;
                }
            }
        }
        // Among thousands of lines with the same number, prefer those that use it with the same word.
        let stem = |word: &WantedWord| word.stems.first().map(|(stem, _)| stem.clone()).unwrap_or_default();
        for (one, other) in wanted.words.iter().zip(wanted.words.iter().skip(1)) {
            if let Some(token) = terms::pair_token(&stem(one), &stem(other)) {
                let counts = PAIR_WEIGHT * (one.rarity + other.rarity);
                self.visit_matches(&format!("\"{token}\""), MAX_BY_HEADING, |id| tally.add(scope, id, counts))?;
            }
        }
        Ok(())
    }

    /// Passes the matching chunks to `take`, newest first, and returns their number.
    fn visit_matches(&self, matching: &str, limit: i64, mut take: impl FnMut(i64)) -> Result<i64, IndexError> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT rowid FROM postings WHERE postings MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
        let mut rows = statement.query((matching, limit))?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            take(row.get(0)?);
            read += 1;
        }
        Ok(read)
    }
}

/// The weights collected for each chunk, by id.
struct Tally {
    counts: HashMap<i64, f32, ByNumber>,
}

impl Tally {
    fn add(&mut self, scope: &Scope, id: i64, counts: f32) {
        if scope.is_allowed(id) {
            *self.counts.entry(id).or_default() += counts;
        }
    }

    fn add_to_known(&mut self, id: i64, counts: f32) {
        if let Some(known) = self.counts.get_mut(&id) {
            *known += counts;
        }
    }

    /// Returns the best chunks; among equals the newest.
    fn into_best(self, limit: usize) -> Vec<i64> {
        let mut all: Vec<(i64, f32)> = self.counts.into_iter().collect();
        let order = |one: &(i64, f32), other: &(i64, f32)| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0));
        if all.len() > limit {
            all.select_nth_unstable_by(limit, order);
            all.truncate(limit);
        }
        all.sort_by(order);
        all.into_iter().map(|(id, _)| id).collect()
    }
}

/// Builds the FTS5 query for one word in one place.
fn quote_token(place: WordPlace, stem: &str) -> String {
    format!("\"{}\"", place.token(stem))
}

/// Returns the edit distance: letters omitted, added, replaced or swapped.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    if one.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
    // The two previous rows of the distance matrix.
    let (mut second, mut first): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=other.len()).collect());
    for (i, letter) in one.iter().enumerate() {
        let mut row = Vec::with_capacity(other.len() + 1);
        row.push(i + 1);
        for (j, another) in other.iter().enumerate() {
            let differs = usize::from(letter != another);
            let mut best = (at(&first, j) + differs).min(at(&first, j + 1) + 1).min(at(&row, j) + 1);
            if let (Some(i0), Some(j0)) = (i.checked_sub(1), j.checked_sub(1))
                && one.get(i0) == Some(another)
                && other.get(j0) == Some(letter)
            {
                best = best.min(at(&second, j0) + 1);
            }
            row.push(best);
        }
        second = std::mem::replace(&mut first, row);
    }
    at(&first, other.len())
}

/// Computes the natural logarithm of a number of at least 1, to five digits. Avoids the maths library, which would slow each start of the
/// program.
fn natural_log(number: f32) -> f32 {
    let bits = number.max(1.0).to_bits();
    let exponent = (bits >> 23) as f32 - 127.0;
    let mantissa = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    // The series of atanh around the middle of the binade.
    let part = (mantissa - SQRT_2) / (mantissa + SQRT_2);
    let square = part * part;
    let series = part * (2.0 + square * (0.666_666_7 + square * (0.4 + square * 0.285_714_3)));
    (exponent + 0.5) * LN_2 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_maths_library() {
        for number in [1.0_f32, 1.3, 2.0, 2.9, 10.0, 1e5, 3.3e7] {
            assert!((natural_log(number) - number.ln()).abs() < 1e-4, "{number}");
        }
    }

    #[test]
    fn slips_are_counted() {
        let between = |one: &str, other: &str| {
            edit_distance(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>())
        };
        assert_eq!(between("melanie", "melanie"), 0);
        assert_eq!(between("melanie", "melany"), 2);
        assert_eq!(between("caroline", "carolien"), 1);
        assert_eq!(between("anna", "ana"), 1);
        assert_eq!(between("a", "abcd"), usize::MAX);
    }
}
