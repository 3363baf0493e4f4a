//! Corrects typing errors in command words: two letters swapped, one missing or one extra. Only a sentence's first words are corrected, and
//! words such as "tomorrow" in a command that takes a time. A person's own text never changes.

use std::ops::Range;

use reveille_base::schedule::words::{Token, tokenize};

/// Words that begin commands. Short ones are too similar to other words.
const OPENING: &[&str] = &[
    "remember",
    "remind",
    "reminder",
    "reminders",
    "reminding",
    "forget",
    "delete",
    "cancel",
    "rename",
    "postpone",
    "snooze",
    "finished",
    "status",
    "backlog",
];
/// Correct words that resemble a command word.
const NO_SLIPS: &[&str] = &["remainder", "stats"];
/// Words after which the person's own text begins, as it does after a command word.
const STOPS: &[&str] = &["add", "task", "todo", "note", "put", "move", "list", "that", "create", "new"];
/// Words that state a time.
const TIMES: &[&str] = &[
    "tomorrow",
    "tonight",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "minutes",
    "weekday",
];
/// Maximum position of a command word in a sentence, in tokens: "can you please remind".
const OPENING_TOKENS: usize = 4;
/// Openers of commands in which times are corrected too.
const TIMED: &[&str] = &["remind", "reminder", "postpone", "snooze", "move", "wake", "alarm"];

/// Common misspellings and the intended words, used for matching only. Stored text keeps its spelling.
const TYPED: &[(&str, &str)] = &[
    ("whats", "what's"),
    ("wheres", "where's"),
    ("whens", "when's"),
    ("whos", "who's"),
    ("hows", "how's"),
    ("thats", "that's"),
    ("dont", "don't"),
    ("doesnt", "doesn't"),
    ("didnt", "didn't"),
    ("cant", "can't"),
    ("wont", "won't"),
    ("isnt", "isn't"),
    ("arent", "aren't"),
    ("wasnt", "wasn't"),
    ("hasnt", "hasn't"),
    ("havent", "haven't"),
    ("im", "i'm"),
    ("ive", "i've"),
    ("weve", "we've"),
    ("youre", "you're"),
    ("shouldnt", "shouldn't"),
    ("teh", "the"),
    ("hte", "the"),
    ("taht", "that"),
    ("tht", "that"),
    ("waht", "what"),
    ("wat", "what"),
    ("wats", "what's"),
    ("wahts", "what's"),
    ("wht", "what"),
    ("wehn", "when"),
    ("whn", "when"),
    ("wher", "where"),
    ("adn", "and"),
    ("nad", "and"),
    ("u", "you"),
    ("ur", "your"),
    ("yuo", "you"),
    ("cna", "can"),
    ("ym", "my"),
    ("taks", "task"),
    ("tsak", "task"),
    ("tasl", "task"),
    ("taskss", "tasks"),
    ("ad", "add"),
    ("addd", "add"),
    ("lsit", "list"),
    ("lits", "list"),
    ("shoping", "shopping"),
    ("shoppin", "shopping"),
    ("groccery", "grocery"),
    ("thx", "thanks"),
    ("thnx", "thanks"),
    ("tnx", "thanks"),
    ("thanx", "thanks"),
    ("plz", "please"),
    ("pls", "please"),
    ("plese", "please"),
    ("pleae", "please"),
    ("hwo", "how"),
    ("liek", "like"),
    ("lik", "like"),
    ("alergic", "allergic"),
    ("allergc", "allergic"),
];

/// Splits a text into tokens with common misspellings corrected.
pub(super) fn parse_tokens(text: &str) -> Vec<Token> {
    let mut tokens = tokenize(text);
    for token in &mut tokens {
        if let Some((_, meant)) = TYPED.iter().find(|(typed, _)| *typed == token.text) {
            (*meant).clone_into(&mut token.text);
        }
    }
    tokens
}

