//! Our own reader of shell text. It accepts plain text only, one character at a time, and refuses every character that isn't listed here,
//! whatever it means to a shell.

use std::{iter::Peekable, str::Chars};

use super::{Joint, MAX_COMMANDS, MAX_TEXT_BYTES, NotPlain, Simple};

/// Redirections that discard output or join the two outputs, in the only accepted spellings.
const QUIET: [&str; 7] = [">/dev/null", "1>/dev/null", "2>/dev/null", "</dev/null", "2>&1", "1>&2", ">&2"];

/// Words that begin something other than a simple command, in some shell.
const RESERVED: [&str; 22] = [
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "do",
    "done",
    "case",
    "esac",
    "while",
    "until",
    "for",
    "in",
    "function",
    "select",
    "time",
    "coproc",
    "repeat",
    "foreach",
    "end",
    "always",
    "nocorrect",
];

/// Punctuation that is literal outside quotes, in all shells.
const LITERAL: &str = "_-./:,+@%^=";

pub(super) fn parse_commands(text: &str) -> Result<Vec<Simple>, NotPlain> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(NotPlain::TooLong);
    }
    if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\t' | '\n')) {
        return Err(NotPlain::Control(control));
    }
    let mut lexer = Lexer {
        chars: text.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        joint: Joint::Then,
        is_closed: false,
    };
    while let Some(&next) = lexer.chars.peek() {
        lexer.step(next)?;
    }
    lexer.end_line()?;
    match (lexer.joint, lexer.commands.is_empty()) {
        (Joint::Then, false) => Ok(lexer.commands),
        (Joint::Then, true) => Err(NotPlain::Empty),
        _ => Err(NotPlain::Stray),
    }
}

struct Lexer<'t> {
    chars: Peekable<Chars<'t>>,
    commands: Vec<Simple>,
    /// The words of the command being read.
    words: Vec<String>,
    /// The way this command is joined to the one before it.
    joint: Joint,
    /// `true` after a redirection: the command takes no more words.
    is_closed: bool,
}

