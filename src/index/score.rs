//! The features of candidates: values in, values out.

use std::collections::HashMap;

use chrono::NaiveDate;

use super::{
    ChunkKind,
    gather::QueryTerms,
    terms,
    weights::{B, Features, K1, NEAR},
    write::said,
};

/// A chunk that may answer.
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
    pub(super) chat: Option<crate::types::ChatRef>,
    pub(super) taint: Option<String>,
    pub(super) is_of_others_to_guest: bool,
    pub(super) speaker: String,
    pub(super) heading: String,
    pub(super) above: String,
    pub(super) origin: String,
    pub(super) text: String,
    pub(super) cosine: Option<f32>,
}

/// What of a candidate's features concerns itself alone.
struct Own {
    bm25: f32,
    alike: f32,
    dense: Option<f32>,
    coverage: f32,
    exact: f32,
    in_order: f32,
    heading: f32,
    speaker: f32,
    length: f32,
    asks: bool,
}

/// The features of candidates, in their order. These are sorted by their place: document, order, id.
pub(super) fn features(wanted: &QueryTerms, candidates: &[Candidate]) -> Vec<Features> {
    let mut own: Vec<Own> = candidates.iter().map(|candidate| own(wanted, candidate)).collect();
    let best = own.iter().map(|own| own.bm25).fold(0.0, f32::max).max(f32::MIN_POSITIVE);
    let cosines = || own.iter().filter_map(|own| own.dense);
    let (least, most) = (cosines().fold(1.0, f32::min), cosines().fold(-1.0, f32::max));
    for own in &mut own {
        own.bm25 /= best;
        own.alike /= best;
        own.dense = own.dense.map(|cosine| ((cosine - least) / (most - least).max(1e-6)).clamp(0.0, 1.0));
    }
    let dates = || candidates.iter().filter_map(|candidate| candidate.date);
    let (oldest, newest) = (dates().min(), dates().max());
    (0..candidates.len())
        .filter_map(|at| {
            let (candidate, own_here) = (candidates.get(at)?, own.get(at)?);
            let near = Near::of(at, candidates, &own);
            let dense = own_here.dense.unwrap_or(0.0);
            Some([
                own_here.bm25,
                own_here.alike,
                dense,
                own_here.bm25 * dense,
                near.bm25,
                near.dense,
                own_here.coverage,
                own_here.exact,
                own_here.in_order,
                own_here.heading,
                own_here.speaker,
                date(wanted, candidate),
                recency(candidate, oldest, newest),
                importance(candidate),
                own_here.length,
                f32::from(u8::from(own_here.asks)),
                near.asked,
                near.best,
            ])
        })
        .collect()
}

fn own(wanted: &QueryTerms, candidate: &Candidate) -> Own {
    let words = terms::words(said(&candidate.text, &candidate.speaker));
    let mut counts: HashMap<&str, f32> = HashMap::new();
    for word in &words {
        *counts.entry(word.stem.as_str()).or_default() += 1.0;
    }
    let length = words.len() as f32;
    let damped = K1 * (1.0 - B + B * length / wanted.mean_length);
    let headings = terms::stems(&format!("{} {}", candidate.above, candidate.heading));
    let speaker = terms::stems(&candidate.speaker);
    let mut own = Own {
        bm25: 0.0,
        alike: 0.0,
        dense: candidate.cosine,
        coverage: 0.0,
        exact: 0.0,
        in_order: 0.0,
        heading: 0.0,
        speaker: 0.0,
        length: length / (length + 8.0),
        asks: candidate.text.trim_end().ends_with(['?', '？']),
    };
    let mut all = 0.0;
    for word in &wanted.words {
        all += word.rarity;
        let found = word.stems.iter().filter_map(|(stem, counts_for)| {
            let count = counts.get(stem.as_str())?;
            Some((counts_for * word.rarity * count * (K1 + 1.0) / (count + damped), *counts_for))
        });
        let (part, counts_for) = found.fold((0.0_f32, 0.0_f32), |best, next| if next.0 > best.0 { next } else { best });
        own.bm25 += part;
        own.coverage += word.rarity * counts_for;
        if counts_for > 0.0 && counts_for < 1.0 {
            own.alike += part;
        }
        if words.iter().any(|other| other.folded == word.folded) {
            own.exact += word.rarity;
        }
        let has = |stems: &[String]| word.stems.iter().any(|(stem, _)| stems.contains(stem));
        if part == 0.0 && has(&headings) {
            own.heading += word.rarity;
        }
        if word.is_speaker && has(&speaker) {
            own.speaker = 1.0;
        }
    }
    let all = all.max(f32::MIN_POSITIVE);
    own.coverage /= all;
    own.exact /= all;
    own.heading /= all;
    own.in_order = in_order(wanted, &words);
    own
}

