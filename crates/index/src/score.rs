//! The features of candidates, as pure values in and out.

use std::collections::HashMap;

use chrono::NaiveDate;

use super::{
    ChunkKind,
    gather::QueryTerms,
    stem::{common_prefix, stem_word},
    terms,
    weights::{B, Features, K1, NEAR},
    write::strip_speaker,
};

/// A candidate chunk.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) id: i64,
    pub(super) document: i64,
    pub(super) ord: i64,
    pub(super) line: i64,
    pub(super) last_line: i64,
    pub(super) kind: ChunkKind,
    pub(super) message: Option<i64>,
    pub(super) key: i64,
    pub(super) date: Option<NaiveDate>,
    pub(super) chat: Option<reveille_base::types::ChatRef>,
    pub(super) taint: Option<String>,
    pub(super) is_untrusted_to_guest: bool,
    pub(super) speaker: String,
    pub(super) heading: String,
    pub(super) above: String,
    pub(super) origin: String,
    pub(super) text: String,
    pub(super) cosine: Option<f32>,
}

/// The features of a candidate without its neighbours.
struct OwnFeatures {
    bm25: f32,
    /// The part of `bm25` from words whose spelling is only similar.
    similar: f32,
    /// The cosine with the question's vector, later scaled to the range of all candidates.
    dense: Option<f32>,
    coverage: f32,
    exact: f32,
    in_order: f32,
    heading: f32,
    speaker: f32,
    length: f32,
    /// Whether the text is itself a question.
    asks: bool,
}

/// Returns the features of candidates, in order. The candidates must be sorted by document, position and id.
pub(super) fn compute_features(wanted: &QueryTerms, candidates: &[Box<Candidate>]) -> Vec<Features> {
    let mut sought = PreparedQuestion::new(wanted);
    let mut own: Vec<OwnFeatures> =
        candidates.iter().map(|candidate| match_candidate(&mut sought, candidate)).collect();
    let best = own.iter().map(|own| own.bm25).fold(0.0, f32::max).max(f32::MIN_POSITIVE);
    let cosines = || own.iter().filter_map(|own| own.dense);
    let (least, most) = (cosines().fold(1.0, f32::min), cosines().fold(-1.0, f32::max));
    for own in &mut own {
        own.bm25 /= best;
        own.similar /= best;
        own.dense = own.dense.map(|cosine| ((cosine - least) / (most - least).max(1e-6)).clamp(0.0, 1.0));
    }
    let dates = || candidates.iter().filter_map(|candidate| candidate.date);
    let (oldest, newest) = (dates().min(), dates().max());
    (0..candidates.len())
        .filter_map(|at| {
            let (candidate, own_here) = (candidates.get(at)?, own.get(at)?);
            let near = Near::from_neighbours(at, candidates, &own);
            let dense = own_here.dense.unwrap_or(0.0);
            Some([
                own_here.bm25,
                own_here.similar,
                dense,
                own_here.bm25 * dense,
                near.bm25,
                near.dense,
                own_here.coverage,
                own_here.exact,
                own_here.in_order,
                own_here.heading,
                own_here.speaker,
                score_date(wanted, candidate),
                score_recency(candidate, oldest, newest),
                score_importance(candidate),
                own_here.length,
                f32::from(u8::from(own_here.asks)),
                near.asked,
                near.best,
            ])
        })
        .collect()
}

/// The words of a question, prepared for comparison with texts.
struct PreparedQuestion<'a> {
    wanted: &'a QueryTerms,
    /// The index of each matching stem.
    stems: HashMap<&'a str, usize>,
    /// For each wanted word, the indexes of its stems with their weights.
    stems_by_word: Vec<Vec<(usize, f32)>>,
    /// The stems of neighbouring words of the question, by index.
    pairs: Vec<(usize, usize)>,
    /// The beginnings that words with one of the stems can have.
    heads: Vec<&'a str>,
    /// The wanted words found in each heading or name, cached because many candidates share them.
    in_labels: HashMap<&'a str, Vec<bool>>,
}

