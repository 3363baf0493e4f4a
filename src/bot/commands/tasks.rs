//! `/tasks`: what is in hand, and what waits.

use super::{Desk, bounded, brief, seen::Seen};
use crate::{
    memory::{
        self,
        decay::quiet_days,
        tasks::{MAX_ACTIVE_TASKS, Task, TaskList},
    },
    repo::RepoError,
};

/// Tasks that each list shows at most.
const MAX_SHOWN: usize = 12;
/// From so many days on it is said that a task was left alone.
const QUIET_DAYS: i64 = 2;
/// How much of a title or a next step is shown, in characters.
const MAX_CHARS: usize = 100;

pub(super) fn answer(desk: &Desk<'_>, memory: &Seen<'_>) -> Result<String, RepoError> {
    let active = memory.read(memory::ACTIVE)?.unwrap_or_default();
    let backlog = memory.read(memory::BACKLOG)?.unwrap_or_default();
    let today = desk.now.with_timezone(&desk.config.timezone).date_naive();
    Ok(text(&TaskList::parse(&active).0, &TaskList::parse(&backlog).0, today))
}

fn text(active: &TaskList, backlog: &TaskList, today: chrono::NaiveDate) -> String {
    let open = |list: &TaskList| list.tasks().iter().filter(|task| !task.is_done()).cloned().collect::<Vec<Task>>();
    let (active, backlog) = (open(active), open(backlog));
    if active.is_empty() && backlog.is_empty() {
        return "No tasks. Say “add task …”, or what you are working on.".to_owned();
    }
    let shown = |tasks: &[Task]| bounded(tasks.iter().map(|task| line(task, today)).collect(), MAX_SHOWN);
    // The owner sees those of other chats, too, each of which has room for as many.
    let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
    let in_hand = (!active.is_empty()).then(|| format!("**In hand** ({}{of}):\n{}", active.len(), shown(&active)));
    let waiting = (!backlog.is_empty()).then(|| format!("**Waiting** ({}):\n{}", backlog.len(), shown(&backlog)));
    in_hand.into_iter().chain(waiting).collect::<Vec<_>>().join("\n\n")
}

fn line(task: &Task, today: chrono::NaiveDate) -> String {
    let mut line = format!("- {}", brief(&task.title, MAX_CHARS));
    if let Some(next) = task.get("next") {
        line.push_str(&format!(", next: {}", brief(next, MAX_CHARS)));
    }
    if let Some(at) = task.at() {
        line.push_str(&format!(", at {at}"));
    }
    match task.touched.map(|touched| quiet_days(touched, today)) {
        Some(days) if days >= QUIET_DAYS => line.push_str(&format!(" (untouched for {days} days)")),
        _ => {}
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_hand_and_what_waits() {
        let day = chrono::NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
        let active = "# Active\n\n## Write the report\n- status: active\n- touched: 2026-11-13\n- next: an outline\n\n\
                      ## Call Anna\n- touched: 2026-11-21\n- at: 2026-11-22 09:00\n\n## Old\n- status: done\n";
        let backlog: String = (1..=14).map(|n| format!("## Thing {n}\n\n")).collect();
        insta::assert_snapshot!(text(&TaskList::parse(active).0, &TaskList::parse(&backlog).0, day), @r"
        **In hand** (2 of 7):
        - Write the report, next: an outline (untouched for 8 days)
        - Call Anna, at 2026-11-22 09:00

        **Waiting** (14):
        - Thing 1
        - Thing 2
        - Thing 3
        - Thing 4
        - Thing 5
        - Thing 6
        - Thing 7
        - Thing 8
        - Thing 9
        - Thing 10
        - Thing 11
        - Thing 12
        and 2 more
        ");
        let one = text(&TaskList::parse("## Tea\n").0, &TaskList::parse("").0, day);
        assert_eq!(one, "**In hand** (1 of 7):\n- Tea");
        insta::assert_snapshot!(text(&TaskList::parse("").0, &TaskList::parse("").0, day), @"No tasks. Say “add task …”, or what you are working on.");
    }
}
