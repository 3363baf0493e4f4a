//! A draft held against the present: which instant, or which rule, it means.

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveTime, TimeDelta, Timelike as _, Weekday, WeekdaySet,
};

use super::{
    super::{Rule, Slot, resolve, rule::WEEKEND},
    AFTERNOON, DEFAULT_TIME, EVENING, MAX_YEARS_AHEAD, MORNING, NIGHT, TimeTrouble, When,
    draft::{Distance, Draft, DraftClock, DraftDay, DraftPart, DraftWhich, Every, Month},
};
use crate::zone::Tz;

pub(super) fn settle(draft: &Draft, now: DateTime<Tz>) -> Result<When, TimeTrouble> {
    if let Some(trouble) = draft.trouble {
        return Err(trouble);
    }
    let present = Present { now, today: now.date_naive() };
    if let Some(every) = draft.every {
        return present.rule(every, draft).map(When::Every);
    }
    let slot = match (draft.distance, draft.day) {
        (Some(distance), _) => present.after(distance, draft)?,
        (None, Some(day)) => present.on_named_day(day, draft)?,
        (None, None) => present.next_at(draft)?,
    };
    if slot.at <= now {
        Err(TimeTrouble::Past)
    } else if slot.civil.year() > present.today.year() + MAX_YEARS_AHEAD {
        Err(TimeTrouble::TooFar)
    } else {
        Ok(When::At(slot))
    }
}

/// A time of day, and how many days after the named one it falls ("tonight at 1").
#[derive(Clone, Copy)]
struct TimeOfDay {
    time: NaiveTime,
    days_later: u64,
}

/// The time of day that clock and part say together, if any.
fn time_of_day(draft: &Draft) -> Option<TimeOfDay> {
    let same_day = |time| TimeOfDay { time, days_later: 0 };
    match (draft.clock, draft.part) {
        (Some(DraftClock::Literal(time)), _) => Some(same_day(time)),
        (Some(DraftClock::Midnight), _) => Some(TimeOfDay { time: NaiveTime::MIN, days_later: 1 }),
        (Some(DraftClock::Open { hour, minute }), part) => {
            let (hour, days_later) = match (part, hour) {
                (Some(DraftPart::Morning), _) | (None, 7..) => (hour, 0),
                (Some(DraftPart::Evening | DraftPart::Night), 12) => (0, 1),
                (Some(DraftPart::Evening), 1..=3) | (Some(DraftPart::Night), 1..=5) => (hour, 1),
                (Some(DraftPart::Afternoon), 12) => (12, 0),
                _ => (hour + 12, 0),
            };
            NaiveTime::from_hms_opt(hour, minute, 0).map(|time| TimeOfDay { time, days_later })
        }
        (None, Some(part)) => Some(same_day(match part {
            DraftPart::Morning => MORNING,
            DraftPart::Afternoon => AFTERNOON,
            DraftPart::Evening => EVENING,
            DraftPart::Night => NIGHT,
        })),
        (None, None) => None,
    }
}

struct Present {
    now: DateTime<Tz>,
    today: NaiveDate,
}

impl Present {
    fn slot(&self, date: NaiveDate, at: TimeOfDay) -> Result<Slot, TimeTrouble> {
        let date = date.checked_add_days(Days::new(at.days_later)).ok_or(TimeTrouble::TooFar)?;
        Ok(resolve(date.and_time(at.time), self.now.timezone()))
    }

    fn is_ahead(&self, slot: Slot) -> bool {
        slot.at > self.now
    }

    /// A time without a day: today if it is still ahead, else tomorrow.
    fn next_at(&self, draft: &Draft) -> Result<Slot, TimeTrouble> {
        let at = time_of_day(draft).ok_or(TimeTrouble::NeedsTime)?;
        let today = self.slot(self.today, at)?;
        if self.is_ahead(today) { Ok(today) } else { self.slot(self.in_days(1)?, at) }
    }

    fn after(&self, distance: Distance, draft: &Draft) -> Result<Slot, TimeTrouble> {
        let far = Months::new(u32::try_from(MAX_YEARS_AHEAD).unwrap_or(0) * 12);
        let last = self.today.checked_add_months(far).ok_or(TimeTrouble::TooFar)?;
        let date = self
            .today
            .checked_add_months(Months::new(distance.months))
            .and_then(|date| date.checked_add_days(Days::new(distance.days.into())))
            .filter(|date| *date <= last)
            .ok_or(TimeTrouble::TooFar)?;
        let elapsed = TimeDelta::seconds(distance.seconds.into());
        if date == self.today {
            let at = self.now.to_utc().with_nanosecond(0).ok_or(TimeTrouble::TooFar)?;
            return Ok(Slot::of_instant(at + elapsed, self.now.timezone()));
        }
        let same_time = self.now.time().with_nanosecond(0).unwrap_or(DEFAULT_TIME);
        let at = time_of_day(draft).unwrap_or(TimeOfDay { time: same_time, days_later: 0 });
        let slot = self.slot(date, at)?;
        if elapsed.is_zero() { Ok(slot) } else { Ok(Slot::of_instant(slot.at + elapsed, self.now.timezone())) }
    }

