//! Recurrences: "every other Friday", "daily", "on the last Friday of each month", "on Mondays".

use chrono::{Weekday, WeekdaySet};

use super::{
    super::{
        rule::{Nth, WEEKEND, WORKDAYS},
        words::Cursor,
    },
    TimeTrouble,
    clock::PARTS,
    date::{day_and_month, month_and_day, with_part},
    distance::{Unit, unit_of_time},
    draft::{Draft, DraftDay, DraftPart, Every, Month},
    pieces::Read,
};

/// The largest step ("every 400 days").
const MAX_STEP: u32 = 1000;

const ADVERBS: &[(&str, Every)] = &[
    ("hourly", Every::Minutes(60)),
    ("daily", Every::Days(1)),
    ("nightly", Every::Days(1)),
    ("weekly", Every::Weeks(1, WeekdaySet::EMPTY)),
    ("fortnightly|biweekly", Every::Weeks(2, WeekdaySet::EMPTY)),
    ("monthly", Every::Months(1)),
    ("quarterly", Every::Months(3)),
    ("yearly|annually", Every::Years),
    ("once an|a|per|every hour", Every::Minutes(60)),
    ("once a|per|every day", Every::Days(1)),
    ("once a|per|every week", Every::Weeks(1, WeekdaySet::EMPTY)),
    ("once a|per|every month", Every::Months(1)),
    ("once a|per|every year", Every::Years),
];

const SETS: &[(&str, WeekdaySet)] = &[
    ("weekday|workday", WORKDAYS),
    ("working|work|week day", WORKDAYS),
    ("weekend", WeekdaySet::single(Weekday::Sat)),
];

const PLURAL_SETS: &[(&str, WeekdaySet)] =
    &[("weekdays|workdays", WORKDAYS), ("working|work days", WORKDAYS), ("weekends", WEEKEND)];

