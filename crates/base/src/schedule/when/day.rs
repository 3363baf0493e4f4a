//! Days as words: "tomorrow", "next Friday", "Friday after next", "the weekend", "tonight".

use super::{
    super::words::Cursor,
    clock::PARTS,
    draft::{Draft, DraftDay, DraftPart, DraftWhich, Month},
    pieces::Read,
};

const DAY_WORDS: &[(&str, DraftDay)] = &[
    ("?on the day after tomorrow", DraftDay::FromToday(2)),
    ("day after tomorrow", DraftDay::FromToday(2)),
    ("overmorrow", DraftDay::FromToday(2)),
    ("?the day before yesterday", DraftDay::FromToday(-2)),
    ("tomorrow|tomorow|tommorow|tommorrow|tomorrrow|tmrw|tmr|tmrow|2moro|2morrow", DraftDay::FromToday(1)),
    ("first thing tomorrow", DraftDay::FromToday(1)),
    ("later today", DraftDay::FromToday(0)),
    ("today", DraftDay::FromToday(0)),
    ("yesterday", DraftDay::FromToday(-1)),
    ("next|following week", DraftDay::NextWeek),
    ("the following week", DraftDay::NextWeek),
    ("next month", DraftDay::NextMonth),
    ("next year", DraftDay::NextYear),
    ("?at|on the end of ?the|this month", DraftDay::OfMonth(-1, Month::Any)),
    ("?at|on ?the end of month", DraftDay::OfMonth(-1, Month::Any)),
    ("?at|on ?the end of next month", DraftDay::OfMonth(-1, Month::Next)),
    ("?at|on ?the end of ?the month", DraftDay::OfMonth(-1, Month::Any)),
    ("?at|on|over next weekend", DraftDay::Weekend(DraftWhich::Next)),
    ("at|on|over the weekend", DraftDay::Weekend(DraftWhich::Coming)),
    ("this|the coming weekend", DraftDay::Weekend(DraftWhich::Coming)),
    ("this weekend|week-end", DraftDay::Weekend(DraftWhich::Coming)),
    ("last|past|previous week|month|year|weekend", DraftDay::FromToday(-7)),
    ("last night", DraftDay::FromToday(-1)),
];

/// Parses a day as a word, with a following part of the day: "tomorrow morning".
pub(super) fn read_day(start: Cursor<'_>) -> Read<'_> {
    if let Some(end) = start.match_phrase("?later tonight|tonite|2nite") {
        return Some((Draft { part: Some(DraftPart::Tonight), ..Draft::from_day(DraftDay::FromToday(0)) }, end));
    }
    if let Some(this) = start.match_phrase("?later this ?early|late")
        && let Some((part, end)) = this.match_table(PARTS)
    {
        let is_vague = this.previous_token().is_some_and(|word| word.text != "this");
        return Some((Draft { part: Some(part), is_vague, ..Draft::from_day(DraftDay::FromToday(0)) }, end));
    }
    let (draft, end) = match start.match_table(DAY_WORDS) {
        Some((day, end)) => (Draft::from_day(day), end),
        None => read_weekday(start)?,
    };
    Some(with_part(draft, end))
}

/// Adds a part of the day that follows a day. "Early" and "late" need an hour, which is checked later.
pub(super) fn with_part(draft: Draft, end: Cursor<'_>) -> (Draft, Cursor<'_>) {
    let (plain, here) = (end.skip("?in the"), end.skip("?early|late").skip("?in the").skip("?early|late"));
    let is_vague = draft.is_vague || here.index > plain.index;
    match here.match_table(PARTS) {
        Some((part, after)) if draft.part.is_none() => (Draft { part: Some(part), is_vague, ..draft }, after),
        _ => (draft, end),
    }
}

fn read_weekday(start: Cursor<'_>) -> Read<'_> {
    let on = start.skip("?on");
    // "Next week Wednesday", "this week Monday", "Tuesday of next week".
    if let Some(end) = on.match_phrase("next|following week ?-|, ?on") {
        return named_weekday(DraftWhich::Next, end);
    }
    if let Some(end) = on.match_phrase("this week ?-|, ?on") {
        return named_weekday(DraftWhich::ThisWeek, end);
    }
    if let Some(end) = on.match_phrase("last|previous|past week ?-|, ?on") {
        return named_weekday(DraftWhich::Last, end);
    }
    if let Some(end) = on.match_phrase("?the next|following") {
        return named_weekday(DraftWhich::ComingOrNext, end);
    }
    if let Some(found) =
        on.match_phrase("?this last|past|previous").and_then(|end| named_weekday(DraftWhich::Last, end))
    {
        return Some(found);
    }
    let on = if on
        .match_phrase("the")
        .is_some_and(|day| day.read_weekday().is_some_and(|(_, end)| end.match_phrase("after next").is_some()))
    {
        on.next()
    } else {
        on
    };
    let named = on.skip("?this upcoming").skip("?this|coming|upcoming");
    let is_prefixed = named.index > start.index;
    let (weekday, end) =
        if is_prefixed { named.weekday_or_short() } else { named.read_weekday().or_else(|| short_weekday(named)) }?;
    const BEHIND: &[(&str, DraftWhich)] = &[
        ("?in|of ?the next|following week", DraftWhich::Next),
        ("?in|of this week", DraftWhich::ThisWeek),
        ("after next", DraftWhich::AfterNext),
        ("?in|of ?the last|previous week", DraftWhich::Last),
    ];
    let (which, end) = end.match_table(BEHIND).unwrap_or((DraftWhich::Coming, end));
    let mut weekdays = vec![DraftDay::Weekday(weekday, which)];
    let mut end = end;
    while let Some((next, after)) = end
        .match_phrase("?, and|&")
        .or_else(|| end.match_phrase(",|/"))
        .and_then(|and| and.skip("?on").weekday_or_short())
    {
        weekdays.push(DraftDay::Weekday(next, which));
        end = after;
    }
    Some((Draft { days: weekdays, ..Draft::default() }, end))
}

/// Parses a short form before a time: "Fri at 8", "thu 14:00". Some short forms are words of their own ("sat", "sun").
fn short_weekday(start: Cursor<'_>) -> Option<(chrono::Weekday, Cursor<'_>)> {
    let (weekday, end) = start.weekday_or_short()?;
    let end_dot = end.skip("?.");
    let is_word = matches!(start.text(), "sat" | "sun" | "wed" | "mon" | "fri");
    let is_dotted = end_dot.index > end.index && end_dot.token().is_some();
    let is_time = is_dotted
        || super::clock::read_clocks(end_dot).is_some()
        || end_dot.match_table(PARTS).is_some()
        || end_dot.match_phrase("/|&|-|,").is_some();
    (is_time || !is_word).then_some((weekday, end_dot))
}

fn named_weekday(which: DraftWhich, start: Cursor<'_>) -> Read<'_> {
    let (weekday, end) = start.weekday_or_short()?;
    Some((Draft::from_day(DraftDay::Weekday(weekday, which)), end))
}
