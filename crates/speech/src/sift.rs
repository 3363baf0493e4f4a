//! Separates speech from the model's hallucinations: Whisper fills silence, music and noise with phrases from its training data.
//!
//! These are pure functions. Dropped text is kept beside the result, so that a person can check these rules.

use super::loops::cut_loops;

/// A part of the recording as the model transcribed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heard {
    pub(super) text: String,
    /// The model's probability that nobody speaks here, 0 to 1.
    pub(super) no_speech: f64,
    /// The probability of each token of the text, 0 to 1.
    pub(super) probabilities: Vec<f64>,
    /// `true` if this part has too little sound for a voice.
    pub(super) is_silent: bool,
}

/// The text that remains after sifting.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sifted {
    pub(super) text: String,
    /// The geometric mean of the tokens' probabilities, 0 to 1.
    pub(super) confidence: f64,
    /// The lowest `no_speech` of all parts, 0 to 1.
    pub(super) no_speech: f64,
    pub(super) dropped: Vec<String>,
    /// The rounds cut from loops, among the dropped text.
    pub(super) rounds_cut: usize,
}

/// The probability above which the model itself reports no speech; OpenAI's own threshold.
const NO_SPEECH: f64 = 0.6;
/// The confidence below which the model is unsure, a mean log-probability of -0.7. Understood speech has 0.6 and more.
const UNSURE: f64 = 0.5;
/// The thresholds for phrases from the training data, which are dropped at a slighter doubt than other text.
const PHANTOM_NO_SPEECH: f64 = 0.25;
const PHANTOM_UNSURE: f64 = 0.65;

/// Phrases that the model writes over silence, noise and the end of a recording: thanks and credits from the films it was trained on.
const PHANTOMS: &[&str] = &[
    "bye",
    "bye bye",
    "gracias",
    "merci",
    "please subscribe",
    "see you next time",
    "so",
    "thank you",
    "thank you for watching",
    "thank you so much",
    "thank you very much",
    "thanks for watching",
    "vielen dank",
    "vielen dank fürs zuschauen",
    "you",
    "ご視聴ありがとうございました",
    "продолжение следует",
    "спасибо",
];
/// Credits, which nobody says to an assistant, however sure the model is. Each is long enough that ordinary talk about subtitles is kept.
const CREDITS: &[&str] = &[
    "amara.org",
    "subtitles by",
    "untertitel im auftrag",
    "untertitel der amara",
    "untertitelung des zdf",
    "sous-titres réalisés",
    "sous-titrage",
    "subtítulos por",
    "subtítulos realizados",
    "субтитры сделал",
    "субтитры создавал",
    "субтитры подогнал",
    "редактор субтитров",
];

/// Drops text that nobody said.
pub(super) fn sift_segments(heard: Vec<Heard>) -> Sifted {
    let no_speech = heard.iter().map(|part| part.no_speech).fold(1.0, f64::min);
    let mut sifted = Sifted { no_speech, ..Sifted::default() };
    let mut kept: Vec<Heard> = Vec::new();
    for part in heard {
        if part.text.is_empty() {
            continue;
        }
        if is_phantom(&part) {
            sifted.dropped.push(part.text);
        } else {
            kept.push(part);
        }
    }
    let probabilities: Vec<f64> = kept.iter().flat_map(|part| part.probabilities.iter().copied()).collect();
    sifted.confidence = geometric_mean(&probabilities);
    let unlooped = cut_loops(&kept.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(" "));
    (sifted.text, sifted.rounds_cut) = (unlooped.text, unlooped.rounds_cut);
    sifted.dropped.extend(unlooped.cut);
    sifted
}

fn is_phantom(part: &Heard) -> bool {
    let confidence = geometric_mean(&part.probabilities);
    let key = normalise_phrase(&part.text);
    let lower = part.text.to_lowercase();
    let is_in_doubt = part.no_speech > PHANTOM_NO_SPEECH || confidence < PHANTOM_UNSURE;
    part.is_silent
        || key.is_empty()
        || is_annotation(&part.text)
        || (part.no_speech > NO_SPEECH && confidence < UNSURE)
        || (is_in_doubt && PHANTOMS.contains(&key.as_str()))
        || CREDITS.iter().any(|credit| lower.starts_with(credit) || (*credit == "amara.org" && lower.contains(credit)))
}

/// Recognises descriptions of sound: `[Music]`, `(wind blowing)`, `*sighs*`.
fn is_annotation(text: &str) -> bool {
    let text = text.trim();
    [('[', ']'), ('(', ')'), ('*', '*'), ('♪', '♪')].iter().any(|(open, close)| {
        text.len() > 1
            && text
                .strip_prefix(*open)
                .and_then(|rest| rest.strip_suffix(*close))
                .is_some_and(|inner| !inner.contains([*open, *close]))
    })
}

