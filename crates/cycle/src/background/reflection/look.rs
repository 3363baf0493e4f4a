//! The due time for reflection, as far as the database tells. Before its hour, and after the day's reflection, this reads at most one key.

use std::ops::Range;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};

use reveille_base::schedule;
use reveille_config::Config;
use reveille_store::{Store, StoreError};

/// The maximum number of days in one reflection. Older days were never summarised.
const DAYS_MAX: u64 = 14;
/// The time of silence after the last message before reflection may start.
const CALM: TimeDelta = TimeDelta::minutes(30);

/// Returns the days to reflect on, without today. `None` before the hour, during a conversation, and for days without events.
pub(crate) fn find_due_days(
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<Range<NaiveDate>>, StoreError> {
    let local = now.with_timezone(&config.timezone);
    let today = local.date_naive();
    if config.reflect_at.is_none_or(|at| local.time() < at) {
        return Ok(None);
    }
    let last = store.maintenance().last_reflection()?;
    if last.is_some_and(|last| last >= today) {
        return Ok(None);
    }
    let earliest = today.checked_sub_days(Days::new(DAYS_MAX)).unwrap_or(today);
    let from = last.map_or(earliest, |last| last.max(earliest));
    let begin = |day: NaiveDate| schedule::resolve_local_time(day.and_time(NaiveTime::MIN), config.timezone).at;
    let (since, until) = (begin(from), begin(today));
    let Some(first) = store.maintenance().first_worked_between(since, until)? else { return Ok(None) };
    if store.maintenance().find_last_message_time()?.is_some_and(|heard| heard <= now && now - heard < CALM) {
        return Ok(None);
    }
    // Days before the first event need no summary.
    Ok(Some(first.with_timezone(&config.timezone).date_naive().max(from)..today))
}
