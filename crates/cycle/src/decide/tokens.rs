//! The number of tokens in a text. Claude's tokenizer isn't public, so bytes are counted, and the usage reported for each prompt gives the
//! bytes per token. Pure.

use reveille_base::types::Usage;
use reveille_model::anthropic::price::message_bytes;

/// Bytes per token before any measurement. Dense text (JSON, code, other scripts than Latin) comes near this value.
const DEFAULT_BYTES_PER_TOKEN: u64 = 3;
/// The bounds for a measured value, in bytes per token, because a proxy may report anything.
const BYTES_PER_TOKEN: (u64, u64) = (1, 6);
/// The margin added to an estimate, in percent. Texts differ, and overestimating is the safe side.
const MARGIN_PERCENT: u64 = 20;

/// The minimum change of a measured value worth keeping, in percent.
const NEWS_PERCENT: u64 = 10;

/// The bytes per token, as measured on a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRate {
    bytes: u64,
    tokens: u64,
}

impl Default for TokenRate {
    fn default() -> Self {
        Self { bytes: DEFAULT_BYTES_PER_TOKEN, tokens: 1 }
    }
}

impl TokenRate {
    /// Builds the rate from the bytes and tokens of prompts, limited to the bounds.
    pub fn from_counts(bytes: u64, tokens: u64) -> Self {
        let (fewest, most) = BYTES_PER_TOKEN;
        match (bytes, tokens) {
            (0, _) | (_, 0) => Self::default(),
            _ => Self { bytes, tokens: tokens.clamp(bytes.div_ceil(most), bytes / fewest) },
        }
    }

    /// Parses the output of [`TokenRate::to_text`]. An unreadable text counts as unmeasured.
    pub fn parse(kept: &str) -> Self {
        let parts = kept.split_once('/').and_then(|(bytes, tokens)| Some((bytes.parse().ok()?, tokens.parse().ok()?)));
        parts.map_or_else(Self::default, |(bytes, tokens)| Self::from_counts(bytes, tokens))
    }

    /// Renders the rate for storage: bytes and tokens.
    pub fn to_text(&self) -> String {
        format!("{}/{}", self.bytes, self.tokens)
    }

    /// Returns `true` if the rate differs enough from the known one to be stored.
    pub fn is_changed_from(&self, known: &Self) -> bool {
        let [here, there] =
            [(self, known), (known, self)].map(|(one, other)| u128::from(one.bytes) * u128::from(other.tokens));
        here.abs_diff(there) * 100 > there * u128::from(NEWS_PERCENT)
    }

    /// Estimates the tokens of this many bytes, on the high side.
    pub fn estimate_tokens(&self, bytes: usize) -> u64 {
        let tokens = bytes as u128 * u128::from(self.tokens) * u128::from(100 + MARGIN_PERCENT);
        u64::try_from(tokens.div_ceil(u128::from(self.bytes) * 100)).unwrap_or(u64::MAX)
    }

    /// Returns the number of bytes fitting into this many tokens.
    pub fn count_fitting_bytes(&self, tokens: u64) -> usize {
        let bytes = u128::from(tokens) * u128::from(self.bytes) * 100;
        usize::try_from(bytes / (u128::from(self.tokens) * u128::from(100 + MARGIN_PERCENT))).unwrap_or(usize::MAX)
    }
}

/// Counts a conversation's tokens: as reported for the last answer, plus an estimate for later additions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCount {
    rate: TokenRate,
    /// The bytes of the whole next prompt.
    prompt_bytes: usize,
    /// The tokens of the last request: prompt and answer.
    told: u64,
    /// The bytes added since.
    added_bytes: usize,
    /// The tokens of the first prompt.
    first: Option<u64>,
}

impl TokenCount {
    /// Starts the count for a conversation with these fixed parts, at a known rate.
    pub fn new(rate: TokenRate, system: &str, tools: &str) -> Self {
        let bytes = system.len() + tools.len();
        Self { rate, prompt_bytes: bytes, added_bytes: bytes, ..Self::default() }
    }

    /// The rate, as last measured.
    pub fn rate(&self) -> TokenRate {
        self.rate
    }

