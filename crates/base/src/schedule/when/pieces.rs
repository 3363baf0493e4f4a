//! Tokens to drafts: finds the longest run of parts that form one time.

use super::{
    super::words::Cursor,
    TimeTrouble,
    bounds::read_bound,
    clock::{read_clocks, read_part},
    date::{is_spoken_number, read_date},
    day::read_day,
    distance::{read_distance, unit_of_time},
    draft::{Bounds, Draft, DraftDay},
    every::read_every,
    zones::read_zone,
};

pub(super) type Read<'t> = Option<(Draft, Cursor<'t>)>;

/// The parsers in order: "in the morning" before "in 5 hours", "5 December" before "5 pm".
const PARTS: [for<'t> fn(Cursor<'t>) -> Read<'t>; 6] =
    [read_every, read_distance, read_date, read_day, read_part, read_clocks];

/// Parses one time. If the words after it would change its meaning, the time counts as unsupported.
pub(super) fn read_expression(start: Cursor<'_>) -> Read<'_> {
    let (mut draft, mut end) = read_run(start)?;
    if let Some(after) = read_change(&draft, end)
        && draft.trouble.is_none()
    {
        (draft.trouble, end) = (Some(TimeTrouble::Unsupported), after);
    }
    Some((draft, end))
}

/// Parses the parts that fit together, and stops before anything else.
pub(super) fn read_run(start: Cursor<'_>) -> Read<'_> {
    let (mut draft, mut end) = read_first(start).or_else(|| read_bound_first(start))?;
    end = end.match_phrase("or so").filter(|_| draft.distance.is_some()).unwrap_or(end);
    loop {
        let here = end.skip("?,|;").skip("?-|–");
        if let Some((day, after)) = read_joined_day(&draft, end) {
            draft.days.push(day);
            end = after;
            continue;
        }
        let next = read_for_clock(&draft, end)
            .or_else(|| read_one(here))
            .or_else(|| read_one(end))
            .or_else(|| read_bound(here))
            .or_else(|| read_bare_clock(&draft, here));
        let Some((more, after)) = next else { break };
        match draft.merge(&more) {
            Some(merged) => (draft, end) = (merged, after),
            None => break,
        }
    }
    if draft.bounds != Bounds::default() && draft.every.is_none() && draft.trouble.is_none() {
        draft.trouble = Some(TimeTrouble::Unsupported);
    }
    Some((draft, end))
}

fn read_one(start: Cursor<'_>) -> Read<'_> {
    PARTS.iter().find_map(|read| read(start)).filter(|(_, end)| end.index > start.index)
}

/// Parses the first part, which must set something.
fn read_first(start: Cursor<'_>) -> Read<'_> {
    read_one(start).filter(|(draft, _)| draft != &Draft::default())
}

/// Parses another day for the same time: "tomorrow and Monday", "on 5 December and on the 12th".
fn read_joined_day<'t>(draft: &Draft, end: Cursor<'t>) -> Option<(DraftDay, Cursor<'t>)> {
    let is_day =
        |draft: &Draft| Draft { days: Vec::new(), ..draft.clone() } == Draft::default() && !draft.days.is_empty();
    let and = end.match_phrase("?, and|&").filter(|_| is_day(draft))?;
    // "On the 5th and 12th".
    if let ([.., DraftDay::OfMonth(_, month)], Some((day, after))) = (draft.days.as_slice(), and.read_ordinal())
        && and.text().starts_with(|c: char| c.is_ascii_digit())
    {
        return Some((DraftDay::OfMonth(i32::try_from(day).ok()?, *month), after));
    }
    let (other, after) = read_date(and).or_else(|| read_day(and))?;
    match other.days[..] {
        [day] if is_day(&other) => Some((day, after)),
        _ => None,
    }
}

/// Parses a limit before its recurrence: "from Monday every day at 9".
fn read_bound_first(start: Cursor<'_>) -> Read<'_> {
    let (bound, end) = read_bound(start)?;
    let (every, end) = read_every(end.skip("?,"))?;
    Some((bound.merge(&every)?, end))
}

/// Parses "October 14 for 8:00am": a clock in figures can't be a span.
fn read_for_clock<'t>(draft: &Draft, end: Cursor<'t>) -> Read<'t> {
    let (clock, after) = read_clocks(end.match_phrase("for")?)?;
    (!draft.days.is_empty() && !draft.has_clock()).then_some((clock, after))
}

/// Parses a lone hour after a day: "tomorrow 10", "Friday 1430", "25 December, 18".
fn read_bare_clock<'t>(draft: &Draft, start: Cursor<'t>) -> Read<'t> {
    if draft.days.is_empty() && draft.every.is_none() || draft.has_clock() || draft.distance.is_some() {
        return None;
    }
    // "January first 12" could name a year.
    let is_dated =
        matches!(draft.days[..], [DraftDay::Date { year: None, .. } | DraftDay::EitherDate { year: None, .. }]);
    let figures = start.text();
    if is_dated && figures.len() < 4
        || figures.is_empty()
        || !figures.bytes().all(|b| b.is_ascii_digit())
        || figures.len() == 3
        || figures.len() > 4
    {
        return None;
    }
    let end = start.next();
    let ends = end.is_end()
        || end.match_phrase("to|,|!|?|that|about|every|in|on").is_some()
        || (end.text() == "." && end.next().glued_text().is_empty())
        || end.token().is_some_and(|next| {
            !next.glued
                && !next.is_mark()
                && unit_of_time(end).is_none()
                && end.match_phrase("times|people|or|and|-").is_none()
        });
    if !ends {
        return None;
    }
    super::clock::hour_in_figures(figures).map(|clock| (Draft::from_clock(clock), end))
}

