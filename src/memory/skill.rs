//! Skills in the Agent Skills format: a folder with a `SKILL.md`, whose front matter says what it is for.
//!
//! The front matter is read as the flat subset of YAML that the format needs: plain, quoted and block strings at the
//! top level. Other keys and anything nested under them are left aside. What this reader can't be sure of is a
//! [`Problem`], not a guess.

use super::{
    Problem,
    text::{is_blank, lines},
};

/// A name's length, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// A description's length, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1_024;

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is also its folder's.
    pub name: String,
    /// What it does and when to use it, in one line.
    pub description: String,
    /// The instructions below the front matter.
    pub body: String,
}

impl Skill {
    /// Reads a `SKILL.md`.
    ///
    /// # Errors
    /// The first [`Problem`] that keeps it from being used, with its line.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim_start_matches('\u{feff}');
        let (front, body) = front_matter(text)?;
        let fields = fields(&front)?;
        let name = required(&fields, "name")?;
        let description = required(&fields, "description")?;
        check_name(&name.value).map_err(|what| Problem::new(name.line, what))?;
        let described = description.value.split_whitespace().collect::<Vec<_>>().join(" ");
        let length = described.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            let what = format!("the description has {length} characters; at most {MAX_DESCRIPTION_CHARS} are allowed");
            return Err(Problem::new(description.line, what));
        }
        Ok(Self { name: name.value.clone(), description: described, body: body.to_owned() })
    }

    /// The format wants a skill's folder to have its name; a problem if it hasn't.
    pub fn check_folder(&self, folder: &str) -> Option<Problem> {
        let what = || format!("the skill is called `{}`, but its folder `{folder}`; give both one name", self.name);
        (self.name != folder).then(|| Problem::new(1, what()))
    }
}

/// Whether a text can be a skill's name: lower-case letters, digits and single hyphens between them.
fn check_name(name: &str) -> Result<(), String> {
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

struct Field {
    key: String,
    value: String,
    line: usize,
}

fn required<'a>(fields: &'a [Field], key: &str) -> Result<&'a Field, Problem> {
    let mut found = fields.iter().filter(|field| field.key == key);
    let first = found.next().filter(|field| !field.value.trim().is_empty());
    let field = first.ok_or_else(|| Problem::new(1, format!("the front matter has no `{key}`")))?;
    match found.next() {
        Some(second) => Err(Problem::new(second.line, format!("`{key}` is given twice"))),
        None => Ok(field),
    }
}

/// The lines between the first `---` and the next, and the text after them.
fn front_matter(text: &str) -> Result<(Vec<&str>, &str), Problem> {
    let mut all = lines(text);
    if all.next().map(str::trim_end) != Some("---") {
        return Err(Problem::new(1, "a skill begins with a line `---`, then `name:` and `description:`, then `---`"));
    }
    let mut front = Vec::new();
    let mut length = lines(text).next().map_or(0, str::len);
    for line in all {
        length += line.len();
        if line.trim_end() == "---" {
            return Ok((front, text.get(length..).unwrap_or_default()));
        }
        front.push(line.trim_end_matches(['\n', '\r']));
    }
    Err(Problem::new(1, "the front matter isn't closed: a line `---` is missing after it"))
}

/// The top-level keys of a front matter, each with the value of its own line and the indented lines under it.
fn fields(front: &[&str]) -> Result<Vec<Field>, Problem> {
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
        let value = if matches!(key.as_str(), "name" | "description") {
            scalar(value.trim(), block).map_err(|what| Problem::new(line, format!("`{key}`: {what}")))?
        } else {
            String::new()
        };
        fields.push(Field { key, value, line });
        line += under;
    }
    Ok(fields)
}

/// A string in any of YAML's ways: block (`>` or `|`), quoted, or plain over one or more lines.
fn scalar(first: &str, block: &[&str]) -> Result<String, String> {
    if first.starts_with(['>', '|']) && first.chars().skip(1).all(|c| matches!(c, '+' | '-' | '0'..='9')) {
        let joint = if first.starts_with('>') { " " } else { "\n" };
        let shown: Vec<&str> = block.iter().map(|line| line.trim()).collect();
        return Ok(shown.join(joint).trim().to_owned());
    }
    let whole = std::iter::once(first).chain(block.iter().map(|line| line.trim())).filter(|line| !line.is_empty());
    let whole = whole.collect::<Vec<_>>().join(" ");
    match whole.chars().next() {
        Some('"') => double_quoted(&whole),
        Some('\'') => single_quoted(&whole),
        Some(mark @ ('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`')) => {
            Err(format!("a value that begins with {mark} must be in quotes"))
        }
        _ => Ok(whole.split_once(" #").map_or(whole.as_str(), |(value, _)| value).trim_end().to_owned()),
    }
}

