//! The times for initiative: set civil times outside quiet hours. Pure.
//!
//! A missed time is made up for within two hours, otherwise skipped. Each time is one slot, and its key is handled once.

use chrono::{DateTime, Days, NaiveDateTime, NaiveTime, TimeDelta, Utc};

use reveille_base::{schedule, types::OwnWork, zone::Tz};
use reveille_config::{InitiativeLevel, QuietHours};
use reveille_memory::initiative::Weighed;

/// How late a missed slot may still run.
const SLOT_GRACE: TimeDelta = TimeDelta::hours(2);

/// How long a slot waits for a model. Then the slot is skipped, and the skip is recorded.
const WAITS_FOR_MODEL: TimeDelta = TimeDelta::minutes(90);

/// The time of the daily slot without quiet hours.
const MORNING: Option<NaiveTime> = NaiveTime::from_hms_opt(9, 0, 0);

/// The three daily times of the high level.
const THREE_TIMES: [Option<NaiveTime>; 3] =
    [MORNING, NaiveTime::from_hms_opt(13, 0, 0), NaiveTime::from_hms_opt(17, 0, 0)];

/// A time for initiative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitiativeSlot {
    /// The civil time.
    pub civil: NaiveDateTime,
    /// True if the slot has waited for a model long enough.
    pub is_ending: bool,
}

impl InitiativeSlot {
    /// The background job of this slot.
    pub fn background_job(&self) -> OwnWork {
        OwnWork::Initiative { slot: self.civil.format("%Y-%m-%dT%H:%M").to_string() }
    }
}

/// A due slot with its candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueInitiative {
    /// The slot.
    pub slot: InitiativeSlot,
    /// The weighed candidates.
    pub weighed: Weighed,
}

impl DueInitiative {
    /// Describes the work in a few words for people, starting with the best candidate.
    pub fn describe(&self) -> String {
        let others = match self.weighed.worthwhile_candidates().len() {
            0 | 1 => String::new(),
            n => format!(", the first of {n}"),
        };
        let best = self.weighed.worthwhile_candidates().first().map(|best| format!(": “{}”{others}", best.title));
        format!("something useful unasked{}", best.unwrap_or_default())
    }
}

/// Returns the slot due now.
pub(crate) fn find_due_slot(
    level: InitiativeLevel,
    quiet_hours: Option<QuietHours>,
    now: DateTime<Utc>,
    tz: Tz,
) -> Option<InitiativeSlot> {
    let times: Vec<NaiveTime> = match level {
        InitiativeLevel::Off => return None,
        InitiativeLevel::Low => quiet_hours.map(|hours| hours.until).or(MORNING).into_iter().collect(),
        InitiativeLevel::High => THREE_TIMES.into_iter().flatten().collect(),
    };
    let local = now.with_timezone(&tz);
    if quiet_hours.is_some_and(|hours| hours.contains(local.time())) {
        return None;
    }
    let today = local.date_naive();
    let days = [today.checked_sub_days(Days::new(1)), Some(today)].into_iter().flatten();
    let slots =
        days.flat_map(|day| times.iter().map(move |time| schedule::resolve_local_time(day.and_time(*time), tz)));
    let last = slots.filter(|slot| slot.at <= now).max_by_key(|slot| slot.at)?;
    let late = now - last.at;
    (late < SLOT_GRACE).then(|| InitiativeSlot { civil: last.civil, is_ending: late >= WAITS_FOR_MODEL })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    fn slot_at(level: InitiativeLevel, quiet: Option<(&str, &str)>, now: &str) -> Option<String> {
        let time = |text: &str| NaiveTime::parse_from_str(text, "%H:%M").unwrap();
        let quiet = quiet.map(|(from, until)| QuietHours { from: time(from), until: time(until) });
        let slot = find_due_slot(level, quiet, parse_time(now).unwrap(), "Europe/Berlin".parse::<Tz>().unwrap())?;
        let OwnWork::Initiative { slot: name } = slot.background_job() else { panic!() };
        Some(if slot.is_ending { format!("{name} ends") } else { name })
    }

    #[test]
    fn a_slot_has_its_two_hours_in_waking_hours() {
        let low = |quiet, now| slot_at(InitiativeLevel::Low, quiet, now);
        let high = |quiet, now| slot_at(InitiativeLevel::High, quiet, now);
        let (night, late) = (Some(("22:00", "07:00")), Some(("23:00", "10:30")));
        assert_eq!(slot_at(InitiativeLevel::Off, None, "2026-11-25T08:00:00Z"), None);
        assert_eq!(low(None, "2026-11-25T07:59:00Z"), None);
        assert_eq!(low(None, "2026-11-25T08:00:00Z").as_deref(), Some("2026-11-25T09:00"));
        assert_eq!(low(None, "2026-11-25T09:31:00Z").as_deref(), Some("2026-11-25T09:00 ends"));
        assert_eq!(low(None, "2026-11-25T10:00:00Z"), None, "two hours late it is left out");
        assert_eq!(low(night, "2026-11-25T06:00:00Z").as_deref(), Some("2026-11-25T07:00"));
        assert_eq!(high(None, "2026-11-25T12:10:00Z").as_deref(), Some("2026-11-25T13:00"));
        assert_eq!(high(None, "2026-11-25T16:00:00Z").as_deref(), Some("2026-11-25T17:00"));
        assert_eq!(high(None, "2026-11-25T10:30:00Z"), None);
        assert_eq!(high(late, "2026-11-25T08:10:00Z"), None, "not in quiet hours");
        assert_eq!(high(late, "2026-11-25T09:31:00Z").as_deref(), Some("2026-11-25T09:00 ends"));
        assert_eq!(low(Some(("22:00", "23:30")), "2026-11-25T23:10:00Z").as_deref(), Some("2026-11-25T23:30"));
    }

    #[test]
    fn the_clock_s_change_moves_no_slot() {
        // The night in which 02:00 becomes 03:00, and the one in which 03:00 becomes 02:00.
        let low = |now| slot_at(InitiativeLevel::Low, Some(("22:00", "02:30")), now);
        assert_eq!(low("2026-03-29T01:30:00Z").as_deref(), Some("2026-03-29T02:30"));
        assert_eq!(low("2026-10-25T00:30:00Z").as_deref(), Some("2026-10-25T02:30"));
    }
}