    /// "Monday, 5 December" must be a Monday.
    fn on_named_day(&self, day: DraftDay, draft: &Draft) -> Result<Slot, TimeTrouble> {
        let slot = self.on(day, draft)?;
        let days_later = time_of_day(draft).map_or(0, |at| at.days_later);
        let date = slot.civil.date().checked_sub_days(Days::new(days_later)).ok_or(TimeTrouble::TooFar)?;
        match draft.weekday {
            Some(weekday) if weekday != date.weekday() => Err(TimeTrouble::WrongWeekday),
            _ => Ok(slot),
        }
    }

    fn on(&self, day: DraftDay, draft: &Draft) -> Result<Slot, TimeTrouble> {
        let said = time_of_day(draft);
        let at = said.unwrap_or(TimeOfDay { time: DEFAULT_TIME, days_later: 0 });
        match day {
            DraftDay::FromToday(0) => self.today_at(said.ok_or(TimeTrouble::NeedsTime)?, draft),
            DraftDay::FromToday(days) => self.slot(self.in_days(days)?, at),
            DraftDay::Weekday(weekday, DraftWhich::Coming) => self.slot(self.coming(weekday)?, at),
            DraftDay::Weekday(weekday, DraftWhich::Next) => self.slot(self.in_next_week(weekday)?, at),
            DraftDay::Weekend(DraftWhich::Next) => self.slot(self.in_next_week(Weekday::Sat)?, at),
            DraftDay::Weekend(DraftWhich::Coming) => self.first_ahead(WEEKEND, at),
            DraftDay::NextWeek => self.slot(self.in_next_week(Weekday::Mon)?, at),
            DraftDay::NextMonth => self.slot(self.month(1)?, at),
            DraftDay::NextYear => {
                let january = NaiveDate::from_ymd_opt(self.today.year() + 1, 1, 1).ok_or(TimeTrouble::TooFar)?;
                self.slot(january, at)
            }
            DraftDay::EndOfMonth(DraftWhich::Next) => self.slot(self.end_of_month(1)?, at),
            DraftDay::EndOfMonth(DraftWhich::Coming) => match self.slot(self.end_of_month(0)?, at)? {
                slot if self.is_ahead(slot) => Ok(slot),
                _ => self.slot(self.end_of_month(1)?, at),
            },
            DraftDay::Date { year, month, day } => self.on_date(year, month, day, at),
            DraftDay::OfMonth(day, month) => self.on_day_of_month(day, month, at),
        }
    }

    /// "Today at 9", said at noon, means the evening.
    fn today_at(&self, at: TimeOfDay, draft: &Draft) -> Result<Slot, TimeTrouble> {
        let slot = self.slot(self.today, at)?;
        let open = draft.part.is_none() && matches!(draft.clock, Some(DraftClock::Open { .. })) && at.time.hour() < 12;
        if !open || self.is_ahead(slot) {
            return Ok(slot);
        }
        self.slot(self.today, TimeOfDay { time: at.time + TimeDelta::hours(12), ..at })
    }

    fn on_date(&self, year: Option<i32>, month: u32, day: u32, at: TimeOfDay) -> Result<Slot, TimeTrouble> {
        /// 29 February comes within eight years, whatever the century.
        const YEARS: i32 = 9;
        let date = |year| NaiveDate::from_ymd_opt(year, month, day);
        match year {
            Some(year) => self.slot(date(year).ok_or(TimeTrouble::NoSuchDay)?, at),
            None => (self.today.year()..self.today.year() + YEARS)
                .filter_map(|year| self.slot(date(year)?, at).ok())
                .find(|slot| self.is_ahead(*slot))
                .ok_or(TimeTrouble::NoSuchDay),
        }
    }

    fn on_day_of_month(&self, day: u32, month: Month, at: TimeOfDay) -> Result<Slot, TimeTrouble> {
        let in_month = |ahead| self.slot(self.month(ahead).ok()?.with_day(day)?, at).ok();
        let slot = match month {
            Month::This => in_month(0),
            Month::Next => in_month(1),
            Month::Any => (0..12).filter_map(in_month).find(|slot| self.is_ahead(*slot)),
        };
        slot.ok_or(TimeTrouble::NoSuchDay)
    }

