//! The lines of an `.env` file. A value is what stands there, letter by letter: nothing is expanded and nothing is escaped, so
//! that a password or an amount with `$`, `#` or `\` in it is what its person typed.
//!
//! That is also why the grammar is our own: the readers on crates.io put variables and escapes in the place of what was typed,
//! and what is left without them is smaller than what they would have to be kept from doing.

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvLine<'a> {
    /// Nothing: it is blank, or a comment.
    Nothing,
    /// `NAME=value`.
    Said(&'a str, &'a str),
    /// What can't be understood.
    Unreadable,
}

/// Reads one line: `NAME=value`, perhaps with `export` before it. A value that begins with a quotation mark goes to the next one
/// of the same kind; any other goes to the end of the line, or to a `#` that follows a blank.
pub(super) fn read(line: &str) -> EnvLine<'_> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return EnvLine::Nothing;
    }
    said(line).map_or(EnvLine::Unreadable, |(name, value)| EnvLine::Said(name, value))
}

fn said(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let exported = name.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace));
    let name = exported.unwrap_or(name).trim();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    if is_name { Some((name, literal(value)?)) } else { None }
}

fn literal(text: &str) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.trim_start().strip_prefix(quote) {
            let (value, after) = rest.split_once(quote)?;
            return without_comment(after).is_empty().then_some(value);
        }
    }
    Some(without_comment(text))
}

/// A text up to the first `#` that follows a blank, without the blanks around it.
fn without_comment(text: &str) -> &str {
    let is_comment =
        |(at, _): &(usize, &str)| text.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace));
    let end = text.match_indices('#').find(is_comment).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EnvLine, read};

    #[test]
    fn a_value_is_what_stands_there() {
        for (line, value) in [
            ("A=b", "b"),
            ("A=", ""),
            ("A = b ", "b"),
            ("export A=b", "b"),
            ("export\tA='b'", "b"),
            ("A=$2", "$2"),
            ("A=${HOME}/x", "${HOME}/x"),
            (r"A=a\nb\\", r"a\nb\\"),
            (r#"A="a\nb\\$c""#, r"a\nb\\$c"),
            ("A=a#b", "a#b"),
            ("A=#b", "#b"),
            ("A=a # b", "a"),
            ("A= # b", ""),
            ("A='a # b' # c", "a # b"),
            ("A=\"it's\"", "it's"),
            ("A=it's", "it's"),
            ("A=two words", "two words"),
            ("A=b=c", "b=c"),
            ("A='' ", ""),
        ] {
            assert_eq!(read(line), EnvLine::Said("A", value), "{line}");
        }
        for line in ["", "  ", "# A=b", "  #"] {
            assert_eq!(read(line), EnvLine::Nothing, "{line}");
        }
        for line in ["A", "=b", "A B=c", "A='b", "A=\"b", "A='b'c", "A='b'#c", "export", "ключ=b", "A-B=c"] {
            assert_eq!(read(line), EnvLine::Unreadable, "{line}");
        }
    }

    proptest! {
        #[test]
        fn each_way_of_writing_a_value_gives_it_back(value in "[ -~]{0,40}") {
            let quote = if value.contains('\'') { '"' } else { '\'' };
            if !value.contains(quote) {
                let quoted = format!("NAME={quote}{value}{quote} # why");
                prop_assert_eq!(read(&quoted), EnvLine::Said("NAME", &value));
            }
            let is_plain = value.trim() == value && !value.starts_with(['"', '\'']) && !value.contains(" #");
            if is_plain {
                let bare = format!("NAME={value}");
                prop_assert_eq!(read(&bare), EnvLine::Said("NAME", &value));
            }
        }

        #[test]
        fn whatever_stands_there_a_value_is_a_part_of_it(line in "\\PC{0,60}") {
            if let EnvLine::Said(name, value) = read(&line) {
                prop_assert!(line.contains(name) && line.contains(value));
            }
        }
    }
}
