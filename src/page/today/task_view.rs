//! Renders the tasks of Today with their forms.

use chrono::NaiveDate;
use maud::{Markup, html};

use reveille_base::words::format_count;
use reveille_memory::tasks::MAX_ACTIVE_TASKS;

use super::tasks::{TaskForm, name_task};
use crate::{
    orders::lists::ListedTask,
    page::{
        nav::{CHANGE_ICON, render_icon},
        parts::render_day,
        site::PageContext,
    },
};

/// Days without work after which a task's last work is shown.
const QUIET_DAYS: i64 = 4;

/// Renders tasks and their forms.
pub(super) struct TaskView<'a> {
    pub(super) desk: &'a PageContext<'a>,
}

/// A task's place among those shown beside it.
#[derive(Clone, Copy)]
struct TaskRow {
    index: usize,
    of: usize,
}

impl TaskView<'_> {
    /// Renders the field for a new task.
    pub(super) fn render_line(&self, typed: &TaskForm, key: &str) -> Markup {
        html! {
            form #add method="post" action="/tasks/add" .oneline {
                input type="hidden" name="key" value=(key);
                label .unseen for="task-line" { "Add a task" }
                input #task-line name="line" required maxlength="400" value=(typed.line) autocomplete="off"
                    placeholder="Add a task: renew passport friday #home" aria-describedby="task-line-how";
                button .first type="submit" { "Add" }
                p #task-line-how .meta { "Write the day as you say it. " code { "#home" } " names a project; " code { "#backlog" } " keeps it for later." }
            }
        }
    }

    pub(super) fn render_lists(&self, tasks: &[ListedTask]) -> Markup {
        let (active, backlog): (Vec<&ListedTask>, Vec<&ListedTask>) =
            tasks.iter().partition(|task| task.list == "active");
        let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
        html! {
            h2 { "Tasks" @if !active.is_empty() { " " span .meta { (active.len()) (of) } } }
            @if active.is_empty() {
                p .empty { "Nothing in hand. What you add above, or ask me to keep, appears here." }
            }
            (self.render_rows(&active))
            @if !backlog.is_empty() {
                details .backlog {
                    summary { (format_count(backlog.len(), "task")) " in the backlog" }
                    (self.render_rows(&backlog))
                }
            }
        }
    }

    fn render_rows(&self, tasks: &[&ListedTask]) -> Markup {
        html! {
            @if !tasks.is_empty() {
                ul .tasks {
                    @for (index, task) in tasks.iter().enumerate() {
                        (self.render_task(task, TaskRow { index, of: tasks.len() }))
                    }
                }
            }
        }
    }

    fn render_task(&self, task: &ListedTask, row: TaskRow) -> Markup {
        let title = self.desk.clean_text(&task.title);
        let which = name_task(task);
        html! {
            li {
                form method="post" action="/tasks/done" .tick {
                    input type="hidden" name="which" value=(which);
                    button type="submit" aria-label=(format!("Done: {title}")) title="Done" {}
                }
                div .what {
                    strong { (title) }
                    p .meta { (self.render_about(task)) }
                }
                details .change {
                    summary { (render_icon(CHANGE_ICON)) span .word { "Change" } span .unseen { " " (title) } }
                    div .forms {
                        (self.render_edit(task, &which))
                        div .actions {
                            @if row.index > 0 { (render_button("/tasks/shift", &which, ("to", "up"), "Up", &title)) }
                            @if row.index + 1 < row.of { (render_button("/tasks/shift", &which, ("to", "down"), "Down", &title)) }
                            @if task.list == "active" {
                                (render_button("/tasks/move", &which, ("list", "backlog"), "To the backlog", &title))
                            } @else {
                                (render_button("/tasks/move", &which, ("list", "active"), "Take in hand", &title))
                            }
                            (render_button("/tasks/drop", &which, ("list", ""), "Delete", &title))
                        }
                    }
                }
            }
        }
    }

    /// Renders a task's day, project, next step and age.
    fn render_about(&self, task: &ListedTask) -> Markup {
        let shown = |text: &str| self.desk.clean_text(text);
        let today = self.desk.local_date();
        let due = task.due.as_deref().and_then(|due| due.split(' ').next()?.parse::<NaiveDate>().ok());
        let days = due.map(|due| due.signed_duration_since(today).num_days());
        html! {
            @match (due, days, &task.due) {
                (Some(due), Some(..=-1), _) => span .badge .bad { "overdue since " (render_day(due, today)) },
                (Some(due), Some(0), _) => span .badge .warn { "due " (render_day(due, today)) },
                (Some(due), ..) => span .badge { "due " (render_day(due, today)) },
                (None, _, Some(due)) => span .badge { "due " (shown(due)) },
                (None, ..) => {}
            }
            @if let Some(project) = &task.project { span .tag { "#" (shown(project)) } }
            @if let Some(priority) = &task.priority { span .badge { "priority " (shown(priority)) } }
            @if let Some(chat) = task.chat { span .badge { "from chat " (chat) } }
            @if let Some(next) = &task.next { span { "Next: " (shown(next)) } }
            @if let Some(at) = &task.at { span { "I'll take the next step at " (shown(at)) } }
            @if let (Some(touched), Some(days)) = (task.touched, task.quiet_days) {
                // A task of today may be new, without any work yet.
                @if days >= QUIET_DAYS { span { "Untouched since " (render_day(touched, today)) } }
            }
        }
    }

    fn render_edit(&self, task: &ListedTask, which: &str) -> Markup {
        let shown = |text: &Option<String>| text.as_deref().map(|text| self.desk.clean_text(text)).unwrap_or_default();
        let id = |name: &str| format!("{name}-{which}");
        html! {
            form method="post" action="/tasks/edit" {
                input type="hidden" name="which" value=(which);
                div .field {
                    label for=(id("title")) { "Title" }
                    input id=(id("title")) name="title" required maxlength="120" value=(self.desk.clean_text(&task.title)) autocomplete="off";
                }
                div .pair {
                    div .field {
                        label for=(id("due")) { "Due, in words" }
                        input id=(id("due")) name="due" placeholder="friday, 12 march, none" autocomplete="off";
                    }
                    div .field {
                        label for=(id("day")) { "or by the calendar" }
                        input id=(id("day")) type="date" name="day" value=(shown(&task.due));
                    }
                }
                div .field {
                    label for=(id("next")) { "Next step" }
                    input id=(id("next")) name="next" value=(shown(&task.next)) autocomplete="off";
                }
                div .actions { button .first type="submit" { "Save" } }
            }
        }
    }
}

/// Renders a form that is only a button.
fn render_button(action: &str, which: &str, (field, value): (&str, &str), name: &str, title: &str) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="which" value=(which);
            @if !value.is_empty() { input type="hidden" name=(field) value=(value); }
            button type="submit" aria-label=(format!("{name}: {title}")) { (name) }
        }
    }
}