/// Reduces a phrase to letters and digits in lower case, with single spaces between words, for comparison.
fn normalise_phrase(text: &str) -> String {
    let letters =
        |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let words = text.split_whitespace().map(letters).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn geometric_mean(probabilities: &[f64]) -> f64 {
    if probabilities.is_empty() {
        return 0.0;
    }
    let logs: f64 = probabilities.iter().map(|p| p.max(1e-9).ln()).sum();
    (logs / probabilities.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part with one token per word, each with the same probability.
    fn heard(text: &str, no_speech: f64, confidence: f64) -> Heard {
        let probabilities = vec![confidence; text.split_whitespace().count()];
        Heard { text: text.to_owned(), no_speech, probabilities, is_silent: false }
    }

    fn text_of(part: Heard) -> String {
        sift_segments(vec![part]).text
    }

    /// Texts and figures as tiny.en reported them.
    #[test]
    fn speech_is_kept_even_if_it_was_hard_to_hear() {
        for (text, no_speech, confidence) in [
            ("And so my fellow Americans ask not what your country can do for you", 0.057, 0.846),
            ("ask what you can do for your country.", 0.057, 0.918),
            ("And so my fellow American...", 0.063, 0.463),
            ("Please remind me tomorrow to watch on the plants.", 0.021, 0.456),
            ("Yes.", 0.349, 0.519),
            ("And so...", 0.243, 0.526),
        ] {
            let sifted = sift_segments(vec![heard(text, no_speech, confidence)]);
            assert_eq!((sifted.text.as_str(), sifted.dropped.len()), (text, 0));
            assert!((sifted.confidence - confidence).abs() < 1e-6);
        }
    }

    #[test]
    fn training_phrases_are_dropped_only_in_doubt() {
        assert_eq!(text_of(heard("Thank you.", 0.41, 0.9)), "");
        assert_eq!(text_of(heard("Thank you.", 0.02, 0.5)), "");
        assert_eq!(text_of(heard("Thank you.", 0.02, 0.9)), "Thank you.");
        assert_eq!(text_of(heard("you", 0.7, 0.9)), "");
        assert_eq!(text_of(heard("Thank you for the plants.", 0.41, 0.9)), "Thank you for the plants.");
        assert_eq!(text_of(heard("Untertitel der Amara.org-Community", 0.01, 0.99)), "");
        assert_eq!(text_of(heard("Untertitel im Auftrag des ZDF für funk, 2017", 0.01, 0.99)), "");
        for text in ["Untertitel fehlen in dem Video.", "Субтитры к фильму готовы."] {
            assert_eq!(text_of(heard(text, 0.01, 0.9)), text);
        }
    }

    #[test]
    fn text_that_the_model_doubts_is_moved_to_dropped() {
        let sifted = sift_segments(vec![heard("Hello there.", 0.01, 0.9), heard("I'm going to do", 0.7, 0.3)]);
        assert_eq!(sifted.text, "Hello there.");
        assert_eq!(sifted.dropped, ["I'm going to do"]);
        assert!((sifted.no_speech - 0.01).abs() < 1e-9);
        assert!((sifted.confidence - 0.9).abs() < 1e-6, "the confidence covers only the kept text");
    }

    #[test]
    fn words_over_silence_are_dropped_and_so_are_annotations() {
        let silent = Heard { is_silent: true, ..heard("I think so.", 0.01, 0.95) };
        assert_eq!(text_of(silent), "");
        for text in ["[BLANK_AUDIO]", "(wind blowing)", "*sighs*", "♪ ♪", "...", "♪"] {
            assert_eq!(text_of(heard(text, 0.01, 0.95)), "", "{text}");
        }
        assert_eq!(text_of(heard("(a) and (b)", 0.01, 0.95)), "(a) and (b)");
    }

    #[test]
    fn loops_are_cut_to_one_round_and_people_may_repeat_themselves() {
        let sifted = sift_segments(vec![heard(&"and the ".repeat(40), 0.1, 0.9)]);
        assert_eq!(sifted.text, "and the");
        assert_eq!((sifted.dropped, sifted.rounds_cut), (vec!["and the ".repeat(39).trim().to_owned()], 39));
        let parts = vec![heard("I'm sorry.", 0.1, 0.9); 9];
        assert_eq!(sift_segments(parts).text, "I'm sorry.");
        let five = ["I'm sorry."; 5].join(" ");
        assert_eq!(text_of(heard(&five, 0.1, 0.9)), five);
        assert_eq!(text_of(heard("no, no, no, no! Stop.", 0.1, 0.9)), "no, no, no, no! Stop.");
    }

    #[test]
    fn silence_yields_no_text_and_no_confidence() {
        assert_eq!(sift_segments(Vec::new()), Sifted { no_speech: 1.0, ..Sifted::default() });
        assert_eq!(sift_segments(vec![heard("", 0.2, 0.9)]), Sifted { no_speech: 0.2, ..Sifted::default() });
    }
}
