//! Recurrence: a rule names days and a local time, and steps from slot to slot.
//!
//! Every calendar rule answers a single question, "the first day on or after this one". The rest (DST, missed slots, strict order)
//! is solved once for all rules. The JSON form is stored in the database, so names and fields must stay.

mod calendar;

use std::fmt;

use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, NaiveTime, TimeDelta, Utc, Weekday, WeekdaySet};
use serde::{Deserialize, Serialize};

pub use self::calendar::{Calendar, CalendarDays, Exceptions};
pub(super) use self::calendar::{easter_sunday, find_nth_weekday};
use super::{Slot, resolve_local_time, words::MONTHS};
use crate::zone::Tz;

/// A recurrence. Zeros, which only damaged data can hold, count as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "every", rename_all = "snake_case")]
pub enum Rule {
    /// Every given number of minutes of elapsed time, counted from `anchor`, which isn't a slot itself.
    Interval {
        /// The step in minutes.
        minutes: u32,
        /// The start of counting.
        anchor: DateTime<Utc>,
    },
    /// Each day.
    Daily {
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// Each `n`th day, counted from `anchor`.
    Days {
        /// The step in days.
        n: u32,
        /// A matching day.
        anchor: NaiveDate,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On these days of each week.
    Weekly {
        /// The days.
        #[serde(with = "weekdays")]
        on: WeekdaySet,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On these days of each `n`th week (Monday to Sunday), counted from the week of `anchor`.
    Weeks {
        /// The step in weeks.
        n: u32,
        /// The days.
        #[serde(with = "weekdays")]
        on: WeekdaySet,
        /// A day in one of the weeks.
        anchor: NaiveDate,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On this day of each month; in shorter months on the last day.
    Monthly {
        /// 1 to 31.
        day: u32,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On this day of each `n`th month, counted from the month of `anchor`; in shorter months on the last day.
    Months {
        /// The step in months.
        n: u32,
        /// 1 to 31.
        day: u32,
        /// A day in one of the months.
        anchor: NaiveDate,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On the nth weekday of each month.
    MonthWeekday {
        /// The position in the month.
        nth: Nth,
        /// The weekday.
        weekday: Weekday,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// On this date of each year; 29 February is the 28th in common years.
    Yearly {
        /// 1 to 12.
        month: u32,
        /// 1 to 31.
        day: u32,
        /// Local time of day.
        #[serde(with = "hh_mm")]
        at: NaiveTime,
    },
    /// Rules beyond the plain ones: several times, limits, exceptions, rarer days.
    Calendar(Box<Calendar>),
}

/// The position of a weekday in its month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nth {
    /// The first.
    First,
    /// The second.
    Second,
    /// The third.
    Third,
    /// The fourth.
    Fourth,
    /// The last, be it the fourth or the fifth.
    Last,
}

/// Monday to Friday.
pub const WORKDAYS: WeekdaySet =
    WeekdaySet::from_array([Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri]);
/// Saturday and Sunday.
pub const WEEKEND: WeekdaySet = WeekdaySet::from_array([Weekday::Sat, Weekday::Sun]);

/// The shift in hours from which a slot lies on a day that its zone skipped (Samoa had no 30 December 2011).
const DAY_LEFT_OUT_H: i64 = 24;
/// The maximum number of days that [`Rule::next_after`] tries. Two or three are enough in practice.
const MAX_TRIES: usize = 16;
/// The last year supported: chrono panics near its own limits.
const LAST_YEAR: i32 = 9999;

impl Rule {
    /// The first slot strictly after an instant. `None` only at the end of the calendar, or for an empty set of days.
    pub fn next_after(&self, after: DateTime<Utc>, tz: Tz) -> Option<Slot> {
        if let Self::Interval { minutes, anchor } = self {
            return next_interval(*minutes, *anchor, after);
        }
        if let Self::Calendar(calendar) = self {
            return calendar.next_after(after, tz);
        }
        let at = self.time_of_day()?;
        if !(0..=LAST_YEAR).contains(&after.year()) {
            return None;
        }
        // A slot of the day before may still be ahead: DST moved 23:30 past midnight.
        let mut from = after.with_timezone(&tz).date_naive().pred_opt()?;
        for _ in 0..MAX_TRIES {
            let date = self.next_date(from).filter(|date| date.year() <= LAST_YEAR)?;
            let slot = resolve_local_time(date.and_time(at), tz);
            if slot.at > after && !is_on_skipped_day(slot, tz) {
                return Some(slot);
            }
            from = date.succ_opt()?;
        }
        None
    }

    /// The slot after another by key as well as by instant. Prevents a repeat after a move to a zone in which the same local time is
    /// still ahead.
    pub fn next_slot(&self, slot: Slot, tz: Tz) -> Option<Slot> {
        let mut next = self.next_after(slot.at, tz)?;
        for _ in 0..MAX_TRIES {
            if next.civil > slot.civil {
                return Some(next);
            }
            next = self.next_after(next.at, tz)?;
        }
        None
    }

    /// The slots after `since` up to and including `until`, oldest first, at most `limit`. At the limit there may be more, which
    /// [`Rule::next_after`] finds.
    pub fn list_missed(&self, since: DateTime<Utc>, until: DateTime<Utc>, tz: Tz, limit: usize) -> Vec<Slot> {
        std::iter::successors(self.next_after(since, tz), |slot| self.next_after(slot.at, tz))
            .take_while(|slot| slot.at <= until)
            .take(limit)
            .collect()
    }

    fn time_of_day(&self) -> Option<NaiveTime> {
        match self {
            Self::Interval { .. } | Self::Calendar(_) => None,
            Self::Daily { at }
            | Self::Days { at, .. }
            | Self::Weekly { at, .. }
            | Self::Weeks { at, .. }
            | Self::Monthly { at, .. }
            | Self::Months { at, .. }
            | Self::MonthWeekday { at, .. }
            | Self::Yearly { at, .. } => Some(*at),
        }
    }

    /// The first matching day on or after `from`.
    fn next_date(&self, from: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Interval { .. } | Self::Calendar(_) => None,
            Self::Daily { .. } => Some(from),
            Self::Days { n, anchor, .. } => from.checked_add_days(Days::new(until_step(from - *anchor, *n))),
            Self::Weekly { on, .. } => next_weekday(*on, from),
            Self::Weeks { n, on, anchor, .. } => next_in_weeks(*n, *on, *anchor, from),
            Self::Monthly { day, .. } => next_in_months(1, from, from, |first| day_of_month(first, *day)),
            Self::Months { n, day, anchor, .. } => next_in_months(*n, *anchor, from, |first| day_of_month(first, *day)),
            Self::MonthWeekday { nth, weekday, .. } => {
                next_in_months(1, from, from, |first| nth_weekday(first, *nth, *weekday))
            }
            Self::Yearly { month, day, .. } => next_yearly(1, from, *month, *day, from),
        }
    }
}

/// The date in each `n`th year, counted from the year of `anchor`; in a shorter month on the last day.
fn next_yearly(n: u32, anchor: NaiveDate, month: u32, day: u32, from: NaiveDate) -> Option<NaiveDate> {
    let january = anchor.with_day(1)?.with_month(1)?;
    let anchor = january.checked_add_months(Months::new(month.saturating_sub(1).min(11)))?;
    next_in_months(n.max(1).checked_mul(12)?, anchor, from, |first| day_of_month(first, day))
}

fn next_interval(minutes: u32, anchor: DateTime<Utc>, after: DateTime<Utc>) -> Option<Slot> {
    let step_ms = i64::from(minutes.max(1)) * 60_000;
    let passed_ms = (after - anchor).num_milliseconds();
    let steps = passed_ms.div_euclid(step_ms).checked_add(1)?;
    let at = anchor.checked_add_signed(TimeDelta::try_milliseconds(steps.max(1).checked_mul(step_ms)?)?)?;
    Some(Slot { civil: at.naive_utc(), at })
}

fn is_on_skipped_day(slot: Slot, tz: Tz) -> bool {
    (slot.at.with_timezone(&tz).naive_local() - slot.civil).num_hours() >= DAY_LEFT_OUT_H
}

/// The days (or weeks) to the next multiple of `n`. `passed` is negative if `anchor` is ahead.
fn until_step(passed: TimeDelta, n: u32) -> u64 {
    let n = i64::from(n.max(1));
    (-passed.num_days()).rem_euclid(n).unsigned_abs()
}

fn next_weekday(on: WeekdaySet, from: NaiveDate) -> Option<NaiveDate> {
    from.iter_days().take(7).find(|date| on.contains(date.weekday()))
}

fn next_in_weeks(n: u32, on: WeekdaySet, anchor: NaiveDate, from: NaiveDate) -> Option<NaiveDate> {
    let monday = |date: NaiveDate| date.checked_sub_days(Days::new(date.weekday().num_days_from_monday().into()));
    let weeks_passed = (monday(from)? - monday(anchor)?).num_days() / 7;
    let weeks_to_go = (-weeks_passed).rem_euclid(i64::from(n.max(1))).unsigned_abs();
    let week = monday(from)?.checked_add_days(Days::new(weeks_to_go * 7))?;
    let rest_of_the_week =
        |monday: NaiveDate| monday.iter_days().take(7).find(|d| *d >= from && on.contains(d.weekday()));
    rest_of_the_week(week).or_else(|| rest_of_the_week(week.checked_add_days(Days::new(u64::from(n.max(1)) * 7))?))
}

/// The first `day_in(month)` on or after `from`, in months a whole number of steps from the anchor's.
fn next_in_months(
    n: u32,
    anchor: NaiveDate,
    from: NaiveDate,
    day_in: impl Fn(NaiveDate) -> Option<NaiveDate>,
) -> Option<NaiveDate> {
    let n = n.max(1);
    let number = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
    let to_go = (number(anchor) - number(from)).rem_euclid(i64::from(n));
    let month = from.with_day(1)?.checked_add_months(Months::new(u32::try_from(to_go).ok()?))?;
    let on_time = |first: NaiveDate| day_in(first).filter(|date| *date >= from);
    on_time(month).or_else(|| on_time(month.checked_add_months(Months::new(n))?))
}

/// This day of the month, or the last day of a shorter month.
fn day_of_month(first: NaiveDate, day: u32) -> Option<NaiveDate> {
    let last = u32::from(first.num_days_in_month());
    first.with_day(day.clamp(1, last))
}

fn nth_weekday(first: NaiveDate, nth: Nth, weekday: Weekday) -> Option<NaiveDate> {
    let nth_of = |n| NaiveDate::from_weekday_of_month_opt(first.year(), first.month(), weekday, n);
    match nth {
        Nth::First => nth_of(1),
        Nth::Second => nth_of(2),
        Nth::Third => nth_of(3),
        Nth::Fourth => nth_of(4),
        Nth::Last => nth_of(5).or_else(|| nth_of(4)),
    }
}

/// Plain English for people: `every weekday at 08:00`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval { minutes, .. } if minutes % 60 == 0 => {
                write!(f, "every {}", format_step(minutes / 60, "hour"))?;
            }
            Self::Interval { minutes, .. } => write!(f, "every {}", format_step(*minutes, "minute"))?,
            Self::Daily { .. } => write!(f, "every day")?,
            Self::Days { n, .. } => write!(f, "every {}", format_step(*n, "day"))?,
            Self::Weekly { on, .. } => write!(f, "every {}", format_days(*on))?,
            Self::Weeks { n: 2, on, .. } if on.single_day().is_some() => write!(f, "every other {}", format_days(*on))?,
            Self::Weeks { n, on, .. } => write!(f, "every {} on {}", format_step(*n, "week"), format_days(*on))?,
            Self::Monthly { day, .. } => write!(f, "every month on the {}", format_ordinal(*day))?,
            Self::Months { n, day, .. } => {
                write!(f, "every {} on the {}", format_step(*n, "month"), format_ordinal(*day))?;
            }
            Self::MonthWeekday { nth, weekday, .. } => write!(f, "every {nth} {} of the month", day_name(*weekday))?,
            Self::Yearly { month, day, .. } => write!(f, "every year on {day} {}", month_name(*month))?,
            Self::Calendar(calendar) => return calendar.fmt(f),
        }
        match self.time_of_day() {
            Some(at) => write!(f, " at {}", at.format("%H:%M")),
            None => Ok(()),
        }
    }
}

impl Nth {
    /// Converts 1 to 4, or -1 for the last.
    pub fn from_number(n: i32) -> Option<Self> {
        Some(match n {
            1 => Self::First,
            2 => Self::Second,
            3 => Self::Third,
            4 => Self::Fourth,
            -1 => Self::Last,
            _ => return None,
        })
    }
}

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
            Self::Fourth => "fourth",
            Self::Last => "last",
        })
    }
}

