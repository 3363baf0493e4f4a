//! The page “Today”: tasks with their age, reminders, waiting messages and questions, and the orders given there.

mod view;

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use chrono::NaiveDate;
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools};
use reveille_base::approval_text::hash_action;
use reveille_cycle as cycle;
use reveille_store::Order;
use reveille_tools::Documents;

use self::view::{DayView, reminder_form, render_cost, task_form};
use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    notes::{NoteQuery, form_key, form_name},
    site::{PageContext, PageSite},
    undo::newest_step,
};
use crate::orders::{
    OrderError,
    lists::{self, ListedTask},
    reminders::{self, ReminderOrder},
    tasks::{self, NewTask, TaskOrder},
    today,
};
use crate::overview::{Overview, Viewer};

/// Characters of a task's key in a form.
const NAME_CHARS: usize = 16;
/// The delay of "In an hour".
const SNOOZE: &str = "in 1 hour";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/", get(show_today))
        .route("/tasks/add", post(add_task))
        .route("/tasks/done", post(finish_task))
        .route("/reminders/add", post(add_reminder))
        .route("/reminders/done", post(end_reminder))
        .route("/reminders/snooze", post(snooze_reminder))
        .route("/resume", post(resume_work))
}

/// The form of a new task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskForm {
    title: String,
    due: String,
    next: String,
    list: String,
    key: String,
}

/// The form of a new reminder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReminderForm {
    text: String,
    at: String,
    key: String,
}

/// The form of a button for one item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WhichForm {
    which: String,
}

/// A failed order: the reason, and the typed input to show again.
#[derive(Debug, Default)]
struct Trouble {
    why: Option<String>,
    task: TaskForm,
    reminder: ReminderForm,
    /// Identifies a form that must not be carried out twice.
    form: Option<String>,
}

async fn show_today(State(site): State<Arc<PageSite>>, Query(query): Query<NoteQuery>) -> Result<Markup, PageError> {
    let note = site.render_note(&query);
    site.run_blocking(move |desk| render_page(desk, &note, &Trouble::default())).await
}

async fn add_task(State(site): State<Arc<PageSite>>, Form(form): Form<TaskForm>) -> Result<Response, PageError> {
    let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let new = NewTask {
        title: form.title.trim().to_owned(),
        in_backlog: form.list == "backlog",
        due: filled(&form.due),
        next: filled(&form.next),
        ..NewTask::default()
    };
    let name = form_name(&form.key, &form);
    let trouble = Trouble { task: form, form: name, ..Trouble::default() };
    run_order(site, trouble, move |desk| change_tasks(desk, &TaskOrder::Add(new))).await
}

async fn finish_task(State(site): State<Arc<PageSite>>, Form(form): Form<WhichForm>) -> Result<Response, PageError> {
    run_order(site, Trouble::default(), move |desk| {
        let tasks = open_tasks(desk);
        let found = tasks.into_iter().find(|task| name(task) == form.which);
        let Some(task) = found else {
            return Err(OrderError::Refused("That task no longer exists. Nothing was changed.".to_owned()));
        };
        // Quotation marks make it match the whole title.
        change_tasks(desk, &TaskOrder::Done { task: format!("“{}”", task.title) })
    })
    .await
}

async fn add_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderForm>,
) -> Result<Response, PageError> {
    let (text, at) = (form.text.trim().to_owned(), form.at.trim().to_owned());
    let name = form_name(&form.key, &form);
    let trouble = Trouble { reminder: form, form: name, ..Trouble::default() };
    run_order(site, trouble, move |desk| {
        if text.is_empty() || at.is_empty() {
            return Err(OrderError::Refused("A reminder needs a text and a time. Nothing was set.".to_owned()));
        }
        change_reminders(desk, ReminderOrder::Set { text: &text, at: Some(&at) })
    })
    .await
}

async fn end_reminder(State(site): State<Arc<PageSite>>, Form(form): Form<WhichForm>) -> Result<Response, PageError> {
    run_order(site, Trouble::default(), move |desk| change_reminders(desk, ReminderOrder::End { which: &form.which }))
        .await
}

async fn snooze_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<WhichForm>,
) -> Result<Response, PageError> {
    run_order(site, Trouble::default(), move |desk| {
        change_reminders(desk, ReminderOrder::Snooze { which: &form.which, until: SNOOZE })
    })
    .await
}

async fn resume_work(State(site): State<Arc<PageSite>>) -> Result<Response, PageError> {
    let answer = run_order(Arc::clone(&site), Trouble::default(), |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| OrderError::Refused(error.to_string()))?;
        store.inbox_mut().carry_out_order(&Order::Resume { is_owners: true }, desk.now)?;
        Ok("Resuming, oldest work first.".to_owned())
    });
    let answer = answer.await?;
    site.nudge.notify_one();
    Ok(answer)
}

