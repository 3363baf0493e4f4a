//! Completes messages that depend on the one before: "and in Lisbon?", "make that 8", "take the bananas off". Each is rewritten as a full
//! sentence from the words of both and then parsed as usual, so it can do no more than a full sentence could. Any other message stands
//! alone.

use chrono::{DateTime, Timelike as _};

use reveille_base::{schedule::When, zone::Tz};

use super::{
    OfflineCommand, ParsedMessage, Which, detect_language, parse, sentence, sentence::Sentence, spelling::parse_tokens,
};

/// Maximum words of a dependent message.
const MAX_WORDS: usize = 12;
/// Maximum words of a replaced part.
const MAX_PART: usize = 6;

/// Completes a message from the person's last one, or from the list mentioned last. `None` if the message stands alone.
pub fn complete_message(
    text: &str,
    before: (&str, DateTime<Tz>),
    list: Option<&str>,
    now: DateTime<Tz>,
) -> Option<String> {
    let text = text.trim();
    if text.contains('\n') || text.split_whitespace().count() > MAX_WORDS || detect_language(text).is_some() {
        return None;
    }
    let tokens = parse_tokens(text);
    let said = sentence::as_one_sentence(text, &tokens);
    let said = said.without_reason().unwrap_or(said);
    let (earlier, at) = before;
    let past = parse(earlier, at);
    if let ParsedMessage::Unclear { .. } = past
        && let Some(full) = complete_until_then(&said, earlier, "", now)
    {
        return Some(full);
    }
    if let ParsedMessage::Unclear { .. } = past
        && let Some(super::Near::Form(form)) = super::find_nearest(earlier, at)
    {
        return complete_from_offer(&said, &form, now).or_else(|| complete_from_fact(&said, earlier, at, now));
    }
    let commands = match &past {
        ParsedMessage::Commands(commands) => commands.as_slice(),
        _ => &[],
    };
    complete_from_last(&said, before, &past, commands, now).or_else(|| complete_from_list(&said, commands, list, now))
}

/// Completes a message from the one right before.
fn complete_from_last(
    said: &Sentence<'_>,
    (earlier, at): (&str, DateTime<Tz>),
    past: &ParsedMessage,
    commands: &[OfflineCommand],
    now: DateTime<Tz>,
) -> Option<String> {
    match (past, commands.last()) {
        (ParsedMessage::Question(_), _) => {
            complete_from_question(said, earlier, now).or_else(|| complete_from_subject(said, earlier, now))
        }
        (_, Some(OfflineCommand::Sum { text })) => complete_from_sum(said, earlier, text, now),
        (_, Some(OfflineCommand::Time | OfflineCommand::Date)) => complete_from_sum(said, earlier, "", now),
        (_, Some(OfflineCommand::Agenda { .. })) => {
            let day = said.strip_phrase(LEAD)?.body();
            let full = format!("what do I have on {}", day.text());
            is_only(&full, now, |command| matches!(command, OfflineCommand::Agenda { .. })).then_some(full)
        }
        (_, Some(OfflineCommand::Know { topic: Some(_) })) => {
            let topic = said.strip_phrase(LEAD)?.body();
            let full = format!("what do you know about {}", topic.text());
            let is_new = said.cursor().match_phrase("and what|when|where|who|how|remind").is_none() && topic.len() <= 3;
            (is_new && topic.is_body() && !topic.has_word("is|are|was|do|does")).then_some(full)
        }
        (_, Some(OfflineCommand::TaskAdd { title, .. })) => complete_from_fact(said, title, at, now)
            .or_else(|| complete_task(said, now))
            .or_else(|| complete_until_then(said, earlier, "", now)),
        (_, Some(OfflineCommand::TaskDone { .. } | OfflineCommand::Did { .. })) => complete_done(said, now),
        (_, Some(OfflineCommand::Remind { what, .. } | OfflineCommand::RemindNear { what, .. })) => {
            complete_from_reminder(said, earlier, commands, what, now)
                .or_else(|| complete_until_then(said, earlier, "", now))
        }
        (_, Some(OfflineCommand::Stated { fact } | OfflineCommand::Remember { fact, .. })) => {
            complete_from_fact(said, fact, at, now)
                .or_else(|| complete_correction(said, earlier, now))
                .or_else(|| complete_from_subject(said, fact, now))
                .or_else(|| complete_until_then(said, earlier, "", now))
        }
        _ => None,
    }
}

/// Completes "No, wait, 7:15" after the offer of "remind me at 6:45 …".
fn complete_from_offer(said: &Sentence<'_>, form: &str, now: DateTime<Tz>) -> Option<String> {
    let part = strip_correction_opener(said)?;
    let is_short = !part.is_blank() && part.len() <= 4 && part.text().contains(|c: char| c.is_ascii_digit());
    let is_reminder = |full: &str| is_only(full, now, |command| matches!(command, OfflineCommand::Remind { .. }));
    if is_short { replace_part(form, part.text(), is_reminder) } else { None }
}

