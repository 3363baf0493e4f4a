//! Recurrences beyond the plain rules: several times a day, limits, exceptions, days counted from the end of a month.

use std::fmt;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, Utc, Weekday, WeekdaySet};
use serde::{Deserialize, Serialize};

use super::{
    LAST_YEAR, WORKDAYS, day_name, day_of_month, format_days as day_list, format_ordinal, format_step,
    is_on_skipped_day, month_name, next_in_months, next_in_weeks, next_yearly, until_step,
};
use crate::{
    schedule::{Slot, resolve_local_time},
    zone::Tz,
};

/// The maximum number of days tried for the next slot: two years, in case an exception falls on the same weekday each week.
const MAX_DAYS_TRIED: usize = 800;

/// Days and times of day within limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    /// The days.
    pub days: CalendarDays,
    /// Local times of day, in order.
    #[serde(with = "times_of_day")]
    pub times: Vec<NaiveTime>,
    /// The first allowed day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NaiveDate>,
    /// The last allowed local time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<NaiveDateTime>,
    /// Excluded days.
    #[serde(default, skip_serializing_if = "Exceptions::is_empty")]
    pub except: Exceptions,
}

/// The days of a [`Calendar`]. Steps are counted from the day, week, month or year of `anchor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CalendarDays {
    /// Each `n`th day.
    Daily {
        /// The step in days.
        n: u32,
        /// A matching day.
        anchor: NaiveDate,
    },
    /// These days of each `n`th week.
    Weekly {
        /// The step in weeks.
        n: u32,
        /// The days.
        #[serde(with = "super::weekdays")]
        on: WeekdaySet,
        /// A day in one of the weeks.
        anchor: NaiveDate,
    },
    /// These days of each `n`th month; in shorter months the last day. Negative numbers count from the month's end.
    Monthly {
        /// The step in months.
        n: u32,
        /// 1 to 31, or -1 to -31.
        days: Vec<i32>,
        /// A day in one of the months.
        anchor: NaiveDate,
    },
    /// The nth weekdays of each `n`th month: the second Tuesday is (2, Tue), the last (-1, Tue).
    MonthWeekdays {
        /// The step in months.
        n: u32,
        /// The position in the month (from its end if negative) and the weekday.
        which: Vec<(i32, Weekday)>,
        /// A day in one of the months.
        anchor: NaiveDate,
    },
    /// The `nth` day from Monday to Friday of each `n`th month; from its end if negative.
    MonthWorkday {
        /// The step in months.
        n: u32,
        /// 1 for the first, -1 for the last.
        nth: i32,
        /// A day in one of the months.
        anchor: NaiveDate,
    },
    /// A date of each `n`th year; 29 February becomes the 28th in common years.
    Yearly {
        /// The step in years.
        n: u32,
        /// 1 to 12.
        month: u32,
        /// 1 to 31.
        day: u32,
        /// A day in one of the years.
        anchor: NaiveDate,
    },
    /// The nth weekday in one month of each year.
    YearWeekday {
        /// 1 to 12.
        month: u32,
        /// The position in the month, from its end if negative.
        nth: i32,
        /// The weekday.
        weekday: Weekday,
    },
    /// A day relative to Easter Sunday.
    FromEaster {
        /// The number of days after Easter, negative before.
        days: i32,
    },
    /// These dates and no others.
    Dates {
        /// The dates in order.
        dates: Vec<NaiveDate>,
    },
}

/// Days excluded from a [`Calendar`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceptions {
    /// Weekdays.
    #[serde(with = "super::weekdays")]
    pub on: WeekdaySet,
    /// Dates.
    #[serde(default)]
    pub dates: Vec<NaiveDate>,
}

impl Exceptions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn contains(&self, date: NaiveDate) -> bool {
        self.on.contains(date.weekday()) || self.dates.contains(&date)
    }
}

impl Calendar {
    /// The first slot strictly after an instant. `None` at the end of the limits or of the calendar.
    pub(super) fn next_after(&self, after: DateTime<Utc>, tz: Tz) -> Option<Slot> {
        if !(0..=LAST_YEAR).contains(&after.year()) {
            return None;
        }
        // A slot of the day before may still be ahead: DST moved 23:30 past midnight.
        let before = after.with_timezone(&tz).date_naive().pred_opt()?;
        let mut from = self.from.map_or(before, |first| first.max(before));
        for _ in 0..MAX_DAYS_TRIED {
            let date = self.days.next_date(from).filter(|date| date.year() <= LAST_YEAR)?;
            if self.until.is_some_and(|until| date > until.date()) {
                return None;
            }
            if !self.except.contains(date) {
                let slots = self.times.iter().map(|at| resolve_local_time(date.and_time(*at), tz));
                let is_in_time = |slot: &Slot| self.until.is_none_or(|until| slot.civil <= until);
                let mut ahead =
                    slots.filter(|slot| slot.at > after && !is_on_skipped_day(*slot, tz) && is_in_time(slot));
                if let Some(slot) = ahead.next() {
                    return Some(slot);
                }
            }
            from = date.succ_opt()?;
        }
        None
    }
}

