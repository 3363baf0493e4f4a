//! Parses reports of finished work, which finish a task or take bought things off the shopping list. Only the tool knows the tasks and
//! items; without a match nothing is claimed.

use chrono::DateTime;

use reveille_base::zone::Tz;

use super::{OfflineCommand, Reading, lists, sentence::Sentence};

/// Verbs of finished work, with the verb of the task.
const DID: &[(&str, &str)] = &[
    ("called|rang|phoned", "call"),
    ("emailed|mailed", "email"),
    ("texted", "text"),
    ("messaged", "message"),
    ("wrote|written", "write"),
    ("bought", "buy"),
    ("got|gotten", "get"),
    ("picked", "pick"),
    ("paid", "pay"),
    ("booked", "book"),
    ("reserved", "reserve"),
    ("renewed", "renew"),
    ("cleaned", "clean"),
    ("fixed", "fix"),
    ("repaired", "repair"),
    ("ordered", "order"),
    ("returned", "return"),
    ("washed", "wash"),
    ("painted", "paint"),
    ("watered", "water"),
    ("visited", "visit"),
    ("collected", "collect"),
    ("prepared", "prepare"),
    ("packed", "pack"),
    ("filed", "file"),
    ("mowed|mown", "mow"),
    ("fed", "feed"),
    ("walked", "walk"),
    ("posted", "post"),
    ("printed", "print"),
    ("sent", "send"),
    ("signed", "sign"),
    ("submitted", "submit"),
    ("handed", "hand"),
    ("scheduled", "schedule"),
    ("planned", "plan"),
    ("invited", "invite"),
    ("did|done", "do"),
    ("made", "make"),
    ("cancelled|canceled", "cancel"),
    ("cooked", "cook"),
    ("baked", "bake"),
    ("answered", "answer"),
    ("checked", "check"),
    ("took|taken", "take"),
    ("hoovered", "hoover"),
    ("vacuumed", "vacuum"),
    ("ironed", "iron"),
    ("changed", "change"),
    ("replaced", "replace"),
    ("installed", "install"),
    ("updated", "update"),
    ("sold", "sell"),
    ("brought", "bring"),
    ("dropped", "drop"),
    ("wrapped", "wrap"),
    ("sorted", "sort"),
    ("tidied", "tidy"),
    ("emptied", "empty"),
    ("charged", "charge"),
    ("filled", "fill"),
    ("registered", "register"),
    ("applied", "apply"),
    ("reviewed", "review"),
    ("talked|spoke|spoken", "talk"),
    ("asked", "ask"),
    ("read", "read"),
    ("replied", "reply"),
    ("moved", "move"),
    ("hung", "hang"),
    ("measured", "measure"),
    ("confirmed", "confirm"),
    ("transferred", "transfer"),
    ("studied", "study"),
    ("unpacked", "unpack"),
    ("defrosted", "defrost"),
    ("fetched", "fetch"),
    ("chased", "chase"),
    ("delivered", "deliver"),
    ("marked", "mark"),
    ("oiled", "oil"),
    ("trimmed", "trim"),
    ("cut", "cut"),
    ("swept", "sweep"),
    ("polished", "polish"),
];
/// Verbs of buying.
const BUYS: &[&str] = &["buy", "get", "pick"];
/// Words by which a sentence says more than that something is done.
const MORE: &str = "but|because|so|when|while|if|that|which|who|until|unless|not|never|didn't|nearly|almost|him|her|them|it|me|us|this|you|your|to|?";
/// Maximum tokens of the object.
const MAX_TOKENS: usize = 10;
/// Times at the end, which aren't part of the task.
const WHEN: &[&str] = &[
    "this morning|afternoon|evening|week",
    "last night",
    "a minute|moment ago",
    "just now",
    "today|yesterday|already|now|earlier|finally|tonight|too|btw|also",
    "at last",
];

/// Words that declare a thing done: "the room's booked".
const DONE: &[&str] = &["done", "finished", "sorted", "complete", "completed", "ready", "packed", "handled", "dealt"];

/// Expands "is" in a sentence that declares a thing done: "dry cleaning's done".
pub(super) fn expand_contraction(text: &str) -> Option<String> {
    const SAYS_MORE: &[&str] = &[
        "it",
        "that",
        "he",
        "she",
        "what",
        "who",
        "where",
        "there",
        "here",
        "everything",
        "this",
        "how",
        "when",
        "let",
    ];
    let apostrophe = text.find("'s ").map(|at| (at, 3)).or_else(|| text.find("’s ").map(|at| (at, 5)));
    let (at, len) = apostrophe?;
    let (thing, rest) = (text.get(..at)?, text.get(at + len..)?);
    let mut words = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let next = words.find(|word| !["now", "already", "all", "been", "finally"].contains(word))?.to_lowercase();
    let is_done = DONE.contains(&next.as_str()) || DID.iter().any(|(did, _)| did.split('|').any(|did| did == next));
    let last = thing.rsplit(' ').next()?.to_lowercase();
    let is_thing = !SAYS_MORE.contains(&last.as_str())
        && words.next().is_none_or(|more| more == "now" || more == "too" || more == "already" || more == "today");
    (is_done && is_thing).then(|| format!("{thing} is {rest}"))
}