impl<'a> PreparedQuestion<'a> {
    fn new(wanted: &'a QueryTerms) -> Self {
        let mut stems = HashMap::new();
        let mut heads = Vec::new();
        let mut stems_by_word = Vec::with_capacity(wanted.words.len());
        for word in &wanted.words {
            let mut numbers = Vec::with_capacity(word.stems.len());
            for (stem, weight) in &word.stems {
                let next = stems.len();
                numbers.push((*stems.entry(stem.as_str()).or_insert(next), *weight));
            }
            heads.extend(word.stems.iter().map(|(stem, _)| common_prefix(stem)));
            stems_by_word.push(numbers);
        }
        let number = |numbers: &Vec<(usize, f32)>| numbers.first().map(|(number, _)| *number);
        let pairs = stems_by_word.iter().zip(stems_by_word.iter().skip(1));
        let pairs = pairs.filter_map(|(one, other)| Some((number(one)?, number(other)?))).collect();
        heads.sort_unstable();
        heads.dedup();
        Self { wanted, stems, stems_by_word, pairs, heads, in_labels: HashMap::new() }
    }

    /// Returns for each wanted word whether it occurs in a heading or a name.
    fn match_label(&mut self, label: &'a str) -> &[bool] {
        let Self { wanted, in_labels, heads, .. } = self;
        in_labels.entry(label).or_insert_with(|| {
            let mut occurs = vec![false; wanted.words.len()];
            terms::for_each_word(label, |folded| {
                if may_have_stem(heads, folded) {
                    let here = stem_word(folded);
                    let words = wanted.words.iter().zip(&mut occurs);
                    words
                        .filter(|(word, _)| word.stems.iter().any(|(stem, _)| *stem == here))
                        .for_each(|(_, occurs)| *occurs = true);
                }
            });
            occurs
        })
    }

    /// Matches the question against a text.
    fn match_text(&self, text: &str) -> TextMatches {
        let mut found = TextMatches {
            counts: vec![0.0; self.stems.len()],
            is_exact: vec![false; self.stems_by_word.len()],
            follows: vec![false; self.pairs.len()],
            words: 0,
        };
        let mut before = None;
        terms::for_each_word(text, |folded| {
            found.words += 1;
            if !may_have_stem(&self.heads, folded) {
                before = None;
                return;
            }
            let here = self.stems.get(stem_word(folded).as_str()).copied();
            let exact = self.wanted.words.iter().zip(&mut found.is_exact);
            exact.filter(|(word, _)| word.folded == folded).for_each(|(_, is_exact)| *is_exact = true);
            if let Some(count) = here.and_then(|here| found.counts.get_mut(here)) {
                *count += 1.0;
            }
            if let (Some(before), Some(here)) = (before, here) {
                let pairs = self.pairs.iter().zip(&mut found.follows);
                pairs.filter(|(pair, _)| **pair == (before, here)).for_each(|(_, follows)| *follows = true);
            }
            before = here;
        });
        found
    }
}

/// Returns whether a word can have one of the stems. Saves stemming most words.
fn may_have_stem(heads: &[&str], folded: &str) -> bool {
    heads.iter().any(|head| folded.starts_with(head))
}

/// The matches of a question in one text.
struct TextMatches {
    /// The number of occurrences of each stem.
    counts: Vec<f32>,
    /// For each word of the question, whether the text has exactly this form of it.
    is_exact: Vec<bool>,
    /// For each pair of neighbouring words of the question, whether they are neighbours in the text.
    follows: Vec<bool>,
    /// The number of words in the text.
    words: usize,
}

