//! Parses times in English: finds a time expression in a sentence with its position, so that the rest is the reminder's text.
//!
//! Parsing has three steps. `pieces` and `every` turn tokens into a draft: a day, a time of day, a part of the day, a distance, a
//! recurrence. Adjacent pieces are merged. `settle` resolves the draft against the present.
//!
//! Two readings with different times become a question ([`TimeTrouble::Either`]); the same goes for following words that would change
//! the time. Habits of English are settled here, and the answer names day and time so that the person sees the choice:
//! - An hour from 7 to 12 without am or pm is taken literally ("at 8" is 08:00). An hour from 1 to 6 is a question, unless only one
//!   reading is ahead on that day. A reading within three hours wins ("at 11:30", said at 23:28).
//! - A day without a time is at 09:00. Morning is 09:00, afternoon 15:00, evening 19:00, tonight 20:00.
//! - "Friday" is the next after today; "next Friday" is Friday of the next calendar week, which starts on Monday.
//! - A date without a year is the next such date. "Midnight" of a day is a question: its beginning or its end.
//! - "In 20 minutes" counts elapsed time; "in 2 days" keeps the present local time. A lone "today" needs a time.
//! - `5.12.2026` is 5 December; `5/12` could be two days.
//! - "For 10 days" counts from the first; "until Friday" includes Friday.

mod bounds;
mod calendar;
mod clock;
mod date;
mod day;
mod distance;
mod draft;
mod every;
mod feasts;
mod pieces;
mod recur;
mod relative;
mod settle;
#[cfg(test)]
mod tests;
mod zones;

use std::ops::Range;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

pub use self::relative::{RelativeTime, is_distance, parse_relative};
use crate::zone::Tz;

use super::{
    Rule, Slot, resolve_local_time,
    words::{Cursor, Token, is_month, is_weekday, tokenize},
};

/// The time of a day without a time.
pub const DEFAULT_TIME: NaiveTime = make_time(9);
/// The time of a morning without an hour.
pub const MORNING: NaiveTime = make_time(9);
/// The time of an afternoon without an hour.
pub const AFTERNOON: NaiveTime = make_time(15);
/// The time of an evening without an hour.
pub const EVENING: NaiveTime = make_time(19);
/// The time of a night without an hour.
pub const NIGHT: NaiveTime = make_time(20);

/// An early time at which the whole day is still ahead.
const EARLY: NaiveTime = make_time(6);

/// The maximum number of years ahead.
pub const MAX_YEARS_AHEAD: i32 = 50;

const fn make_time(hour: u32) -> NaiveTime {
    match NaiveTime::from_hms_opt(hour, 0, 0) {
        Some(time) => time,
        None => NaiveTime::MIN,
    }
}

/// A time expression in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTime {
    /// The meaning, or the reason for having none.
    pub when: Result<When, TimeTrouble>,
    /// The position in the text in bytes, including the preposition.
    pub span: Range<usize>,
}

/// A time ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// A single time.
    At(Slot),
    /// A recurring time.
    Every(Rule),
}

/// The reason for an expression without a time; each message fits after the quoted expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeTrouble {
    /// The time has passed.
    #[error("has already passed")]
    Past,
    /// A date that the calendar lacks, such as 30 February.
    #[error("is not a day of the calendar")]
    NoSuchDay,
    /// An impossible time of day, such as 25:00.
    #[error("is not a time of day")]
    NoSuchTime,
    /// Two possible moments, both ahead, in local time.
    #[error("could be {} or {}; please say which", format_time(.0), format_time(.1))]
    Either(NaiveDateTime, NaiveDateTime),
    /// Two possible times of day.
    #[error("could be at {} or at {}; please say which", .0.format("%H:%M"), .1.format("%H:%M"))]
    EitherTime(NaiveTime, NaiveTime),
    /// A number that could be a day or an hour, such as "Friday 10".
    #[error("could name a day or an hour; please say “Friday the 10th” or “Friday at 10”")]
    DayOrHour,
    /// An ambiguous rhythm, such as "biweekly".
    #[error(
        "means different things to different people; please say something like “every 2 weeks” or “every third week”"
    )]
    TwoRhythms,
    /// An ambiguous time zone, such as "IST".
    #[error(
        "names a time zone that means different times in different countries; please name a city, such as “9:00 Chicago time”"
    )]
    UnsureZone,
    /// A number of times without the times, such as "twice a day".
    #[error("needs the times, for example “every day at 8 and 20”")]
    NeedsTimes,
    /// Hours without their range, such as "every 2 hours on weekdays".
    #[error("needs the hours, for example “every 2 hours from 9 to 17 on weekdays”")]
    NeedsHours,
    /// An ambiguous set of days, such as "every weekend".
    #[error("could be Saturdays, Sundays or both; please say something like “every Saturday”")]
    WhichDays,
    /// A weekday that contradicts its date.
    #[error("names a weekday and a date that don't match")]
    WrongWeekday,
    /// A day that needs a time, such as "today".
    #[error("needs a time of day")]
    NeedsTime,
    /// A time too far ahead, such as "in 300 years".
    #[error("is too far away")]
    TooFar,
    /// Words beyond this grammar that may change the time.
    #[error("isn't a time that I fully understand; please give me one date, or one time and how often it repeats")]
    Unsupported,
}

