//! Skills in the Agent Skills format (agentskills.io): a folder with a `SKILL.md`, whose front matter states the skill's purpose.
//!
//! Keys unknown to the format are ignored. Unclear values become a [`Problem`] and are never guessed. `allowed-tools` is checked but grants
//! nothing: only the policy allows actions.

use std::collections::BTreeSet;

use reveille_base::words;

use super::{
    Problem,
    front_matter::{Field, check_name, parse_fields, split_front_matter},
    text::split_lines,
};

/// The maximum length of a description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1_024;

/// The maximum length of the compatibility note, in characters.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The maximum number of skills offered: their names and descriptions are part of every prompt.
pub const MAX_SKILLS: usize = 50;
/// The maximum size of all descriptions together, in bytes, for the same reason.
pub const MAX_DESCRIPTIONS_BYTES: usize = 16 * 1024;
/// The keys with string values.
const STRINGS: [&str; 5] = ["name", "description", "license", "compatibility", "allowed-tools"];
/// The message for a file without a front matter.
const BEGINNING: &str = "a skill begins with a line `---`, then `name:` and `description:`, then `---`";
/// The maximum lines of a body before a problem is reported: rarely needed text belongs in a file of its own, read on demand.
pub const MAX_BODY_LINES: usize = 500;

/// One skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skill {
    /// The folder's name below `skills/`.
    pub folder: String,
    /// The skill's name, normally equal to its folder's.
    pub name: String,
    /// The skill's use and occasion, in one line.
    pub description: String,
    /// The required environment, if stated.
    pub compatibility: Option<String>,
    /// The instructions below the front matter.
    pub body: String,
    /// Problems that leave the skill usable.
    pub problems: Vec<Problem>,
}

/// All skills of a memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// The usable skills, by folder name.
    pub usable: Vec<Skill>,
    /// The problems to show to a person. Each names its file, and says whether the skill is left out.
    pub problems: Vec<String>,
}

impl Skills {
    /// Reads the skills among the files of a memory. `text` returns a file's content by path.
    pub fn collect(paths: &[String], text: impl Fn(&str) -> String) -> Self {
        let mut skills = Self::default();
        let mut described_bytes = 0;
        let folders: BTreeSet<&str> =
            paths.iter().filter_map(|path| Some(path.strip_prefix("skills/")?.split_once('/')?.0)).collect();
        for folder in folders {
            let path = format!("skills/{folder}/SKILL.md");
            if !paths.contains(&path) {
                skills.problems.push(format!("skills/{folder} has no SKILL.md, so it isn't a skill"));
                continue;
            }
            match Skill::parse(&text(&path)).and_then(|skill| skills.check_limits(skill, described_bytes)) {
                Ok(skill) => {
                    let skill = Skill { folder: folder.to_owned(), ..skill };
                    described_bytes += skill.description.len();
                    let problems = skill.problems.iter().cloned().chain(skill.check_folder(folder));
                    skills.problems.extend(problems.map(|problem| format!("The skill {path} is used, but {problem}")));
                    skills.usable.push(skill);
                }
                Err(problem) => skills.problems.push(format!("The skill {path} is left out: {problem}")),
            }
        }
        skills
    }

    /// Returns the skill if its name is new and all skills together stay within the limits.
    fn check_limits(&self, skill: Skill, described_bytes: usize) -> Result<Skill, Problem> {
        if self.usable.iter().any(|other| other.name == skill.name) {
            return Err(Problem::new(1, format!("another skill is also called `{}`", skill.name)));
        }
        if self.usable.len() >= MAX_SKILLS {
            return Err(Problem::new(1, format!("there are more than {MAX_SKILLS}")));
        }
        if described_bytes + skill.description.len() > MAX_DESCRIPTIONS_BYTES {
            let what = format!("all descriptions together have more than {MAX_DESCRIPTIONS_BYTES} bytes");
            return Err(Problem::new(1, what));
        }
        Ok(skill)
    }
}

