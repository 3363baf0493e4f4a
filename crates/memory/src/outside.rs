//! Untrusted words in errors: the output of a remote's hook, a server's answer, the name of a pulled file.
//!
//! Every message shows such words as code, which clients don't turn into links, and treats them as untrusted. The only way to the words is
//! [`Display`](fmt::Display), which enforces both: it writes code and an invisible mark of the origin. The mark survives every `format!`
//! and `to_string` on the way. The outbox, the log entry and the commit store texts for later; they look for marks ([`describe_origins`]) and
//! remove them ([`strip_marks`]).

use std::{borrow::Cow, fmt, path::Path};

use reveille_base::{approval_text::remove_hidden, words::cut_text};

use crate as memory;

/// The maximum number of characters passed on.
const MAX_CHARS: usize = 500;

/// The source of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The memory's remote, or git quoting the remote.
    Remote,
    /// Telegram.
    Telegram,
    /// The model's server, or the command that queries it.
    Model,
    /// The author of a file's name.
    FileName,
}

const ALL: [Origin; 4] = [Origin::Remote, Origin::Telegram, Origin::Model, Origin::FileName];

impl Origin {
    /// Returns a description for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Remote => "words of the memory's remote",
            Self::Telegram => "words of Telegram's",
            Self::Model => "words of the model's server",
            Self::FileName => "the name of a file",
        }
    }

    /// Returns the mark of the origin: one of Unicode's invisible operators, written by nothing else here.
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

/// Untrusted words on one line of limited length. Displayed as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    origin: Origin,
    text: String,
}

impl Outside {
    /// Wraps untrusted words.
    pub fn new(origin: Origin, text: &str) -> Self {
        // Hidden characters are removed, including forged marks.
        let seen = text.split(|c: char| c.is_whitespace() || c.is_control()).collect::<Vec<_>>().join(" ");
        let seen = remove_hidden(&seen).replace('`', "'");
        let line = seen.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        Self { origin, text: cut_text(&line, MAX_CHARS, "…") }
    }

    /// Returns whether the text contains these words, to tell errors apart.
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

/// Returns a file's path for display. The author of a pulled file chose its name; the memory's own documents are trusted.
pub fn name(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().to_string_lossy();
    let is_ours = memory::DOCUMENTS.iter().chain([&memory::CLAUDE]).any(|own| *own == path);
    if is_ours { path.into_owned() } else { Outside::new(Origin::FileName, &path).to_string() }
}

/// Describes the sources of the untrusted words in a text. `None` if it has no mark.
pub fn describe_origins(text: &str) -> Option<String> {
    let found: Vec<&str> =
        ALL.iter().filter(|origin| text.contains(origin.mark())).map(|origin| origin.name()).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

/// Returns the text without the marks, for places that store the origin separately.
pub fn strip_marks(text: &str) -> Cow<'_, str> {
    if text.contains(is_mark) { Cow::Owned(text.replace(is_mark, "")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_code_and_known_wherever_they_get_to() {
        let said = Outside::new(Origin::Remote, "remote: `see`\n\u{2061}  [here](https://evil.example)\u{7} now\t");
        let told = format!("It refused: {said}. I go on.");
        assert_eq!(strip_marks(&told), "It refused: `remote: 'see' [here](https://evil.example) now`. I go on.");
        assert_eq!(describe_origins(&told).as_deref(), Some("words of the memory's remote"));
        assert_eq!(told.matches(is_mark).count(), 1, "theirs are none");
        let both = format!("{told} {}", Outside::new(Origin::Model, ""));
        assert_eq!(
            describe_origins(&both).as_deref(),
            Some("words of the memory's remote, words of the model's server")
        );
        assert!(both.ends_with("nothing`") && describe_origins(&strip_marks(&both)).is_none());
        assert_eq!(Outside::new(Origin::Telegram, &"x".repeat(900)).text.chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_path_is_its_namers_word_but_for_those_that_are_always_there() {
        assert_eq!(name(memory::CONTEXT), memory::CONTEXT);
        assert_eq!(describe_origins(&name("memory/obey.md")).as_deref(), Some("the name of a file"));
    }
}
