//! Splits text into lower-case tokens with positions, and matches phrases over them with a cursor.
//!
//! Both parsers of English use this module, [`super::when`] for times and the fallback grammar for commands. Matching works on
//! tokens; text to keep is cut from the original by their spans.

use std::ops::Range;

use chrono::Weekday;

/// A word (with inner apostrophes and hyphens), a run of digits, or one other character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The text in lower case, with plain apostrophes.
    pub text: String,
    /// The position in bytes.
    pub span: Range<usize>,
    /// True if no space separates this token from the previous one.
    pub glued: bool,
}

impl Token {
    /// Returns true for punctuation, symbols and emojis.
    pub fn is_mark(&self) -> bool {
        !self.text.starts_with(char::is_alphanumeric)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Joiner,
    Space,
    Mark,
}

fn kind(c: char) -> Kind {
    match c {
        '\'' | '’' | '-' => Kind::Joiner,
        _ if c.is_numeric() => Kind::Digits,
        _ if c.is_alphabetic() => Kind::Letters,
        _ if c.is_whitespace() => Kind::Space,
        _ => Kind::Mark,
    }
}

/// Splits a text into tokens, without white space.
pub fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut before = Kind::Space;
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let next = chars.peek().map_or(Kind::Space, |(_, c)| kind(*c));
        // An apostrophe or hyphen belongs to a word only between two letters: "don't", "stand-up", but not 'quoted'.
        let this = match kind(c) {
            Kind::Joiner if before == Kind::Letters && next == Kind::Letters => Kind::Letters,
            Kind::Joiner => Kind::Mark,
            plain => plain,
        };
        let end = start + c.len_utf8();
        let lower = c.to_lowercase().map(|c| if c == '’' { '\'' } else { c });
        match tokens.last_mut() {
            Some(token) if this == before && matches!(this, Kind::Letters | Kind::Digits) => {
                token.text.extend(lower);
                token.span.end = end;
            }
            _ if this != Kind::Space => {
                tokens.push(Token { text: lower.collect(), span: start..end, glued: before != Kind::Space });
            }
            _ => {}
        }
        before = this;
    }
    tokens
}

/// A position in a token list. Copy it to look ahead.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'t> {
    tokens: &'t [Token],
    /// The index of the next token.
    pub index: usize,
}

impl<'t> Cursor<'t> {
    /// Creates a cursor at the token `index`, which may be the end.
    pub fn new(tokens: &'t [Token], index: usize) -> Self {
        Self { tokens, index }
    }