pub(super) fn parse_did(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    let body = sentence.body();
    // "Called Okafor, that's done."
    let end = (1..body.len()).find(|at| {
        let comma = body.part_from(*at);
        comma.cursor().text() == ","
            && comma.part_from(1).is_all_of("?so|and ?that's|it's|all ?all done|sorted|finished ?now|too")
    });
    let body = end.map_or(body, |at| body.part_until(at).body());
    if let Some(reading) = parse_ticked_off(&body) {
        return Some(reading);
    }
    if let Some(reading) = parse_several_done(&body, sentence) {
        return Some(reading);
    }
    if sentence.is_bare_question() || body.text().contains([',', ';', ':']) {
        return None;
    }
    if let Some(reading) = parse_done(&body).or_else(|| parse_participle(&body)) {
        return Some(reading);
    }
    let told = body.skip_phrase("?i|we|i've|we've ?have ?just ?already ?finally ?also ?now");
    let (task, end) = told.cursor().match_table(DID)?;
    let is_bare = told.len() == body.len();
    let object = without_time(&told.skip_to(end));
    let tells_more = object.has_word(MORE);
    if object.is_blank() || object.len() > MAX_TOKENS || tells_more || object.is_pronoun() {
        return None;
    }
    // "Got home", "got the flu", "done with it": short forms count as purchases only with an article.
    let is_thing = object.cursor().match_phrase("the|some|my").is_some();
    let is_of_a_number = object.cursor().match_phrase("?the task|reminder|number|todo|#").is_some()
        || object.cursor().read_number().is_some()
        || object.skip_phrase("the").cursor().read_ordinal().is_some();
    let has_number = object.text().contains(|c: char| c.is_ascii_digit()) && told.cursor().text() == "did";
    if (matches!(task, "get" | "do" | "take" | "make") && is_bare && !is_thing && !has_number) || is_of_a_number {
        return None;
    }
    let items = if BUYS.contains(&task) { lists::split_items(&object.skip_phrase("?up"), lists::TO_BUY) } else { None };
    Some(Reading::Command(OfflineCommand::Did {
        task: format!("{task} {}", object.text()),
        items: items.unwrap_or_default(),
        fact: body.text().to_owned(),
    }))
}

const IS_DONE: &[(&str, ())] = &[("is|are", ()), ("has|have been", ())];
/// Subjects that can't be a task's object.
const NO_THING: &str =
    "i|we|he|she|they|it|you|a|an|both|all|everything|nothing|who|what|which|this|that|nobody|some|your";

/// Parses "The rent is paid", "the milk has been bought".
fn parse_done(body: &Sentence<'_>) -> Option<Reading> {
    let at = (1..body.len()).find(|at| body.part_from(*at).cursor().match_table(IS_DONE).is_some())?;
    let said = without_time(&body.part_from(at).skip_phrase("is|are|has|have ?been ?now ?already ?all"));
    let (task, end) = said.cursor().match_table(DID)?;
    let is_whole = said.skip_to(end.skip("up|off|out|in|away|back")).is_blank();
    let thing = body.part_until(at);
    let is_named = thing.cursor().match_phrase(NO_THING).is_none();
    if !is_whole || !is_named || task == "do" || thing.has_word(MORE) || thing.is_pronoun() || !thing.is_body() {
        return None;
    }
    let items = lists::split_items(&thing, lists::TO_BUY).filter(|_| BUYS.contains(&task) || task == "pack");
    let task = format!("{task} {}", thing.text());
    Some(Reading::Command(OfflineCommand::Did { task, items: items.unwrap_or_default(), fact: body.text().to_owned() }))
}

