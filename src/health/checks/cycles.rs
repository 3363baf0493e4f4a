//! `cycles`: reports open cycles, which the next wake resumes by itself.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_store::{CycleRow, CycleState};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_relative_time,
};

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let overdue = TimeDelta::from_std(scene.config.stale_lock).unwrap_or(TimeDelta::MAX);
    Ok(judge_open_cycles(&store.cycles().open_cycles()?, scene.is_wake_running(), overdue, scene.now))
}

/// Judges the open cycles. `overdue` is the time allowed for resuming a cycle that could continue.
fn judge_open_cycles(open: &[CycleRow], is_wake_running: bool, overdue: TimeDelta, now: DateTime<Utc>) -> Finding {
    let findings = open.iter().map(|row| {
        let began =
            row.started_at.map_or_else(String::new, |at| format!(", started {}", format_relative_time(at, now)));
        let id = &row.cycle.id;
        if row.state == CycleState::Running {
            return match &row.error {
                // fault: cycle-cut-off-none
                _ if is_wake_running => Finding::ok(format!("{id} is under way{began}")),
                Some(why) => Finding::warn(
                    format!("{id} was stopped{began}: {why}"),
                    "once that is fixed, the next wake resumes it: wake --once",
                ),
                None => {
                    Finding::warn_for_wake(format!("{id} was cut off{began}"), "the next wake resumes it: wake --once")
                }
            };
        }
        if row.state == CycleState::Parked {
            return Finding::ok(format!("{id} waits for your answer{began}"));
        }
        let why = row.error.as_deref().unwrap_or("the AI model can't be reached");
        let resumable_at = row.not_before.unwrap_or(now);
        let waits = format!("{id} waits{began}: {why}");
        if now.signed_duration_since(resumable_at) > overdue && !is_wake_running {
            Finding::warn_for_wake(
                format!("{waits}; it could have continued {}", format_relative_time(resumable_at, now)),
                "wake --once resumes it; check that cron or the bot starts wakes",
            )
        } else {
            Finding::ok(format!("{waits}; retry due {}", format_relative_time(resumable_at, now)))
        }
    });
    Finding::merge_all(findings.collect(), Finding::ok("no unfinished work"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;
    use reveille_store::NewCycle;

    fn row(state: CycleState, not_before: Option<&str>) -> CycleRow {
        CycleRow {
            cycle: NewCycle {
                id: "c1".to_owned(),
                trigger: "cron".to_owned(),
                reasons: Vec::new(),
                chat: None,
                thread_id: None,
                model: "offline".to_owned(),
                system: String::new(),
                tools: String::new(),
                work: None,
            },
            state,
            started_at: parse_time("2026-11-21T11:00:00Z"),
            tries: 0,
            was_cut_off: state == CycleState::Running,
            not_before: not_before.and_then(parse_time),
            ended_at: None,
            commit_id: None,
            error: None,
            asks_until: None,
        }
    }

    #[test]
    fn a_running_cycle_needs_a_wake_and_a_waiting_one_may_wait_for_its_time() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let status = |rows: &[CycleRow], running| judge_open_cycles(rows, running, TimeDelta::minutes(15), now).status;
        assert_eq!(status(&[], false), Status::Ok);
        let running = [row(CycleState::Running, None)];
        assert_eq!((status(&running, true), status(&running, false)), (Status::Ok, Status::Warn));
        assert_eq!(status(&[row(CycleState::Parked, None)], false), Status::Ok);
        assert_eq!(status(&[row(CycleState::Waiting, Some("2026-11-21T13:00:00Z"))], false), Status::Ok);
        assert_eq!(status(&[row(CycleState::Waiting, Some("2026-11-21T11:50:00Z"))], false), Status::Ok);
        assert_eq!(status(&[row(CycleState::Waiting, Some("2026-11-21T11:30:00Z"))], false), Status::Warn);
    }
}