    /// The next token.
    pub fn token(self) -> Option<&'t Token> {
        self.tokens.get(self.index)
    }

    /// The text of the next token, empty at the end.
    pub fn text(self) -> &'t str {
        self.token().map_or("", |token| token.text.as_str())
    }

    /// The text of the next token if no space precedes it, else empty.
    pub fn glued_text(self) -> &'t str {
        self.token().filter(|token| token.glued).map_or("", |token| token.text.as_str())
    }

    /// The previous token.
    pub fn previous_token(self) -> Option<&'t Token> {
        self.index.checked_sub(1).and_then(|index| self.tokens.get(index))
    }

    /// Returns true at the end.
    pub fn is_end(self) -> bool {
        self.index >= self.tokens.len()
    }

    /// Moves to another token.
    #[must_use]
    pub fn move_to(self, index: usize) -> Self {
        Self { index: index.min(self.tokens.len()), ..self }
    }

    /// Moves past the next token.
    #[must_use]
    pub fn next(self) -> Self {
        Self { index: self.index.saturating_add(1).min(self.tokens.len()), ..self }
    }

    /// Moves past a phrase if it follows. A phrase is words separated by spaces; `a|b` matches either word, `?a` is optional.
    pub fn match_phrase(self, pattern: &str) -> Option<Self> {
        pattern.split(' ').try_fold(self, |cursor, element| {
            let (optional, words) = match element.strip_prefix('?') {
                Some(words) => (true, words),
                None => (false, element),
            };
            if !cursor.is_end() && words.split('|').any(|word| word == cursor.text()) {
                Some(cursor.next())
            } else {
                optional.then_some(cursor)
            }
        })
    }

    /// Moves past a phrase if it follows, else stays.
    #[must_use]
    pub fn skip(self, pattern: &str) -> Self {
        self.match_phrase(pattern).unwrap_or(self)
    }

    /// Finds the first matching phrase of a table. Returns its value and the cursor past the phrase.
    pub fn match_table<T: Copy>(self, table: &[(&str, T)]) -> Option<(T, Self)> {
        table.iter().find_map(|(pattern, meaning)| Some((*meaning, self.match_phrase(pattern)?)))
    }

    /// Parses a whole number, in digits or in words up to ninety-nine.
    pub fn read_number(self) -> Option<(u32, Self)> {
        if let Ok(number) = self.text().parse() {
            return Some((number, self.next()));
        }
        let (tens, after) = (number_word(self.text())?, self.next());
        match number_word(after.text()) {
            Some(ones) if tens >= 20 && tens % 10 == 0 && ones < 10 => Some((tens + ones, after.next())),
            _ => Some((tens, after)),
        }
    }

    /// Parses an ordinal: `15th`, `first`, `twenty-first`.
    pub fn read_ordinal(self) -> Option<(u32, Self)> {
        if let Ok(number) = self.text().parse() {
            let ending = self.next();
            return matches!(ending.glued_text(), "st" | "nd" | "rd" | "th").then(|| (number, ending.next()));
        }
        let index = ORDINALS.iter().position(|word| *word == self.text());
        let spoken = index.and_then(|index| Some((u32::try_from(index).ok()? + 1, self.next())));
        // "Twenty third", "thirty first".
        spoken.or_else(|| {
            let tens = number_word(self.text()).filter(|tens| matches!(tens, 20 | 30))?;
            let ones = ORDINALS.iter().take(9).position(|word| *word == self.next().text())?;
            Some((tens + u32::try_from(ones).ok()? + 1, self.next().next()))
        })
    }

    /// Parses a month's name or its usual short form.
    pub fn read_month(self) -> Option<(u32, Self)> {
        let word = self.text();
        let index = MONTHS.iter().position(|name| is_name_of_month(word, name))?;
        let end = if self.next().glued_text() == "." && word.len() <= 4 { self.next().next() } else { self.next() };
        Some((u32::try_from(index).ok()? + 1, end))
    }

    /// Parses a weekday's full name.
    pub fn read_weekday(self) -> Option<(Weekday, Self)> {
        let (_, day) = WEEKDAYS.iter().find(|(name, _)| *name == self.text())?;
        Some((*day, self.next()))
    }

    /// Parses a weekday's full name in the plural.
    pub fn read_plural_weekday(self) -> Option<(Weekday, Self)> {
        let singular = self.text().strip_suffix('s')?;
        let (_, day) = WEEKDAYS.iter().find(|(name, _)| *name == singular)?;
        Some((*day, self.next()))
    }

    /// Parses a weekday's full name or a short form, some of which are ordinary words ("sun", "sat").
    pub fn weekday_or_short(self) -> Option<(Weekday, Self)> {
        self.read_weekday().or_else(|| {
            let (_, day) = SHORT_WEEKDAYS.iter().find(|(name, _)| *name == self.text())?;
            Some((*day, self.next()))
        })
    }
}

/// Returns true for a weekday's name or short form.
pub fn is_weekday(word: &str) -> bool {
    WEEKDAYS.iter().chain(&SHORT_WEEKDAYS).any(|(name, _)| *name == word)
}

/// Returns true for a month's name or usual short form.
pub fn is_month(word: &str) -> bool {
    MONTHS.iter().any(|name| is_name_of_month(word, name))
}

