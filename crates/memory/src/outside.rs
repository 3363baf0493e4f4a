//! Words that somebody outside has chosen, as they come with errors: what a remote's hook prints, what a server answers, how a file
//! is called that was pulled.
//!
//! Wherever such an error is told its words are shown as code, of which no client makes a link, and count as others'. So that nobody
//! can forget either, the only way to them is [`Display`](fmt::Display), which writes code and an unseen mark of their origin: the mark
//! outlives every `format!` and `to_string` on the way. What keeps texts for later looks for it ([`origins_in`]) and takes it out
//! ([`unmarked`]): the outbox, the entry in the log, the commit.

use std::{borrow::Cow, fmt, path::Path};

use reveille_base::{approval_text::without_hidden, words::cut_with};

use crate as memory;

/// The most that is passed on, in characters.
const MAX_CHARS: usize = 500;

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The memory's remote, or git, which quotes it.
    Remote,
    /// Telegram.
    Telegram,
    /// The model's server, or the command that asks it.
    Model,
    /// Whoever named a file.
    FileName,
}

const ALL: [Origin; 4] = [Origin::Remote, Origin::Telegram, Origin::Model, Origin::FileName];

impl Origin {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Remote => "words of the memory's remote",
            Self::Telegram => "words of Telegram's",
            Self::Model => "words of the model's server",
            Self::FileName => "the name of a file",
        }
    }

    /// Its mark: one of Unicode's invisible operators, which nothing else here writes.
    fn mark(self) -> char {
        match self {
            Self::Remote => '\u{2061}',
            Self::Telegram => '\u{2062}',
            Self::Model => '\u{2063}',
            Self::FileName => '\u{2064}',
        }
    }
}

fn is_mark(c: char) -> bool {
    ALL.iter().any(|origin| origin.mark() == c)
}

/// Somebody else's words, on one line and bounded. Shown, they are code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    origin: Origin,
    text: String,
}

impl Outside {
    /// Takes them in.
    pub fn new(origin: Origin, text: &str) -> Self {
        // Our marks are among what is hidden: theirs are none.
        let seen = text.split(|c: char| c.is_whitespace() || c.is_control()).collect::<Vec<_>>().join(" ");
        let seen = without_hidden(&seen).replace('`', "'");
        let line = seen.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        Self { origin, text: cut_with(&line, MAX_CHARS, "…") }
    }

    /// Whether these words are among them: to tell one error from another.
    pub fn contains(&self, words: &str) -> bool {
        self.text.contains(words)
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.text.is_empty() { "nothing" } else { &self.text };
        write!(f, "`{}{text}`", self.origin.mark())
    }
}

/// A file's path as it is told: whoever could have it pulled may have chosen it. Those that the memory always has are ours.
pub fn name(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().to_string_lossy();
    let is_ours = memory::DOCUMENTS.iter().chain([&memory::CLAUDE]).any(|own| *own == path);
    if is_ours { path.into_owned() } else { Outside::new(Origin::FileName, &path).to_string() }
}

/// Whose words stand in a text, for people; none if there are none.
pub fn origins_in(text: &str) -> Option<String> {
    let found: Vec<&str> =
        ALL.iter().filter(|origin| text.contains(origin.mark())).map(|origin| origin.name()).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

/// The text without the marks, where what they say is kept otherwise.
pub fn unmarked(text: &str) -> Cow<'_, str> {
    if text.contains(is_mark) { Cow::Owned(text.replace(is_mark, "")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_code_and_known_wherever_they_get_to() {
        let said = Outside::new(Origin::Remote, "remote: `see`\n\u{2061}  [here](https://evil.example)\u{7} now\t");
        let told = format!("It refused: {said}. I go on.");
        assert_eq!(unmarked(&told), "It refused: `remote: 'see' [here](https://evil.example) now`. I go on.");
        assert_eq!(origins_in(&told).as_deref(), Some("words of the memory's remote"));
        assert_eq!(told.matches(is_mark).count(), 1, "theirs are none");
        let both = format!("{told} {}", Outside::new(Origin::Model, ""));
        assert_eq!(origins_in(&both).as_deref(), Some("words of the memory's remote, words of the model's server"));
        assert!(both.ends_with("nothing`") && origins_in(&unmarked(&both)).is_none());
        assert_eq!(Outside::new(Origin::Telegram, &"x".repeat(900)).text.chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_path_is_its_namers_word_but_for_those_that_are_always_there() {
        assert_eq!(name(memory::CONTEXT), memory::CONTEXT);
        assert_eq!(origins_in(&name("memory/obey.md")).as_deref(), Some("the name of a file"));
    }
}
