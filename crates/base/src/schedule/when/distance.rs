//! Distances: "in 20 minutes", "in an hour and a half", "2 days from now", "3 days after 12 January", "a week on Friday".

use super::{
    super::words::Cursor,
    clock::read_clocks,
    date::read_date,
    day::read_day,
    draft::{Distance, Draft, DraftDay, DraftWhich},
    pieces::Read,
};

/// A unit of time with its number of base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds(u32),
    Days(u32),
    Months(u32),
}

const UNITS: &[(&str, Unit)] = &[
    ("second|seconds|sec|secs|s", Unit::Seconds(1)),
    ("minute|minutes|min|mins|m|minuets", Unit::Seconds(60)),
    ("hour|hours|hr|hrs|h", Unit::Seconds(3600)),
    ("day|days|d", Unit::Days(1)),
    ("week|weeks|wk|wks|w", Unit::Days(7)),
    ("fortnight|fortnights", Unit::Days(14)),
    ("month|months|mo", Unit::Months(1)),
    ("quarter|quarters", Unit::Months(3)),
    ("year|years|yr|yrs", Unit::Months(12)),
    ("decade|decades", Unit::Months(120)),
];

pub(super) fn unit_of_time(start: Cursor<'_>) -> Option<(Unit, Cursor<'_>)> {
    let (unit, end) = start.match_table(UNITS)?;
    // "2 m" and "5 s" glued to something else are no units; nor is "5 d" in "5 d'or".
    let ends = end.glued_text().is_empty()
        || end.token().is_some_and(|next| next.is_mark() || next.text.starts_with(char::is_numeric));
    ends.then(|| (unit, end.skip("?' s").skip("?'|’|'s")))
}

