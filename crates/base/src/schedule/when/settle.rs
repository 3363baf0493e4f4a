//! Resolves a draft against the present: to an instant, a rule, or a question.

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, TimeDelta, Timelike as _};

use super::{
    super::{Slot, resolve_local_time},
    AFTERNOON, DEFAULT_TIME, EVENING, MAX_YEARS_AHEAD, MORNING, NIGHT, TimeTrouble, When,
    calendar::Present,
    draft::{Distance, Draft, DraftClock, DraftDay, DraftPart},
    recur,
    zones::SaidZone,
};
use crate::zone::Tz;

/// The distance within which an hour without am or pm means its nearest reading.
const SOON: TimeDelta = TimeDelta::hours(3);
/// The hour before which "tonight" means the present night.
const NIGHT_ENDS: u32 = 5;

pub(super) fn settle(draft: &Draft, now: DateTime<Tz>) -> Result<When, TimeTrouble> {
    if let Some(trouble) = draft.trouble {
        return Err(trouble);
    }
    if draft.zone == Some(SaidZone::Unsure) {
        return Err(TimeTrouble::UnsureZone);
    }
    if draft.is_vague && !draft.has_clock() {
        return Err(TimeTrouble::NeedsTime);
    }
    let present = Present::new(now);
    if draft.every.is_some() {
        return recur::settle_rule(draft, &present).map(When::Every);
    }
    if draft.days.len() > 1 || draft.clocks.len() > 1 {
        return recur::settle_several(draft, &present).map(When::Every);
    }
    pick_moment(list_moments(draft, &present)?, &present).map(When::At)
}

/// Picks the only moment ahead. Two are a question; without any, the time has passed.
pub(super) fn pick_moment(mut moments: Vec<Slot>, present: &Present) -> Result<Slot, TimeTrouble> {
    moments.retain(|slot| slot.at > present.now);
    moments.sort();
    moments.dedup();
    let last_year = present.today.year() + MAX_YEARS_AHEAD;
    match moments[..] {
        [] => Err(TimeTrouble::Past),
        [slot, ..] if slot.civil.year() > last_year => Err(TimeTrouble::TooFar),
        [slot] => Ok(slot),
        [one, other, ..] => Err(TimeTrouble::Either(one.civil, other.civil)),
    }
}

/// A time of day, possibly on a later day than the named one ("tonight at 1").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOfDay {
    pub(super) time: NaiveTime,
    pub(super) days_later: u64,
}

impl TimeOfDay {
    pub(super) fn same_day(time: NaiveTime) -> Self {
        Self { time, days_later: 0 }
    }
}

/// The possible times of day of a clock and a part of the day; empty if neither was said.
pub(super) fn times_of_day(clock: Option<DraftClock>, part: Option<DraftPart>) -> Result<Vec<TimeOfDay>, TimeTrouble> {
    let same_day = |time| vec![TimeOfDay::same_day(time)];
    let is_dark = matches!(part, Some(DraftPart::Night | DraftPart::Tonight));
    Ok(match clock {
        None => part.map(part_time).map(same_day).unwrap_or_default(),
        Some(DraftClock::Midnight) => match part {
            Some(_) => vec![TimeOfDay { time: NaiveTime::MIN, days_later: 1 }],
            None => vec![TimeOfDay::same_day(NaiveTime::MIN), TimeOfDay { time: NaiveTime::MIN, days_later: 1 }],
        },
        Some(DraftClock::Literal(time)) => {
            let fits = match part {
                None => true,
                Some(DraftPart::Morning) => time.hour() < 12,
                Some(DraftPart::Afternoon) => (12..=18).contains(&time.hour()),
                Some(DraftPart::Evening) => (16..=23).contains(&time.hour()) || time.hour() < 3,
                Some(DraftPart::Night | DraftPart::Tonight) => time.hour() >= 17 || time.hour() <= NIGHT_ENDS,
            };
            if !fits {
                return Err(TimeTrouble::Unsupported);
            }
            let is_after_midnight =
                is_dark && time.hour() <= NIGHT_ENDS || part == Some(DraftPart::Evening) && time.hour() < 3;
            vec![TimeOfDay { time, days_later: u64::from(is_after_midnight) }]
        }
        Some(DraftClock::Open { hour, minute }) => open_times(hour, minute, part)?,
    })
}

