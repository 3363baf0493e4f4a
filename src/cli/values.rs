//! Parsers for numeric arguments, with error messages in plain words.

use reveille_base::types::ChatRef;

/// The entries that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListScope {
    /// Those that still wait for something.
    Open,
    /// The others too.
    All,
}

impl ListScope {
    /// Converts the flag `--all`.
    pub(super) fn from_flag(all: bool) -> Self {
        if all { Self::All } else { Self::Open }
    }
}

/// Parses the number of a message or a question, with or without `#`.
pub(super) fn parse_number(text: &str) -> Result<i64, String> {
    let number = text.strip_prefix('#').unwrap_or(text).parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected the number that the list shows, such as 12".to_owned())
}

/// Parses a count.
pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number, such as 20".to_owned())
}

/// Parses a day.
pub(super) fn parse_day(text: &str) -> Result<chrono::NaiveDate, String> {
    text.parse().map_err(|_| "expected a day, such as 2026-11-21".to_owned())
}

/// Parses a chat from its number.
pub(super) fn parse_chat(text: &str) -> Result<ChatRef, String> {
    parse_person(text).map(ChatRef::from_number)
}

/// Parses a person's numeric id.
pub(super) fn parse_person(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| "expected a numeric id, such as 123456789 (`bot pair --list` shows who has paired)".to_owned())
}

/// Parses an address to listen on.
pub(super) fn parse_address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:8931".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_refused_with_an_example() {
        assert_eq!((parse_number("12"), parse_number("#12")), (Ok(12), Ok(12)));
        for wrong in ["twelve", "", "0", "-3", "1.5", "99999999999999999999"] {
            assert!(parse_number(wrong).unwrap_err().contains("such as 12"), "{wrong}");
        }
        assert_eq!((parse_count("3"), parse_chat("-100")), (Ok(3), Ok(ChatRef::from_telegram(-100))));
        assert!(parse_count("-3").is_err() && parse_chat("@anna").is_err() && parse_address("8931").is_err());
    }
}
