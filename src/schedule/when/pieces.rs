//! Tokens to drafts: each function reads one kind of piece at a place, or declines.

use super::{
    super::words::Cursor,
    Trouble,
    draft::{Clock, Day, Distance, Draft, Month, Part, Which},
    every,
};

pub(super) type Read<'t> = Option<(Draft, Cursor<'t>)>;

/// Tried in this order: "in the morning" before "in 5 hours", "5 December" before "5 pm".
const PIECES: [for<'t> fn(Cursor<'t>) -> Read<'t>; 6] = [every::every, date, day, part, distance, clock];

/// The longest run of pieces that say one time together.
pub(super) fn expression(start: Cursor<'_>) -> Read<'_> {
    let (mut draft, mut end) = piece(start)?;
    while let Some((more, after)) = piece(end.skip("?,")) {
        match draft.merge(more) {
            Some(merged) => (draft, end) = (merged, after),
            None => break,
        }
    }
    if let Some(after) = too_much(&draft, end) {
        (draft.trouble, end) = (Some(Trouble::Unsupported), after);
    }
    Some((draft, end))
}

fn piece(start: Cursor<'_>) -> Read<'_> {
    PIECES.iter().find_map(|read| read(start))
}

/// What follows an expression and makes it more than one time: "and at 18", "until Friday", "for two weeks".
fn too_much<'t>(draft: &Draft, end: Cursor<'t>) -> Option<Cursor<'t>> {
    let second = end.phrase("and|or|,").and_then(|and| {
        clock(and)
            .or_else(|| day(and))
            .or_else(|| date(and))
            .or_else(|| bare_clock(and))
    });
    if let Some((_, after)) = second
        && (draft.clock.is_some() || draft.day.is_some())
    {
        return Some(after);
    }
    draft.every?;
    end.phrase("until|till|starting|beginning|from|except|between|unless")
        .or_else(|| {
            let count = end.phrase("for")?;
            let (_, unit) = quarters(count)?;
            unit_of_time(unit).map(|(_, after)| after)
        })
}

/// `8` after "at 7 and".
fn bare_clock(start: Cursor<'_>) -> Read<'_> {
    let (hour, end) = start.number()?;
    (hour < 24 && end.is_end()).then(|| (Draft::default(), end))
}

// --- days ---------------------------------------------------------------------------------------------------------------

const DAY_WORDS: &[(&str, Day)] = &[
    ("?on ?the day after tomorrow", Day::FromToday(2)),
    ("?the day before yesterday", Day::FromToday(-2)),
    ("tomorrow|tomorow|tommorow|tommorrow|tmrw|tmr", Day::FromToday(1)),
    ("later today", Day::FromToday(0)),
    ("today", Day::FromToday(0)),
    ("yesterday", Day::FromToday(-1)),
    ("next week", Day::NextWeek),
    ("next month", Day::NextMonth),
    ("next year", Day::NextYear),
    ("?at|by ?the end of ?the|this month", Day::EndOfMonth(Which::Coming)),
    ("?at|by ?the end of next month", Day::EndOfMonth(Which::Next)),
    ("?at|on next weekend", Day::Weekend(Which::Next)),
    ("at|on|over the weekend", Day::Weekend(Which::Coming)),
    ("this weekend", Day::Weekend(Which::Coming)),
];

/// A day said by word, with the part of the day that may follow: "tomorrow morning".
fn day(start: Cursor<'_>) -> Read<'_> {
    if let Some(end) = start.phrase("tonight") {
        return Some((
            Draft {
                part: Some(Part::Night),
                ..Draft::day(Day::FromToday(0))
            },
            end,
        ));
    }
    if let Some((part, end)) = start.phrase("this").and_then(|this| this.lookup(PARTS)) {
        return Some((
            Draft {
                part: Some(part),
                ..Draft::day(Day::FromToday(0))
            },
            end,
        ));
    }
    let (day, end) = start.lookup(DAY_WORDS).map_or_else(
        || weekday(start).or_else(|| day_of_month(start)),
        |(day, end)| Some((Draft::day(day), end)),
    )?;
    Some(with_part(day, end))
}

pub(super) fn with_part(draft: Draft, end: Cursor<'_>) -> (Draft, Cursor<'_>) {
    match end.lookup(PARTS) {
        Some((part, after)) if draft.part.is_none() => (
            Draft {
                part: Some(part),
                ..draft
            },
            after,
        ),
        _ => (draft, end),
    }
}

fn weekday(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    if let Some((weekday, end)) = on.phrase("next").and_then(Cursor::weekday_or_short) {
        return Some((Draft::day(Day::Weekday(weekday, Which::Next)), end));
    }
    let named = on.skip("?this|coming");
    let (weekday, end) = if named.index > start.index {
        named.weekday_or_short()
    } else {
        named.weekday()
    }?;
    Some((Draft::day(Day::Weekday(weekday, Which::Coming)), end))
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
            Draft::trouble(Trouble::Unsupported),
            month.unwrap_or(after.skip("of ?the ?next|this month")),
        ));
    }
    if end.phrase(NOT_A_DAY).is_some() || (end.token().is_some_and(|next| next.glued && !next.is_mark())) {
        return None;
    }
    let months = &[
        ("of next month", Month::Next),
        ("of this month", Month::This),
        ("of the month", Month::Any),
    ];
    let (month, end) = end.lookup(months).unwrap_or((Month::Any, end));
    // "The first of all" is no day; "on the first" is.
    (end.phrase("of").is_none()).then(|| (Draft::day(Day::OfMonth(day, month)), end))
}

