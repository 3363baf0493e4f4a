//! The cost of a turn, for the daily budget and the commit trailers.
//!
//! The table is the provider's public price list for direct use of its API, read on [`PRICES_READ_ON`]. Its cache writes are those with a
//! lifetime of five minutes; a lifetime of an hour costs twice the input price.

use reveille_base::types::Usage;

use crate::Conversation;

/// The day on which the prices were read.
pub const PRICES_READ_ON: &str = "2026-11-21";

/// Minimum bytes per token: dense text and non-Latin scripts come near it.
const FEWEST_BYTES_PER_TOKEN: u64 = 2;

/// Bytes per token for estimates of uncounted text.
const BYTES_PER_TOKEN: usize = 3;

/// Maximum tokens of a picture.
const MOST_TOKENS_PER_IMAGE: u64 = 5_000;

/// Maximum tokens of a PDF: at most ten pages are shown (`cycle/run/begin/attached`), each as text and as a picture.
const MOST_TOKENS_PER_PDF: u64 = 80_000;

/// The beginning of a picture's data in our blocks.
const IMAGE_DATA: &str = r#""data":""#;

/// The text before [`IMAGE_DATA`] in a PDF's block.
const PDF_TYPE: &str = r#""media_type":"application/pdf","#;

/// The price of a token cached for an hour, in input tokens.
const HOUR_WRITE: f64 = 2.0;

/// Assumed context window of a model outside the table, in tokens.
const UNKNOWN_CONTEXT_WINDOW: u64 = 200_000;

/// Assumed output limit of a model outside the table, in tokens.
const UNKNOWN_MAX_OUTPUT: u64 = 32_000;

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    input: f64,
    cache_write: f64,
    cache_read: f64,
    output: f64,
}

/// A model's prices and limits.
#[derive(Debug, Clone, Copy)]
struct Entry {
    model: &'static str,
    rates: Rates,
    /// Rates for prompts above this many tokens, output included.
    long_prompt: Option<(u64, Rates)>,
    context_window: u64,
    max_output: u64,
}

impl Rates {
    fn scale(self, factor: f64) -> Self {
        let [input, cache_write, cache_read, output] =
            [self.input, self.cache_write, self.cache_read, self.output].map(|rate| rate * factor);
        Self { input, cache_write, cache_read, output }
    }
}

const fn rates(input: f64, cache_write: f64, cache_read: f64, output: f64) -> Rates {
    Rates { input, cache_write, cache_read, output }
}

const fn entry(model: &'static str, rates: Rates, long_prompt: Option<(u64, Rates)>) -> Entry {
    Entry { model, rates, long_prompt, context_window: 1_000_000, max_output: 128_000 }
}

/// The most expensive model comes first.
const PRICES: &[Entry] = &[
    entry("claude-fable-5", rates(10.0, 12.5, 1.0, 50.0), None),
    entry("claude-fable-5-1", rates(10.0, 12.5, 0.25, 50.0), None),
    entry("claude-opus-5", rates(5.0, 6.25, 0.5, 25.0), None),
    entry("claude-opus-5-5", rates(4.0, 5.0, 0.2, 20.0), None),
    entry("claude-sonnet-5", rates(2.0, 2.5, 0.2, 10.0), None),
    // The price of cache reads was halved on 2026-10-07.
    entry("claude-sonnet-5-5", rates(2.0, 2.5, 0.1, 10.0), None),
    entry("claude-haiku-5-5", rates(0.1, 0.125, 0.01, 0.5), Some((100_000, rates(0.5, 0.625, 0.05, 2.5)))),
];

/// The highest prices, charged for a model outside the table so that a budget errs on the safe side.
const DEAREST: Rates = rates(10.0, 12.5, 1.0, 50.0);

/// The surcharge of the clouds: the list price if a model may be served anywhere, a tenth more in a chosen region. The higher price counts.
const CLOUD_FACTOR: f64 = 1.1;

/// The highest prices for display: US dollars for a million input and output tokens.
pub const DEAREST_USD: (f64, f64) = (DEAREST.input, DEAREST.output);

/// Lists the table's models with US dollars for a million input and output tokens.
pub fn list_prices() -> impl Iterator<Item = (&'static str, (f64, f64))> {
    PRICES.iter().map(|entry| (entry.model, (entry.rates.input, entry.rates.output)))
}

/// Returns the price of a model in the table, by its name or a snapshot's.
pub fn listed_price(model: &str) -> Option<(f64, f64)> {
    find_entry(model).map(|_| find_rates(model, 0)).map(|rates| (rates.input, rates.output))
}

