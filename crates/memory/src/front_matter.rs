//! The front matter between two lines `---` at the beginning of a skill or a job.
//!
//! The reader takes the flat subset of YAML needed here: plain, quoted and block strings at the top level. It also accepts a value with a
//! colon, such as `Look back: what went well`, which people write although YAML forbids it. Unclear values are reported and never guessed.

use super::{
    Problem,
    text::{is_blank, split_lines},
};

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// A key at the top level.
pub(super) struct Field {
    pub(super) key: String,
    /// The value as a string.
    pub(super) value: String,
    /// The reason the value isn't a string; `None` if it is one.
    pub(super) wrong: Option<String>,
    /// Whether the key has lines under it.
    pub(super) is_nested: bool,
    /// The lines under the key.
    pub(super) under: String,
    pub(super) line: usize,
}

/// Checks the name of a skill or a job: lower-case letters, digits and single hyphens between them.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let length = name.chars().count();
    if length > MAX_NAME_CHARS {
        return Err(format!("the name has {length} characters; at most {MAX_NAME_CHARS} are allowed"));
    }
    let allowed = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !allowed || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err(format!(
            "`{name}` can't be a name: use lower-case letters, digits and single hyphens between them"
        ));
    }
    Ok(())
}

/// Splits a text into the lines of its front matter, between `---` and the next `---`, and the text after it. `beginning` is the error
/// message for a text without front matter.
pub(super) fn split_front_matter<'a>(text: &'a str, beginning: &str) -> Result<(Vec<&'a str>, &'a str), Problem> {
    let mut all = split_lines(text);
    if all.next().map(str::trim_end) != Some("---") {
        return Err(Problem::new(1, beginning));
    }
    let mut front = Vec::new();
    let mut length = split_lines(text).next().map_or(0, str::len);
    for line in all {
        length += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return Ok((front, text.get(length..).unwrap_or_default()));
        }
        front.push(line.trim_end_matches(['\n', '\r']));
    }
    Err(Problem::new(1, "the front matter isn't closed: a line `---` is missing after it"))
}

/// Returns the top-level keys, each with its value and the indented lines under it. Keys in `strings` are read as strings; other values
/// stay verbatim.
pub(super) fn parse_fields(front: &[&str], strings: &[&str]) -> Result<Vec<Field>, Problem> {
    let mut fields = Vec::new();
    let mut rest = front;
    let mut line = 1;
    while let Some((first, after)) = rest.split_first() {
        line += 1;
        rest = after;
        if is_blank(first) || first.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, value)) = first.split_once(':').filter(|(key, _)| !key.starts_with([' ', '\t', '-'])) else {
            return Err(Problem::new(line, format!("`{}` isn't of the form `key: value`", first.trim())));
        };
        let under = rest.iter().take_while(|line| is_blank(line) || line.starts_with([' ', '\t'])).count();
        let (block, after) = rest.split_at_checked(under).unwrap_or((rest, &[]));
        rest = after;
        let key = key.trim().to_owned();
        let is_nested = block.iter().any(|line| !is_blank(line));
        let (value, wrong) = match parse_scalar(value.trim(), block) {
            _ if !strings.contains(&key.as_str()) => (value.trim().to_owned(), None),
            Ok(value) => (value, None),
            Err(what) => (String::new(), Some(what)),
        };
        let under_it = block.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
        fields.push(Field { key, value, wrong, is_nested, under: under_it, line });
        line += under;
    }
    Ok(fields)
}

/// Reads a string in any YAML form: block (`>` or `|`), quoted, or plain over one or more lines.
fn parse_scalar(first: &str, block: &[&str]) -> Result<String, String> {
    let mark = first.split_once(" #").map_or(first, |(mark, _comment)| mark.trim_end());
    if mark.starts_with(['>', '|']) && mark.chars().skip(1).all(|c| matches!(c, '+' | '-' | '0'..='9')) {
        let joint = if mark.starts_with('>') { " " } else { "\n" };
        let shown: Vec<&str> = block.iter().map(|line| line.trim()).collect();
        return Ok(shown.join(joint).trim().to_owned());
    }
    let whole = std::iter::once(first).chain(block.iter().map(|line| line.trim())).filter(|line| !line.is_empty());
    let whole = whole.collect::<Vec<_>>().join(" ");
    match whole.chars().next() {
        Some('"') => parse_double_quoted(&whole),
        Some('\'') => parse_single_quoted(&whole),
        Some(mark @ ('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`')) => {
            Err(format!("a value that begins with {mark} must be in quotes"))
        }
        _ => Ok(whole.split_once(" #").map_or(whole.as_str(), |(value, _)| value).trim_end().to_owned()),
    }
}

/// Checks that nothing but a comment follows a closing quote.
fn check_rest(rest: &str) -> Result<(), String> {
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(())
    } else {
        Err(format!("there is `{rest}` after the closing quote"))
    }
}

fn parse_single_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text.chars().skip(1).peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' if rest.peek() == Some(&'\'') => value.extend(rest.next()),
            '\'' => return check_rest(&rest.collect::<String>()).map(|()| value),
            c => value.push(c),
        }
    }
    Err("the closing quote is missing".to_owned())
}

fn parse_double_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text.chars();
    rest.next();
    while let Some(c) = rest.next() {
        match c {
            '"' => return check_rest(&rest.collect::<String>()).map(|()| value),
            '\\' => match rest.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(c @ ('"' | '\\' | '/' | ' ')) => value.push(c),
                other => return Err(format!("`\\{}` isn't understood", other.unwrap_or(' '))),
            },
            c => value.push(c),
        }
    }
    Err("the closing quote is missing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_ends_at_a_line_of_dashes_or_dots() {
        for (text, expected) in [
            ("---\na: b\n---\nbody", Some((vec!["a: b"], "body"))),
            ("---\r\na: b\r\n...\r\nbody", Some((vec!["a: b"], "body"))),
            ("---\n---", Some((vec![], ""))),
            ("---\na: b\n----\n", None),
            ("--- a\n---\n", None),
            ("", None),
        ] {
            assert_eq!(split_front_matter(text, "it has none").ok(), expected, "{text:?}");
        }
    }
}
