//! The lines of an `.env` file. Values are literal, without expansion or escapes, so that a password or an amount with `$`, `#` or
//! `\` is read exactly as typed.
//!
//! The grammar is our own for this reason: parsers on crates.io expand variables and escapes, and preventing this would take more
//! code than these lines.

use super::given::SettingChanges;

/// The reason for a failed change of the settings file. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The place of the file is unknown.
    #[error("I can't tell where the workspace is, because HOME isn't set")]
    NoPlace,
    /// The file exists but isn't trusted or can't be read.
    #[error("{0}")]
    Unreadable(String),
    /// The grammar can't express the value.
    #[error("{0} can't be written to the file: it holds a line break, or both kinds of quotation marks")]
    Unwritable(&'static str),
}

/// A parsed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvLine<'a> {
    /// A blank line or a comment.
    Nothing,
    /// A setting, `NAME=value`.
    Setting(&'a str, &'a str),
    /// An invalid line.
    Unreadable,
}

/// Parses one line: `NAME=value`, optionally after `export`. A value that begins with a quotation mark ends at the next one of the
/// same kind. Any other value ends at the end of the line, or at a `#` after a blank.
pub(super) fn parse_line(line: &str) -> EnvLine<'_> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return EnvLine::Nothing;
    }
    parse_setting(line).map_or(EnvLine::Unreadable, |(name, value)| EnvLine::Setting(name, value))
}

fn parse_setting(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let exported = name.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace));
    let name = exported.unwrap_or(name).trim();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    if is_name { Some((name, parse_value(value)?)) } else { None }
}

fn parse_value(text: &str) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.trim_start().strip_prefix(quote) {
            let (value, after) = rest.split_once(quote)?;
            return without_comment(after).is_empty().then_some(value);
        }
    }
    Some(without_comment(text))
}

/// Cuts a text at the first `#` after a blank and trims it.
fn without_comment(text: &str) -> &str {
    let is_comment =
        |(at, _): &(usize, &str)| text.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace));
    let end = text.match_indices('#').find(is_comment).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text).trim()
}

/// Applies changes to a file's text. An existing setting keeps its place; a new one follows the comment with its default, else the
/// end. Every other line keeps its bytes.
pub(super) fn apply_changes(text: &str, changes: &SettingChanges) -> Result<String, EditError> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let mut lines: Vec<String> = body.split('\n').map(str::to_owned).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    for (&name, value) in changes {
        let new = value.as_deref().map(|value| format_setting(name, value)).transpose()?;
        change_setting(&mut lines, name, new.as_deref());
    }
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(format!("{mark}{body}"))
}

fn change_setting(lines: &mut Vec<String>, name: &str, mut new: Option<&str>) {
    let says = |line: &str| matches!(parse_line(line), EnvLine::Setting(given, _) if given == name);
    lines.retain_mut(|line| {
        if !says(line) {
            return true;
        }
        // A second line of the same name would contradict the first.
        let Some(new) = new.take() else { return false };
        let comment = find_comment(line);
        *line = if comment.is_empty() { new.to_owned() } else { format!("{new} {comment}") };
        true
    });
    let Some(new) = new.map(str::to_owned) else { return };
    let shows_default = |line: &String| line.trim().trim_start_matches('#').trim().starts_with(&format!("{name}="));
    match lines.iter().position(shows_default) {
        Some(at) => lines.insert(at + 1, new),
        None => lines.push(new),
    }
}

/// The comment at the end of a setting's line.
fn find_comment(line: &str) -> &str {
    let EnvLine::Setting(_, value) = parse_line(line) else { return "" };
    let behind = line.split_once('=').and_then(|(_, rest)| rest.split_once(value)).map_or("", |(_, behind)| behind);
    let behind = behind.trim_start_matches(['"', '\'']).trim();
    if behind.starts_with('#') { behind } else { "" }
}

