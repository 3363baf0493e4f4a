//! A log line for readers: its time and its text. Both log formats begin with the time or contain it.

use chrono::{DateTime, Utc};

use crate::clock::parse_time;

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedLine {
    /// The time of writing; a line without a time has that of the previous line.
    pub at: DateTime<Utc>,
    /// The text in the file.
    pub text: String,
}

impl LoggedLine {
    /// Parses a line. `last` is the time of the previous line.
    pub(super) fn parse(text: &str, last: DateTime<Utc>) -> Self {
        Self { at: find_time(text).unwrap_or(last), text: text.to_owned() }
    }
}

fn find_time(text: &str) -> Option<DateTime<Utc>> {
    let time = match text.split_once("\"timestamp\":\"") {
        Some((head, rest)) if text.starts_with('{') && !head.contains("\"message\"") => rest.split_once('"')?.0,
        _ => text.split_once(' ')?.0,
    };
    time.contains('T').then(|| parse_time(time))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_tell_their_time_and_anything_else_takes_the_last_one() {
        let last = parse_time("2026-11-21T09:00:00Z").unwrap();
        let at = |text| LoggedLine::parse(text, last).at;
        let noon = parse_time("2026-11-21T12:00:00.5Z").unwrap();
        assert_eq!(at("2026-11-21T12:00:00.500Z wake[7]  INFO done"), noon);
        let json = r#"{"program":"wake","pid":7,"timestamp":"2026-11-21T12:00:00.500Z","level":"INFO"}"#;
        assert_eq!(at(json), noon);
        assert_eq!(at("thread 'main' panicked"), last);
        assert_eq!(at(r#"{"message":"\"timestamp\":\"2026-11-21T12:00:00.500Z\""}"#), last);
        assert_eq!(at(""), last);
    }
}
