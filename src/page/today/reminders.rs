//! The reminders of Today: setting one, and the forms of each.

use std::sync::Arc;

use axum::{Form, Router, extract::State, response::Response, routing::post};
use chrono::TimeDelta;
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::words::format_count;
use reveille_store::Reminder;

use super::order::{TodayTrouble, change_reminders, run_order};
use crate::{
    orders::{OrderError, reminders::ReminderOrder},
    page::{
        error::PageError,
        nav::{CHANGE_ICON, SNOOZE_ICON, render_icon},
        notes::form_name,
        parts::render_moment,
        site::{PageContext, PageSite},
    },
};

/// Reminders shown expanded; the others are collapsed.
const SHOWN_REMINDERS: usize = 8;
/// The delays offered by a button: the button's words and the time.
const SNOOZES: [(&str, &str); 3] =
    [("In 10 minutes", "10 minutes"), ("In an hour", "1 hour"), ("Tomorrow morning", "tomorrow morning")];

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route("/reminders/add", post(add_reminder))
        .route("/reminders/done", post(end_reminder))
        .route("/reminders/snooze", post(snooze_reminder))
        .route("/reminders/edit", post(edit_reminder))
}

/// The form of a new reminder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReminderForm {
    text: String,
    at: String,
    key: String,
}

/// The form of a button for one reminder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReminderButton {
    which: String,
    until: String,
}

/// The form that changes a reminder.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReminderEditForm {
    which: i64,
    text: String,
    at: String,
}

async fn add_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderForm>,
) -> Result<Response, PageError> {
    let (text, at) = (form.text.trim().to_owned(), form.at.trim().to_owned());
    let name = form_name(&form.key, &form);
    let trouble = TodayTrouble { reminder: form, form: name, ..TodayTrouble::default() };
    run_order(site, trouble, move |desk| {
        if text.is_empty() || at.is_empty() {
            return Err(OrderError::Refused("A reminder needs a text and a time. Nothing was set.".to_owned()));
        }
        change_reminders(desk, ReminderOrder::Set { text: &text, at: Some(&at) })
    })
    .await
}

async fn end_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderButton>,
) -> Result<Response, PageError> {
    run_order(site, TodayTrouble::default(), move |desk| {
        change_reminders(desk, ReminderOrder::End { which: &form.which })
    })
    .await
}

async fn snooze_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderButton>,
) -> Result<Response, PageError> {
    run_order(site, TodayTrouble::default(), move |desk| {
        let until = form.until.trim();
        if until.is_empty() {
            return Err(OrderError::Refused(
                "Until when? Type “in 2 hours” or “friday 9:00”. Nothing was changed.".to_owned(),
            ));
        }
        change_reminders(desk, ReminderOrder::Snooze { which: &form.which, until })
    })
    .await
}

async fn edit_reminder(
    State(site): State<Arc<PageSite>>,
    Form(form): Form<ReminderEditForm>,
) -> Result<Response, PageError> {
    run_order(site, TodayTrouble::default(), move |desk| {
        let old = match desk.open_store()? {
            Some(store) => store.reminders().list_reminders()?.into_iter().find(|reminder| reminder.id == form.which),
            None => None,
        };
        let Some(old) = old else {
            return Err(OrderError::Refused("That reminder no longer exists. Nothing was changed.".to_owned()));
        };
        let text = Some(form.text.trim()).filter(|text| !text.is_empty() && *text != desk.clean_text(&old.what.text));
        let at = Some(form.at.trim()).filter(|at| !at.is_empty());
        if text.is_none() && at.is_none() {
            return Err(OrderError::Refused("You changed nothing, so it stays as it was.".to_owned()));
        }
        change_reminders(desk, ReminderOrder::Change { which: form.which, text, at })
    })
    .await
}

/// Renders reminders and their forms.
pub(super) struct ReminderView<'a> {
    pub(super) desk: &'a PageContext<'a>,
}

