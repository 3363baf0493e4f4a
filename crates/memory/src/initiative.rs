//! Finds work worth doing unasked, by a written rule over tasks, projects, reminders and the person's state. The rule is a pure function,
//! and returns all candidates with their points, so that the log can show the choice with its alternatives.
//!
//! Each open task of the owner gets points, and so does each project with a goal and no open task:
//!
//! - urgency, 0 to 4, times 3: overdue or due today 4, tomorrow 3, within three days 2, within a week 1. A reminder that names the task and
//!   comes within two days raises it to at least 2;
//! - importance, 0 to 3, times 2: priority high 2, none 1, low 0, and 1 more for a reason (`why`); a project's goal 2;
//! - fit, 0 to 2: 1 for a known next step, 1 if the needed energy (`- energy:`) suits the person. A project gets 1;
//! - age, 0 to 2: untouched for a week 1, for two weeks 2.
//!
//! Candidates below [`MIN_WORTHWHILE_POINTS`] are dropped. A backlog task counts once it is due within a week or has waited for a month. A task with
//! a time of its own (`at`) or with steps has its own wakes; a resting one is left alone. With low energy only tasks due by tomorrow count,
//! and with `- nudges: off` nothing does.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use reveille_base::{
    schedule::task_time,
    types::ChatRef,
    words::{format_count, truncate_text},
    zone::Tz,
};

use super::{
    decay, others,
    preferences::Preferences,
    project::Project,
    tasks::{Task, TaskList},
    text::split_words,
    view,
};

/// The minimum points of a worthwhile candidate.
pub const MIN_WORTHWHILE_POINTS: u32 = 6;
/// The maximum number of candidates shown.
pub const CANDIDATES_MAX: usize = 5;
/// The weight of urgency in the points.
const URGENCY_WEIGHT: u32 = 3;
/// The weight of importance in the points.
const IMPORTANCE_WEIGHT: u32 = 2;
/// The minimum urgency with low energy: due by tomorrow.
const URGENT: u32 = 3;
/// The minimum urgency of a task with a reminder soon.
const REMINDED_URGENCY: u32 = 2;
/// The time before a reminder in which it counts.
const REMINDED_WITHIN: TimeDelta = TimeDelta::hours(48);
/// Days without a touch for age 1 and age 2.
const OLD_DAYS: (i64, i64) = (7, 14);
/// Days in the backlog before a task is considered again.
const WAITED_DAYS: i64 = 30;
/// Days before a due date in which a backlog task counts.
const DUE_SOON_DAYS: i64 = 7;
/// The maximum length of a title shown, in characters.
const TITLE_CHARS: usize = 80;

/// The input of the rule.
pub struct InitiativeInput<'a> {
    /// The current time.
    pub now: DateTime<Utc>,
    /// The person's time zone.
    pub tz: Tz,
    /// The text of the active tasks.
    pub active: &'a str,
    /// The text of the backlog.
    pub backlog: &'a str,
    /// The text of the person's state.
    pub context: &'a str,
    /// The projects by name.
    pub projects: &'a [(String, Project)],
    /// Reminders: the next time and the text of each.
    pub reminders: &'a [(DateTime<Utc>, String)],
    /// The chat of tasks without a chat of their own.
    pub owner_chat: ChatRef,
}

/// A task or project that could be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitiativeCandidate {
    /// A task's title, or a project's name.
    pub title: String,
    /// Whether this is a project without an open task.
    pub is_project: bool,
    /// The known next step, or a project's goal.
    pub next: Option<String>,
    /// The due date.
    pub due: Option<NaiveDate>,
    /// The urgency, 0 to 4.
    pub urgency: u32,
    /// The importance, 0 to 3.
    pub importance: u32,
    /// The fit, 0 to 2.
    pub fit: u32,
    /// The age, 0 to 2.
    pub age: u32,
}

impl InitiativeCandidate {
    /// Returns the total points.
    pub fn points(&self) -> u32 {
        URGENCY_WEIGHT * self.urgency + IMPORTANCE_WEIGHT * self.importance + self.fit + self.age
    }

    /// Describes the candidate with the parts of its points.
    pub fn describe(&self) -> String {
        let what = if self.is_project { "project " } else { "" };
        let due = self.due.map(|due| format!(", due {due}")).unwrap_or_default();
        format!(
            "{what}“{}” {} (urgency {}, importance {}, fit {}, age {}{due})",
            truncate_text(&self.title, TITLE_CHARS),
            format_count(self.points() as usize, "point"),
            self.urgency,
            self.importance,
            self.fit,
            self.age,
        )
    }
}

