//! The lists of tasks as people read them: what is in hand and what waits, with the numbers that name them. Pure.

use chrono::NaiveDate;

use reveille_base::{
    types::ChatRef,
    words::{one_line, shortened},
};
use reveille_memory as memory;
use reveille_memory::{
    decay::{quiet_days, rests},
    tasks::{MAX_ACTIVE_TASKS, Task, TaskList, due_in_words},
};
use reveille_store::ShownTask;
use reveille_tools::also_written;

/// From so many days on it is said that a task was left alone.
const QUIET_DAYS: i64 = 2;
/// How much of a title or a next step is shown, in characters.
const MAX_CHARS: usize = 100;

/// How the lists are shown.
#[derive(Debug, Clone, Copy)]
pub struct ListLooks<'a> {
    /// Tasks that each list shows at most.
    pub most: usize,
    /// What stands where there is none.
    pub none: &'a str,
}

/// A task of a list. As JSON the names are relied on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedTask {
    /// Its number in the list that is shown.
    pub number: usize,
    /// `active` or `backlog`.
    pub list: &'static str,
    /// Its title.
    pub title: String,
    /// Its status, as written.
    pub status: Option<String>,
    /// When it was last worked on.
    pub touched: Option<NaiveDate>,
    /// Days since.
    pub quiet_days: Option<i64>,
    /// The next step.
    pub next: Option<String>,
    /// When the next step is the assistant's own.
    pub at: Option<String>,
    /// Until when a person wants it done.
    pub due: Option<String>,
    /// The same as people say it, where it is a day: "due tomorrow".
    #[serde(skip)]
    pub due_words: Option<String>,
    /// Whether it is to be done today, or should have been.
    pub is_due: bool,
    /// How much it matters.
    pub priority: Option<String>,
    /// The project that it is a part of.
    pub project: Option<String>,
    /// The chat that it belongs to, if not the owner.
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
}

/// The open tasks of both lists, numbered as [`text`] numbers them when all are shown.
pub fn listed(active: &TaskList, backlog: &TaskList, today: NaiveDate) -> Vec<ListedTask> {
    let own = |task: &Task, key: &str| task.get(key).map(str::to_owned);
    let lists = [("active", active), ("backlog", backlog)];
    let tasks = lists.into_iter().flat_map(|(name, list)| open(list).into_iter().map(move |task| (name, task)));
    let listed = tasks.enumerate().map(|(at, (list, task))| ListedTask {
        number: at + 1,
        list,
        status: own(&task, "status"),
        touched: task.touched,
        quiet_days: task.touched.map(|touched| quiet_days(touched, today)),
        next: own(&task, "next"),
        at: own(&task, "at"),
        due: own(&task, "due"),
        due_words: task.due().map(|due| due_in_words(due, today)),
        is_due: !rests(&task) && task.due().is_some_and(|due| due <= today),
        priority: own(&task, "priority"),
        project: task.project(),
        chat: task.chat(),
        title: task.title,
    });
    listed.collect()
}

fn open(list: &TaskList) -> Vec<Task> {
    list.tasks().iter().filter(|task| !task.is_done()).cloned().collect()
}

/// The lists as Markdown, and which task each number of it stands for.
pub fn text(active: &TaskList, backlog: &TaskList, today: NaiveDate, looks: ListLooks<'_>) -> (String, Vec<ShownTask>) {
    let lists = [(memory::ACTIVE, active), (memory::BACKLOG, backlog)];
    let also: String = lists.iter().filter_map(|(path, list)| also_written(path, &list.prose())).collect();
    let (active, backlog) = (open(active), open(backlog));
    if active.is_empty() && backlog.is_empty() {
        return (format!("{}\n{also}", looks.none).trim_end().to_owned(), Vec::new());
    }
    let mut shown: Vec<ShownTask> = Vec::new();
    let mut lines = |path: &str, tasks: &[Task]| {
        let mut lines = Vec::new();
        for task in tasks.iter().take(looks.most) {
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

/// A task on one line.
pub fn line(task: &Task, today: NaiveDate) -> String {
    let brief = |text: &str| shortened(&one_line(text), MAX_CHARS);
    let mut line = brief(&task.title);
    let project = task.project().map(|name| format!(", project {name}")).unwrap_or_default();
    line.push_str(&project);
    for (key, said) in [("priority", "priority"), ("due", "due"), ("next", "next:"), ("at", "at")] {
        match (task.get(key), task.due()) {
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
