//! Recurrences: "every other Friday", "daily", "on the last Friday of each month", "Mon-Fri at 8" after "every".

use chrono::{Weekday, WeekdaySet};

use super::{
    super::{
        rule::{WEEKEND, WORKDAYS},
        words::Cursor,
    },
    TimeTrouble,
    clock::{PARTS, PLURAL_PARTS},
    date::{read_day_and_month, read_month_and_day, read_number_from_end},
    day::with_part,
    distance::{Unit, read_quarters, unit_of_time},
    draft::{Draft, DraftDay, Every, Month},
    feasts::parse_holiday,
    pieces::Read,
};

/// The largest step ("every 400 days").
const MAX_STEP: u32 = 1000;

const ADVERBS: &[(&str, Every)] = &[
    ("hourly", Every::Minutes(60)),
    ("half-hourly|half hourly", Every::Minutes(30)),
    ("daily|everyday", Every::Days(1)),
    ("weekly", Every::Weeks(1, WeekdaySet::EMPTY)),
    ("fortnightly|bi-weekly fortnightly", Every::Weeks(2, WeekdaySet::EMPTY)),
    ("monthly", Every::Months(1)),
    ("quarterly", Every::Months(3)),
    ("semiannually|semi-annually|half-yearly", Every::Months(6)),
    ("yearly|annually", Every::Years(1)),
    ("biennially", Every::Years(2)),
    ("once|one an|a|per|every|each hour", Every::Minutes(60)),
    ("once|one a|per|every|each day", Every::Days(1)),
    ("once daily", Every::Days(1)),
    ("once a|per|every|each week", Every::Weeks(1, WeekdaySet::EMPTY)),
    ("once a|per|every|each fortnight", Every::Weeks(2, WeekdaySet::EMPTY)),
    ("once a|per|every|each month", Every::Months(1)),
    ("once a|per|every|each quarter", Every::Months(3)),
    ("once a|per|every|each year", Every::Years(1)),
];

/// Words with two common meanings.
const TWO_RHYTHMS: &str = "biweekly|bi-weekly|bimonthly|bi-monthly|biannually|bi-annually|biannual|semiweekly|semi-weekly|semimonthly|semi-monthly";

const SETS: &[(&str, WeekdaySet)] = &[("weekday|workday", WORKDAYS), ("working|work|week|business day", WORKDAYS)];

const PLURAL_SETS: &[(&str, WeekdaySet)] =
    &[("?all weekdays|workdays", WORKDAYS), ("working|work|business days", WORKDAYS), ("?all weekends", WEEKEND)];