/// Openers of a message that replaces an earlier part.
const LEAD: &str = "?ok|okay|oh|hm|hmm|ah|right|cool|great|thanks|so ?, and|or|but|also|what|how|now|then ?what|how ?, ?about ?if ?it's|it ?is ?,";
/// Returns the words after the opener of a correction: "no, sorry, make that …". `None` without an opener.
fn strip_correction_opener<'t>(said: &Sentence<'t>) -> Option<Sentence<'t>> {
    const WORDS: &str = "oh|oops|ah|hm|hmm|wait|no|nope|sorry|hang|actually|make|change|meant|mean|that|it|it's|its|should|be|to|correction|rather|better|i|of|course";
    const OPENERS: &str =
        "oh|oops|ah|hm|hmm|wait|no|nope|sorry|hang|actually|make|change|i|it's|its|correction|better|rather|that|it";
    said.cursor().match_phrase(OPENERS)?;
    let is_filler = |at: &usize| {
        said.part_from(*at).cursor().match_phrase(WORDS).is_some() || said.part_from(*at).part_until(1).is_blank()
    };
    let start = (0..said.len()).find(|at| !is_filler(at))?;
    let rest = said.part_from(start).body();
    let is_meant = said.cursor().text() != "i" || said.part_until(start).has_word("meant|mean");
    (start > 0 && is_meant && !rest.is_blank()).then_some(rest)
}

/// True if a text is parsed as commands of one kind only.
fn is_only(text: &str, now: DateTime<Tz>, kind: impl Fn(&OfflineCommand) -> bool) -> bool {
    match parse(text, now) {
        ParsedMessage::Commands(commands) => !commands.is_empty() && commands.iter().all(kind),
        _ => false,
    }
}

fn is_sum(text: &str, now: DateTime<Tz>) -> bool {
    is_only(text, now, |command| matches!(command, OfflineCommand::Sum { .. }))
}

/// True if words have a meaning of their own, so that they depend on nothing.
fn stands_alone(text: &str, now: DateTime<Tz>) -> bool {
    match parse(text, now) {
        ParsedMessage::Commands(commands) => !commands.iter().all(|one| matches!(one, OfflineCommand::Small(_))),
        ParsedMessage::Question(_) => true,
        ParsedMessage::Unclear { .. } => false,
    }
}

/// Completes "And in Lisbon?", "what about 20%?", "divide that by 2", "how many days till then?".
fn complete_from_sum(said: &Sentence<'_>, earlier: &str, answer: &str, now: DateTime<Tz>) -> Option<String> {
    if let Some(full) = complete_that_day(said, answer) {
        return Some(full);
    }
    if let Some(full) =
        complete_with_result(said, answer, now).or_else(|| complete_until_then(said, earlier, answer, now))
    {
        return Some(full);
    }
    let (part, has_lead) = match said.cursor().match_phrase(LEAD) {
        Some(end) => (said.skip_to(end).body(), true),
        None => (said.body(), false),
    };
    let is_short = part.len() <= 4 && said.is_bare_question();
    if part.is_blank() || !(has_lead || is_short) || is_sum(said.text(), now) {
        return None;
    }
    replace_part(earlier, part.text(), |full| is_sum(full, now))
}

/// Completes "Divide that by 2", "times 3", "half of that" with the last result.
fn complete_with_result(said: &Sentence<'_>, answer: &str, now: DateTime<Tz>) -> Option<String> {
    let result = answer.rsplit_once("= ")?.1.split_whitespace().next()?;
    result.parse::<f64>().ok()?;
    let rest = said.skip_phrase(LEAD).body();
    if let Some(by) = rest.strip_phrase("split|divide|divided|share|shared ?it by|between|among") {
        let full = format!("{result} / {}", by.text()).trim_end_matches(" people").trim_end_matches(" ways").to_owned();
        return is_sum(&full, now).then_some(full);
    }
    if rest.cursor().match_phrase("plus|minus|times|divided|multiplied|x|/|*|+").is_some() {
        let full = format!("{result} {}", rest.text());
        return is_sum(&full, now).then_some(full);
    }
    let at = (0..rest.len()).find(|at| rest.part_from(*at).cursor().match_phrase("that|it|this|result").is_some())?;
    let before = rest.part_until(at).body();
    let before = before.text().trim_end_matches(" the");
    let after = rest.part_from(at + 1).body();
    let full = match before.to_lowercase().as_str() {
        "divide" | "split" | "share" => format!("{result} / {}", after.skip_phrase("by|between|among|in|into").text()),
        "multiply" => format!("{result} * {}", after.skip_phrase("by|with").text()),
        "double" => format!("2 * {result}"),
        "halve" => format!("{result} / 2"),
        _ => format!("{before} {result} {}", after.text()).trim().to_owned(),
    };
    let full = full.trim_end_matches(" people").trim_end_matches(" ways").to_owned();
    is_sum(&full, now).then_some(full)
}

/// Completes "Remind me that day to check my account" with the day just calculated.
fn complete_that_day(said: &Sentence<'_>, answer: &str) -> Option<String> {
    let (_, day) = answer.trim_end_matches('.').rsplit_once(", ")?;
    chrono::NaiveDate::parse_from_str(day, "%d %B %Y").ok()?;
    let at = (1..said.len()).find(|at| said.part_from(*at).cursor().match_phrase("?on that day|date").is_some())?;
    let after = said.part_from(at).strip_phrase("?on that day|date")?;
    said.without_courtesy().cursor().match_phrase("remind|add|set")?;
    Some(format!("{} on {day} {}", said.part_until(at).text(), after.text()))
}

