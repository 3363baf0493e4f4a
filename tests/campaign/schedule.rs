//! Layer on time: in any zone, through ten years of looks at a clock that sleeps and jumps, no slot happens twice, and every missed one
//! is reported. One trial is one zone, one rule and one decade; its looks come from the seed.
//!
//! An independent oracle walks the calendar day by day and counts the due slots. [`Series`] decides as in a real wake. Only the store
//! is simulated: a next slot, the time of its writing, and the result of each slot.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{
    DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone as _, Utc, Weekday, WeekdaySet,
};
use fastrand::Rng;

use reveille_base::{
    schedule::{
        Missed, Nth, Rule, Slot,
        due::{self, Series, SlotHistory},
    },
    zone::Tz,
};

/// The first years of the simulated decades: one ahead, and one with unusual changes in the past.
const DECADES: [i32; 2] = [2026, 2008];
/// The length in days of a trial with a rule by minutes: about as many slots as a daily rule has in ten years.
const INTERVAL_DAYS: i64 = 60;
/// A look this soon after a slot must find it met.
const SURELY_MET: TimeDelta = TimeDelta::minutes(29);

/// Runs one zone, one rule, one decade; the same seed is the same trial.
///
/// # Errors
/// The violation, with everything needed to reproduce it.
pub(crate) fn trial(seed: u64) -> Result<(), String> {
    let mut life = Life::new(seed);
    let about = life.about();
    life.live().and_then(|()| life.check()).map_err(|what| format!("{what}\n    in schedule trial {seed}: {about}"))
}

