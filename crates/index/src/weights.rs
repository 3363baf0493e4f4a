//! The small linear ranker of hits: its features and weights, and the only place of both. Pure.
//!
//! `scripts/bench-memory` computes the numbers of [`KEYWORDS`] and [`HYBRID`], in the order of [`FEATURES`]. Each feature lies between 0
//! and 1 for almost all hits, to make the weights comparable.

/// The saturation of repeated words (BM25's k1).
pub const K1: f32 = 1.2;
/// The penalty for a long chunk's words (BM25's b).
pub const B: f32 = 0.6;
/// The contributions of adjacent lines, and of the lines beyond.
pub const NEAR: [f32; 2] = [0.3, 0.09];
/// The weight of a word matched only by similar spelling.
pub const ALIKE: f32 = 0.7;

/// The number of features.
pub const COUNT: usize = 18;

/// The values of the features, in the order of [`FEATURES`].
pub type Features = [f32; COUNT];

/// The names of the features, in order.
pub const FEATURES: [&str; COUNT] = [
    "bm25",       // of the text's words, relative to the best candidate
    "trigram",    // the part of that from words with only a similar spelling
    "dense",      // the vectors' cosine, scaled from the worst to the best candidate
    "product",    // bm25 * dense
    "near_bm25",  // the bm25 contributed by neighbouring lines
    "near_dense", // the dense contributed by neighbouring lines
    "coverage",   // the fraction of the question's words in the text, by rarity
    "exact",      // the fraction of them in exactly the same form
    "in_order",   // the fraction of pairs of neighbouring words found as pairs
    "heading",    // the fraction of words in the headings above but not in the text
    "speaker",    // the question names the speaker
    "date",       // the question asks about this day; half for nearby days
    "recency",    // the newness among the candidates
    "importance", // the kind of content
    "length",     // the length of the text: short texts say little
    "asks",       // the text is itself a question
    "answers",    // the line before is a question with the wanted words
    "passage",    // the best bm25 of the neighbouring lines
];

/// The weights for candidates with a vector.
pub const HYBRID: Features =
    [0.00, -0.03, 1.00, 0.22, 0.04, 0.00, 0.41, 0.37, 0.15, 0.08, 0.33, 0.87, 0.00, 0.34, 0.73, -0.26, 0.49, 0.08];

/// The weights for words alone.
pub const KEYWORDS: Features =
    [0.55, -0.06, 0.00, 0.00, 0.07, 0.00, 0.66, 0.65, 0.18, 0.19, 0.71, 1.00, 0.00, 0.41, 0.53, -0.26, 0.57, 0.15];

/// Returns the relevance of a hit by these weights.
pub fn compute_score(features: &Features, weights: &Features) -> f32 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}

/// Returns whether the hit itself matches, rather than only its surroundings.
pub fn speaks_for_itself(features: &Features) -> bool {
    let [bm25, _, dense, .., heading, _speaker, date, _, _, _, _, _, _] = features;
    *bm25 > 0.0 || *dense >= NEAR_ENOUGH || *heading > 0.0 || *date >= 1.0
}

/// The minimum cosine of a hit, scaled among the candidates.
const NEAR_ENOUGH: f32 = 0.6;

/// Returns each present feature of a hit with its part of the score by these weights.
pub fn list_contributions(features: &Features, weights: &Features) -> Vec<(&'static str, f32)> {
    let parts = FEATURES.iter().zip(features).zip(weights);
    parts.map(|((name, feature), weight)| (*name, feature * weight)).filter(|(_, part)| *part != 0.0).collect()
}

/// Selects the weights for a candidate.
pub(super) fn select_weights(has_vector: bool) -> &'static Features {
    if has_vector { &HYBRID } else { &KEYWORDS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_says_what_it_is_ranked_by() {
        let mut features = [0.0; COUNT];
        features[0] = 0.5;
        let parts = list_contributions(&features, &KEYWORDS);
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].0, parts[0].1), ("bm25", compute_score(&features, &KEYWORDS)));
    }
}
