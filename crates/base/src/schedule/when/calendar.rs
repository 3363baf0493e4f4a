//! Days resolved against the present: the possible dates of "Friday", "the 15th" or "Easter".

use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, TimeDelta, Timelike as _, Weekday};

use super::{
    MAX_YEARS_AHEAD, TimeTrouble,
    draft::{Distance, DraftDay, DraftWhich, Feast, Month},
};
use crate::{
    schedule::rule::{easter_sunday, find_nth_weekday},
    zone::Tz,
};

/// The number of years that always includes a 29 February, in any century.
const YEARS: i32 = 9;
/// The number of months after the present one searched for "Friday 14th". A later match is more likely a slip.
const MONTHS_FOR_WEEKDAY: u32 = 2;

/// The hour before which some people still call the present day "tomorrow".
const DAY_BEGINS: u32 = 4;

/// The present time and day.
pub(super) struct Present {
    pub(super) now: DateTime<Tz>,
    pub(super) today: NaiveDate,
}

impl Present {
    pub(super) fn new(now: DateTime<Tz>) -> Self {
        Self { now, today: now.date_naive() }
    }

    /// The possible dates of a day, mostly one. `is_ahead` returns true if the stated time on that date is still to come.
    pub(super) fn resolve_day(
        &self,
        day: DraftDay,
        is_ahead: impl Fn(NaiveDate) -> bool,
    ) -> Result<Vec<NaiveDate>, TimeTrouble> {
        let one = |date: Option<NaiveDate>| date.map(|date| vec![date]).ok_or(TimeTrouble::TooFar);
        match day {
            // A person still awake may call the present day "tomorrow".
            DraftDay::FromToday(days @ 1..=2) if self.now.hour() < DAY_BEGINS => {
                let either = [days - 1, days].map(|days| self.today.checked_add_signed(TimeDelta::days(days)));
                Ok(either.into_iter().flatten().collect())
            }
            DraftDay::FromToday(days) => one(self.today.checked_add_signed(TimeDelta::days(days))),
            // "On Saturday", said on a Saturday, could be today.
            DraftDay::Weekday(weekday, DraftWhich::Coming)
                if weekday == self.today.weekday() && is_ahead(self.today) =>
            {
                Ok([Some(self.today), self.resolve_weekday(weekday, DraftWhich::Coming)]
                    .into_iter()
                    .flatten()
                    .collect())
            }
            // "Next Friday", said on a Monday: some people mean this week's.
            DraftDay::Weekday(weekday, DraftWhich::ComingOrNext) => {
                let either = [DraftWhich::Coming, DraftWhich::Next].map(|which| self.resolve_weekday(weekday, which));
                Ok(either.into_iter().flatten().collect())
            }
            DraftDay::Weekday(weekday, which) => one(self.resolve_weekday(weekday, which)),
            DraftDay::Weekend(DraftWhich::Next) => one(self.resolve_weekday(Weekday::Sat, DraftWhich::Next)),
            DraftDay::Weekend(_) => {
                let mut weekend =
                    self.today.iter_days().take(8).filter(|date| date.weekday().num_days_from_monday() > 4);
                one(weekend.find(|date| is_ahead(*date)))
            }
            DraftDay::NextWeek => one(self.resolve_weekday(Weekday::Mon, DraftWhich::Next)),
            DraftDay::NextMonth => one(self.find_month_start(1)),
            DraftDay::NextYear => one(NaiveDate::from_ymd_opt(self.today.year() + 1, 1, 1)),
            DraftDay::Exact(date) => Ok(vec![date]),
            DraftDay::Date { year, month, day } => self.resolve_date(year, month, day, is_ahead),
            DraftDay::EitherDate { year, one, two } => {
                let mut dates: Vec<NaiveDate> = Vec::new();
                for (month, day) in [(one, two), (two, one)] {
                    dates.extend(self.resolve_date(year, month, day, &is_ahead).unwrap_or_default());
                }
                // One date is today: don't take the other just because today's time has passed.
                if dates.contains(&self.today) && !is_ahead(self.today) {
                    return Err(TimeTrouble::Past);
                }
                if dates.is_empty() { Err(TimeTrouble::NoSuchDay) } else { Ok(dates) }
            }
            DraftDay::OfMonth(day, month) => {
                if !(-31..=31).contains(&day) || day == 0 {
                    return Err(TimeTrouble::NoSuchDay);
                }
                self.resolve_month_day(month, |first| find_day(first, day), is_ahead)
            }
            DraftDay::WeekdayOfMonth(weekday, day) => self.weekday_of_month(weekday, day, is_ahead),
            DraftDay::NthWeekday(nth, weekday, month) => {
                self.resolve_month_day(month, |first| find_nth_weekday(first, nth, weekday), is_ahead)
            }
            DraftDay::Feast(feast, year) => {
                let years = year.map_or(self.today.year()..self.today.year() + 2, |year| year..year + 1);
                let dates: Vec<NaiveDate> = years.filter_map(|year| feast_date(feast, year)).collect();
                let found = dates.iter().find(|date| is_ahead(**date)).or(dates.first());
                found.map(|date| vec![*date]).ok_or(TimeTrouble::NoSuchDay)
            }
        }
    }

