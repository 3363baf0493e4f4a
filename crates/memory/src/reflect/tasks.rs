//! The state of the tasks: quiet ones, and backlog tasks worth a review.

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{format_count, format_list},
};

use crate::{
    decay,
    tasks::{Task, TaskList},
    text::fold_text,
    view,
};

/// Days in the backlog before a task is reviewed.
const REVIEW_DAYS: i64 = 30;
/// The maximum number of tasks named per line.
const NAMED_MAX: usize = 7;

/// Returns a line for the active tasks and a line for the backlog, each only if it has tasks.
pub(super) fn describe_health(active: &str, backlog: &str, today: NaiveDate, owner_chat: ChatRef) -> Vec<String> {
    let (active, backlog) = (list_owner_tasks(active, owner_chat), list_owner_tasks(backlog, owner_chat));
    let quiet = active.iter().filter_map(|task| {
        let stage = decay::find_task_stage(task, today)?;
        let days = decay::quiet_days(task.touched?, today);
        Some(format!("“{}” has been quiet for {} ({})", task.title, format_count(to_usize(days), "day"), stage.name()))
    });
    let without_next = active.iter().filter(|task| task.get("next").is_none_or(|next| next.trim().is_empty()));
    let without_next = without_next.map(|task| format!("“{}” has no next step", task.title));
    let is_active = |task: &Task| active.iter().any(|other| fold_text(&other.title) == fold_text(&task.title));
    let review = backlog.iter().filter_map(|task| {
        let waits = task.touched.map(|day| decay::quiet_days(day, today)).filter(|days| *days >= REVIEW_DAYS);
        match waits {
            _ if is_active(task) => Some(format!("“{}” is also among the active tasks", task.title)),
            Some(days) => Some(format!("“{}” has waited for {}", task.title, format_count(to_usize(days), "day"))),
            None => None,
        }
    });
    let describe = |what: String, parts: Vec<String>| {
        let named = parts.len().min(NAMED_MAX);
        let more = parts.len() - named;
        let mut parts: Vec<String> = parts.into_iter().take(named).collect();
        parts.extend((more > 0).then(|| format!("{more} more")));
        if parts.is_empty() { format!("{what}: all well") } else { format!("{what}: {}", format_list(parts)) }
    };
    let mut lines = Vec::new();
    if !active.is_empty() {
        lines.push(describe(format!("Task health, {} active", active.len()), quiet.chain(without_next).collect()));
    }
    if !backlog.is_empty() {
        lines.push(describe(format!("Backlog, {} waiting", backlog.len()), review.collect()));
    }
    lines
}

fn list_owner_tasks(text: &str, owner_chat: ChatRef) -> Vec<Task> {
    let (list, _) = TaskList::parse(text);
    list.tasks().iter().filter(|task| view::foreign_chat(task.chat(), owner_chat).is_none()).cloned().collect()
}

fn to_usize(days: i64) -> usize {
    usize::try_from(days).unwrap_or_default()
}
