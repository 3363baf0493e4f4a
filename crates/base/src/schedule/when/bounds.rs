//! Limits and exceptions of a recurrence: "until Friday", "for the next 10 days", "except Sundays", "from 9 to 17".

use chrono::WeekdaySet;

use super::{
    super::{
        rule::{WEEKEND, WORKDAYS},
        words::Cursor,
    },
    clock::read_clocks,
    date::read_date,
    day::read_day,
    distance::{Unit, read_quarters, unit_of_time},
    draft::{Bounds, Distance, Draft, DraftClock, DraftDay, Month},
    every::weekday_list,
    pieces::Read,
};

/// Parses one limit or exception, which needs a recurrence next to it.
pub(super) fn read_bound(start: Cursor<'_>) -> Read<'_> {
    let (bounds, end) = read_hours(start)
        .or_else(|| read_count(start))
        .or_else(|| read_until(start))
        .or_else(|| read_from(start))
        .or_else(|| read_except(start))?;
    Some((Draft { bounds, ..Draft::default() }, end))
}

/// Parses hours: "from 9 to 17", "between 9am and 5pm", "from 8am until 8pm".
fn read_hours(start: Cursor<'_>) -> Option<(Bounds, Cursor<'_>)> {
    let (first, end) = one_clock(start.match_phrase("from|between")?)?;
    let (last, end) = one_clock(end.match_phrase("to|until|till|and|-|–")?)?;
    Some((Bounds { hours: Some((first, last)), ..Bounds::default() }, end))
}

fn one_clock(start: Cursor<'_>) -> Option<(DraftClock, Cursor<'_>)> {
    let bare = start
        .read_number()
        .filter(|(_, end)| end.match_phrase("to|until|till|and|-|–|on|every|each").is_some() || end.is_end());
    if bare.is_none()
        && let Some((draft, end)) = read_clocks(start)
        && let [clock] = draft.clocks[..]
        && draft.zone.is_none()
    {
        return Some((clock, end));
    }
    let (hour, end) = start.read_number().filter(|(hour, _)| *hour < 24)?;
    let clock = match hour {
        1..=12 => DraftClock::Open { hour, minute: 0 },
        _ => DraftClock::Literal(chrono::NaiveTime::from_hms_opt(hour, 0, 0)?),
    };
    Some((clock, end))
}

/// Parses a count or a span: "10 times", "for the next 10 days", "for two weeks".
fn read_count(start: Cursor<'_>) -> Option<(Bounds, Cursor<'_>)> {
    let after = start.match_phrase("for ?the ?next|following").unwrap_or(start);
    if let Some((count, end)) =
        after.read_number().and_then(|(count, end)| Some((count, end.match_phrase("times|occurrences")?)))
    {
        return Some((Bounds { count: Some(count), ..Bounds::default() }, end));
    }
    if after.index == start.index {
        return None;
    }
    let (quarters, after) = match after.match_phrase("week|month|year|day") {
        Some(_) => (4, after),
        None => read_quarters(after)?,
    };
    let (unit, end) = unit_of_time(after)?;
    let whole = |n: u32| n.checked_mul(quarters)?.checked_div(4);
    let span = match unit {
        Unit::Days(n) => Distance { days: whole(n)?, ..Distance::default() },
        Unit::Months(n) => Distance { months: whole(n)?, ..Distance::default() },
        Unit::Seconds(n) => Distance { seconds: whole(n)?, ..Distance::default() },
    };
    Some((Bounds { span: Some(span), ..Bounds::default() }, end))
}

/// Parses an end: "until Friday", "till 5 December", "through the end of the month".
fn read_until(start: Cursor<'_>) -> Option<(Bounds, Cursor<'_>)> {
    let after = start.match_phrase("?up until|till|til|through|thru ?and ?including")?;
    let (day, end) = one_day(after)?;
    Some((Bounds { until: Some(day), ..Bounds::default() }, end))
}

/// Parses a start: "starting tomorrow", "from Monday on", "beginning 1 December".
fn read_from(start: Cursor<'_>) -> Option<(Bounds, Cursor<'_>)> {
    let after = start.match_phrase("?, starting|beginning ?on|from|with|in").or_else(|| start.match_phrase("from"))?;
    let (day, end) = one_day(after)?;
    let end = end.skip("?on|onwards|onward");
    let mut bounds = Bounds { from: Some(day), ..Bounds::default() };
    if let Some((until, end)) = end.match_phrase("to|until|till|through").and_then(one_day) {
        bounds.until = Some(until);
        return Some((bounds, end));
    }
    Some((bounds, end))
}

fn one_day(start: Cursor<'_>) -> Option<(DraftDay, Cursor<'_>)> {
    let named = read_date(start).or_else(|| read_day(start)).or_else(|| {
        let (weekday, end) = start.weekday_or_short()?;
        Some((Draft::from_day(DraftDay::Weekday(weekday, super::draft::DraftWhich::Coming)), end))
    });
    let (draft, end) = named.or_else(|| {
        let (day, end) = start.skip("?the").read_ordinal()?;
        Some((Draft::from_day(DraftDay::OfMonth(i32::try_from(day).ok()?, Month::Any)), end))
    })?;
    let [day] = draft.days[..] else { return None };
    (draft == Draft { weekday: draft.weekday, ..Draft::from_day(day) }).then_some((day, end))
}

/// Parses exceptions: "except Sundays", "but not on weekends", "excluding 25 December".
fn read_except(start: Cursor<'_>) -> Option<(Bounds, Cursor<'_>)> {
    let after = start
        .match_phrase("?, except|excluding|excepting ?for ?on")
        .or_else(|| start.match_phrase("?, but|and not ?on"))
        .or_else(|| start.match_phrase("?, apart from ?on"))
        .or_else(|| start.match_phrase("?, other than ?on"))?;
    let sets: &[(&str, WeekdaySet)] =
        &[("weekends|weekend", WEEKEND), ("?the weekend", WEEKEND), ("weekdays|workdays", WORKDAYS)];
    if let Some((except_on, end)) =
        after.match_table(sets).or_else(|| plural_weekdays(after)).or_else(|| weekday_list(after))
    {
        return Some((Bounds { except_on, ..Bounds::default() }, end));
    }
    let (day, mut end) = one_day(after)?;
    let mut except = vec![day];
    while let Some((day, after)) = end.match_phrase("?, and|&").and_then(one_day) {
        except.push(day);
        end = after;
    }
    Some((Bounds { except, ..Bounds::default() }, end))
}

/// Parses "Sundays and Mondays".
fn plural_weekdays(start: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    let (first, mut end) = start.read_plural_weekday()?;
    let mut days = WeekdaySet::single(first);
    while let Some((day, after)) =
        end.match_phrase("?, ?and|&|or").and_then(|and| and.skip("?on").read_plural_weekday())
    {
        days.insert(day);
        end = after;
    }
    Some((days, end))
}
