//! Times relative to an event: "15 minutes before the meeting", "the day before the dentist". The caller looks up the event; this
//! module finds its name in the text and does the arithmetic.

use std::ops::Range;

use chrono::{DateTime, NaiveDate};

use super::{
    super::{Slot, resolve_local_time, words::Cursor},
    DEFAULT_TIME, TimeTrouble,
    calendar::Present,
    distance::{read_amount, unit_of_time},
    draft::Distance,
    parse_when, settle, split_tokens,
};
use crate::zone::Tz;

/// A distance from the time of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelativeTime {
    distance: Distance,
    /// The event in the person's words.
    pub thing: String,
    /// The byte range of the expression. A following " to …" is left out.
    pub span: Range<usize>,
}

impl RelativeTime {
    /// Counts from the time slot of the event.
    ///
    /// # Errors
    /// Fails if the result has passed or is too far ahead.
    pub fn from_slot(&self, slot: Slot, now: DateTime<Tz>) -> Result<Slot, TimeTrouble> {
        let present = Present::new(now);
        settle::pick_moment(vec![settle::move_slot(slot, self.distance, &present)?], &present)
    }

    /// Counts from the day of an event whose time is unknown. Only distances in whole days work.
    ///
    /// # Errors
    /// As [`Self::from_slot`]; or [`TimeTrouble::NeedsTime`] if the distance includes hours or minutes.
    pub fn from_day(&self, day: NaiveDate, now: DateTime<Tz>) -> Result<Slot, TimeTrouble> {
        if self.distance.seconds > 0 {
            return Err(TimeTrouble::NeedsTime);
        }
        self.from_slot(resolve_local_time(day.and_time(DEFAULT_TIME), now.timezone()), now)
    }
}

/// Finds a relative expression. Distances from a day or time ("half an hour before noon") don't count, as they need no lookup.
pub fn parse_relative(text: &str, now: DateTime<Tz>) -> Option<RelativeTime> {
    let tokens = split_tokens(text);
    (0..tokens.len()).find_map(|index| {
        let start = Cursor::new(&tokens, index);
        let (distance, end) = read_total(start)?;
        let (is_back, after) =
            end.match_table(&[("before", true), ("ahead of", true), ("prior to", true), ("after", false)])?;
        let from = after.token()?.span.start;
        // "Before the meeting to print the slides": the words before " to " name the event.
        let rest = text.get(from..)?;
        let named = if index == 0 { rest.split(" to ").next().unwrap_or(rest) } else { rest };
        let named = named.trim_end_matches(|c: char| c.is_whitespace() || ".,;:!?".contains(c));
        let bare = ["the ", "my ", "our "].iter().find_map(|article| {
            named.get(..article.len()).filter(|lead| lead.eq_ignore_ascii_case(article))?;
            named.get(article.len()..)
        });
        let thing = bare.unwrap_or(named).trim().to_owned();
        let is_time = parse_when(named, now).is_some_and(|found| found.span.start == 0);
        let distance = Distance { is_back, is_from_said: true, ..distance };
        let span = tokens.get(index)?.span.start..from + named.len();
        (!is_time && thing.contains(char::is_alphabetic)).then_some(RelativeTime { distance, thing, span })
    })
}

/// Parses a total distance: "15 minutes", "an hour and a half", "the day".
fn read_total(start: Cursor<'_>) -> Option<(Distance, Cursor<'_>)> {
    if let Some((unit, end)) = start.match_phrase("the").and_then(unit_of_time) {
        return Some((super::distance::multiply_unit(unit, 4)?, end));
    }
    let (mut total, mut end) = read_amount(start)?;
    while let Some((more, after)) = read_amount(end.skip("?, ?and")) {
        (total, end) = (super::distance::add_distances(total, more)?, after);
    }
    Some((total, end))
}

/// Returns true if a text is a distance alone: "1 hour", "in 20 minutes", "for 2 days".
pub fn is_distance(text: &str) -> bool {
    let tokens = split_tokens(text);
    read_total(Cursor::new(&tokens, 0).skip("?in|for|by")).is_some_and(|(_, end)| end.skip("?later|more").is_end())
}