    /// Adds a user message.
    pub fn add_message(&mut self, raw: &str) {
        let bytes = message_bytes(raw);
        self.prompt_bytes += bytes;
        self.added_bytes += bytes;
    }

    /// Adds an answer, whose content becomes part of the next prompt.
    pub fn add_answer(&mut self, content: &str, usage: &Usage) {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        if prompt > 0 {
            self.rate = TokenRate::from_counts(self.prompt_bytes as u64, prompt);
            self.first.get_or_insert(prompt);
        }
        self.told = prompt.saturating_add(usage.output);
        self.added_bytes = 0;
        self.prompt_bytes += content.len();
    }

    /// The tokens including a further message.
    pub fn count_with(&self, message: &str) -> u64 {
        self.told.saturating_add(self.rate.estimate_tokens(self.added_bytes + message_bytes(message)))
    }

    /// The tokens of the conversation.
    pub fn total(&self) -> u64 {
        self.count_with("")
    }

    /// The tokens of the first prompt, if it was answered.
    pub fn first(&self) -> Option<u64> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: u64, output: u64) -> Usage {
        Usage { input: prompt / 2, cache_read: prompt - prompt / 2, output, ..Usage::default() }
    }

    #[test]
    fn an_estimate_is_a_fifth_more_than_what_was_measured() {
        let rate = TokenRate::from_counts(40_000, 10_000);
        assert_eq!((rate.estimate_tokens(4_000), rate.count_fitting_bytes(1_200)), (1_200, 4_000));
        assert_eq!(TokenRate::default().estimate_tokens(3_000), 1_200);
        assert_eq!(TokenRate::from_counts(0, 7), TokenRate::default());
        assert_eq!(rate.estimate_tokens(0), 0);
    }

    #[test]
    fn impossible_counts_are_limited() {
        assert_eq!(TokenRate::from_counts(60_000, 1).count_fitting_bytes(1_200), 6_000);
        assert_eq!(TokenRate::from_counts(60_000, u64::MAX).count_fitting_bytes(1_200), 1_000);
        assert_eq!(TokenRate::from_counts(1, 1).estimate_tokens(usize::MAX), u64::MAX);
    }

    #[test]
    fn a_rate_is_kept_while_it_differs_little() {
        let rate = TokenRate::from_counts(40_000, 10_000);
        assert_eq!(TokenRate::parse(&rate.to_text()), rate);
        assert_eq!((TokenRate::parse(""), TokenRate::parse("a/b")), Default::default());
        assert!(!TokenRate::from_counts(4_300, 1_000).is_changed_from(&rate) && !rate.is_changed_from(&rate));
        assert!(
            TokenRate::from_counts(4_500, 1_000).is_changed_from(&rate) && TokenRate::default().is_changed_from(&rate)
        );
    }

    #[test]
    fn a_conversation_is_what_was_told_and_an_estimate_of_what_came_since() {
        let mut count = TokenCount::new(TokenRate::default(), "", "");
        count.add_message(&"x".repeat(30_000));
        assert_eq!((count.total(), count.first()), (12_000, None));
        count.add_answer(&"y".repeat(10_000), &usage(7_500, 500));
        assert_eq!((count.total(), count.first()), (8_000, Some(7_500)), "what it said is in the answer's tokens");
        count.add_message(&"z".repeat(4_000));
        assert_eq!(count.count_with(&"z".repeat(4_000)), 8_000 + 2_400, "four bytes a token, and a fifth");
        count.add_answer("", &usage(11_000, 1));
        assert_eq!((count.total(), count.first()), (11_001, Some(7_500)));
        count.add_answer("", &Usage::default());
        assert_eq!(
            count.rate(),
            TokenRate::from_counts(44_000, 11_000),
            "an answer that tells nothing teaches nothing"
        );
    }

    #[test]
    fn a_picture_is_not_counted_by_its_bytes() {
        let mut count = TokenCount::default();
        count.add_message(&format!(r#"{{"source":{{"type":"base64","data":"{}"}}}}"#, "A".repeat(1_000_000)));
        assert!(count.total() < 5_000, "{}", count.total());
    }
}
