//! Answers questions by calendar and clock: dates, distances to days, the time elsewhere. Also parses timers.

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta};

use reveille_base::{
    schedule::{Missed, TimeTrouble, When, parse_only_day, parse_only_time},
    words,
    zone::Tz,
};

use super::{OfflineCommand, Reading, sentence::Sentence};

/// Common place names that aren't names of time zones.
const PLACES: &[(&str, &str)] = &[
    ("uk|england|britain|scotland|wales|the uk|manchester|edinburgh", "Europe/London"),
    ("germany|munich|hamburg|frankfurt|cologne", "Europe/Berlin"),
    ("france", "Europe/Paris"),
    ("spain|barcelona", "Europe/Madrid"),
    ("italy|milan|naples", "Europe/Rome"),
    ("switzerland|geneva|bern|basel", "Europe/Zurich"),
    ("austria", "Europe/Vienna"),
    ("netherlands|the netherlands|holland", "Europe/Amsterdam"),
    ("ireland", "Europe/Dublin"),
    ("greece", "Europe/Athens"),
    ("india|delhi|new delhi|mumbai|bangalore|chennai", "Asia/Kolkata"),
    ("china|beijing|shenzhen", "Asia/Shanghai"),
    ("osaka|kyoto", "Asia/Tokyo"),
    ("korea|south korea", "Asia/Seoul"),
    ("thailand", "Asia/Bangkok"),
    ("nyc|boston|washington|washington dc|miami|philadelphia|atlanta", "America/New_York"),
    ("la|san francisco|sf|seattle|california|san diego|las vegas", "America/Los_Angeles"),
    ("texas|houston|dallas|austin", "America/Chicago"),
    ("rio|rio de janeiro", "America/Sao_Paulo"),
    ("cape town|south africa", "Africa/Johannesburg"),
    ("abu dhabi", "Asia/Dubai"),
];

pub(super) fn parse_days(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let answer = |text: String| Reading::Command(OfflineCommand::Sum { text });
    // A timer is a reminder: “how long has the oven timer got left?” lists the reminders.
    let timer = sentence.strip_phrase("how long has|does ?the|my").filter(|rest| rest.len() <= 5);
    if timer.is_some_and(|rest| (1..rest.len()).any(|at| rest.part_from(at).is_all_of("got|have ?left"))) {
        return Some(Reading::Command(OfflineCommand::ListReminders));
    }
    let left = sentence
        .strip_phrase("how long|much ?time ?is ?have ?i ?left|remaining on|for|of ?the|my")
        .filter(|thing| thing.len() <= 4);
    if left.is_some() && sentence.has_word("left|remaining") {
        return Some(Reading::Command(OfflineCommand::ListReminders));
    }
    parse_stop_timer(sentence).or_else(|| parse_timer(sentence, now)).or_else(|| parse_agenda(sentence, now)).or_else(
        || {
            let told = answer_time_elsewhere(sentence, now)
                .or_else(|| answer_days_until(sentence, now))
                .or_else(|| answer_days_between(sentence, now))
                .or_else(|| answer_date(sentence, now));
            told.map(answer)
        },
    )
}

/// Questions for the time elsewhere; the place follows.
const TIME_IN: &[&str] = &[
    "what time is it ?now ?right ?now in",
    "what's|what ?is the ?current ?local time ?now ?right ?now in",
    "tell ?me what time it is in",
    "tell ?me the ?current time in",
    "?the ?current time ?now in",
];

fn answer_time_elsewhere(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    let end = TIME_IN.iter().find_map(|pattern| sentence.cursor().match_phrase(pattern))?;
    let body = sentence.skip_to(end).body();
    let place = (1..=body.len()).map(|end| body.part_until(end)).find(|part| {
        body.part_from(part.len()).is_all_of("?right ?now|rn ?at ?the ?moment ?currently ?please ?thanks")
    })?;
    let named = place.text().to_lowercase();
    let known = PLACES.iter().find(|(names, _)| names.split('|').any(|name| name == named)).map(|(_, zone)| *zone);
    let zone: Tz = known.or_else(|| Tz::find_name(&named))?.parse().ok()?;
    let there = now.with_timezone(&zone);
    let day = if there.date_naive() == now.date_naive() { String::new() } else { there.format(" on %A").to_string() };
    Some(format!("It is {}{day} in {}.", there.format("%H:%M"), place.text()))
}

