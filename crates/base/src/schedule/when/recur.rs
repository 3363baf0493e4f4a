//! Turns the recurrence of a draft into a rule that starts from the present, with its limits and exceptions.

use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, WeekdaySet};

use super::{
    super::{
        Rule, Slot,
        rule::{Calendar, CalendarDays, Exceptions, Nth},
    },
    DEFAULT_TIME, TimeTrouble,
    calendar::Present,
    draft::{Bounds, Draft, DraftClock, DraftDay, DraftWhich, Every, Feast},
    settle::times_of_day,
    zones::SaidZone,
};

/// The maximum count of repetitions.
const MAX_COUNT: u32 = 1_000;
/// The maximum number of times of day that "every 2 hours from 9 to 17" may expand to.
const MAX_TIMES: usize = 96;

/// Turns the recurrence of a draft into a rule.
pub(super) fn settle_rule(draft: &Draft, present: &Present) -> Result<Rule, TimeTrouble> {
    let Some(every) = &draft.every else { return Err(TimeTrouble::Unsupported) };
    // A rule always runs in the owner's own time zone.
    if draft.zone.is_some() && !is_own_zone(draft.zone, present) {
        return Err(TimeTrouble::Unsupported);
    }
    if let Every::Minutes(minutes) = every {
        return settle_minutes(*minutes, draft, present);
    }
    if draft.bounds.hours.is_some() || !draft.bounds.only_on.is_empty() {
        return Err(TimeTrouble::Unsupported);
    }
    let times = rule_times(draft)?;
    let rule = match (plain_rule(every, draft, &times, present)?, &times[..]) {
        (Some(rule), [_]) if draft.bounds == Bounds::default() => return Ok(rule),
        _ => Calendar {
            days: calendar_days(every, draft, present)?,
            times,
            from: None,
            until: None,
            except: Exceptions::default(),
        },
    };
    apply_bounds(rule, &draft.bounds, present)
}

fn is_own_zone(zone: Option<SaidZone>, present: &Present) -> bool {
    matches!(zone, Some(SaidZone::Region(tz)) if tz == present.now.timezone())
}

/// Turns several days or times that occur only once into a rule: "on Monday and Thursday at 7", "tomorrow at 8 and at 18".
pub(super) fn settle_several(draft: &Draft, present: &Present) -> Result<Rule, TimeTrouble> {
    if draft.distance.is_some() || draft.bounds != Bounds::default() || draft.weekday.is_some() {
        return Err(TimeTrouble::Unsupported);
    }
    if draft.zone.is_some() && !is_own_zone(draft.zone, present) {
        return Err(TimeTrouble::Unsupported);
    }
    let clocks: Vec<Option<DraftClock>> =
        if draft.clocks.is_empty() { vec![None] } else { draft.clocks.iter().copied().map(Some).collect() };
    let days = if draft.days.is_empty() { vec![None] } else { draft.days.iter().copied().map(Some).collect() };
    let mut slots: Vec<Slot> = Vec::new();
    for day in &days {
        for clock in &clocks {
            let one =
                Draft { days: day.iter().copied().collect(), clocks: clock.iter().copied().collect(), ..draft.clone() };
            slots.push(super::settle::pick_moment(super::settle::list_moments(&one, present)?, present)?);
        }
    }
    let mut dates: Vec<NaiveDate> = slots.iter().map(|slot| slot.civil.date()).collect();
    let mut times: Vec<NaiveTime> = slots.iter().map(|slot| slot.civil.time()).collect();
    dates.sort();
    dates.dedup();
    times.sort();
    times.dedup();
    // A calendar has every time on every day. "At 8 and 10", said at 9, means 8 tomorrow but 10 today, so it doesn't fit.
    if dates.len() * times.len() != slots.len() {
        return Err(TimeTrouble::Unsupported);
    }
    Ok(Rule::Calendar(Box::new(Calendar {
        days: CalendarDays::Dates { dates },
        times,
        from: None,
        until: None,
        except: Exceptions::default(),
    })))
}