/// The result of the rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Weighed {
    /// All weighed candidates, best first.
    pub candidates: Vec<InitiativeCandidate>,
    /// Whether the person has low energy, which leaves only urgent work.
    pub has_low_energy: bool,
    /// Whether the person wants no initiative.
    pub is_unwanted: bool,
}

impl Weighed {
    /// Returns the worthwhile candidates, at most [`CANDIDATES_MAX`].
    pub fn worthwhile_candidates(&self) -> &[InitiativeCandidate] {
        let is_worth = |candidate: &&InitiativeCandidate| {
            !self.is_unwanted
                && candidate.points() >= MIN_WORTHWHILE_POINTS
                && (!self.has_low_energy || candidate.urgency >= URGENT)
        };
        // The best come first, but low energy may leave out some in between.
        let worthy = self.candidates.iter().take_while(is_worth).count();
        self.candidates.get(..worthy.min(CANDIDATES_MAX)).unwrap_or_default()
    }

    /// Describes the weighed candidates, for the log.
    pub fn describe(&self) -> String {
        let shown: Vec<String> =
            self.candidates.iter().take(CANDIDATES_MAX).map(InitiativeCandidate::describe).collect();
        let more = match self.candidates.len().saturating_sub(CANDIDATES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let energy = if self.has_low_energy { "; energy is low, so only what is due by tomorrow counts" } else { "" };
        if shown.is_empty() { "nothing".to_owned() } else { format!("{}{more}{energy}", shown.join("; ")) }
    }
}

/// Weighs all candidates. Untrusted parts don't count.
pub fn weigh(look: &InitiativeInput<'_>) -> Weighed {
    let preferences = Preferences::parse(look.context);
    let list = |path: &str, text: &str| {
        let tasks = TaskList::parse(&others::remove_untrusted(path, text, None).0).0;
        let own = |task: &&Task| {
            view::foreign_chat(task.chat(), look.owner_chat).is_none()
                && !task.is_unconfirmed()
                && !decay::is_resting(task)
        };
        tasks.tasks().iter().filter(own).cloned().collect::<Vec<_>>()
    };
    let (active, backlog) = (list(super::ACTIVE, look.active), list(super::BACKLOG, look.backlog));
    let today = look.now.with_timezone(&look.tz).date_naive();
    let has_tasks = |name: &String| active.iter().chain(&backlog).any(|task| task.project().as_ref() == Some(name));
    let aimless = look.projects.iter().filter(|(name, project)| !project.goal.trim().is_empty() && !has_tasks(name));
    let projects = aimless.map(|(name, project)| weigh_project(name, project, today));
    let waits = |task: &&Task| {
        let waited = task.touched.map(|day| decay::quiet_days(day, today)).is_some_and(|days| days >= WAITED_DAYS);
        waited || task.due_date().is_some_and(|due| days_until(due, today) <= DUE_SOON_DAYS)
    };
    let tasks = active.iter().chain(backlog.iter().filter(waits)).filter(|task| !has_own_wake(task, look));
    let mut candidates: Vec<InitiativeCandidate> =
        tasks.map(|task| weigh_task(task, look, preferences, today)).chain(projects).collect();
    candidates.sort_by(|one, other| {
        let order = |candidate: &InitiativeCandidate| {
            let is_left_out = preferences.has_low_energy && candidate.urgency < URGENT;
            (is_left_out, std::cmp::Reverse(candidate.points()), candidate.due.unwrap_or(NaiveDate::MAX))
        };
        order(one).cmp(&order(other)).then_with(|| one.title.cmp(&other.title))
    });
    Weighed { candidates, has_low_energy: preferences.has_low_energy, is_unwanted: preferences.wants_no_nudges }
}

fn has_own_wake(task: &Task, look: &InitiativeInput<'_>) -> bool {
    task.steps_name().is_some()
        || task.step_time().and_then(|at| task_time(at, look.tz)).is_some_and(|at| at > look.now)
}

fn days_until(due: NaiveDate, today: NaiveDate) -> i64 {
    due.signed_duration_since(today).num_days()
}

fn weigh_task(
    task: &Task,
    look: &InitiativeInput<'_>,
    preferences: Preferences,
    today: NaiveDate,
) -> InitiativeCandidate {
    let due = task.due_date();
    let by_due = match due.map(|due| days_until(due, today)) {
        None => 0,
        Some(..=0) => 4,
        Some(1) => 3,
        Some(2..=3) => 2,
        Some(4..=DUE_SOON_DAYS) => 1,
        Some(_) => 0,
    };
    let by_reminder = if has_reminder(task, look) { REMINDED_URGENCY } else { 0 };
    let has_value = |key: &str| task.get(key).is_some_and(|value| !value.trim().is_empty());
    let needed_energy = task.get("energy").unwrap_or_default().trim().to_lowercase();
    let suits_energy = needed_energy == "low" || !preferences.has_low_energy;
    InitiativeCandidate {
        title: task.title.clone(),
        is_project: false,
        next: task.get("next").map(str::to_owned),
        due,
        urgency: by_due.max(by_reminder),
        importance: parse_priority(task.get("priority").unwrap_or_default()) + u32::from(has_value("why")),
        fit: u32::from(has_value("next")) + u32::from(suits_energy),
        age: score_age(task.touched.map(|touched| decay::quiet_days(touched, today))),
    }
}

fn has_reminder(task: &Task, look: &InitiativeInput<'_>) -> bool {
    let title = split_words(&task.title);
    let names = |text: &str| split_words(text).windows(title.len().max(1)).any(|window| window == title);
    look.reminders.iter().any(|(at, text)| *at >= look.now && *at - look.now <= REMINDED_WITHIN && names(text))
}

fn weigh_project(name: &str, project: &Project, today: NaiveDate) -> InitiativeCandidate {
    let dated = project.log.iter().filter_map(|line| line.split_whitespace().next()?.parse::<NaiveDate>().ok());
    InitiativeCandidate {
        title: name.to_owned(),
        is_project: true,
        next: Some(project.goal.clone()),
        due: None,
        urgency: 0,
        importance: 2,
        fit: 1,
        age: score_age(dated.max().map(|last| decay::quiet_days(last, today))),
    }
}

/// Returns the importance of a priority in a person's words.
fn parse_priority(priority: &str) -> u32 {
    match priority.trim().to_lowercase().as_str() {
        "high" | "highest" | "urgent" | "important" | "1" | "a" | "p0" | "p1" => 2,
        "low" | "lowest" | "someday" | "3" | "c" | "p3" | "p4" => 0,
        _ => 1,
    }
}

/// Returns the age points. An unknown last touch counts as recent.
fn score_age(quiet_days: Option<i64>) -> u32 {
    match quiet_days {
        Some(days) if days >= OLD_DAYS.1 => 2,
        Some(days) if days >= OLD_DAYS.0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use reveille_base::clock::parse_time;

    fn look<'a>(active: &'a str, backlog: &'a str, context: &'a str) -> InitiativeInput<'a> {
        InitiativeInput {
            now: parse_time("2026-11-25T08:00:00Z").unwrap(),
            tz: "Europe/Berlin".parse::<Tz>().unwrap(),
            active,
            backlog,
            context,
            projects: &[],
            reminders: &[],
            owner_chat: ChatRef::from_telegram(7),
        }
    }

