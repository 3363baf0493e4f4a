//! `awk`: a full language that runs programs and writes files. Known is only what chooses and prints fields.

use super::Rated;

/// Names that do nothing but hold or compute a value. Any other name could be a function that acts.
const NAMES: [&str; 22] = [
    "print", "NR", "NF", "FNR", "FS", "OFS", "BEGIN", "END", "length", "substr", "tolower", "toupper", "int", "sum",
    "count", "total", "n", "i", "s", "max", "min", "printf",
];

pub(super) fn rate(arguments: &[&str]) -> Rated {
    let mut words = arguments.iter().copied();
    let program = loop {
        match words.next() {
            Some("-F") => drop(words.next()),
            Some(word) if word.starts_with("-F") => {}
            Some(word) if word.starts_with('-') => {
                return Rated::dangerous(format!("`{word}` of `awk` isn't known to only read."));
            }
            Some(program) => break program,
            None => return Rated::dangerous("`awk` has no program."),
        }
    };
    // What follows are files, or assignments of variables; another option would be read by some awks.
    if words.all(|word| !word.starts_with('-') && !word.contains('=')) && is_known(program) {
        return Rated::safe();
    }
    Rated::dangerous("I can't tell that this `awk` program only selects and prints.")
}

fn is_known(program: &str) -> bool {
    let (mut rest, mut braces) = (program, 0_usize);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => text(rest, '"', |c| c != '\\'),
            // Could be a division to awk: so nothing in it may do anything as an expression either.
            '/' if braces == 0 => text(rest, '/', |c| c.is_ascii_alphanumeric() || " ._-:^$*+?".contains(c)),
            'a'..='z' | 'A'..='Z' => name(rest),
            // Within braces it would write to a file.
            '>' if braces == 0 => Some(1),
            '|' if rest.starts_with("||") => Some(2),
            '&' if rest.starts_with("&&") => Some(2),
            '{' => {
                braces += 1;
                Some(1)
            }
            '}' => {
                braces = braces.saturating_sub(1);
                Some(1)
            }
            '0'..='9' | ' ' | '$' | ',' | ';' | '+' | '-' | '*' | '%' | '=' | '!' | '<' | '~' | '(' | ')' | '.' => {
                Some(1)
            }
            _ => None,
        };
        match length.and_then(|length| rest.get(length..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// The length of a text or pattern between two `end`s that holds only what is known.
fn text(rest: &str, end: char, is_known: fn(char) -> bool) -> Option<usize> {
    let inside = rest.get(1..)?;
    let length = inside.find(end)?;
    inside.get(..length)?.chars().all(is_known).then_some(length + 2)
}

fn name(rest: &str) -> Option<usize> {
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    NAMES.contains(&rest.get(..length)?).then_some(length)
}