impl ReminderView<'_> {
    pub(super) fn render_list(&self, reminders: &[Reminder]) -> Markup {
        let (first, more) = reminders.split_at(reminders.len().min(SHOWN_REMINDERS));
        html! {
            h2 { "Reminders" @if !reminders.is_empty() { " " span .meta { (reminders.len()) } } }
            @if reminders.is_empty() {
                p .empty { "No reminders are set. New ones appear here, and I'll send each on time." }
            } @else {
                ul .list { @for reminder in first { (self.render_reminder(reminder)) } }
            }
            @if !more.is_empty() {
                details {
                    summary { "Later: " (format_count(more.len(), "reminder")) }
                    ul .list { @for reminder in more { (self.render_reminder(reminder)) } }
                }
            }
        }
    }

    fn render_reminder(&self, reminder: &Reminder) -> Markup {
        let text = self.desk.clean_text(&reminder.what.text);
        let is_late = reminder.what.next_at + TimeDelta::minutes(1) < self.desk.now;
        let rule = reminder.what.rule.as_ref();
        html! {
            li {
                div .what {
                    strong { (text) }
                    p .meta {
                        span { (render_moment(reminder.what.next_at, self.desk.now, self.desk.config.timezone)) }
                        @if let Some(rule) = rule { span { (rule) } }
                        @if is_late { span .badge .warn { "I'll send it when I next wake" } }
                        @if !reminder.what.chat.is_terminal() { span .badge { "for chat " (reminder.what.chat) } }
                    }
                }
                @if rule.is_none() {
                    details .change {
                        summary { (render_icon(SNOOZE_ICON)) span .word { "Snooze" } span .unseen { " " (text) } }
                        (render_snoozes(reminder.id, &text))
                    }
                }
                details .change {
                    summary { (render_icon(CHANGE_ICON)) span .word { "Change" } span .unseen { " " (text) } }
                    (render_edit(reminder, &text))
                }
            }
        }
    }

    pub(super) fn render_form(&self, typed: &ReminderForm, key: &str) -> Markup {
        let is_open = !typed.text.is_empty() || !typed.at.is_empty();
        html! {
            details .new open[is_open] {
                summary { "Set a reminder" }
                form method="post" action="/reminders/add" .forms {
                    input type="hidden" name="key" value=(key);
                    div .field {
                        label for="reminder-text" { "Remind me of" }
                        input #reminder-text name="text" required value=(typed.text) autocomplete="off";
                    }
                    div .field {
                        label for="reminder-at" { "When" }
                        input #reminder-at name="at" required value=(typed.at) placeholder="tomorrow 8:00" autocomplete="off"
                            aria-describedby="reminder-at-how";
                        p #reminder-at-how .meta { "For example “tomorrow 8:00”, “in 20 minutes” or “every weekday at 8”." }
                    }
                    div .actions { button .first type="submit" { "Set the reminder" } }
                }
            }
        }
    }
}

fn render_snoozes(id: i64, text: &str) -> Markup {
    let field = format!("until-{id}");
    html! {
        div .forms {
            div .actions {
                @for (name, until) in SNOOZES {
                    form method="post" action="/reminders/snooze" {
                        input type="hidden" name="which" value=(id);
                        input type="hidden" name="until" value=(until);
                        button type="submit" aria-label=(format!("{name}: {text}")) { (name) }
                    }
                }
            }
            form method="post" action="/reminders/snooze" .oneline {
                input type="hidden" name="which" value=(id);
                label .unseen for=(field) { "Snooze until" }
                input id=(field) name="until" required placeholder="or until friday 9:00" autocomplete="off";
                button type="submit" aria-label=(format!("Snooze: {text}")) { "Snooze" }
            }
        }
    }
}

fn render_edit(reminder: &Reminder, text: &str) -> Markup {
    let id = reminder.id;
    let (text_id, at_id) = (format!("text-{id}"), format!("at-{id}"));
    let end = if reminder.what.rule.is_some() { "End it" } else { "Cancel it" };
    html! {
        div .forms {
            form method="post" action="/reminders/edit" {
                input type="hidden" name="which" value=(id);
                div .field {
                    label for=(text_id) { "Remind me of" }
                    input id=(text_id) name="text" required value=(text) autocomplete="off";
                }
                div .field {
                    label for=(at_id) { "New time" }
                    input id=(at_id) name="at" placeholder=(if reminder.what.rule.is_some() { "every weekday at 9" } else { "tomorrow 8:00" }) autocomplete="off";
                }
                div .actions { button .first type="submit" { "Save" } }
            }
            form method="post" action="/reminders/done" .actions {
                input type="hidden" name="which" value=(id);
                button type="submit" aria-label=(format!("{end}: {text}")) { (end) }
            }
        }
    }
}