/// The readings of an hour from 1 to 12. The part of the day decides between am and pm.
fn open_times(hour: u32, minute: u32, part: Option<DraftPart>) -> Result<Vec<TimeOfDay>, TimeTrouble> {
    let at = |hour: u32, days_later| {
        let time = NaiveTime::from_hms_opt(hour % 24, minute, 0).ok_or(TimeTrouble::NoSuchTime)?;
        Ok(TimeOfDay { time, days_later })
    };
    Ok(vec![match (part, hour) {
        (Some(DraftPart::Morning), 12) => at(0, 0)?,
        (Some(DraftPart::Morning), _) => at(hour, 0)?,
        (Some(DraftPart::Evening | DraftPart::Night | DraftPart::Tonight), 12) => at(0, 1)?,
        (Some(DraftPart::Evening), 1..=3) | (Some(DraftPart::Night | DraftPart::Tonight), 1..=NIGHT_ENDS) => {
            at(hour, 1)?
        }
        (Some(DraftPart::Afternoon), 12) => at(12, 0)?,
        (Some(_), _) => at(hour + 12, 0)?,
        // The working day needs no question.
        (None, 7..) => at(hour, 0)?,
        (None, _) => return Ok(vec![at(hour, 0)?, at(hour + 12, 0)?]),
    }])
}

fn part_time(part: DraftPart) -> NaiveTime {
    match part {
        DraftPart::Morning => MORNING,
        DraftPart::Afternoon => AFTERNOON,
        DraftPart::Evening => EVENING,
        DraftPart::Night | DraftPart::Tonight => NIGHT,
    }
}

/// All possible moments of a draft with one day and one time, including past ones.
pub(super) fn list_moments(draft: &Draft, present: &Present) -> Result<Vec<Slot>, TimeTrouble> {
    // "EST" in July: its own offset, or the local time there?
    if let Some(SaidZone::Half(minutes, region)) = draft.zone {
        let mut both = list_moments(&Draft { zone: Some(SaidZone::Offset(minutes)), ..draft.clone() }, present)?;
        both.extend(list_moments(&Draft { zone: Some(SaidZone::Region(region)), ..draft.clone() }, present)?);
        return Ok(both);
    }
    let said = match draft.distance {
        Some(distance) if !distance.is_from_said => return list_moments_ahead(distance, draft, present),
        _ => resolve_moments(draft, present)?,
    };
    match draft.distance {
        Some(distance) => {
            let moved: Vec<Slot> =
                said.into_iter().map(|slot| move_slot(slot, distance, present)).collect::<Result<_, _>>()?;
            let is_other = |slot: &Slot| draft.weekday.is_some_and(|weekday| weekday != slot.civil.weekday());
            if moved.iter().any(is_other) { Err(TimeTrouble::WrongWeekday) } else { Ok(moved) }
        }
        None => Ok(said),
    }
}

fn resolve_moments(draft: &Draft, present: &Present) -> Result<Vec<Slot>, TimeTrouble> {
    let clock = draft.clocks.first().copied();
    let times = times_of_day(clock, draft.part)?;
    match draft.days.first() {
        None if times.is_empty() => Err(TimeTrouble::NeedsTime),
        None => without_day(clock, draft, &times, present),
        Some(DraftDay::FromToday(0)) if times.is_empty() && draft.distance.is_none() => Err(TimeTrouble::NeedsTime),
        Some(DraftDay::FromToday(0)) => Ok(list_moments_today(clock, draft, &times, present)),
        Some(day) => {
            let times = if times.is_empty() { vec![TimeOfDay::same_day(DEFAULT_TIME)] } else { times };
            let dates = present.resolve_day(*day, |date| {
                times.iter().any(|at| make_slot(date, *at, draft, present).is_some_and(|slot| slot.at > present.now))
            })?;
            let dates = filter_by_weekday(dates, draft, present)?;
            Ok(dates
                .iter()
                .flat_map(|date| times.iter().filter_map(|at| make_slot(*date, *at, draft, present)))
                .collect())
        }
    }
}

