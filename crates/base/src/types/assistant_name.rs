//! The name of one assistant of a fleet: part of paths, addresses and database names.

use std::{fmt, str::FromStr};

/// The longest name in bytes. The name is part of identifiers, which PostgreSQL truncates to 63 bytes.
const MAX_BYTES: usize = 40;

/// The name of one assistant of a fleet: lower-case letters, digits and `_`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssistantName(String);

impl AssistantName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AssistantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AssistantName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_letter = |c: char| c.is_ascii_lowercase();
        let is_good = text.len() <= MAX_BYTES
            && text.starts_with(is_letter)
            && text.chars().all(|c| is_letter(c) || c.is_ascii_digit() || c == '_');
        match is_good {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "a name is made of small letters, digits and _, begins with a letter, and has at most {MAX_BYTES} characters"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_paths_addresses_and_database_names() {
        for good in ["ana", "a", "team_2"] {
            assert_eq!(good.parse::<AssistantName>().unwrap().as_str(), good);
        }
        let long = "a".repeat(41);
        for bad in ["", "Ana", "../ana", "a/b", "2ana", "_a", "a-b", "a b", "añ", "a\0", ".", long.as_str()] {
            bad.parse::<AssistantName>().unwrap_err();
        }
    }
}
