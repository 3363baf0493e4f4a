//! Recognises the word "stop" without a slash. While a wake works in a chat, it acts there as `/stop` does; otherwise it is an ordinary
//! message.
//!
//! Only a text of nothing else counts, so that "stop by the shop" never stops anything.

/// Texts that ask to stop, in lower case, in the languages that the fallback grammar understands or detects.
const STOPS: [&str; 46] = [
    // English
    "stop",
    "stop it",
    "stop this",
    "stop that",
    "stop all",
    "stop everything",
    "stop work",
    "stop working",
    "stop here",
    "halt",
    "abort",
    // German
    "stopp",
    "stop das",
    "stopp das",
    "stopp alles",
    "hör auf",
    "hoer auf",
    "hör auf damit",
    "aufhören",
    "aufhoeren",
    "abbrechen",
    "brich ab",
    // French
    "arrête",
    "arrete",
    "arrêtez",
    "arrête tout",
    "arrête ça",
    "arrête-toi",
    // Spanish
    "para",
    "para todo",
    "párate",
    "parate",
    "detente",
    "deténgase",
    "basta",
    "alto",
    // Italian
    "ferma",
    "fermati",
    "ferma tutto",
    "smettila",
    "smetti",
    // Portuguese
    "pare",
    "pára",
    "parar",
    "para tudo",
    "chega",
];

/// Words around them that change nothing, longer ones before their own ends.
const COURTESIES: [&str; 26] = [
    "please",
    "right now",
    "at once",
    "now",
    "ok",
    "okay",
    "hey",
    "no",
    "wait",
    "bitte",
    "jetzt",
    "sofort",
    "nein",
    "mal",
    "s'il te plaît",
    "s'il te plait",
    "s'il vous plaît",
    "s'il vous plait",
    "maintenant",
    "por favor",
    "ya",
    "ahora",
    "per favore",
    "adesso",
    "subito",
    "agora",
];

/// Marks that may stand between and after the words. A question mark isn't among them: a question isn't an order.
const MARKS: [char; 9] = ['.', ',', '!', '¡', ';', ':', '…', '"', '-'];

/// Longest text that is examined, in bytes.
const MAX_BYTES: usize = 100;

/// Returns `true` if a text only asks to stop.
pub(super) fn is_plain_stop(text: &str) -> bool {
    if text.len() > MAX_BYTES {
        return false;
    }
    let words = text.to_lowercase().replace('’', "'");
    let words = words.split_whitespace().map(|word| word.trim_matches(MARKS)).filter(|word| !word.is_empty());
    let mut words: Vec<&str> = words.collect();
    // "Stop stop stop!"
    words.dedup();
    let mut said = words.join(" ");
    while let Some(shorter) = COURTESIES.iter().find_map(|courtesy| strip_words(&said, courtesy)) {
        said = shorter.to_owned();
    }
    STOPS.contains(&said.as_str())
}

/// Returns a text without these words at one of its ends. `None` if they aren't there.
fn strip_words<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let after = || text.strip_prefix(words)?.strip_prefix(' ');
    let before = || text.strip_suffix(words)?.strip_suffix(' ');
    after().or_else(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_asks_to_stop_is_recognised() {
        for text in [
            "stop",
            "Stop!",
            "STOP",
            "stop.",
            " stop … ",
            "please stop",
            "Stop, please!",
            "ok stop now",
            "no, wait, stop it!!",
            "stop stop stop",
            "Stop everything right now",
            "Stopp!",
            "Bitte hör auf",
            "halt",
            "Arrête, s’il te plaît",
            "para ya",
            "Basta!",
            "fermati subito",
            "pare, por favor",
        ] {
            assert!(is_plain_stop(text), "{text}");
        }
    }

    #[test]
    fn a_sentence_with_the_word_is_an_ordinary_message() {
        for text in [
            "",
            "!",
            "please",
            "stop by the shop",
            "stop?",
            "don't stop",
            "when does the bus stop",
            "stop the reminder about tea",
            "remind me to stop",
            "stop, and then tell me a joke",
            "para mañana",
            "/stop",
            "stopwatch",
            "stop it from raining",
        ] {
            assert!(!is_plain_stop(text), "{text}");
        }
    }
}