/// Keeps the dates that match the weekday: "Monday, 5 December" must be a Monday.
fn filter_by_weekday(
    mut dates: Vec<NaiveDate>,
    draft: &Draft,
    _present: &Present,
) -> Result<Vec<NaiveDate>, TimeTrouble> {
    if let Some(weekday) = draft.weekday.filter(|_| draft.distance.is_none()) {
        dates.retain(|date| date.weekday() == weekday);
        if dates.is_empty() {
            return Err(TimeTrouble::WrongWeekday);
        }
    }
    Ok(dates)
}

/// The slot of a local time on a day, in the stated zone.
pub(super) fn make_slot(date: NaiveDate, at: TimeOfDay, draft: &Draft, present: &Present) -> Option<Slot> {
    let civil = date.checked_add_days(Days::new(at.days_later))?.and_time(at.time);
    let own = present.now.timezone();
    let instant = match draft.zone {
        None => return Some(resolve_local_time(civil, own)),
        Some(SaidZone::Unsure) => return None,
        Some(SaidZone::Offset(minutes) | SaidZone::Half(minutes, _)) => {
            civil.checked_sub_signed(TimeDelta::minutes(minutes.into()))?.and_utc()
        }
        Some(SaidZone::Region(tz)) => resolve_local_time(civil, tz).at,
    };
    Some(Slot::from_instant(instant, own))
}

/// The next occurrence of a time without a day. An hour without am or pm means the nearer reading if that comes soon.
fn without_day(
    clock: Option<DraftClock>,
    draft: &Draft,
    times: &[TimeOfDay],
    present: &Present,
) -> Result<Vec<Slot>, TimeTrouble> {
    let next = |at: TimeOfDay| {
        let at = TimeOfDay { days_later: 0, ..at };
        let start = if draft.zone.is_some() { present.today.pred_opt()? } else { present.today };
        start
            .iter_days()
            .take(4)
            .filter_map(|date| make_slot(date, at, draft, present))
            .find(|slot| slot.at > present.now)
    };
    if let Some(DraftClock::Open { hour, minute }) = clock
        && draft.part.is_none()
    {
        let halves = [hour % 12, hour % 12 + 12];
        let both = halves.map(|hour| NaiveTime::from_hms_opt(hour, minute, 0).map(TimeOfDay::same_day));
        let mut both: Vec<Slot> = both.into_iter().flatten().filter_map(next).collect();
        both.sort();
        if let [first, ..] = both[..] {
            let is_this_afternoon = hour <= 6 && first.civil.date() == present.today && first.civil.hour() >= 12;
            if first.at - present.now.to_utc() <= SOON || is_this_afternoon {
                return Ok(vec![first]);
            }
        }
    }
    let times = match draft.part {
        // "At midnight" means the next midnight.
        None if clock == Some(DraftClock::Midnight) => times.get(..1).unwrap_or(times),
        _ => times,
    };
    Ok(times.iter().filter_map(|at| next(*at)).collect())
}

