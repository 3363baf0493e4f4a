//! The prices of embedding, from the providers' public price lists, read on [`PRICES_READ_ON`].

/// The date of the price lists.
pub const PRICES_READ_ON: &str = "2026-11-24";

/// US dollars per million tokens, by model.
const PRICES: &[(&str, f64)] = &[
    ("text-embedding-3-small", 0.02),
    ("text-embedding-3-large", 0.13),
    ("text-embedding-ada-002", 0.10),
    ("gemini-embedding-001", 0.15),
];

/// The assumed price of unknown models: several times the highest known price, so that no budget is exceeded.
pub const UNKNOWN_USD_PER_MILLION: f64 = 1.0;

/// The minimum bytes of text per token.
const FEWEST_BYTES_PER_TOKEN: usize = 2;

/// Returns the price of a million tokens of a model, in US dollars. `None` for unknown models.
pub fn find_price(model: &str) -> Option<f64> {
    PRICES.iter().find(|(name, _)| *name == model).map(|(_, usd)| *usd)
}

/// Returns an upper estimate of the number of tokens in these texts.
pub(super) fn estimate_max_tokens(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len().div_ceil(FEWEST_BYTES_PER_TOKEN) as u64 + 1).sum()
}

/// Returns the price of this many tokens, in US dollars.
pub(super) fn compute_usd(tokens: u64, usd_per_million: f64) -> f64 {
    tokens as f64 * usd_per_million / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_counts_as_dearer_than_what_is() {
        assert_eq!((find_price("text-embedding-3-small"), find_price("nomic-embed-text")), (Some(0.02), None));
        assert!(PRICES.iter().all(|(_, usd)| *usd < UNKNOWN_USD_PER_MILLION));
    }

    #[test]
    fn tokens_are_estimated_from_above() {
        assert_eq!(estimate_max_tokens(&["abc".to_owned(), "日本".to_owned()]), 3 + 4);
        assert!((compute_usd(2_000_000, 0.02) - 0.04).abs() < 1e-12);
    }
}
