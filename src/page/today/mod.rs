//! The page “Today”: the first view, where tasks and reminders are added, changed and finished, and questions are answered.

mod order;
mod reminders;
mod task_view;
mod tasks;
mod view;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_store::{Reminder, Store};
use reveille_tools::Documents;

use self::{
    order::TodayTrouble,
    reminders::ReminderView,
    task_view::TaskView,
    view::{DayView, render_cost, render_trouble},
};
use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    nav::WaitingCounts,
    notes::{NoteQuery, form_key},
    site::{PageContext, PageSite},
    undo::newest_step,
};
use crate::{
    orders::{
        lists::{self, ListedTask},
        tasks as task_orders,
    },
    overview::{Overview, Viewer},
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/", get(show_today)).merge(tasks::routes()).merge(reminders::routes()).merge(order::routes())
}

/// The query of Today.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TodayQuery {
    said: String,
    /// The dangerous question that is shown once more, before it can be allowed.
    sure: Option<i64>,
}

async fn show_today(State(site): State<Arc<PageSite>>, Query(query): Query<TodayQuery>) -> Result<Markup, PageError> {
    let note = site.render_note(&NoteQuery { said: query.said });
    let trouble = TodayTrouble { sure: query.sure, ..TodayTrouble::default() };
    site.run_blocking(move |desk| render_page(desk, &note, &trouble)).await
}

/// Everything shown of a day, each list read once.
struct DaySnapshot {
    tasks: Vec<ListedTask>,
    /// `None` before the first wake.
    stored: Option<StoredDay>,
}

/// What the database holds of a day.
struct StoredDay {
    overview: Overview,
    reminders: Vec<Reminder>,
    newest: Markup,
}

impl DaySnapshot {
    fn read(desk: &PageContext<'_>) -> Result<Self, PageError> {
        let stored = match desk.open_store()? {
            Some(store) => Some(store.with_snapshot(|| StoredDay::read(desk, &store))?),
            None => None,
        };
        Ok(Self { tasks: read_tasks(desk), stored })
    }

    fn count_waiting(&self) -> WaitingCounts {
        WaitingCounts {
            questions: self.stored.as_ref().map_or(0, |stored| stored.overview.questions.len()),
            due_tasks: self.tasks.iter().filter(|task| task.is_due).count(),
        }
    }
}

impl StoredDay {
    fn read(desk: &PageContext<'_>, store: &Store) -> Result<Self, PageError> {
        Ok(Self {
            overview: Overview::read(store, desk.config, desk.now, Viewer::Console)?,
            reminders: store.reminders().list_reminders()?,
            newest: newest_step(desk, store, "")?,
        })
    }
}

/// Reads the open tasks of both lists.
fn read_tasks(desk: &PageContext<'_>) -> Vec<ListedTask> {
    let [active, backlog] = task_orders::read_lists(&Documents::new(&desk.config.repo_dir(), Vec::new()));
    lists::list_tasks(&active, &backlog, desk.local_date())
}

fn render_page(desk: &PageContext<'_>, note: &Markup, trouble: &TodayTrouble) -> Result<Markup, PageError> {
    let day = DaySnapshot::read(desk)?;
    let view = DayView { desk };
    let (tasks, reminders) = (TaskView { desk }, ReminderView { desk });
    let key = form_key();
    // The page renews itself from this address: after a refused form, its own can't be fetched with `GET`.
    let address = trouble.sure.map_or_else(|| "/".to_owned(), |id| format!("/?sure={id}"));
    let content = html! {
        p .date { (desk.local_date().format("%A, %-d %B")) }
        div #told { (note) (render_trouble(trouble, &key)) }
        (tasks.render_line(&trouble.task, &key))
        section #live-waiting data-live=(address) {
            @match &day.stored {
                None => p .meta { "This is new. Add a task above, or say something in the " a href="/chat" { "chat" } "." },
                Some(stored) => {
                    (view.render_stopped(&stored.overview))
                    (view.render_questions(&stored.overview.questions, trouble.sure))
                }
            }
        }
        div .day {
            section #live-tasks data-live=(address) { (tasks.render_lists(&day.tasks)) }
            @if let Some(stored) = &day.stored {
                div {
                    section #live-reminders data-live=(address) { (reminders.render_list(&stored.reminders)) }
                    (reminders.render_form(&trouble.reminder, &key))
                }
            }
        }
        @if let Some(stored) = &day.stored {
            section #live-messages data-live=(address) { (view.render_messages(&stored.overview.messages)) }
            section #live-last data-live=(address) .last { (stored.newest) (render_cost(&stored.overview.budget)) }
        }
    };
    Ok(day.count_waiting().scope(|| render_frame(PagePlace::Today, "Today", &content)))
}
