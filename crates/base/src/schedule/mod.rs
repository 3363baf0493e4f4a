//! Civil time: single and recurring times that a person names by the wall clock.
//!
//! Reminders are stored by their civil slot ("8:00 on 29 March"), not by an instant. The slot is the key which ensures that each time
//! fires exactly once when clocks change, the machine sleeps or a wake is repeated. [`rule`] steps from slot to slot, [`due`] decides
//! at each check of the clock, [`when`] parses English, [`words`] splits text into tokens. These modules do no I/O.

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

/// A point on somebody's wall clock with its instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// The key: the requested local time, even if DST skips it. For [`Rule::Interval`], which counts elapsed time, the key is the
    /// instant in UTC, so that both passes of the doubled hour are distinct.
    pub civil: NaiveDateTime,
    /// The instant.
    pub at: DateTime<Utc>,
}

impl Slot {
    /// The slot of an instant that counts elapsed time ("in 20 minutes"), keyed by the local time in `tz`.
    pub fn from_instant(at: DateTime<Utc>, tz: Tz) -> Self {
        Self { civil: at.with_timezone(&tz).naive_local(), at }
    }

    /// The local time in `tz` to show to people, since the key of an interval is in UTC.
    pub fn wall_time(&self, rule: Option<&Rule>, tz: Tz) -> NaiveDateTime {
        match rule {
            Some(Rule::Interval { .. }) => self.at.with_timezone(&tz).naive_local(),
            _ => self.civil,
        }
    }
}

/// Resolves a local time in a zone. A time that DST skips moves forward by the gap (02:30 becomes 03:30) but keeps its key. A
/// time that occurs twice means the first.
pub fn resolve_local_time(civil: NaiveDateTime, tz: Tz) -> Slot {
    let at = match tz.from_local_datetime(&civil) {
        // fault: hour-comes-twice-counts
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.with_timezone(&Utc),
        LocalResult::None => {
            // With the offset from before the gap, a skipped time lands as far after the gap as it was meant to.
            let east_s = tz.offset_before_gap(civil).map_or(0, |offset| offset.local_minus_utc());
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
        let slot = resolve_local_time(civil(wall), tz);
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
            resolve_local_time(NaiveDateTime::MAX, tz);
            resolve_local_time(NaiveDateTime::MIN, tz);
        }
    }
}
