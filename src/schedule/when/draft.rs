//! What pieces of an expression say, before it is held against the present.

use chrono::{NaiveTime, Weekday, WeekdaySet};

use super::{super::rule::Nth, TimeTrouble};

/// Each field is what one piece said. Pieces that say different things merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) day: Option<DraftDay>,
    /// The weekday that was named beside a date, with which it must agree.
    pub(super) weekday: Option<Weekday>,
    pub(super) clock: Option<DraftClock>,
    pub(super) part: Option<DraftPart>,
    pub(super) distance: Option<Distance>,
    pub(super) every: Option<Every>,
    pub(super) trouble: Option<TimeTrouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftDay {
    /// So many days from today; yesterday is -1.
    FromToday(i64),
    Weekday(Weekday, DraftWhich),
    /// Saturday, or what is left of the weekend.
    Weekend(DraftWhich),
    Date {
        year: Option<i32>,
        month: u32,
        day: u32,
    },
    OfMonth(u32, Month),
    NextWeek,
    NextMonth,
    NextYear,
    EndOfMonth(DraftWhich),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftWhich {
    Coming,
    Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Month {
    Any,
    This,
    Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftClock {
    /// As it stands.
    Literal(NaiveTime),
    /// An hour from 1 to 12, of which half of the day isn't said.
    Open { hour: u32, minute: u32 },
    /// The end of a day.
    Midnight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftPart {
    Morning,
    Afternoon,
    Evening,
    Night,
}

/// Months and days move the date and keep the wall time, seconds elapse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Distance {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Every {
    Minutes(u32),
    Days(u32),
    /// Without days: on a day that another piece names, or today's.
    Weeks(u32, WeekdaySet),
    Months(u32),
    Nth(Nth, Weekday),
    Years,
}

impl Draft {
    pub(super) fn day(day: DraftDay) -> Self {
        Self { day: Some(day), ..Self::default() }
    }

    pub(super) fn clock(clock: DraftClock) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    pub(super) fn part(part: DraftPart) -> Self {
        Self { part: Some(part), ..Self::default() }
    }

    pub(super) fn distance(distance: Distance) -> Self {
        Self { distance: Some(distance), ..Self::default() }
    }

    pub(super) fn every(every: Every) -> Self {
        Self { every: Some(every), ..Self::default() }
    }

    pub(super) fn trouble(trouble: TimeTrouble) -> Self {
        Self { trouble: Some(trouble), ..Self::default() }
    }

    /// Both together, unless they say the same kind of thing twice or what can't go together.
    pub(super) fn merge(self, other: Self) -> Option<Self> {
        let merged = Self {
            day: match (self.day, other.day) {
                (Some(one), Some(two)) => Some(day_of_next_week(one, two)?),
                (one, two) => one.or(two),
            },
            weekday: one_of(self.weekday, other.weekday)?,
            clock: one_of(self.clock, other.clock)?,
            part: one_of(self.part, other.part)?,
            distance: one_of(self.distance, other.distance)?,
            every: one_of(self.every, other.every)?,
            trouble: self.trouble.or(other.trouble),
        };
        merged.is_sound().then_some(merged)
    }

    fn is_sound(&self) -> bool {
        let timed = self.clock.is_some() || self.part.is_some();
        let distance_alone = match self.distance {
            Some(distance) => self.day.is_none() && self.every.is_none() && !(timed && distance.seconds > 0),
            None => true,
        };
        let day_fits = match (self.every, self.day) {
            (None, _) | (_, None) => true,
            (Some(Every::Weeks(_, on)), Some(DraftDay::Weekday(..))) => on.is_empty(),
            (Some(Every::Months(_)), Some(DraftDay::OfMonth(_, Month::Any))) => true,
            (Some(Every::Years), Some(DraftDay::Date { year: None, .. })) => true,
            _ => false,
        };
        distance_alone && day_fits
    }
}

/// The one that is there; `None` if both are.
fn one_of<T>(one: Option<T>, two: Option<T>) -> Option<Option<T>> {
    match (one, two) {
        (Some(_), Some(_)) => None,
        (one, two) => Some(one.or(two)),
    }
}

/// "Next week on Friday", "on Friday next week".
fn day_of_next_week(one: DraftDay, two: DraftDay) -> Option<DraftDay> {
    match (one, two) {
        (DraftDay::NextWeek, DraftDay::Weekday(day, DraftWhich::Coming))
        | (DraftDay::Weekday(day, DraftWhich::Coming), DraftDay::NextWeek) => {
            Some(DraftDay::Weekday(day, DraftWhich::Next))
        }
        _ => None,
    }
}