pub(super) fn every(start: Cursor<'_>) -> Read<'_> {
    if let Some((every, end)) = start.lookup(ADVERBS) {
        return Some((Draft::every(every), end));
    }
    if let Some(end) = several_times_a_day(start) {
        return Some((Draft::trouble(TimeTrouble::Unsupported), end));
    }
    match start.phrase("?on every|each") {
        Some(after) => after_every(after).or_else(|| not_understood(start, after)),
        None => plural_days(start).or_else(|| of_every_month(start)),
    }
}

fn after_every(after: Cursor<'_>) -> Read<'_> {
    nth_of_month(after)
        .or_else(|| yearly_date(after))
        .or_else(|| day_of_every_month(after))
        .or_else(|| each_part(after))
        .or_else(|| stepped(after))
}

/// "Every morning".
fn each_part(after: Cursor<'_>) -> Read<'_> {
    let (part, end) = after.skip("?single").lookup(PARTS)?;
    Some((Draft { part: Some(part), ..Draft::every(Every::Days(1)) }, end))
}

/// "Every day", "every 2 hours", "every other Friday", "every Monday and Thursday".
fn stepped(after: Cursor<'_>) -> Read<'_> {
    if let Some(end) = after.phrase("half ?an hour") {
        return Some((Draft::every(Every::Minutes(30)), end));
    }
    let (n, after) = step(after)?;
    if n > MAX_STEP {
        return Some((Draft::trouble(TimeTrouble::TooFar), after.next()));
    }
    if let Some((on, end)) = after.lookup(SETS).or_else(|| weekday_list(after, Cursor::weekday_or_short)) {
        return Some(with_part(Draft::every(Every::Weeks(n, on)), end));
    }
    if let Some(end) = after.phrase("quarter") {
        return Some((Draft::every(Every::Months(n * 3)), end));
    }
    let (unit, end) = unit_of_time(after)?;
    if let Unit::Days(weeks @ (7 | 14)) = unit
        && let Some((on, end)) = on_weekdays(end)
    {
        return Some(with_part(Draft::every(Every::Weeks(n * weeks / 7, on)), end));
    }
    let every = match unit {
        Unit::Seconds(seconds) => Every::Minutes(Some(seconds / 60 * n).filter(|minutes| *minutes > 0)?),
        Unit::Days(7) => Every::Weeks(n, WeekdaySet::EMPTY),
        Unit::Days(14) => Every::Weeks(n * 2, WeekdaySet::EMPTY),
        Unit::Days(days) => Every::Days(days * n),
        Unit::Months(12) if n == 1 => Every::Years,
        Unit::Months(months) => Every::Months(months * n),
    };
    Some((Draft::every(every), end))
}

/// After "every 2 weeks": "on Monday and Thursday", "on weekdays".
fn on_weekdays(end: Cursor<'_>) -> Option<(WeekdaySet, Cursor<'_>)> {
    let days = end.phrase("on")?;
    days.lookup(SETS)
        .or_else(|| days.lookup(PLURAL_SETS))
        .or_else(|| weekday_list(days, |day| day.weekday_or_short().or_else(|| day.weekdays())))
}

fn step(after: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    let counted = after.ordinal().filter(|(n, _)| *n > 1).or_else(|| after.number().filter(|(n, _)| *n > 0));
    Some(match (after.phrase("other"), counted) {
        (Some(end), _) => (2, end),
        (None, Some(counted)) => counted,
        (None, None) => (1, after.skip("?single")),
    })
}

/// Weekdays joined by commas and "and".
fn weekday_list<'t>(
    start: Cursor<'t>,
    read: impl Fn(Cursor<'t>) -> Option<(Weekday, Cursor<'t>)>,
) -> Option<(WeekdaySet, Cursor<'t>)> {
    let (first, mut end) = read(start)?;
    let mut days = WeekdaySet::single(first);
    while let Some((day, after)) = joined(end).and_then(&read) {
        days.insert(day);
        end = after;
    }
    Some((days, end))
}

fn joined(end: Cursor<'_>) -> Option<Cursor<'_>> {
    let after = end.skip("?, ?and|&").skip("?on ?every|each");
    (after.index > end.index).then_some(after)
}

/// "On Mondays and Thursdays", "weekdays", "Friday evenings".
fn plural_days(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    if let Some((on, end)) = on.lookup(PLURAL_SETS).or_else(|| weekday_list(on, Cursor::weekdays)) {
        return Some((Draft::every(Every::Weeks(1, on)), end));
    }
    let (day, after) = on.weekday()?;
    let plural_parts = &[
        ("mornings", DraftPart::Morning),
        ("afternoons", DraftPart::Afternoon),
        ("evenings", DraftPart::Evening),
        ("nights", DraftPart::Night),
    ];
    let (part, end) = after.lookup(plural_parts)?;
    Some((Draft { part: Some(part), ..Draft::every(Every::Weeks(1, WeekdaySet::single(day))) }, end))
}

const OF_EVERY_MONTH: &str = "?of every|each month";

/// "On the last Friday of every month", "on the 1st of each month".
fn of_every_month(start: Cursor<'_>) -> Read<'_> {
    let the = start.phrase("on ?the").or_else(|| start.phrase("the"))?;
    if let Some((nth, weekday, end)) = nth_weekday(the) {
        return Some((Draft::every(Every::Nth(nth, weekday)), end.phrase(OF_EVERY_MONTH)?));
    }
    let last_day = the.phrase("last day").map(|end| (31, end));
    let (day, end) = last_day.or_else(|| the.ordinal())?;
    Some((monthly(day), end.phrase(OF_EVERY_MONTH)?))
}

/// After "every": "first Monday of the month", "first Monday"; "second Friday" alone is every other one.
fn nth_of_month(after: Cursor<'_>) -> Read<'_> {
    let (nth, weekday, end) = nth_weekday(after)?;
    let of_month = end.phrase("of|in the|every|each month").or_else(|| end.phrase("of|in a month"));
    match of_month {
        Some(end) => Some((Draft::every(Every::Nth(nth, weekday)), end)),
        None if matches!(nth, Nth::First | Nth::Last) => Some((Draft::every(Every::Nth(nth, weekday)), end)),
        None => None,
    }
}

fn nth_weekday(start: Cursor<'_>) -> Option<(Nth, Weekday, Cursor<'_>)> {
    let (nth, after) = match start.phrase("last") {
        Some(after) => (Nth::Last, after),
        None => match start.ordinal()? {
            (1, after) => (Nth::First, after),
            (2, after) => (Nth::Second, after),
            (3, after) => (Nth::Third, after),
            (4, after) => (Nth::Fourth, after),
            _ => return None,
        },
    };
    let (weekday, end) = after.weekday_or_short()?;
    Some((nth, weekday, end))
}

/// "Every 3 March".
fn yearly_date(after: Cursor<'_>) -> Read<'_> {
    let (draft, end) = day_and_month(after).or_else(|| month_and_day(after))?;
    matches!(draft.day, Some(DraftDay::Date { year: None, .. }))
        .then(|| (Draft { every: Some(Every::Years), ..draft }, end))
}

/// "Every 1st of the month", "every 15th".
fn day_of_every_month(after: Cursor<'_>) -> Read<'_> {
    let last_day = after.phrase("last day of the month").map(|end| (31, end));
    let (day, end) = last_day.or_else(|| after.ordinal())?;
    let of_month = end.phrase("of the|every|each month");
    let in_digits = after.text().starts_with(|c: char| c.is_ascii_digit());
    let alone =
        in_digits && unit_of_time(end).is_none() && end.weekday_or_short().is_none() && end.lookup(SETS).is_none();
    let end = of_month.or_else(|| (last_day.is_some() || alone).then_some(end))?;
    Some((monthly(day), end))
}

fn monthly(day: u32) -> Draft {
    Draft { day: Some(DraftDay::OfMonth(day, Month::Any)), ..Draft::every(Every::Months(1)) }
}

/// "Twice a day", "three times a week".
fn several_times_a_day(start: Cursor<'_>) -> Option<Cursor<'_>> {
    let times = start.phrase("twice").or_else(|| start.number()?.1.phrase("times"))?;
    times.phrase("a|an|per|every|each hour|day|week|month|year")
}

/// "Every full moon", "every 30 seconds": better asked about than taken for the "at 9" that follows. Elsewhere in a sentence
/// "every" may belong to a thing ("greet every guest").
fn not_understood<'t>(start: Cursor<'t>, after: Cursor<'t>) -> Read<'t> {
    let stepped =
        after.phrase("other|second").is_some() || after.number().is_some() || after.phrase("half|few|couple").is_some();
    (start.index == 0 || stepped).then(|| (Draft::trouble(TimeTrouble::Unsupported), after.next()))
}