fn format_step(n: u32, unit: &str) -> String {
    if n <= 1 { unit.to_owned() } else { format!("{n} {unit}s") }
}

fn format_days(on: WeekdaySet) -> String {
    if on == WORKDAYS {
        return "weekday".to_owned();
    }
    let names: Vec<&str> = on.iter(Weekday::Mon).map(day_name).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "no day".to_owned(),
    }
}

/// The name of a day, `Monday` to `Sunday`.
pub fn day_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Mon => "Monday",
        Weekday::Tue => "Tuesday",
        Weekday::Wed => "Wednesday",
        Weekday::Thu => "Thursday",
        Weekday::Fri => "Friday",
        Weekday::Sat => "Saturday",
        Weekday::Sun => "Sunday",
    }
}

/// The name of a month, `January` for 1.
pub fn month_name(month: u32) -> &'static str {
    let index = usize::try_from(month.saturating_sub(1)).unwrap_or(0);
    MONTHS.get(index).copied().unwrap_or("an unknown month")
}

/// Formats an ordinal: `1st`, `22nd`, `13th`.
pub fn format_ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// Serializes times of day as `08:00`.
pub(super) mod hh_mm {
    use chrono::NaiveTime;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(at: &NaiveTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&at.format("%H:%M"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        NaiveTime::parse_from_str(&text, "%H:%M").map_err(D::Error::custom)
    }
}

/// Serializes sets of days as `["Mon","Thu"]`.
pub(super) mod weekdays {
    use chrono::{Weekday, WeekdaySet};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(on: &WeekdaySet, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(on.iter(Weekday::Mon))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WeekdaySet, D::Error> {
        Ok(Vec::<Weekday>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
