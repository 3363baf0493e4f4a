//! Decay of quiet tasks. A task untouched for a week is mentioned, then questioned, then put to a decision, so that `active.md` lists only
//! tasks in progress.

use chrono::NaiveDate;

use super::tasks::Task;

/// Days without a touch before a task is mentioned.
pub const NUDGE_DAYS: i64 = 7;
/// Days without a touch before a task is questioned.
pub const CHALLENGE_DAYS: i64 = 10;
/// Days without a touch before a task must be continued or archived.
pub const DECIDE_DAYS: i64 = 14;

/// Statuses of tasks that may rest: finished, or set aside on purpose. Waiting tasks still decay: after two weeks of waiting for somebody
/// else, a nudge helps.
const RESTING: [&str; 6] = ["done", "paused", "on hold", "someday", "cancelled", "archived"];

/// How long a task has been quiet, in stages of reminders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// From [`NUDGE_DAYS`] on.
    Nudge,
    /// From [`CHALLENGE_DAYS`] on.
    Challenge,
    /// From [`DECIDE_DAYS`] on.
    Decide,
}

impl Stage {
    /// Returns a short name, fit for a key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nudge => "nudge",
            Self::Challenge => "challenge",
            Self::Decide => "decide",
        }
    }

    /// Returns the reminder for a task that has been quiet for this many days.
    pub fn format_reminder(self, title: &str, days: i64) -> String {
        match self {
            Self::Nudge => format!("“{title}” has been quiet for {days} days. Is there a small next step?"),
            Self::Challenge => {
                format!("“{title}” hasn't moved for {days} days. Is it still worth doing, and what's holding it up?")
            }
            Self::Decide => {
                format!("“{title}” has been untouched for {days} days. Continue it, or move it to the backlog?")
            }
        }
    }
}

/// Returns the stage for a last touch. `None` if there is no date or it lies in the future.
pub fn find_stage(touched: Option<NaiveDate>, today: NaiveDate) -> Option<Stage> {
    match quiet_days(touched?, today) {
        days if days >= DECIDE_DAYS => Some(Stage::Decide),
        days if days >= CHALLENGE_DAYS => Some(Stage::Challenge),
        days if days >= NUDGE_DAYS => Some(Stage::Nudge),
        _ => None,
    }
}

/// Returns the stage of a task. `None` for tasks that are done or set aside.
pub fn find_task_stage(task: &Task, today: NaiveDate) -> Option<Stage> {
    if is_resting(task) { None } else { find_stage(task.touched, today) }
}

/// Returns whether a task is done or set aside on purpose.
pub fn is_resting(task: &Task) -> bool {
    let status = task.status().unwrap_or_default().to_lowercase();
    RESTING.contains(&status.as_str())
}

/// Returns the whole days from a touch to today; negative for a future touch.
pub fn quiet_days(touched: NaiveDate, today: NaiveDate) -> i64 {
    today.signed_duration_since(touched).num_days()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskList;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    #[test]
    fn each_line_is_crossed_on_its_day() {
        let stages: Vec<_> =
            (1..=20).filter_map(|today| Some((today, find_stage(Some(day(1)), day(today))?.name()))).collect();
        assert_eq!(stages.first(), Some(&(8, "nudge")));
        assert_eq!(stages.iter().find(|(_, name)| *name == "challenge"), Some(&(11, "challenge")));
        assert_eq!(stages.iter().find(|(_, name)| *name == "decide"), Some(&(15, "decide")));
        assert_eq!(stages.last(), Some(&(20, "decide")));
        assert_eq!(find_stage(None, day(20)), None);
        assert_eq!(find_stage(Some(day(28)), day(1)), None);
        assert_eq!(find_stage(Some(NaiveDate::MIN), NaiveDate::MAX), Some(Stage::Decide));
    }

    #[test]
    fn what_rests_does_not_decay() {
        let text: String = ["done", "Paused", "waiting", "active"]
            .map(|status| format!("## {status}\n- status: {status}\n- touched: 2026-11-01\n"))
            .concat();
        let (list, _) = TaskList::parse(&text);
        let stages: Vec<_> = list.tasks().iter().map(|task| find_task_stage(task, day(12))).collect();
        assert_eq!(stages, [None, None, Some(Stage::Challenge), Some(Stage::Challenge)]);
    }

    #[test]
    fn wording_names_task_and_days() {
        for stage in [Stage::Nudge, Stage::Challenge, Stage::Decide] {
            let said = stage.format_reminder("Call Bob", 12);
            assert!(said.contains("Call Bob") && said.contains("12 days") && said.ends_with('?'), "{said}");
        }
    }
}
