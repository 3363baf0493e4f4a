//! Times of day: "17:30", "5 p.m.", "half past 8", "noon", "in the morning".

use chrono::NaiveTime;

use super::{
    super::words::Cursor,
    TimeTrouble,
    draft::{Draft, DraftClock, DraftPart},
    pieces::Read,
};

pub(super) const PARTS: &[(&str, DraftPart)] = &[
    ("morning", DraftPart::Morning),
    ("afternoon", DraftPart::Afternoon),
    ("evening", DraftPart::Evening),
    ("night", DraftPart::Night),
];

pub(super) fn part(start: Cursor<'_>) -> Read<'_> {
    let (part, end) = match start.phrase("in the") {
        Some(the) => the.lookup(PARTS).filter(|(part, _)| *part != DraftPart::Night)?,
        None => (DraftPart::Night, start.phrase("at night")?),
    };
    Some((Draft::part(part), end))
}

pub(super) fn clock(start: Cursor<'_>) -> Read<'_> {
    let at = start.phrase("at|@ ?around|about").or_else(|| start.phrase("around"));
    let here = at.unwrap_or(start);
    if here.phrase("noon|midday").is_some() {
        return Some((Draft::clock(clock_of(12, 0, Said::Literally)?), here.next()));
    }
    if here.phrase("midnight").is_some() {
        return Some((Draft::clock(DraftClock::Midnight), here.next()));
    }
    let (clock, end) = spoken_clock(here, at.is_some()).or_else(|| written_clock(here, at.is_some()))?;
    Some((clock, end))
}

/// "Half past 8", "quarter to nine", "10 past 9".
fn spoken_clock(start: Cursor<'_>, at: bool) -> Read<'_> {
    let start = start.skip("?a");
    let (minutes, after) = start.lookup(&[("half", 30), ("quarter", 15)]).or_else(|| {
        let (minutes, after) = start.number().filter(|(minutes, _)| at && *minutes < 60)?;
        Some((minutes, after.skip("?minutes|min")))
    })?;
    let (past, after) = after.lookup(&[("past|after", true), ("to", minutes == 30)])?;
    if minutes == 30 && after.previous().is_some_and(|word| word.text == "to") {
        return None;
    }
    let (hour, end) = after.number().filter(|(hour, _)| (1..=23).contains(hour))?;
    let (hour, minutes) = if past { (hour, minutes) } else { ((hour + 23) % 24, 60 - minutes) };
    let (said, end) = half_of_day(end).map_or((Said::Openly, end), |(half, end)| (half, end));
    Some((Draft::clock(clock_of(hour, minutes % 60, said)?), end.skip("?o'clock")))
}

/// "17:30", "5pm", "at 9", "at 17.30", "at 1730".
fn written_clock(start: Cursor<'_>, at: bool) -> Read<'_> {
    let digits = start.text();
    let (number, mut end) = start.number()?;
    let in_digits = digits.starts_with(|c: char| c.is_ascii_digit());
    let (mut hour, mut minute, mut exact) = (number, 0, false);
    let separator = end.glued_text();
    let minutes = end.next().glued_text();
    if in_digits && minutes.len() == 2 && (separator == ":" || (separator == "." && at)) {
        (minute, exact, end) = (minutes.parse().ok()?, true, end.next().next());
        if end.glued_text() == ":" && end.next().glued_text().len() == 2 {
            end = end.next().next(); // seconds are dropped
        }
    } else if at && digits.len() == 4 && in_digits {
        (hour, minute, exact) = (number / 100, number % 100, true);
    }
    let half = half_of_day(end);
    let o_clock = end.phrase("o'clock");
    end = half.map(|(_, after)| after).or(o_clock).unwrap_or(end);
    let said = match half {
        Some((half, _)) => half,
        None if in_digits && (digits.len() == 4 || (digits.len() == 2 && digits.starts_with('0'))) => Said::Literally,
        None => Said::Openly,
    };
    let before_part = || {
        part(end).is_some()
            || end.phrase("tonight").is_some()
            || end.phrase("this").is_some_and(|this| this.lookup(PARTS).is_some())
    };
    let meant = at || exact || half.is_some() || o_clock.is_some() || (in_digits && before_part());
    if !meant || goes_on(end) {
        return None;
    }
    match clock_of(hour, minute, said) {
        Some(clock) => Some((Draft::clock(clock), end)),
        None if exact || half.is_some() => Some((Draft::trouble(TimeTrouble::NoSuchTime), end)),
        None => None,
    }
}

/// `9%`, `9-year-old`, `9.5`: the number wasn't an hour.
fn goes_on(end: Cursor<'_>) -> bool {
    let Some(next) = end.token().filter(|next| next.glued) else {
        return false;
    };
    let number_follows = end.next().glued_text().starts_with(|c: char| c.is_ascii_digit());
    match next.text.as_str() {
        "." | "," | ":" => number_follows,
        "%" | "/" | "-" | "°" | "€" | "$" | "£" | "+" | "*" | "_" => true,
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

fn half_of_day(start: Cursor<'_>) -> Option<(Said, Cursor<'_>)> {
    let short = start.lookup(&[("am", Said::Am), ("pm", Said::Pm)]);
    short.or_else(|| {
        let (half, dot) = start.lookup(&[("a", Said::Am), ("p", Said::Pm)])?;
        let m = (dot.glued_text() == ".").then(|| dot.next()).filter(|m| m.glued_text() == "m")?.next();
        Some((half, if m.glued_text() == "." { m.next() } else { m }))
    })
}

fn clock_of(hour: u32, minute: u32, said: Said) -> Option<DraftClock> {
    let literal = |hour| NaiveTime::from_hms_opt(hour, minute, 0).map(DraftClock::Literal);
    match said {
        Said::Am | Said::Pm if !(1..=12).contains(&hour) || minute > 59 => None,
        Said::Am => literal(hour % 12),
        Said::Pm => literal(hour % 12 + 12),
        Said::Openly if (1..=12).contains(&hour) && minute < 60 => Some(DraftClock::Open { hour, minute }),
        Said::Openly | Said::Literally if hour == 24 && minute == 0 => Some(DraftClock::Midnight),
        Said::Openly | Said::Literally => literal(hour),
    }
}
