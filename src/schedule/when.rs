//! Reads times in English: finds one expression inside a sentence and says where it stands, so that the rest is the
//! reminder's text.
//!
//! Three steps. `pieces` and `every` turn tokens into a draft: a day, a time of day, a part of the day, a distance, a
//! recurrence. Pieces that stand together are merged. `settle` holds the draft against the present.
//!
//! What is ambiguous in English is decided here, once; the answer names the day and time, so that the person sees it:
//! - A bare hour from 1 to 6 is in the afternoon ("at 5" is 17:00), from 7 to 12 as it stands ("at 7" is 07:00). A leading zero, 13 and
//!   above, am or pm and "in the morning" are literal. "Today at 9", said at noon, is 21:00.
//! - A day without a time is at 09:00. Morning is 09:00, afternoon 15:00, evening 19:00, tonight 20:00.
//! - "Friday" is the next one after today; "next Friday" is Friday of the next calendar week, which starts on Monday.
//! - A date without a year is the next one. "Midnight" of a day is its end.
//! - "In 20 minutes" counts elapsed time; "in 2 days" keeps the wall time of now. A lone "today" needs a time.
//! - `5.12.` is 5 December; `5/12` could be two days and is asked back; `5.12` is no date.

mod clock;
mod date;
mod distance;
mod draft;
mod every;
mod pieces;
mod settle;
#[cfg(test)]
mod tests;

use std::ops::Range;

use chrono::{DateTime, NaiveTime};

use crate::zone::Tz;

use super::{
    Rule, Slot,
    words::{Cursor, Token, tokenize},
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
    /// 5/12.
    #[error("could mean two days; write the month's name, or a date like 2026-12-05")]
    Ambiguous,
    /// Monday, 5 December, when that is a Saturday.
    #[error("names a weekday and a date that don't belong together")]
    WrongWeekday,
    /// Today, without an hour.
    #[error("needs a time of day")]
    NeedsTime,
    /// In 300 years.
    #[error("is too far away")]
    TooFar,
    /// Twice a day, every day until Friday, at 8 and at 18.
    #[error("is more than I can schedule; give me one date, or one time and how often it comes")]
    Unsupported,
}

/// Words that tie a time to a thing instead of saying when to act: "tickets for Friday", "the 9am meeting", "last week".
const TIES: &[&str] = &[
    "for", "until", "till", "before", "after", "since", "from", "about", "of", "by", "than", "last", "past",
    "previous", "not", "the", "my", "our", "your", "his", "her", "their", "a", "an", "this", "that",
];

/// Finds the expression of a text that says when: the one it begins with, else the one it ends with, else the first.
/// Expressions that are tied to a thing ("tickets for Friday", "the 9am meeting") don't count.
pub fn parse_when(text: &str, now: DateTime<Tz>) -> Option<FoundTime> {
    let tokens = tokenize(text);
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
    Some(FoundTime { when: settle::settle(&draft, now), span: start..end })
}

/// Reads a text that is a time and nothing else; none where anything of it isn't. After a day a bare hour counts: "tomorrow 10".
pub fn parse_only_time(text: &str, now: DateTime<Tz>) -> Option<Result<When, TimeTrouble>> {
    let whole = |text: &str| {
        let found = parse_when(text, now)?;
        let around = [text.get(..found.span.start)?, text.get(found.span.end..)?];
        around.iter().all(|rest| !rest.contains(char::is_alphanumeric)).then_some(found.when)
    };
    whole(text).or_else(|| {
        let (day, hour) = text.trim().rsplit_once(char::is_whitespace)?;
        whole(&format!("{day} at {hour}"))
    })
}

/// All expressions that aren't tied to something else, by their token ranges.
fn scan(tokens: &[Token]) -> Vec<(Range<usize>, draft::Draft)> {
    let mut found = Vec::new();
    let mut cursor = Cursor::at(tokens, 0);
    while !cursor.is_end() {
        match pieces::expression(cursor) {
            Some((draft, end)) => {
                if !cursor.previous().is_some_and(|word| TIES.contains(&word.text.as_str())) {
                    found.push((cursor.index..end.index, draft));
                }
                cursor = end;
            }
            None => cursor = cursor.next(),
        }
    }
    found
}