/// Carries out an order and redirects to this page. If it fails, shows the page with the reason and the typed input.
async fn run_order(
    site: Arc<PageSite>,
    mut trouble: Trouble,
    order: impl FnOnce(&PageContext<'_>) -> Result<String, OrderError> + Send + 'static,
) -> Result<Response, PageError> {
    let site_for_order = Arc::clone(&site);
    let form = trouble.form.take();
    let outcome = site.run_blocking(move |desk| {
        match site_for_order.run_once(form, "/", || order(desk).map(|reply| desk.clean_text(&reply))) {
            Ok(address) => Ok(Ok(address)),
            Err(error) => {
                trouble.why = Some(desk.clean_text(&error.reason()));
                render_page(desk, &html! {}, &trouble).map(Err)
            }
        }
    });
    Ok(match outcome.await? {
        Ok(address) => Redirect::to(&address).into_response(),
        Err(page) => (StatusCode::UNPROCESSABLE_ENTITY, page).into_response(),
    })
}

fn change_tasks(desk: &PageContext<'_>, order: &TaskOrder) -> Result<String, OrderError> {
    let clock = desk.config.clock();
    let tools = PersonSessionTools { config: desk.config, clock: clock.as_ref(), redactor: desk.redactor };
    let mut hand = PersonSession::take(tools)?;
    let done = tasks::carry_out(&mut hand, tools, order);
    let ended = hand.release();
    let done = done?;
    ended?;
    let left = done
        .left_alone
        .iter()
        .map(|left| format!("{} has changes that weren't committed: it {}.", left.path, left.why));
    Ok(std::iter::once(done.told).chain(left).collect::<Vec<_>>().join(" "))
}

fn change_reminders(desk: &PageContext<'_>, order: ReminderOrder<'_>) -> Result<String, OrderError> {
    let mut store = cycle::open_store(desk.config).map_err(|error| OrderError::Refused(error.to_string()))?;
    let told = reminders::carry_out(&mut store, desk.config, desk.redactor, desk.now, order)?;
    let stopped = if store.chats().find_stop_order()?.is_some() {
        " All work is stopped: nothing will be sent until you resume."
    } else {
        ""
    };
    Ok(format!("{told}{stopped}"))
}

fn open_tasks(desk: &PageContext<'_>) -> Vec<ListedTask> {
    let [active, backlog] = tasks::read_lists(&Documents::new(&desk.config.repo_dir(), Vec::new()));
    lists::list_tasks(&active, &backlog, local_date(desk))
}

fn local_date(desk: &PageContext<'_>) -> NaiveDate {
    desk.now.with_timezone(&desk.config.timezone).date_naive()
}

/// Returns the key that stands for a task in a form, since a title may contain anything.
fn name(task: &ListedTask) -> String {
    let mut name = hash_action(&format!("{}/{}", task.list, task.title));
    name.truncate(NAME_CHARS);
    name
}

fn render_page(desk: &PageContext<'_>, note: &Markup, trouble: &Trouble) -> Result<Markup, PageError> {
    let (tz, now) = (desk.config.timezone, desk.now);
    let snapshot = match desk.open_store()? {
        Some(store) => Some(store.with_snapshot(|| {
            let overview = Overview::read(&store, desk.config, now, Viewer::Console)?;
            let day = today::build_day(&overview, &store, desk.config, now, |text| desk.clean_text(text))?;
            Ok::<_, PageError>((overview, day, reminders::list_active(&store, tz)?, newest_step(desk, &store, "")?))
        })?),
        None => None,
    };
    let view = DayView { desk };
    let key = form_key();
    let content = html! {
        (note)
        @if let Some(why) = &trouble.why {
            p .note .bad role="alert" { strong { "That didn't work. " } (why) }
        }
        // The page refreshes from `/`: after a refused form, its own address can't be fetched with `GET`.
        section #live-today data-live="/" {
            p .meta { (now.with_timezone(&tz).format("%A, %-d %B %Y")) }
            @match &snapshot {
                None => p { "Nothing has happened here yet. Say something in the " a href="/chat" { "chat" }
                    ", or add a task below: it will be listed here." },
                Some((overview, day, reminders, newest)) => {
                    (newest)
                    (view.render_stopped(day))
                    (view.render_questions(&overview.questions))
                    (view.render_messages(&day.messages))
                    (view.render_tasks(&open_tasks(desk)))
                    (view.render_reminders(reminders))
                    (render_cost(&overview.budget))
                }
            }
        }
        div .side-by-side {
            section { (task_form(&trouble.task, &key)) }
            @if snapshot.is_some() { section { (reminder_form(&trouble.reminder, &key)) } }
        }
    };
    Ok(render_frame(PagePlace::Today, "Today", &content))
}