impl Skill {
    /// Parses a `SKILL.md`.
    ///
    /// # Errors
    /// The first [`Problem`] that makes the skill unusable, with its line.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim_start_matches('\u{feff}');
        let (front, body) = split_front_matter(text, BEGINNING)?;
        let fields = parse_fields(&front, &STRINGS)?;
        let name = find_required_field(&fields, "name")?;
        let description = find_required_field(&fields, "description")?;
        check_name(&name.value).map_err(|what| Problem::new(name.line, what))?;
        let described = words::one_line(&description.value);
        let length = described.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            let what = format!("the description has {length} characters; at most {MAX_DESCRIPTION_CHARS} are allowed");
            return Err(Problem::new(description.line, what));
        }
        let (compatibility, mut problems) = read_optional_keys(&fields);
        let body_lines = split_lines(body).count();
        if body_lines > MAX_BODY_LINES {
            let what = format!(
                "its instructions have {body_lines} lines; beyond {MAX_BODY_LINES} they belong in files below `references/`"
            );
            problems.push(Problem::new(1, what));
        }
        Ok(Self {
            name: name.value.clone(),
            description: described,
            compatibility,
            body: body.to_owned(),
            problems,
            ..Self::default()
        })
    }

    /// Returns a problem if the skill's folder has another name, which the format forbids.
    pub fn check_folder(&self, folder: &str) -> Option<Problem> {
        let what =
            || format!("the skill is called `{}`, but its folder `{folder}`; give both the same name", self.name);
        (self.name != folder).then(|| Problem::new(1, what()))
    }
}

/// Reads the format's optional keys: the compatibility, and all their problems.
fn read_optional_keys(fields: &[Field]) -> (Option<String>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut compatibility = None;
    for field in fields {
        let Field { key, value, wrong, is_nested, line, .. } = field;
        let what = match key.as_str() {
            "metadata" if !value.is_empty() => Some("`metadata` is a list of `key: value` lines under it".to_owned()),
            "metadata" if !is_nested => Some("`metadata` is empty".to_owned()),
            "license" | "allowed-tools" | "compatibility" => match wrong {
                Some(wrong) => Some(format!("`{key}`: {wrong}")),
                None if value.starts_with("- ") => Some(format!("`{key}`: it is a list, not a string")),
                None if value.trim().is_empty() => Some(format!("`{key}` is empty")),
                None => None,
            },
            _ => None,
        };
        if let Some(what) = what {
            problems.push(Problem::new(*line, what));
        } else if key == "compatibility" {
            let length = value.chars().count();
            if length > MAX_COMPATIBILITY_CHARS {
                let what =
                    format!("`compatibility` has {length} characters; at most {MAX_COMPATIBILITY_CHARS} are allowed");
                problems.push(Problem::new(*line, what));
            }
            compatibility = Some(words::first_chars(value, MAX_COMPATIBILITY_CHARS).to_owned());
        }
        if fields.iter().filter(|other| other.key == *key && other.line < *line).count() == 1 {
            problems.push(Problem::new(*line, format!("`{key}` is given twice")));
        }
    }
    (compatibility, problems)
}

