//! The orders about tasks on Today: adding one in a line, and what the forms of each task do.

use std::sync::Arc;

use axum::{Form, Router, extract::State, response::Response, routing::post};
use chrono::{Datelike as _, NaiveDate};
use serde::Deserialize;

use reveille_base::{approval_text::hash_action, words::format_spoken_day};
use reveille_memory::tasks::MAX_ACTIVE_TASKS;
use reveille_model::offline::grammar::TaskLine;

use super::{
    order::{AskBack, AskBackWay, OrderOutcome, TodayTrouble, change_tasks, run_order},
    read_tasks,
};
use crate::{
    orders::{
        OrderError,
        lists::ListedTask,
        tasks::{NewTask, ShiftTo, TaskKey, TaskOrder, read_line},
    },
    page::{
        error::PageError,
        notes::form_name,
        site::{PageContext, PageSite},
    },
};

/// Characters of a task's key in a form.
const NAME_CHARS: usize = 16;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/tasks/add", post(add_task))
        .route("/tasks/done", post(finish_task))
        .route("/tasks/drop", post(drop_task))
        .route("/tasks/edit", post(edit_task))
        .route("/tasks/move", post(move_task))
        .route("/tasks/shift", post(shift_task))
}

/// The form of a new task: a line as typed, or its parts once they are clear.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskForm {
    pub(super) line: String,
    title: String,
    due: String,
    project: String,
    list: ListChoice,
    key: String,
}

/// A list of tasks, as a form names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ListChoice {
    #[default]
    Active,
    Backlog,
}

/// The form of a button for one task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskButton {
    which: String,
    list: ListChoice,
    to: ShiftWay,
}

/// A direction, as a form names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShiftWay {
    #[default]
    Up,
    Down,
}

/// The form that changes a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskEditForm {
    which: String,
    title: String,
    /// A day in words. It wins over `day`.
    due: String,
    /// The day of the calendar field.
    day: String,
    next: String,
}

async fn add_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskForm>) -> Result<Response, PageError> {
    let name = form_name(&form.key, &form);
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let (line, list) = (filled(&form.line), form.list);
    let stated = TaskLine {
        title: form.title.trim().to_owned(),
        project: filled(&form.project),
        is_for_backlog: list == ListChoice::Backlog,
        ..TaskLine::default()
    };
    let due = filled(&form.due);
    let trouble = TodayTrouble { task: form, form: name, ..TodayTrouble::default() };
    run_order(site, trouble, move |desk| {
        let task = match line {
            Some(line) => read_line(&line, desk.now.with_timezone(&desk.config.timezone))?,
            None => TaskLine { due: due.and_then(|due| due.parse().ok()), ..stated },
        };
        if let Some(clock) = &task.clock {
            return Ok(OrderOutcome::Asked(ask_about_clock(&task, clock)));
        }
        let new = NewTask {
            title: task.title.clone(),
            in_backlog: task.is_for_backlog,
            due: task.due.map(|due| due.to_string()),
            project: task.project.clone(),
            ..NewTask::default()
        };
        match change_tasks(desk, &TaskOrder::Add(new)) {
            Ok(_) => Ok(OrderOutcome::Done(describe_added(&task, desk.local_date()))),
            Err(_) if !task.is_for_backlog && is_full(desk) => Ok(OrderOutcome::Asked(ask_for_backlog(&task))),
            Err(error) => Err(error),
        }
    })
    .await
}

/// Describes what was understood: “Added: Renew passport · Friday 4 December · home”.
fn describe_added(task: &TaskLine, today: NaiveDate) -> String {
    let mut parts = vec![task.title.clone()];
    parts.extend(task.due.map(|due| describe_due(due, today)));
    parts.extend(task.project.clone());
    let lead = if task.is_for_backlog { "Added to the backlog: " } else { "Added: " };
    let kept = task.kept_time.as_ref().map(|kept| {
        format!(
            ". “{kept}” stays in the title, and no due date is set: for one, write it at the end, such as “by {kept}”"
        )
    });
    format!("{lead}{}{}.", parts.join(" · "), kept.unwrap_or_default())
}

/// Names a due day with its weekday, so that a wrong reading is noticed.
fn describe_due(due: NaiveDate, today: NaiveDate) -> String {
    let date = due.format(if due.year() == today.year() { "%A %-d %B" } else { "%A %-d %B %Y" });
    match due.signed_duration_since(today).num_days() {
        -1..=1 => format!("{}, {date}", format_spoken_day(due, today)),
        _ => date.to_string(),
    }
}

