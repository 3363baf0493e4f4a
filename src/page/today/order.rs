//! Carries out the orders given on Today. Each is a step that its note offers to undo.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::post,
};
use maud::html;

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools};
use reveille_base::words::format_spoken_time;
use reveille_cycle as cycle;
use reveille_store::{Order, Reminder};

use super::{reminders::ReminderForm, render_page, tasks::TaskForm};
use crate::{
    orders::{
        OrderError,
        reminders::{self, ReminderOrder},
        tasks::{self, TaskOrder},
        undo,
    },
    page::{
        error::PageError,
        notes::Note,
        site::{PageContext, PageSite},
    },
};

/// What an order came to.
pub(super) enum OrderOutcome {
    /// A change of the person's, which can be undone.
    Done(String),
    /// Nothing yet: the order could mean several things.
    Asked(AskBack),
}

/// A question about a form that was just sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AskBack {
    /// The question.
    pub(super) question: String,
    /// The ways to answer it.
    pub(super) ways: Vec<AskBackWay>,
}

/// A button that answers a [`AskBack`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskBackWay {
    /// The button's words.
    pub(super) name: String,
    /// The form's path.
    pub(super) action: &'static str,
    /// The form's fields.
    pub(super) fields: Vec<(&'static str, String)>,
}

/// An order that wasn't carried out: the reason or question, and the typed input to show again.
#[derive(Debug, Default)]
pub(super) struct TodayTrouble {
    pub(super) why: Option<String>,
    pub(super) choice: Option<AskBack>,
    pub(super) task: TaskForm,
    pub(super) reminder: ReminderForm,
    /// Identifies a form that must not be carried out twice.
    pub(super) form: Option<String>,
    /// The dangerous question shown once more.
    pub(super) sure: Option<i64>,
}

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/resume", post(resume_work))
}

async fn resume_work(State(site): State<Arc<PageSite>>) -> Result<Response, PageError> {
    let resumed = site.run_blocking(|desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| PageError::Refused(error.to_string()))?;
        store.inbox_mut().carry_out_order(&Order::Resume { is_owners: true }, desk.now)?;
        Ok(())
    });
    resumed.await?;
    site.nudge.notify_one();
    Ok(site.redirect_with_note("/", "Resuming, oldest work first.".to_owned()).into_response())
}

/// Carries out an order and redirects to Today with a note. If it fails or asks back, shows Today with the reason and the typed input.
pub(super) async fn run_order(
    site: Arc<PageSite>,
    mut trouble: TodayTrouble,
    order: impl FnOnce(&PageContext<'_>) -> Result<OrderOutcome, OrderError> + Send + 'static,
) -> Result<Response, PageError> {
    let site_for_order = Arc::clone(&site);
    let form = trouble.form.take();
    let outcome = site.run_blocking(move |desk| {
        let carried_out = site_for_order.run_once(form, "/", || match order(desk).map_err(OrderHalt::Refused)? {
            OrderOutcome::Done(told) => Ok(Note { text: desk.clean_text(&told), undo: find_step(desk) }),
            OrderOutcome::Asked(choice) => Err(OrderHalt::Asked(choice)),
        });
        match carried_out {
            Ok(address) => return Ok(Ok(address)),
            Err(OrderHalt::Refused(error)) => trouble.why = Some(desk.clean_text(&error.reason())),
            Err(OrderHalt::Asked(choice)) => trouble.choice = Some(choice),
        }
        render_page(desk, &html! {}, &trouble).map(Err)
    });
    Ok(match outcome.await? {
        Ok(address) => Redirect::to(&address).into_response(),
        Err(page) => (StatusCode::UNPROCESSABLE_ENTITY, page).into_response(),
    })
}

/// The reason why an order didn't run.
enum OrderHalt {
    Refused(OrderError),
    Asked(AskBack),
}

/// Finds the step that was just made. `None` if it can't be read: then only the note's button is missing.
fn find_step(desk: &PageContext<'_>) -> Option<String> {
    let store = desk.open_store().ok()??;
    Some(undo::find_newest(&store, desk.config, desk.now).ok()??.0)
}

pub(super) fn change_tasks(desk: &PageContext<'_>, order: &TaskOrder) -> Result<String, OrderError> {
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

pub(super) fn change_reminders(desk: &PageContext<'_>, order: ReminderOrder<'_>) -> Result<OrderOutcome, OrderError> {
    let mut store = cycle::open_store(desk.config).map_err(|error| OrderError::Refused(error.to_string()))?;
    let told = reminders::carry_out(&mut store, desk.config, desk.redactor, desk.now, order)?;
    // What follows the first paragraph is about commands of a terminal.
    let (done, warning) = told.split_once("\n\n").map_or((told.as_str(), None), |(done, rest)| (done, Some(rest)));
    let newest = store.reminders().list_reminders()?.into_iter().max_by_key(|reminder| reminder.id);
    let mut said = match (order, done.split_once(':'), newest) {
        (ReminderOrder::End { .. }, ..) | (_, None, _) | (.., None) => format!("{done}."),
        (_, Some((lead, _)), Some(newest)) => format!("{lead}: {}.", describe_reminder(desk, &newest)),
    };
    if warning.is_some() {
        said.push_str(" It comes while this page is served. “Health” says how it can come without it.");
    }
    let stopped = if store.chats().find_stop_order()?.is_some() {
        " All work is stopped: nothing will be sent until you resume."
    } else {
        ""
    };
    Ok(OrderOutcome::Done(format!("{said}{stopped}")))
}

/// Describes a reminder with its next time: “Call Anna · every weekday at 08:00 · next tomorrow 08:00”.
fn describe_reminder(desk: &PageContext<'_>, reminder: &Reminder) -> String {
    let at = format_spoken_time(reminder.what.next_at, desk.now, desk.config.timezone);
    match &reminder.what.rule {
        Some(rule) => format!("{} · {rule} · next {at}", reminder.what.text),
        None => format!("{} · {at}", reminder.what.text),
    }
}