fn find_required_field<'a>(fields: &'a [Field], key: &str) -> Result<&'a Field, Problem> {
    let mut found = fields.iter().filter(|field| field.key == key);
    let first = found.next();
    if let Some(Field { wrong: Some(wrong), line, .. }) = first {
        return Err(Problem::new(*line, format!("`{key}`: {wrong}")));
    }
    let first = first.filter(|field| !field.value.trim().is_empty());
    let field = first.ok_or_else(|| Problem::new(1, format!("the front matter has no `{key}`")))?;
    match found.next() {
        Some(second) => Err(Problem::new(second.line, format!("`{key}` is given twice"))),
        None => Ok(field),
    }
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
                body: "\r\nBody\r\n---\r\n".into(),
                ..Skill::default()
            }
        );
        assert_eq!(skill.check_folder("weekly-review"), None);
        assert_snapshot!(skill.check_folder("weekly").unwrap(), @"line 1: the skill is called `weekly-review`, but its folder `weekly`; give both the same name");
    }

    #[test]
    fn every_way_of_writing_a_string_is_tolerated() {
        for description in [
            "Say \"hi\" – it's me",
            "Say \"hi\"\n  – it's me",
            ">-\n  Say \"hi\"\n  – it's me\n",
            "|\n  Say \"hi\"\n  – it's me",
            ">- # why\n  Say \"hi\"\n  – it's me",
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

    #[test]
    fn what_the_format_knows_besides_is_checked_and_keeps_no_skill_from_being_used() {
        let told = |front: &str| {
            let skill = read(&format!("name: a\ndescription: b\n{front}")).unwrap();
            (skill.problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "), skill.compatibility)
        };
        let all = "license: MIT\ncompatibility: Needs git\nmetadata:\n  author: me\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read\nown: [x]";
        assert_eq!(told(all), (String::new(), Some("Needs git".to_owned())));
        assert_snapshot!(told("allowed-tools:\n  - Bash\n  - Read").0, @"line 4: `allowed-tools`: it is a list, not a string");
        assert_snapshot!(told("allowed-tools: [a]").0, @"line 4: `allowed-tools`: a value that begins with [ must be in quotes");
        assert_snapshot!(told("license:\nmetadata: x").0, @"line 4: `license` is empty; line 5: `metadata` is a list of `key: value` lines under it");
        assert_snapshot!(told("license: a\nlicense: b\nmetadata:").0, @"line 5: `license` is given twice; line 6: `metadata` is empty");
        let (long, kept) = told(&format!("compatibility: {}", "x".repeat(501)));
        assert_snapshot!(long, @"line 4: `compatibility` has 501 characters; at most 500 are allowed");
        assert_eq!(kept.unwrap().len(), 500);
        let long = Skill::parse(&format!("---\nname: a\ndescription: b\n---\n{}", "x\n".repeat(501))).unwrap();
        assert!(long.problems[0].to_string().contains("501 lines"), "{:?}", long.problems);
    }

    fn collected(files: &[(&str, String)]) -> Skills {
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        Skills::collect(&paths, |path| files.iter().find(|(other, _)| *other == path).unwrap().1.clone())
    }

    fn skill(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
    }

    #[test]
    fn a_broken_skill_is_told_and_the_others_work() {
        let skills = collected(&[
            ("claude.md", String::new()),
            ("skills/README.md", String::new()),
            ("skills/broken/SKILL.md", "no front".to_owned()),
            ("skills/empty/notes.md", String::new()),
            ("skills/moved/SKILL.md", skill("elsewhere", "x")),
            ("skills/tea/SKILL.md", skill("tea", "Makes tea.")),
            ("skills/tea/assets/SKILL.md", "a template, no skill".to_owned()),
            ("skills/twin/SKILL.md", skill("tea", "Makes it, too.")),
        ]);
        let usable: Vec<_> = skills.usable.iter().map(|skill| (&*skill.folder, &*skill.name)).collect();
        assert_eq!(usable, [("moved", "elsewhere"), ("tea", "tea")]);
        assert_snapshot!(skills.problems.join("\n"), @r"
        The skill skills/broken/SKILL.md is left out: line 1: a skill begins with a line `---`, then `name:` and `description:`, then `---`
        skills/empty has no SKILL.md, so it isn't a skill
        The skill skills/moved/SKILL.md is used, but line 1: the skill is called `elsewhere`, but its folder `moved`; give both the same name
        The skill skills/twin/SKILL.md is left out: line 1: another skill is also called `tea`
        ");
    }

    #[test]
    fn too_many_and_too_long_ones_are_bounded_and_told() {
        let many: Vec<_> =
            (0..60).map(|n| (format!("skills/s{n:02}/SKILL.md"), skill(&format!("s{n:02}"), "x"))).collect();
        let many: Vec<_> = many.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        let skills = collected(&many);
        assert_eq!((skills.usable.len(), skills.problems.len()), (MAX_SKILLS, 10));
        assert!(skills.problems[0].ends_with("there are more than 50"), "{:?}", skills.problems[0]);
        let long: Vec<_> = many
            .iter()
            .take(20)
            .map(|(path, text)| (*path, text.replace(": x", &format!(": {}", "y".repeat(1_000)))))
            .collect();
        let skills = collected(&long);
        assert_eq!((skills.usable.len(), skills.problems.len()), (16, 4));
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
