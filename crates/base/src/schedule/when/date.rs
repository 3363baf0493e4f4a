//! Dates: "the 15th", "5 December", "Sunday 6th", "last Friday of November", `2026-12-05`, `25.12.26`.

use chrono::{NaiveDate, Weekday};

use super::{
    super::words::{Cursor, number_word},
    TimeTrouble,
    clock::{PARTS, read_clocks, read_part},
    day::{read_day, with_part},
    draft::{Draft, DraftDay, Month},
    feasts::parse_holiday,
    pieces::Read,
};

/// Nouns that show that the number before them isn't a day: "on the 5th floor".
const NOT_A_DAY: &str = "floor|street|st|avenue|ave|time|grade|place|edition|anniversary|birthday|person|try|attempt|page|row|level|track|half|round|chapter|season|episode|version|century|amendment|one|item|task|reminder|thing|quarter|weekend|week|month|year|hour";

/// The last year of the two-digit range: `'39` is 2039, `'40` is 1940.
const LAST_SHORT_YEAR: i32 = 39;

/// Parses a date with a following part of the day: "25 December in the morning", "Valentine's Day evening".
pub(super) fn read_date(start: Cursor<'_>) -> Read<'_> {
    let (draft, end) = read_part_of_date(start).or_else(|| read_bare_date(start))?;
    Some(with_part(draft, end))
}

/// Parses "on the evening of the 5th", "the morning of Christmas Day", "in the afternoon on Boxing Day".
fn read_part_of_date(start: Cursor<'_>) -> Read<'_> {
    let (part, end) = start.skip("?on|in|by").match_phrase("the")?.match_table(PARTS)?;
    let date = end.match_phrase("of|on")?;
    let (draft, end) = read_bare_date(date).or_else(|| read_day(date)).filter(|(draft, _)| draft.part.is_none())?;
    Some((Draft { part: Some(part), ..draft }, end))
}

/// Parses a date and an adjacent weekday, which must match.
fn read_bare_date(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on").skip("?around|about");
    if let Some((feast, end)) = parse_holiday(on).or_else(|| parse_holiday(start.match_phrase("at|over")?)) {
        return Some((Draft::from_day(feast), end));
    }
    if let Some(found) = read_nth_weekday(on).or_else(|| read_end_of_month(start)) {
        return Some(found);
    }
    if let Some((weekday, after)) = on.skip("?this|the|coming|upcoming").weekday_or_short() {
        return read_after_weekday(weekday, after);
    }
    let is_iso = |at: &Cursor<'_>| is_figures(*at) && at.text().len() == 4 && at.next().text() == "-";
    let (mut draft, end) = read_calendar_date(on)
        .or_else(|| start.match_phrase("at").filter(is_iso).and_then(read_calendar_date))
        .or_else(|| read_day_of_month(start))?;
    // "5 December (Saturday)", "15 May, Friday".
    let (bracket, weekday) = (end.match_phrase("("), end.skip("?,|("));
    if let Some((named, after)) = weekday.weekday_or_short()
        && (bracket.is_some() || weekday.index > end.index)
        && after.weekday_or_short().is_none()
    {
        draft.weekday = Some(named);
        return Some((draft, if bracket.is_some() { after.skip("?)") } else { after }));
    }
    Some((draft, end))
}

/// Parses a date after a weekday: "Friday, 5 December", "Sunday the 6th", "Sunday 6th", "Monday 28".
fn read_after_weekday(weekday: Weekday, after: Cursor<'_>) -> Read<'_> {
    let here = after.skip("?.").skip("?,|-|(").skip("?on");
    if let Some((draft, end)) = read_calendar_date(here) {
        return Some((Draft { weekday: Some(weekday), ..draft }, end.skip("?)")));
    }
    if let Some((draft, end)) = here.match_phrase("the").and_then(|_| read_day_of_month(here)) {
        let draft = match draft.days[..] {
            [DraftDay::OfMonth(day @ 1.., Month::Any)] => {
                return Some((Draft::from_day(DraftDay::WeekdayOfMonth(weekday, u32::try_from(day).ok()?)), end));
            }
            _ => draft,
        };
        return Some((Draft { weekday: Some(weekday), ..draft }, end));
    }
    if let Some((day, end)) = here.read_ordinal() {
        let of_month = end.match_table(MONTH_WORDS);
        return Some(match of_month {
            Some((month, end)) => (
                Draft { weekday: Some(weekday), ..Draft::from_day(DraftDay::OfMonth(i32::try_from(day).ok()?, month)) },
                end,
            ),
            None => (Draft::from_day(DraftDay::WeekdayOfMonth(weekday, day)), end),
        });
    }
    // "Friday 23 at 4" names a day, "Friday 14:30" an hour, and "Friday 10" could be either.
    let number = after.skip("?,").read_number().filter(|(_, end)| super::distance::unit_of_time(*end).is_none());
    let (day, end) = number.filter(|(day, _)| (1..=31).contains(day) && is_figures(after.skip("?,")))?;
    if end.glued_text().is_empty()
        || end.token().is_some_and(|next| matches!(next.text.as_str(), "." | "!" | "," | "?"))
    {
        let has_clock_after = read_clocks(end.skip("?,")).is_some() && end.match_phrase("am|pm|a|p").is_none();
        let is_clock = read_clocks(after.skip("?,")).is_some();
        if (day > 24 || has_clock_after) && !is_clock {
            return Some((Draft::from_day(DraftDay::WeekdayOfMonth(weekday, day)), end));
        }
        if !is_clock && read_part(end).is_none() {
            return Some((Draft::from_trouble(TimeTrouble::DayOrHour), end));
        }
    }
    None
}

fn is_figures(start: Cursor<'_>) -> bool {
    !start.text().is_empty() && start.text().bytes().all(|b| b.is_ascii_digit())
}

const MONTH_WORDS: &[(&str, Month)] = &[
    ("?day of|in next month", Month::Next),
    ("?day of the next month", Month::Next),
    ("?day of the following month", Month::Next),
    ("?day of|in this month", Month::This),
    ("this month", Month::This),
    ("next month", Month::Next),
    ("?day of the|each month", Month::Any),
];

/// Parses "the 15th", "on the 15th of next month", "20th of this month", "the last day of October", "the twenty-third".
fn read_day_of_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.match_phrase("on|around|about ?the").or_else(|| start.match_phrase("the"));
    let here = the.unwrap_or(start);
    let (day, end) = read_day_from_end(here).or_else(|| {
        let (day, end) = here.read_ordinal()?;
        Some((i32::try_from(day).ok()?, end))
    })?;
    if end.match_phrase(NOT_A_DAY).is_some() || end.token().is_some_and(|next| next.glued && !next.is_mark()) {
        return None;
    }
    let named = end.match_table(MONTH_WORDS).or_else(|| read_named_month(end));
    // "First" and "last day" are days only with a month or an article.
    if named.is_none() && (the.is_none() || day < 0) {
        return None;
    }
    // "The first working day", "the second door": a number in letters counts the following noun.
    let is_in_letters = !here.text().starts_with(|c: char| c.is_ascii_digit());
    if named.is_none() && is_in_letters && day > 0 && !end.is_end() && !ends_day(end) {
        return None;
    }
    let (month, end) = named.unwrap_or((Month::Any, end));
    end.match_phrase("of").is_none().then(|| (Draft::from_day(DraftDay::OfMonth(day, month)), end))
}

/// Returns true if the next word may follow a day that is given by its number alone.
fn ends_day(end: Cursor<'_>) -> bool {
    const FOLLOWERS: &str = "to|at|in|of|for|from|on|by|around|about|and|or|until|till|every|this|next|that|please|noon|midnight|early|late";
    end.match_phrase(FOLLOWERS).is_some()
        || end.token().is_some_and(|next| next.is_mark() || next.text.starts_with(|c: char| c.is_ascii_digit()))
        || end.match_table(PARTS).is_some()
}

/// Parses "the end of April", "at the end of January 2027", "the end of the year".
fn read_end_of_month(start: Cursor<'_>) -> Read<'_> {
    let end = start.skip("?at|on|in").skip("?the").match_phrase("end of")?;
    if let Some(end) = end.match_phrase("?the|this year") {
        return Some((Draft::from_day(DraftDay::Date { year: None, month: 12, day: 31 }), end));
    }
    let (month, end) = end.read_month()?;
    let year = end.text().parse::<i32>().ok().filter(|year| (1900..=2999).contains(year));
    let end = if year.is_some() { end.next() } else { end };
    Some((Draft::from_day(DraftDay::OfMonth(-1, Month::Named(month, year))), end))
}

/// Parses "last day", "second to last day", "last but one day", "penultimate day".
pub(super) fn read_day_from_end(start: Cursor<'_>) -> Option<(i32, Cursor<'_>)> {
    let (n, end) = read_number_from_end(start)?;
    Some((n, end.match_phrase("day")?))
}

/// Parses "last", "second to last", "last but one", "penultimate": -1 is the last.
pub(super) fn read_number_from_end(start: Cursor<'_>) -> Option<(i32, Cursor<'_>)> {
    const FROM_END: &[(&str, i32)] = &[
        ("last but one", -2),
        ("last but two", -3),
        ("last", -1),
        ("final", -1),
        ("second|2nd to|from ?the last", -2),
        ("second-to-last|second-last", -2),
        ("second last", -2),
        ("next to last", -2),
        ("penultimate", -2),
        ("third to|from ?the last", -3),
        ("third-to-last", -3),
        ("third last", -3),
        ("fourth to|from ?the last", -4),
    ];
    if let Some(found) = start.match_table(FROM_END) {
        return Some(found);
    }
    let (n, end) = start.read_ordinal()?;
    let end = end.match_phrase("to|from ?the last")?;
    Some((-i32::try_from(n).ok()?, end))
}

fn read_named_month(start: Cursor<'_>) -> Option<(Month, Cursor<'_>)> {
    let (month, after) = start.match_phrase("?day of|in")?.read_month()?;
    let (year, end) = read_year(after);
    Some((Month::Named(month, year), end))
}

/// Parses "first Tuesday in October", "the last Friday of the month", "the second Monday of next month".
fn read_nth_weekday(start: Cursor<'_>) -> Read<'_> {
    let the = start.skip("?the");
    let (nth, after) = read_number_from_end(the).or_else(|| {
        let (nth, after) = the.read_ordinal()?;
        Some((i32::try_from(nth).ok()?, after))
    })?;
    let (weekday, after) = after.weekday_or_short()?;
    let (month, end) = after.match_table(MONTH_WORDS).or_else(|| {
        let (month, end) = after.match_phrase("of|in")?.read_month()?;
        let (year, end) = read_year(end);
        Some((Month::Named(month, year), end))
    })?;
    (-5..=5).contains(&nth).then(|| (Draft::from_day(DraftDay::NthWeekday(nth, weekday, month)), end))
}

/// Parses a date with a month, in any usual order.
pub(super) fn read_calendar_date(start: Cursor<'_>) -> Read<'_> {
    let (day, end) = read_iso(start)
        .or_else(|| read_numeric(start))
        .or_else(|| read_year_first(start))
        .or_else(|| read_day_and_month(start))
        .or_else(|| read_month_and_day(start))?;
    Some((day, end))
}

/// Parses "5 December", "the 5th of December 2027", "05-Aug-2016", "23/Sep/2020", "twenty third day of September".
pub(super) fn read_day_and_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.skip("?the");
    let (day, after) = the.read_ordinal().or_else(|| the.read_number())?;
    let after = if after.glued_text() == "." { after.next() } else { after };
    let joined =
        matches!(after.glued_text(), "-" | "/").then(|| after.next()).filter(|month| !month.glued_text().is_empty());
    let (month, after) = joined.unwrap_or(after.skip("?day ?of")).read_month()?;
    if day > 99 {
        return None;
    }
    let (year, end) = read_year(after);
    Some((Draft::from_day(DraftDay::Date { year, month, day }), end))
}

/// Parses "December 5", "December 5th, 2027", "Oct/2", "Sep-23-2020", "May twenty nine".
pub(super) fn read_month_and_day(start: Cursor<'_>) -> Read<'_> {
    let (month, after) = start.read_month()?;
    let joined =
        matches!(after.glued_text(), "-" | "/").then(|| after.next()).filter(|day| !day.glued_text().is_empty());
    let after = joined.unwrap_or(after.skip("?,").skip("?the"));
    let (day, end) = after.read_ordinal().or_else(|| after.read_number())?;
    let is_clock = matches!(end.glued_text(), ":" | "am" | "pm" | "h")
        || end.match_phrase("am|pm|p|a ?. m").is_some()
        || end.match_phrase("am|pm").is_some();
    if day > 99 || (is_clock && after.read_ordinal().is_none()) {
        return None;
    }
    let (year, end) = read_year(end);
    Some((Draft::from_day(DraftDay::Date { year, month, day }), end))
}

/// Parses "2019/aug/01", "2019-Aug-1".
fn read_year_first(start: Cursor<'_>) -> Read<'_> {
    let year: i32 = start.text().parse().ok().filter(|year| (1900..=2999).contains(year))?;
    let after = start.next();
    let separator = matches!(after.glued_text(), "-" | "/").then(|| after.next())?;
    let (month, after) = separator.read_month()?;
    let day = matches!(after.glued_text(), "-" | "/").then(|| after.next())?;
    let (day, end) = day.read_number()?;
    Some((Draft::from_day(DraftDay::Date { year: Some(year), month, day }), end))
}

/// Parses a year after a date: "2027", ", 2027", "'27", "of 1995", "-2016".
fn read_year(start: Cursor<'_>) -> (Option<i32>, Cursor<'_>) {
    let joined =
        matches!(start.glued_text(), "-" | "/").then(|| start.next()).filter(|year| !year.glued_text().is_empty());
    let year = joined.unwrap_or(start.skip("?,").skip("?in|of"));
    match year.text().parse() {
        Ok(full @ 1900..=2999)
            if year.text().len() == 4 && year.next().glued_text() != ":" && !is_an_hour(start, year) =>
        {
            return (Some(full), year.next());
        }
        _ => {}
    }
    let quoted = start.match_phrase("'|’").filter(|short| is_figures(*short) && short.text().len() == 2);
    let short = quoted.or(joined.filter(|short| short.text().len() == 2));
    match short.and_then(|short| short.text().parse().ok()) {
        Some(short_year) => (Some(expand_year(short_year)), short.map_or(start, Cursor::next)),
        None => (None, start),
    }
}

/// Returns true if the figures after a date are an hour: "5 December 1430 hours".
fn is_an_hour(start: Cursor<'_>, year: Cursor<'_>) -> bool {
    start.index == year.index && year.next().match_phrase("hours|hrs|h|am|pm").is_some()
}

fn expand_year(short: i32) -> i32 {
    if short <= LAST_SHORT_YEAR { 2000 + short } else { 1900 + short }
}

/// Parses `2026-12-05`, `20261205`, `2026-W49-5`, each with an optional time after `T`.
fn read_iso(start: Cursor<'_>) -> Read<'_> {
    let (day, end) = read_iso_day(start)?;
    let clock = if end.glued_text() == "t" { Some(end.next()) } else { None };
    let mut draft = Draft::from_day(day);
    let Some(clock) = clock else { return Some((draft, end)) };
    let figures = clock.glued_text();
    if !figures.is_empty() && figures.bytes().all(|b| b.is_ascii_digit()) {
        let (time, after) = super::clock::read_iso_clock(clock)?;
        draft.clocks = time.clocks;
        draft.trouble = time.trouble;
        draft.zone = time.zone;
        return Some((draft, after));
    }
    Some((draft, end))
}

fn read_iso_day(start: Cursor<'_>) -> Option<(DraftDay, Cursor<'_>)> {
    let text = start.text();
    let is_year = |text: &str| text.len() == 4 && text.starts_with(['1', '2']) && is_figures(start);
    if text.len() == 8 && is_figures(start) && text.starts_with("20") {
        let number: u32 = text.parse().ok()?;
        let year = i32::try_from(number / 10_000).ok();
        return Some((DraftDay::Date { year, month: number / 100 % 100, day: number % 100 }, start.next()));
    }
    if !is_year(text) {
        return None;
    }
    let year: i32 = text.parse().ok()?;
    let after = start.next();
    let dash = matches!(after.glued_text(), "-" | "/" | ".").then(|| after.next());
    // `2026-W49-5`
    let week = dash.unwrap_or(after);
    if week.glued_text() == "w" {
        let number: u32 = week.next().glued_text().parse().ok()?;
        let after = week.next().next();
        let (weekday, end) = match (after.glued_text(), after.next().glued_text().parse::<u8>()) {
            ("-", Ok(day @ 1..=7)) => (Weekday::try_from(day - 1).ok()?, after.next().next()),
            _ => return None,
        };
        return Some((DraftDay::Exact(NaiveDate::from_isoywd_opt(year, number, weekday)?), end));
    }
    // `2026 10 16` is a date if no further figures follow.
    let (month, day) = match dash {
        Some(month) => {
            let separator = after.glued_text();
            let between = month.next();
            ((between.glued_text() == separator).then_some(month)?, between.next())
        }
        None => (after, after.next()),
    };
    if !is_figures(month) || !is_figures(day) || month.text().len() > 2 || day.text().len() > 2 {
        return None;
    }
    let (month, day, end) = (month.text().parse().ok()?, day.text().parse().ok()?, day.next());
    if dash.is_none() && (!(1..=12).contains(&month) || !(1..=31).contains(&day)) {
        return None;
    }
    Some((DraftDay::Date { year: Some(year), month, day }, end))
}

/// Parses `5.12.`, `5.12.2026`, `25.12.26`, `25/12`, `12/25/2026`.
fn read_numeric(start: Cursor<'_>) -> Read<'_> {
    let figures = |at: Cursor<'_>| is_figures(at).then(|| at.text().parse::<u32>().ok())?;
    let one = figures(start).filter(|_| start.text().len() <= 2)?;
    let after = start.next();
    let separator = after.glued_text();
    if !matches!(separator, "." | "/" | "-") || after.next().glued_text().is_empty() {
        return None;
    }
    let two = figures(after.next()).filter(|_| after.next().text().len() <= 2)?;
    let after = after.next().next();
    let has_second_separator = after.glued_text() == separator;
    let third =
        has_second_separator.then(|| after.next()).filter(|year| !year.glued_text().is_empty() && is_figures(*year));
    let year = third.and_then(|year| match (year.text().len(), year.text().parse()) {
        (4, Ok(full)) => Some(full),
        (2, Ok(short)) => Some(expand_year(short)),
        _ => None,
    });
    let end = third.map_or(after, Cursor::next);
    if third.is_some() && year.is_none() {
        return None;
    }
    // A word such as "on" before the figures shows that they are a date.
    let is_introduced =
        start.previous_token().is_some_and(|word| matches!(word.text.as_str(), "on" | "until" | "till" | "from" | ","))
            || start.previous_token().is_some_and(|word| super::super::words::is_weekday(&word.text));
    let is_date = year.is_some()
        || is_introduced
        || (separator == "." && has_second_separator)
        || (separator == "/"
            && (end.is_end() || read_clocks(end.skip("?,")).is_some() || end.match_phrase("to").is_some()));
    if !is_date {
        return None;
    }
    let end = if year.is_none() && separator == "." && has_second_separator { end.next() } else { end };
    let date = |month, day| Some((Draft::from_day(DraftDay::Date { year, month, day }), end));
    // Fully written dates with dots put the day first everywhere.
    let is_day_first = separator == "." && (year.is_some() || has_second_separator);
    match (one, two) {
        (1..=31, 1..=12) if one > 12 || one == two || is_day_first => date(two, one),
        (1..=12, 13..=31) => date(one, two),
        (1..=12, 1..=12) => Some((Draft::from_day(DraftDay::EitherDate { year, one, two }), end)),
        _ if separator == "." && !has_second_separator => None,
        _ if separator == "-" && year.is_none() => None,
        _ => Some((Draft::from_trouble(TimeTrouble::NoSuchDay), end)),
    }
}

/// Returns true for a number word. Years in words aren't supported, so "nineteen eighty-six" after a date makes the parser ask.
pub(super) fn is_spoken_number(word: &str) -> bool {
    number_word(word).is_some() || matches!(word, "hundred" | "thousand")
}
