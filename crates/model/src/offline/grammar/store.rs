//! Parses commands about stored facts: remember, forget, recall. Also the command that renames the assistant.

use chrono::DateTime;

use reveille_base::zone::Tz;

use super::{OfflineCommand, Reading, ask_back, sentence::Sentence};

pub(super) fn parse_store(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    parse_know(sentence).or_else(|| {
        let command =
            call_yourself(sentence).or_else(|| parse_forget(sentence)).or_else(|| parse_remember(sentence))?;
        Some(if sentence.is_bare_question() { Reading::Question } else { command })
    })
}

/// Openers of a command that renames the assistant.
const CALL_YOURSELF: &[(&str, ())] = &[
    ("call yourself", ()),
    ("rename yourself ?to|as", ()),
    ("change your name to", ()),
    ("your ?new name is ?now", ()),
    ("from now on you are|be called", ()),
    ("from now on your name is", ()),
];
/// Maximum words of a name.
const MAX_NAME_WORDS: usize = 3;

fn call_yourself(sentence: &Sentence<'_>) -> Option<Reading> {
    let ((), end) = sentence.cursor().match_table(CALL_YOURSELF)?;
    let name = sentence.skip_to(end).body();
    let is_name = name.is_body() && !name.is_pronoun() && name.len() <= MAX_NAME_WORDS;
    is_name.then(|| Reading::Command(OfflineCommand::CallYourself { name: name.text().to_owned() }))
}

/// Openers that certainly begin a fact.
const REMEMBER: &[(&str, ())] = &[
    ("remember|note ?also this :|,", ()),
    ("remember|note ?also ?down that", ()),
    ("remember|note :|,", ()),
    ("save|jot|store|keep|record ?down ?the ?fact ?this that|:", ()),
    ("make|take|keep|leave ?me a note|reminder :|that|of|,", ()),
    ("write|put ?this ?it down that|:|,", ()),
    ("for the record :|,", ()),
    ("you ?should need to know that|:|,", ()),
    ("you should know that", ()),
    ("take note that|:", ()),
    ("make a|another note that|:", ()),
    ("make a|another note of this :", ()),
    ("keep|bear in mind that|:", ()),
    ("write down that|:", ()),
    ("note to self :", ()),
    ("don't|dont|never forget that|:", ()),
    ("do not forget that|:", ()),
];

/// Nouns after "that" which make a reminiscence rather than a fact: "remember that time we got lost".
const THAT_ONE: &str = "time|day|night|evening|morning|summer|winter|year|week|weekend|trip|guy|girl|man|woman|place|one|thing|song|movie|film|feeling|moment";

/// Words that can't begin a fact without "that": "remember when we …", "remember me".
const NO_FACT: &str =
    "when|how|what|who|where|why|which|if|whether|me|us|you|him|her|it|this|that|those|these|to|last|back";

fn parse_remember(sentence: &Sentence<'_>) -> Option<Reading> {
    if let Some(reading) = remember_about(sentence) {
        return Some(reading);
    }
    if let Some(body) = parse_trailing_remember(sentence) {
        return (body.is_body() && body.len() >= 3 && !body.is_question()).then(|| build_remember(&body, None));
    }
    if let Some(((), end)) = sentence.cursor().match_table(REMEMBER) {
        let body = sentence.skip_to(end).body();
        let follows_that = end.previous_token().is_some_and(|word| word.text == "that");
        let is_reminiscence = follows_that && (body.len() < 2 || body.cursor().match_phrase(THAT_ONE).is_some());
        return (body.is_body() && !body.is_pronoun() && !is_reminiscence).then(|| build_remember(&body, None));
    }
    let body = sentence.skip_to(sentence.cursor().match_phrase("remember|note")?).body();
    let is_reminiscence = body.skip_phrase("the|all ?those").cursor().match_phrase(THAT_ONE).is_some();
    let is_fact = body.is_statement() && !is_reminiscence && body.cursor().match_phrase(NO_FACT).is_none();
    is_fact.then(|| build_remember(&body, None))
}