/// A recurring event, the world's clock, and the result of each slot.
struct Life {
    rng: Rng,
    tz: Tz,
    rule: Rule,
    missed: Missed,
    created: DateTime<Utc>,
    end: DateTime<Utc>,
    /// The true time. The wall clock is off by `wrong`.
    now: DateTime<Utc>,
    wrong: TimeDelta,
    /// The stored state: the next slot and the time of its writing.
    next: Slot,
    written: DateTime<Utc>,
    happened: BTreeMap<NaiveDateTime, u32>,
    passed: Vec<(NaiveDateTime, NaiveDateTime)>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        // Neighbouring seeds go through the zones in order, first for one decade and then for the other, so twelve hundred seeds
        // cover all.
        let all: Vec<Tz> = Tz::list_all().collect();
        let zones = all.len() as u64;
        let tz = all[usize::try_from(seed % zones).unwrap_or(0)];
        let year = DECADES[usize::from(seed / zones % 2 == 1)];
        let first = midnight(NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default());
        let created = first + TimeDelta::minutes(rng.i64(0..600_000));
        let rule = rule(&mut rng, tz, created);
        let end = match rule {
            Rule::Interval { .. } => created + TimeDelta::days(INTERVAL_DAYS),
            _ => first + TimeDelta::days(3653),
        };
        let missed = [Missed::Run, Missed::Skip, Missed::Tell][rng.usize(..3)];
        let next = rule.next_after(created, tz).unwrap_or(Slot { civil: created.naive_utc(), at: created });
        Self {
            rng,
            tz,
            rule,
            missed,
            created,
            end,
            now: created,
            wrong: TimeDelta::zero(),
            next,
            written: created,
            happened: BTreeMap::new(),
            passed: Vec::new(),
        }
    }

    fn about(&self) -> String {
        format!("{} in {}, {}, from {} to {}", self.rule, self.tz, self.missed, self.created, self.end)
    }

    fn wall(&self) -> DateTime<Utc> {
        self.now + self.wrong
    }

    fn live(&mut self) -> Result<(), String> {
        while self.now < self.end {
            self.look()?;
            if self.rng.u8(..10) == 0 {
                // Two wakes at once, or a restarted one: the second has nothing to do.
                let before = self.happened.values().sum::<u32>();
                self.look()?;
                if self.happened.values().sum::<u32>() != before {
                    return Err(format!("a second look at {} made something happen", self.wall()));
                }
            }
            self.pass_time();
        }
        // Finally the clock is right, and one more look follows.
        (self.now, self.wrong) = (self.end, TimeDelta::zero());
        self.look()
    }

    /// Lets time pass until the next look: a little, until about the next slot, or a sleep. Sometimes the clock is set.
    fn pass_time(&mut self) {
        let to_next = (self.next.at - self.wall()).clamp(TimeDelta::zero(), TimeDelta::days(400));
        let minutes = match self.rng.u8(..20) {
            0..8 => to_next.num_minutes() + self.rng.i64(-20..45),
            8..13 => to_next.num_minutes(),
            13..17 => self.rng.i64(1..20),
            17 => self.rng.i64(1..3_000),
            18 => self.rng.i64(1_000..20_000),
            _ => to_next.num_minutes() * self.rng.i64(1..5),
        };
        self.now += TimeDelta::minutes(minutes.max(1)) + TimeDelta::seconds(self.rng.i64(0..60));
        let year = 366 * 24 * 60;
        self.wrong = match self.rng.u8(..60) {
            0 => TimeDelta::minutes(self.rng.i64(-90..90)),
            1 => TimeDelta::minutes(self.rng.i64(-20_000..20_000)),
            2 => TimeDelta::seconds(self.rng.i64(-70..70)),
            3 => TimeDelta::minutes(self.rng.i64(-year..year)),
            4 => DateTime::UNIX_EPOCH - self.now,
            5..20 => TimeDelta::zero(),
            _ => self.wrong,
        };
    }

    /// One look, as a wake takes it.
    fn look(&mut self) -> Result<(), String> {
        let wall = self.wall();
        let rule = self.rule.clone();
        let series = |next| Series { rule: Some(&rule), tz: self.tz, missed: self.missed, next };
        if due::is_set_back(self.written, wall) {
            let history = self.history(None);
            if let Some(next) = series(self.next).find_rewound_slot(&history, self.created, wall) {
                self.next = next;
            }
            self.written = wall;
        }
        let turn = series(self.next).decide_turn(&self.history(Some(self.next.civil)), wall);
        if let Some(slot) = turn.happens {
            *self.happened.entry(slot.civil).or_default() += 1;
            if slot.at > wall {
                return Err(format!("{} happened early, at {wall}", slot.civil));
            }
            let is_wall_time = !matches!(rule, Rule::Interval { .. });
            if is_wall_time && self.instant(slot.civil) != Some(slot.at) {
                return Err(format!("{} was taken to be {}", slot.civil, slot.at));
            }
            if self.missed != Missed::Run && due::is_slot_missed(slot, wall) {
                return Err(format!("{} was missed, and happened at {wall}", slot.civil));
            }
        }
        if let Some(passed) = turn.passed {
            let key = passed.first.civil;
            let was_said = self.passed.iter().any(|(first, last)| (*first..=*last).contains(&key));
            if was_said && due::is_slot_missed(passed.first, wall) {
                return Err(format!("{key} was said to be missed a second time, at {wall}"));
            }
            self.passed.push((passed.first.civil, passed.last.civil));
            if self.missed == Missed::Run && turn.happens.is_none() {
                return Err(format!("{} was missed and did not happen late", passed.last.civil));
            }
        }
        if turn.next != Some(self.next) {
            self.next = turn.next.ok_or("it never comes again")?;
            self.written = wall;
        }
        self.was_met(wall)
    }

    /// Checks that a slot with a look in time happened, unless a later one of the same rule replaced it.
    fn was_met(&self, wall: DateTime<Utc>) -> Result<(), String> {
        let since = (wall - SURELY_MET).max(self.created);
        let Some(slot) = self.rule.next_after(since, self.tz).filter(|slot| slot.at <= wall) else {
            return Ok(());
        };
        let has_later = self.rule.next_after(slot.at, self.tz).is_some_and(|later| later.at <= wall);
        if has_later || self.happened.contains_key(&slot.civil) {
            return Ok(());
        }
        Err(format!("{} did not happen, though it was looked for at {wall}", slot.civil))
    }

    /// The results of the slots from `from` on, as the database returns them.
    fn history(&self, from: Option<NaiveDateTime>) -> SlotHistory {
        let from = from.unwrap_or(NaiveDateTime::MIN);
        SlotHistory {
            happened: self.happened.range(from..).map(|(slot, _)| *slot).collect(),
            passed: self.passed.iter().filter(|(_, last)| *last >= from).copied().collect(),
        }
    }

    /// Checks each slot of the calendar: it happened once, or was passed over and reported.
    fn check(&self) -> Result<(), String> {
        if let Some((slot, times)) = self.happened.iter().find(|(_, times)| **times > 1) {
            return Err(format!("{slot} happened {times} times"));
        }
        let passed = joined(&self.passed);
        let is_passed = |slot: &NaiveDateTime| passed.range(..=*slot).next_back().is_some_and(|(_, last)| last >= slot);
        let expected = self.expected();
        if let Some(slot) = expected.iter().find(|slot| !self.happened.contains_key(*slot) && !is_passed(slot)) {
            return Err(format!("{slot} was skipped without a word"));
        }
        match self.happened.keys().find(|slot| **slot <= self.last_key() && !expected.contains(*slot)) {
            Some(slot) => Err(format!("{slot} happened, which the calendar doesn't have")),
            None => Ok(()),
        }
    }

    fn last_key(&self) -> NaiveDateTime {
        match self.rule {
            Rule::Interval { .. } => self.end.naive_utc(),
            _ => self.end.with_timezone(&self.tz).naive_local(),
        }
    }

    /// The keys of all slots, found without [`Rule`]'s own steps.
    fn expected(&self) -> BTreeSet<NaiveDateTime> {
        if let Rule::Interval { minutes, anchor } = &self.rule {
            let steps = (self.end - *anchor).num_minutes() / i64::from(*minutes);
            let key = |step| (*anchor + TimeDelta::minutes(step * i64::from(*minutes))).naive_utc();
            return (1..=steps).map(key).collect();
        }
        let first = self.created.with_timezone(&self.tz).date_naive();
        let last = self.end.with_timezone(&self.tz).date_naive();
        let days = first.iter_days().take_while(|day| *day <= last).filter(|day| self.has_day(*day));
        days.filter_map(|day| {
            let civil = day.and_time(time_of(&self.rule)?);
            let at = self.instant(civil)?;
            (self.created < at && at <= self.end).then_some(civil)
        })
        .collect()
    }

    fn has_day(&self, day: NaiveDate) -> bool {
        let monday = |day: NaiveDate| day - TimeDelta::days(day.weekday().num_days_from_monday().into());
        let month = |day: NaiveDate| i64::from(day.year()) * 12 + i64::from(day.month());
        let tomorrow = day + TimeDelta::days(1);
        let is_day_of_month =
            |wanted: u32| day.day() == wanted || tomorrow.month() != day.month() && day.day() < wanted;
        match &self.rule {
            // Calendars have tests of their own beside the rules.
            Rule::Interval { .. } | Rule::Calendar(_) => false,
            Rule::Daily { .. } => true,
            Rule::Days { n, anchor, .. } => (day - *anchor).num_days() % i64::from(*n) == 0,
            Rule::Weekly { on, .. } => on.contains(day.weekday()),
            Rule::Weeks { n, on, anchor, .. } => {
                on.contains(day.weekday()) && (monday(day) - monday(*anchor)).num_weeks() % i64::from(*n) == 0
            }
            Rule::Monthly { day, .. } => is_day_of_month(*day),
            Rule::Months { n, day: wanted, anchor, .. } => {
                is_day_of_month(*wanted) && (month(day) - month(*anchor)) % i64::from(*n) == 0
            }
            Rule::MonthWeekday { nth, weekday, .. } => {
                let is_last = (day + TimeDelta::days(7)).month() != day.month();
                let is_nth = match nth {
                    Nth::First => day.day() <= 7,
                    Nth::Second => (8..15).contains(&day.day()),
                    Nth::Third => (15..22).contains(&day.day()),
                    Nth::Fourth => (22..29).contains(&day.day()),
                    Nth::Last => is_last,
                };
                day.weekday() == *weekday && is_nth
            }
            Rule::Yearly { month, day: wanted, .. } => day.month() == *month && is_day_of_month(*wanted),
        }
    }

    /// The instant of a wall time. A repeated time means the first one, and a skipped time is moved by the gap. `None` if the whole day
    /// is skipped.
    fn instant(&self, civil: NaiveDateTime) -> Option<DateTime<Utc>> {
        if let Some(at) = self.tz.from_local_datetime(&civil).earliest() {
            return Some(at.to_utc());
        }
        let hours = (0..24).filter_map(|hour| civil.date().and_hms_opt(hour, 0, 0));
        if hours.chain([civil]).all(|time| self.tz.from_local_datetime(&time).earliest().is_none()) {
            return None;
        }
        // Minute by minute back to the last wall time before the gap, and the same distance on from there.
        let minutes_in = (1..1440)
            .find(|minutes| self.tz.from_local_datetime(&(civil - TimeDelta::minutes(*minutes))).latest().is_some())?;
        let before = self.tz.from_local_datetime(&(civil - TimeDelta::minutes(minutes_in))).latest()?;
        Some(before.to_utc() + TimeDelta::minutes(minutes_in))
    }
}