/// Corrects a text. `None` if nothing changes.
pub(super) fn correct_text(text: &str) -> Option<String> {
    let tokens = tokenize(text);
    let mut slips: Vec<(Range<usize>, &str)> = Vec::new();
    let is_stop = |token: &Token| OPENING.contains(&token.text.as_str()) || STOPS.contains(&token.text.as_str());
    let opening = tokens.iter().take(OPENING_TOKENS).take_while(|token| !is_stop(token));
    slips.extend(opening.filter_map(|token| Some((token.span.clone(), find_intended_word(token, OPENING)?))));
    let is_timed = |token: &Token| TIMED.contains(&token.text.as_str()) || find_intended_word(token, TIMED).is_some();
    if tokens.iter().take(OPENING_TOKENS).any(is_timed) {
        slips.extend(tokens.iter().filter_map(|token| Some((token.span.clone(), find_intended_word(token, TIMES)?))));
    }
    slips.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    slips.dedup_by_key(|(span, _)| span.start);
    if slips.is_empty() {
        return None;
    }
    let mut text = text.to_owned();
    for (span, word) in slips {
        text.replace_range(span, word);
    }
    Some(text)
}

/// Returns the intended word of a typing error.
fn find_intended_word(token: &Token, words: &'static [&'static str]) -> Option<&'static str> {
    /// Shorter words resemble too many others.
    const MIN_CHARS: usize = 5;
    let typed: Vec<char> = token.text.chars().collect();
    if typed.len() < MIN_CHARS
        || NO_SLIPS.contains(&token.text.as_str())
        || OPENING.contains(&token.text.as_str())
        || TIMES.contains(&token.text.as_str())
    {
        return None;
    }
    let mut near =
        words.iter().filter(|word| word.len() > MIN_CHARS && is_slip(&typed, &word.chars().collect::<Vec<_>>()));
    near.next().copied()
}

/// True for a single typing error between words with the same first and last letters: "remmeber", "remeber", "tommorow", "remembber". A
/// word with another ending ("reminds", "remembered") is a different word.
fn is_slip(typed: &[char], word: &[char]) -> bool {
    if typed.first() != word.first() || typed.last() != word.last() || typed == word {
        return false;
    }
    let without = |long: &[char], short: &[char]| {
        (0..long.len()).any(|gap| long.iter().enumerate().filter(|(at, _)| *at != gap).map(|(_, c)| c).eq(short))
    };
    let swapped = |one: &[char], other: &[char]| {
        (1..one.len()).any(|at| {
            let mut one = one.to_vec();
            one.swap(at - 1, at);
            one == other
        })
    };
    match typed.len().cmp(&word.len()) {
        std::cmp::Ordering::Equal => swapped(typed, word) || has_wrong_letter_doubled(typed, word),
        std::cmp::Ordering::Less => word.len() - typed.len() == 1 && without(word, typed),
        std::cmp::Ordering::Greater => typed.len() - word.len() == 1 && without(typed, word),
    }
}

/// True if the wrong letter is doubled: "tommorow".
fn has_wrong_letter_doubled(typed: &[char], word: &[char]) -> bool {
    let single = |letters: &[char]| {
        let mut letters = letters.to_vec();
        letters.dedup();
        letters
    };
    single(typed) == single(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_in_command_words_are_corrected() {
        for (typed, meant) in [
            ("remmeber that I like tea", "remember that I like tea"),
            ("Please remeber that the Wifi is slow", "Please remember that the Wifi is slow"),
            ("remind me tommorow at 9 to call Bob", "remind me tomorrow at 9 to call Bob"),
            ("remnid me on Firday to pay", "remind me on friday to pay"),
            ("delte task 2", "delete task 2"),
            ("forgett that I like tea", "forget that I like tea"),
        ] {
            assert_eq!(correct_text(typed).as_deref(), Some(meant), "{typed}");
        }
    }

    #[test]
    fn other_words_are_left_alone() {
        for text in [
            "remember that remmeber is a slip",
            "remember that tommorow is misspelt",
            "she reminds me of Anna",
            "I remembered it",
            "forgot the milk",
            "members only",
            "the remainder is five",
            "the sundry list",
            "add task write to Remmeber Ltd. tommorow",
            "",
        ] {
            assert_eq!(correct_text(text), None, "{text}");
        }
    }
}
