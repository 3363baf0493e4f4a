//! Today: tasks with their age, reminders, messages and questions that wait; and what a person orders there at once.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use chrono::{NaiveDate, TimeDelta};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    notes::NoteQuery,
    parts::{moment, others_in},
    site::{PageDesk, PageSite},
};
use crate::{
    account::units::usd,
    approval_text::sha256,
    cycle::{self, decide::budget::Budget},
    memory::tasks::MAX_ACTIVE_TASKS,
    orders::{
        OrderError,
        lists::{self, ListedTask},
        reminders::{self, ListedReminder, ReminderOrder},
        tasks::{self, NewTask, TaskOrder},
        today::{self, Today, WaitingMessage, WaitingQuestion},
    },
    provenance::hand::{Hand, HandTools},
    store::Order,
    tool::Documents,
    words::{count, one_line, shortened},
};

/// Reminders that are shown at once; the others are opened.
const SHOWN_REMINDERS: usize = 8;
/// Messages that are shown.
const SHOWN_MESSAGES: usize = 20;
/// How much of a message is shown, in characters.
const MESSAGE_CHARS: usize = 200;
/// How much of a task's name stands in its address.
const NAME_CHARS: usize = 16;
/// How long "In an hour" puts off.
const SNOOZE: &str = "in 1 hour";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/", get(show))
        .route("/tasks/add", post(add_task))
        .route("/tasks/done", post(finish_task))
        .route("/reminders/add", post(add_reminder))
        .route("/reminders/done", post(end_reminder))
        .route("/reminders/snooze", post(snooze_reminder))
        .route("/resume", post(resume))
}

/// A task as it is typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskForm {
    title: String,
    due: String,
    next: String,
    list: String,
}

/// A reminder as it is typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReminderForm {
    text: String,
    at: String,
}

/// Which one a button is of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WhichForm {
    which: String,
}

/// What couldn't be done, and what was typed for it.
#[derive(Debug, Default)]
struct Trouble {
    why: Option<String>,
    task: TaskForm,
    reminder: ReminderForm,
}

async fn show(State(site): State<Arc<PageSite>>, Query(query): Query<NoteQuery>) -> Result<Markup, PageError> {
    let note = site.note(&query);
    site.at_desk(move |desk| page(desk, &note, &Trouble::default())).await
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
    let trouble = Trouble { task: form, ..Trouble::default() };
    ordered(site, trouble, move |desk| change_tasks(desk, &TaskOrder::Add(new))).await
}

async fn finish_task(State(site): State<Arc<PageSite>>, Form(form): Form<WhichForm>) -> Result<Response, PageError> {
    ordered(site, Trouble::default(), move |desk| {
        let tasks = open_tasks(desk);
        let found = tasks.into_iter().find(|task| name(task) == form.which);
        let Some(task) = found else {
            return Err(OrderError::Refused("That task isn't there any more. Nothing was changed.".to_owned()));
        };
        // In quotation marks it is the whole title.
        change_tasks(desk, &TaskOrder::Done { task: format!("“{}”", task.title) })
    })
    .await
}

async fn add_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderForm>,
) -> Result<Response, PageError> {
    let (text, at) = (form.text.trim().to_owned(), form.at.trim().to_owned());
    let trouble = Trouble { reminder: form, ..Trouble::default() };
    ordered(site, trouble, move |desk| {
        if text.is_empty() || at.is_empty() {
            return Err(OrderError::Refused("A reminder needs a text and a time. Nothing was set.".to_owned()));
        }
        change_reminders(desk, ReminderOrder::Set { text: &text, at: Some(&at) })
    })
    .await
}

async fn end_reminder(State(site): State<Arc<PageSite>>, Form(form): Form<WhichForm>) -> Result<Response, PageError> {
    ordered(site, Trouble::default(), move |desk| change_reminders(desk, ReminderOrder::End { which: &form.which }))
        .await
}

async fn snooze_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<WhichForm>,
) -> Result<Response, PageError> {
    ordered(site, Trouble::default(), move |desk| {
        change_reminders(desk, ReminderOrder::Snooze { which: &form.which, until: SNOOZE })
    })
    .await
}

async fn resume(State(site): State<Arc<PageSite>>) -> Result<Response, PageError> {
    ordered(site, Trouble::default(), |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| OrderError::Refused(error.to_string()))?;
        store.order(&Order::Resume { is_owners: true }, desk.now)?;
        Ok("Resuming, oldest work first.".to_owned())
    })
    .await
}

