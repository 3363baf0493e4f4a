//! What of the context is read by code: how much energy the person has, and whether they want to be nudged.

use super::{
    CONTEXT,
    templates::without_explanation,
    text::{lines, split_comment},
};

/// What a person's context says that code acts on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preferences {
    /// `- energy: low`.
    pub has_low_energy: bool,
    /// `- nudges: off`.
    pub wants_no_nudges: bool,
}

impl Preferences {
    /// Reads `- key: value` lines, whatever the case. Of a key that stands there twice the last counts; other values mean nothing.
    pub fn of(context: &str) -> Self {
        let mut read = Self::default();
        for line in lines(&without_explanation(CONTEXT, context)) {
            let line = split_comment(line).0.trim().to_lowercase();
            let Some((key, value)) = line.strip_prefix(['-', '*', '+']).and_then(|line| line.split_once(':')) else {
                continue;
            };
            let value = value.trim().trim_end_matches('.');
            match key.trim().trim_matches('*') {
                "energy" => read.has_low_energy = value.split([' ', ',', ';']).next() == Some("low"),
                "nudges" => read.wants_no_nudges = value == "off",
                _ => {}
            }
        }
        read
    }

    /// Whether nudges wait: reminders, and what the person asked for, never do.
    pub fn holds_nudges(self) -> bool {
        self.has_low_energy || self.wants_no_nudges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_energy_and_nudges_that_are_off_hold_nudges() {
        for (context, holds) in [
            ("# Context\n- energy: low\n", true),
            ("- Energy: LOW, slept badly <!-- wake 1 -->\n", true),
            ("- energy: normal\n", false),
            ("- energy: low\n- energy: high\n", false),
            ("- nudges: off\n- energy: high\n", true),
            ("- nudges: on\n", false),
            ("my energy: low\n", false),
            ("<!-- - energy: low -->\n- energy: slow\n", false),
            ("", false),
        ] {
            assert_eq!(Preferences::of(context).holds_nudges(), holds, "{context}");
        }
    }
}