/// Finds words after a time that would change it: "or at 10", "until Friday", another number.
fn read_change<'t>(draft: &Draft, end: Cursor<'t>) -> Option<Cursor<'t>> {
    let here = end.skip("?,");
    let is_apart = here.index > end.index;
    // "Tomorrow at 9, on Friday I travel" contains a second time.
    let second = ["and|or|&|/|-|–", "?, and|or ?at|on", "?,"]
        .iter()
        .filter_map(|joint| end.match_phrase(joint))
        .chain([end])
        .find_map(|joint| read_one(joint).or_else(|| read_bare_number(joint)).map(|(_, after)| after));
    if second.is_some() {
        return second;
    }
    if let Some((_, after)) = read_bound(end).or_else(|| read_bound(here)) {
        return Some(after);
    }
    if !is_apart && let Some((_, after)) = read_zone(end).filter(|_| draft.has_clock()) {
        return Some(after);
    }
    // "15 April of 87", "Independence Day of this year"; "of Anna's birthday" is the reminder's text.
    if let Some(of) = here
        .match_phrase("of")
        .filter(|of| of.read_number().is_some() || of.match_phrase("this|next|last|the").is_some())
    {
        return Some(of.next());
    }
    // "July 13 to 15".
    if let Some(number) = here.match_phrase("to").filter(|number| number.read_number().is_some()) {
        return Some(number.next());
    }
    const CHANGERS: &str = "until|till|til|except|excluding|unless|starting|beginning|between|before|after|or|sometime|somewhen|ish|every|each|but|not|since|ago|instead";
    if let Some(after) = here.match_phrase(CHANGERS).or_else(|| here.match_phrase("on the hour|half-hour")) {
        return Some(after);
    }
    // "March fifteenth nineteen eighty-six", "tomorrow 1430 hours", "Friday 3 4".
    let is_number = here.read_number().is_some() || is_spoken_number(here.text()) || here.read_ordinal().is_some();
    let changes_time =
        is_number && !is_apart && here.match_phrase("one").is_none_or(|one| one.match_phrase("to|of").is_none());
    changes_time.then(|| here.next())
}

/// Parses `8` after "at 7 and".
fn read_bare_number(start: Cursor<'_>) -> Read<'_> {
    let (hour, end) = start.read_number()?;
    let is_joined =
        start.previous_token().is_some_and(|word| matches!(word.text.as_str(), "and" | "or" | "&" | "/" | "-" | "–"));
    let ends = end.is_end() || end.match_phrase("to|,|.|!|?|am|pm|o'clock|every").is_some();
    (is_joined && hour < 24 && ends).then(|| (Draft::default(), end))
}