/// Formats a local time for a question.
fn format_time(civil: &NaiveDateTime) -> String {
    civil.format("%A, %-d %B %Y at %H:%M").to_string()
}

/// Words that tie a time to a thing rather than to the reminder: "tickets for Friday", "the 9am meeting", "last week".
const TIES: &[&str] = &[
    "for", "until", "till", "before", "after", "since", "from", "about", "of", "by", "than", "last", "past",
    "previous", "not", "the", "my", "our", "your", "his", "her", "their", "a", "an", "this", "that",
];

/// Finds the time expression of a text: the one at its start, else at its end, else the first. Expressions tied to a thing
/// ("tickets for Friday", "the 9am meeting") don't count.
pub fn parse_when(text: &str, now: DateTime<Tz>) -> Option<FoundTime> {
    let tokens = split_tokens(text);
    let mut found = find_expressions(&tokens);
    let last_word = tokens.iter().rposition(|token| !token.is_mark());
    let best = found
        .iter()
        .position(|(range, _)| range.start == 0)
        .or_else(|| found.iter().position(|(range, _)| last_word.is_some_and(|last| range.end > last)))
        .unwrap_or(0);
    if best >= found.len() {
        return None;
    }
    let (range, draft) = found.swap_remove(best);
    let start = tokens.get(range.start)?.span.start;
    let end = tokens.get(range.end.checked_sub(1)?)?.span.end;
    let when = settle::settle(&draft, now);
    let when = found.iter().fold(when, |when, (_, other)| settle_either(when, &draft, other, now));
    Some(FoundTime { when, span: start..end })
}

/// Settles a draft in view of another time in the sentence. "Tomorrow … at 5" may be one time in two places.
fn settle_either(
    when: Result<When, TimeTrouble>,
    draft: &draft::Draft,
    other: &draft::Draft,
    now: DateTime<Tz>,
) -> Result<When, TimeTrouble> {
    let completes = draft.has_clock() != other.has_clock() && draft.part.is_none();
    let Some(both) = draft.merge(other).filter(|both| completes && both.trouble.is_none()) else { return when };
    match (when, settle::settle(&both, now)) {
        (Ok(When::At(one)), Ok(When::At(two))) if one != two => {
            Err(TimeTrouble::Either(one.civil.min(two.civil), one.civil.max(two.civil)))
        }
        (Ok(When::Every(one)), Ok(When::Every(two))) if one != two => Err(TimeTrouble::NeedsTimes),
        (Ok(one), Ok(two)) if one != two => Err(TimeTrouble::Unsupported),
        (Ok(_), Err(open @ (TimeTrouble::Either(..) | TimeTrouble::EitherTime(..)))) => Err(open),
        (when, _) => when,
    }
}

/// Splits a text into tokens, and words such as "Mon-Fri" and "Friday-Jun-15" into their parts.
fn split_tokens(text: &str) -> Vec<Token> {
    let is_name = |part: &str| is_weekday(part) || is_month(part);
    let mut tokens = Vec::new();
    for token in tokenize(text) {
        if !token.text.contains('-') || !token.text.split('-').next().is_some_and(is_name) {
            tokens.push(token);
            continue;
        }
        let (mut start, mut is_glued) = (token.span.start, token.glued);
        for part in token.text.split_inclusive('-') {
            let word = part.trim_end_matches('-');
            for piece in [word, part.strip_prefix(word).unwrap_or_default()] {
                if !piece.is_empty() {
                    tokens.push(Token { text: piece.to_owned(), span: start..start + piece.len(), glued: is_glued });
                    (start, is_glued) = (start + piece.len(), true);
                }
            }
        }
    }
    tokens
}

