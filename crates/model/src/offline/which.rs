//! Parses the answer to a question about facts that contradict each other.

use std::collections::BTreeSet;

/// The beginning of the question, and the text after its facts.
const QUESTION: (&str, &str) = ("My notes contradict each other: ", ". Which is right?");
/// Words of an answer that name neither fact. Any other word changes the meaning: "not 5678" chooses nothing.
const FILLER: &[&str] = &[
    "a", "an", "the", "it", "its", "it's", "is", "are", "was", "that", "that's", "this", "one", "right", "correct",
    "true", "now", "remember", "please", "yes", "i", "mean",
];
const FIRST: &[&str] = &["first", "1st", "former"];
const SECOND: &[&str] = &["second", "2nd", "latter", "last"];
/// Returns the fact chosen by the answer, if `mine` asked about facts in pairs and the answer means exactly one of them. Words of a fact
/// outweigh its position: of the codes "1" and "2", "2" is a code.
pub(super) fn find_chosen_fact(mine: &str, answer: &str) -> Option<String> {
    let (_, asked) = mine.split_once(QUESTION.0)?;
    let (pairs, _) = asked.split_once(QUESTION.1)?;
    let quoted = pairs.strip_prefix('“')?.strip_suffix('”')?;
    let pairs: Vec<(&str, &str)> =
        quoted.split("”; “").map(|pair| pair.split_once("” and “")).collect::<Option<_>>()?;
    // A question in return chooses nothing.
    let said = if answer.contains('?') { Vec::new() } else { split_words(answer) };
    let mut meant: BTreeSet<&str> = BTreeSet::new();
    for (one, other) in &pairs {
        let (of_one, of_other) = (split_words(one), split_words(other));
        let is_about =
            said.iter().all(|word| of_one.contains(word) || of_other.contains(word) || FILLER.contains(&word.as_str()));
        let names = |of: &[String], not: &[String]| said.iter().any(|word| of.contains(word) && !not.contains(word));
        meant.extend(match (is_about, names(&of_one, &of_other), names(&of_other, &of_one)) {
            (true, true, false) => Some(*one),
            (true, false, true) => Some(*other),
            _ => None,
        });
    }
    if let ([(one, other)], true) = (pairs.as_slice(), meant.is_empty()) {
        let is_plain =
            |word: &String| [FIRST, SECOND, FILLER, &["1", "2"]].iter().any(|known| known.contains(&word.as_str()));
        let is = |place: &[&str], digit: &str| said.iter().any(|word| place.contains(&word.as_str()) || word == digit);
        meant.extend(match (said.iter().all(is_plain), is(FIRST, "1"), is(SECOND, "2")) {
            (true, true, false) => Some(*one),
            (true, false, true) => Some(*other),
            _ => None,
        });
    }
    let mut meant = meant.into_iter();
    meant.next().filter(|_| meant.next().is_none()).map(str::to_owned)
}

fn split_words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').map(|word| word.trim_matches('\''));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: &str = "⏰ My notes contradict each other: “The wifi code is 1234” and “the wifi code is 5678”. Which is right? Tell \
        me, and I'll forget the other.\n\n(It was due at 8.)";

    #[test]
    fn a_plain_answer_means_one_of_the_two() {
        let (one, other) = (Some("The wifi code is 1234"), Some("the wifi code is 5678"));
        for (answer, meant) in [
            ("5678", other),
            ("It's 5678.", other),
            ("the second one", other),
            ("the latter", other),
            ("2", other),
            ("the wifi code is 5678", other),
            ("remember that the wifi code is 5678", other),
            ("the first", one),
            ("1234 is right", one),
            ("the 1234 one, please", one),
            ("not 1234", None),
            ("both", None),
            ("the wifi code", None),
            ("1234 or 5678?", None),
            ("5678 is what the router says", None),
            ("9999", None),
            ("the third one", None),
            ("is it 5678?", None),
            ("", None),
        ] {
            assert_eq!(find_chosen_fact(CODES, answer).as_deref(), meant, "{answer:?}");
        }
        assert_eq!(find_chosen_fact("Which is right?", "5678"), None, "nothing was asked");
    }

    #[test]
    fn of_several_pairs_the_words_tell_which_is_meant() {
        let asked = "My notes contradict each other: “the door code is 1” and “the door code is 2”; “the boiler is a Bosch” and “the \
            boiler is a Vaillant”. Which is right? Tell me, and I'll forget the other.";
        assert_eq!(find_chosen_fact(asked, "2").as_deref(), Some("the door code is 2"));
        assert_eq!(find_chosen_fact(asked, "Bosch").as_deref(), Some("the boiler is a Bosch"));
        assert_eq!(find_chosen_fact(asked, "the second one"), None);
        let swapped = "My notes contradict each other: “the door code is 2” and “the door code is 1”. Which is right?";
        assert_eq!(find_chosen_fact(swapped, "1").as_deref(), Some("the door code is 1"), "a code before a place");
    }
}