pub(super) fn read_every(start: Cursor<'_>) -> Read<'_> {
    if let Some(end) = start.match_phrase(TWO_RHYTHMS) {
        return Some((Draft::from_trouble(TimeTrouble::TwoRhythms), end));
    }
    if let Some(index) = ADVERBS.iter().position(|(pattern, _)| start.match_phrase(pattern).is_some()) {
        let (pattern, every) = ADVERBS.get(index)?;
        return Some(with_part(Draft::from_every(every.clone()), start.match_phrase(pattern)?));
    }
    if let Some(end) = start.match_phrase("nightly|each night") {
        return Some((Draft { part: Some(super::draft::DraftPart::Night), ..Draft::from_every(Every::Days(1)) }, end));
    }
    if let Some(end) = several_times(start) {
        return Some((Draft::from_trouble(TimeTrouble::NeedsTimes), end));
    }
    match start.match_phrase("?on every|each|evry|any ?single") {
        Some(after) => read_after_every(after).or_else(|| not_understood(start, after)),
        None => plural_days(start).or_else(|| read_monthly(start)),
    }
}

fn read_after_every(after: Cursor<'_>) -> Read<'_> {
    nth_of_month(after)
        .or_else(|| yearly_date(after))
        .or_else(|| days_of_every_month(after))
        .or_else(|| each_part(after))
        .or_else(|| read_interval(after))
}

/// Parses "every morning", "every weekday morning".
fn each_part(after: Cursor<'_>) -> Read<'_> {
    let (part, end) = after.match_table(PARTS)?;
    Some((Draft { part: Some(part), ..Draft::from_every(Every::Days(1)) }, end))
}

/// Parses "every day", "every 2 hours", "every other Friday", "every Monday and Thursday", "every hour and a half".
fn read_interval(after: Cursor<'_>) -> Read<'_> {
    const PARTS_OF_HOUR: &[(&str, u32)] =
        &[("half ?an hour|half-hour", 30), ("half-hour", 30), ("quarter ?of ?an hour", 15), ("quarter-hour", 15)];
    if let Some((minutes, end)) = after.match_table(PARTS_OF_HOUR) {
        return Some((Draft::from_every(Every::Minutes(minutes)), end));
    }
    if let Some((minutes, end)) = read_minutes(after) {
        return Some((Draft::from_every(Every::Minutes(minutes)), end));
    }
    let is_ordinal = after.read_ordinal().is_some_and(|(n, _)| n > 2);
    let (n, after) = read_step(after)?;
    if n > MAX_STEP {
        return Some((Draft::from_trouble(TimeTrouble::TooFar), after.next()));
    }
    if let Some((on, end)) = after.match_table(SETS).or_else(|| weekday_list(after)) {
        // "Every third Thursday": of the month, or of three weeks?
        if is_ordinal {
            return Some((Draft::from_trouble(TimeTrouble::TwoRhythms), end));
        }
        return Some(with_part(Draft::from_every(Every::Weeks(n, on)), end));
    }
    if let Some(end) = after.match_phrase("weekend|weekends") {
        return Some((Draft::from_trouble(TimeTrouble::WhichDays), end));
    }
    let (unit, end) = unit_of_time(after)?;
    // "Every quarter day" doesn't mean a quarter of a year.
    if let Some((_, end)) = unit_of_time(end) {
        return Some((Draft::from_trouble(TimeTrouble::Unsupported), end));
    }
    if let Unit::Days(weeks @ (7 | 14)) = unit
        && let Some((on, end)) = read_on_weekdays(end)
    {
        return Some(with_part(Draft::from_every(Every::Weeks(n * weeks / 7, on)), end));
    }
    let every = match unit {
        Unit::Seconds(seconds) => Every::Minutes(Some(seconds / 60 * n).filter(|minutes| *minutes > 0)?),
        Unit::Days(7) => Every::Weeks(n, WeekdaySet::EMPTY),
        Unit::Days(14) => Every::Weeks(n * 2, WeekdaySet::EMPTY),
        Unit::Days(days) => Every::Days(days * n),
        Unit::Months(12) => Every::Years(n),
        Unit::Months(months) => Every::Months(months * n),
    };
    if matches!(every, Every::Days(1))
        && let Some((part, end)) = end.match_table(PARTS)
    {
        return Some((Draft { part: Some(part), ..Draft::from_every(every) }, end));
    }
    Some((Draft::from_every(every), end))
}

/// Parses "90 minutes", "hour and a half", "1.5 hours", "2 hours and 30 minutes".
fn read_minutes(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    let (mut seconds, mut end) = read_seconds(start)?;
    if let Some((more, after)) = end.match_phrase("?and").and_then(read_seconds) {
        (seconds, end) = (seconds.checked_add(more)?, after);
    }
    (seconds >= 60 && seconds % 60 == 0).then_some((seconds / 60, end))
}

/// Parses weekdays after "every 2 weeks": "on Monday and Thursday", "on weekdays".
fn read_on_weekdays(end: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    let days = end.match_phrase("?, on")?;
    days.match_table(SETS)
        .or_else(|| days.match_table(PLURAL_SETS))
        .or_else(|| weekday_list(days))
        .or_else(|| plural_list(days))
}

fn read_step(after: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    let counted = after.read_ordinal().filter(|(n, _)| *n > 1).or_else(|| after.read_number().filter(|(n, _)| *n > 0));
    Some(match (after.match_phrase("other|alternate|alternating|2nd"), counted) {
        (Some(end), _) => (2, end),
        (None, Some(counted)) => counted,
        (None, None) => (1, after),
    })
}

/// Parses weekdays joined by commas, slashes and "and", or a range of weekdays.
pub(super) fn weekday_list(start: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    read_list(start, Cursor::weekday_or_short)
}

fn plural_list(start: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    read_list(start, |day| day.read_plural_weekday().or_else(|| day.read_weekday()))
}

fn read_list<'t>(
    start: Cursor<'t>,
    read: impl Fn(Cursor<'t>) -> Option<(Weekday, Cursor<'t>)>,
) -> Option<(WeekdaySet, Cursor<'t>)> {
    let (first, mut end) = read(start)?;
    let mut last = first;
    let mut days = WeekdaySet::single(first);
    loop {
        if let Some((day, after)) = end.match_phrase("-|–|to|through|thru|until|till").and_then(&read) {
            let mut between = last;
            while between != day {
                between = between.succ();
                days.insert(between);
            }
            (last, end) = (day, after);
        } else if let Some((day, after)) = skip_conjunction(end).and_then(&read) {
            days.insert(day);
            (last, end) = (day, after);
        } else {
            return Some((days, end));
        }
    }
}

fn skip_conjunction(end: Cursor<'_>) -> Option<Cursor<'_>> {
    let after = end.skip("?,|/ ?and|&|plus").skip("?on ?every|each");
    (after.index > end.index).then_some(after)
}

/// Parses "on Mondays and Thursdays", "weekdays", "Friday evenings", "mornings".
fn plural_days(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    if let Some((part, end)) = start.skip("?in ?the").match_table(PLURAL_PARTS) {
        return Some((Draft { part: Some(part), ..Draft::from_every(Every::Days(1)) }, end));
    }
    if let Some((on, end)) = on.match_table(PLURAL_SETS).or_else(|| plural_first(on)) {
        let (part, after) = end.match_table(PLURAL_PARTS).map_or((None, end), |(part, after)| (Some(part), after));
        return Some(with_part(Draft { part, ..Draft::from_every(Every::Weeks(1, on)) }, after));
    }
    let (days, after) = on.match_phrase("weekday").map(|end| (WORKDAYS, end)).or_else(|| weekday_list(on))?;
    let (part, end) = after.match_table(PLURAL_PARTS)?;
    Some((Draft { part: Some(part), ..Draft::from_every(Every::Weeks(1, days)) }, end))
}

/// Parses a list with a plural in it: "Mondays and Thursdays", "Tuesday/Thursdays".
fn plural_first(on: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    let (days, end) = plural_list(on)?;
    let is_plural = (on.index..end.index).any(|index| Cursor::read_plural_weekday(on.move_to(index)).is_some());
    is_plural.then_some((days, end))
}

const OF_EVERY_MONTH: &str = "?of every|each month";

/// Parses "on the last Friday of every month", "on the 1st and 15th of each month", "on the 19th of every other month".
fn read_monthly(start: Cursor<'_>) -> Read<'_> {
    let the = start.match_phrase("on ?the").or_else(|| start.match_phrase("the")).unwrap_or(start);
    if let Some((draft, end)) = nth_weekdays(the) {
        let (months, end) = every_months(end)?;
        return Some((with_months(draft, months)?, end));
    }
    let (days, end) = month_days(the)?;
    let (months, end) = every_months(end)?;
    Some((Draft { days, ..Draft::from_every(Every::Months(months)) }, end))
}

/// Parses "of every month", "of every 2nd month", "each quarter", but not "of every January".
fn every_months(end: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    if let Some(end) = end
        .match_phrase(OF_EVERY_MONTH)
        .or_else(|| end.match_phrase("?of the month every|each month"))
        .or_else(|| end.match_phrase("monthly"))
    {
        return Some((1, end));
    }
    let every = end.match_phrase("?of|in every|each")?;
    if let Some(end) = every.match_phrase("quarter") {
        return Some((3, end));
    }
    let (n, after) = read_step(every)?;
    Some((n, after.match_phrase("month|months")?))
}

fn with_months(draft: Draft, months: u32) -> Option<Draft> {
    let every = match draft.every? {
        Every::Nth(_, which) => Every::Nth(months, which),
        Every::Workday(_, nth) => Every::Workday(months, nth),
        every => every,
    };
    Some(Draft::from_every(every))
}

/// Parses after "every": "first Monday of the month", "first Monday". A lone "second Friday" means every other Friday.
fn nth_of_month(after: Cursor<'_>) -> Read<'_> {
    let (draft, end) = nth_weekdays(after)?;
    let of_month = end.match_phrase("of|in the|every|each month").or_else(|| end.match_phrase("of|in a month"));
    if let Some(end) = of_month {
        return Some((draft, end));
    }
    if let Some((month, end)) = end.match_phrase("of|in").and_then(Cursor::read_month) {
        let Some(Every::Nth(_, which)) = draft.every else { return None };
        let [(nth, weekday)] = which[..] else { return None };
        return Some((
            Draft {
                every: Some(Every::Years(1)),
                ..Draft::from_day(DraftDay::NthWeekday(nth, weekday, Month::Named(month, None)))
            },
            end,
        ));
    }
    let stands_alone = match &draft.every {
        Some(Every::Nth(_, which)) => matches!(which[..], [(1 | -1, _)]) || which.len() > 1,
        _ => true,
    };
    stands_alone.then_some((draft, end))
}

/// Parses "first Monday", "first and third Tuesday", "last working day".
fn nth_weekdays(start: Cursor<'_>) -> Read<'_> {
    let (first, mut end) = read_nth(start)?;
    let mut counts = vec![first];
    while let Some((next, after)) = end.match_phrase("?, and|&").or_else(|| end.match_phrase(",")).and_then(read_nth) {
        counts.push(next);
        end = after;
    }
    if let Some(after) = end.match_phrase("weekday|workday").or_else(|| end.match_phrase("working|business|work day")) {
        let [nth] = counts[..] else { return None };
        return Some((Draft::from_every(Every::Workday(1, nth)), after));
    }
    let (weekday, end) = end.weekday_or_short()?;
    if !counts.iter().all(|nth| (-5..=5).contains(nth) && *nth != 0) {
        return None;
    }
    let which = counts.into_iter().map(|nth| (nth, weekday)).collect();
    Some((Draft::from_every(Every::Nth(1, which)), end))
}

/// Parses "every 3 March", "every Christmas".
fn yearly_date(after: Cursor<'_>) -> Read<'_> {
    if let Some((day, end)) = parse_holiday(after) {
        return Some(with_part(Draft { every: Some(Every::Years(1)), ..Draft::from_day(day) }, end));
    }
    let (draft, end) = read_day_and_month(after).or_else(|| read_month_and_day(after))?;
    matches!(draft.days[..], [DraftDay::Date { year: None, .. }])
        .then(|| (Draft { every: Some(Every::Years(1)), ..draft }, end))
}

/// Parses "every 1st of the month", "every 15th", "every 1st and 15th of the month".
fn days_of_every_month(after: Cursor<'_>) -> Read<'_> {
    let (days, end) = month_days(after)?;
    let of_month = end.match_phrase("of|in the|every|each month");
    let in_digits = after.text().starts_with(|c: char| c.is_ascii_digit());
    let alone =
        in_digits && unit_of_time(end).is_none() && end.weekday_or_short().is_none() && end.match_table(SETS).is_none();
    let end = of_month.or_else(|| alone.then_some(end))?;
    Some((Draft { days, ..Draft::from_every(Every::Months(1)) }, end))
}

/// Parses "1st and 15th", "last day", "first, tenth and twentieth".
fn month_days(start: Cursor<'_>) -> Option<(Vec<DraftDay>, Cursor<'_>)> {
    let (first, mut end) = read_month_day(start)?;
    let mut days = vec![DraftDay::OfMonth(first, Month::Any)];
    while let Some((next, after)) =
        end.match_phrase("?, and|&").or_else(|| end.match_phrase(",")).and_then(read_month_day)
    {
        days.push(DraftDay::OfMonth(next, Month::Any));
        end = after;
    }
    Some((days, end))
}

/// Finds a number of times without the times: "twice a day", "three times a week", "twice daily".
fn several_times(start: Cursor<'_>) -> Option<Cursor<'_>> {
    let times = start
        .match_phrase("twice")
        .or_else(|| start.match_phrase("thrice"))
        .or_else(|| start.read_number()?.1.match_phrase("times|x"))?;
    times
        .match_phrase("a|an|per|every|each hour|day|week|month|year")
        .or_else(|| times.match_phrase("daily|weekly|monthly|yearly|annually"))
}

/// Asks about an unsupported recurrence ("every full moon", "every 30 seconds"), because a following "at 9" would be misread as the
/// whole time. Elsewhere in a sentence "every" may belong to a thing ("greet every guest").
fn not_understood<'t>(start: Cursor<'t>, after: Cursor<'t>) -> Read<'t> {
    let stepped = after.match_phrase("other|second").is_some()
        || after.read_number().is_some()
        || after.match_phrase("half|few|couple").is_some();
    (start.index == 0 || stepped).then(|| (Draft::from_trouble(TimeTrouble::Unsupported), after.next()))
}

fn read_seconds(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    let (quarters, after) = match start.match_phrase("hour") {
        Some(_) => (4, start),
        None => read_quarters(start)?,
    };
    let (Unit::Seconds(seconds), end) = unit_of_time(after.skip("?of ?a|an"))? else { return None };
    let (quarters, end) = end.match_phrase("and a half").map_or((quarters, end), |half| (quarters + 2, half));
    Some((seconds.checked_mul(quarters)?.checked_div(4)?, end))
}

/// Parses a position from either end: "first", "the third", "last".
fn read_nth(start: Cursor<'_>) -> Option<(i32, Cursor<'_>)> {
    let the = start.skip("?the");
    read_number_from_end(the).or_else(|| {
        let (nth, end) = the.read_ordinal()?;
        Some((i32::try_from(nth).ok()?, end))
    })
}

fn read_month_day(start: Cursor<'_>) -> Option<(i32, Cursor<'_>)> {
    let the = start.skip("?on").skip("?the");
    super::date::read_day_from_end(the).or_else(|| {
        let (day, end) = the.read_ordinal()?;
        // "The 2nd day of every month", but not "every 2nd day".
        let end = end.match_phrase("day").filter(|end| end.match_phrase("of|in").is_some()).unwrap_or(end);
        Some((i32::try_from(day).ok()?, end))
    })
}