    fn worthy(weighed: &Weighed) -> Vec<&str> {
        weighed.worthwhile_candidates().iter().map(|candidate| candidate.title.as_str()).collect()
    }

    const ACTIVE: &str = "## Tax return\n- due: 2026-11-26\n- next: gather receipts\n- why: a fine\n- touched: 2026-11-24\n\n\
        ## Sail\n- touched: 2026-11-24\n\n## Cello\n- touched: 2026-11-10\n- next: find a teacher\n\n\
        ## Paused\n- status: paused\n- due: 2026-11-25\n\n## Later\n- at: 2026-11-26 09:00\n- due: 2026-11-25\n\n\
        ## Of a guest\n- chat: 5\n- due: 2026-11-25\n\n## Imported\n- unconfirmed: imported from notes.md\n- due: 2026-11-25\n";

    #[test]
    fn candidates_are_sorted_by_points_and_describe_them() {
        let weighed = weigh(&look(ACTIVE, "## Roof\n- touched: 2026-10-01\n- why: it leaks\n\n## Dutch\n", ""));
        insta::assert_snapshot!(weighed.describe(), @"“Tax return” 15 points (urgency 3, importance 2, fit 2, age 0, due 2026-11-26); “Roof” 7 points (urgency 0, importance 2, fit 1, age 2); “Cello” 6 points (urgency 0, importance 1, fit 2, age 2); “Sail” 3 points (urgency 0, importance 1, fit 1, age 0)");
        assert_eq!(worthy(&weighed), ["Tax return", "Roof", "Cello"]);
        assert_eq!(worthy(&weigh(&look("## Sail\n- touched: 2026-11-24\n", "## Dutch\n", ""))), [""; 0]);
        assert_eq!(weigh(&look("", "", "")).describe(), "nothing");
    }

