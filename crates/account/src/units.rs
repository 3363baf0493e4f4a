//! Formats money, tokens and milliseconds for people.

use reveille_base::types::Usage;

pub use reveille_base::words::{format_large_number, format_usd};

/// Formats tokens: `1200 tokens in (80 % from the cache), 40 out`.
pub fn format_tokens(usage: &Usage) -> String {
    let prompt = count_prompt_tokens(usage);
    let cached = match usage.cache_read {
        0 => String::new(),
        cached => format!(" ({:.0} % from the cache)", compute_share(cached, prompt)),
    };
    format!("{} tokens in{cached}, {} out", format_large_number(prompt), format_large_number(usage.output))
}

/// The number of tokens in the prompts.
pub fn count_prompt_tokens(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)
}

/// The share of a part in percent.
pub fn compute_share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// Formats a duration: `12 ms`, `2.1 s`, `3 min 20 s`, `2 h 5 min`.
pub fn format_duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{} ms", ms.max(0)),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_durations_and_tokens_are_formatted_for_people() {
        assert_eq!([0.0, 0.00421, 0.5, 12.345].map(format_usd), ["$0.00", "$0.0042", "$0.5000", "$12.35"]);
        assert_eq!(
            [-5, 12, 2_140, 200_000, 7_500_000].map(format_duration),
            ["0 ms", "12 ms", "2.1 s", "3 min 20 s", "2 h 5 min"]
        );
        let usage = Usage { input: 100, output: 40, cache_read: 900, cache_write: 0 };
        assert_eq!(format_tokens(&usage), "1000 tokens in (90 % from the cache), 40 out");
        assert_eq!(format_tokens(&Usage { cache_read: 0, ..usage }), "100 tokens in, 40 out");
    }
}
