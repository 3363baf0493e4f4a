//! Wraps lines for a terminal at word boundaries.

/// The minimum number of columns worth wrapping for.
const MIN_COLUMNS: usize = 20;
/// The prefix of lines kept as they are: code and tables.
const VERBATIM: &str = "    ";

/// Wraps a text at blanks to lines of at most this many columns. Code and longer words keep their lines.
pub fn wrap_text(text: &str, columns: usize) -> String {
    if columns < MIN_COLUMNS {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| wrapped_line(line, columns));
    lines.collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, columns: usize) -> String {
    if line.starts_with(VERBATIM) || measure_width(line) <= columns {
        return line.to_owned();
    }
    let indent = " ".repeat(measure_indent(line));
    let mut shown = String::with_capacity(line.len() + 8);
    let mut column = 0;
    for piece in line.split_inclusive(' ') {
        let wide = measure_width(piece.trim_end());
        if column > indent.len() && column + wide > columns {
            shown.truncate(shown.trim_end_matches(' ').len());
            shown.push('\n');
            shown.push_str(&indent);
            column = indent.len();
        }
        shown.push_str(piece);
        column += measure_width(piece);
    }
    shown
}

/// Returns the column where the text of a list item begins.
fn measure_indent(line: &str) -> usize {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    let rest = line.trim_start_matches(' ');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match rest.get(digits..) {
        Some(after) if digits > 0 && after.starts_with(". ") => digits + 2,
        _ if ["- ", "• ", "│ "].iter().any(|mark| rest.starts_with(mark)) => 2,
        _ => 0,
    };
    blanks + mark
}

/// Returns the number of visible characters: style sequences take no column.
fn measure_width(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|c| c.is_ascii_alphabetic() || *c == '\\');
        } else {
            columns += 1;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = "- one two three four five six\nshort\n    code that is longer than the page is wide\n\x1b[1mbold words\x1b[0m and others behind";
        let shown = wrap_text(text, 20);
        assert_eq!(
            shown,
            "- one two three four\n  five six\nshort\n    code that is longer than the page is wide\n\x1b[1mbold words\x1b[0m and\nothers behind"
        );
        assert_eq!(wrap_text(&"x".repeat(50), 20), "x".repeat(50));
        assert_eq!(wrap_text(text, 0), text);
    }
}
