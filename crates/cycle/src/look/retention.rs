//! The due time for deleting old records: after `KEEP_DAYS`, about once a day.
//!
//! Under a clock that has leapt ahead everything looks old. After a large jump since the last round, nothing is deleted until the clock has
//! kept its new course for an hour.

pub(crate) mod files;

use chrono::{DateTime, TimeDelta, Utc};

use reveille_sandbox::exec::copies::Copies;
use reveille_store::{Store, StoreError, Upkeep, UpkeepKind};

use crate::context::Context;

/// The shortest time between two rounds.
const EVERY: TimeDelta = TimeDelta::days(1);
/// A jump of the clock to be watched before anything is deleted.
const LEAP: TimeDelta = TimeDelta::days(7);
/// How long a jump is watched.
pub(crate) const WATCHED: TimeDelta = TimeDelta::hours(1);

/// The decision for this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetentionTurn {
    /// The last round was recent.
    NotYet,
    /// The clock may have leapt: watch it.
    Watch,
    /// Delete old records.
    Now,
}

pub(crate) fn choose_turn(last: &Upkeep, now: DateTime<Utc>) -> RetentionTurn {
    match (last.not_before, last.last_ok_at) {
        (Some(at), _) if now < at - WATCHED || at + LEAP < now => RetentionTurn::Watch,
        (Some(at), _) if now < at => RetentionTurn::NotYet,
        (Some(_), _) => RetentionTurn::Now,
        (None, Some(at)) if (now - at).abs() < EVERY => RetentionTurn::NotYet,
        (None, Some(at)) if now - at <= LEAP => RetentionTurn::Now,
        (None, _) => RetentionTurn::Watch,
    }
}

/// Returns `true` if there are old records and a round is due. Nothing is written.
pub(crate) fn is_due(store: &Store, context: Context<'_>) -> Result<bool, StoreError> {
    let now = context.clock.now();
    let Some(before) = find_cutoff(context) else {
        return Ok(false);
    };
    if choose_turn(&store.maintenance().read_upkeep(UpkeepKind::Retention)?, now) == RetentionTurn::NotYet {
        return Ok(false);
    }
    Ok(store.retention().has_forgettable(before)?
        || !files::list_chores(context.config, store, before, now)?.is_empty()
        || Copies::from_config(context.config).has_old(now))
}

/// Returns the time before which records may go. `None` if everything is kept.
pub(crate) fn find_cutoff(context: Context<'_>) -> Option<DateTime<Utc>> {
    let keep = TimeDelta::from_std(context.config.keep?).ok()?;
    context.clock.now().checked_sub_signed(keep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    fn at(hours: i64) -> DateTime<Utc> {
        parse_time("2026-11-21T14:00:00Z").unwrap() + TimeDelta::hours(hours)
    }

    fn last(ok: Option<i64>, not_before: Option<i64>) -> Upkeep {
        Upkeep { last_ok_at: ok.map(at), not_before: not_before.map(at), ..Upkeep::default() }
    }

    #[test]
    fn it_is_time_once_a_day() {
        let turns = [0, 23, 24, 7 * 24].map(|hours| choose_turn(&last(Some(0), None), at(hours)));
        assert_eq!(turns, [RetentionTurn::NotYet, RetentionTurn::NotYet, RetentionTurn::Now, RetentionTurn::Now]);
    }

    #[test]
    fn a_clock_that_leapt_ahead_is_watched_for_an_hour() {
        assert_eq!(choose_turn(&last(None, None), at(0)), RetentionTurn::Watch);
        assert_eq!(choose_turn(&last(Some(0), None), at(7 * 24 + 1)), RetentionTurn::Watch);
        let watched = last(Some(0), Some(9_001));
        let turns = [9_000, 9_001, 9_001 + 7 * 24].map(|hours| choose_turn(&watched, at(hours)));
        assert_eq!(turns, [RetentionTurn::NotYet, RetentionTurn::Now, RetentionTurn::Now]);
        // A clock that is set right or leaps again restarts the watch.
        assert_eq!(choose_turn(&watched, at(5)), RetentionTurn::Watch);
        assert_eq!(choose_turn(&watched, at(9_001 + 7 * 24 + 1)), RetentionTurn::Watch);
    }

    #[test]
    fn a_clock_that_was_set_back_delays_no_round() {
        assert_eq!(choose_turn(&last(Some(9_000), None), at(0)), RetentionTurn::Now);
    }
}
