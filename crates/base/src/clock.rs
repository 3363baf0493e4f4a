//! The only module that reads the system clock. Other code receives a [`Clock`] or a time.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};

/// The longest wait that is ever stored. A later time was stored while the clock was wrong.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::days(2);

/// A source of the current time: the system's in production, a fixed one in tests.
pub trait Clock: Send + Sync {
    /// The current time in UTC, to the millisecond.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one home of the system clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(3)
    }
}

/// A clock that always shows the same time. `REVEILLE_NOW` sets it, to run a whole process at a chosen time.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub DateTime<Utc>);

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}

/// The time since boot without sleep, equal for all processes and immune to clock changes. A laptop's night isn't mistaken for
/// silence. (On macOS, sleep counts too.)
pub fn read_awake_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The time since boot with sleep, equal for all processes and immune to clock changes. Right for terms that other machines measure
/// while this one sleeps.
pub fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Formats a time for the database and the journal: RFC 3339, UTC, to the millisecond, sortable as text.
pub fn format_rfc3339(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns true if a wait is over. A wait longer than [`LONGEST_WAIT`] also counts as over: the clock was set back.
pub fn is_over(until: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    until <= now || until.signed_duration_since(now) > LONGEST_WAIT
}

/// Parses RFC 3339 with any offset, or SQLite's `YYYY-MM-DD HH:MM:SS` as UTC.
pub fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"]
        .iter()
        .find_map(|format| chrono::NaiveDateTime::parse_from_str(text, format).ok())
        .map(|naive| naive.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_times_are_read_back_and_sort_as_text() {
        let at = parse_time("2026-11-21 09:05:00").unwrap();
        assert_eq!(format_rfc3339(at), "2026-11-21T09:05:00.000Z");
        assert_eq!(parse_time(&format_rfc3339(at)), Some(at));
        assert_eq!(parse_time("2026-11-21T10:05:00+01:00"), Some(at));
        assert_eq!(parse_time("yesterday"), None);
    }

    #[test]
    fn a_wait_ends_and_an_impossible_one_is_none() {
        let now = parse_time("2026-11-21 09:05:00").unwrap();
        for (ahead_s, over) in [(-1, true), (0, true), (1, false), (2 * 86_400, false), (2 * 86_400 + 1, true)] {
            assert_eq!(is_over(now + TimeDelta::seconds(ahead_s), now), over, "{ahead_s}");
        }
        assert!(is_over(DateTime::<Utc>::MAX_UTC, now));
    }
}
