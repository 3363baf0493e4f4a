//! `clock`: finds a wrong clock. A machine without a real-time clock starts in 1970, and then no reminder is due.

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::{format_local_time, format_relative_time},
};

/// The year this program was written. No correct clock shows an earlier one.
const FIRST_YEAR: i32 = 2026;
/// Largest correction of the clock that isn't reported.
const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    // Without a database, only the year can be checked.
    let last = match scene.store() {
        Ok(Some(store)) => store.cycles().last_cycle()?,
        _ => None,
    };
    let last = last.and_then(|row| row.ended_at.max(row.started_at));
    let finding = judge_clock(last, scene.now);
    Ok(match finding.status {
        crate::health::Status::Ok => {
            let tz = scene.config.timezone;
            Finding::ok(format!("{} in {tz}", format_local_time(scene.now, tz)))
        }
        _ => finding,
    })
}

fn judge_clock(last_cycle_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Finding {
    let fix = "set the clock (timedatectl set-ntp true); reminders and tasks depend on it";
    if now.year() < FIRST_YEAR {
        return Finding::warn(format!("this machine thinks it is {}", now.format("%Y-%m-%d")), fix);
    }
    match last_cycle_at {
        Some(last) if last > now + TOLERANCE => Finding::warn(
            format!("the last wake is dated {}: the clock went back", format_relative_time(last, now)),
            fix,
        ),
        _ => Finding::ok("right, as far as can be told"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    #[test]
    fn a_clock_that_went_back_is_reported() {
        let at = |text| parse_time(text).unwrap();
        let now = at("2026-11-21T12:00:00Z");
        assert_eq!(judge_clock(None, now).status, Status::Ok);
        assert_eq!(judge_clock(None, at("1970-01-01T00:00:07Z")).status, Status::Warn);
        assert_eq!(judge_clock(Some(at("2026-11-21T12:04:00Z")), now).status, Status::Ok);
        assert_eq!(
            judge_clock(Some(at("2026-11-21T14:00:00Z")), now).detail,
            "the last wake is dated in 2 h: the clock went back"
        );
    }
}
