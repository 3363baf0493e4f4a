//! The parts of a time expression as said, before they are resolved against the present.

use chrono::{NaiveDate, NaiveTime, Weekday, WeekdaySet};

use super::{TimeTrouble, zones::SaidZone};

/// A draft of a time. Each field is a part that was said. [`Draft::merge`] refuses to set a part twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// The named days; several days mean each of them.
    pub(super) days: Vec<DraftDay>,
    /// A weekday next to a date, which must match the date.
    pub(super) weekday: Option<Weekday>,
    /// The times of day; several mean each of them.
    pub(super) clocks: Vec<DraftClock>,
    pub(super) part: Option<DraftPart>,
    /// True if the part was "early" or "late", which requires an hour.
    pub(super) is_vague: bool,
    pub(super) zone: Option<SaidZone>,
    /// A distance from now, or from the adjacent day and time.
    pub(super) distance: Option<Distance>,
    pub(super) every: Option<Every>,
    pub(super) bounds: Bounds,
    pub(super) trouble: Option<TimeTrouble>,
}

/// The limits and exceptions of a recurrence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) from: Option<DraftDay>,
    pub(super) until: Option<DraftDay>,
    pub(super) count: Option<u32>,
    pub(super) span: Option<Distance>,
    pub(super) except: Vec<DraftDay>,
    pub(super) except_on: WeekdaySet,
    /// The weekdays for repeated hours or minutes.
    pub(super) only_on: WeekdaySet,
    /// The first and last hour of the day for a repetition.
    pub(super) hours: Option<(DraftClock, DraftClock)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftDay {
    /// Days from today; yesterday is -1.
    FromToday(i64),
    Weekday(Weekday, DraftWhich),
    Weekend(DraftWhich),
    Date {
        year: Option<i32>,
        month: u32,
        day: u32,
    },
    /// Two possible dates for the same figures, such as `5/12`.
    EitherDate {
        year: Option<i32>,
        one: u32,
        two: u32,
    },
    /// A day of a month; negative numbers count from its end.
    OfMonth(i32, Month),
    /// A weekday with a day of the month, such as "Sunday 6th".
    WeekdayOfMonth(Weekday, u32),
    /// The nth weekday of a month; negative numbers count from its end.
    NthWeekday(i32, Weekday, Month),
    /// A holiday with a different date each year.
    Feast(Feast, Option<i32>),
    NextWeek,
    NextMonth,
    NextYear,
    /// A fully written date.
    Exact(NaiveDate),
}

