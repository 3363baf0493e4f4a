//! Reads times in English: finds one expression inside a sentence and says where it stands, so that the rest is the
//! reminder's text.
//!
//! Three steps. `pieces` and `every` turn tokens into a draft: a day, a time of day, a part of the day, a distance, a
//! recurrence. Pieces that stand together are merged. `settle` holds the draft against the present.
//!
//! Two readings that set different times are a question ([`TimeTrouble::Either`]), and so are words right behind a time that would
//! change it. What English leaves to habit is decided here, once; the answer names the day and time, so that the person sees it:
//! - An hour without its half of the day is as it stands from 7 to 12 ("at 8" is 08:00). From 1 to 6 it is a question, but for a day
//!   on which only one of both is ahead. Where either comes within three hours ("at 11:30", said at 23:28), that one is meant.
//! - A day without a time is at 09:00. Morning is 09:00, afternoon 15:00, evening 19:00, tonight 20:00.
//! - "Friday" is the next one after today; "next Friday" is Friday of the next calendar week, which starts on Monday.
//! - A date without a year is the next one. "Midnight" of a day is a question: its beginning or its end.
//! - "In 20 minutes" counts elapsed time; "in 2 days" keeps the wall time of now. A lone "today" needs a time.
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
    Rule, Slot, resolve,
    words::{Cursor, Token, is_month, is_weekday, tokenize},
};

/// What a day without a time means.
pub const DEFAULT_TIME: NaiveTime = hour(9);
/// What a morning without an hour means.
pub const MORNING: NaiveTime = hour(9);
/// What an afternoon without an hour means.
pub const AFTERNOON: NaiveTime = hour(15);
/// What an evening without an hour means.
pub const EVENING: NaiveTime = hour(19);
/// What a night without an hour means.
pub const NIGHT: NaiveTime = hour(20);

/// When a day has begun and nothing of it is over.
const EARLY: NaiveTime = hour(6);

/// How far ahead a time may lie.
pub const MAX_YEARS_AHEAD: i32 = 50;

const fn hour(hour: u32) -> NaiveTime {
    match NaiveTime::from_hms_opt(hour, 0, 0) {
        Some(time) => time,
        None => NaiveTime::MIN,
    }
}

/// A time expression in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTime {
    /// What it means, or why it can't be used.
    pub when: Result<When, TimeTrouble>,
    /// Where it stands in the text, in bytes, its preposition included.
    pub span: Range<usize>,
}

/// A time that is ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Once.
    At(Slot),
    /// Again and again.
    Every(Rule),
}

/// Why an expression gives no time; each sentence goes well after the expression in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeTrouble {
    /// It lies behind.
    #[error("has already passed")]
    Past,
    /// 30 February.
    #[error("is not a day of the calendar")]
    NoSuchDay,
    /// 25:00.
    #[error("is not a time of day")]
    NoSuchTime,
    /// Two moments, both ahead, as wall times of the person's.
    #[error("could be {} or {}; please say which", spoken(.0), spoken(.1))]
    Either(NaiveDateTime, NaiveDateTime),
    /// Two times of day.
    #[error("could be at {} or at {}; please say which", .0.format("%H:%M"), .1.format("%H:%M"))]
    EitherTime(NaiveTime, NaiveTime),
    /// Friday 10.
    #[error("could name a day or an hour; please say “Friday the 10th” or “Friday at 10”")]
    DayOrHour,
    /// Biweekly.
    #[error(
        "means two different rhythms to different people; please say such as “every 2 weeks” or “every third week”"
    )]
    TwoRhythms,
    /// IST.
    #[error(
        "names a time zone that several countries use for different times; please say a city, such as “9:00 Chicago time”"
    )]
    UnsureZone,
    /// Twice a day.
    #[error("needs the times, such as “every day at 8 and 20”")]
    NeedsTimes,
    /// Every 2 hours on weekdays.
    #[error("needs the hours, such as “every 2 hours from 9 to 17 on weekdays”")]
    NeedsHours,
    /// Every weekend.
    #[error("could be Saturdays, Sundays or both; please say such as “every Saturday”")]
    WhichDays,
    /// Monday, 5 December, when that is a Saturday.
    #[error("names a weekday and a date that don't belong together")]
    WrongWeekday,
    /// Today, without an hour.
    #[error("needs a time of day")]
    NeedsTime,
    /// In 300 years.
    #[error("is too far away")]
    TooFar,
    /// Words that weren't understood and may change the time.
    #[error("isn't a time that I understand in full; please give me one date, or one time and how often it comes")]
    Unsupported,
}

/// A wall time as a question offers it.
fn spoken(civil: &NaiveDateTime) -> String {
    civil.format("%A, %-d %B %Y at %H:%M").to_string()
}