fn is_name_of_month(word: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    word == name || name.get(..3) == Some(word) || (word == "sept" && name == "september")
}

/// The months in order, capitalized.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days of the week in order, in lower case.
pub const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Mon),
    ("tuesday", Weekday::Tue),
    ("wednesday", Weekday::Wed),
    ("thursday", Weekday::Thu),
    ("friday", Weekday::Fri),
    ("saturday", Weekday::Sat),
    ("sunday", Weekday::Sun),
];

const SHORT_WEEKDAYS: [(&str, Weekday); 11] = [
    ("mon", Weekday::Mon),
    ("tue", Weekday::Tue),
    ("tues", Weekday::Tue),
    ("wed", Weekday::Wed),
    ("weds", Weekday::Wed),
    ("thu", Weekday::Thu),
    ("thur", Weekday::Thu),
    ("thurs", Weekday::Thu),
    ("fri", Weekday::Fri),
    ("sat", Weekday::Sat),
    ("sun", Weekday::Sun),
];

const NUMBERS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

const ORDINALS: [&str; 31] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
    "twenty-ninth",
    "thirtieth",
    "thirty-first",
];

/// Parses a number word: `seven`, `thirty`, `forty-five` or `fortyfive`.
pub fn number_word(word: &str) -> Option<u32> {
    let small = |word: &str| NUMBERS.iter().position(|number| *number == word);
    let value = small(word).or_else(|| {
        let (index, ones) =
            TENS.iter().enumerate().find_map(|(index, tens)| Some((index, word.strip_prefix(tens)?)))?;
        let ones = match ones.strip_prefix('-').unwrap_or(ones) {
            "" if ones.is_empty() => 0,
            word => small(word).filter(|ones| (1..10).contains(ones))?,
        };
        Some((index + 2) * 10 + ones)
    })?;
    u32::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokenize(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_numbers_and_marks_become_separate_tokens() {
        assert_eq!(
            texts("Don’t call at 5:15pm, twenty-five!"),
            ["don't", "call", "at", "5", ":", "15", "pm", ",", "twenty-five", "!"]
        );
        assert_eq!(texts("'remind me' on 2026-12-05"), ["'", "remind", "me", "'", "on", "2026", "-", "12", "-", "05"]);
        assert_eq!(texts("⏰🍞 İstanbul"), ["⏰", "🍞", "i\u{307}stanbul"]);
    }

    #[test]
    fn a_phrase_matches_alternatives_and_skips_missing_optional_words() {
        let tokens = tokenize("the day after tomorrow");
        let start = Cursor::new(&tokens, 0);
        assert_eq!(start.match_phrase("?the day|night after tomorrow").map(|cursor| cursor.index), Some(4));
        assert_eq!(start.next().match_phrase("?the day after tomorrow").map(|cursor| cursor.index), Some(4));
        assert!(start.match_phrase("day after").is_none());
    }

    #[test]
    fn numbers_are_read_in_digits_and_words() {
        let number = |text: &str| Cursor::new(&tokenize(text), 0).read_number().map(|(number, _)| number);
        for (text, value) in
            [("20", 20), ("twelve", 12), ("forty five", 45), ("forty-five", 45), ("fortyfive", 45), ("thirty", 30)]
        {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert_eq!(number("twenty-"), Some(20), "the hyphen stands alone");
        for text in ["fortyten", "many", "", "99999999999", "½"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn spans_are_in_order_and_hold_all_but_white_space(text in "\\PC{0,60}") {
            let mut rest = 0;
            for token in tokenize(&text) {
                prop_assert!(text.get(rest..token.span.start).unwrap().trim().is_empty());
                prop_assert!(token.span.end > token.span.start && text.is_char_boundary(token.span.end));
                rest = token.span.end;
            }
            prop_assert!(text.get(rest..).unwrap().trim().is_empty());
        }
    }
}
