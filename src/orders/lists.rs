//! Renders the task lists for people: active and waiting tasks, with the numbers that name them. Pure.

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{one_line, truncate_text},
};
use reveille_memory as memory;
use reveille_memory::{
    decay::{is_resting, quiet_days},
    tasks::{MAX_ACTIVE_TASKS, Task, TaskList, due_in_words},
};
use reveille_store::ShownTask;
use reveille_tools::describe_prose;

/// Days without work after which a task is marked as untouched.
const QUIET_DAYS: i64 = 2;
/// Maximum displayed characters of a title or a next step.
const MAX_CHARS: usize = 100;

/// Display options of the lists.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions<'a> {
    /// Maximum tasks per list.
    pub most: usize,
    /// Text for empty lists.
    pub none: &'a str,
}

/// A listed task. Scripts rely on the JSON names.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedTask {
    /// The number in the displayed list.
    pub number: usize,
    /// `active` or `backlog`.
    pub list: &'static str,
    /// The title.
    pub title: String,
    /// The status, as written.
    pub status: Option<String>,
    /// Day of the last work on it.
    pub touched: Option<NaiveDate>,
    /// Days since that day.
    pub quiet_days: Option<i64>,
    /// The next step.
    pub next: Option<String>,
    /// Time when the assistant takes the next step itself.
    pub at: Option<String>,
    /// The person's deadline.
    pub due: Option<String>,
    /// The deadline in words such as "due tomorrow", if it is a day.
    #[serde(skip)]
    pub due_words: Option<String>,
    /// `true` if it is due today or overdue.
    pub is_due: bool,
    /// The priority, as written.
    pub priority: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// The owning chat, if it isn't the owner's.
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
}

/// Lists the open tasks of both lists, with the numbers of [`render_lists`] when nothing is cut.
pub fn list_tasks(active: &TaskList, backlog: &TaskList, today: NaiveDate) -> Vec<ListedTask> {
    let value = |task: &Task, key: &str| task.get(key).map(str::to_owned);
    let lists = [("active", active), ("backlog", backlog)];
    let tasks =
        lists.into_iter().flat_map(|(name, list)| list_open_tasks(list).into_iter().map(move |task| (name, task)));
    let listed = tasks.enumerate().map(|(at, (list, task))| ListedTask {
        number: at + 1,
        list,
        status: value(&task, "status"),
        touched: task.touched,
        quiet_days: task.touched.map(|touched| quiet_days(touched, today)),
        next: value(&task, "next"),
        at: value(&task, "at"),
        due: value(&task, "due"),
        due_words: task.due_date().map(|due| due_in_words(due, today)),
        is_due: !is_resting(&task) && task.due_date().is_some_and(|due| due <= today),
        priority: value(&task, "priority"),
        project: task.project(),
        chat: task.chat(),
        title: task.title,
    });
    listed.collect()
}

fn list_open_tasks(list: &TaskList) -> Vec<Task> {
    list.tasks().iter().filter(|task| !task.is_done()).cloned().collect()
}

/// Renders the lists as Markdown, and returns the task behind each number.
pub fn render_lists(
    active: &TaskList,
    backlog: &TaskList,
    today: NaiveDate,
    options: ListOptions<'_>,
) -> (String, Vec<ShownTask>) {
    let lists = [(memory::ACTIVE, active), (memory::BACKLOG, backlog)];
    let also: String =
        lists.iter().filter_map(|(path, list)| describe_prose(path, &list.find_unheaded_lines())).collect();
    let (active, backlog) = (list_open_tasks(active), list_open_tasks(backlog));
    if active.is_empty() && backlog.is_empty() {
        return (format!("{}\n{also}", options.none).trim_end().to_owned(), Vec::new());
    }
    let mut shown: Vec<ShownTask> = Vec::new();
    let mut lines = |path: &str, tasks: &[Task]| {
        let mut lines = Vec::new();
        for task in tasks.iter().take(options.most) {
            shown.push(ShownTask { path: path.to_owned(), title: task.title.clone() });
            lines.push(format!("{}. {}", shown.len(), render_task(task, today)));
        }
        match tasks.len() - lines.len() {
            0 => lines.join("\n"),
            more => format!("{}\n\nand {more} more", lines.join("\n")),
        }
    };
    // The limit is per chat, but the owner's list includes other chats' tasks. A list above the limit doesn't show it.
    let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
    let in_hand = (!active.is_empty())
        .then(|| format!("**In hand** ({}{of}):\n{}", active.len(), lines(memory::ACTIVE, &active)));
    let waiting = (!backlog.is_empty())
        .then(|| format!("**Waiting** ({}):\n{}", backlog.len(), lines(memory::BACKLOG, &backlog)));
    let also = (!also.is_empty()).then(|| also.trim().to_owned());
    let text = in_hand.into_iter().chain(waiting).chain(also).collect::<Vec<_>>().join("\n\n");
    (text.trim_end().to_owned(), shown)
}

/// Renders a task on one line.
pub fn render_task(task: &Task, today: NaiveDate) -> String {
    let brief = |text: &str| truncate_text(&one_line(text), MAX_CHARS);
    let mut line = brief(&task.title);
    let project = task.project().map(|name| format!(", project {name}")).unwrap_or_default();
    line.push_str(&project);
    for (key, said) in [("priority", "priority"), ("due", "due"), ("next", "next:"), ("at", "at")] {
        match (task.get(key), task.due_date()) {
            (Some(_), Some(due)) if key == "due" => line.push_str(&format!(", {}", due_in_words(due, today))),
            (Some(value), _) => line.push_str(&format!(", {said} {}", brief(value))),
            (None, _) => {}
        }
    }
    match task.touched.map(|touched| quiet_days(touched, today)) {
        Some(days) if days >= QUIET_DAYS => line.push_str(&format!(" (untouched for {days} days)")),
        _ => {}
    }
    line
}
