//! Days and dates: "tomorrow", "next Friday", "the 15th", "5 December", `2026-12-05`.

use super::{
    super::words::Cursor,
    TimeTrouble,
    clock::{PARTS, clock},
    draft::{Draft, DraftDay, DraftPart, DraftWhich, Month},
    pieces::Read,
};

const DAY_WORDS: &[(&str, DraftDay)] = &[
    ("?on ?the day after tomorrow", DraftDay::FromToday(2)),
    ("?the day before yesterday", DraftDay::FromToday(-2)),
    ("tomorrow|tomorow|tommorow|tommorrow|tmrw|tmr", DraftDay::FromToday(1)),
    ("first thing tomorrow", DraftDay::FromToday(1)),
    ("later today", DraftDay::FromToday(0)),
    ("today", DraftDay::FromToday(0)),
    ("yesterday", DraftDay::FromToday(-1)),
    ("next week", DraftDay::NextWeek),
    ("next month", DraftDay::NextMonth),
    ("next year", DraftDay::NextYear),
    ("?at|by ?the end of ?the|this month", DraftDay::EndOfMonth(DraftWhich::Coming)),
    ("?on the last day of the|this month", DraftDay::EndOfMonth(DraftWhich::Coming)),
    ("?on the last day of next month", DraftDay::EndOfMonth(DraftWhich::Next)),
    ("?at|by ?the end of next month", DraftDay::EndOfMonth(DraftWhich::Next)),
    ("?at|on next weekend", DraftDay::Weekend(DraftWhich::Next)),
    ("at|on|over the weekend", DraftDay::Weekend(DraftWhich::Coming)),
    ("this weekend", DraftDay::Weekend(DraftWhich::Coming)),
];

/// A day said by word, with the part of the day that may follow: "tomorrow morning".
pub(super) fn day(start: Cursor<'_>) -> Read<'_> {
    if let Some(end) = start.phrase("tonight") {
        return Some((Draft { part: Some(DraftPart::Night), ..Draft::day(DraftDay::FromToday(0)) }, end));
    }
    if let Some((part, end)) = start.phrase("this").and_then(|this| this.lookup(PARTS)) {
        return Some((Draft { part: Some(part), ..Draft::day(DraftDay::FromToday(0)) }, end));
    }
    let (day, end) = start
        .lookup(DAY_WORDS)
        .map_or_else(|| weekday(start).or_else(|| day_of_month(start)), |(day, end)| Some((Draft::day(day), end)))?;
    Some(with_part(day, end))
}

pub(super) fn with_part(draft: Draft, end: Cursor<'_>) -> (Draft, Cursor<'_>) {
    match end.lookup(PARTS) {
        Some((part, after)) if draft.part.is_none() => (Draft { part: Some(part), ..draft }, after),
        _ => (draft, end),
    }
}

fn weekday(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    if let Some((weekday, end)) = on.phrase("next").and_then(Cursor::weekday_or_short) {
        return Some((Draft::day(DraftDay::Weekday(weekday, DraftWhich::Next)), end));
    }
    let named = on.skip("?this|coming");
    let (weekday, end) = if named.index > start.index { named.weekday_or_short() } else { named.weekday() }?;
    Some((Draft::day(DraftDay::Weekday(weekday, DraftWhich::Coming)), end))
}

/// Nouns that take a number without being a day: "on the 5th floor".
const NOT_A_DAY: &str =
    "floor|street|st|avenue|ave|time|grade|place|edition|anniversary|birthday|person|try|attempt|page|row|level|track";

fn day_of_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.phrase("on ?the").or_else(|| start.phrase("the"))?;
    let (day, end) = the.ordinal()?;
    if let Some((_, after)) = end.weekday() {
        // "on the first Monday of May": only as a rule ("of every month").
        let month = after.phrase("of").and_then(Cursor::month).map(|(_, end)| end);
        return Some((
            Draft::trouble(TimeTrouble::Unsupported),
            month.unwrap_or(after.skip("of ?the ?next|this month")),
        ));
    }
    if end.phrase(NOT_A_DAY).is_some() || (end.token().is_some_and(|next| next.glued && !next.is_mark())) {
        return None;
    }
    let months = &[("of next month", Month::Next), ("of this month", Month::This), ("of the month", Month::Any)];
    let (month, end) = end.lookup(months).unwrap_or((Month::Any, end));
    // "The first of all" is no day; "on the first" is.
    (end.phrase("of").is_none()).then(|| (Draft::day(DraftDay::OfMonth(day, month)), end))
}