impl Lexer<'_> {
    fn step(&mut self, next: char) -> Result<(), NotPlain> {
        match next {
            ' ' | '\t' => self.skip(),
            '\n' => {
                self.skip();
                self.end_line()?;
            }
            ';' => {
                self.skip();
                self.end_command(Joint::Then)?;
            }
            '&' => {
                self.skip();
                self.take_char('&').then_some(()).ok_or(NotPlain::Background)?;
                self.end_command(Joint::And)?;
            }
            '|' => {
                self.skip();
                let joint = if self.take_char('|') { Joint::Or } else { Joint::Pipe };
                self.end_command(joint)?;
            }
            _ if self.take_quiet_redirect() => self.is_closed = true,
            _ if self.is_closed => return Err(NotPlain::Redirection),
            _ => {
                let word = self.read_word()?;
                self.words.push(word);
            }
        }
        Ok(())
    }

    fn skip(&mut self) {
        self.chars.next();
    }

    fn take_char(&mut self, wanted: char) -> bool {
        self.chars.next_if_eq(&wanted).is_some()
    }

    /// Ends a command at an operator, which needs a command on its left.
    fn end_command(&mut self, next: Joint) -> Result<(), NotPlain> {
        if self.words.is_empty() {
            return Err(NotPlain::Stray);
        }
        if self.commands.len() == MAX_COMMANDS {
            return Err(NotPlain::TooLong);
        }
        self.commands.push(Simple { joint: self.joint, words: std::mem::take(&mut self.words) });
        self.joint = next;
        self.is_closed = false;
        Ok(())
    }

    /// Ends a line as `;` would. Does nothing for an empty line and after an operator, where the shell continues on the next line.
    fn end_line(&mut self) -> Result<(), NotPlain> {
        if self.words.is_empty() { Ok(()) } else { self.end_command(Joint::Then) }
    }

    /// Takes a harmless redirection, if it stands alone after a command.
    fn take_quiet_redirect(&mut self) -> bool {
        let rest: String = self.chars.clone().take(12).collect();
        let Some(spelling) = QUIET.into_iter().find(|spelling| rest.starts_with(spelling)) else { return false };
        let after = rest.chars().nth(spelling.len());
        if self.words.is_empty() || !matches!(after, None | Some(' ' | '\t' | '\n' | ';' | '|')) {
            return false;
        }
        self.chars.by_ref().take(spelling.len()).for_each(drop);
        true
    }

    fn read_word(&mut self) -> Result<String, NotPlain> {
        let is_name = self.words.is_empty();
        let (mut word, mut is_bare, mut is_begun) = (String::new(), true, false);
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' => break,
                '\'' => self.read_single_quotes(&mut word)?,
                '"' => self.read_double_quotes(&mut word)?,
                '\\' => self.read_escape(&mut word)?,
                '=' if !is_begun => return Err(NotPlain::Expansion('=')),
                '=' if is_name => return Err(NotPlain::Assignment),
                '^' if !is_begun => return Err(NotPlain::History('^')),
                _ => {
                    word.push(check_bare(c)?);
                    self.skip();
                }
            }
            is_bare &= !matches!(c, '\'' | '"' | '\\');
            is_begun = true;
        }
        if is_name {
            check_name(&word, is_bare)?;
        }
        Ok(word)
    }

    fn read_single_quotes(&mut self, word: &mut String) -> Result<(), NotPlain> {
        self.skip();
        loop {
            match self.chars.next().ok_or(NotPlain::Unended)? {
                '\'' => return Ok(()),
                c => word.push(check_quoted(c)?),
            }
        }
    }

    fn read_double_quotes(&mut self, word: &mut String) -> Result<(), NotPlain> {
        self.skip();
        loop {
            match self.chars.next().ok_or(NotPlain::Unended)? {
                '"' => return Ok(()),
                c @ ('$' | '`') => return Err(NotPlain::Expansion(c)),
                '!' => return Err(NotPlain::History('!')),
                // In double quotes, a backslash before any other character is literal.
                '\\' => match self.chars.next_if(|c| matches!(c, '$' | '`' | '"' | '\\')) {
                    Some(c) => word.push(c),
                    None => word.push('\\'),
                },
                c => word.push(check_quoted(c)?),
            }
        }
    }

    fn read_escape(&mut self, word: &mut String) -> Result<(), NotPlain> {
        self.skip();
        match self.chars.next().ok_or(NotPlain::Unended)? {
            '\n' => Err(NotPlain::Control('\n')),
            c if c == ' ' || c.is_ascii_graphic() => {
                word.push(c);
                Ok(())
            }
            c => Err(NotPlain::Foreign(c)),
        }
    }
}

/// Accepts a character outside quotes.
fn check_bare(c: char) -> Result<char, NotPlain> {
    match c {
        c if c.is_ascii_alphanumeric() || LITERAL.contains(c) => Ok(c),
        '$' | '`' | '~' => Err(NotPlain::Expansion(c)),
        '*' | '?' | '[' | ']' | '{' | '}' => Err(NotPlain::Pattern(c)),
        '<' | '>' => Err(NotPlain::Redirection),
        '(' | ')' => Err(NotPlain::Group),
        '#' => Err(NotPlain::Comment),
        '!' => Err(NotPlain::History(c)),
        c => Err(NotPlain::Foreign(c)),
    }
}

/// Accepts a character in quotes: ASCII, and letters and digits of any language, but no invisible characters or marks of writing direction.
fn check_quoted(c: char) -> Result<char, NotPlain> {
    match c {
        '\t' | '\n' => Err(NotPlain::Control(c)),
        c if c.is_ascii() || c.is_alphanumeric() => Ok(c),
        c => Err(NotPlain::Foreign(c)),
    }
}

/// Checks that the first word is a command's name and can't be mistaken for something else.
fn check_name(word: &str, is_bare: bool) -> Result<(), NotPlain> {
    if is_bare && RESERVED.contains(&word) {
        return Err(NotPlain::Reserved(word.to_owned()));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let begins_well = word.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c));
    if begins_well && word.chars().all(is_plain) { Ok(()) } else { Err(NotPlain::Name(word.to_owned())) }
}
