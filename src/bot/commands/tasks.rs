//! `/tasks`: what is in hand, and what waits.

use super::{Desk, brief, seen::Seen};
use crate::{
    memory::{
        self,
        decay::quiet_days,
        tasks::{MAX_ACTIVE_TASKS, Task, TaskList},
    },
    repo::RepoError,
    store::ShownTask,
    tool::also_written,
};

/// Tasks that each list shows at most.
const MAX_SHOWN: usize = 12;
/// From so many days on it is said that a task was left alone.
const QUIET_DAYS: i64 = 2;
/// How much of a title or a next step is shown, in characters.
const MAX_CHARS: usize = 100;

/// The text, and which task each number of it stands for.
pub(super) fn answer(desk: &Desk<'_>, memory: &Seen<'_>) -> Result<(String, Vec<ShownTask>), RepoError> {
    let active = memory.read(memory::ACTIVE)?.unwrap_or_default();
    let backlog = memory.read(memory::BACKLOG)?.unwrap_or_default();
    let today = desk.now.with_timezone(&desk.config.timezone).date_naive();
    Ok(text(&TaskList::parse(&active).0, &TaskList::parse(&backlog).0, today))
}

fn text(active: &TaskList, backlog: &TaskList, today: chrono::NaiveDate) -> (String, Vec<ShownTask>) {
    let open = |list: &TaskList| list.tasks().iter().filter(|task| !task.is_done()).cloned().collect::<Vec<Task>>();
    let lists = [(memory::ACTIVE, active), (memory::BACKLOG, backlog)];
    let also: String = lists.iter().filter_map(|(path, list)| also_written(path, &list.prose())).collect();
    let (active, backlog) = (open(active), open(backlog));
    if active.is_empty() && backlog.is_empty() {
        return (
            format!("No tasks. Say “add task …”, or what you are working on.\n{also}").trim_end().to_owned(),
            Vec::new(),
        );
    }
    let mut shown: Vec<ShownTask> = Vec::new();
    let mut lines = |path: &str, tasks: &[Task]| {
        let mut lines = Vec::new();
        for task in tasks.iter().take(MAX_SHOWN) {
            shown.push(ShownTask { path: path.to_owned(), title: task.title.clone() });
            lines.push(format!("{}. {}", shown.len(), line(task, today)));
        }
        match tasks.len() - lines.len() {
            0 => lines.join("\n"),
            more => format!("{}\n\nand {more} more", lines.join("\n")),
        }
    };
    // The owner sees those of other chats, too, each of which has room for as many.
    let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
    let in_hand = (!active.is_empty())
        .then(|| format!("**In hand** ({}{of}):\n{}", active.len(), lines(memory::ACTIVE, &active)));
    let waiting = (!backlog.is_empty())
        .then(|| format!("**Waiting** ({}):\n{}", backlog.len(), lines(memory::BACKLOG, &backlog)));
    let also = (!also.is_empty()).then(|| also.trim().to_owned());
    let text = in_hand.into_iter().chain(waiting).chain(also).collect::<Vec<_>>().join("\n\n");
    (text.trim_end().to_owned(), shown)
}

fn line(task: &Task, today: chrono::NaiveDate) -> String {
    let mut line = brief(&task.title, MAX_CHARS);
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
        let (told, shown) = text(&TaskList::parse(active).0, &TaskList::parse(&backlog).0, day);
        insta::assert_snapshot!(told, @r"
        **In hand** (2 of 7):
        1. Write the report, next: an outline (untouched for 8 days)
        2. Call Anna, at 2026-11-22 09:00

        **Waiting** (14):
        3. Thing 1
        4. Thing 2
        5. Thing 3
        6. Thing 4
        7. Thing 5
        8. Thing 6
        9. Thing 7
        10. Thing 8
        11. Thing 9
        12. Thing 10
        13. Thing 11
        14. Thing 12

        and 2 more
        ");
        assert_eq!((shown.len(), shown[1].title.as_str(), shown[2].path.as_str()), (14, "Call Anna", memory::BACKLOG));
        let of = |active: &str| text(&TaskList::parse(active).0, &TaskList::parse("").0, day).0;
        assert_eq!(of("## Tea\n"), "**In hand** (1 of 7):\n1. Tea");
        insta::assert_snapshot!(of(""), @"No tasks. Say “add task …”, or what you are working on.");
        insta::assert_snapshot!(of("buy paint\n\n## Call Anna\n"), @r"
        **In hand** (1 of 7):
        1. Call Anna

        Also written in active.md: “buy paint”, not as a task. Say “add task buy paint” to make it one.
        ");
    }
}