/// Asks what a task with a time of day is meant to be.
fn ask_about_clock(task: &TaskLine, clock: &str) -> AskBack {
    let mut as_task = vec![("title", task.title.clone())];
    as_task.extend(task.due.map(|due| ("due", due.to_string())));
    as_task.extend(task.project.clone().map(|project| ("project", project)));
    if task.is_for_backlog {
        as_task.push(("list", "backlog".to_owned()));
    }
    let task_name = match task.due {
        Some(due) => format!("Add the task, due {}", due.format("%A %-d %B")),
        None => "Add the task without a date".to_owned(),
    };
    AskBack {
        question: format!("A task has a day, but no time or rhythm. What should “{}” ({clock}) be?", task.title),
        ways: vec![
            AskBackWay {
                name: format!("Remind me {clock}"),
                action: "/reminders/add",
                fields: vec![("text", task.title.clone()), ("at", clock.to_owned())],
            },
            AskBackWay { name: task_name, action: "/tasks/add", fields: as_task },
        ],
    }
}

/// Offers the backlog when the active list is full.
fn ask_for_backlog(task: &TaskLine) -> AskBack {
    let mut fields = vec![("title", task.title.clone()), ("list", "backlog".to_owned())];
    fields.extend(task.due.map(|due| ("due", due.to_string())));
    fields.extend(task.project.clone().map(|project| ("project", project)));
    AskBack {
        question: format!(
            "You have {MAX_ACTIVE_TASKS} tasks in hand already, and “{}” isn't added yet. Finish one first, or keep this one for later.",
            task.title
        ),
        ways: vec![AskBackWay { name: "Add it to the backlog".to_owned(), action: "/tasks/add", fields }],
    }
}

fn is_full(desk: &PageContext<'_>) -> bool {
    read_tasks(desk).iter().filter(|task| task.list == "active" && task.chat.is_none()).count() >= MAX_ACTIVE_TASKS
}

async fn finish_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskButton>) -> Result<Response, PageError> {
    change_named(site, form.which, |_, task, _| Ok(TaskOrder::Done { task })).await
}

async fn drop_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskButton>) -> Result<Response, PageError> {
    change_named(site, form.which, |_, task, _| Ok(TaskOrder::Drop { task })).await
}

async fn move_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskButton>) -> Result<Response, PageError> {
    let to_backlog = form.list == ListChoice::Backlog;
    change_named(site, form.which, move |_, task, _| Ok(TaskOrder::Move { task, to_backlog })).await
}

async fn shift_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskButton>) -> Result<Response, PageError> {
    let to = match form.to {
        ShiftWay::Up => ShiftTo::Up,
        ShiftWay::Down => ShiftTo::Down,
    };
    change_named(site, form.which, move |_, task, _| Ok(TaskOrder::Shift { task, to })).await
}

async fn edit_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskEditForm>) -> Result<Response, PageError> {
    change_named(site, form.which.clone(), move |desk, task, old| {
        let keys = list_edited_keys(desk, &form, old);
        if keys.is_empty() {
            return Err(OrderError::Refused("You changed nothing, so it stays as it was.".to_owned()));
        }
        Ok(TaskOrder::Edit { task, keys })
    })
    .await
}

/// Lists the keys that a form changes. `title` comes last, since the others are found by the old one. A field that is sent as it was shown
/// changes nothing, so that a masked secret isn't overwritten by its mask.
fn list_edited_keys(desk: &PageContext<'_>, form: &TaskEditForm, old: &ListedTask) -> Vec<TaskKey> {
    let shown = |text: &Option<String>| text.as_deref().map(|text| desk.clean_text(text));
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let is_day = |due: &String| due.parse::<NaiveDate>().is_ok();
    let due = match form.due.trim().to_lowercase().as_str() {
        // The calendar's field can't show words that are no day, and leaves them as they are.
        "" if form.day.trim().is_empty() && !old.due.as_ref().is_none_or(is_day) => shown(&old.due),
        "" => filled(&form.day),
        "none" | "no date" | "never" => None,
        _ => filled(&form.due),
    };
    let mut keys = Vec::new();
    if due != shown(&old.due) {
        keys.push(TaskKey { name: "due", value: due });
    }
    let next = filled(&form.next);
    if next != shown(&old.next) {
        keys.push(TaskKey { name: "next", value: next });
    }
    if let Some(title) = filled(&form.title).filter(|title| *title != desk.clean_text(&old.title)) {
        keys.push(TaskKey { name: "title", value: Some(title) });
    }
    keys
}

/// Finds the task of a button and carries out an order for it.
async fn change_named(
    site: Arc<PageSite>,
    which: String,
    order: impl FnOnce(&PageContext<'_>, String, &ListedTask) -> Result<TaskOrder, OrderError> + Send + 'static,
) -> Result<Response, PageError> {
    run_order(site, TodayTrouble::default(), move |desk| {
        let tasks = read_tasks(desk);
        let Some(task) = tasks.iter().find(|task| name_task(task) == which) else {
            return Err(OrderError::Refused("That task no longer exists. Nothing was changed.".to_owned()));
        };
        // Quotation marks make it match the whole title.
        change_tasks(desk, &order(desk, format!("“{}”", task.title), task)?).map(OrderOutcome::Done)
    })
    .await
}

/// Returns the key that stands for a task in a form, since a title may contain anything.
pub(super) fn name_task(task: &ListedTask) -> String {
    let mut name = hash_action(&format!("{}/{}", task.list, task.title));
    name.truncate(NAME_CHARS);
    name
}
