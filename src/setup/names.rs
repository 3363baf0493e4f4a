//! The names of the assistant and the person, in one sentence of the standing orders. There is no setting for them, since the standing
//! orders are the person's to change.

use std::fs;

use reveille_config::Config;
use reveille_memory::{CLAUDE, templates::list_files};

/// The assistant's default name.
pub const DEFAULT_NAME: &str = "Reveille";
/// The words for a person whose name is unknown.
const NOBODY: &str = "one person";
/// Maximum characters of a name.
const MAX_CHARS: usize = 60;
/// The beginning of the sentence.
const BEGIN: &str = "You are ";
/// The end of the sentence.
const END: &str = " assistant.";
/// Added for an assistant with a name of its own.
const PROGRAM: &str = " Reveille is the program that runs you.";

/// The two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantNames {
    /// The assistant's name.
    pub assistant: String,
    /// The person's name. `None` if unknown.
    pub person: Option<String>,
}

impl AssistantNames {
    fn sentence(&self) -> String {
        let person = self.person.as_deref().unwrap_or(NOBODY);
        let program = if self.assistant == DEFAULT_NAME { "" } else { PROGRAM };
        format!("{BEGIN}{}, {person}'s{END}{program}", self.assistant)
    }
}

/// Checks that a text can be a name.
///
/// # Errors
/// A description of valid names.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_fit = |c: char| c.is_alphanumeric() || " -.’".contains(c);
    let is_name = name.chars().all(is_fit) && name.chars().any(char::is_alphabetic);
    if is_name && name.chars().count() <= MAX_CHARS {
        Ok(())
    } else {
        Err(format!("a name of letters, digits, spaces, hyphens and dots, at most {MAX_CHARS} characters"))
    }
}

/// Reads the names in the standing orders, or the template's for a new memory. `None` if a person has rewritten the
/// sentence.
pub fn read_names(config: &Config) -> Option<AssistantNames> {
    let orders = fs::read_to_string(config.repo_dir().join(CLAUDE)).ok();
    let template = || list_files().into_iter().find(|(path, _)| *path == CLAUDE).map(|(_, text)| text.to_owned());
    parse_names(&orders.or_else(template)?)
}

/// Parses the names from the standing orders. `None` if a person has rewritten that sentence.
pub fn parse_names(orders: &str) -> Option<AssistantNames> {
    let (_, names) = find_sentence(orders)?;
    Some(names)
}

/// Puts these names into the standing orders. `None` if the sentence is missing.
pub fn with_names(orders: &str, names: &AssistantNames) -> Option<String> {
    let (sentence, _) = find_sentence(orders)?;
    Some(orders.replacen(sentence, &names.sentence(), 1))
}

/// Finds the sentence with both names, and parses it.
fn find_sentence(orders: &str) -> Option<(&str, AssistantNames)> {
    let line = orders.lines().find(|line| line.starts_with(BEGIN))?;
    let (names, rest) = line.strip_prefix(BEGIN)?.split_once(END)?;
    let (assistant, person) = names.strip_suffix("'s")?.split_once(", ")?;
    let program = if rest.starts_with(PROGRAM) { PROGRAM.len() } else { 0 };
    let sentence = line.get(..BEGIN.len() + names.len() + END.len() + program)?;
    let person = Some(person.to_owned()).filter(|person| person != NOBODY);
    Some((sentence, AssistantNames { assistant: assistant.to_owned(), person }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> &'static str {
        list_files().into_iter().find(|(path, _)| *path == "claude.md").unwrap().1
    }

    fn named(assistant: &str, person: Option<&str>) -> AssistantNames {
        AssistantNames { assistant: assistant.to_owned(), person: person.map(str::to_owned) }
    }

    #[test]
    fn names_go_into_the_first_sentence_and_come_back_out_of_it() {
        assert_eq!(parse_names(orders()), Some(named(DEFAULT_NAME, None)));
        let changed = with_names(orders(), &named("Jarvis", Some("Ann Smith"))).unwrap();
        assert!(
            changed.contains("You are Jarvis, Ann Smith's assistant. Reveille is the program that runs you. What you")
        );
        assert_eq!(parse_names(&changed), Some(named("Jarvis", Some("Ann Smith"))));
        assert_eq!(with_names(&changed, &named(DEFAULT_NAME, None)).unwrap(), orders());
    }

    #[test]
    fn a_rewritten_sentence_stays() {
        for orders in ["# Mine\n\nBe nice.\n", "You are nobody.\n", ""] {
            assert_eq!(with_names(orders, &named("Jarvis", None)), None, "{orders}");
        }
    }

    #[test]
    fn a_sentence_is_not_accepted_as_a_name() {
        for name in ["Ann", "Jean-Luc Picard", "R2.D2", "Zoë", "李雷"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "Ann. Obey: x", "a\nb", "42", "**x**", &"x".repeat(61)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
