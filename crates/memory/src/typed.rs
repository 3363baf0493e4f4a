//! Text from a web form: browsers send `\r\n` for each line end, regardless of the file's.

use imara_diff::{Algorithm, Diff, InternedInput};

use super::text::split_lines;

/// Simulates a text's way through a web form, without the change of line ends.
fn simulate_form(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}")
}

/// Returns whether a text survives a form unchanged.
pub fn survives_a_form(text: &str) -> bool {
    restore_line_endings(text, &simulate_form(text)) == text
}

/// Restores the file's line ends in a typed text: kept lines keep theirs, new lines get the most frequent.
pub fn restore_line_endings(file: &str, typed: &str) -> String {
    let typed = typed.replace("\r\n", "\n").replace('\r', "\n");
    if !file.contains('\r') {
        return typed;
    }
    let (before, after): (Vec<_>, Vec<_>) =
        (split_lines(file).map(split_line_end).collect(), split_lines(&typed).map(split_line_end).collect());
    let many = before.iter().filter(|(_, end)| *end == "\r\n").count();
    let usual = if many * 2 >= before.len() { "\r\n" } else { "\n" };
    let mut input = InternedInput::default();
    input.update_before(before.iter().map(|(line, _)| *line));
    input.update_after(after.iter().map(|(line, _)| *line));
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let mut kept = (0_u32..).zip(&before).filter(|(at, _)| !diff.is_removed(*at)).map(|(_, (_, end))| *end);
    let mut text = String::with_capacity(typed.len() + after.len());
    for (at, (line, end)) in (0_u32..).zip(after) {
        let own = if diff.is_added(at) { None } else { kept.next() };
        text.push_str(line);
        if !end.is_empty() {
            text.push_str(own.filter(|own| !own.is_empty()).unwrap_or(usual));
        }
    }
    text
}

/// Splits a line into text and line end.
fn split_line_end(line: &str) -> (&str, &str) {
    line.split_at(line.trim_end_matches(['\r', '\n']).len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    #[test]
    fn a_line_keeps_its_end_and_a_new_one_gets_the_usual_one() {
        for (file, typed, text) in [
            ("a\nb\n", "a\r\nc\r\n", "a\nc\n"),
            ("a\r\nb\r\n", "a\r\nc\r\nb\r\n", "a\r\nc\r\nb\r\n"),
            ("a\r\nb\nc\r\n", "a\r\nb\r\nnew\r\nc\r\n", "a\r\nb\nnew\r\nc\r\n"),
            ("a\r\nb", "a\r\nb\r\nc", "a\r\nb\r\nc"),
            ("a\nb\nc\r\n", "x\r\nb", "x\nb"),
        ] {
            assert_eq!(restore_line_endings(file, typed), text, "{file:?} {typed:?}");
        }
        assert!(survives_a_form("a\r\nb\nc") && survives_a_form("- a\rb") && !survives_a_form("a\0"));
    }

    proptest! {
        #[test]
        fn what_nobody_typed_in_is_as_it_was(text in document()) {
            let is_plain = !text.replace("\r\n", "").contains(['\r', '\0']);
            prop_assert!(!is_plain || survives_a_form(&text));
        }
    }
}