    #[test]
    fn low_energy_keeps_only_urgent_tasks_and_nudges_off_keeps_none() {
        let low = weigh(&look(ACTIVE, "", "- energy: low\n"));
        assert_eq!(worthy(&low), ["Tax return"]);
        assert!(low.describe().contains("energy is low"), "{}", low.describe());
        assert_eq!(worthy(&weigh(&look(ACTIVE, "", "- nudges: off\n"))), [""; 0]);
        let many = format!("## Dear\n- priority: high\n- why: x\n- next: y\n- touched: 2026-10-01\n\n{ACTIVE}");
        assert_eq!(worthy(&weigh(&look(&many, "", "- energy: low\n"))), ["Tax return"], "the urgent one comes first");
    }

    #[test]
    fn a_quiet_project_without_a_task_counts_and_a_reminder_raises_urgency() {
        let project = |log: &str| {
            let text = format!("# Boat\n\n## Goal\nSail in June.\n\n## Log\n{log}");
            [("boat".to_owned(), Project::parse(&text))]
        };
        let (quiet, fresh) = (project("- 2026-11-10 Bought paint\n"), project("- 2026-11-24 Bought paint\n"));
        let worthy_titles =
            |projects, active| worthy(&weigh(&InitiativeInput { projects, ..look(active, "", "") })).join(" ");
        assert_eq!(worthy_titles(&quiet, ""), "boat");
        assert_eq!(worthy_titles(&fresh, ""), "");
        assert_eq!(worthy_titles(&quiet, "## Varnish\n- project: Boat\n- touched: 2026-11-24\n"), "");
        let reminders = [(parse_time("2026-11-26T08:00:00Z").unwrap(), "call: the tax return!".to_owned())];
        let weighed = weigh(&InitiativeInput { reminders: &reminders, ..look("## Tax return\n", "", "") });
        assert_eq!(weighed.candidates[0].urgency, 2);
    }

    fn task() -> impl Strategy<Value = (i64, Option<&'static str>, bool, bool, i64)> {
        let priorities = proptest::sample::select(vec![None, Some("high"), Some("low"), Some("normal")]);
        (-3_i64..40, priorities, any::<bool>(), any::<bool>(), 0_i64..40)
    }

    fn text((due_in, priority, why, next, quiet): (i64, Option<&str>, bool, bool, i64)) -> String {
        let today = NaiveDate::from_ymd_opt(2026, 11, 25).unwrap();
        let day = |days: i64| today + TimeDelta::days(days);
        let mut text = format!("## T\n- due: {}\n- touched: {}\n", day(due_in), day(-quiet));
        text.extend(priority.map(|priority| format!("- priority: {priority}\n")));
        text.push_str(if why { "- why: x\n" } else { "" });
        text.push_str(if next { "- next: y\n" } else { "" });
        text
    }

    fn points(text: &str) -> u32 {
        weigh(&look(text, "", "")).candidates[0].points()
    }

    proptest! {
        #[test]
        fn more_urgency_importance_or_age_never_lowers_the_points(task in task(), sooner in 0_i64..10, older in 0_i64..20) {
            let (due, priority, why, next, quiet) = task;
            let plain = points(&text(task));
            prop_assert!(points(&text((due - sooner, priority, why, next, quiet))) >= plain);
            prop_assert!(points(&text((due, Some("high"), why, next, quiet))) >= plain);
            prop_assert!(points(&text((due, priority, true, next, quiet))) >= plain);
            prop_assert!(points(&text((due, priority, why, true, quiet))) >= plain);
            prop_assert!(points(&text((due, priority, why, next, quiet + older))) >= plain);
        }

        #[test]
        fn any_document_is_weighed(active in crate::strategies::document(), context in "(- (energy|nudges): (low|off)\n){0,2}") {
            let weighed = weigh(&look(&active, &active, &context));
            prop_assert!(weighed.worthwhile_candidates().len() <= CANDIDATES_MAX);
            prop_assert!(weighed.worthwhile_candidates().iter().all(|candidate| candidate.points() >= MIN_WORTHWHILE_POINTS));
        }
    }
}