/// Words that tie a time to a thing instead of saying when to act: "tickets for Friday", "the 9am meeting", "last week".
const TIES: &[&str] = &[
    "for", "until", "till", "before", "after", "since", "from", "about", "of", "by", "than", "last", "past",
    "previous", "not", "the", "my", "our", "your", "his", "her", "their", "a", "an", "this", "that",
];

/// Finds the expression of a text that says when: the one it begins with, else the one it ends with, else the first.
/// Expressions that are tied to a thing ("tickets for Friday", "the 9am meeting") don't count.
pub fn parse_when(text: &str, now: DateTime<Tz>) -> Option<FoundTime> {
    let tokens = tokens_of(text);
    let mut found = scan(&tokens);
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
    let when = found.iter().fold(when, |when, (_, other)| either(when, &draft, other, now));
    Some(FoundTime { when, span: start..end })
}

/// The meaning of a draft beside another time of the same sentence. "Tomorrow … at 5" may be one time said in two places.
fn either(
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

/// The tokens of a text, with words such as "Mon-Fri" and "Friday-Jun-15" cut apart.
fn tokens_of(text: &str) -> Vec<Token> {
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

/// Reads a text that is a time and nothing else; `None` where anything of it isn't.
pub fn parse_only_time(text: &str, now: DateTime<Tz>) -> Option<Result<When, TimeTrouble>> {
    let found = parse_when(text, now)?;
    let around = [text.get(..found.span.start)?, text.get(found.span.end..)?];
    around.iter().all(|rest| !rest.contains(char::is_alphanumeric)).then_some(found.when)
}

/// Reads a text that is a day and nothing else, which may be today, whatever the time. A time of day in it doesn't count. `None` where
/// it is no day.
pub fn parse_only_day(text: &str, now: DateTime<Tz>) -> Option<Result<NaiveDate, TimeTrouble>> {
    let lower = text.trim().to_lowercase();
    let bare = ["by ", "on ", "until "].iter().find_map(|lead| lower.strip_prefix(lead)).unwrap_or(&lower);
    if bare == "today" {
        return Some(Ok(now.date_naive()));
    }
    // Days are read as they are said early in the morning; what counts hours counts from now.
    let morning = resolve(now.date_naive().and_time(EARLY), now.timezone()).at.with_timezone(&now.timezone());
    let said_at = if bare.contains("hour") || bare.contains("minute") { now } else { morning };
    Some(match parse_only_time(bare, said_at)? {
        Ok(When::At(slot)) => Ok(slot.civil.date()),
        Ok(When::Every(_)) => Err(TimeTrouble::Unsupported),
        Err(TimeTrouble::Either(one, other)) if one.date() == other.date() => Ok(one.date()),
        Err(trouble) => Err(trouble),
    })
}

/// Whether something stands right before a time that makes it a part of a longer word: `archive-2018-09-23`, `2020/23/Sep`.
fn is_glued(start: Cursor<'_>) -> bool {
    let is_joint =
        |text: &str| matches!(text, "-" | "/" | "_" | "." | ":" | "+") || text.starts_with(char::is_alphanumeric);
    start.token().is_some_and(|token| token.glued) && start.previous().is_some_and(|before| is_joint(&before.text))
}

/// Whether all that stands before a time are words about time: "1st week of October, on Friday", "early next week".
fn is_changed_before(start: Cursor<'_>) -> bool {
    const CHANGERS: &str =
        "early|late|mid|middle|end|beginning|start|week|weeks|of|in|the|on|at|,|.|by|not|day|month|year|quarter";
    let before: Vec<Cursor<'_>> = (0..start.index).map(|index| start.to(index)).collect();
    let is_timely = |word: &Cursor<'_>| {
        let is_ending = matches!(word.glued_text(), "st" | "nd" | "rd" | "th");
        is_ending
            || word.phrase(CHANGERS).is_some()
            || word.number().is_some()
            || word.ordinal().is_some()
            || word.month().is_some()
            || word.weekday_or_short().is_some()
    };
    let is_said = before.iter().any(|word| {
        word.phrase("early|late|mid|middle|end|beginning|start|week|weeks|month|year|quarter|not").is_some()
            || word.month().is_some()
    });
    is_said && before.iter().all(is_timely)
}

/// All expressions that aren't tied to something else, by their token ranges.
fn scan(tokens: &[Token]) -> Vec<(Range<usize>, draft::Draft)> {
    let mut found = Vec::new();
    let mut cursor = Cursor::at(tokens, 0);
    while !cursor.is_end() {
        match pieces::read_expression(cursor) {
            Some(_) if is_glued(cursor) => cursor = cursor.next(),
            Some(_) if cursor.previous().is_some_and(|word| TIES.contains(&word.text.as_str())) => {
                cursor = pieces::read_run(cursor).map_or(cursor.next(), |(_, end)| end);
            }
            Some((mut draft, end)) => {
                if is_changed_before(cursor) {
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