/// Completes "How many days till then?" with the day mentioned before.
fn complete_until_then(said: &Sentence<'_>, earlier: &str, answer: &str, now: DateTime<Tz>) -> Option<String> {
    let at = (0..said.len()).rev().find(|at| said.part_from(*at).cursor().match_phrase("then|that|it").is_some())?;
    let asks = said.has_word("days|weeks|weekday|long|far|day|away");
    if !asks || is_sum(said.text(), now) {
        return None;
    }
    let (before, after) = (said.part_until(at).text(), said.part_from(at + 1).body().text());
    let day_in = |text: &str| {
        let words: Vec<&str> =
            text.split_whitespace().map(|word| word.trim_matches([',', '.', '?', '!', ':'])).collect();
        let parts = (1..=MAX_PART.min(words.len()))
            .rev()
            .flat_map(|len| (0..=words.len() - len).rev().map(move |from| (from, len)));
        let fulls: Vec<String> = parts
            .filter_map(|(from, len)| {
                Some(format!("{before} {} {after}", words.get(from..from + len)?.join(" ")).trim().to_owned())
            })
            .collect();
        fulls.into_iter().find(|full| is_sum(full, now))
    };
    let told = answer.split_once(": ").map_or(answer, |(_, day)| day);
    let told = told.split_once(", ").map_or(told, |(_, day)| day);
    day_in(told).or_else(|| day_in(earlier))
}

/// Returns a word's shape, with one mark for each run of letters or digits.
fn compute_shape(text: &str) -> String {
    let marks = text.chars().map(|c| {
        if c.is_alphabetic() {
            'a'
        } else if c.is_ascii_digit() {
            '9'
        } else {
            c
        }
    });
    let mut shape = String::new();
    marks.for_each(|mark| {
        if !(shape.ends_with(mark) && matches!(mark, 'a' | '9')) {
            shape.push(mark);
        }
    });
    shape
}

const PREPOSITIONS: &[&str] =
    &["in", "on", "to", "for", "of", "at", "until", "till", "from", "into", "between", "by", "with", "about"];

/// Question words, which are never replaced.
const ASKING: &[&str] = &[
    "what", "what's", "whats", "is", "are", "was", "how", "many", "much", "when", "when's", "time", "day", "days", "it",
];

/// Replaces the part of a sentence most similar to the new words, such that the result fits.
fn replace_part(earlier: &str, part: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let words: Vec<&str> = earlier.trim_end_matches(['?', '!', '.', ' ']).split_whitespace().collect();
    let first = part.split_whitespace().next()?.to_lowercase();
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let mut places: Vec<(u8, usize, usize)> = (1..=MAX_PART.min(words.len()))
        .flat_map(|len| (0..=words.len() - len).map(move |from| (from, len)))
        .filter_map(|(from, len)| {
            let old = words.get(from..from + len)?;
            let old_first = old.first()?.to_lowercase();
            if old.iter().any(|word| ASKING.contains(&word.to_lowercase().as_str())) {
                return None;
            }
            let joined = old.join(" ");
            let likeness = if PREPOSITIONS.contains(&first.as_str()) && old_first == first {
                0
            } else if PREPOSITIONS.contains(&first.as_str()) {
                return None;
            } else if compute_shape(&joined) == compute_shape(part) {
                1
            } else if has_digit(&joined) == has_digit(part) && !PREPOSITIONS.contains(&old_first.as_str()) {
                2
            } else {
                return None;
            };
            Some((likeness, len, from))
        })
        .collect();
    // Of equally similar parts: the longest, then the last.
    places.sort_by_key(|(likeness, len, from)| {
        (*likeness, if *likeness == 1 { 0 } else { usize::MAX - len }, usize::MAX - from)
    });
    places.into_iter().find_map(|(_, len, from)| {
        let mut full: Vec<&str> = words.get(..from)?.to_vec();
        full.push(part);
        full.extend_from_slice(words.get(from + len..)?);
        let full = full.join(" ");
        (fits(&full) && !full.eq_ignore_ascii_case(&words.join(" "))).then_some(full)
    })
}

/// Completes "And Tom's?" after a question about Anna's birthday.
fn complete_from_question(said: &Sentence<'_>, earlier: &str, now: DateTime<Tz>) -> Option<String> {
    const ASKS: &[&str] = &["what's", "who's", "where's", "when's", "how's", "it's", "that's", "there's"];
    let part = said.strip_phrase(LEAD)?.body();
    let part = part.text();
    let is_possessive = |word: &str| {
        let word = word.to_lowercase();
        (word.ends_with("'s") || word.ends_with("s'")) && !ASKS.contains(&word.as_str())
    };
    let owner: Vec<&str> = part.split_whitespace().collect();
    if owner.len() > 3 || !owner.last().is_some_and(|last| is_possessive(last) || *last == "mine") {
        return None;
    }
    let part = if part.eq_ignore_ascii_case("mine") { "my" } else { part };
    let words: Vec<&str> = earlier.trim_end_matches(['?', '!', '.', ' ']).split_whitespace().collect();
    let is_possessive_pronoun =
        |word: &str| matches!(word.to_lowercase().as_str(), "my" | "our" | "his" | "her" | "their");
    let end = words
        .iter()
        .position(|word| is_possessive(word))
        .or_else(|| words.iter().position(|word| is_possessive_pronoun(word)))?;
    let start =
        end.checked_sub(1).filter(|at| words.get(*at).is_some_and(|word| is_possessive_pronoun(word))).unwrap_or(end);
    let full = [words.get(..start)?, &[part], words.get(end + 1..)?].concat().join(" ") + "?";
    matches!(parse(&full, now), ParsedMessage::Question(_)).then_some(full)
}