/// Carries an order out and goes on to today; what can't be done is explained there, with what was typed.
async fn ordered(
    site: Arc<PageSite>,
    mut trouble: Trouble,
    order: impl FnOnce(&PageDesk<'_>) -> Result<String, OrderError> + Send + 'static,
) -> Result<Response, PageError> {
    let outcome = site.at_desk(move |desk| match order(desk) {
        Ok(told) => Ok(Ok(desk.shown(&told))),
        Err(error) => {
            trouble.why = Some(desk.shown(&in_page(&error.to_string())));
            page(desk, &html! {}, &trouble).map(Err)
        }
    });
    Ok(match outcome.await? {
        Ok(told) => site.said("/", told).into_response(),
        Err(page) => (StatusCode::UNPROCESSABLE_ENTITY, page).into_response(),
    })
}

/// A refusal in words that fit the page: the terminal's commands don't.
fn in_page(why: &str) -> String {
    let why = why.replace("; `wake task list` shows them", "").replace("`wake remind list` shows them.", "");
    let why = why.replace(": `wake remind` does that", ": set a reminder for that");
    why.trim().trim_start_matches("--").to_owned()
}

fn change_tasks(desk: &PageDesk<'_>, order: &TaskOrder) -> Result<String, OrderError> {
    let clock = desk.config.clock();
    let tools = HandTools { config: desk.config, clock: clock.as_ref(), redactor: desk.redactor };
    let mut hand = Hand::take(tools)?;
    let done = tasks::carry_out(&mut hand, tools, order);
    let ended = hand.put_down();
    let done = done?;
    ended?;
    let left = done
        .left_alone
        .iter()
        .map(|left| format!("{} has changes that weren't committed: it {}.", left.path, left.why));
    Ok(std::iter::once(done.told).chain(left).collect::<Vec<_>>().join(" "))
}

fn change_reminders(desk: &PageDesk<'_>, order: ReminderOrder<'_>) -> Result<String, OrderError> {
    let mut store = cycle::open_store(desk.config).map_err(|error| OrderError::Refused(error.to_string()))?;
    let told = reminders::carry_out(&mut store, desk.config, desk.redactor, desk.now, order)?;
    let stopped =
        if store.stopped()?.is_some() { " All work is stopped: nothing is sent before it is resumed." } else { "" };
    Ok(format!("{told}{stopped}"))
}

fn open_tasks(desk: &PageDesk<'_>) -> Vec<ListedTask> {
    let [active, backlog] = tasks::read(&Documents::new(&desk.config.repo_dir(), Vec::new()));
    lists::listed(&active, &backlog, today_of(desk))
}

fn today_of(desk: &PageDesk<'_>) -> NaiveDate {
    desk.now.with_timezone(&desk.config.timezone).date_naive()
}

/// A name for a task that can stand in a form: a title may hold anything.
fn name(task: &ListedTask) -> String {
    let mut name = sha256(&format!("{}/{}", task.list, task.title));
    name.truncate(NAME_CHARS);
    name
}

fn page(desk: &PageDesk<'_>, note: &Markup, trouble: &Trouble) -> Result<Markup, PageError> {
    let (tz, now) = (desk.config.timezone, desk.now);
    let looked = match desk.store()? {
        Some(store) => Some(store.reading(|| {
            let day = today::today(&store, desk.config, now, |text| desk.shown(text))?;
            Ok::<_, PageError>((day, reminders::listed(&store, tz)?, Budget::look(&store, desk.config, now)?))
        })?),
        None => None,
    };
    let has_memory = desk.config.repo_dir().join(".git").exists();
    let view = View { desk };
    let content = html! {
        (note)
        @if let Some(why) = &trouble.why {
            p .note .bad role="alert" { strong { "That didn't work. " } (why) }
        }
        section #live-today data-live {
            p .meta { (now.with_timezone(&tz).format("%A, %-d %B %Y")) }
            @match &looked {
                None => p { "Nothing has happened here yet. Say something in the " a href="/chat" { "chat" }
                    ", or add a task below: it will be listed here." },
                Some((day, reminders, budget)) => {
                    (view.stopped(day))
                    (view.questions(&day.questions))
                    (view.messages(&day.messages))
                    (view.tasks(&open_tasks(desk)))
                    (view.reminders(reminders))
                    (spent(budget))
                }
            }
        }
        @if has_memory { (task_form(&trouble.task)) }
        @if looked.is_some() { (reminder_form(&trouble.reminder)) }
        @if !has_memory {
            p .meta { "Tasks can be added once the memory is there: the first wake makes it." }
        }
    };
    Ok(frame(PagePlace::Today, "Today", &content))
}

