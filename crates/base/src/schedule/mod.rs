//! Civil time: when something that a person named by the wall clock happens, once or again and again.
//!
//! Reminders are kept by their civil slot ("8:00 on 29 March"), not by an instant: the slot is the key that makes sure that
//! nothing fires twice or is left out when clocks change, the machine sleeps or a wake is repeated. [`rule`] steps from slot
//! to slot, [`due`] decides what happens at a look at the clock, [`when`] reads English, [`words`] cuts text into tokens. All
//! of it is values in, values out.

pub mod due;
pub mod rule;
mod task_time;
pub mod when;
pub mod words;

pub use due::Missed;
pub use rule::{Nth, Rule};
pub use task_time::{AT_FORMATS, task_time};
pub use when::{
    FoundTime, RelativeTime, TimeTrouble, When, is_distance, parse_only_day, parse_only_time, parse_relative,
    parse_when,
};

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone as _, Utc};
use serde::{Deserialize, Serialize};

use crate::zone::Tz;

/// A point on somebody's wall clock, and the instant at which it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// The key: local wall time as it was asked for, even where DST skips it. For [`Rule::Interval`], which counts elapsed
    /// time and not wall time, the instant's wall time in UTC: there the doubled hour has two keys.
    pub civil: NaiveDateTime,
    /// When it happens.
    pub at: DateTime<Utc>,
}

impl Slot {
    /// The slot of an instant that was found by counting elapsed time ("in 20 minutes"): its wall time in `tz`.
    pub fn of_instant(at: DateTime<Utc>, tz: Tz) -> Self {
        Self { civil: at.with_timezone(&tz).naive_local(), at }
    }

    /// The slot as people are told it, on the wall clock in `tz`: the key of an interval's is no local time.
    pub fn wall_time(&self, rule: Option<&Rule>, tz: Tz) -> NaiveDateTime {
        match rule {
            Some(Rule::Interval { .. }) => self.at.with_timezone(&tz).naive_local(),
            _ => self.civil,
        }
    }
}

/// The instant of a wall time in a zone. A time that DST skips moves forward by the gap (02:30 happens at 03:30) and keeps
/// its key; of a time that comes twice the first is meant.
pub fn resolve(civil: NaiveDateTime, tz: Tz) -> Slot {
    let at = match tz.from_local_datetime(&civil) {
        // fault: hour-comes-twice-counts
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.with_timezone(&Utc),
        LocalResult::None => {
            // Read with the offset from before the gap, the skipped time lands after it, as far in as it was meant to be.
            let east_s = tz.before_gap(civil).map_or(0, |offset| offset.local_minus_utc());
            civil.checked_sub_signed(TimeDelta::seconds(east_s.into())).unwrap_or(civil).and_utc()
        }
    };
    Slot { civil, at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn civil(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()
    }

    #[track_caller]
    fn check(tz: Tz, wall: &str, utc: &str) {
        let slot = resolve(civil(wall), tz);
        assert_eq!(slot.civil, civil(wall), "the key is kept");
        assert_eq!(slot.at, civil(utc).and_utc());
    }

    #[test]
    fn an_ordinary_time_has_one_instant() {
        check(Tz::of("Europe/Berlin"), "2026-11-21 14:00", "2026-11-21 13:00");
        check(Tz::UTC, "2026-11-21 14:00", "2026-11-21 14:00");
    }

    #[test]
    fn a_skipped_time_moves_forward_by_the_gap() {
        check(Tz::of("Europe/Berlin"), "2026-03-29 02:30", "2026-03-29 01:30"); // 03:30 there
        check(Tz::of("America/New_York"), "2026-03-08 02:30", "2026-03-08 07:30"); // 03:30 there
        check(Tz::of("Australia/Lord_Howe"), "2026-10-04 02:15", "2026-10-03 15:45"); // half an hour: 02:45 there
        check(Tz::of("America/Santiago"), "2026-09-06 00:10", "2026-09-06 04:10"); // midnight itself is skipped: 01:10 there
    }

    #[test]
    fn of_a_doubled_time_the_first_counts() {
        check(Tz::of("Europe/Berlin"), "2026-10-25 02:30", "2026-10-25 00:30");
        check(Tz::of("America/New_York"), "2026-11-01 01:30", "2026-11-01 05:30");
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_panic() {
        for tz in [Tz::of("Europe/Berlin"), Tz::of("Pacific/Apia")] {
            resolve(NaiveDateTime::MAX, tz);
            resolve(NaiveDateTime::MIN, tz);
        }
    }
}