/// Finds the table's entry for a model id, with or without a snapshot's date (`-20261007`), or for its name in a cloud.
fn find_entry(model: &str) -> Option<&'static Entry> {
    let is_date = |rest: &str| {
        let rest = rest.strip_prefix(['-', '@']).unwrap_or_default();
        rest.len() == 8 && rest.bytes().all(|b| b.is_ascii_digit())
    };
    let id = strip_cloud_parts(model).unwrap_or(model);
    PRICES.iter().find(|entry| id.strip_prefix(entry.model).is_some_and(|rest| rest.is_empty() || is_date(rest)))
}

/// Strips a cloud's additions from a model's name: `bedrock:eu.anthropic.claude-…-v1:0`. `None` outside the clouds.
fn strip_cloud_parts(model: &str) -> Option<&str> {
    let id = model.strip_prefix("bedrock:").or_else(|| model.strip_prefix("vertex:"))?;
    let id = id.rsplit_once("anthropic.").map_or(id, |(_, id)| id);
    Some(id.strip_suffix(":0").map_or(id, |id| id.rsplit_once("-v").map_or(id, |(id, _)| id)))
}

fn find_rates(model: &str, prompt_tokens: u64) -> Rates {
    let rates = match find_entry(model) {
        Some(Entry { long_prompt: Some((above, rates)), .. }) if prompt_tokens > *above => *rates,
        Some(entry) => entry.rates,
        None => DEAREST,
    };
    if strip_cloud_parts(model).is_some() { rates.scale(CLOUD_FACTOR) } else { rates }
}

/// Returns the cost of one request in US dollars. `usage` must be that of a single request, since some models charge long prompts
/// differently. A model outside the table costs the highest known price.
pub fn cost_usd(model: &str, usage: &Usage) -> f64 {
    let rates = find_rates(model, usage.input + usage.cache_read + usage.cache_write);
    let cost = |tokens: u64, rate: f64| tokens as f64 * rate / 1e6;
    cost(usage.input, rates.input)
        + cost(usage.cache_write, rates.cache_write)
        + cost(usage.cache_read, rates.cache_read)
        + cost(usage.output, rates.output)
}

/// Returns the cost of a request with `hour_tokens` of its cache writes kept for an hour.
pub fn cost_with_hour_cache_usd(model: &str, usage: &Usage, hour_tokens: u64) -> f64 {
    let rates = find_rates(model, usage.input + usage.cache_read + usage.cache_write);
    let more = (HOUR_WRITE * rates.input - rates.cache_write).max(0.0);
    cost_usd(model, usage) + hour_tokens.min(usage.cache_write) as f64 * more / 1e6
}

/// Estimates the maximum cost of a request in US dollars, for the budget check before it. Assumes that the whole prompt is written to the
/// cache for an hour and the output has the maximum length.
pub fn estimate_max_cost(model: &str, prompt_bytes: usize, max_tokens: u64) -> f64 {
    let cache_write = most_tokens(prompt_bytes);
    cost_with_hour_cache_usd(model, &Usage { cache_write, output: max_tokens, ..Usage::default() }, cache_write)
}

/// Estimates the maximum tokens of a text of so many bytes.
pub fn most_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(FEWEST_BYTES_PER_TOKEN)
}

/// Estimates the tokens of an uncounted prompt.
pub fn estimated_prompt(bytes: usize) -> Usage {
    Usage { input: estimated_tokens(bytes), ..Usage::default() }
}

/// Estimates the tokens of an uncounted text.
pub fn estimated_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// Returns a prompt's size in bytes for [`estimate_max_cost`]. A picture counts by its maximum tokens, unless its bytes are fewer.
pub fn prompt_bytes(conversation: &Conversation) -> usize {
    let Conversation { system, tools, messages, .. } = conversation;
    system.len() + tools.len() + messages.iter().map(|message| message_bytes(message)).sum::<usize>()
}

/// Returns a message's size in the same way.
pub fn message_bytes(message: &str) -> usize {
    let most_bytes = |tokens: u64| usize::try_from(tokens * FEWEST_BYTES_PER_TOKEN).unwrap_or(usize::MAX);
    let (image_bytes, pdf_bytes) = (most_bytes(MOST_TOKENS_PER_IMAGE), most_bytes(MOST_TOKENS_PER_PDF));
    let mut pieces = message.split(IMAGE_DATA);
    let mut before = pieces.next().unwrap_or_default();
    let first = before.len();
    // Base64 ends at the next quotation mark. Any other field of that name counts in full.
    pieces.fold(first, |sum, piece| {
        let data = piece.find('"').unwrap_or(piece.len());
        let is_base64 = piece.bytes().take(data).all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        // A small PDF may contain much text, so every PDF counts as the maximum.
        let counted = if before.ends_with(PDF_TYPE) { pdf_bytes } else { data.min(image_bytes) };
        before = piece;
        sum + if is_base64 { piece.len() - data + counted } else { piece.len() }
    })
}