/// Parses a distance from now, or from a day or time after it.
pub(super) fn read_distance(start: Cursor<'_>) -> Read<'_> {
    if let Some(found) = read_weeks_from_day(start) {
        return Some(found);
    }
    // "The day before Christmas".
    if let Some((unit, end)) = start.match_phrase("the").and_then(unit_of_time)
        && end.match_phrase("before|after").is_some()
    {
        return read_anchored_distance(multiply_unit(unit, 4)?, end);
    }
    let begin = start.match_phrase("in|within ?about|around|exactly|another").filter(|_| start.text() == "in");
    let (mut total, mut end) = read_amount(begin.unwrap_or(start))?;
    while let Some((more, after)) = read_amount(end.skip("?, ?and")) {
        (total, end) = (add_distances(total, more)?, after);
    }
    let end = match (begin, end.match_phrase("from now").or_else(|| end.match_phrase("later|hence"))) {
        (_, Some(after)) => after,
        (Some(_), None) => end.skip("?time").skip("?from now"),
        (None, None) => return read_anchored_distance(total, end),
    };
    if let Some(found) = begin.and_then(|_| read_anchored_distance(total, end)) {
        return Some(found);
    }
    Some((Draft::from_distance(total), end))
}

/// Parses the anchor: "3 days after 12 January", "2 weeks from tomorrow", "half an hour before noon", "4 months from today".
fn read_anchored_distance(total: Distance, end: Cursor<'_>) -> Read<'_> {
    let (is_back, after) =
        end.match_table(&[("from|after|past", false), ("before", true), ("prior to", true), ("ahead of", true)])?;
    let is_short = total.seconds > 0;
    let (mut draft, mut end) = read_day(after)
        .or_else(|| read_date(after))
        .or_else(|| read_anchor_date(after))
        .or_else(|| read_clocks(after).filter(|_| is_short))?;
    if draft.distance.is_some() || draft.every.is_some() || draft.trouble.is_some() {
        return None;
    }
    if is_short && let Some((more, after)) = read_clocks(end).filter(|_| !draft.has_clock()) {
        (draft, end) = (draft.merge(&more)?, after);
    }
    draft.distance = Some(Distance { is_back, is_from_said: true, ..total });
    Some((draft, end))
}

/// Parses "the 12th" after an already parsed preposition.
fn read_anchor_date(after: Cursor<'_>) -> Read<'_> {
    let the = after.match_phrase("the")?;
    let (day, end) = the.read_ordinal()?;
    Some((Draft::from_day(DraftDay::OfMonth(i32::try_from(day).ok()?, super::draft::Month::Any)), end))
}

/// Parses weeks from a day: "a week on Friday", "two weeks from Monday", "a week tomorrow", "Friday week".
fn read_weeks_from_day(start: Cursor<'_>) -> Read<'_> {
    if let Some((weekday, after)) = start.skip("?on").read_weekday()
        && let Some(end) = after.match_phrase("week").filter(|end| end.match_phrase("on|from|of").is_none())
    {
        return Some((Draft::from_day(DraftDay::Weekday(weekday, DraftWhich::WeeksAfter(1))), end));
    }
    let here = start.skip("?in");
    let (count, after) = read_quarters(here)?;
    let (Unit::Days(days @ (7 | 14)), after) = unit_of_time(after)? else { return None };
    let days = days.checked_mul(count)?.checked_div(4).filter(|_| count % 4 == 0)?;
    if let Some((day, end)) =
        after.match_table(&[("?from|on today", 0), ("?from|on tomorrow", 1), ("?from|on the day after tomorrow", 2)])
    {
        return Some((Draft::from_day(DraftDay::FromToday(i64::from(days) + day)), end));
    }
    let (weekday, end) = after.match_phrase("on|from|after ?this|coming")?.weekday_or_short()?;
    // "In two weeks on Friday" counts from now.
    if here.index > start.index {
        return None;
    }
    Some((Draft::from_day(DraftDay::Weekday(weekday, DraftWhich::WeeksAfter(days / 7))), end))
}

/// Parses an amount: "2 hours", "an hour and a half", "half an hour", "1h", "1:30 hours", "1h30".
pub(super) fn read_amount(start: Cursor<'_>) -> Option<(Distance, Cursor<'_>)> {
    if let Some(found) = hours_and_minutes(start) {
        return Some(found);
    }
    let (mut count, after) = read_quarters(start)?;
    let (unit, mut end) = unit_of_time(after.skip("?more").skip("?of ?a|an"))?;
    const MORE: &[(&str, u32)] = &[("and a half", 2), ("and a quarter", 1), ("and three quarters", 3), ("and half", 2)];
    if let Some((more, half)) = end.match_table(MORE).filter(|(_, half)| unit_of_time(half.skip("?of ?a|an")).is_none())
    {
        (count, end) = (count.checked_add(more)?, half);
    }
    Some((multiply_unit(unit, count)?, end))
}

/// Parses `1:30 hours`, `1h30`, `2 h 15`.
fn hours_and_minutes(start: Cursor<'_>) -> Option<(Distance, Cursor<'_>)> {
    let (hours, after) = start.read_number().filter(|_| start.text().bytes().all(|b| b.is_ascii_digit()))?;
    let minutes = |at: Cursor<'_>| {
        let text = at.glued_text();
        (text.len() == 2).then(|| text.parse::<u32>().ok()).flatten().filter(|minutes| *minutes < 60)
    };
    let seconds = |minutes: u32| hours.checked_mul(3600)?.checked_add(minutes * 60);
    let of = |seconds| Distance { seconds, ..Distance::default() };
    if after.glued_text() == ":" {
        let end = after.next().next().match_phrase("hours|hour|hrs|hr|h")?;
        return Some((of(seconds(minutes(after.next())?)?), end));
    }
    if after.glued_text() == "h" {
        let end = after.next().next();
        let found = minutes(after.next())?;
        return (unit_of_time(end).is_none() || end.match_phrase("m|min|mins").is_some())
            .then(|| Some((of(seconds(found)?), end.skip("?m|min|mins"))))?;
    }
    None
}

/// Parses a count in quarters: "half an" is 2, "a couple of" 8, "1.5" 6.
pub(super) fn read_quarters(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    const FIXED: &[(&str, u32)] = &[
        ("half of ?a|an", 2),
        ("half a|an", 2),
        ("a half", 2),
        ("½", 2),
        ("1 / 2 ?of ?a|an", 2),
        ("1 / 4 ?of ?a|an", 1),
        ("3 / 4 ?of ?a|an", 3),
        ("three quarters of a|an", 3),
        ("three-quarters of a|an", 3),
        ("a|one quarter of a|an", 1),
        ("a quarter", 1),
        ("a couple ?of", 8),
        ("couple ?of", 8),
        ("one and a half", 6),
        ("a ?single", 4),
        ("an", 4),
        ("another", 4),
    ];
    if let Some((count, end)) = start.match_table(FIXED) {
        // "A 20 minute walk" begins with a number.
        return (end.read_number().is_none()).then_some((count, end));
    }
    let (whole, after) = start.read_number()?;
    let whole = whole.checked_mul(4)?;
    if let ("." | ",", fraction @ ("5" | "25" | "75" | "0" | "50")) = (after.glued_text(), after.next().glued_text()) {
        let part = match fraction {
            "25" => 1,
            "5" | "50" => 2,
            "75" => 3,
            _ => 0,
        };
        return Some((whole.checked_add(part)?, after.next().next()));
    }
    const MORE: &[(&str, u32)] = &[("and a half", 2), ("½", 2), ("1 / 2", 2), ("and a quarter", 1)];
    let (more, after) = after.match_table(MORE).unwrap_or((0, after));
    Some((whole.checked_add(more)?, after))
}

pub(super) fn multiply_unit(unit: Unit, quarters: u32) -> Option<Distance> {
    let whole = |n: u32| Some(n.checked_mul(quarters)?).filter(|n| n % 4 == 0).map(|n| n / 4);
    let in_seconds = |n: u32| Some(Distance { seconds: whole(n)?, ..Distance::default() });
    match unit {
        Unit::Seconds(n) => in_seconds(n),
        Unit::Days(n) => match whole(n) {
            Some(days) => Some(Distance { days, ..Distance::default() }),
            None => in_seconds(n.checked_mul(86_400)?),
        },
        Unit::Months(n) => Some(Distance { months: whole(n)?, ..Distance::default() }),
    }
}

pub(super) fn add_distances(one: Distance, two: Distance) -> Option<Distance> {
    Some(Distance {
        months: one.months.checked_add(two.months)?,
        days: one.days.checked_add(two.days)?,
        seconds: one.seconds.checked_add(two.seconds)?,
        ..one
    })
}
