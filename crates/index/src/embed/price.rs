//! What embedding costs. The table is the providers' public price lists, read on [`PRICES_READ_ON`].

/// The day on which the prices were read.
pub const PRICES_READ_ON: &str = "2026-11-24";

/// US dollars a million tokens, by model.
const PRICES: &[(&str, f64)] = &[
    ("text-embedding-3-small", 0.02),
    ("text-embedding-3-large", 0.13),
    ("text-embedding-ada-002", 0.10),
    ("gemini-embedding-001", 0.15),
];

/// What a model that isn't in the table is counted at: several times the dearest, so that a budget errs on the safe side.
pub const UNKNOWN_USD_PER_MILLION: f64 = 1.0;

/// Bytes of text that make one token, at the least.
const FEWEST_BYTES_PER_TOKEN: usize = 2;

/// What a million tokens of a model cost, in US dollars, if the table has it.
pub fn known(model: &str) -> Option<f64> {
    PRICES.iter().find(|(name, _)| *name == model).map(|(_, usd)| *usd)
}

/// The most tokens that these texts are likely to be.
pub(super) fn most_tokens(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len().div_ceil(FEWEST_BYTES_PER_TOKEN) as u64 + 1).sum()
}

/// What so many tokens cost, in US dollars.
pub(super) fn usd(tokens: u64, usd_per_million: f64) -> f64 {
    tokens as f64 * usd_per_million / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_counts_as_dearer_than_what_is() {
        assert_eq!((known("text-embedding-3-small"), known("nomic-embed-text")), (Some(0.02), None));
        assert!(PRICES.iter().all(|(_, usd)| *usd < UNKNOWN_USD_PER_MILLION));
    }

    #[test]
    fn texts_are_counted_at_their_most_tokens() {
        assert_eq!(most_tokens(&["abc".to_owned(), "日本".to_owned()]), 3 + 4);
        assert!((usd(2_000_000, 0.02) - 0.04).abs() < 1e-12);
    }
}
