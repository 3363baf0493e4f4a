//! Times of day: "17:30", "5 p.m.", "half past 8", "nine thirty", "noon", "in the morning".

use chrono::NaiveTime;

use super::{
    super::words::Cursor,
    TimeTrouble,
    draft::{Draft, DraftClock, DraftPart},
    pieces::Read,
    zones::read_zone,
};

pub(super) const PARTS: &[(&str, DraftPart)] = &[
    ("morning", DraftPart::Morning),
    ("afternoon", DraftPart::Afternoon),
    ("evening", DraftPart::Evening),
    ("night", DraftPart::Night),
];

pub(super) const PLURAL_PARTS: &[(&str, DraftPart)] = &[
    ("mornings", DraftPart::Morning),
    ("afternoons", DraftPart::Afternoon),
    ("evenings", DraftPart::Evening),
    ("nights", DraftPart::Night),
];

const ROUGHLY: &str = "around|about|approximately|approx|roughly|circa|ca|exactly";

/// Parses "in the morning", "at night", "early in the morning" (which needs an hour).
pub(super) fn read_part(start: Cursor<'_>) -> Read<'_> {
    let early = start.match_phrase("early|late|bright");
    let here = early.unwrap_or(start).skip("?and ?early");
    let (part, end) = match here.match_phrase("in the ?early|late") {
        Some(the) => the.match_table(PARTS).filter(|(part, _)| *part != DraftPart::Night)?,
        None => match early {
            Some(_) => here.match_table(PARTS)?,
            None => (DraftPart::Night, start.match_phrase("at night")?),
        },
    };
    let is_vague =
        (start.index..end.index).any(|index| matches!(start.move_to(index).text(), "early" | "late" | "bright"));
    Some((Draft { is_vague, ..Draft::from_part(part) }, end))
}

/// Parses one time of day, or several joined by "and".
pub(super) fn read_clocks(start: Cursor<'_>) -> Read<'_> {
    let (mut draft, mut end) = read_clock(start)?;
    while let Some(and) = end.match_phrase("?, and|&").or_else(|| end.match_phrase(",|/")) {
        // A final am or pm might hold for all: "at 8 and 10 pm" becomes a question.
        let next = read_clock(and).or_else(|| bare_hour(and).map(|(clock, end)| (Draft::from_clock(clock), end)));
        let Some((next, after)) = next else { break };
        if next.trouble.is_some() || next.clocks.len() != 1 || draft.zone.is_some() {
            return Some((Draft::from_trouble(TimeTrouble::Unsupported), after));
        }
        if is_open(&draft)
            && next.clocks.iter().any(|clock| matches!(clock, DraftClock::Literal(_)))
            && !starts_in_digits(and.skip("?at"))
        {
            return Some((Draft::from_trouble(TimeTrouble::Unsupported), after));
        }
        draft.clocks.extend(next.clocks);
        end = after;
        if let Some((part, after)) = read_part(end) {
            draft.part = part.part;
            end = after;
            break;
        }
    }
    Some((draft, end))
}

fn is_open(draft: &Draft) -> bool {
    draft.clocks.iter().any(|clock| matches!(clock, DraftClock::Open { .. }))
}

fn starts_in_digits(start: Cursor<'_>) -> bool {
    start.text().starts_with(|c: char| c.is_ascii_digit())
}

/// Parses a lone hour after "and": "at 8 and 18".
fn bare_hour(start: Cursor<'_>) -> Option<(DraftClock, Cursor<'_>)> {
    let (hour, end) = start.read_number().filter(|(hour, _)| *hour < 24)?;
    let ends =
        end.is_end() || end.match_phrase("to|,|.|!|?|and|&|every|on|that|about").is_some() || read_part(end).is_some();
    ends.then(|| Some((make_clock(hour, 0, Said::Openly)?, end)))?
}

/// Whether a word such as "at" announces a time of day.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClockLead {
    Said,
    Unsaid,
}

fn read_clock(start: Cursor<'_>) -> Read<'_> {
    let at = start
        .match_phrase("at|@ ?exactly")
        .map(|at| at.skip(&format!("?{ROUGHLY}")))
        .or_else(|| start.match_phrase(ROUGHLY));
    let here = at.unwrap_or(start);
    let lead = if at.is_some() { ClockLead::Said } else { ClockLead::Unsaid };
    let found = read_noon(here)
        .or_else(|| read_relative_clock(here, lead))
        .or_else(|| read_written(here, lead))
        .or_else(|| read_spoken(here, lead));
    let (mut draft, mut end) = found?;
    end = end.skip("?-|– ?ish").skip("?sharp|exactly").skip("?on the dot");
    if let Some((zone, after)) = read_zone(end) {
        (draft.zone, end) = (Some(zone), after);
    }
    Some((draft, end))
}

fn read_noon(here: Cursor<'_>) -> Read<'_> {
    let noon = |end| Some((Draft::from_clock(make_literal(12, 0)?), end));
    if let Some(end) = here.match_phrase("?12|twelve noon|midday|noonish").or_else(|| here.match_phrase("?12:00 noon"))
    {
        return noon(end);
    }
    let end = here.match_phrase("?12|twelve midnight").or_else(|| here.match_phrase("?12|twelve mid night"))?;
    Some((Draft::from_clock(DraftClock::Midnight), end))
}

/// Parses "half past 8", "half nine", "quarter to nine", "10 past 9", "15 to noon", "twenty minutes before midnight".
fn read_relative_clock(start: Cursor<'_>, lead: ClockLead) -> Read<'_> {
    let start = start.skip("?a");
    let (minutes, after) = start.match_table(&[("half", 30), ("quarter", 15)]).or_else(|| {
        let (minutes, after) = start.read_number().filter(|(minutes, _)| (1..60).contains(minutes))?;
        Some((minutes, after.skip("?minutes|mins|min|minute")))
    })?;
    let joint = after.match_table(&[("past|after", true), ("to|till|til|before|of", false)]);
    let Some((is_past, after)) = joint else {
        // "Half nine" is 9:30 in English.
        let (hour, end) = after
            .read_number()
            .filter(|(hour, _)| minutes == 30 && start.text() == "half" && (1..=12).contains(hour))?;
        let is_amount = is_other_number(end)
            || super::distance::unit_of_time(end).is_some()
            || end.match_phrase("of|a|an|past").is_some();
        if is_amount {
            return None;
        }
        let (said, end) = half_of_day(end).unwrap_or((Said::Openly, end));
        return Some((Draft::from_clock(make_clock(hour, 30, said)?), end));
    };
    if (minutes == 30 && start.text() == "half" && !is_past)
        || (start.text() != "half" && after.match_phrase("the|my|a").is_some())
    {
        return None;
    }
    if let Some(end) = after.match_phrase("noon|midday") {
        let clock = if is_past { make_literal(12, minutes)? } else { make_literal(11, 60 - minutes)? };
        return Some((Draft::from_clock(clock), end));
    }
    if let Some(end) = after.match_phrase("midnight") {
        let clock = if is_past { make_literal(0, minutes)? } else { make_literal(23, 60 - minutes)? };
        return Some((Draft::from_clock(clock), end));
    }
    let (hour, end) = after.read_number().filter(|(hour, _)| (1..=23).contains(hour))?;
    let (said, end) = half_of_day(end).unwrap_or((Said::Openly, end));
    let end = end.skip("?o'clock|oclock");
    // "15 to 20 people" is no time.
    let is_meant = lead == ClockLead::Said
        || start.text() == "half"
        || start.text() == "quarter"
        || said != Said::Openly
        || is_past
        || end.is_end()
        || end.match_phrase("to|,|.|!|on|tomorrow|today|tonight|in|every").is_some();
    if !is_meant || super::distance::unit_of_time(end).is_some() {
        return None;
    }
    let (hour, minutes) = if is_past { (hour, minutes) } else { ((hour + 23) % 24, 60 - minutes) };
    let hour = if hour == 0 && said != Said::Am { 12 } else { hour };
    Some((Draft::from_clock(make_clock(hour, minutes % 60, said)?), end))
}

/// Parses "17:30", "5pm", "at 9", "at 17.30", "at 1730", "17h30", "1430 hours".
fn read_written(start: Cursor<'_>, lead: ClockLead) -> Read<'_> {
    let digits = start.text();
    if !digits.bytes().all(|b| b.is_ascii_digit()) || digits.is_empty() {
        return None;
    }
    let number: u32 = digits.parse().ok()?;
    let mut end = start.next();
    let (mut hour, mut minute, mut second, mut is_exact, mut is_dotted) = (number, 0, 0, false, false);
    let (separator, minutes) = (end.glued_text(), end.next().glued_text());
    let two_figures = |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    if matches!(separator, ":" | "." | "h") && two_figures(minutes) && digits.len() <= 2 {
        (minute, end) = (minutes.parse().ok()?, end.next().next());
        (is_exact, is_dotted) = (true, separator == ".");
        if end.glued_text() == ":" && two_figures(end.next().glued_text()) {
            (second, end) = (end.next().text().parse().ok()?, end.next().next());
            if end.glued_text() == "."
                && end.next().glued_text().bytes().all(|b| b.is_ascii_digit())
                && !end.next().glued_text().is_empty()
            {
                end = end.next().next();
            }
        }
        end = if separator == "h" { end.skip("?m|min") } else { end };
        end = if end.glued_text() == "h" { end.next() } else { end };
    } else if separator == "h" && digits.len() <= 2 && end.next().glued_text().is_empty() && lead == ClockLead::Said {
        (end, is_exact) = (end.next(), true);
    } else if digits.len() == 4 {
        (hour, minute) = (number / 100, number % 100);
        let is_meant =
            lead == ClockLead::Said || end.match_phrase("hours|hrs|h").is_some() || half_of_day(end).is_some();
        is_exact = is_meant;
        end = end.skip("?hours|hrs");
    } else if digits.len() > 2 {
        let is_short = digits.len() == 3 && half_of_day(end).is_some();
        if !is_short {
            return None;
        }
        (hour, minute, is_exact) = (number / 100, number % 100, true);
    }
    let is_ish = end.glued_text() == "ish";
    end = if is_ish { end.next() } else { end };
    let half = half_of_day(end);
    let o_clock = end.match_phrase("o'clock|oclock|o’clock").or_else(|| end.match_phrase("uhr|hrs"));
    let half = half.or_else(|| half_of_day(o_clock?));
    end = half.map(|(_, after)| after).or(o_clock).unwrap_or(end);
    let said = match half {
        Some((half, _)) => half,
        None if digits.len() == 4 || (digits.len() == 2 && digits.starts_with('0')) => Said::Literally,
        None => Said::Openly,
    };
    let has_part = read_part(end).is_some()
        || end.match_phrase("tonight").is_some()
        || end.match_phrase("?, tonight").is_some()
        || end.match_phrase("this").is_some_and(|this| this.match_table(PARTS).is_some());
    let is_meant = lead == ClockLead::Said
        || (is_exact && !is_dotted)
        || half.is_some()
        || o_clock.is_some()
        || has_part
        || is_ish;
    if !is_meant || is_other_number(end) {
        return None;
    }
    match make_clock_with_seconds(hour, minute, second, said) {
        Some(clock) => Some((Draft::from_clock(clock), end)),
        None if is_exact || half.is_some() => Some((Draft::from_trouble(TimeTrouble::NoSuchTime), end)),
        None => None,
    }
}

/// Parses "nine thirty", "five-thirty", "six forty-three", "seven p.m.", "at nine".
fn read_spoken(start: Cursor<'_>, lead: ClockLead) -> Read<'_> {
    if starts_in_digits(start) {
        return None;
    }
    if let Some((hour, minute)) =
        start.text().split_once('-').and_then(|(hour, minute)| Some((hour_word(hour)?, minute_word(minute)?)))
    {
        let (said, end) = half_of_day(start.next()).unwrap_or((Said::Openly, start.next()));
        return Some((Draft::from_clock(make_clock(hour, minute, said)?), end));
    }
    let hour = hour_word(start.text())?;
    let after = start.next();
    let (minute, end) = match after.match_phrase("oh|o") {
        Some(oh) => oh.read_number().filter(|(minute, _)| (1..10).contains(minute)).unwrap_or((0, after)),
        None => after
            .read_number()
            .filter(|(minute, _)| (10..60).contains(minute) && !starts_in_digits(after))
            .unwrap_or((0, after)),
    };
    let has_minutes = end.index > after.index;
    let end = if has_minutes { end.skip("?minutes") } else { end };
    let half = half_of_day(end);
    let o_clock = end.match_phrase("o'clock|oclock");
    let has_part = read_part(end).is_some()
        || end.match_phrase("tonight").is_some()
        || end.match_phrase("this").is_some_and(|this| this.match_table(PARTS).is_some());
    let is_meant = lead == ClockLead::Said
        || half.is_some()
        || o_clock.is_some()
        || has_part
        || (has_minutes && (end.is_end() || end.match_phrase("to|,|.|on|tomorrow|today").is_some()));
    if !is_meant || super::distance::unit_of_time(end).is_some() {
        return None;
    }
    let said = half.map_or(Said::Openly, |(half, _)| half);
    let end = half.map(|(_, after)| after).or(o_clock).unwrap_or(end);
    Some((Draft::from_clock(make_clock(hour, minute, said)?), end))
}

fn hour_word(word: &str) -> Option<u32> {
    const HOURS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let index = HOURS.iter().position(|hour| *hour == word)?;
    u32::try_from(index).ok().map(|index| index + 1)
}

fn minute_word(word: &str) -> Option<u32> {
    super::super::words::number_word(word).filter(|minute| (10..60).contains(minute))
}

/// Returns true if the number wasn't an hour: `9%`, `9-year-old`, `9.5`.
fn is_other_number(end: Cursor<'_>) -> bool {
    let Some(next) = end.token().filter(|next| next.glued) else {
        return false;
    };
    let number_follows = end.next().glued_text().starts_with(|c: char| c.is_ascii_digit());
    match next.text.as_str() {
        "." | "," | ":" => number_follows,
        "%" | "/" | "°" | "€" | "$" | "£" | "*" | "_" => true,
        "+" | "-" => !number_follows || read_zone(end).is_none(),
        "z" => false,
        _ => !next.is_mark(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Am,
    Pm,
    Openly,
    Literally,
}

/// Parses "am", "p.m.", "p . m .", "p m", and "a" or "p" glued to figures.
fn half_of_day(start: Cursor<'_>) -> Option<(Said, Cursor<'_>)> {
    let dotted = start.skip("?.");
    for (letter, whole, said) in [("a", "am", Said::Am), ("p", "pm", Said::Pm)] {
        for here in [start, dotted] {
            if let Some(end) = here.match_phrase(whole) {
                return Some((said, end));
            }
            if let Some(end) = here.match_phrase(&format!("{letter} ?. m")) {
                return Some((said, end.skip("?.")));
            }
        }
        let is_glued = start.glued_text() == letter
            && start.previous_token().is_some_and(|word| word.text.ends_with(|c: char| c.is_ascii_digit()));
        if is_glued && start.next().glued_text().chars().all(|c| !c.is_alphanumeric()) {
            return Some((said, start.next()));
        }
    }
    None
}

fn make_literal(hour: u32, minute: u32) -> Option<DraftClock> {
    NaiveTime::from_hms_opt(hour, minute, 0).map(DraftClock::Literal)
}

fn make_clock(hour: u32, minute: u32, said: Said) -> Option<DraftClock> {
    make_clock_with_seconds(hour, minute, 0, said)
}

fn make_clock_with_seconds(hour: u32, minute: u32, second: u32, said: Said) -> Option<DraftClock> {
    let literal = |hour| NaiveTime::from_hms_opt(hour, minute, second).map(DraftClock::Literal);
    match said {
        Said::Am => (1..=12).contains(&hour).then(|| literal(hour % 12))?,
        Said::Pm => (1..=12).contains(&hour).then(|| literal(hour % 12 + 12))?,
        Said::Openly if (1..=12).contains(&hour) && minute < 60 => Some(DraftClock::Open { hour, minute }),
        Said::Openly | Said::Literally if (hour, minute, second) == (24, 0, 0) => Some(DraftClock::Midnight),
        Said::Openly | Said::Literally => literal(hour),
    }
}

/// Parses the time after the `T` of an ISO date: `10:00`, `10:00:00.5`, `100000`, with a glued `Z` or offset.
pub(super) fn read_iso_clock(start: Cursor<'_>) -> Read<'_> {
    let figures = start.text();
    let (clock, mut end) = if figures.len() > 2 {
        let number: u32 = figures.parse().ok()?;
        let (hour, minute, second) = match figures.len() {
            4 => (number / 100, number % 100, 0),
            6 => (number / 10_000, number / 100 % 100, number % 100),
            _ => return None,
        };
        (make_clock_with_seconds(hour, minute, second, Said::Literally), start.next())
    } else {
        let (draft, end) = read_written(start, ClockLead::Said)?;
        let clock = match draft.clocks[..] {
            [DraftClock::Open { hour, minute }] => make_clock(hour, minute, Said::Literally),
            [clock] => Some(clock),
            _ => None,
        };
        (clock, end)
    };
    let mut draft = match clock {
        Some(clock) => Draft::from_clock(clock),
        None => Draft::from_trouble(TimeTrouble::NoSuchTime),
    };
    if end.token().is_some_and(|next| next.glued)
        && let Some((zone, after)) = read_zone(end)
    {
        (draft.zone, end) = (Some(zone), after);
    }
    Some((draft, end))
}

/// Parses a lone hour after a day: `10`, `14`, `1430`.
pub(super) fn hour_in_figures(figures: &str) -> Option<DraftClock> {
    let number: u32 = figures.parse().ok()?;
    match figures.len() {
        1 | 2 => make_clock(number, 0, if figures.starts_with('0') { Said::Literally } else { Said::Openly }),
        4 => make_clock(number / 100, number % 100, Said::Literally),
        _ => None,
    }
}