fn ends_there(rest: &str) -> Result<(), String> {
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(())
    } else {
        Err(format!("`{rest}` stands after the closing quote"))
    }
}

fn single_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text.chars().skip(1).peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' if rest.peek() == Some(&'\'') => value.extend(rest.next()),
            '\'' => return ends_there(&rest.collect::<String>()).map(|()| value),
            c => value.push(c),
        }
    }
    Err("the closing quote is missing".to_owned())
}

fn double_quoted(text: &str) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text.chars();
    rest.next();
    while let Some(c) = rest.next() {
        match c {
            '"' => return ends_there(&rest.collect::<String>()).map(|()| value),
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
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn read(front: &str) -> Result<Skill, Problem> {
        Skill::parse(&format!("---\n{front}\n---\n# Do it\n"))
    }

    fn problem(front: &str) -> String {
        read(front).unwrap_err().to_string()
    }

    #[test]
    fn a_skill_is_read() {
        let text = "\u{feff}---\r\n# a comment\r\nname: weekly-review\r\ndescription: Look back: what went well # not this\r\nmetadata:\r\n  name: other\r\nlicense: MIT\r\n---\r\n\r\nBody\r\n---\r\n";
        let skill = Skill::parse(text).unwrap();
        assert_eq!(
            skill,
            Skill {
                name: "weekly-review".into(),
                description: "Look back: what went well".into(),
                body: "\r\nBody\r\n---\r\n".into()
            }
        );
        assert_eq!(skill.check_folder("weekly-review"), None);
        assert_snapshot!(skill.check_folder("weekly").unwrap(), @"line 1: the skill is called `weekly-review`, but its folder `weekly`; give both one name");
    }

    #[test]
    fn every_way_of_writing_a_string_is_tolerated() {
        for description in [
            "Say \"hi\" – it's me",
            "Say \"hi\"\n  – it's me",
            ">-\n  Say \"hi\"\n  – it's me\n",
            "|\n  Say \"hi\"\n  – it's me",
            "'Say \"hi\" – it''s me'",
            "\"Say \\\"hi\\\" – it's me\" # why",
            "\n  Say \"hi\" – it's me",
        ] {
            let skill = read(&format!("description: {description}\nname: 'a-1'")).unwrap();
            assert_eq!(
                (skill.name.as_str(), skill.description.as_str()),
                ("a-1", "Say \"hi\" – it's me"),
                "{description}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_snapshot!(Skill::parse("# No front").unwrap_err(), @"line 1: a skill begins with a line `---`, then `name:` and `description:`, then `---`");
        assert_snapshot!(Skill::parse("---\nname: a\n").unwrap_err(), @"line 1: the front matter isn't closed: a line `---` is missing after it");
        assert_snapshot!(problem("name: a"), @"line 1: the front matter has no `description`");
        assert_snapshot!(problem("description: x\nname:\n  "), @"line 1: the front matter has no `name`");
        assert_snapshot!(problem("name: a\nname: b\ndescription: c"), @"line 3: `name` is given twice");
        assert_snapshot!(problem("what\nname: a"), @"line 2: `what` isn't of the form `key: value`");
        assert_snapshot!(problem("name: a\ndescription: \"x"), @"line 3: `description`: the closing quote is missing");
        assert_snapshot!(problem("name: a\ndescription: [x]"), @"line 3: `description`: a value that begins with [ must be in quotes");
        assert_snapshot!(problem(&format!("name: a\ndescription: {}", "x".repeat(1_025))), @"line 3: the description has 1025 characters; at most 1024 are allowed");
        for name in ["A", "a_b", "-a", "a-", "a--b", "ä", "a b", &"a".repeat(65)] {
            assert!(problem(&format!("name: {name}\ndescription: x")).contains("name"), "{name}");
        }
        assert!(read(&format!("name: {}\ndescription: {}", "a".repeat(64), "x".repeat(1_024))).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(front in "(name|description|x)?: ?[\"'>|a\\\\ #-]{0,6}\n?( [a\"']\n)?.{0,9}", any in any::<String>()) {
            for text in [format!("---\n{front}\n---\n"), any] {
                if let Ok(skill) = Skill::parse(&text) {
                    prop_assert!(check_name(&skill.name).is_ok() && !skill.description.is_empty());
                    prop_assert!(text.ends_with(&skill.body));
                }
            }
        }
    }
}