/// Completes "She wears size 39" after "my sister Anna's birthday is in May".
fn complete_from_subject(said: &Sentence<'_>, earlier: &str, now: DateTime<Tz>) -> Option<String> {
    const WHO: &[(&str, bool)] =
        &[("he|she|they|it", false), ("he's|she's|they're|it's", false), ("his|her|their|its", true)];
    if matches!(parse(said.text(), now), ParsedMessage::Commands(_))
        || (said.is_question() && said.has_word("it|it's|its"))
    {
        return None;
    }
    let subject = find_subject(earlier)?;
    let body = said.without_courtesy();
    let (at, (_, is_owner)) = (0..body.len()).find_map(|at| {
        let found = WHO.iter().find(|(pattern, _)| body.part_from(at).cursor().match_phrase(pattern).is_some())?;
        Some((at, found))
    })?;
    let pronoun = body.part_from(at).cursor().text().to_owned();
    let is_person =
        subject.starts_with("my ") || subject.starts_with("our ") || subject.starts_with(char::is_uppercase);
    if pronoun.starts_with("it") == is_person && !subject.starts_with("my ") && !subject.starts_with("our ") {
        return None;
    }
    let who = match (*is_owner, pronoun.contains('\'')) {
        (true, _) => format!("{subject}'s"),
        (false, true) => format!("{subject} {}", if pronoun.ends_with("re") { "are" } else { "is" }),
        (false, false) => subject,
    };
    let full = format!("{} {who} {}", body.part_until(at).text(), body.part_from(at + 1).text());
    let full = full.trim().to_owned();
    let is_statement = at == 0 && is_only(&full, now, |command| matches!(command, OfflineCommand::Stated { .. }));
    let is_asked = at > 0 || (*is_owner && said.is_bare_question());
    let is_question = is_asked && matches!(parse(&full, now), ParsedMessage::Question(_)) && said.is_question();
    (is_statement || is_question).then_some(full)
}

/// Finds the subject of a sentence: "my sister Anna" of "my sister Anna's birthday is on 14 January", "Anna" of "when is Anna's birthday?".
fn find_subject(text: &str) -> Option<String> {
    const VERBS: &[&str] = &[
        "does", "do", "did", "should", "is", "are", "was", "were", "has", "have", "had", "likes", "lives", "works",
        "wears", "weighs", "plays", "called", "named", "can't", "hates", "loves", "prefers", "needs", "starts",
        "opens", "goes", "costs",
    ];
    const NO_SUBJECT: &[&str] =
        &["i", "we", "you", "it", "he", "she", "they", "what", "when", "where", "who", "how", "that", "there", "this"];
    let words: Vec<&str> = text.trim_end_matches(['.', '!', '?', ' ']).split_whitespace().collect();
    let bare = |word: &str| word.trim_end_matches("'s").trim_end_matches("’s").to_owned();
    let is_owner = |word: &&str| word.ends_with("'s") || word.ends_with("’s");
    let asks = words.first().is_some_and(|first| NO_SUBJECT.contains(&bare(first).to_lowercase().as_str()));
    let begin = if asks {
        words
            .iter()
            .skip(1)
            .position(|word| !VERBS.contains(&word.to_lowercase().as_str()))
            .map_or(words.len(), |at| at + 1)
    } else {
        0
    };
    let rest = words.get(begin..)?;
    // "When does Mirela come?" has the subject "Mirela".
    if asks {
        let named: Vec<String> =
            rest.iter().take_while(|word| word.starts_with(char::is_uppercase)).map(|word| bare(word)).collect();
        if (1..=3).contains(&named.len()) {
            return Some(named.join(" "));
        }
    }
    let owner = rest.iter().position(is_owner).filter(|at| *at < 4);
    let verb = rest.iter().position(|word| VERBS.contains(&word.to_lowercase().as_str()));
    let end = match (owner, verb) {
        (Some(owner), Some(verb)) if owner < verb => owner + 1,
        (Some(owner), None) => owner + 1,
        (_, Some(verb)) => verb,
        (None, None) => return None,
    };
    let subject: Vec<String> = rest.get(..end)?.iter().map(|word| bare(word)).collect();
    let first = subject.first()?.to_lowercase();
    ((1..=4).contains(&subject.len()) && !NO_SUBJECT.contains(&first.as_str())).then(|| subject.join(" "))
}

/// Completes "And call the bank", "post the parcel too".
fn complete_task(said: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    let title = find_addition(said, now)?;
    let is_title = title.is_body() && !title.is_pronoun() && !title.is_statement() && title.len() >= 2;
    is_title.then(|| format!("add task {}", title.text()))
}