/// A holiday with a moving date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feast {
    /// Days from Easter Sunday.
    Easter(i64),
    /// The nth weekday of a month, and days from it.
    Nth { month: u32, nth: i32, weekday: Weekday, days: i64 },
    /// The nth Sunday of Advent.
    Advent(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftWhich {
    /// The next such day after today.
    Coming,
    /// The day of the next calendar week.
    Next,
    /// "Next Friday": the coming one, or that of next week.
    ComingOrNext,
    /// The day of the week after next.
    AfterNext,
    /// A number of weeks after the coming one: "a week on Friday".
    WeeksAfter(u32),
    /// The day of this calendar week, which may be past.
    ThisWeek,
    /// A past day.
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Month {
    Any,
    This,
    Next,
    /// A month of the year.
    Named(u32, Option<i32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftClock {
    /// A definite time.
    Literal(NaiveTime),
    /// An hour from 1 to 12 without am or pm.
    Open { hour: u32, minute: u32 },
    /// The beginning or the end of a day.
    Midnight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftPart {
    Morning,
    Afternoon,
    Evening,
    Night,
    Tonight,
}

/// A distance in time. Months and days move the date and keep the local time; seconds elapse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Distance {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) seconds: u32,
    /// True if counted backwards: "an hour before".
    pub(super) is_back: bool,
    /// True if counted from the adjacent day and time instead of now.
    pub(super) is_from_said: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Every {
    Minutes(u32),
    Days(u32),
    /// Without weekdays: on a day named elsewhere, or today's.
    Weeks(u32, WeekdaySet),
    Months(u32),
    /// The nth weekdays of each so many months.
    Nth(u32, Vec<(i32, Weekday)>),
    /// The nth working day of each so many months.
    Workday(u32, i32),
    Years(u32),
}

impl Draft {
    pub(super) fn from_day(day: DraftDay) -> Self {
        Self { days: vec![day], ..Self::default() }
    }

    pub(super) fn from_clock(clock: DraftClock) -> Self {
        Self { clocks: vec![clock], ..Self::default() }
    }

    pub(super) fn from_part(part: DraftPart) -> Self {
        Self { part: Some(part), ..Self::default() }
    }

    pub(super) fn from_distance(distance: Distance) -> Self {
        Self { distance: Some(distance), ..Self::default() }
    }

    pub(super) fn from_every(every: Every) -> Self {
        Self { every: Some(every), ..Self::default() }
    }

    pub(super) fn from_trouble(trouble: TimeTrouble) -> Self {
        Self { trouble: Some(trouble), ..Self::default() }
    }

    pub(super) fn has_clock(&self) -> bool {
        !self.clocks.is_empty()
    }

    /// Merges two drafts. `None` if they set the same part twice or don't fit together.
    pub(super) fn merge(&self, other: &Self) -> Option<Self> {
        // "Every 2 hours on weekdays": both parts are recurrences.
        for (hours, days) in [(self, other), (other, self)] {
            if let (Some(Every::Minutes(_)), Some(Every::Weeks(1, on))) = (&hours.every, &days.every) {
                let rest = Self { every: None, bounds: Bounds { only_on: *on, ..days.bounds.clone() }, ..days.clone() };
                return hours.merge(&rest);
            }
        }
        let before = || other.distance.and_then(|_| other.confirm_weekday(self));
        if let Some(confirmed) = self.confirm_weekday(other).or_else(before) {
            return confirmed.filter(Self::is_sound);
        }
        let merged = Self {
            days: merge_days(self, other)?,
            weekday: pick_one(self.weekday, other.weekday)?,
            clocks: one_list(&self.clocks, &other.clocks)?,
            part: merge_parts(self, other)?,
            is_vague: self.is_vague || other.is_vague,
            zone: pick_one(self.zone, other.zone)?,
            distance: pick_one(self.distance, other.distance)?,
            every: pick_one(self.every.clone(), other.every.clone())?,
            bounds: self.bounds.merge(&other.bounds)?,
            trouble: self.trouble.or(other.trouble),
        };
        Some(merged).filter(Self::is_sound)
    }

    /// Merges a weekday that only confirms another day: "in 3 days on Friday", "tomorrow, Sunday". The outer `None` means another
    /// case; the inner `None` means two different weekdays.
    fn confirm_weekday(&self, weekday: &Self) -> Option<Option<Self>> {
        let [DraftDay::Weekday(named, DraftWhich::Coming)] = weekday.days[..] else { return None };
        if !matches!(self.days[..], [DraftDay::FromToday(_)])
            && self.distance.is_none_or(|distance| distance.seconds > 0)
        {
            return None;
        }
        let rest = Self { days: Vec::new(), ..weekday.clone() };
        Some(self.merge(&rest).and_then(|both| Some(Self { weekday: pick_one(both.weekday, Some(named))?, ..both })))
    }

    fn is_sound(&self) -> bool {
        let from_now = self.distance.is_some_and(|distance| !distance.is_from_said);
        let is_timed = self.has_clock() || self.part.is_some();
        if from_now && (!self.days.is_empty() || is_timed && self.distance.is_some_and(|distance| distance.seconds > 0))
        {
            return false;
        }
        match &self.every {
            None => true,
            Some(every) => self.distance.is_none() && self.days.iter().all(|day| is_compatible(every, *day)),
        }
    }
}

impl Bounds {
    fn merge(&self, other: &Self) -> Option<Self> {
        Some(Self {
            from: pick_one(self.from, other.from)?,
            until: pick_one(self.until, other.until)?,
            count: pick_one(self.count, other.count)?,
            span: pick_one(self.span, other.span)?,
            except: one_list(&self.except, &other.except)?,
            except_on: one_set(self.except_on, other.except_on)?,
            only_on: one_set(self.only_on, other.only_on)?,
            hours: pick_one(self.hours, other.hours)?,
        })
    }
}

/// Returns true if a recurrence can come on such a day.
fn is_compatible(every: &Every, day: DraftDay) -> bool {
    match (every, day) {
        (Every::Weeks(_, on), DraftDay::Weekday(_, DraftWhich::Coming)) => on.is_empty(),
        (Every::Months(_), DraftDay::OfMonth(_, Month::Any)) => true,
        (Every::Years(_), DraftDay::Date { year: None, .. } | DraftDay::Feast(_, None)) => true,
        (Every::Years(_), DraftDay::NthWeekday(_, _, Month::Named(_, None))) => true,
        _ => false,
    }
}

/// The present value of two; `None` if both are present.
fn pick_one<T>(one: Option<T>, two: Option<T>) -> Option<Option<T>> {
    match (one, two) {
        (Some(_), Some(_)) => None,
        (one, two) => Some(one.or(two)),
    }
}

fn one_set(one: WeekdaySet, two: WeekdaySet) -> Option<WeekdaySet> {
    match (one.is_empty(), two.is_empty()) {
        (true, _) => Some(two),
        (_, true) => Some(one),
        _ => None,
    }
}

fn one_list<T: Copy>(one: &[T], two: &[T]) -> Option<Vec<T>> {
    match (one, two) {
        ([], list) | (list, []) => Some(list.to_vec()),
        _ => None,
    }
}

/// Merges parts of the day. "This evening … tonight" may repeat, "in the morning … tonight" may not.
fn merge_parts(one: &Draft, two: &Draft) -> Option<Option<DraftPart>> {
    match (one.part, two.part) {
        (Some(DraftPart::Night), Some(DraftPart::Tonight)) | (Some(DraftPart::Tonight), Some(DraftPart::Night)) => {
            Some(Some(DraftPart::Tonight))
        }
        (one, two) => pick_one(one, two),
    }
}

fn merge_days(one: &Draft, two: &Draft) -> Option<Vec<DraftDay>> {
    match (&one.days[..], &two.days[..]) {
        ([], days) | (days, []) => Some(days.to_vec()),
        ([one], [two]) => Some(vec![join_days(*one, *two)?]),
        _ => None,
    }
}

/// Joins two days: "next week on Friday", "Tuesday of next week", "tomorrow, 25 December".
fn join_days(one: DraftDay, two: DraftDay) -> Option<DraftDay> {
    match (one, two) {
        (DraftDay::NextWeek, DraftDay::Weekday(day, DraftWhich::Coming))
        | (DraftDay::Weekday(day, DraftWhich::Coming), DraftDay::NextWeek) => {
            Some(DraftDay::Weekday(day, DraftWhich::Next))
        }
        (DraftDay::NextMonth, DraftDay::OfMonth(day, Month::Any))
        | (DraftDay::OfMonth(day, Month::Any), DraftDay::NextMonth) => Some(DraftDay::OfMonth(day, Month::Next)),
        (one, two) if one == two => Some(one),
        _ => None,
    }
}