/// Parses "Brandt invoice is out, tick it off": the thing stands before the comma.
fn parse_ticked_off(body: &Sentence<'_>) -> Option<Reading> {
    let at = (2..body.len()).find(|at| {
        let tail = body.part_from(*at);
        tail.cursor().match_phrase(",|-|–|and").is_some()
            && tail.part_from(1).is_all_of(
                "?so|and ?you ?can ?please tick|cross|check|mark|strike it|that|this|them ?as off|done ?now ?please",
            )
    })?;
    let told = body.part_until(at).body();
    let verb = (1..told.len()).find(|at| told.part_from(*at).cursor().match_phrase("is|are|has|have|was").is_some())?;
    let thing = told.part_until(verb).skip_phrase("the|my");
    let is_thing = thing.cursor().match_phrase(NO_THING).is_none()
        && !thing.is_pronoun()
        && thing.is_body()
        && !told.has_word("not|never|isn't|if");
    let items = lists::split_items(&thing, lists::TO_BUY).unwrap_or_default();
    is_thing.then(|| {
        Reading::Command(OfflineCommand::Did { task: thing.text().to_owned(), items, fact: body.text().to_owned() })
    })
}

/// Parses "Chestnuts done, jus done", item by item.
fn parse_several_done(body: &Sentence<'_>, sentence: &Sentence<'_>) -> Option<Reading> {
    let comma = (1..body.len()).find(|at| body.part_from(*at).cursor().match_phrase(",|and").is_some())?;
    let done = |part: &Sentence<'_>| match parse_done(part).or_else(|| parse_participle(part))? {
        Reading::Command(command) => Some(command),
        _ => None,
    };
    let (left, right) = (body.part_until(comma).body(), body.part_from(comma + 1).skip_phrase("and").body());
    let first = done(&left)?;
    let mut commands = vec![first];
    match parse_several_done(&right, sentence) {
        Some(Reading::Commands(more)) => commands.extend(more),
        _ => commands.push(done(&right)?),
    }
    (!sentence.is_bare_question()).then_some(Reading::Commands(commands))
}

/// Participles that apply to things rather than people: "invoice sent", "plants watered".
const DONE_TO_THINGS: &str = "sent|paid|booked|posted|watered|ordered|returned|cleaned|washed|fixed|repaired|signed|submitted|packed|printed|filed|mowed|\
                              fed|ironed|hoovered|vacuumed|emptied|renewed|bought|picked|collected|delivered|written|made|baked|cooked|sorted|cancelled|\
                              canceled|wrapped|charged|filled|done|finished";

/// Parses "Invoice sent", "plants watered": a thing with a participle, in few words.
fn parse_participle(body: &Sentence<'_>) -> Option<Reading> {
    /// Maximum tokens of such a note.
    const MAX_NOTE: usize = 6;
    let said = without_time(body);
    let last = said.len().checked_sub(1).filter(|last| (1..MAX_NOTE).contains(last))?;
    let word = said.part_from(last).cursor().text();
    let is_known = said.part_from(last).cursor().match_phrase(DONE_TO_THINGS).is_some();
    // "Strawberries netted": a verb that isn't listed.
    let is_regular = said.part_from(last).cursor().match_table(DID).is_none()
        && word.len() > 4
        && word.ends_with("ed")
        && !matches!(
            word,
            "tired"
                | "bored"
                | "need"
                | "speed"
                | "worried"
                | "excited"
                | "confused"
                | "stressed"
                | "annoyed"
                | "closed"
                | "delayed"
                | "married"
        );
    if !(is_known || is_regular) {
        return None;
    }
    let thing = said.part_until(last).skip_phrase("the|my|all");
    let is_counted = thing.cursor().read_ordinal().is_some() || thing.cursor().text().ends_with("'s");
    let is_thing = thing.cursor().match_phrase(NO_THING).is_none()
        && !is_counted
        && !thing.has_word(MORE)
        && !thing.is_pronoun()
        && thing.is_body();
    let is_said = thing
        .has_word("task|todo|reminder|is|are|was|were|be|been|get|got|has|have|had|i|we|i'm|i've|well|nearly|half")
        || thing.cursor().read_number().is_some();
    let starts_with_verb =
        thing.cursor().match_phrase(super::tasks::TASK_VERBS).is_some() || thing.cursor().match_table(DID).is_some();
    if !is_thing || is_said || starts_with_verb {
        return None;
    }
    let done = said.part_from(last);
    let verb = done.cursor().match_table(DID).map_or("", |(verb, _)| verb);
    let task =
        if matches!(verb, "do" | "" | "finish") { thing.text().to_owned() } else { format!("{verb} {}", thing.text()) };
    let items = lists::split_items(&thing, lists::TO_BUY).unwrap_or_default();
    let fact = if is_known { body.text().to_owned() } else { String::new() };
    Some(Reading::Command(OfflineCommand::Did { task, items, fact }))
}

fn without_time<'t>(object: &Sentence<'t>) -> Sentence<'t> {
    let object = object.body();
    let start = (1..object.len()).find(|at| WHEN.iter().any(|pattern| object.part_from(*at).is_all_of(pattern)));
    start.map_or(object, |at| object.part_until(at).body())
}