/// The times of day of a rule. Midnight is taken as the start of the named day, because a rule can't express "end of every day".
fn rule_times(draft: &Draft) -> Result<Vec<NaiveTime>, TimeTrouble> {
    if draft.clocks.is_empty() {
        let times = times_of_day(None, draft.part)?;
        return Ok(vec![times.first().map_or(DEFAULT_TIME, |at| at.time)]);
    }
    let mut times = Vec::new();
    for clock in &draft.clocks {
        times.push(rule_time(*clock, draft)?);
    }
    times.sort();
    times.dedup();
    Ok(times)
}

fn rule_time(clock: DraftClock, draft: &Draft) -> Result<NaiveTime, TimeTrouble> {
    if clock == DraftClock::Midnight {
        return Ok(NaiveTime::MIN);
    }
    match times_of_day(Some(clock), draft.part)?[..] {
        [one] => Ok(one.time),
        [one, other] => Err(TimeTrouble::EitherTime(one.time, other.time)),
        _ => Err(TimeTrouble::Unsupported),
    }
}

/// Turns "every 2 hours" into an interval or, if a range of hours is given, into fixed times of day.
fn settle_minutes(minutes: u32, draft: &Draft, present: &Present) -> Result<Rule, TimeTrouble> {
    let bounds = &draft.bounds;
    let is_timed = draft.has_clock() || draft.part.is_some() || !draft.days.is_empty();
    let anchor = present.current_minute().ok_or(TimeTrouble::TooFar)?;
    if let Some((first, last)) = bounds.hours {
        if is_timed {
            return Err(TimeTrouble::Unsupported);
        }
        let first = hours_start(first)?;
        let last = hours_end(last, first)?;
        let times: Vec<NaiveTime> = std::iter::successors(Some(first), |time| {
            let (next, days) = time.overflowing_add_signed(TimeDelta::minutes(minutes.into()));
            (days == 0).then_some(next)
        })
        .take_while(|time| *time <= last)
        .take(MAX_TIMES + 1)
        .collect();
        if times.is_empty() || times.len() > MAX_TIMES {
            return Err(TimeTrouble::Unsupported);
        }
        let anchor = present.today;
        let days = match bounds.only_on {
            on if on.is_empty() => CalendarDays::Daily { n: 1, anchor },
            on => CalendarDays::Weekly { n: 1, on, anchor },
        };
        let rule = Calendar { days, times, from: None, until: None, except: Exceptions::default() };
        return apply_bounds(rule, &Bounds { hours: None, ..bounds.clone() }, present);
    }
    if is_timed {
        return Err(TimeTrouble::NeedsHours);
    }
    if *bounds != Bounds::default() {
        let is_by_day =
            !bounds.only_on.is_empty() || bounds.except_on != WeekdaySet::EMPTY || !bounds.except.is_empty();
        return Err(if is_by_day { TimeTrouble::NeedsHours } else { TimeTrouble::Unsupported });
    }
    Ok(Rule::Interval { minutes, anchor })
}

/// The start of a range of hours. Fails for a bare hour that may be morning or afternoon.
fn hours_start(clock: DraftClock) -> Result<NaiveTime, TimeTrouble> {
    match times_of_day(Some(clock), None)?[..] {
        [one] => Ok(one.time),
        [one, other] => Err(TimeTrouble::EitherTime(one.time, other.time)),
        _ => Err(TimeTrouble::Unsupported),
    }
}

/// The end of a range of hours, which must be after its start: "from 9 to 5" ends at 17:00.
fn hours_end(clock: DraftClock, first: NaiveTime) -> Result<NaiveTime, TimeTrouble> {
    let end = match clock {
        DraftClock::Literal(time) => time,
        DraftClock::Open { hour, minute } => {
            let at = |hour: u32| NaiveTime::from_hms_opt(hour % 24, minute, 0).ok_or(TimeTrouble::NoSuchTime);
            let early = at(hour % 12)?;
            if hour != 12 && early > first { early } else { at(hour % 12 + 12)? }
        }
        DraftClock::Midnight => NaiveTime::from_hms_opt(23, 59, 0).ok_or(TimeTrouble::NoSuchTime)?,
    };
    if end > first { Ok(end) } else { Err(TimeTrouble::Unsupported) }
}