// --- dates --------------------------------------------------------------------------------------------------------------

pub(super) fn date(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    // "Friday, 5 December": the weekday must agree, which is seen later.
    let named = on
        .weekday_or_short()
        .map(|(weekday, after)| (weekday, after.skip("?,")));
    let (draft, end) = [named.map(|(_, after)| after), Some(on)]
        .into_iter()
        .flatten()
        .find_map(calendar_date)?;
    let weekday = named.map(|(weekday, _)| weekday);
    let day = draft.day.map(|day| match day {
        Day::Date { year, month, day, .. } => Day::Date {
            year,
            month,
            day,
            weekday,
        },
        other => other,
    });
    Some(with_part(Draft { day, ..draft }, end))
}

fn calendar_date(start: Cursor<'_>) -> Read<'_> {
    day_and_month(start)
        .or_else(|| month_and_day(start))
        .or_else(|| numeric_date(start))
}

/// "5 December", "the 5th of December 2027".
pub(super) fn day_and_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.skip("?the");
    let (day, after) = the.ordinal().or_else(|| the.number())?;
    let after = if after.glued_text() == "." { after.next() } else { after };
    let (month, after) = after.skip("?of").month()?;
    let (year, end) = year(after);
    Some((
        Draft::day(Day::Date {
            year,
            month,
            day,
            weekday: None,
        }),
        end,
    ))
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
    Some((
        Draft::day(Day::Date {
            year,
            month,
            day,
            weekday: None,
        }),
        end,
    ))
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
    let three = closing
        .then(|| digits(after.next()))
        .flatten()
        .filter(|_| after.next().glued_text() != "");
    let date = |year, month, day| {
        Draft::day(Day::Date {
            year,
            month,
            day,
            weekday: None,
        })
    };
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
            let draft = if ambiguous {
                Draft::trouble(Trouble::Ambiguous)
            } else {
                date(year, month, day)
            };
            Some((draft, end))
        }
        (".", None) if closing => Some((date(None, two, one), after.next())),
        ("/", None) if !closing => {
            let is_date = start.previous().is_some_and(|word| word.text == "on") || clock(after).is_some();
            is_date.then(|| match (one, two) {
                (13..=31, 1..=12) => (date(None, two, one), after),
                (1..=12, 13..=31) => (date(None, one, two), after),
                _ => (Draft::trouble(Trouble::Ambiguous), after),
            })
        }
        _ => None,
    }
}

fn digits(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    Some((start.text().parse().ok()?, start.next()))
}

// --- times of day -------------------------------------------------------------------------------------------------------

pub(super) const PARTS: &[(&str, Part)] = &[
    ("morning", Part::Morning),
    ("afternoon", Part::Afternoon),
    ("evening", Part::Evening),
    ("night", Part::Night),
];

fn part(start: Cursor<'_>) -> Read<'_> {
    let (part, end) = match start.phrase("in the") {
        Some(the) => the.lookup(PARTS).filter(|(part, _)| *part != Part::Night)?,
        None => (Part::Night, start.phrase("at night")?),
    };
    Some((Draft::part(part), end))
}

fn clock(start: Cursor<'_>) -> Read<'_> {
    let at = start.phrase("at|@ ?around|about").or_else(|| start.phrase("around"));
    let here = at.unwrap_or(start);
    if here.phrase("noon|midday").is_some() {
        return Some((Draft::clock(clock_of(12, 0, Said::Literally)?), here.next()));
    }
    if here.phrase("midnight").is_some() {
        return Some((Draft::clock(Clock::Midnight), here.next()));
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
    let (hour, minutes) = if past {
        (hour, minutes)
    } else {
        ((hour + 23) % 24, 60 - minutes)
    };
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
        None if exact || half.is_some() => Some((Draft::trouble(Trouble::NoSuchTime), end)),
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
        let m = (dot.glued_text() == ".")
            .then(|| dot.next())
            .filter(|m| m.glued_text() == "m")?
            .next();
        Some((half, if m.glued_text() == "." { m.next() } else { m }))
    })
}

fn clock_of(hour: u32, minute: u32, said: Said) -> Option<Clock> {
    let literal = |hour| chrono::NaiveTime::from_hms_opt(hour, minute, 0).map(Clock::Literal);
    match said {
        Said::Am | Said::Pm if !(1..=12).contains(&hour) || minute > 59 => None,
        Said::Am => literal(hour % 12),
        Said::Pm => literal(hour % 12 + 12),
        Said::Openly if (1..=12).contains(&hour) && minute < 60 => Some(Clock::Open { hour, minute }),
        Said::Openly | Said::Literally if hour == 24 && minute == 0 => Some(Clock::Midnight),
        Said::Openly | Said::Literally => literal(hour),
    }
}

// --- distances ----------------------------------------------------------------------------------------------------------

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds(u32),
    Days(u32),
    Months(u32),
}