/// Formats a setting as a line, quoted if necessary, and verifies it by parsing.
fn format_setting(name: &'static str, value: &str) -> Result<String, EditError> {
    let ways = ["", "'", "\""].map(|quote| format!("{name}={quote}{value}{quote}"));
    let is_right = |line: &String| !value.contains(['\n', '\r']) && parse_line(line) == EnvLine::Setting(name, value);
    ways.into_iter().find(is_right).ok_or(EditError::Unwritable(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EditError, EnvLine, SettingChanges, apply_changes, parse_line};

    fn set(text: &str, name: &'static str, value: Option<&str>) -> String {
        apply_changes(text, &SettingChanges::from([(name, value.map(str::to_owned))])).unwrap()
    }

    #[test]
    fn a_setting_changes_in_its_place_and_all_else_keeps_its_bytes() {
        let text = "# mine\r\nX = 1  # odd\nexport MODEL=a # why\nY='it''s\n\nMODEL=b";
        assert_eq!(set(text, "MODEL", Some("offline")), "# mine\r\nX = 1  # odd\nMODEL=offline # why\nY='it''s\n\n");
        assert_eq!(set(text, "MODEL", None), "# mine\r\nX = 1  # odd\nY='it''s\n\n");
        assert_eq!(set(text, "AUTONOMY", Some("2")), format!("{text}\nAUTONOMY=2\n"));
        assert_eq!(set("\u{feff}MODEL=a\n", "MODEL", Some("b")), "\u{feff}MODEL=b\n");
        assert_eq!(set("", "MODEL", Some("b")), "MODEL=b\n");
        assert_eq!(set("MODEL='a' # why\n", "MODEL", Some("b")), "MODEL=b # why\n");
    }

    #[test]
    fn a_new_setting_stands_below_the_comment_that_shows_its_default() {
        let text = "# The model's id.\n#MODEL=claude\n# Budget\nTOKEN=\n";
        assert_eq!(set(text, "MODEL", Some("b")), "# The model's id.\n#MODEL=claude\nMODEL=b\n# Budget\nTOKEN=\n");
    }

    #[test]
    fn a_value_is_quoted_where_it_must_be() {
        assert_eq!(set("", "MODEL", Some("a #b")), "MODEL='a #b'\n");
        assert_eq!(set("", "MODEL", Some("'a' #b")), "MODEL=\"'a' #b\"\n");
        for value in ["a\nAUTONOMY=2", "'\" #"] {
            let changes = SettingChanges::from([("MODEL", Some(value.to_owned()))]);
            assert_eq!(apply_changes("", &changes), Err(EditError::Unwritable("MODEL")), "{value}");
        }
    }

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
            assert_eq!(parse_line(line), EnvLine::Setting("A", value), "{line}");
        }
        for line in ["", "  ", "# A=b", "  #"] {
            assert_eq!(parse_line(line), EnvLine::Nothing, "{line}");
        }
        for line in ["A", "=b", "A B=c", "A='b", "A=\"b", "A='b'c", "A='b'#c", "export", "ключ=b", "A-B=c"] {
            assert_eq!(parse_line(line), EnvLine::Unreadable, "{line}");
        }
    }

    proptest! {
        #[test]
        fn each_way_of_writing_a_value_gives_it_back(value in "[ -~]{0,40}") {
            let quote = if value.contains('\'') { '"' } else { '\'' };
            if !value.contains(quote) {
                let quoted = format!("NAME={quote}{value}{quote} # why");
                prop_assert_eq!(parse_line(&quoted), EnvLine::Setting("NAME", &value));
            }
            let is_plain = value.trim() == value && !value.starts_with(['"', '\'']) && !value.contains(" #");
            if is_plain {
                let bare = format!("NAME={value}");
                prop_assert_eq!(parse_line(&bare), EnvLine::Setting("NAME", &value));
            }
        }

        #[test]
        fn whatever_stands_there_a_value_is_a_part_of_it(line in "\\PC{0,60}") {
            if let EnvLine::Setting(name, value) = parse_line(&line) {
                prop_assert!(line.contains(name) && line.contains(value));
            }
        }
    }
}