/// The simplest rule that covers the whole draft; `None` if it takes a [`Calendar`].
fn plain_rule(
    every: &Every,
    draft: &Draft,
    times: &[NaiveTime],
    present: &Present,
) -> Result<Option<Rule>, TimeTrouble> {
    let [at] = times[..] else { return Ok(None) };
    Ok(match (calendar_days(every, draft, present)?, &draft.days[..]) {
        (CalendarDays::Daily { n: 1, .. }, _) => Some(Rule::Daily { at }),
        (CalendarDays::Daily { n, anchor }, _) => Some(Rule::Days { n, anchor, at }),
        (CalendarDays::Weekly { n: 1, on, .. }, _) => Some(Rule::Weekly { on, at }),
        (CalendarDays::Weekly { n, on, .. }, _) => {
            let is_named = !draft.days.is_empty() || matches!(every, Every::Weeks(_, on) if !on.is_empty());
            let anchor = if is_named { find_first_day(&Rule::Weekly { on, at }, present) } else { present.today };
            Some(Rule::Weeks { n, on, anchor, at })
        }
        (CalendarDays::Monthly { n, days, .. }, _) => match days[..] {
            [day] => {
                let day = match day {
                    -1 => 31,
                    1.. => u32::try_from(day).unwrap_or(1),
                    _ => return Ok(None),
                };
                let monthly = Rule::Monthly { day, at };
                if n == 1 {
                    return Ok(Some(monthly));
                }
                let anchor = if draft.days.is_empty() { present.today } else { find_first_day(&monthly, present) };
                Some(Rule::Months { n, day, anchor, at })
            }
            _ => None,
        },
        (CalendarDays::MonthWeekdays { n: 1, which, .. }, _) => match which[..] {
            [(nth, weekday)] => Nth::from_number(nth).map(|nth| Rule::MonthWeekday { nth, weekday, at }),
            _ => None,
        },
        (CalendarDays::Yearly { n: 1, month, day, .. }, _) => Some(Rule::Yearly { month, day, at }),
        _ => None,
    })
}

fn find_first_day(rule: &Rule, present: &Present) -> NaiveDate {
    rule.next_after(present.now.to_utc(), present.now.timezone()).map_or(present.today, |slot| slot.civil.date())
}

/// The days of a recurrence.
fn calendar_days(every: &Every, draft: &Draft, present: &Present) -> Result<CalendarDays, TimeTrouble> {
    let anchor = present.today;
    Ok(match every {
        Every::Minutes(_) => return Err(TimeTrouble::Unsupported),
        Every::Days(n) => CalendarDays::Daily { n: *n, anchor },
        Every::Weeks(n, on) => {
            let named: WeekdaySet = draft
                .days
                .iter()
                .filter_map(|day| match day {
                    DraftDay::Weekday(weekday, DraftWhich::Coming) => Some(*weekday),
                    _ => None,
                })
                .collect();
            let on = if named.is_empty() { *on } else { named };
            let on = if on.is_empty() { WeekdaySet::single(present.today.weekday()) } else { on };
            CalendarDays::Weekly { n: *n, on, anchor }
        }
        Every::Months(n) => {
            let days = month_days(draft, present)?;
            CalendarDays::Monthly { n: *n, days, anchor }
        }
        Every::Nth(n, which) => CalendarDays::MonthWeekdays { n: *n, which: which.clone(), anchor },
        Every::Workday(n, nth) => CalendarDays::MonthWorkday { n: *n, nth: *nth, anchor },
        Every::Years(n) => settle_yearly(*n, draft, present)?,
    })
}