/// Returns the model's context window in tokens, prompt and answer together.
pub fn context_window(model: &str) -> u64 {
    find_entry(model).map_or(UNKNOWN_CONTEXT_WINDOW, |entry| entry.context_window)
}

/// Returns the largest `max_tokens` that the model accepts.
pub fn max_output(model: &str) -> u64 {
    find_entry(model).map_or(UNKNOWN_MAX_OUTPUT, |entry| entry.max_output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Usage = Usage { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, cache_write: 1_000_000 };

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        close(cost_usd("claude-sonnet-5-5", &MILLION), 2.0 + 10.0 + 0.1 + 2.5);
        close(cost_usd("claude-opus-5-5", &MILLION), 4.0 + 20.0 + 0.2 + 5.0);
        close(cost_usd("claude-opus-5-5-20260915", &MILLION), 29.2);
        close(cost_with_hour_cache_usd("claude-sonnet-5-5", &MILLION, 0), 14.6);
        close(cost_with_hour_cache_usd("claude-sonnet-5-5", &MILLION, 1_000_000), 14.6 + 1.5);
    }

    #[test]
    fn in_a_cloud_a_model_costs_a_tenth_more_by_whatever_name() {
        for name in [
            "bedrock:anthropic.claude-opus-5-5",
            "bedrock:eu.anthropic.claude-opus-5-5-20260915-v1:0",
            "vertex:claude-opus-5-5",
            "vertex:claude-opus-5-5@20260915",
        ] {
            close(cost_usd(name, &MILLION), 29.2 * 1.1);
            assert_eq!(context_window(name), 1_000_000, "{name}");
        }
        assert!(cost_usd("bedrock:amazon.nova", &MILLION) > cost_usd("claude-fable-5", &MILLION));
    }

    #[test]
    fn a_long_prompt_is_dearer_where_the_list_says_so() {
        let short = Usage { input: 60_000, cache_read: 40_000, output: 1000, ..Usage::default() };
        let long = Usage { cache_read: 40_001, ..short };
        close(cost_usd("claude-haiku-5-5", &short), 0.0060 + 0.0004 + 0.0005);
        close(cost_usd("claude-haiku-5-5", &long), 0.0300 + 0.00200005 + 0.0025);
    }

    #[test]
    fn an_unknown_model_costs_as_much_as_the_dearest() {
        for entry in PRICES {
            let known = cost_usd(entry.model, &MILLION);
            assert!(known <= cost_usd("claude-someday-9", &MILLION), "{}", entry.model);
        }
        close(cost_usd("claude-opus-5-55", &MILLION), cost_usd("claude-fable-5", &MILLION));
        assert_eq!(DEAREST, PRICES[0].rates);
        assert_eq!((context_window("gpt"), max_output("gpt")), (200_000, 32_000));
        assert_eq!((context_window("claude-haiku-5-5"), max_output("claude-haiku-5-5")), (1_000_000, 128_000));
    }

    #[test]
    fn a_picture_is_not_estimated_by_its_bytes() {
        let conversation = |message: String| Conversation { messages: vec![message], ..Conversation::default() };
        let image = |data: &str| {
            format!(r#"{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","data":"{data}"}}}}]}}"#)
        };
        let around = image("").len() - IMAGE_DATA.len();
        let bytes = |message| prompt_bytes(&conversation(message));
        assert_eq!(bytes(image(&"a+/=".repeat(1_000_000))), around + 10_000);
        assert_eq!(bytes(image("abcd")), around + 4);
        let words = format!(r#"{{"data":"{}"}}"#, "two words ".repeat(100_000));
        assert!(bytes(words.clone()) >= words.len() - IMAGE_DATA.len(), "words count in full");
        assert_eq!(bytes("{}".repeat(10)), 20);
        let pdf = r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"abcd"}}"#;
        assert_eq!(bytes(pdf.to_owned()), pdf.len() - IMAGE_DATA.len() - 4 + 160_000);
    }

    #[test]
    fn the_estimate_is_never_below_what_the_same_request_costs() {
        let estimate = estimate_max_cost("claude-sonnet-5-5", 100_000, 8_000);
        let real = Usage { input: 5_000, cache_write: 20_000, cache_read: 10_000, output: 8_000 };
        assert!(cost_usd("claude-sonnet-5-5", &real) < estimate);
        close(estimate, 50_000.0 * 4e-6 + 8_000.0 * 10e-6);
    }
}
