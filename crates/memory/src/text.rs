//! Text helpers for the documents: lines and their endings, safe cutting, and neutralising a model's words before they become Markdown.

use std::ops::Range;

use reveille_base::words;

/// Returns the lines of a text, each with its ending (`\n`, `\r\n` or a lone `\r`). Concatenated they give the text again.
pub(super) fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, tail) = rest.split_at_checked(line_length(rest))?;
        rest = tail;
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the length in bytes of a text's first line, including its ending.
fn line_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        None => text.len(),
        Some(at) if bytes.get(at..at + 2) == Some(b"\r\n") => at + 2,
        Some(at) => at + 1,
    }
}

/// Returns the start of the line that contains byte `at`.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    slice(text, 0..at).rfind(['\n', '\r']).map_or(0, |newline| newline + 1)
}

/// Returns the end of the line that contains byte `at`, including its ending.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    at + line_length(slice(text, at..text.len()))
}

/// Returns the line ending of a text, judged by its first line; `\n` if there is none.
pub(super) fn detect_line_ending(text: &str) -> &'static str {
    if split_lines(text).next().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" }
}

/// Returns the text of a range. Parser ranges lie on character borders; any other range gives an empty text.
pub(super) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// Returns the text with one range replaced.
pub(super) fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    [slice(text, 0..range.start), with, slice(text, range.end..text.len())].concat()
}

/// Returns whether appended text would begin a new line: the text is empty (apart from a byte order mark) or ends in `\n`. A lone `\r` at
/// the end doesn't count, because the Markdown parser doesn't always treat it as a line end.
pub(super) fn ends_line(text: &str) -> bool {
    matches!(text, "" | "\u{feff}") || text.ends_with('\n')
}

/// Converts sorted ranges of whole lines to first and last line numbers, counted from 1 as by [`str::lines`].
pub(super) fn line_ranges(text: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<(usize, usize)> {
    let (mut at, mut line) = (0, 1);
    let mut count_to = |to: usize| {
        line += slice(text, at..to).bytes().filter(|byte| *byte == b'\n').count();
        at = to.max(at);
        line
    };
    let lines = ranges.into_iter().map(|range| {
        let first = count_to(range.start);
        let after = count_to(range.end);
        (first, if slice(text, range).ends_with('\n') { after - 1 } else { after })
    });
    lines.collect()
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim_ascii().is_empty()
}

/// Converts text to one line of at most `max` characters: each run of white space and control characters becomes one space. Breaks comment
/// marks, to keep a model's words from opening or closing an HTML comment.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let joined = words::one_line(&spaced);
    let safe = joined.replace("<!--", "<! --").replace("-->", "-- >").replace("--!>", "--! >");
    words::truncate_text(&safe, max)
}

/// Builds an HTML comment from one line that can't end the comment.
pub(super) fn format_comment(text: &str, max: usize) -> String {
    let mut inner = one_line(&text.replace(['<', '>'], " "), max);
    while inner.contains("--") {
        inner = inner.replace("--", "-");
    }
    format!("<!-- {} -->", inner.trim_matches(['-', ' ']))
}

/// Puts a backslash before a mark that would open a heading, list, quote, fence, rule or HTML block.
pub(super) fn escape_start(line: &str) -> String {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = line.split_at_checked(digits).unwrap_or((line, ""));
    let Some(mark) = rest.chars().next() else {
        return line.to_owned();
    };
    let after = rest.trim_start_matches(mark);
    let run = (rest.len() - after.len()) / mark.len_utf8();
    let is_separate = after.is_empty() || after.starts_with([' ', '\t']);
    let opens = match mark {
        '\\' => rest.chars().nth(1).is_some_and(|c| c.is_ascii_punctuation()),
        '.' | ')' => digits > 0 && is_separate,
        _ if digits > 0 => false,
        '#' | '-' | '+' => is_separate,
        '*' | '_' => (run == 1 && is_separate) || rest.chars().all(|c| c == mark || c == ' '),
        '=' => after.is_empty(),
        '`' | '~' => run >= 3,
        '<' => !rest.starts_with("<http"),
        '[' => rest.contains("]:"),
        '>' => true,
        _ => false,
    };
    if opens { format!("{number}\\{rest}") } else { line.to_owned() }
}

/// Splits a trailing `<!-- … -->` off a line: the text before, without trailing space, and the comment's inside.
pub(super) fn split_comment(line: &str) -> (&str, Option<&str>) {
    let trimmed = line.trim_end();
    trimmed
        .strip_suffix("-->")
        .and_then(|open| open.rsplit_once("<!--"))
        .filter(|(_, inside)| !inside.contains("-->"))
        .map_or((trimmed, None), |(text, inside)| (text.trim_end(), Some(inside.trim())))
}

/// Normalises a text for comparison: lower case, single spaces, no full stop or exclamation mark at the end, no backslash at the start.
pub(super) fn fold_text(text: &str) -> String {
    let joined = words::one_line(text).to_lowercase();
    joined.trim_start_matches('\\').trim_end_matches(['.', '!', ' ']).to_owned()
}

/// Returns the words of a text: runs of letters and digits in lower case, without a possessive `'s` or a plural `-s`.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\''))
        .map(|word| word.strip_suffix("'s").unwrap_or(word).replace('\'', ""))
        .filter(|word| !word.is_empty())
        .map(fold_plural)
        .collect()
}

/// Folds simple plurals: "tasks" finds "task" and "berries" finds "berry".
fn fold_plural(word: String) -> String {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.chars().count() > 2) {
        return format!("{stem}y");
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.chars().count() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_lines_give_the_original_text() {
        let text = "a\nb\r\nc\rd\n\n\re";
        assert_eq!(split_lines(text).collect::<Vec<_>>(), ["a\n", "b\r\n", "c\r", "d\n", "\n", "\r", "e"]);
        assert_eq!(split_lines("").count(), 0);
    }

    #[test]
    fn a_models_words_stay_on_their_line() {
        assert_eq!(one_line(" a\r\n## b\u{2028}c\u{85}d\0 ", 99), "a ## b c d");
        assert_eq!(one_line("x --> <!-- y", 99), "x -- > <! -- y");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(format_comment("wake 1-2 --> # <b>", 99), "<!-- wake 1-2 - # b -->");
        assert_eq!(escape_start("# x"), "\\# x");
        assert_eq!(escape_start("12. x"), "12\\. x");
        for plain in ["12 x", "**Ana** likes tea", "#tag", "-5 °C", "`code` first", "<https://example.org>", ""] {
            assert_eq!(escape_start(plain), plain);
        }
        for opening in ["- x", "***", "---", "```", "<!-- x", "[a]: b", "> x", "1) x", "==="] {
            assert!(escape_start(opening).contains('\\'), "{opening}");
        }
    }

    #[test]
    fn breaking_comment_marks_leaves_none() {
        for nasty in ["<!<!----", "---->>", "<!--->", "<!---->", "--<!-->"] {
            let line = one_line(nasty, 99);
            assert!(!line.contains("<!--") && !line.contains("-->"), "{line}");
            let inside = format_comment(nasty, 99);
            assert_eq!(inside.matches("-->").count(), 1, "{inside}");
        }
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(split_words("Anna’s boxes, berries & tasks: don't!"), ["anna", "boxe", "berry", "task", "dont"]);
        assert_eq!(split_words("glass bus is"), ["glass", "bus", "is"]);
    }
}