pub(super) fn date(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    // "Friday, 5 December": the weekday must agree, which is seen later.
    let named = on.weekday_or_short().map(|(weekday, after)| (weekday, after.skip("?,")));
    let (draft, end) = match named {
        Some((_, after)) => calendar_date(after).or_else(|| day_of_month(after))?,
        None => calendar_date(on)?,
    };
    let weekday = named.map(|(weekday, _)| weekday);
    Some(with_part(Draft { weekday, ..draft }, end))
}

fn calendar_date(start: Cursor<'_>) -> Read<'_> {
    day_and_month(start).or_else(|| month_and_day(start)).or_else(|| numeric_date(start))
}

/// "5 December", "the 5th of December 2027".
pub(super) fn day_and_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.skip("?the");
    let (day, after) = the.ordinal().or_else(|| the.number())?;
    let after = if after.glued_text() == "." { after.next() } else { after };
    let (month, after) = after.skip("?of").month()?;
    let (year, end) = year(after);
    Some((Draft::day(DraftDay::Date { year, month, day }), end))
}

/// "December 5", "December 5th, 2027".
pub(super) fn month_and_day(start: Cursor<'_>) -> Read<'_> {
    let (month, after) = start.month()?;
    let after = after.skip("?the");
    let (day, after) = after.ordinal().or_else(|| after.number())?;
    let is_clock = matches!(after.glued_text(), ":" | "am" | "pm");
    if day > 99 || is_clock {
        return None;
    }
    let (year, end) = year(after);
    Some((Draft::day(DraftDay::Date { year, month, day }), end))
}

fn year(start: Cursor<'_>) -> (Option<i32>, Cursor<'_>) {
    let number = start.skip("?,");
    match number.text().parse() {
        Ok(year @ 1900..=2999) if number.next().glued_text() != ":" => (Some(year), number.next()),
        _ => (None, start),
    }
}

/// `2026-12-05`, `5.12.`, `5.12.2026`, `5/12`.
fn numeric_date(start: Cursor<'_>) -> Read<'_> {
    let (one, after) = digits(start)?;
    let separator = after.glued_text();
    let (two, after) = digits(after.next())?;
    let closing = after.glued_text() == separator;
    let three = closing.then(|| digits(after.next())).flatten().filter(|_| after.next().glued_text() != "");
    let date = |year, month, day| Draft::day(DraftDay::Date { year, month, day });
    match (separator, three) {
        ("-", Some((day, end))) if one >= 1900 => {
            let end = if end.glued_text() == "t" { end.next() } else { end };
            Some((date(i32::try_from(one).ok(), two, day), end))
        }
        ("." | "-" | "/", Some((year @ 1900.., end))) => {
            let year = i32::try_from(year).ok();
            let ambiguous = separator == "/" && one != two && one <= 12 && two <= 12;
            let american = separator == "/" && two > 12;
            let (day, month) = if american { (two, one) } else { (one, two) };
            let draft = if ambiguous { Draft::trouble(TimeTrouble::Ambiguous) } else { date(year, month, day) };
            Some((draft, end))
        }
        (".", None) if closing => Some((date(None, two, one), after.next())),
        ("/", None) if !closing => {
            let is_date = start.previous().is_some_and(|word| word.text == "on") || clock(after).is_some();
            is_date.then(|| match (one, two) {
                (13..=31, 1..=12) => (date(None, two, one), after),
                (1..=12, 13..=31) => (date(None, one, two), after),
                _ => (Draft::trouble(TimeTrouble::Ambiguous), after),
            })
        }
        _ => None,
    }
}

fn digits(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    Some((start.text().parse().ok()?, start.next()))
}
