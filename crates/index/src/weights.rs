//! What a hit is ranked by: a small linear ranker, its features and their weights. Pure, and the one place of both.
//!
//! The numbers of [`KEYWORDS`] and [`HYBRID`] are made by `scripts/bench-memory`, in the order of [`FEATURES`]. Each feature lies
//! between 0 and 1 for nearly all hits, so that a weight says how much it counts.

/// How often a word stands in a chunk counts up to here (BM25's k1).
pub const K1: f32 = 1.2;
/// How much a long chunk's words count less (BM25's b).
pub const B: f32 = 0.6;
/// What the lines before and after lend, and those beyond.
pub const NEAR: [f32; 2] = [0.3, 0.09];
/// What a word counts that is only spelt alike.
pub const ALIKE: f32 = 0.7;

/// How many features there are.
pub const COUNT: usize = 18;

/// Features, in the order of [`FEATURES`].
pub type Features = [f32; COUNT];

/// Their names, in order.
pub const FEATURES: [&str; COUNT] = [
    "bm25",       // of the text's words, as a part of the best candidate's
    "trigram",    // what of that comes from words that are only spelt alike
    "dense",      // the vectors' cosine, from the least candidate's to the best one's
    "product",    // bm25 * dense
    "near_bm25",  // what the lines around lend of it
    "near_dense", // the same of dense
    "coverage",   // which part of the question's words, by their rarity, stands in the text
    "exact",      // which part of them stands there in the very same form
    "in_order",   // which part of the pairs of neighbouring words stands there as a pair
    "heading",    // which part of them stands in the headings above, and not in the text
    "speaker",    // the question names who says it
    "date",       // the question asks about its day; half as much for days around
    "recency",    // how new it is among the candidates
    "importance", // what kind of thing it is
    "length",     // short texts say little
    "asks",       // it is a question itself
    "answers",    // the line before is a question with the words that are looked for
    "passage",    // the best bm25 of the lines around
];

/// The weights where a candidate has a vector.
pub const HYBRID: Features =
    [0.00, -0.03, 1.00, 0.22, 0.04, 0.00, 0.41, 0.37, 0.15, 0.08, 0.33, 0.87, 0.00, 0.34, 0.73, -0.26, 0.49, 0.08];

/// The weights of words alone.
pub const KEYWORDS: Features =
    [0.55, -0.06, 0.00, 0.00, 0.07, 0.00, 0.66, 0.65, 0.18, 0.19, 0.71, 1.00, 0.00, 0.41, 0.53, -0.26, 0.57, 0.15];

/// How well it fits.
pub fn score(features: &Features, has_vectors: bool) -> f32 {
    features.iter().zip(weights(has_vectors)).map(|(feature, weight)| feature * weight).sum()
}

/// Whether a hit is found for what it says itself, and not only for what stands around it.
pub fn speaks_for_itself(features: &Features) -> bool {
    let [bm25, _, dense, .., heading, _speaker, date, _, _, _, _, _, _] = features;
    *bm25 > 0.0 || *dense >= NEAR_ENOUGH || *heading > 0.0 || *date >= 1.0
}

/// How near a hit's vector has to be, of those that were looked at.
const NEAR_ENOUGH: f32 = 0.6;

/// Each feature that a hit has, with its part of the score.
pub fn contributions(features: &Features, has_vectors: bool) -> Vec<(&'static str, f32)> {
    let parts = FEATURES.iter().zip(features).zip(weights(has_vectors));
    parts.map(|((name, feature), weight)| (*name, feature * weight)).filter(|(_, part)| *part != 0.0).collect()
}

fn weights(has_vectors: bool) -> &'static Features {
    if has_vectors { &HYBRID } else { &KEYWORDS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_says_what_it_is_ranked_by() {
        let mut features = [0.0; COUNT];
        features[0] = 0.5;
        let parts = contributions(&features, false);
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].0, parts[0].1), ("bm25", score(&features, false)));
    }
}
