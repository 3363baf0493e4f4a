//! The parts of an expression as they were said, before they are held against the present.

use chrono::{NaiveDate, NaiveTime, Weekday, WeekdaySet};

use super::{TimeTrouble, zones::SaidZone};

/// Each field is one thing that was said. [`Draft::merge`] refuses to say the same thing twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// The days named; several mean each of them.
    pub(super) days: Vec<DraftDay>,
    /// A weekday named beside a date, which must agree with it.
    pub(super) weekday: Option<Weekday>,
    /// The times of day; several mean each of them.
    pub(super) clocks: Vec<DraftClock>,
    pub(super) part: Option<DraftPart>,
    /// "Early" or "late" was said of the part, which an hour has to settle.
    pub(super) is_vague: bool,
    pub(super) zone: Option<SaidZone>,
    /// A distance from now, or from the day and time that stand beside it.
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
    /// The weekdays on which hours or minutes are repeated.
    pub(super) only_on: WeekdaySet,
    /// The first and last hour of the day between which something is repeated.
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
    /// Two dates that the same figures can mean, such as `5/12`.
    EitherDate {
        year: Option<i32>,
        one: u32,
        two: u32,
    },
    /// A day of a month; negative days count from its end.
    OfMonth(i32, Month),
    /// A weekday with a day of the month, such as "Sunday 6th".
    WeekdayOfMonth(Weekday, u32),
    /// The nth such weekday of a month; negative ones count from its end.
    NthWeekday(i32, Weekday, Month),
    /// A day that falls on another date each year.
    Feast(Feast, Option<i32>),
    NextWeek,
    NextMonth,
    NextYear,
    /// A date that was written in full.
    Exact(NaiveDate),
}

/// A holiday whose date moves.
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
    /// The next one after today.
    Coming,
    /// That of the next calendar week.
    Next,
    /// "Next Friday": the next one that comes, or the one of the week after this.
    ComingOrNext,
    /// That of the week after the next.
    AfterNext,
    /// So many weeks after the coming one: "a week on Friday".
    WeeksAfter(u32),
    /// That of this calendar week, which may lie behind.
    ThisWeek,
    /// One that lies behind.
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
    /// As it stands.
    Literal(NaiveTime),
    /// An hour from 1 to 12 without its half of the day.
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

/// Months and days move the date and keep the wall time, seconds elapse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Distance {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) seconds: u32,
    /// Counted backwards: "an hour before".
    pub(super) is_back: bool,
    /// Counted from the day and time that are said beside it, and not from now.
    pub(super) is_from_said: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Every {
    Minutes(u32),
    Days(u32),
    /// Without days: on a day that another part names, or today's.
    Weeks(u32, WeekdaySet),
    Months(u32),
    /// Such weekdays of each so many months.
    Nth(u32, Vec<(i32, Weekday)>),
    /// The nth working day of each so many months.
    Workday(u32, i32),
    Years(u32),
}

impl Draft {
    pub(super) fn day(day: DraftDay) -> Self {
        Self { days: vec![day], ..Self::default() }
    }

    pub(super) fn clock(clock: DraftClock) -> Self {
        Self { clocks: vec![clock], ..Self::default() }
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

    pub(super) fn has_clock(&self) -> bool {
        !self.clocks.is_empty()
    }

    /// Both together, or `None` if they say the same thing twice or don't go together.
    pub(super) fn merge(&self, other: &Self) -> Option<Self> {
        // "Every 2 hours on weekdays": both are said as recurrences.
        for (hours, days) in [(self, other), (other, self)] {
            if let (Some(Every::Minutes(_)), Some(Every::Weeks(1, on))) = (&hours.every, &days.every) {
                let rest = Self { every: None, bounds: Bounds { only_on: *on, ..days.bounds.clone() }, ..days.clone() };
                return hours.merge(&rest);
            }
        }
        let before = || other.distance.and_then(|_| other.confirm(self));
        if let Some(confirmed) = self.confirm(other).or_else(before) {
            return confirmed.filter(Self::is_sound);
        }
        let merged = Self {
            days: merge_days(self, other)?,
            weekday: one_of(self.weekday, other.weekday)?,
            clocks: one_list(&self.clocks, &other.clocks)?,
            part: merge_parts(self, other)?,
            is_vague: self.is_vague || other.is_vague,
            zone: one_of(self.zone, other.zone)?,
            distance: one_of(self.distance, other.distance)?,
            every: one_of(self.every.clone(), other.every.clone())?,
            bounds: self.bounds.merge(&other.bounds)?,
            trouble: self.trouble.or(other.trouble),
        };
        Some(merged).filter(Self::is_sound)
    }

    /// "In 3 days on Friday", "tomorrow, Sunday": a weekday beside another day only confirms it. `None` if it isn't that; the inner
    /// `None` if two weekdays were named.
    fn confirm(&self, weekday: &Self) -> Option<Option<Self>> {
        let [DraftDay::Weekday(named, DraftWhich::Coming)] = weekday.days[..] else { return None };
        if !matches!(self.days[..], [DraftDay::FromToday(_)])
            && self.distance.is_none_or(|distance| distance.seconds > 0)
        {
            return None;
        }
        let rest = Self { days: Vec::new(), ..weekday.clone() };
        Some(self.merge(&rest).and_then(|both| Some(Self { weekday: one_of(both.weekday, Some(named))?, ..both })))
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
            Some(every) => self.distance.is_none() && self.days.iter().all(|day| goes_with(every, *day)),
        }
    }
}

impl Bounds {
    fn merge(&self, other: &Self) -> Option<Self> {
        Some(Self {
            from: one_of(self.from, other.from)?,
            until: one_of(self.until, other.until)?,
            count: one_of(self.count, other.count)?,
            span: one_of(self.span, other.span)?,
            except: one_list(&self.except, &other.except)?,
            except_on: one_set(self.except_on, other.except_on)?,
            only_on: one_set(self.only_on, other.only_on)?,
            hours: one_of(self.hours, other.hours)?,
        })
    }
}

/// Days that a recurrence can be said to come on.
fn goes_with(every: &Every, day: DraftDay) -> bool {
    match (every, day) {
        (Every::Weeks(_, on), DraftDay::Weekday(_, DraftWhich::Coming)) => on.is_empty(),
        (Every::Months(_), DraftDay::OfMonth(_, Month::Any)) => true,
        (Every::Years(_), DraftDay::Date { year: None, .. } | DraftDay::Feast(_, None)) => true,
        (Every::Years(_), DraftDay::NthWeekday(_, _, Month::Named(_, None))) => true,
        _ => false,
    }
}

/// The one that is there; `None` if both are.
fn one_of<T>(one: Option<T>, two: Option<T>) -> Option<Option<T>> {
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

/// "This evening … tonight" may be said twice, "in the morning … tonight" may not.
fn merge_parts(one: &Draft, two: &Draft) -> Option<Option<DraftPart>> {
    match (one.part, two.part) {
        (Some(DraftPart::Night), Some(DraftPart::Tonight)) | (Some(DraftPart::Tonight), Some(DraftPart::Night)) => {
            Some(Some(DraftPart::Tonight))
        }
        (one, two) => one_of(one, two),
    }
}

fn merge_days(one: &Draft, two: &Draft) -> Option<Vec<DraftDay>> {
    match (&one.days[..], &two.days[..]) {
        ([], days) | (days, []) => Some(days.to_vec()),
        ([one], [two]) => Some(vec![join_days(*one, *two)?]),
        _ => None,
    }
}

/// "Next week on Friday", "Tuesday of next week", "tomorrow, 25 December".
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