/// Which part of the pairs of neighbouring words of the question stands in the text as a pair.
fn in_order(wanted: &QueryTerms, words: &[terms::TextWord]) -> f32 {
    let pairs = wanted.words.len().saturating_sub(1);
    if pairs == 0 {
        return 0.0;
    }
    let follows = |one: &str, other: &str| {
        words.windows(2).any(|pair| matches!(pair, [first, second] if first.stem == one && second.stem == other))
    };
    let stem = |at: usize| wanted.words.get(at).and_then(|word| word.stems.first()).map_or("", |(stem, _)| stem);
    (0..pairs).filter(|at| follows(stem(*at), stem(at + 1))).count() as f32 / pairs as f32
}

/// What the lines around lend.
#[derive(Default)]
struct Near {
    bm25: f32,
    dense: f32,
    asked: f32,
    best: f32,
}

impl Near {
    fn of(at: usize, candidates: &[Candidate], own: &[Own]) -> Self {
        let mut near = Self::default();
        let Some(here) = candidates.get(at) else { return near };
        for step in [-2_isize, -1, 1, 2] {
            let Some(there) = at.checked_add_signed(step) else { continue };
            let (Some(other), Some(own)) = (candidates.get(there), own.get(there)) else { continue };
            let far = step.unsigned_abs();
            // In a document places are counted; in a conversation they are times.
            let is_near = match here.message {
                None => here.ord.abs_diff(other.ord) == far as u64,
                Some(_) => here.ord.abs_diff(other.ord) <= MAX_PAUSE_MS,
            };
            if other.document != here.document || !is_near {
                continue;
            }
            let lends = NEAR.get(far - 1).copied().unwrap_or(0.0);
            near.bm25 += lends * own.bm25;
            near.dense += lends * own.dense.unwrap_or(0.0);
            near.best = near.best.max(own.bm25);
            if step == -1 && own.asks {
                near.asked = own.bm25;
            }
        }
        near
    }
}

/// What is said after a longer pause belongs to another conversation, in milliseconds.
const MAX_PAUSE_MS: u64 = 6 * 60 * 60 * 1_000;

fn date(wanted: &QueryTerms, candidate: &Candidate) -> f32 {
    let (Some(span), Some(day)) = (wanted.span, candidate.date) else { return 0.0 };
    match span.distance(day) {
        0 => 1.0,
        1..=3 => 0.5,
        4..=10 => 0.2,
        _ => 0.0,
    }
}

fn recency(candidate: &Candidate, oldest: Option<NaiveDate>, newest: Option<NaiveDate>) -> f32 {
    let (Some(day), Some(oldest), Some(newest)) = (candidate.date, oldest, newest) else { return 0.0 };
    let days = (newest - oldest).num_days().max(1);
    (day - oldest).num_days() as f32 / days as f32
}

fn importance(candidate: &Candidate) -> f32 {
    match candidate.kind {
        ChunkKind::Fact => 1.0,
        ChunkKind::Task => 0.8,
        ChunkKind::Note => 0.6,
        ChunkKind::Message => 0.5,
        ChunkKind::Log | ChunkKind::Answer => 0.3,
        ChunkKind::Skill => 0.2,
    }
}