    fn in_days(&self, days: i64) -> Result<NaiveDate, TimeTrouble> {
        self.today.checked_add_signed(TimeDelta::days(days)).ok_or(TimeTrouble::TooFar)
    }

    /// That weekday after today.
    fn coming(&self, weekday: Weekday) -> Result<NaiveDate, TimeTrouble> {
        self.today.iter_days().skip(1).take(7).find(|date| date.weekday() == weekday).ok_or(TimeTrouble::TooFar)
    }

    fn in_next_week(&self, weekday: Weekday) -> Result<NaiveDate, TimeTrouble> {
        let monday = self.coming(Weekday::Mon)?;
        monday.iter_days().take(7).find(|date| date.weekday() == weekday).ok_or(TimeTrouble::TooFar)
    }

    fn first_ahead(&self, on: WeekdaySet, at: TimeOfDay) -> Result<Slot, TimeTrouble> {
        self.today
            .iter_days()
            .take(8)
            .filter(|date| on.contains(date.weekday()))
            .filter_map(|date| self.slot(date, at).ok())
            .find(|slot| self.is_ahead(*slot))
            .ok_or(TimeTrouble::TooFar)
    }

    /// The first day of the month that lies so many ahead.
    fn month(&self, ahead: u32) -> Result<NaiveDate, TimeTrouble> {
        self.today.with_day(1).and_then(|first| first.checked_add_months(Months::new(ahead))).ok_or(TimeTrouble::TooFar)
    }

    fn end_of_month(&self, ahead: u32) -> Result<NaiveDate, TimeTrouble> {
        self.month(ahead + 1)?.pred_opt().ok_or(TimeTrouble::TooFar)
    }

    fn rule(&self, every: Every, draft: &Draft) -> Result<Rule, TimeTrouble> {
        if let Every::Minutes(minutes) = every {
            let timed = draft.clock.is_some() || draft.part.is_some();
            let anchor = self.now.to_utc().with_nanosecond(0).ok_or(TimeTrouble::TooFar)?;
            return if timed { Err(TimeTrouble::Unsupported) } else { Ok(Rule::Interval { minutes, anchor }) };
        }
        // Midnight, and an hour after it, belong to the day itself here: a rule has no "end of every day".
        let at = time_of_day(draft).map_or(DEFAULT_TIME, |at| at.time);
        Ok(match every {
            Every::Minutes(_) | Every::Days(1) => Rule::Daily { at },
            Every::Days(n) => Rule::Days { n, anchor: self.today, at },
            Every::Weeks(n, on) => self.weekly(n, on, draft.day, at),
            Every::Months(n) => self.monthly(n, draft.day, at)?,
            Every::Nth(nth, weekday) => Rule::MonthWeekday { nth, weekday, at },
            Every::Years => {
                let (month, day) = match draft.day {
                    Some(DraftDay::Date { month, day, .. }) => (month, day),
                    _ => (self.today.month(), self.today.day()),
                };
                /// Any leap year has every date that a year can have.
                const LEAP_YEAR: i32 = 2028;
                NaiveDate::from_ymd_opt(LEAP_YEAR, month, day).ok_or(TimeTrouble::NoSuchDay)?;
                Rule::Yearly { month, day, at }
            }
        })
    }

    fn weekly(&self, n: u32, on: WeekdaySet, day: Option<DraftDay>, at: NaiveTime) -> Rule {
        let named = match day {
            Some(DraftDay::Weekday(weekday, _)) => WeekdaySet::single(weekday),
            _ => on,
        };
        let on = if named.is_empty() { WeekdaySet::single(self.today.weekday()) } else { named };
        let weekly = Rule::Weekly { on, at };
        if n == 1 {
            return weekly;
        }
        let anchor = if named.is_empty() { self.today } else { self.first_day_of(&weekly) };
        Rule::Weeks { n, on, anchor, at }
    }

    fn monthly(&self, n: u32, day: Option<DraftDay>, at: NaiveTime) -> Result<Rule, TimeTrouble> {
        let named = match day {
            Some(DraftDay::OfMonth(day, _)) => Some(day),
            _ => None,
        };
        let day = named.unwrap_or(self.today.day());
        if !(1..=31).contains(&day) {
            return Err(TimeTrouble::NoSuchDay);
        }
        let monthly = Rule::Monthly { day, at };
        if n == 1 {
            return Ok(monthly);
        }
        let anchor = if named.is_some() { self.first_day_of(&monthly) } else { self.today };
        Ok(Rule::Months { n, day, anchor, at })
    }

    fn first_day_of(&self, rule: &Rule) -> NaiveDate {
        rule.next_after(self.now.to_utc(), self.now.timezone()).map_or(self.today, |slot| slot.civil.date())
    }
}
