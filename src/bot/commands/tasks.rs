//! `/tasks`: shows the active and the waiting tasks.

use reveille_git::RepoError;
use reveille_memory::{ACTIVE, BACKLOG, tasks::TaskList};
use reveille_store::ShownTask;

use super::{Desk, seen::Seen};
use crate::orders::lists::{ListOptions, render_lists};

/// Display limits for a chat: twelve entries per list.
const LOOKS: ListOptions<'static> =
    ListOptions { most: 12, none: "No tasks. Say “add task …”, or tell me what you're working on." };

/// Renders the tasks, and returns the task behind each number.
pub(super) fn answer(desk: &Desk<'_>, memory: &Seen<'_>) -> Result<(String, Vec<ShownTask>), RepoError> {
    let active = memory.read_document(ACTIVE)?.unwrap_or_default();
    let backlog = memory.read_document(BACKLOG)?.unwrap_or_default();
    let today = desk.now.with_timezone(&desk.config.timezone).date_naive();
    Ok(render_lists(&TaskList::parse(&active).0, &TaskList::parse(&backlog).0, today, LOOKS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_memory as memory;

    #[test]
    fn what_is_in_hand_and_what_waits() {
        let day = chrono::NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
        let active = "# Active\n\n## Write the report\n- status: active\n- touched: 2026-11-13\n- next: an outline\n\n\
                      ## Call Anna\n- touched: 2026-11-21\n- at: 2026-11-22 09:00\n\n## Old\n- status: done\n";
        let backlog: String = (1..=14).map(|n| format!("## Thing {n}\n\n")).collect();
        let (told, shown) = render_lists(&TaskList::parse(active).0, &TaskList::parse(&backlog).0, day, LOOKS);
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
        let of = |active: &str| render_lists(&TaskList::parse(active).0, &TaskList::parse("").0, day, LOOKS).0;
        assert_eq!(of("## Tea\n"), "**In hand** (1 of 7):\n1. Tea");
        insta::assert_snapshot!(of(""), @"No tasks. Say “add task …”, or tell me what you're working on.");
        insta::assert_snapshot!(of("buy paint\n\n## Call Anna\n"), @r"
        **In hand** (1 of 7):
        1. Call Anna

        Also written in active.md: “buy paint”, not as a task. Say “add task buy paint” to make it one.
        ");
    }
}