/// Returns the event that a question counts the days to: "hanna's birthday" of "how many days till hanna's birthday?".
pub fn find_awaited_event(question: &str) -> Option<String> {
    const ASKS: &[&str] = &[
        "how many days|weeks|sleeps|nights|months ?is ?are ?it ?there ?left ?to ?go until|till|til|to|before|for ?we|i ?go ?the",
        "how long ?is ?it ?left ?to ?go until|till|til|to|before ?the",
        "how far away|off is ?the",
        "how soon is ?the",
        "what|which weekday|day|date ?of ?the ?week is ?the",
    ];
    let tokens = super::spelling::parse_tokens(question);
    let asked = super::sentence::as_one_sentence(question, &tokens).without_courtesy();
    let event = ASKS.iter().find_map(|pattern| asked.strip_phrase(pattern))?.body();
    (!event.is_blank() && !event.is_pronoun()).then(|| event.text().to_owned())
}

/// Describes the distance to the day that a fact names. `None` without a day, or if the day has passed.
pub fn describe_day_distance(fact: &str, now: DateTime<Tz>) -> Option<String> {
    const SAID_ON: &str = " (said on ";
    // A search result names the fact's file at its end.
    let fact = fact.split_once(" (memory/").map_or(fact, |(fact, _)| fact);
    let (fact, said_at) = match fact.split_once(SAID_ON) {
        Some((fact, day)) => {
            let day = NaiveDate::parse_from_str(day.trim_end_matches([')', '.', ' ']), "%A, %d %B %Y").ok()?;
            (fact, day.and_hms_opt(12, 0, 0)?.and_local_timezone(now.timezone()).earliest()?)
        }
        None => (fact, now),
    };
    if fact.to_lowercase().split_whitespace().any(|word| matches!(word, "every" | "each")) {
        return None;
    }
    let day = find_named_day(fact, said_at)?;
    let days = (day - now.date_naive()).num_days();
    let named = day.format("%A, %-d %B %Y");
    match days {
        ..0 => None,
        0 => Some(format!("That is today: {named}.")),
        days => Some(format!("That is in {}: {named}.", format_count(days, "day"))),
    }
}

/// Finds the day that a text names.
pub(super) fn find_named_day(text: &str, said_at: DateTime<Tz>) -> Option<NaiveDate> {
    let tokens = super::spelling::parse_tokens(text);
    let whole = super::sentence::as_one_sentence(text, &tokens);
    /// Tokens of the longest day: "the 14th of December 2026".
    const MAX_DAY: usize = 6;
    let mut parts = (1..=MAX_DAY).rev().flat_map(|len| (0..whole.len()).map(move |from| (from, len)));
    parts.find_map(|(from, len)| {
        let part = whole.part_from(from);
        let is_whole = part.len() >= len;
        let part = part.part_until(len);
        let names_day = names_a_day(&part);
        if is_whole && names_day { parse_day(&part, said_at) } else { None }
    })
}

/// True if the words name a month, a weekday or a relative day, as opposed to a bare number.
fn names_a_day(part: &Sentence<'_>) -> bool {
    (0..part.len()).any(|at| {
        let word = part.part_from(at).cursor();
        word.read_month().is_some()
            || word.read_weekday().is_some()
            || word.match_phrase("tomorrow|christmas|easter").is_some()
            || word.read_ordinal().is_some()
    })
}

/// Questions for the time until a day; `true` if it is counted in weeks.
const UNTIL: &[(&str, bool)] = &[
    ("how many days ?is ?are ?it ?there ?left ?to ?go until|till|til|to|before", false),
    ("how long ?is ?it ?to ?go until|till|til", false),
    ("how many days|sleeps to", false),
    ("how many weeks to", true),
    ("how far away|off is", false),
    ("?number ?of days until|till|til", false),
    ("how many weeks ?is ?are ?it ?there ?left ?to ?go until|till|til|to|before", true),
    ("how many weeks is|are", true),
    ("how many days|sleeps is|are", false),
];