    fn resolve_weekday(&self, weekday: Weekday, which: DraftWhich) -> Option<NaiveDate> {
        let coming = self.today.iter_days().skip(1).take(7).find(|date| date.weekday() == weekday);
        let in_next_week = || {
            let monday = self.today.iter_days().skip(1).take(7).find(|date| date.weekday() == Weekday::Mon)?;
            monday.iter_days().take(7).find(|date| date.weekday() == weekday)
        };
        match which {
            DraftWhich::Coming => coming,
            DraftWhich::Next | DraftWhich::ComingOrNext => in_next_week(),
            DraftWhich::AfterNext => in_next_week()?.checked_add_days(Days::new(7)),
            DraftWhich::WeeksAfter(weeks) => coming?.checked_add_days(Days::new(u64::from(weeks) * 7)),
            DraftWhich::ThisWeek => in_next_week()?.checked_sub_days(Days::new(7)),
            DraftWhich::Last => coming?.checked_sub_days(Days::new(14)),
        }
    }

    fn resolve_date(
        &self,
        year: Option<i32>,
        month: u32,
        day: u32,
        is_ahead: impl Fn(NaiveDate) -> bool,
    ) -> Result<Vec<NaiveDate>, TimeTrouble> {
        let date = |year| NaiveDate::from_ymd_opt(year, month, day);
        if let Some(year) = year {
            return date(year).map(|date| vec![date]).ok_or(TimeTrouble::NoSuchDay);
        }
        // Today's date means today, even if the time has passed.
        let mut dates = (self.today.year()..self.today.year() + YEARS).filter_map(date);
        dates.find(|date| *date == self.today || is_ahead(*date)).map(|date| vec![date]).ok_or(TimeTrouble::NoSuchDay)
    }

    fn resolve_month_day(
        &self,
        month: Month,
        day_in: impl Fn(NaiveDate) -> Option<NaiveDate>,
        is_ahead: impl Fn(NaiveDate) -> bool,
    ) -> Result<Vec<NaiveDate>, TimeTrouble> {
        let in_months = |ahead| day_in(self.find_month_start(ahead)?);
        let date = match month {
            Month::This => in_months(0),
            Month::Next => in_months(1),
            Month::Any => (0..13).filter_map(in_months).find(|date| *date == self.today || is_ahead(*date)),
            Month::Named(month, Some(year)) => NaiveDate::from_ymd_opt(year, month, 1).and_then(day_in),
            Month::Named(month, None) => (self.today.year()..self.today.year() + YEARS)
                .filter_map(|year| day_in(NaiveDate::from_ymd_opt(year, month, 1)?))
                .find(|date| *date == self.today || is_ahead(*date)),
        };
        date.map(|date| vec![date]).ok_or(TimeTrouble::NoSuchDay)
    }

    fn weekday_of_month(
        &self,
        weekday: Weekday,
        day: u32,
        is_ahead: impl Fn(NaiveDate) -> bool,
    ) -> Result<Vec<NaiveDate>, TimeTrouble> {
        if !(1..=31).contains(&day) {
            return Err(TimeTrouble::NoSuchDay);
        }
        let fits = |ahead| {
            self.find_month_start(ahead)?.with_day(day).filter(|date| date.weekday() == weekday && is_ahead(*date))
        };
        (0..=MONTHS_FOR_WEEKDAY).find_map(fits).map(|date| vec![date]).ok_or(TimeTrouble::WrongWeekday)
    }

    /// The first day of the month `ahead` months from now.
    pub(super) fn find_month_start(&self, ahead: u32) -> Option<NaiveDate> {
        self.today.with_day(1)?.checked_add_months(Months::new(ahead))
    }

    /// Today moved by months and days.
    pub(super) fn add_distance(&self, distance: Distance) -> Result<NaiveDate, TimeTrouble> {
        let far = Months::new(u32::try_from(MAX_YEARS_AHEAD).unwrap_or(0) * 12);
        let last = self.today.checked_add_months(far).ok_or(TimeTrouble::TooFar)?;
        Self::shift(self.today, distance).filter(|date| *date <= last).ok_or(TimeTrouble::TooFar)
    }

    /// A date moved by months and days, forwards or backwards.
    pub(super) fn shift(date: NaiveDate, distance: Distance) -> Option<NaiveDate> {
        let (months, days) = (Months::new(distance.months), Days::new(distance.days.into()));
        if distance.is_back {
            date.checked_sub_months(months)?.checked_sub_days(days)
        } else {
            date.checked_add_months(months)?.checked_add_days(days)
        }
    }

    /// The present minute, as a start for counting.
    pub(super) fn current_minute(&self) -> Option<DateTime<chrono::Utc>> {
        self.now.to_utc().with_nanosecond(0)
    }
}

/// A day of a month, if the month has it; negative numbers count from the end.
fn find_day(first: NaiveDate, day: i32) -> Option<NaiveDate> {
    match u32::try_from(day) {
        Ok(day) => first.with_day(day),
        Err(_) => {
            let length = i32::from(first.num_days_in_month());
            first.with_day(u32::try_from(length + 1 + day).ok()?)
        }
    }
}

/// The date of a moving holiday in a year.
pub(super) fn feast_date(feast: Feast, year: i32) -> Option<NaiveDate> {
    match feast {
        Feast::Easter(days) => easter_sunday(year)?.checked_add_signed(TimeDelta::days(days)),
        Feast::Nth { month, nth, weekday, days } => {
            find_nth_weekday(NaiveDate::from_ymd_opt(year, month, 1)?, nth, weekday)?
                .checked_add_signed(TimeDelta::days(days))
        }
        Feast::Advent(nth) => {
            let christmas = NaiveDate::from_ymd_opt(year, 12, 25)?;
            let fourth = christmas.checked_sub_days(Days::new(match christmas.weekday() {
                Weekday::Sun => 7,
                weekday => weekday.num_days_from_sunday().into(),
            }))?;
            fourth.checked_sub_signed(TimeDelta::weeks(4 - nth))
        }
    }
}
