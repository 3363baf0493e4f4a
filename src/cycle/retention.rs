//! Retention: what is only looked back at goes after `KEEP_DAYS`, about once a day, when nobody waits for an answer. Here is
//! when; what goes is said in [`crate::queue`] for the database and in `files` for logs and voice.
//!
//! A clock that has leapt ahead makes everything look old. So nothing is forgotten by a clock that differs much from the
//! last look's before it has gone on like that for an hour.

mod files;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Context, WakeError, wake::Wake};
use crate::hands::copies::Copies;
use crate::queue::{Store, StoreError, Upkeep, UpkeepKind};

/// The shortest time between two rounds.
const EVERY: TimeDelta = TimeDelta::days(1);
/// A clock that is so much further than at the last round is watched first.
const LEAP: TimeDelta = TimeDelta::days(7);
/// For so long.
const WATCHED: TimeDelta = TimeDelta::hours(1);
/// Rows that one transaction forgets at most: a message that comes meanwhile waits for milliseconds.
const BATCH_ROWS: u32 = 200;
/// Between two transactions others have their turn.
const PAUSE: Duration = Duration::from_millis(20);
/// No new batch is begun after so long; the next wake goes on.
const BOUND: Duration = Duration::from_secs(5);

/// What the time says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It was done not long ago.
    NotYet,
    /// The clock may have leapt: watch it.
    Watch,
    /// Forget what is old.
    Now,
}

fn turn(last: &Upkeep, now: DateTime<Utc>) -> Turn {
    match (last.not_before, last.last_ok_at) {
        (Some(at), _) if now < at - WATCHED || at + LEAP < now => Turn::Watch,
        (Some(at), _) if now < at => Turn::NotYet,
        (Some(_), _) => Turn::Now,
        (None, Some(at)) if (now - at).abs() < EVERY => Turn::NotYet,
        (None, Some(at)) if now - at <= LEAP => Turn::Now,
        (None, _) => Turn::Watch,
    }
}

/// Whether there is something old, and it is time to forget it. Nothing is written.
pub(super) fn is_due(store: &Store, context: Context<'_>) -> Result<bool, StoreError> {
    let now = context.clock.now();
    let Some(before) = oldest_kept(context) else {
        return Ok(false);
    };
    if turn(&store.upkeep(UpkeepKind::Retention)?, now) == Turn::NotYet {
        return Ok(false);
    }
    Ok(store.has_forgettable(before)?
        || !files::chores(context.config, store, before, now)?.is_empty()
        || Copies::of(context.config).has_old(now))
}

/// What is older than this may go; `None`: nothing ever.
fn oldest_kept(context: Context<'_>) -> Option<DateTime<Utc>> {
    let keep = TimeDelta::from_std(context.config.keep?).ok()?;
    context.clock.now().checked_sub_signed(keep)
}

impl Wake<'_> {
    /// Forgets what is old, if it is time to. Says whether anything was forgotten. Ends early for whoever comes meanwhile, and
    /// after a while; the next wake goes on.
    pub(super) async fn forget_old(&mut self) -> Result<bool, WakeError> {
        let (Some(before), true) = (oldest_kept(self.context), is_due(self.store, self.context)?) else {
            return Ok(false);
        };
        if *self.context.stop.borrow() {
            return Ok(false);
        }
        let now = self.now();
        if turn(&self.store.upkeep(UpkeepKind::Retention)?, now) == Turn::Watch {
            let why =
                "the clock is further than it was: nothing is forgotten before it has gone on like that for a while";
            self.store.upkeep_failed(self.fence, UpkeepKind::Retention, why, Some(WATCHED), now)?;
            return Ok(false);
        }
        let (begun, last_message) = (tokio::time::Instant::now(), self.store.last_message()?);
        let mut rows = 0;
        loop {
            let n = self.store.forget(self.fence, before, BATCH_ROWS)?;
            rows += n;
            if n == 0 {
                break;
            }
            let is_wanted = *self.context.stop.borrow() || self.store.last_message()? != last_message;
            if is_wanted || begun.elapsed() >= BOUND {
                tracing::info!(rows, "forgot some of what is old; a later wake goes on");
                return Ok(true);
            }
            tokio::time::sleep(PAUSE).await;
        }
        let chores = files::chores(self.context.config, self.store, before, now)?;
        let n_files = chores.len();
        // First: a file that nothing names any more is removed another day, a row that names none would mislead.
        let removed: Vec<String> =
            chores.iter().filter_map(|chore| chore.removes(&self.context.config.workspace_dir)).collect();
        if !removed.is_empty() {
            self.store.forget_files(self.fence, &removed)?;
        }
        for chore in chores {
            if let Err(error) = chore.run() {
                tracing::warn!(%error, "{} could not be cleared up; it is tried again tomorrow", chore.path().display());
            }
        }
        let n_copies = Copies::of(self.context.config).forget_old(now, 0).unwrap_or_else(|error| {
            tracing::warn!(%error, "an old copy could not be removed; it is tried again tomorrow");
            0
        });
        self.store.upkeep_ok(self.fence, UpkeepKind::Retention, now)?;
        tracing::info!(rows, files = n_files, copies = n_copies, "forgot what is old");
        Ok(rows > 0 || n_files > 0 || n_copies > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::parse_time;

    fn at(hours: i64) -> DateTime<Utc> {
        parse_time("2026-11-21T14:00:00Z").unwrap() + TimeDelta::hours(hours)
    }

    fn last(ok: Option<i64>, not_before: Option<i64>) -> Upkeep {
        Upkeep { last_ok_at: ok.map(at), not_before: not_before.map(at), ..Upkeep::default() }
    }

    #[test]
    fn it_is_time_once_a_day() {
        let turns = [0, 23, 24, 7 * 24].map(|hours| turn(&last(Some(0), None), at(hours)));
        assert_eq!(turns, [Turn::NotYet, Turn::NotYet, Turn::Now, Turn::Now]);
    }

    #[test]
    fn a_clock_that_leapt_ahead_is_watched_for_an_hour() {
        assert_eq!(turn(&last(None, None), at(0)), Turn::Watch);
        assert_eq!(turn(&last(Some(0), None), at(7 * 24 + 1)), Turn::Watch);
        let watched = last(Some(0), Some(9_001));
        let turns = [9_000, 9_001, 9_001 + 7 * 24].map(|hours| turn(&watched, at(hours)));
        assert_eq!(turns, [Turn::NotYet, Turn::Now, Turn::Now]);
        // Put right again, or leapt once more: the watch begins anew.
        assert_eq!(turn(&watched, at(5)), Turn::Watch);
        assert_eq!(turn(&watched, at(9_001 + 7 * 24 + 1)), Turn::Watch);
    }

    #[test]
    fn a_clock_that_went_back_forgets_less_and_goes_on() {
        assert_eq!(turn(&last(Some(9_000), None), at(0)), Turn::Now);
    }
}