const UNITS: &[(&str, Unit)] = &[
    ("second|seconds|sec|secs|s", Unit::Seconds(1)),
    ("minute|minutes|min|mins|m", Unit::Seconds(60)),
    ("hour|hours|hr|hrs|h", Unit::Seconds(3600)),
    ("day|days|d", Unit::Days(1)),
    ("week|weeks|wk|wks", Unit::Days(7)),
    ("fortnight|fortnights", Unit::Days(14)),
    ("month|months", Unit::Months(1)),
    ("year|years", Unit::Months(12)),
];

pub(super) fn unit_of_time(start: Cursor<'_>) -> Option<(Unit, Cursor<'_>)> {
    let (unit, end) = start.lookup(UNITS)?;
    // "2 m" and "5 s" glued to something else are no units; nor is "5 d" in "5 d'or".
    (end.glued_text().is_empty()
        || end
            .token()
            .is_some_and(|next| next.is_mark() || next.text.starts_with(char::is_numeric)))
    .then_some((unit, end))
}

/// "In 20 minutes", "in an hour and a half", "2 hours from now".
fn distance(start: Cursor<'_>) -> Read<'_> {
    let begin = start.phrase("in ?about|around");
    let (mut total, mut end) = amount(begin.unwrap_or(start))?;
    while let Some((more, after)) = amount(end.skip("?, ?and")) {
        (total, end) = (sum(total, more)?, after);
    }
    let end = match (begin, end.phrase("from now")) {
        (_, Some(after)) => after,
        (Some(_), None) => end,
        (None, None) => return None,
    };
    Some((Draft::distance(total), end))
}

/// "2 hours", "an hour and a half", "half an hour", "1h".
fn amount(start: Cursor<'_>) -> Option<(Distance, Cursor<'_>)> {
    let (mut count, after) = quarters(start)?;
    let (unit, mut end) = unit_of_time(after.skip("?of ?a|an"))?;
    if let Some(half) = end
        .phrase("and a half")
        .filter(|half| unit_of_time(half.skip("?of ?a|an")).is_none())
    {
        (count, end) = (count.checked_add(2)?, half);
    }
    Some((times(unit, count)?, end))
}

/// How many, in quarters: "half an" is 2, "a couple of" 8, "1.5" 6.
fn quarters(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    const FIXED: &[(&str, u32)] = &[
        ("half a|an", 2),
        ("a half", 2),
        ("three quarters of a|an", 3),
        ("three-quarters of a|an", 3),
        ("a|one quarter of a|an", 1),
        ("a couple of", 8),
        ("a couple", 8),
        ("one and a half", 6),
        ("a|an", 4),
    ];
    if let Some(fixed) = start.lookup(FIXED) {
        return Some(fixed);
    }
    let (whole, after) = start.number()?;
    let whole = whole.checked_mul(4)?;
    if let (".", fraction @ ("5" | "25" | "75")) = (after.glued_text(), after.next().glued_text()) {
        let part = match fraction {
            "25" => 1,
            "5" => 2,
            _ => 3,
        };
        return Some((whole.checked_add(part)?, after.next().next()));
    }
    let (half, after) = after.phrase("and a half").map_or((0, after), |half| (2, half));
    Some((whole.checked_add(half)?, after))
}

fn times(unit: Unit, quarters: u32) -> Option<Distance> {
    let whole = |n: u32| Some(n.checked_mul(quarters)?).filter(|n| n % 4 == 0).map(|n| n / 4);
    let in_seconds = |n: u32| {
        Some(Distance {
            seconds: whole(n)?,
            ..Distance::default()
        })
    };
    match unit {
        Unit::Seconds(n) => in_seconds(n),
        Unit::Days(n) => match whole(n) {
            Some(days) => Some(Distance {
                days,
                ..Distance::default()
            }),
            None => in_seconds(n.checked_mul(86_400)?),
        },
        Unit::Months(n) => Some(Distance {
            months: whole(n)?,
            ..Distance::default()
        }),
    }
}

fn sum(one: Distance, two: Distance) -> Option<Distance> {
    Some(Distance {
        months: one.months.checked_add(two.months)?,
        days: one.days.checked_add(two.days)?,
        seconds: one.seconds.checked_add(two.seconds)?,
    })
}