fn match_candidate<'a>(sought: &mut PreparedQuestion<'a>, candidate: &'a Candidate) -> OwnFeatures {
    let found = sought.match_text(strip_speaker(&candidate.text, &candidate.speaker));
    let length = found.words as f32;
    let damped = K1 * (1.0 - B + B * length / sought.wanted.mean_length);
    let mut own = OwnFeatures {
        bm25: 0.0,
        similar: 0.0,
        dense: candidate.cosine,
        coverage: 0.0,
        exact: 0.0,
        in_order: compute_fraction(&found.follows),
        heading: 0.0,
        speaker: 0.0,
        length: length / (length + 8.0),
        asks: candidate.text.trim_end().ends_with(['?', '？']),
    };
    let mut parts = vec![0.0; sought.stems_by_word.len()];
    let mut all = 0.0;
    let words = sought.wanted.words.iter().zip(&sought.stems_by_word).zip(&found.is_exact);
    for (((word, stems), is_exact), here) in words.zip(&mut parts) {
        all += word.rarity;
        let counted = stems.iter().filter_map(|(number, weight)| {
            let count = found.counts.get(*number).copied().filter(|count| *count > 0.0)?;
            Some((weight * word.rarity * count * (K1 + 1.0) / (count + damped), *weight))
        });
        let (part, weight) = counted.fold((0.0_f32, 0.0_f32), |best, next| if next.0 > best.0 { next } else { best });
        *here = part;
        own.bm25 += part;
        own.coverage += word.rarity * weight;
        if weight > 0.0 && weight < 1.0 {
            own.similar += part;
        }
        if *is_exact {
            own.exact += word.rarity;
        }
    }
    let wanted = sought.wanted;
    let mut in_heading = vec![false; parts.len()];
    for label in [&candidate.above, &candidate.heading] {
        in_heading.iter_mut().zip(sought.match_label(label)).for_each(|(is_there, here)| *is_there |= here);
    }
    for ((word, is_there), part) in wanted.words.iter().zip(in_heading).zip(&parts) {
        if is_there && *part == 0.0 {
            own.heading += word.rarity;
        }
    }
    if wanted.words.iter().zip(sought.match_label(&candidate.speaker)).any(|(word, here)| word.is_speaker && *here) {
        own.speaker = 1.0;
    }
    let all = all.max(f32::MIN_POSITIVE);
    own.coverage /= all;
    own.exact /= all;
    own.heading /= all;
    own
}

/// Returns the fraction of true values.
fn compute_fraction(flags: &[bool]) -> f32 {
    flags.iter().filter(|flag| **flag).count() as f32 / flags.len().max(1) as f32
}

/// The contributions of neighbouring lines.
#[derive(Default)]
struct Near {
    bm25: f32,
    dense: f32,
    /// The `bm25` of the line before, if that is a question.
    asked: f32,
    /// The best `bm25` of the neighbours.
    best: f32,
}

impl Near {
    fn from_neighbours(at: usize, candidates: &[Box<Candidate>], own: &[OwnFeatures]) -> Self {
        let mut near = Self::default();
        let Some(here) = candidates.get(at) else { return near };
        for step in [-2_isize, -1, 1, 2] {
            let Some(there) = at.checked_add_signed(step) else { continue };
            let (Some(other), Some(own)) = (candidates.get(there), own.get(there)) else { continue };
            let distance = step.unsigned_abs();
            // Positions are consecutive numbers in a document, and times in a conversation.
            let is_near = match here.message {
                None => here.ord.abs_diff(other.ord) == distance as u64,
                Some(_) => here.ord.abs_diff(other.ord) <= MAX_PAUSE_MS,
            };
            if other.document != here.document || !is_near {
                continue;
            }
            let weight = NEAR.get(distance - 1).copied().unwrap_or(0.0);
            near.bm25 += weight * own.bm25;
            near.dense += weight * own.dense.unwrap_or(0.0);
            near.best = near.best.max(own.bm25);
            if step == -1 && own.asks {
                near.asked = own.bm25;
            }
        }
        near
    }
}

/// The maximum pause within a conversation, in milliseconds; after it, another conversation begins.
const MAX_PAUSE_MS: u64 = 6 * 60 * 60 * 1_000;

fn score_date(wanted: &QueryTerms, candidate: &Candidate) -> f32 {
    let (Some(span), Some(day)) = (wanted.span, candidate.date) else { return 0.0 };
    match span.distance(day) {
        0 => 1.0,
        1..=3 => 0.5,
        4..=10 => 0.2,
        _ => 0.0,
    }
}

fn score_recency(candidate: &Candidate, oldest: Option<NaiveDate>, newest: Option<NaiveDate>) -> f32 {
    let (Some(day), Some(oldest), Some(newest)) = (candidate.date, oldest, newest) else { return 0.0 };
    let days = (newest - oldest).num_days().max(1);
    (day - oldest).num_days() as f32 / days as f32
}

fn score_importance(candidate: &Candidate) -> f32 {
    match candidate.kind {
        ChunkKind::Fact => 1.0,
        ChunkKind::Task => 0.8,
        ChunkKind::Note => 0.6,
        ChunkKind::Message => 0.5,
        ChunkKind::Log | ChunkKind::Answer => 0.3,
        ChunkKind::Skill => 0.2,
    }
}