/// Returns the fact in "My tax number is 37/412, keep that".
fn parse_trailing_remember<'t>(sentence: &Sentence<'t>) -> Option<Sentence<'t>> {
    const KEEP: &str = "?please ?can|could ?you ?please note|remember|save|keep|write|store|log|record that|this|it ?down|in ?mind ?for ?me ?please";
    let at = (3..sentence.len()).find(|at| {
        let mark = sentence.part_from(*at);
        mark.cursor().match_phrase(",|-|–|—|(").is_some() && mark.part_from(1).is_all_of(KEEP)
    })?;
    Some(sentence.part_until(at).body())
}

/// Parses "Remember about Anna that she likes tea", "note on the car: the tyres are new".
fn remember_about(sentence: &Sentence<'_>) -> Option<Reading> {
    let about = sentence.skip_to(sentence.cursor().match_phrase("remember|note ?this about|on|under")?);
    /// Maximum words of a topic.
    const MAX_TOPIC: usize = 5;
    let end = (1..about.len())
        .take(MAX_TOPIC)
        .find(|index| about.part_from(*index).cursor().match_phrase(":|that").is_some())?;
    let (topic, body) = (about.part_until(end), about.part_from(end + 1).body());
    (topic.is_body() && body.is_body()).then(|| build_remember(&body, Some(&topic)))
}

fn build_remember(body: &Sentence<'_>, topic: Option<&Sentence<'_>>) -> Reading {
    let topic = topic.map(|topic| topic.text().to_owned());
    Reading::Command(OfflineCommand::Remember { fact: body.text().to_owned(), topic })
}

/// Words that can't begin the topic of a fact to forget: "forget it", "forget what I said", "forget about dinner with Bob tonight".
const NOT_FORGOTTEN: &str = "it|that|this|them|what|to|me|you|i|all|everything|anything|about|him|her";

/// Parses an order to forget, by the full fact ("forget that Anna is vegan") or its topic ("forget the wifi code").
fn parse_forget(sentence: &Sentence<'_>) -> Option<Reading> {
    const WHICH: &str = "I won't forget everything at once. Say which fact to forget, as in “forget the wifi code”. “What do you know \
                         about me?” lists them.";
    if sentence.is_all_of("forget|erase ?about all|everything|anything ?about|of ?me ?you ?know") {
        return Some(ask_back(WHICH));
    }
    if let Some(end) = sentence.cursor().match_phrase("forget ?the ?fact that") {
        let body = sentence.skip_to(end).body();
        let is_about_a_talk = body.cursor().match_phrase("i asked|said|told|mentioned|ever|just").is_some();
        let is_fact = body.is_statement() && !is_about_a_talk && body.cursor().match_phrase(THAT_ONE).is_none();
        return is_fact.then(|| Reading::Command(OfflineCommand::Forget { query: body.text().to_owned() }));
    }
    let body = sentence.skip_to(sentence.cursor().match_phrase("forget ?about")?).body();
    let is_named = body.is_body() && body.cursor().match_phrase(NOT_FORGOTTEN).is_none() && body.len() <= 8;
    let bare = body.skip_phrase("the|a|an");
    is_named.then(|| Reading::Command(OfflineCommand::Forget { query: bare.text().to_owned() }))
}

const KNOW: &[(&str, ())] = &[
    ("what do|did you know|remember|recall about", ()),
    ("what else do you know|remember about", ()),
    ("what have i told you about", ()),
    ("what did i tell you about", ()),
    ("do you know|remember anything|something about", ()),
    ("tell me ?everything|all ?that you know|remember about", ()),
    ("tell me what you know|remember about", ()),
    ("show me ?what|everything ?that you know|remember about", ()),
];

fn parse_know(sentence: &Sentence<'_>) -> Option<Reading> {
    let ((), end) = sentence.cursor().match_table(KNOW)?;
    let topic = sentence.skip_to(end).body();
    if topic.is_all_of("me|myself|us|everything") {
        return Some(Reading::Command(OfflineCommand::Know { topic: None }));
    }
    let is_topic = topic.is_body() && !topic.is_pronoun() && !sentence.asks_more();
    Some(if is_topic {
        Reading::Command(OfflineCommand::Know { topic: Some(topic.text().to_owned()) })
    } else {
        Reading::Question
    })
}