/// Returns the addition in a message: the words after "and" or "also", or before "too".
fn find_addition<'t>(said: &Sentence<'t>, now: DateTime<Tz>) -> Option<Sentence<'t>> {
    const MORE: &str = "?oh|ah|ok|okay|yes ?, and|also|plus|another|then ?also ?one|another ?: ?,";
    let begun = said.cursor().match_phrase(MORE).map(|end| said.skip_to(end).body());
    let part = begun.unwrap_or_else(|| said.body());
    let ended = (1..part.len()).find(|at| part.part_from(*at).is_all_of("?, too|also|as ?well ?please|thanks"));
    if (begun.is_none() && ended.is_none()) || said.is_question() {
        return None;
    }
    let part = ended.map_or(part, |at| part.part_until(at).body());
    (!part.is_blank() && !part.has_word("remind|reminder|remember|and") && !stands_alone(part.text(), now))
        .then_some(part)
}

/// Completes "And the last one", "3 as well".
fn complete_done(said: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    const MORE: &str = "?oh|ah ?, and|also|plus ?also ?,";
    let begun = said.cursor().match_phrase(MORE).map(|end| said.skip_to(end).body());
    let part = begun.unwrap_or_else(|| said.body());
    let ended = (1..part.len()).find(|at| part.part_from(*at).is_all_of("?is|are ?, too|also|as ?well ?done"));
    if (begun.is_none() && ended.is_none()) || said.is_question() {
        return None;
    }
    let part = ended.map_or(part, |at| part.part_until(at).body());
    if part.is_blank() || stands_alone(part.text(), now) {
        return None;
    }
    let full = format!("mark {} as done", part.skip_phrase("the|number|task").text());
    is_only(&full, now, |command| matches!(command, OfflineCommand::TaskDone { .. })).then_some(full)
}

/// Completes "Make that 8", "no, friday", "and again at 9", "and to feed the cat".
fn complete_from_reminder(
    said: &Sentence<'_>,
    earlier: &str,
    commands: &[OfflineCommand],
    what: &str,
    now: DateTime<Tz>,
) -> Option<String> {
    let is_reminder = |command: &OfflineCommand| matches!(command, OfflineCommand::Remind { .. });
    if what.starts_with("the timer is up")
        && let Some(rest) =
            said.strip_phrase("?ok|okay|oh ?, ?and|also|plus ?, another|one|also ?one ?timer ?more ?, ?for ?of")
    {
        let rest = rest.body();
        let forms = [format!("set a timer for {}", rest.text()), {
            let at = (1..rest.len()).find(|at| rest.part_from(*at).cursor().text() == ",").unwrap_or(0);
            format!(
                "set a timer for {} for {}",
                rest.part_from(at).body().text(),
                rest.part_until(at).body().skip_phrase("for ?the").text()
            )
        }];
        return forms.into_iter().find(|full| is_only(full, now, is_reminder));
    }
    if let Some(rest) = said.strip_phrase("?and|also|plus ?one|another|again ?one ?reminder ?for|to|about")
        && said.cursor().match_phrase("and|also|plus|again|another|one").is_some()
        && !stands_alone(rest.body().text(), now)
        && !rest.body().is_blank()
    {
        let rest = rest.body();
        let times = [format!("remind me {} to {what}", rest.text()), format!("remind me at {} to {what}", rest.text())];
        let is_time =
            super::change::is_time(rest.text(), now) || super::change::is_time(&format!("at {}", rest.text()), now);
        if is_time {
            return times.into_iter().find(|full| is_only(full, now, is_reminder));
        }
        let full = earlier.replacen(what, rest.text(), 1);
        return (full != earlier && rest.is_body() && is_only(&full, now, is_reminder)).then_some(full);
    }
    let time = strip_correction_opener(said)?;
    let time = (1..time.len())
        .find(|at| time.part_from(*at).is_all_of("instead|please|then|actually|sorry|btw|now"))
        .map_or(time, |at| time.part_until(at).body());
    if time.is_blank() || said.is_bare_question() {
        return None;
    }
    // "Make it 7" for a reminder at 18:00 means 19:00: the nearer of the two hours.
    if let Some(OfflineCommand::Remind { when: When::At(slot), .. }) = commands.last()
        && let Some((hour @ 1..=12, end)) = time.skip_phrase("at").cursor().read_number()
        && time.skip_to(end).is_blank()
    {
        let is_near = |hour: &u32| hour.abs_diff(slot.civil.hour()) <= 6;
        let hour = [hour % 12, hour % 12 + 12].into_iter().find(is_near).unwrap_or(hour);
        return Some(format!("move it to {hour}:00"));
    }
    let is_moved = |command: &OfflineCommand| matches!(command, OfflineCommand::Postpone { which: Which::It, .. });
    [format!("move it to {}", time.text()), format!("move it to {} o'clock", time.text())]
        .into_iter()
        .find(|full| is_only(full, now, is_moved))
}

