//! `due`: finds overdue reminders and undos. A wake normally handles both within minutes.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_config::Config;
use reveille_store::{Reminder, Undo, wake_lock::waker::Waker};

use crate::health::{
    Status,
    finding::{Finding, Trouble},
    scene::Scene,
    words::{format_count, format_list, format_relative_time, local_day_and_time},
};

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    // A running wake still handles them, and during a stop of all work waiting is intended.
    if scene.is_wake_running() || store.chats().find_stop_order()?.is_some() {
        return Ok(Finding::ok("left to the running wake, or to the next one after wake resume"));
    }
    let overdue = TimeDelta::from_std(scene.config.stale_lock).unwrap_or(TimeDelta::MAX);
    let (reminders, waker) = (store.reminders().list_reminders()?, Waker::load(scene.config, scene.now));
    let finding = judge_due(&reminders, &store.undos().open_undos()?, overdue, scene.now);
    if finding.status == Status::Ok && !reminders.is_empty() && !waker.is_lasting() {
        return Ok(warn_late_reminders(&reminders, &waker, scene.config));
    }
    Ok(finding)
}

/// Warns about reminders that will be late because wakes aren't started reliably.
fn warn_late_reminders(reminders: &[Reminder], waker: &Waker, config: &Config) -> Finding {
    let next = reminders.iter().map(|reminder| reminder.what.next_at).min();
    let next = next.map(|at| format!(", the next for {}", local_day_and_time(at, config.timezone))).unwrap_or_default();
    let who = match format_list(waker.running.iter().map(|program| program.name())) {
        none if none.is_empty() => "nothing wakes me automatically".to_owned(),
        open => format!("only {open} wakes me, and only while open"),
    };
    let found = format!("{} set{next}, but {who}", format_count(reminders.len(), "reminder"));
    Finding::warn(found, waker.describe_setup(config))
}

/// `overdue` is the time allowed for handling due items.
fn judge_due(reminders: &[Reminder], undos: &[Undo], overdue: TimeDelta, now: DateTime<Utc>) -> Finding {
    let is_late = |at: DateTime<Utc>| now.signed_duration_since(at) > overdue;
    let late: Vec<DateTime<Utc>> =
        reminders.iter().map(|reminder| reminder.what.next_at).filter(|at| is_late(*at)).collect();
    let reminders = late.iter().min().map(|first| {
        Finding::warn_for_wake(
            format!("unsent reminders: {}, the first was due {}", late.len(), format_relative_time(*first, now)),
            "wake --once sends them; check that cron or the bot starts wakes",
        )
    });
    let undos = undos.iter().filter_map(|undo| {
        let asked_at = undo.asked_at.filter(|at| is_late(*at))?;
        Some(Finding::warn_for_wake(
            format!(
                "the undo of wake {}, asked for {}, hasn't happened",
                undo.wake,
                format_relative_time(asked_at, now)
            ),
            "wake --once does it; check that cron or the bot starts wakes",
        ))
    });
    Finding::merge_all(reminders.into_iter().chain(undos).collect(), Finding::ok("nothing is overdue"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::types::ChatRef;
    use reveille_base::{clock::parse_time, schedule::Missed};
    use reveille_store::NewReminder;

    #[test]
    fn overdue_work_is_reported_and_recently_due_work_is_not() {
        let at = |text| parse_time(text).unwrap();
        let now = at("2026-11-21T12:00:00Z");
        let reminder = |next_at| Reminder {
            id: 1,
            what: NewReminder {
                chat: ChatRef::from_telegram(7),
                thread_id: None,
                text: "tea".to_owned(),
                rule: None,
                zone: "Europe/Berlin".to_owned(),
                slot: at(next_at).naive_utc(),
                next_at: at(next_at),
                missed: Missed::Run,
            },
            created_at: None,
            written_at: None,
            skipped: None,
        };
        let undo = |asked_at| Undo {
            id: 1,
            wake: "w1".to_owned(),
            chat: ChatRef::from_telegram(7),
            asked_at: parse_time(asked_at),
        };
        let judged = |reminders: &[Reminder], undos: &[Undo]| judge_due(reminders, undos, TimeDelta::minutes(15), now);
        let (soon, late) = ("2026-11-21T11:46:00Z", "2026-11-21T11:44:00Z");
        assert_eq!(judged(&[reminder(soon), reminder("2026-11-22T09:00:00Z")], &[undo(soon)]).status, Status::Ok);
        let told = judged(&[reminder(soon), reminder(late)], &[]);
        assert_eq!(told.detail, "unsent reminders: 1, the first was due 16 min ago");
        let told = judged(&[], &[undo(late)]);
        assert_eq!((told.status, told.detail.contains("w1")), (Status::Warn, true));
    }
}