/// Parses a text that consists of a time alone; `None` for any other text.
pub fn parse_only_time(text: &str, now: DateTime<Tz>) -> Option<Result<When, TimeTrouble>> {
    let found = parse_when(text, now)?;
    let around = [text.get(..found.span.start)?, text.get(found.span.end..)?];
    around.iter().all(|rest| !rest.contains(char::is_alphanumeric)).then_some(found.when)
}

/// Parses a text that consists of a day alone, including today at any hour. A time of day is ignored. `None` for any other
/// text.
pub fn parse_only_day(text: &str, now: DateTime<Tz>) -> Option<Result<NaiveDate, TimeTrouble>> {
    let lower = text.trim().to_lowercase();
    let bare = ["by ", "on ", "until "].iter().find_map(|lead| lower.strip_prefix(lead)).unwrap_or(&lower);
    if bare == "today" {
        return Some(Ok(now.date_naive()));
    }
    // Days are resolved as if said early in the morning; hours count from now.
    let morning =
        resolve_local_time(now.date_naive().and_time(EARLY), now.timezone()).at.with_timezone(&now.timezone());
    let said_at = if bare.contains("hour") || bare.contains("minute") { now } else { morning };
    Some(match parse_only_time(bare, said_at)? {
        Ok(When::At(slot)) => Ok(slot.civil.date()),
        Ok(When::Every(_)) => Err(TimeTrouble::Unsupported),
        Err(TimeTrouble::Either(one, other)) if one.date() == other.date() => Ok(one.date()),
        Err(trouble) => Err(trouble),
    })
}

/// Returns true if the time is glued to a longer word: `archive-2018-09-23`, `2020/23/Sep`.
fn is_glued(start: Cursor<'_>) -> bool {
    let is_joint =
        |text: &str| matches!(text, "-" | "/" | "_" | "." | ":" | "+") || text.starts_with(char::is_alphanumeric);
    start.token().is_some_and(|token| token.glued)
        && start.previous_token().is_some_and(|before| is_joint(&before.text))
}

/// Returns true if only words about time precede: "1st week of October, on Friday", "early next week".
fn has_changer_before(start: Cursor<'_>) -> bool {
    const CHANGERS: &str =
        "early|late|mid|middle|end|beginning|start|week|weeks|of|in|the|on|at|,|.|by|not|day|month|year|quarter";
    let before: Vec<Cursor<'_>> = (0..start.index).map(|index| start.move_to(index)).collect();
    let is_timely = |word: &Cursor<'_>| {
        let is_ending = matches!(word.glued_text(), "st" | "nd" | "rd" | "th");
        is_ending
            || word.match_phrase(CHANGERS).is_some()
            || word.read_number().is_some()
            || word.read_ordinal().is_some()
            || word.read_month().is_some()
            || word.weekday_or_short().is_some()
    };
    let is_said = before.iter().any(|word| {
        word.match_phrase("early|late|mid|middle|end|beginning|start|week|weeks|month|year|quarter|not").is_some()
            || word.read_month().is_some()
    });
    is_said && before.iter().all(is_timely)
}

/// Finds all expressions that aren't tied to a thing, with their token ranges.
fn find_expressions(tokens: &[Token]) -> Vec<(Range<usize>, draft::Draft)> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(tokens, 0);
    while !cursor.is_end() {
        match pieces::read_expression(cursor) {
            Some(_) if is_glued(cursor) => cursor = cursor.next(),
            Some(_) if cursor.previous_token().is_some_and(|word| TIES.contains(&word.text.as_str())) => {
                cursor = pieces::read_run(cursor).map_or(cursor.next(), |(_, end)| end);
            }
            Some((mut draft, end)) => {
                if has_changer_before(cursor) {
                    draft.trouble = Some(TimeTrouble::Unsupported);
                }
                found.push((cursor.index..end.index, draft));
                cursor = end;
            }
            None => cursor = cursor.next(),
        }
    }
    found
}
