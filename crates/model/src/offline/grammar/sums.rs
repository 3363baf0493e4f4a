//! Calculates sums such as `12*7`, `(3 + 4) * 2.5`, `15% of 80`, with symbols or words. The parser is limited in length and depth and
//! evaluates nothing else.

/// Maximum bytes of a sum.
const MAX_BYTES: usize = 200;
/// Maximum nested parentheses.
const MAX_DEPTH: usize = 20;
/// Largest result that is exact.
const MAX_RESULT: f64 = 1e15;

/// Openers that ask for a result.
const OPENERS: &[&str] =
    &["what's", "what’s", "whats", "what is", "how much is", "how much’s", "calculate", "compute", "work out"];

/// Words and other signs for operators, the longer ones first.
const WORDS: &[(&str, &str)] = &[
    ("divided by", "/"),
    ("multiplied by", "*"),
    ("percent off", "%off"),
    ("% off", "%off"),
    ("%off", "%off"),
    ("percent of", "%of"),
    ("% of", "%of"),
    ("%of", "%of"),
    ("percent", "%"),
    ("plus", "+"),
    ("minus", "-"),
    ("times", "*"),
    ("modulo", "mod"),
    ("mod", "mod"),
    ("×", "*"),
    ("÷", "/"),
    ("−", "-"),
    ("x", "*"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece {
    Number(f64),
    Mark(char),
    /// "15% of".
    PercentOf,
    /// "20% off".
    PercentOff,
}

/// Calculates the sum in a text and renders both. `None` if the text isn't a sum.
pub(super) fn answer_sum(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let text = text.trim().trim_end_matches(['?', '=', '.', '!', ' ']);
    let text = text.strip_suffix(" is").unwrap_or(text);
    let lower = text.to_lowercase();
    let opener = OPENERS.iter().find(|opener| lower.starts_with(*opener) && lower.is_char_boundary(opener.len()));
    let (said, is_asked) = match opener.and_then(|opener| text.get(opener.len()..)) {
        Some(rest) if rest.starts_with(char::is_whitespace) => (rest.trim(), true),
        _ => (text, false),
    };
    let pieces = split_pieces(&normalize_sum(said))?;
    let is_operator = |piece: &Piece| {
        matches!(piece, Piece::PercentOf | Piece::PercentOff | Piece::Mark('+' | '-' | '*' | '/' | '%' | '^'))
    };
    let is_root = pieces.contains(&Piece::Mark('√'));
    let numbers = pieces.iter().filter(|piece| matches!(piece, Piece::Number(_))).count();
    let is_sum = is_root || (numbers >= 2 && pieces.iter().any(is_operator));
    if !is_sum || (!is_asked && could_be_a_date(said)) {
        return None;
    }
    let mut parser = SumParser { pieces: &pieces, at: 0 };
    let value = parser.parse_sum(0)?;
    if parser.at < pieces.len() {
        return None;
    }
    let shown = said.replace('*', "×");
    Some(match value {
        value if value.is_nan() && is_root => {
            "That has no answer: it divides by zero, or takes the root of a negative number.".to_owned()
        }
        value if value.is_nan() => "That can't be divided by zero.".to_owned(),
        value if value.abs() > MAX_RESULT => "That is too large for me to be exact.".to_owned(),
        value => format!("{shown} = {}", (value * 1e10).round() / 1e10 + 0.0),
    })
}

/// Rewrites a sum with the operators and words understood by the parser.
fn normalize_sum(said: &str) -> String {
    const REWRITES: &[(&str, &str)] = &[
        ("half of", "0.5 *"),
        ("a quarter of", "0.25 *"),
        ("a third of", "1 / 3 *"),
        ("double", "2 *"),
        ("twice", "2 *"),
        ("to the power of", "^"),
        ("squared", "^ 2"),
        ("cubed", "^ 3"),
        ("**", "^"),
        ("the square root of", "√"),
        ("square root of", "√"),
        ("root of", "√"),
        ("sqrt", "√"),
        ("tip on a ", "of "),
        ("tip for a ", "of "),
        ("vat on", "of"),
        ("tip on", "of"),
        ("tip for", "of"),
        ("hours at", "*"),
        (" an hour", ""),
        (" per hour", ""),
        ("discount on", "off"),
        (" euros", ""),
        (" euro", ""),
        (" eur", ""),
        (" pounds", ""),
        (" bill", ""),
        (" quid", ""),
        (" bucks", ""),
        (" dollars", ""),
        (" between ", " / "),
        (" among ", " / "),
        (" ways", ""),
        (" people", ""),
        (" of us", ""),
        (" vat", ""),
        (" tax", ""),
        (" service", ""),
        ("tax on", "of"),
        ("$", ""),
        ("€", ""),
        ("£", ""),
    ];
    let lower = said.to_lowercase();
    let lower =
        match (lower.strip_prefix("add "), lower.strip_prefix("split ").or_else(|| lower.strip_prefix("divide "))) {
            (Some(added), _) => added.replace(" and ", " + "),
            (None, Some(divided)) => divided.replace(" by ", " / "),
            (None, None) => lower,
        };
    if let Some(numbers) =
        ["the average of ", "average of ", "the mean of ", "mean of "].iter().find_map(|of| lower.strip_prefix(of))
    {
        let numbers: Vec<&str> = numbers
            .split([' '])
            .flat_map(|word| word.split(", "))
            .map(|word| word.trim_end_matches(','))
            .filter(|word| !word.is_empty() && *word != "and")
            .collect();
        return format!("({}) / {}", numbers.join(" + "), numbers.len());
    }
    let lower = REWRITES.iter().fold(lower, |text, (word, meant)| text.replace(word, meant));
    lower.strip_prefix("a ").map_or_else(|| lower.clone(), str::to_owned)
}

/// True for "24/7", "2026-11-23" and telephone numbers, which are sums only if a result is asked for.
fn could_be_a_date(said: &str) -> bool {
    let has_other = said.contains(['+', '*', '×', '÷', '%', '(', '^', '√']) || said.contains(char::is_alphabetic);
    !has_other && !said.contains(" - ") && !said.contains(" / ")
}

fn split_pieces(mut rest: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if first.is_ascii_digit() || first == '.' {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            pieces.push(Piece::Number(parse_number(number)?));
            rest = after;
        } else if let Some((word, mark)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
            pieces.push(match *mark {
                "%of" => Piece::PercentOf,
                "%off" => Piece::PercentOff,
                "mod" => Piece::Mark('m'),
                mark => Piece::Mark(mark.chars().next()?),
            });
            rest = rest.get(word.len()..)?;
        } else if "+-*/%()^√".contains(first) {
            pieces.push(Piece::Mark(first));
            rest = rest.get(first.len_utf8()..)?;
        } else {
            return None;
        }
    }
    Some(pieces)
}

/// Parses a number. "1,000" has a comma every three digits; other commas are ambiguous.
fn parse_number(text: &str) -> Option<f64> {
    // "64,90": a comma before one or two digits is a decimal point in most of Europe and meaningless elsewhere.
    if let Some((whole, part)) = text.split_once(',')
        && (1..=2).contains(&part.len())
        && part.chars().all(|c| c.is_ascii_digit())
        && whole.chars().all(|c| c.is_ascii_digit())
    {
        return format!("{whole}.{part}").parse().ok();
    }
    let mut groups = text.split(',');
    let first = groups.next()?;
    let whole = |group: &str| group.split('.').next().map_or(0, str::len);
    let is_grouped =
        groups.clone().all(|group| whole(group) == 3) && (!text.contains(',') || (1..=3).contains(&first.len()));
    if !is_grouped { None } else { text.replace(',', "").parse().ok() }
}

struct SumParser<'p> {
    pieces: &'p [Piece],
    at: usize,
}

