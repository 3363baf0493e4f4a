//! The preferences in `context.md` that code acts on: the person's energy, and whether they want nudges.

use super::{
    CONTEXT,
    templates::without_explanation,
    text::{split_comment, split_lines},
};

/// The person's preferences that code acts on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preferences {
    /// Set by `- energy: low`.
    pub has_low_energy: bool,
    /// Set by `- nudges: off`.
    pub wants_no_nudges: bool,
}

impl Preferences {
    /// Reads `- key: value` lines, ignoring case. The last of duplicate keys counts, and unknown values are ignored. A line counts
    /// wherever it is, even in damaged Markdown, where a parser might miss that nudges are off.
    pub fn parse(context: &str) -> Self {
        let mut preferences = Self::default();
        for line in split_lines(&without_explanation(CONTEXT, context)) {
            let line = split_comment(line).0.trim().to_lowercase();
            let Some((key, value)) = line.strip_prefix(['-', '*', '+']).and_then(|line| line.split_once(':')) else {
                continue;
            };
            let value = value.trim().trim_end_matches('.');
            match key.trim().trim_matches('*') {
                "energy" => preferences.has_low_energy = value.split([' ', ',', ';']).next() == Some("low"),
                "nudges" => preferences.wants_no_nudges = value == "off",
                _ => {}
            }
        }
        preferences
    }

    /// Returns whether nudges are held back. Reminders and requested messages always go out.
    pub fn holds_nudges(self) -> bool {
        self.has_low_energy || self.wants_no_nudges
    }
}

/// Returns the context with nudges turned off, by changing a line or adding one. `None` if they are off already.
pub fn without_nudges(context: &str) -> Option<String> {
    if Preferences::parse(context).wants_no_nudges {
        return None;
    }
    let is_about_nudges = |line: &str| {
        let words = line.trim().trim_start_matches(['-', '*', '+', ' ']).to_lowercase();
        line.trim_start().starts_with(['-', '*', '+']) && words.trim_start_matches('*').starts_with("nudges")
    };
    let changed: String = context
        .split_inclusive('\n')
        .map(|line| if is_about_nudges(line) { format!("{OFF}\n") } else { line.to_owned() })
        .collect();
    if Preferences::parse(&changed).wants_no_nudges {
        return Some(changed);
    }
    let end = if context.is_empty() || context.ends_with('\n') { "" } else { "\n" };
    Some(format!("{context}{end}{OFF}\n"))
}

const OFF: &str = "- nudges: off";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_nudges_off_changes_their_line_alone() {
        for (context, off) in [
            ("# Context\n- energy: high\n", Some("# Context\n- energy: high\n- nudges: off\n")),
            ("- nudges: on\n- energy: high", Some("- nudges: off\n- energy: high")),
            ("- **Nudges**: yes please\nMy nudges: x\n", Some("- nudges: off\nMy nudges: x\n")),
            ("- energy: high", Some("- energy: high\n- nudges: off\n")),
            ("- nudges: off\n", None),
            ("", Some("- nudges: off\n")),
        ] {
            assert_eq!(without_nudges(context).as_deref(), off, "{context}");
            assert!(Preferences::parse(off.unwrap_or(context)).wants_no_nudges);
        }
    }

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
            assert_eq!(Preferences::parse(context).holds_nudges(), holds, "{context}");
        }
    }
}