fn month_days(draft: &Draft, present: &Present) -> Result<Vec<i32>, TimeTrouble> {
    let mut days = Vec::new();
    for day in &draft.days {
        match day {
            DraftDay::OfMonth(day, _) if (1..=31).contains(&day.abs()) => days.push(*day),
            _ => return Err(TimeTrouble::NoSuchDay),
        }
    }
    if days.is_empty() {
        days.push(i32::try_from(present.today.day()).unwrap_or(1));
    }
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

fn settle_yearly(n: u32, draft: &Draft, present: &Present) -> Result<CalendarDays, TimeTrouble> {
    /// Any leap year, which has every possible date.
    const LEAP_YEAR: i32 = 2028;
    let anchor = present.today;
    Ok(match draft.days[..] {
        [] => CalendarDays::Yearly { n, month: present.today.month(), day: present.today.day(), anchor },
        [DraftDay::Date { month, day, .. }] => {
            NaiveDate::from_ymd_opt(LEAP_YEAR, month, day).ok_or(TimeTrouble::NoSuchDay)?;
            CalendarDays::Yearly { n, month, day, anchor }
        }
        [DraftDay::Feast(Feast::Easter(days), _)] if n == 1 => {
            CalendarDays::FromEaster { days: i32::try_from(days).map_err(|_| TimeTrouble::TooFar)? }
        }
        [DraftDay::Feast(Feast::Nth { month, nth, weekday, days: 0 }, _)] if n == 1 => {
            CalendarDays::YearWeekday { month, nth, weekday }
        }
        [DraftDay::NthWeekday(nth, weekday, super::draft::Month::Named(month, None))] if n == 1 => {
            CalendarDays::YearWeekday { month, nth, weekday }
        }
        _ => return Err(TimeTrouble::Unsupported),
    })
}

/// Applies the limits to a rule: a count or a span becomes the last allowed time.
fn apply_bounds(mut rule: Calendar, bounds: &Bounds, present: &Present) -> Result<Rule, TimeTrouble> {
    let own = present.now.timezone();
    let on = |day: DraftDay| -> Result<NaiveDate, TimeTrouble> {
        let dates = present.resolve_day(day, |date| date >= present.today)?;
        match dates[..] {
            [date] => Ok(date),
            _ => Err(TimeTrouble::Unsupported),
        }
    };
    rule.except.on = bounds.except_on;
    for day in &bounds.except {
        rule.except.dates.push(on(*day)?);
    }
    if let Some(day) = bounds.from {
        let from = on(day)?;
        rule.from = Some(from);
        rule.days = rule.days.with_anchor(from);
    }
    if let Some(day) = bounds.until {
        // "Until Friday" includes Friday.
        rule.until = on(day)?.and_hms_opt(23, 59, 59);
    }
    let start = rule.from.map_or(present.today, |from| from.max(present.today));
    if let Some(span) = bounds.span {
        if span.seconds > 0 {
            return Err(TimeTrouble::Unsupported);
        }
        rule.until = Some(find_last_moment(span, start, &rule, present)?);
    }
    if let Some(count) = bounds.count {
        if bounds.span.is_some() || bounds.until.is_some() || count == 0 || count > MAX_COUNT {
            return Err(TimeTrouble::Unsupported);
        }
        let limitless = Rule::Calendar(Box::new(rule.clone()));
        let mut after = present.now.to_utc();
        let mut last = None;
        for _ in 0..count {
            let slot = limitless.next_after(after, own).ok_or(TimeTrouble::Past)?;
            (after, last) = (slot.at, Some(slot.civil));
        }
        rule.until = last;
    }
    let rule = Rule::Calendar(Box::new(rule));
    rule.next_after(present.now.to_utc(), own).map(|_| rule).ok_or(TimeTrouble::Past)
}

/// The end of a span. For a daily rule, "for the next 10 days" means ten days from the first occurrence.
fn find_last_moment(
    span: super::draft::Distance,
    start: NaiveDate,
    rule: &Calendar,
    present: &Present,
) -> Result<NaiveDateTime, TimeTrouble> {
    let is_daily = matches!(rule.days, CalendarDays::Daily { n: 1, .. });
    let rule = Rule::Calendar(Box::new(rule.clone()));
    let first = rule.next_after(present.now.to_utc(), present.now.timezone()).map_or(start, |slot| slot.civil.date());
    let first = if is_daily { first } else { start };
    let end = Present::shift(first, span).and_then(|date| date.pred_opt()).ok_or(TimeTrouble::TooFar)?;
    end.and_hms_opt(23, 59, 59).ok_or(TimeTrouble::TooFar)
}
