//! Shell text as a list of simple commands of plain words, or the reason it isn't plain.
//!
//! Two independent readers must find the same list: our own strict [`lex`]er, which knows only plain text, and [`grammar`], a library's
//! full grammar of bash. If they disagree, the text isn't plain. The sandbox is the security boundary; these readers only decide which
//! text may run without approval. In doubt, approval is needed.

mod grammar;
mod guess;
mod lex;
#[cfg(test)]
mod tests;

pub(super) use guess::guess_commands;

/// The maximum length of a shell text, in bytes.
pub const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The maximum number of simple commands in one text.
const MAX_COMMANDS: usize = 64;

/// The way a simple command is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// The first command, or after `;` or a line's end.
    Then,
    /// After `&&`.
    And,
    /// After `||`.
    Or,
    /// After `|`.
    Pipe,
}

/// A command with its arguments as the program gets them, without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) joint: Joint,
    /// At least one word.
    pub(super) words: Vec<String>,
}

/// The reason a text isn't plain, as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotPlain {
    #[error("It is empty, so there is nothing to run.")]
    Empty,
    #[error("It is too long to check: over {MAX_TEXT_BYTES} bytes or {MAX_COMMANDS} commands.")]
    TooLong,
    #[error("It holds the control character {}, which the shell may read differently from you.", .0.escape_unicode())]
    Control(char),
    #[error("It holds the character {}, which may look like another one. Only plain ASCII is accepted here.", .0.escape_unicode())]
    Foreign(char),
    #[error("The shell will expand `{0}`, so I can't be sure what this touches.")]
    Expansion(char),
    #[error("The shell will turn `{0}` into file names, so I can't be sure which files this touches.")]
    Pattern(char),
    #[error("It redirects input or output, so the shell itself reads or writes a file.")]
    Redirection,
    #[error("It starts a subshell, a group or a function.")]
    Group,
    #[error("It leaves a command running in the background.")]
    Background,
    #[error("It sets a variable, which can change later commands.")]
    Assignment,
    #[error("`{0}` belongs to the shell's own language, such as a loop or a condition.")]
    Reserved(String),
    #[error("It holds a comment sign (`#`) outside quotes.")]
    Comment,
    #[error("It holds `{0}`, which some shells replace with earlier commands.")]
    History(char),
    #[error("A quote or backslash is left open.")]
    Unended,
    #[error("`{0}` isn't the name of a command.")]
    Name(String),
    #[error("It has an operator with no command beside it.")]
    Stray,
    #[error("My two shell parsers disagree about this text.")]
    Disagreement,
}

/// Reads a text as plain commands: at least one, each with at least one word.
///
/// # Errors
/// The reason the text isn't plain.
pub(super) fn parse_plain(text: &str) -> Result<Vec<Simple>, NotPlain> {
    let ours = lex::parse_commands(text)?;
    match grammar::parse_commands(text) {
        Some(theirs) if theirs == ours => Ok(ours),
        _ => Err(NotPlain::Disagreement),
    }
}