impl CalendarDays {
    /// Changes the day from which steps are counted.
    #[must_use]
    pub fn with_anchor(mut self, to: NaiveDate) -> Self {
        match &mut self {
            Self::Daily { anchor, .. }
            | Self::Weekly { anchor, .. }
            | Self::Monthly { anchor, .. }
            | Self::MonthWeekdays { anchor, .. }
            | Self::MonthWorkday { anchor, .. }
            | Self::Yearly { anchor, .. } => *anchor = to,
            Self::YearWeekday { .. } | Self::FromEaster { .. } | Self::Dates { .. } => {}
        }
        self
    }

    /// The first matching day on or after `from`.
    fn next_date(&self, from: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Daily { n, anchor } => from.checked_add_days(Days::new(until_step(from - *anchor, *n))),
            Self::Weekly { n, on, anchor } => next_in_weeks(*n, *on, *anchor, from),
            Self::Monthly { n, days, anchor } => {
                find_earliest(days, |day| find_next_month(*n, *anchor, from, |first| find_day(first, *day)))
            }
            Self::MonthWeekdays { n, which, anchor } => find_earliest(which, |(nth, weekday)| {
                find_next_month(*n, *anchor, from, |first| find_nth_weekday(first, *nth, *weekday))
            }),
            Self::MonthWorkday { n, nth, anchor } => {
                find_next_month(*n, *anchor, from, |first| nth_workday(first, *nth))
            }
            Self::Yearly { n, month, day, anchor } => next_yearly(*n, *anchor, *month, *day, from),
            Self::YearWeekday { month, nth, weekday } => {
                next_of_years(from, |year| find_nth_weekday(NaiveDate::from_ymd_opt(year, *month, 1)?, *nth, *weekday))
            }
            Self::FromEaster { days } => next_of_years(from, |year| {
                easter_sunday(year)?.checked_add_signed(chrono::TimeDelta::days((*days).into()))
            }),
            Self::Dates { dates } => dates.iter().copied().filter(|date| *date >= from).min(),
        }
    }
}

fn find_earliest<T>(list: &[T], date_of: impl Fn(&T) -> Option<NaiveDate>) -> Option<NaiveDate> {
    list.iter().filter_map(date_of).min()
}

/// Like [`next_in_months`], but skips months without the day: the 31st comes seven times a year.
fn find_next_month(
    n: u32,
    anchor: NaiveDate,
    from: NaiveDate,
    day_in: impl Fn(NaiveDate) -> Option<NaiveDate>,
) -> Option<NaiveDate> {
    /// Enough months to include a 29 February.
    const MONTHS: usize = 12 * 9;
    let mut from = from;
    for _ in 0..MONTHS {
        // Every month has a last day, so this finds the month; the wanted day may be missing or past.
        let month = next_in_months(n, anchor, from, |first| Some(find_last_day(first)))?;
        let first = month.with_day(1)?;
        if let Some(date) = day_in(first).filter(|date| *date >= from) {
            return Some(date);
        }
        from = month.succ_opt()?;
    }
    None
}

fn find_last_day(first: NaiveDate) -> NaiveDate {
    first.with_day(first.num_days_in_month().into()).unwrap_or(first)
}

/// The longest time between two dates of a yearly rule: a fifth Friday in February comes every 28 years, across 2100 after 40.
const YEARS_MAX: i32 = 40;

fn next_of_years(from: NaiveDate, date_in: impl Fn(i32) -> Option<NaiveDate>) -> Option<NaiveDate> {
    (from.year() - 1..=from.year() + YEARS_MAX).filter_map(date_in).find(|date| *date >= from)
}

fn find_day(first: NaiveDate, day: i32) -> Option<NaiveDate> {
    match u32::try_from(day) {
        Ok(day) => day_of_month(first, day),
        Err(_) => first.with_day(u32::try_from(i32::from(first.num_days_in_month()) + 1 + day).ok()?),
    }
}

/// The nth weekday of the month that begins with `first`; negative numbers count from its end.
pub(in crate::schedule) fn find_nth_weekday(first: NaiveDate, nth: i32, weekday: Weekday) -> Option<NaiveDate> {
    let days = first.iter_days().take(first.num_days_in_month().into()).filter(|date| date.weekday() == weekday);
    pick_nth(days.collect(), nth)
}

fn nth_workday(first: NaiveDate, nth: i32) -> Option<NaiveDate> {
    let days =
        first.iter_days().take(first.num_days_in_month().into()).filter(|date| WORKDAYS.contains(date.weekday()));
    pick_nth(days.collect(), nth)
}

fn pick_nth(days: Vec<NaiveDate>, nth: i32) -> Option<NaiveDate> {
    let index = usize::try_from(nth.unsigned_abs()).ok()?.checked_sub(1)?;
    if nth > 0 { days.get(index).copied() } else { days.into_iter().rev().nth(index) }
}

