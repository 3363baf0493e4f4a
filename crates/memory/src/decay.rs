//! Decay: which tasks have gone quiet, and what is said about it. A task that nobody touches for a week is named, then
//! questioned, then put to a decision, so that `active.md` stays what is really active.

use chrono::NaiveDate;

use super::tasks::Task;

/// Days without a touch after which a task is mentioned.
pub const NUDGE_DAYS: i64 = 7;
/// Days without a touch after which a task is questioned.
pub const CHALLENGE_DAYS: i64 = 10;
/// Days without a touch after which a task must be continued or archived.
pub const DECIDE_DAYS: i64 = 14;

/// Statuses of tasks that may rest: finished, or set aside on purpose. Waiting isn't among them: what waits for
/// somebody else for two weeks is what a nudge is for.
const RESTING: [&str; 6] = ["done", "paused", "on hold", "someday", "cancelled", "archived"];

/// How long a task has been quiet, in the steps that something is said at.
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
    /// A short name, fit for a key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nudge => "nudge",
            Self::Challenge => "challenge",
            Self::Decide => "decide",
        }
    }

    /// What to say about a task that has been quiet for so many days.
    pub fn wording(self, title: &str, days: i64) -> String {
        match self {
            Self::Nudge => format!("“{title}” has been quiet for {days} days. Is there a small next step?"),
            Self::Challenge => {
                format!("“{title}” hasn't moved for {days} days. Is it still worth doing, and what holds it up?")
            }
            Self::Decide => {
                format!("“{title}” has been untouched for {days} days. Go on with it, or move it to the backlog?")
            }
        }
    }
}

/// The stage of something last touched on a day. Without a day, or with one in the future, there is none.
pub fn stage(touched: Option<NaiveDate>, today: NaiveDate) -> Option<Stage> {
    match quiet_days(touched?, today) {
        days if days >= DECIDE_DAYS => Some(Stage::Decide),
        days if days >= CHALLENGE_DAYS => Some(Stage::Challenge),
        days if days >= NUDGE_DAYS => Some(Stage::Nudge),
        _ => None,
    }
}

/// The stage of a task. One that is done or set aside doesn't decay.
pub fn stage_of(task: &Task, today: NaiveDate) -> Option<Stage> {
    if rests(task) { None } else { stage(task.touched, today) }
}

/// Whether a task is done or set aside on purpose.
pub fn rests(task: &Task) -> bool {
    let status = task.status().unwrap_or_default().to_lowercase();
    RESTING.contains(&status.as_str())
}

/// Whole days from a touch to today; negative when it lies ahead.
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
            (1..=20).filter_map(|today| Some((today, stage(Some(day(1)), day(today))?.name()))).collect();
        assert_eq!(stages.first(), Some(&(8, "nudge")));
        assert_eq!(stages.iter().find(|(_, name)| *name == "challenge"), Some(&(11, "challenge")));
        assert_eq!(stages.iter().find(|(_, name)| *name == "decide"), Some(&(15, "decide")));
        assert_eq!(stages.last(), Some(&(20, "decide")));
        assert_eq!(stage(None, day(20)), None);
        assert_eq!(stage(Some(day(28)), day(1)), None);
        assert_eq!(stage(Some(NaiveDate::MIN), NaiveDate::MAX), Some(Stage::Decide));
    }

    #[test]
    fn what_rests_does_not_decay() {
        let text: String = ["done", "Paused", "waiting", "active"]
            .map(|status| format!("## {status}\n- status: {status}\n- touched: 2026-11-01\n"))
            .concat();
        let (list, _) = TaskList::parse(&text);
        let stages: Vec<_> = list.tasks().iter().map(|task| stage_of(task, day(12))).collect();
        assert_eq!(stages, [None, None, Some(Stage::Challenge), Some(Stage::Challenge)]);
    }

    #[test]
    fn wording_names_task_and_days() {
        for stage in [Stage::Nudge, Stage::Challenge, Stage::Decide] {
            let said = stage.wording("Call Bob", 12);
            assert!(said.contains("Call Bob") && said.contains("12 days") && said.ends_with('?'), "{said}");
        }
    }
}