/// What of a day is shown.
struct View<'a> {
    desk: &'a PageDesk<'a>,
}

impl View<'_> {
    fn at(&self, at: chrono::DateTime<chrono::Utc>) -> Markup {
        moment(at, self.desk.now, self.desk.config.timezone)
    }

    fn stopped(&self, day: &Today) -> Markup {
        html! {
            @if let Some(since) = day.stopped {
                div .card {
                    p {
                        strong { "All work is stopped" }
                        @if let Some(at) = since { " since " (self.at(at)) }
                        ". New messages wait."
                    }
                    form method="post" action="/resume" .actions { button type="submit" { "Resume" } }
                }
            }
        }
    }

    fn questions(&self, questions: &[WaitingQuestion]) -> Markup {
        html! {
            @if !questions.is_empty() {
                h2 { "Waiting for your word" }
                ul .list {
                    @for question in questions {
                        li {
                            a href="/questions" { "Question " (question.id) }
                            " (" code { (self.desk.shown(&question.tool)) } ")"
                            @if let Some(at) = question.expires_at { span .meta { " until " (self.at(at)) } }
                        }
                    }
                }
            }
        }
    }

    fn messages(&self, messages: &[WaitingMessage]) -> Markup {
        html! {
            @if !messages.is_empty() {
                h2 { "Waiting for an answer" }
                ul .list {
                    @for message in messages.iter().take(SHOWN_MESSAGES) {
                        li {
                            (shortened(&one_line(&message.text), MESSAGE_CHARS)) " "
                            span .meta {
                                @if let Some(at) = message.at { (self.at(at)) ", " }
                                @if message.chat.is_terminal() { "from this machine" } @else { "from chat " (message.chat) }
                            }
                            " " (others_in(message.taint.as_deref()))
                        }
                    }
                }
                @if messages.len() > SHOWN_MESSAGES {
                    p .meta { "and " (messages.len() - SHOWN_MESSAGES) " more" }
                }
            }
        }
    }

    fn tasks(&self, tasks: &[ListedTask]) -> Markup {
        let (active, backlog): (Vec<&ListedTask>, Vec<&ListedTask>) =
            tasks.iter().partition(|task| task.list == "active");
        let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
        html! {
            h2 { "Tasks" }
            @if active.is_empty() {
                p { "No tasks in hand. Those that you add, or ask me to keep, will be here." }
            } @else {
                p .meta { (active.len()) (of) " in hand" }
                ul .list { @for task in &active { (self.task(task)) } }
            }
            @if !backlog.is_empty() {
                details {
                    summary { (count(backlog.len(), "task")) " in the backlog" }
                    ul .list { @for task in &backlog { (self.task(task)) } }
                }
            }
        }
    }

    fn task(&self, task: &ListedTask) -> Markup {
        let shown = |text: &str| self.desk.shown(text);
        let due_days = task.due.as_deref().and_then(|due| due.parse::<NaiveDate>().ok());
        let due_days = due_days.map(|due| due.signed_duration_since(today_of(self.desk)).num_days());
        let title = shown(&task.title);
        html! {
            li {
                div {
                    strong { (title) }
                    @if let Some(priority) = &task.priority { " " span .badge { "priority " (shown(priority)) } }
                    @match (due_days, &task.due) {
                        (Some(..=-1), Some(due)) => { " " span .badge .bad { "overdue since " (shown(due)) } }
                        (Some(0), _) => { " " span .badge .warn { "due today" } }
                        (Some(1), _) => { " " span .badge { "due tomorrow" } }
                        (_, Some(due)) => { " " span .badge { "due " (shown(due)) } }
                        (_, None) => {}
                    }
                    @if let Some(chat) = task.chat { " " span .badge { "of chat " (chat) } }
                }
                div .meta {
                    @if let (Some(touched), Some(days)) = (task.touched, task.quiet_days) { (age(touched, days)) }
                    @if let Some(next) = &task.next { " Next: " (shown(next)) "." }
                    @if let Some(at) = &task.at { " I take the next step at " (shown(at)) "." }
                }
                form method="post" action="/tasks/done" .actions {
                    input type="hidden" name="which" value=(name(task));
                    button type="submit" aria-label=(format!("Done: {title}")) { "Done" }
                }
            }
        }
    }

    fn reminders(&self, reminders: &[ListedReminder]) -> Markup {
        let (first, more) = reminders.split_at(reminders.len().min(SHOWN_REMINDERS));
        html! {
            h2 { "Reminders" }
            @if reminders.is_empty() {
                p { "No reminders are set. The next ones will be here, and I'll send each at its time." }
            } @else {
                ul .list { @for reminder in first { (self.reminder(reminder)) } }
            }
            @if !more.is_empty() {
                details {
                    summary { (count(more.len(), "later reminder")) }
                    ul .list { @for reminder in more { (self.reminder(reminder)) } }
                }
            }
        }
    }

    fn reminder(&self, reminder: &ListedReminder) -> Markup {
        let text = self.desk.shown(&reminder.text);
        let is_late = reminder.next_at + TimeDelta::minutes(1) < self.desk.now;
        html! {
            li {
                div {
                    (text)
                    @if is_late { " " span .badge .warn { "comes with the next wake" } }
                    @if !reminder.chat.is_terminal() { " " span .badge { "for chat " (reminder.chat) } }
                }
                div .meta {
                    (self.at(reminder.next_at))
                    @if let Some(every) = &reminder.every { ", " (every) }
                }
                div .actions {
                    form method="post" action="/reminders/done" {
                        input type="hidden" name="which" value=(reminder.id);
                        button type="submit" aria-label=(format!("Done: {text}")) {
                            @if reminder.every.is_some() { "End it" } @else { "Done" }
                        }
                    }
                    @if reminder.every.is_none() {
                        form method="post" action="/reminders/snooze" {
                            input type="hidden" name="which" value=(reminder.id);
                            button type="submit" aria-label=(format!("In an hour: {text}")) { "In an hour" }
                        }
                    }
                }
            }
        }
    }
}