/// Easter Sunday of the Western churches, by the Gregorian rule (Meeus, Jones, Butcher).
pub(in crate::schedule) fn easter_sunday(year: i32) -> Option<NaiveDate> {
    let golden = year.rem_euclid(19);
    let (century, rest) = (year.div_euclid(100), year.rem_euclid(100));
    let leap_centuries = century.div_euclid(4);
    let moon_shift = (century - (century + 8).div_euclid(25) + 1).div_euclid(3);
    let epact = (19 * golden + century - leap_centuries - moon_shift + 15).rem_euclid(30);
    let weekday = (32 + 2 * century.rem_euclid(4) + 2 * rest.div_euclid(4) - epact - rest.rem_euclid(4)).rem_euclid(7);
    let late = (golden + 11 * epact + 22 * weekday).div_euclid(451);
    let number = epact + weekday - 7 * late + 114;
    NaiveDate::from_ymd_opt(year, u32::try_from(number / 31).ok()?, u32::try_from(number % 31 + 1).ok()?)
}

/// Plain English for people: `every day at 08:00 and 18:00, until 4 December 2026`.
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<String> = self.times.iter().map(|at| at.format("%H:%M").to_string()).collect();
        write!(f, "{} at {}", self.days, join_parts(&times))?;
        if let Some(from) = self.from {
            write!(f, ", from {}", full_date(from))?;
        }
        if let Some(until) = self.until {
            write!(f, ", until {}", full_date(until.date()))?;
        }
        let mut except = Vec::new();
        if !self.except.on.is_empty() {
            except.push(format!("on {}s", day_list(self.except.on).replace(", ", "s, ").replace(" and ", "s and ")));
        }
        except.extend(self.except.dates.iter().map(|date| format!("on {}", full_date(*date))));
        if !except.is_empty() {
            write!(f, ", except {}", join_parts(&except))?;
        }
        Ok(())
    }
}

impl fmt::Display for CalendarDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daily { n, .. } => write!(f, "every {}", format_step(*n, "day")),
            Self::Weekly { n: 1, on, .. } => write!(f, "every {}", day_list(*on)),
            Self::Weekly { n: 2, on, .. } if on.single_day().is_some() => write!(f, "every other {}", day_list(*on)),
            Self::Weekly { n, on, .. } => write!(f, "every {} on {}", format_step(*n, "week"), day_list(*on)),
            Self::Monthly { n, days, .. } => {
                let days: Vec<String> = days.iter().map(|day| from_end(*day, "day")).collect();
                write!(f, "every {} on the {}", format_step(*n, "month"), join_parts(&days))
            }
            Self::MonthWeekdays { n, which, .. } => {
                let which: Vec<String> = which.iter().map(|(nth, day)| nth_name(*nth, day_name(*day))).collect();
                write!(f, "every {} on the {}", format_step(*n, "month"), join_parts(&which))
            }
            Self::MonthWorkday { n, nth, .. } => {
                write!(f, "every {} on the {}", format_step(*n, "month"), nth_name(*nth, "working day"))
            }
            Self::Yearly { n, month, day, .. } => {
                write!(f, "every {} on {day} {}", format_step(*n, "year"), month_name(*month))
            }
            Self::YearWeekday { month, nth, weekday } => {
                write!(f, "every year on the {} of {}", nth_name(*nth, day_name(*weekday)), month_name(*month))
            }
            Self::FromEaster { days: 0 } => write!(f, "every Easter Sunday"),
            Self::FromEaster { days: 1 } => write!(f, "every Easter Monday"),
            Self::FromEaster { days: -2 } => write!(f, "every Good Friday"),
            Self::FromEaster { days } if *days < 0 => {
                write!(f, "every year {} before Easter", format_step(days.unsigned_abs(), "day"))
            }
            Self::FromEaster { days } => {
                write!(f, "every year {} after Easter", format_step(days.unsigned_abs(), "day"))
            }
            Self::Dates { dates } => {
                let dates: Vec<String> = dates.iter().map(|date| full_date(*date)).collect();
                write!(f, "on {}", join_parts(&dates))
            }
        }
    }
}

fn full_date(date: NaiveDate) -> String {
    format!("{} {} {} {}", date.format("%a"), date.day(), month_name(date.month()), date.year())
}

/// Formats a day of the month: `1st`, `last day`, `second to last day`.
fn from_end(day: i32, noun: &str) -> String {
    match u32::try_from(day) {
        Ok(day) => format_ordinal(day),
        Err(_) => nth_name(day, noun),
    }
}

fn nth_name(nth: i32, noun: &str) -> String {
    match nth {
        -1 => format!("last {noun}"),
        ..-1 => format!("{} to last {noun}", format_ordinal(nth.unsigned_abs())),
        _ => format!("{} {noun}", format_ordinal(nth.unsigned_abs())),
    }
}

fn join_parts(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Serializes times of day as `["08:00","18:00"]`.
mod times_of_day {
    use chrono::NaiveTime;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(times: &[NaiveTime], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(times.iter().map(|at| at.format("%H:%M").to_string()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NaiveTime>, D::Error> {
        let times = Vec::<String>::deserialize(deserializer)?;
        times.iter().map(|text| NaiveTime::parse_from_str(text, "%H:%M").map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests;
