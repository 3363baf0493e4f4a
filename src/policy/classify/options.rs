//! Options against a list of those that are known to do no harm. Nothing is known by being like something known: no
//! abbreviations, no other spellings.

use super::is_number;

/// What may follow the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Any words.
    Any,
    /// So many at most: a further one would be written to, or set something.
    AtMost(usize),
    /// Only words that begin with this.
    Beginning(&'static str),
    /// Only words of letters, digits, `.`, `_`, `-`, `:` and `@`.
    Names,
    /// Only these.
    OneOf(&'static [&'static str]),
}

/// The options of a program that do no harm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Letters of short options that take no value.
    pub(super) flags: &'static str,
    /// Letters of short options that take one.
    pub(super) valued: &'static str,
    /// Long options without their dashes, with a blank between; one that ends in `=` takes a value, another may have one attached.
    pub(super) longs: &'static str,
    pub(super) operands: Operands,
}

impl Options {
    /// The operands, when everything among the arguments is known.
    ///
    /// # Errors
    /// The first word that isn't.
    pub(super) fn read<'w>(&self, arguments: &[&'w str]) -> Result<Vec<&'w str>, &'w str> {
        let mut operands = Vec::new();
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                operands.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut words).ok_or(word)?;
            } else if word.len() > 1 && word.starts_with('-') {
                self.short(word, &mut words).ok_or(word)?;
            } else {
                operands.push(word);
            }
        }
        match self.operands.refused(&operands) {
            Some(word) => Err(word),
            None => Ok(operands),
        }
    }

    fn long<'w>(&self, long: &str, words: &mut impl Iterator<Item = &'w str>) -> Option<()> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        for known in self.longs.split(' ').filter(|known| !known.is_empty()) {
            match known.strip_suffix('=') {
                Some(known) if known == name => return if value.is_some() { Some(()) } else { value_of(words) },
                None if known == name => return Some(()),
                _ => {}
            }
        }
        None
    }

    fn short<'w>(&self, word: &str, words: &mut impl Iterator<Item = &'w str>) -> Option<()> {
        let mut letters = word.chars().skip(1);
        while let Some(letter) = letters.next() {
            if self.valued.contains(letter) {
                return if letters.next().is_some() { Some(()) } else { value_of(words) };
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(())
    }
}

/// Takes a value that is a word of its own. One that looks like an option might be one, to another version of the program.
fn value_of<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<()> {
    words.next().filter(|value| !value.starts_with('-') || *value == "-" || is_number(value)).map(drop)
}

impl Operands {
    fn refused<'w>(self, operands: &[&'w str]) -> Option<&'w str> {
        let is_known = |word: &&&str| match self {
            Self::Any | Self::AtMost(_) => true,
            Self::Beginning(sign) => word.starts_with(sign),
            Self::Names => {
                !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-:@+".contains(c))
            }
            Self::OneOf(words) => words.contains(word),
        };
        let too_many = match self {
            Self::AtMost(most) => operands.get(most),
            _ => None,
        };
        operands.iter().find(|word| !is_known(word)).or(too_many).copied()
    }
}