/// How old a task is: since when nobody has worked on it.
fn age(touched: NaiveDate, days: i64) -> Markup {
    html! {
        "Worked on "
        time datetime=(touched) {
            @match days {
                ..=0 => "today",
                1 => "yesterday",
                days => { (days) " days ago, on " (touched.format("%a %-d %b")) }
            }
        }
        "."
    }
}

/// What today has cost, in a line.
fn spent(budget: &Budget) -> Markup {
    let left = (budget.daily_usd - budget.today_usd).max(0.0);
    html! {
        p .meta {
            "Today " (usd(budget.today_usd)) " of " (format!("${:.2}", budget.daily_usd)) " are spent, "
            (format!("${left:.2}")) " left. "
            a href="/charts" { "Costs" }
        }
    }
}

fn task_form(typed: &TaskForm) -> Markup {
    html! {
        h2 { "Add a task" }
        form method="post" action="/tasks/add" {
            div .field {
                label for="task-title" { "Task" }
                input #task-title name="title" required maxlength="120" value=(typed.title) autocomplete="off";
            }
            div .field {
                label for="task-due" { "Due (optional)" }
                input #task-due name="due" value=(typed.due) placeholder="friday" autocomplete="off";
            }
            div .field {
                label for="task-next" { "Next step (optional)" }
                input #task-next name="next" value=(typed.next) autocomplete="off";
            }
            div .field {
                label for="task-list" { "List" }
                select #task-list name="list" {
                    option value="active" { "In hand" }
                    option value="backlog" selected[typed.list == "backlog"] { "Backlog" }
                }
            }
            div .actions { button type="submit" { "Add the task" } }
        }
    }
}

fn reminder_form(typed: &ReminderForm) -> Markup {
    html! {
        h2 { "Set a reminder" }
        form method="post" action="/reminders/add" {
            div .field {
                label for="reminder-text" { "What of" }
                input #reminder-text name="text" required value=(typed.text) autocomplete="off";
            }
            div .field {
                label for="reminder-at" { "When" }
                input #reminder-at name="at" required value=(typed.at) placeholder="tomorrow 9:00" autocomplete="off"
                    aria-describedby="reminder-at-how";
                p #reminder-at-how .meta { "Such as “tomorrow 9:00”, “in 20 minutes” or “every weekday at 8”." }
            }
            div .actions { button type="submit" { "Set the reminder" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_no_command_of_the_terminal() {
        for (why, said) in [
            (
                "There is no task “x”. Nothing was done; `wake task list` shows them.",
                "There is no task “x”. Nothing was done.",
            ),
            ("There's no reminder 9. `wake remind list` shows them.", "There's no reminder 9."),
            ("--due: “soonish” isn't understood as a time.", "due: “soonish” isn't understood as a time."),
        ] {
            assert_eq!(in_page(why), said);
        }
    }
}