fn answer_days_until(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    let (in_weeks, end) = sentence.cursor().match_table(UNTIL)?;
    let rest = sentence.skip_to(end).body();
    let away = (1..rest.len())
        .find(|at| rest.part_from(*at).is_all_of("from now|today|here") || rest.part_from(*at).is_all_of("away|off"));
    let day = parse_day(&away.map_or(rest, |at| rest.part_until(at)), now)?;
    let days = (day - now.date_naive()).num_days();
    let is_past = days < 0;
    let days = days.abs();
    let (weeks, left) = (days / 7, days % 7);
    let far = match (in_weeks, days) {
        (_, 0) => "That is today".to_owned(),
        (_, 1) => "1 day".to_owned(),
        (true, _) if left == 0 => format_count(weeks, "week"),
        (true, _) => format!("{} and {}", format_count(weeks, "week"), format_count(left, "day")),
        (false, days) => format!("{days} days"),
    };
    let ago = if is_past { " ago" } else { "" };
    Some(format!("{far}{ago}: {}.", day.format("%A, %-d %B %Y")))
}

fn format_count(n: i64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Answers "How many nights from 19 July to 27 July?"
fn answer_days_between(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    const ASKS: &[(&str, &str)] =
        &[("how many days", "day"), ("how many nights", "night"), ("how many weeks", "week"), ("how long", "day")];
    let (noun, end) = sentence.cursor().match_table(ASKS)?;
    let rest = sentence.skip_to(end.skip("is|are ?it|there")).strip_phrase("from|between")?.body();
    let (from, to) = (1..rest.len()).find_map(|at| {
        let to = rest.part_from(at).strip_phrase("to|and|until|till|til")?;
        Some((parse_day(&rest.part_until(at).body(), now)?, parse_day(&to.body(), now)?))
    })?;
    let days = (to - from).num_days();
    let (weeks, left) = (days / 7, days % 7);
    let far = match noun {
        _ if days < 0 => return None,
        "week" if left == 0 => format_count(weeks, "week"),
        "week" => format!("{} and {}", format_count(weeks, "week"), format_count(left, "day")),
        noun => format_count(days, noun),
    };
    Some(format!("{far}: {} to {}.", from.format("%A, %-d %B %Y"), to.format("%A, %-d %B %Y")))
}

/// Questions for a date or a weekday; the day follows.
const DATE: &[&str] = &[
    "what|which weekday|day|date ?of ?the ?week is|will|was ?it ?be ?on",
    "what's|what ?is|will|was ?the date|day ?be ?is ?it ?on|of",
    "what's|what is ?the ?date ?of ?on",
    "when is|was",
    "what|which weekday|day ?of ?the ?week",
];
/// Words at the end of such a question.
const DATE_END: &str = "?falls ?fall ?is ?it ?on ?a ?this ?year ?please";

/// Answers "What day is 24 December?", "what's the date next Friday?", "when is Easter?".
fn answer_date(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    if sentence.is_all_of("what|what's|which ?is ?the week ?number ?is ?it ?this ?now") {
        return Some(format!("It is week {}.", now.iso_week().week()));
    }
    if sentence.is_all_of("what|what's|which ?is ?the ?current year|month ?is ?it ?now") {
        return Some(format!("It is {}.", now.format("%B %Y")));
    }
    if sentence.is_all_of("what|which day|date ?of ?the ?week was it|yesterday ?yesterday") {
        let day = now.date_naive() - TimeDelta::days(1);
        return Some(format!("Yesterday was {}.", day.format("%A, %-d %B %Y")));
    }
    if let Some(told) = answer_weekday_check(sentence, now) {
        return Some(told);
    }
    let asked = sentence.extract_question();
    let sentence = &asked;
    let falls = sentence.cursor().match_phrase("?on what|which day|date ?of ?the ?week does|do|is");
    let ends = falls.into_iter().chain(DATE.iter().filter_map(|pattern| sentence.cursor().match_phrase(pattern)));
    ends.map(|end| sentence.skip_to(end).body()).find_map(|body| {
        let words = (1..=body.len()).rev().map(|end| body.part_until(end));
        let mut parts = words.filter(|part| body.part_from(part.len()).is_all_of(DATE_END));
        let (part, day) = parts.find_map(|part| Some((part, parse_day(&part, now)?)))?;
        let said = part.text();
        let said = said.strip_prefix("on ").unwrap_or(said);
        let mut chars = said.chars();
        let first = chars.next()?.to_uppercase();
        Some(format!("{first}{}: {}.", chars.as_str(), day.format("%A, %-d %B %Y")))
    })
}

/// Answers "11 September is a Saturday, right?" and "is the 3rd a Monday?" with the weekday.
fn answer_weekday_check(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<String> {
    let body = sentence.body();
    let rest = body.skip_phrase("is|was");
    let is_asked = rest.len() < body.len() || sentence.is_bare_question();
    let (at, told) = (1..rest.len()).find_map(|at| Some((at, rest.part_from(at).strip_phrase("?is|was ?on a|an")?)))?;
    let (_, end) = told.cursor().read_weekday()?;
    let ends = told.skip_to(end).is_all_of("?, right|correct|yes|no|isn't ?it") || told.skip_to(end).is_blank();
    let day = parse_day(&rest.part_until(at), now)?;
    (is_asked && ends).then(|| format!("{}: {}.", rest.part_until(at).text(), day.format("%A, %-d %B %Y")))
}

/// Parses words that are entirely a day.
fn parse_day(body: &Sentence<'_>, now: DateTime<Tz>) -> Option<NaiveDate> {
    if body.is_blank() {
        return None;
    }
    let text = body.text();
    // A date with its year may be in the past, or today at a time that is over.
    if matches!(parse_only_day(text, now), Some(Err(TimeTrouble::Past) | Ok(_)))
        && let Some(day) = parse_past_day(text.strip_prefix("on ").unwrap_or(text))
    {
        return Some(day);
    }
    let text = &text.replace("new years", "new year's");
    let forms = [text.to_owned(), format!("on {text}"), format!("{text} at 12:00")];
    forms.iter().find_map(|form| match parse_only_time(form, now)? {
        Ok(When::At(slot)) => Some(slot.civil.date()),
        _ => None,
    })
}

/// Parses "14 July 1989", "July 14, 1989", `1989-07-14`.
fn parse_past_day(text: &str) -> Option<NaiveDate> {
    let text = words::one_line(&text.replace(',', " "));
    ["%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y"]
        .iter()
        .find_map(|form| NaiveDate::parse_from_str(&text, form).ok())
}

/// Questions for the agenda; the day follows.
const AGENDA: &[&str] = &[
    "what's|what ?is ?have ?i ?got on|up|planned|due|happening|scheduled|for ?on|for",
    "what ?do|have i ?have|got ?to ?do ?on|planned|scheduled|due ?for ?on",
    "do i have anything|something|plans|appointments ?to ?do ?on|planned|scheduled|for ?on",
    "?is ?there ?do ?i ?have anything|plans ?on|planned|for|due|happening ?on ?for",
    "any plans|reminders|appointments ?on|for",
    "am i free|busy ?on",
    "?show ?me ?my|the agenda|schedule|plan|plans|reminders on|for",
    "what does my day|schedule look like ?on",
];

/// Parses "What do I have on Friday?"
fn parse_agenda(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let days = AGENDA.iter().filter_map(|pattern| sentence.strip_phrase(pattern));
    const LATER: &str = "?this later|morning|afternoon|evening|tonight";
    let of_today = AGENDA.iter().filter_map(|pattern| sentence.strip_phrase(pattern)).any(|rest| rest.is_all_of(LATER));
    let by_hour = AGENDA.iter().filter_map(|pattern| sentence.strip_phrase(pattern)).any(|rest| {
        rest.strip_phrase("after|before|from|until")
            .is_some_and(|hour| hour.cursor().read_number().is_some() && hour.body().len() <= 3)
    });
    if of_today || by_hour {
        return Some(Reading::Command(OfflineCommand::Agenda { day: "today".to_owned() }));
    }
    // A weekend has two days.
    let mut single = days.filter(|day| !day.has_word("weekend|week|month|year"));
    let day = single.find_map(|day| parse_day(&day.body(), now))?;
    Some(Reading::Command(OfflineCommand::Agenda { day: day.to_string() }))
}

/// Orders for a timer; its length follows.
const TIMER: &[&str] = &[
    "set|start|make|create|run|put|give|begin ?me ?us ?up ?on a|another|the|one|my timer ?going ?for|of|to|:",
    "set|start ?me ?up timer ?for|of|to",
    "timer ?for|of|:",
];

/// Parses "Stop the oven timer, it's brown already".
fn parse_stop_timer(sentence: &Sentence<'_>) -> Option<Reading> {
    let rest = sentence.strip_phrase("stop|cancel|end|delete|kill|turn ?off the|my")?.body();
    let at = (1..rest.len().min(4)).find(|at| rest.part_from(*at).cursor().match_phrase("timer|alarm").is_some())?;
    let behind = rest.part_from(at + 1);
    let is_reason = behind
        .strip_phrase(",|-|–")
        .is_some_and(|why| why.cursor().match_phrase("it|it's|its|they|they're|theyre|i|i'm|no|we").is_some());
    let name = rest.part_until(at).text().to_owned();
    (behind.body().is_blank() || is_reason)
        .then_some(Reading::Command(OfflineCommand::CancelReminder { which: super::Which::Text(name) }))
}

/// Parses "Set a timer for 10 minutes" and "10 minute timer". Such orders are unambiguous, so the timer is set without a question.
fn parse_timer(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let set = |time: &Sentence<'_>, purpose: &Sentence<'_>| {
        let when = match parse_only_time(&format!("in {}", time.text().replace('-', " ")), now)?.ok()? {
            when @ When::At(_) => when,
            When::Every(_) => return None,
        };
        let purpose = purpose.body().skip_phrase("?called|named|for|to|on ?the").body();
        let what = match purpose.is_blank() {
            true => "the timer is up".to_owned(),
            false => format!("the timer is up: {}", purpose.text()),
        };
        Some(Reading::Command(OfflineCommand::Remind { what, when, missed: Missed::default() }))
    };
    if let Some(end) = TIMER.iter().find_map(|pattern| sentence.cursor().match_phrase(pattern)) {
        let rest = sentence.skip_to(end).body();
        return (1..=rest.len()).rev().find_map(|end| {
            let purpose = rest.part_from(end);
            let is_joined = purpose.is_blank() || purpose.cursor().match_phrase("for|called|named|to").is_some();
            if is_joined { set(&rest.part_until(end), &purpose) } else { None }
        });
    }
    let begun = sentence.skip_phrase("?set|start|make|create|run|give ?me ?us ?up ?a|an|another");
    let at = (1..begun.len()).find(|index| begun.part_from(*index).cursor().text() == "timer")?;
    let behind = begun.part_from(at + 1);
    // "Egg timer, 9 minutes please".
    if let Some(time) = behind.strip_phrase(",|:|-|–") {
        return set(&time.without_courtesy().body(), &begun.part_until(at));
    }
    set(&begun.part_until(at), &behind)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn the_distance_to_a_facts_day_is_counted_from_today() {
        let now = Tz::UTC.with_ymd_and_hms(2026, 11, 21, 14, 0, 0).unwrap();
        for (fact, said) in [
            ("The concert is on 24 November 2026", Some("That is in 3 days: Tuesday, 24 November 2026.")),
            (
                "The concert is on 21 November 2026 (memory/agent-memory/semantic-memory.md)",
                Some("That is today: Saturday, 21 November 2026."),
            ),
            (
                "The concert is tomorrow (said on Friday, 20 November 2026)",
                Some("That is today: Saturday, 21 November 2026."),
            ),
            ("The concert was on 3 May 2026", None),
            ("The bins go out every friday", None),
            ("Tea is green", None),
        ] {
            assert_eq!(describe_day_distance(fact, now).as_deref(), said, "{fact}");
        }
    }
}