/// Parses "Dentist on the 24th at 9:40, remind me an hour before" in one sentence.
pub(super) fn parse_reminder_before(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<OfflineCommand> {
    let at = (2..sentence.len()).find(|at| {
        let order = sentence.part_from(*at);
        order.cursor().match_phrase("?and ?so ?please ?can|could ?you ?please remind me|us").is_some()
            && sentence.part_from(at - 1).cursor().match_phrase(",|.|-|–|and").is_some()
    })?;
    let (what, order) = (sentence.part_until(at).without_courtesy().body(), sentence.part_from(at));
    if !order.has_word("before") || what.is_question() || what.is_negated() {
        return None;
    }
    let full = complete_from_fact(&order, what.text(), now, now)?;
    match parse(&full, now) {
        ParsedMessage::Commands(commands) => commands.into_iter().next(),
        _ => None,
    }
}

/// Completes "Remind me of that tomorrow", "remind me the day before at 6" with the fact just told and the day in it.
fn complete_from_fact(said: &Sentence<'_>, what: &str, at: DateTime<Tz>, now: DateTime<Tz>) -> Option<String> {
    let rest = said.without_courtesy().strip_phrase("?and ?please ?can|could|will ?you ?please remind me|us")?.body();
    let what = what.split_once(" (said on ").map_or(what, |(fact, _)| fact);
    // "At 10 their time" is another hour here.
    if ["their time", "local time", "his time", "her time", "over there"]
        .iter()
        .any(|elsewhere| what.contains(elsewhere))
    {
        return None;
    }
    let is_reminder = |full: &String| is_only(full, now, |command| matches!(command, OfflineCommand::Remind { .. }));
    let find_reference = |rest: &Sentence<'_>| {
        (0..rest.len()).find(|at| {
            // "That the Webers are coming" is a text of its own.
            let after = rest.part_from(*at).strip_phrase("?of|about|to ?do it|that|this").map(|after| after.body());
            after.is_some_and(|after| after.is_blank() || super::change::is_time(after.text(), now))
        })
    };
    let without_it = match find_reference(&rest) {
        Some(at) => {
            let after = rest.part_from(at).strip_phrase("?of|about|to ?do it|that|this")?.body();
            [rest.part_until(at).body().text(), after.text()].join(" ").trim().to_owned()
        }
        None => rest.text().to_owned(),
    };
    let lower = without_it.to_lowercase();
    if let Some(full) = complete_time_before(&lower, what, at).filter(|full| is_reminder(full)) {
        return Some(full);
    }
    const BEFORE: &[(&str, i64)] = &[
        ("the day before", 1),
        ("a day before", 1),
        ("one day before", 1),
        ("the evening before", 1),
        ("the night before", 1),
        ("two days before", 2),
        ("2 days before", 2),
        ("three days before", 3),
        ("3 days before", 3),
        ("a week before", 7),
        ("one week before", 7),
        ("on the day", 0),
    ];
    if let Some((words, days)) = BEFORE.iter().find(|(words, _)| lower.contains(words)) {
        let day = super::days::find_named_day(what, at)? - chrono::TimeDelta::days(*days);
        let part = if words.contains("evening") || words.contains("night") { " in the evening" } else { "" };
        let time = lower.replacen(words, &format!("{}{part}", day.format("on %-d %B %Y")), 1);
        return Some(format!("remind me {time}: {what}")).filter(is_reminder);
    }
    let refers_to_it = find_reference(&rest).is_some() || super::change::is_time(&without_it, now);
    let full = format!("remind me {without_it}: {what}");
    (refers_to_it && is_reminder(&full)).then_some(full)
}

/// Completes "30 minutes before" with the time that a fact names.
fn complete_time_before(lower: &str, what: &str, at: DateTime<Tz>) -> Option<String> {
    let (distance, rest) = lower.split_once(" before")?;
    let mut words = distance.split_whitespace();
    let (count, unit) = (words.next()?, words.next()?);
    let unit = match (count, unit) {
        ("half", "an") if words.next() == Some("hour") => "minutes",
        ("half", _) => return None,
        (_, unit) => unit,
    };
    let count: i64 = match count {
        "a" | "an" | "one" => 1,
        "half" => 30,
        count => count.parse().ok().or_else(|| reveille_base::schedule::words::number_word(count).map(i64::from))?,
    };
    let before = match unit.trim_end_matches('s') {
        "minute" | "min" => chrono::TimeDelta::try_minutes(count)?,
        "hour" | "hr" => chrono::TimeDelta::try_hours(count)?,
        _ => return None,
    };
    let found = reveille_base::schedule::parse_when(what, at)?;
    let named = what.get(found.span)?;
    let When::At(slot) = found.when.ok()? else { return None };
    // A day alone has no time to subtract from.
    let rest = rest.trim().trim_start_matches("that").trim_start_matches("it").trim();
    let to = ["so that i can ", "so i can ", "to "].iter().find_map(|lead| rest.strip_prefix(lead));
    let what = match to {
        Some(to) => format!("{to} ({what})"),
        None if rest.is_empty() => what.to_owned(),
        None => return None,
    };
    if !named.contains(|c: char| c.is_ascii_digit()) || words.next().is_some() {
        return None;
    }
    Some(format!("remind me {}: {what}", (slot.civil - before).format("on %-d %B %Y at %H:%M")))
}

/// Completes "Sorry, 44", "I meant Zoe" with the fact just told.
fn complete_correction(said: &Sentence<'_>, earlier: &str, now: DateTime<Tz>) -> Option<String> {
    let value = strip_correction_opener(said)?;
    let is_value = !value.is_blank() && value.len() <= 3 && !said.is_question();
    let value = value.text();
    let last = earlier.trim_end_matches(['.', '!']).split_whitespace().last()?;
    let is_name = |word: &str| word.starts_with(char::is_uppercase);
    let is_like = value.contains(|c: char| c.is_ascii_digit()) || (is_name(value) && is_name(last));
    let is_fact = |text: &str| {
        is_only(text, now, |command| matches!(command, OfflineCommand::Stated { .. } | OfflineCommand::Remember { .. }))
    };
    if !is_value || !is_like {
        return None;
    }
    let full = if is_name(value) {
        format!("{}{value}", earlier.trim_end_matches(['.', '!']).strip_suffix(last)?)
    } else {
        replace_part(earlier, value, is_fact)?
    };
    is_fact(&full).then_some(full)
}