/// A recursive parser. Division by zero yields NaN, which propagates.
impl SumParser<'_> {
    fn peek(&self) -> Option<Piece> {
        self.pieces.get(self.at).copied()
    }

    fn parse_sum(&mut self, depth: usize) -> Option<f64> {
        let mut value = self.parse_product(depth)?;
        while let Some(Piece::Mark(mark @ ('+' | '-'))) = self.peek() {
            self.at += 1;
            // "80 + 10%" adds a tenth, as on any till.
            if let Some(share) = self.parse_share() {
                value *= if mark == '+' { 1.0 + share } else { 1.0 - share };
                continue;
            }
            let other = self.parse_product(depth)?;
            value = if mark == '+' { value + other } else { value - other };
        }
        Some(value)
    }

    /// Parses a percentage that stands alone, as a fraction of one.
    fn parse_share(&mut self) -> Option<f64> {
        let after = self.pieces.get(self.at + 2);
        let is_alone = matches!(after, None | Some(Piece::Mark('+' | '-' | ')')));
        match (self.peek(), self.pieces.get(self.at + 1)) {
            (Some(Piece::Number(percent)), Some(Piece::Mark('%'))) if is_alone => {
                self.at += 2;
                Some(percent / 100.0)
            }
            _ => None,
        }
    }

    fn parse_product(&mut self, depth: usize) -> Option<f64> {
        let mut value = self.parse_power(depth)?;
        loop {
            let Some(piece) = self.peek() else { return Some(value) };
            let next_is_value = matches!(self.pieces.get(self.at + 1), Some(Piece::Number(_) | Piece::Mark('(' | '√')));
            match piece {
                Piece::PercentOf => {
                    self.at += 1;
                    value *= self.parse_power(depth)? / 100.0;
                }
                Piece::PercentOff => {
                    self.at += 1;
                    value = self.parse_power(depth)? * (1.0 - value / 100.0);
                }
                Piece::Mark('%') if !next_is_value => {
                    self.at += 1;
                    value /= 100.0;
                }
                Piece::Mark(mark @ ('*' | '/' | '%' | 'm')) => {
                    self.at += 1;
                    let other = self.parse_power(depth)?;
                    value = match mark {
                        '*' => value * other,
                        _ if other == 0.0 => f64::NAN,
                        '/' => value / other,
                        _ => value % other,
                    };
                }
                _ => return Some(value),
            }
        }
    }

    fn parse_power(&mut self, depth: usize) -> Option<f64> {
        let value = self.parse_factor(depth)?;
        if self.peek() != Some(Piece::Mark('^')) {
            return Some(value);
        }
        self.at += 1;
        Some(value.powf(self.parse_factor(depth)?))
    }

    fn parse_factor(&mut self, depth: usize) -> Option<f64> {
        let piece = self.peek()?;
        self.at += 1;
        match piece {
            Piece::Number(value) => Some(value),
            _ if depth >= MAX_DEPTH => None,
            Piece::Mark('-') => Some(-self.parse_power(depth + 1)?),
            Piece::Mark('√') => Some(self.parse_factor(depth + 1)?.sqrt()),
            Piece::Mark('(') => {
                let value = self.parse_sum(depth + 1)?;
                let is_closed = self.peek() == Some(Piece::Mark(')'));
                self.at += 1;
                is_closed.then_some(value)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_are_worked_out() {
        for (text, expected) in [
            ("what's 12*7", "12×7 = 84"),
            ("15% of 80", "15% of 80 = 12"),
            ("How much is (3 + 4) * 2.5?", "(3 + 4) × 2.5 = 17.5"),
            ("what is 100 minus 42", "100 minus 42 = 58"),
            ("2 + 3 * 4", "2 + 3 × 4 = 14"),
            ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
            ("7 % 4", "7 % 4 = 3"),
            ("-(2 - 5) * 2", "-(2 - 5) × 2 = 6"),
            ("1,000 * 2", "1,000 × 2 = 2000"),
            ("what is 10 / 0?", "That can't be divided by zero."),
            ("what is sqrt(-4)?", "That has no answer: it divides by zero, or takes the root of a negative number."),
            ("20 percent of 50", "20 percent of 50 = 10"),
            ("calculate 12 x 12", "12 x 12 = 144"),
            ("what's 24/7", "24/7 = 3.4285714286"),
            ("half of 90", "half of 90 = 45"),
            ("add 12 and 30", "add 12 and 30 = 42"),
            ("split 84 by 4", "split 84 by 4 = 21"),
            ("20% off 80", "20% off 80 = 64"),
            ("square root of 144", "square root of 144 = 12"),
            ("2 to the power of 10", "2 to the power of 10 = 1024"),
            ("what's a 15% tip on $60?", "a 15% tip on $60 = 9"),
            ("7 squared", "7 squared = 49"),
            ("-3^2", "-3^2 = -9"),
            ("64,90 + 23,50 + 12", "64,90 + 23,50 + 12 = 100.4"),
            ("80 + 10%", "80 + 10% = 88"),
            ("what's 200 minus 15%", "200 minus 15% = 170"),
            ("split 72 between 5", "split 72 between 5 = 14.4"),
            ("12.5% tip on 64 euros", "12.5% tip on 64 euros = 8"),
            ("average of 1.7, 2.3 and 2", "average of 1.7, 2.3 and 2 = 2"),
            ("6.5 hours at 85 an hour?", "6.5 hours at 85 an hour = 552.5"),
        ] {
            assert_eq!(answer_sum(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_sum_is_left_alone() {
        for text in [
            "",
            "7",
            "what is 7?",
            "24/7",
            "2026-11-23",
            "030-123456",
            "2 +",
            "(2 + 3",
            "2 + 3)",
            "add 5 to 7",
            "1,5000 + 2",
            "what is the wifi code?",
            "5 apples + 3",
            "1.2.3 + 1",
            "what's up",
            "+",
            "-5",
        ] {
            assert_eq!(answer_sum(text), None, "{text}");
        }
        assert_eq!(answer_sum(&format!("{}1+1{}", "(".repeat(50), ")".repeat(50))), None);
        assert_eq!(answer_sum(&"1+".repeat(500)), None);
    }

    proptest! {
        #[test]
        fn any_marks_are_read_without_a_panic(text in "[-0-9+*/%(). x,of]{0,60}|\\PC{0,40}") {
            let _read = answer_sum(&text);
        }
    }
}