/// A rule of any kind, at a time of day with frequent clock changes.
fn rule(rng: &mut Rng, tz: Tz, created: DateTime<Utc>) -> Rule {
    const TIMES: [(u32, u32); 9] = [(0, 0), (2, 30), (9, 0), (0, 30), (1, 59), (2, 0), (3, 0), (23, 45), (2, 15)];
    let (hour, minute) = TIMES[rng.usize(..TIMES.len())];
    let at = NaiveTime::from_hms_opt(hour, minute, 0).unwrap_or_default();
    let anchor = created.with_timezone(&tz).date_naive();
    let weekday = Weekday::try_from(rng.u8(..7)).unwrap_or(Weekday::Sun);
    let on = WeekdaySet::from_array([weekday, Weekday::Sun]);
    let nth = [Nth::First, Nth::Second, Nth::Third, Nth::Fourth, Nth::Last][rng.usize(..5)];
    match rng.u8(..14) {
        0..5 => Rule::Daily { at },
        5 => Rule::Weekly { on, at },
        6 => Rule::Weeks { n: rng.u32(2..5), on, anchor, at },
        7 => Rule::Days { n: rng.u32(2..9), anchor, at },
        8 => Rule::Monthly { day: rng.u32(28..32), at },
        9 => Rule::Months { n: rng.u32(2..7), day: 31, anchor, at },
        10 => Rule::MonthWeekday { nth, weekday, at },
        11 => Rule::Yearly { month: 2, day: 29, at },
        12 => Rule::Interval { minutes: 60 * rng.u32(1..8), anchor: created },
        _ => Rule::Interval { minutes: rng.u32(20..60), anchor: created },
    }
}

fn time_of(rule: &Rule) -> Option<NaiveTime> {
    match rule {
        Rule::Interval { .. } | Rule::Calendar(_) => None,
        Rule::Daily { at }
        | Rule::Days { at, .. }
        | Rule::Weekly { at, .. }
        | Rule::Weeks { at, .. }
        | Rule::Monthly { at, .. }
        | Rule::Months { at, .. }
        | Rule::MonthWeekday { at, .. }
        | Rule::Yearly { at, .. } => Some(*at),
    }
}

/// Merges overlapping ranges into a map from first to last key.
fn joined(ranges: &[(NaiveDateTime, NaiveDateTime)]) -> BTreeMap<NaiveDateTime, NaiveDateTime> {
    let sorted: BTreeSet<_> = ranges.iter().copied().collect();
    let mut joined: BTreeMap<NaiveDateTime, NaiveDateTime> = BTreeMap::new();
    for (first, last) in sorted {
        match joined.last_entry() {
            Some(mut before) if *before.get() >= first => {
                let end = last.max(*before.get());
                before.insert(end);
            }
            _ => {
                joined.insert(first, last);
            }
        }
    }
    joined
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}