/// Completes "and some washing-up liquid", "take the bananas off", "clear it" with the list mentioned last.
fn complete_from_list(
    said: &Sentence<'_>,
    commands: &[OfflineCommand],
    list: Option<&str>,
    now: DateTime<Tz>,
) -> Option<String> {
    let list = list?;
    let name = list.to_lowercase();
    let is_list = |command: &OfflineCommand| {
        matches!(
            command,
            OfflineCommand::ListAdd { .. }
                | OfflineCommand::ListTake { .. }
                | OfflineCommand::ListShow { .. }
                | OfflineCommand::ListClear { .. }
        )
    };
    let fits = |full: String| is_only(&full, now, is_list).then_some(full);
    if is_only(said.text(), now, is_list) {
        return None;
    }
    let is_last = commands.last().is_some_and(is_list);
    let body = said.without_courtesy().body();
    const ON_IT: &str = "on|to|onto|in ?it|there|the|that|my ?list ?too|as|also ?well ?please";
    const OFF_IT: &str = "?off|from ?of ?it|there|the|that|my ?list ?again ?please";
    if let Some(rest) = body.strip_phrase("add|put|pop|stick|chuck|throw|write|get") {
        let named = (1..rest.len()).find(|at| {
            let end = rest.part_from(*at);
            end.cursor().match_phrase("on|to|onto|in").is_some() && end.is_all_of(ON_IT)
        });
        if let Some(at) = named {
            return fits(format!("add {} to the {name}", rest.part_until(at).text()));
        }
    }
    if body.is_all_of("clear|empty|wipe|delete|erase|reset ?out|up ?it|the|that|my|whole ?list ?now ?please")
        && (is_last || !body.has_word("list"))
    {
        return fits(format!("clear the {name}"));
    }
    if body.is_all_of(
        "?so what's|what|whats|read|show ?is ?me ?still ?left on|off it|there|the|that|my list ?now ?please ?then",
    ) && body.has_word("it|there|list")
        && is_last
    {
        return fits(format!("show me the {name}"));
    }
    if !is_last {
        return None;
    }
    if let Some(rest) =
        body.strip_phrase("add|put|pop|stick ?in|on ?also").filter(|rest| !rest.has_word("to|task|remind|reminder"))
    {
        let thing = rest.body().without_ending("then|please|thanks|too|now|also");
        return fits(format!("add {} to the {name}", thing.text()));
    }
    if let Some(rest) = body
        .strip_phrase("take|remove|drop|scratch|delete|cross|strike|leave|skip|forget ?off|out")
        .filter(|rest| !rest.is_blank())
    {
        let end = (1..rest.len())
            .find(|at| rest.part_from(*at).is_all_of(OFF_IT) || rest.part_from(*at).is_all_of("out|off"));
        let thing = end.map_or(rest, |at| rest.part_until(at));
        return fits(format!("take {} off the {name}", thing.text()));
    }
    if let Some(rest) = said
        .strip_phrase("?oh|ah|actually|sorry ?, ?actually not|no|without ?the")
        .filter(|rest| rest.body().len() <= 3)
        && said.cursor().match_phrase("?oh|ah|actually|sorry ?, ?actually not|no|without").is_some()
    {
        return fits(format!("take {} off the {name}", rest.body().text()));
    }
    if body.is_all_of("?show|read ?me ?what's ?what ?is ?on it|list|that ?the ?list ?back|now|again ?to ?me ?please")
        && body.len() >= 2
    {
        return fits(format!("show me the {name}"));
    }
    if let (Some(OfflineCommand::ListAdd { items, .. }), Some(rest)) = (commands.last(), strip_correction_opener(said))
        && let Some((number, end)) = rest.cursor().read_number()
    {
        let amount = rest;
        let thing = amount.skip_to(end).body().skip_phrase("of ?them");
        let old = items
            .iter()
            .rev()
            .find(|item| thing.is_blank() || item.to_lowercase().contains(&thing.text().to_lowercase()))?;
        let bare = old
            .split_once(' ')
            .filter(|(count, _)| {
                count.starts_with(|c: char| c.is_ascii_digit())
                    || reveille_base::schedule::words::number_word(&count.to_lowercase()).is_some()
            })
            .map_or(old.as_str(), |(_, rest)| rest);
        return fits(format!("take {old} off the {name}. Add {number} {bare} to the {name}"));
    }
    let thing = find_addition(said, now)?;
    let thing = thing.skip_phrase("add|put|get|buy|don't|dont|we|i ?also ?forget|need ?also");
    let is_thing = thing.len() <= 8 && thing.is_body() && !thing.is_statement();
    is_thing.then(|| fits(format!("add {} to the {name}", thing.text()))).flatten()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    const LIST: &str = "Shopping list";

    fn now() -> DateTime<Tz> {
        "Europe/Berlin".parse::<Tz>().unwrap().with_ymd_and_hms(2026, 11, 21, 14, 0, 0).unwrap()
    }

    fn full(earlier: &str, said: &str, list: Option<&str>) -> Option<String> {
        complete_message(said, (earlier, now()), list, now())
    }

    fn check(wrong: &mut Vec<String>, earlier: &str, said: &str, read: Option<&str>, expected: Option<&str>) {
        if read != expected {
            wrong.push(format!("{earlier:?}, then {said:?}: {read:?}, not {expected:?}"));
        }
    }

    #[test]
    fn a_message_that_leans_on_the_one_before_is_said_in_full() {
        let mut wrong = Vec::new();
        for (earlier, said, expected) in [
            ("what time is it in Tokyo?", "and in Lisbon?", "what time is it in Lisbon"),
            ("what time is it in Tokyo?", "what about Denver", "what time is it in Denver"),
            ("what's 15% of 80", "and 20%?", "what's 20% of 80"),
            ("12% tip on 64", "and on 90?", "12% tip on 90"),
            ("3 miles in km", "and 5 miles?", "5 miles in km"),
            ("350 F in C", "and 425?", "425 F in C"),
            ("what day is 24 December?", "and the 1st of May?", "what day is the 1st of May"),
            ("what's 12*7", "divide that by 2", "84 / 2"),
            ("what's 12*7", "times 3", "84 times 3"),
            ("what's 12*7", "plus 10%", "84 plus 10%"),
            ("what's 12*7", "half of that", "half of 84"),
            ("what day is Christmas?", "how many days till then?", "how many days till 25 December 2026"),
            ("my wife's birthday is 14 May", "how many days until that?", "how many days until 14 May"),
            ("when is Anna's birthday?", "and Tom's?", "when is Tom's birthday?"),
            ("what's my shoe size?", "and my wife's?", "what's my wife's shoe size?"),
            ("what do I have on Monday?", "and Tuesday?", "what do I have on Tuesday"),
            ("what do you know about Anna?", "and Tom?", "what do you know about Tom"),
            ("add task ring the vet", "and pay the gas bill", "add task pay the gas bill"),
            ("add task ring the vet", "post the parcel too", "add task post the parcel"),
            ("add task ring the vet", "remind me of that tomorrow at 9", "remind me tomorrow at 9: ring the vet"),
            ("remind me tomorrow at 9 to call Bob", "make that 10", "move it to 10:00"),
            ("remind me tomorrow at 18:00 to call Bob", "no, 7", "move it to 19:00"),
            ("remind me tomorrow at 9 to call Bob", "sorry, I meant Monday", "move it to Monday"),
            ("remind me tomorrow at 9 to call Bob", "and to feed the cat", "remind me tomorrow at 9 to feed the cat"),
            ("remind me tomorrow at 9 to call Bob", "and again on Friday at 8", "remind me on Friday at 8 to call Bob"),
            ("my shoe size is 43", "sorry, 44", "my shoe size is 44"),
            ("my daughter is called Zo", "no, Zoe", "my daughter is called Zoe"),
            (
                "the concert is on 12 December",
                "remind me the day before at 6 pm",
                "remind me on 11 December 2026 at 6 pm: the concert is on 12 December",
            ),
            ("task 2 done", "and 3", "mark 3 as done"),
            ("I called the plumber", "the bank too", "mark bank as done"),
        ] {
            check(&mut wrong, earlier, said, full(earlier, said, None).as_deref(), Some(expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_is_said_after_a_list_is_of_that_list() {
        let mut wrong = Vec::new();
        for (earlier, said, expected) in [
            (
                "shopping list: milk, bananas",
                "oh and some washing-up liquid",
                "add some washing-up liquid to the shopping list",
            ),
            ("shopping list: milk, bananas", "take the bananas off", "take the bananas off the shopping list"),
            ("shopping list: milk, bananas", "add 2 kg of potatoes", "add 2 kg of potatoes to the shopping list"),
            ("shopping list: milk, bananas", "put bread on it", "add bread to the shopping list"),
            ("shopping list: milk, bananas", "no bananas", "take bananas off the shopping list"),
            ("shopping list: milk, bananas", "clear it", "clear the shopping list"),
            (
                "shopping list: milk, 6 eggs",
                "make that 12",
                "take 6 eggs off the shopping list. Add 12 eggs to the shopping list",
            ),
        ] {
            check(&mut wrong, earlier, said, full(earlier, said, Some(LIST)).as_deref(), Some(expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_stands_for_itself_leans_on_nothing() {
        let mut wrong = Vec::new();
        for (earlier, said) in [
            ("what's 15% of 80", "and the weather in Paris?"),
            ("what's 15% of 80", "thanks"),
            ("what time is it in Tokyo?", "and how is Anna?"),
            ("my shoe size is 43", "5 miles"),
            ("my shoe size is 43", "44"),
            ("remind me tomorrow at 9 to call Bob", "friday was nice"),
            ("remind me tomorrow at 9 to call Bob", "change the vitamins one to 17:00"),
            ("remind me tomorrow at 9 to call Bob", "and what do I have on Monday?"),
            ("shopping list: milk", "and remind me at 9 to go"),
            ("shopping list: milk", "my son is called Milo"),
            ("add task ring the vet", "and I like tea"),
            ("write me a poem", "and in Lisbon?"),
            ("hello", "and 20%?"),
        ] {
            check(&mut wrong, earlier, said, full(earlier, said, Some(LIST)).as_deref(), None);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