/// Moments today. "Today at 9", said at noon, is the evening; "tonight at 2", said at 00:30, is in an hour and a half.
fn list_moments_today(clock: Option<DraftClock>, draft: &Draft, times: &[TimeOfDay], present: &Present) -> Vec<Slot> {
    let is_night = present.now.hour() < NIGHT_ENDS && draft.part == Some(DraftPart::Tonight);
    let times: Vec<TimeOfDay> = if times.is_empty() { vec![TimeOfDay::same_day(DEFAULT_TIME)] } else { times.to_vec() };
    let on = |at: TimeOfDay| make_slot(present.today, at, draft, present);
    if is_night && times.iter().all(|at| at.days_later > 0) {
        let now = times.iter().filter_map(|at| on(TimeOfDay { days_later: at.days_later - 1, ..*at }));
        let under_way: Vec<Slot> = now.filter(|slot| slot.at > present.now).collect();
        if !under_way.is_empty() {
            return under_way;
        }
    }
    let mut slots: Vec<Slot> = times.iter().filter_map(|at| on(*at)).collect();
    let is_open = draft.part.is_none() && matches!(clock, Some(DraftClock::Open { .. }));
    if is_open && slots.iter().all(|slot| slot.at <= present.now) {
        slots.extend(
            times
                .iter()
                .filter(|at| at.time.hour() < 12)
                .filter_map(|at| on(TimeOfDay { time: at.time + TimeDelta::hours(12), ..*at })),
        );
    }
    if clock == Some(DraftClock::Midnight) {
        slots.retain(|slot| slot.at > present.now);
    }
    slots
}

/// Moments at a distance from now: minutes elapse, days and months keep the local time.
fn list_moments_ahead(distance: Distance, draft: &Draft, present: &Present) -> Result<Vec<Slot>, TimeTrouble> {
    let elapsed = TimeDelta::seconds(distance.seconds.into());
    let date = present.add_distance(distance)?;
    if let Some(weekday) = draft.weekday.filter(|weekday| *weekday != date.weekday()) {
        return Err(if distance.months == 0 && distance.days == 0 {
            TimeTrouble::WrongWeekday
        } else {
            other_weekday(date, weekday, draft, present)
        });
    }
    let own = present.now.timezone();
    if date == present.today {
        let at = present.now.to_utc().with_nanosecond(0).ok_or(TimeTrouble::TooFar)?;
        return Ok(vec![Slot::from_instant(at + elapsed, own)]);
    }
    let same_time = present.now.time().with_nanosecond(0).unwrap_or(DEFAULT_TIME);
    let mut times = times_of_day(draft.clocks.first().copied(), draft.part)?;
    if times.is_empty() {
        times.push(TimeOfDay::same_day(same_time));
    }
    let slots = times.iter().filter_map(|at| make_slot(date, *at, draft, present));
    Ok(slots.map(|slot| if elapsed.is_zero() { slot } else { Slot::from_instant(slot.at + elapsed, own) }).collect())
}

/// Asks about "Monday two weeks from now", said on a Wednesday: the Monday before that day, or the next.
fn other_weekday(date: NaiveDate, weekday: chrono::Weekday, draft: &Draft, present: &Present) -> TimeTrouble {
    let times = times_of_day(draft.clocks.first().copied(), draft.part).unwrap_or_default();
    let at = times.first().copied().unwrap_or(TimeOfDay::same_day(DEFAULT_TIME));
    let before =
        (1..7).filter_map(|days| date.checked_sub_days(Days::new(days))).find(|date| date.weekday() == weekday);
    let after = date.iter_days().skip(1).take(6).find(|date| date.weekday() == weekday);
    match (
        before.and_then(|date| make_slot(date, at, draft, present)),
        after.and_then(|date| make_slot(date, at, draft, present)),
    ) {
        (Some(one), Some(other)) => TimeTrouble::Either(one.civil, other.civil),
        _ => TimeTrouble::WrongWeekday,
    }
}

/// Moves a slot by a distance: "3 days after 12 January", "half an hour before noon".
pub(super) fn move_slot(slot: Slot, distance: Distance, present: &Present) -> Result<Slot, TimeTrouble> {
    let own = present.now.timezone();
    let date = Present::shift(slot.civil.date(), distance).ok_or(TimeTrouble::TooFar)?;
    let civil = resolve_local_time(date.and_time(slot.civil.time()), own);
    let elapsed = TimeDelta::seconds(distance.seconds.into());
    let elapsed = if distance.is_back { -elapsed } else { elapsed };
    Ok(if elapsed.is_zero() { civil } else { Slot::from_instant(civil.at + elapsed, own) })
}
