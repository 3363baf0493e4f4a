//! Renders today: waiting items, tasks, reminders, and the forms.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use maud::{Markup, html};

use reveille_account::units::format_usd;
use reveille_base::words::{format_count, one_line, truncate_text};
use reveille_cycle::decide::budget::Budget;
use reveille_memory::tasks::MAX_ACTIVE_TASKS;
use reveille_store::Approval;

use super::{ReminderForm, TaskForm, local_date, name};
use crate::{
    orders::{
        lists::ListedTask,
        reminders::ListedReminder,
        today::{Today, WaitingMessage},
    },
    page::{
        parts::{render_moment, render_taint_badge},
        questions::render_card,
        site::PageContext,
    },
};

/// Reminders shown expanded; the others are collapsed.
const SHOWN_REMINDERS: usize = 8;
/// Maximum messages shown.
const SHOWN_MESSAGES: usize = 20;
/// Characters shown of a message.
const MESSAGE_CHARS: usize = 200;

/// Renders the parts of a day.
pub(super) struct DayView<'a> {
    pub(super) desk: &'a PageContext<'a>,
}

impl DayView<'_> {
    fn render_time(&self, at: DateTime<Utc>) -> Markup {
        render_moment(at, self.desk.now, self.desk.config.timezone)
    }

    pub(super) fn render_stopped(&self, day: &Today) -> Markup {
        html! {
            @if let Some(since) = day.stopped {
                div .card {
                    p {
                        strong { "All work is stopped" }
                        @if let Some(at) = since { " since " (self.render_time(at)) }
                        ". New messages wait."
                    }
                    form method="post" action="/resume" .actions { button type="submit" { "Resume" } }
                }
            }
        }
    }

    /// Renders the open questions with their buttons.
    pub(super) fn render_questions(&self, questions: &[Approval]) -> Markup {
        html! {
            @if !questions.is_empty() {
                h2 { "Waiting for your answer" }
                @for question in questions { (render_card(self.desk, question, "today")) }
            }
        }
    }

    pub(super) fn render_messages(&self, messages: &[WaitingMessage]) -> Markup {
        html! {
            @if !messages.is_empty() {
                h2 { "Messages I haven't answered" }
                ul .list {
                    @for message in messages.iter().take(SHOWN_MESSAGES) {
                        li {
                            (truncate_text(&one_line(&message.text), MESSAGE_CHARS)) " "
                            span .meta {
                                @if let Some(at) = message.at { (self.render_time(at)) ", " }
                                @if message.chat.is_terminal() { "from this machine" } @else { "from chat " (message.chat) }
                            }
                            " " (render_taint_badge(message.taint.as_deref()))
                        }
                    }
                }
                @if messages.len() > SHOWN_MESSAGES {
                    p .meta { "and " (messages.len() - SHOWN_MESSAGES) " more" }
                }
            }
        }
    }

    pub(super) fn render_tasks(&self, tasks: &[ListedTask]) -> Markup {
        let (active, backlog): (Vec<&ListedTask>, Vec<&ListedTask>) =
            tasks.iter().partition(|task| task.list == "active");
        let of = if active.len() > MAX_ACTIVE_TASKS { String::new() } else { format!(" of {MAX_ACTIVE_TASKS}") };
        html! {
            h2 { "Tasks" }
            @if active.is_empty() {
                p { "No tasks in hand. Tasks that you add, or ask me to keep, appear here." }
            } @else {
                p .meta { (active.len()) (of) " in hand" }
                ul .list { @for task in &active { (self.render_task(task)) } }
            }
            @if !backlog.is_empty() {
                details {
                    summary { (format_count(backlog.len(), "task")) " in the backlog" }
                    ul .list { @for task in &backlog { (self.render_task(task)) } }
                }
            }
        }
    }

    fn render_task(&self, task: &ListedTask) -> Markup {
        let shown = |text: &str| self.desk.clean_text(text);
        let due_days = task.due.as_deref().and_then(|due| due.parse::<NaiveDate>().ok());
        let due_days = due_days.map(|due| due.signed_duration_since(local_date(self.desk)).num_days());
        let title = shown(&task.title);
        html! {
            li {
                div {
                    strong { (title) }
                    @if let Some(project) = &task.project { " " span .badge { "project " (shown(project)) } }
                    @if let Some(priority) = &task.priority { " " span .badge { "priority " (shown(priority)) } }
                    @match (due_days, &task.due) {
                        (Some(..=-1), Some(due)) => { " " span .badge .bad { "overdue since " (shown(due)) } }
                        (Some(0), _) => { " " span .badge .warn { "due today" } }
                        (Some(1), _) => { " " span .badge { "due tomorrow" } }
                        (_, Some(due)) => { " " span .badge { "due " (shown(due)) } }
                        (_, None) => {}
                    }
                    @if let Some(chat) = task.chat { " " span .badge { "from chat " (chat) } }
                }
                div .meta {
                    @if let (Some(touched), Some(days)) = (task.touched, task.quiet_days) { (render_age(touched, days)) }
                    @if let Some(next) = &task.next { " Next: " (shown(next)) "." }
                    @if let Some(at) = &task.at { " I'll take the next step at " (shown(at)) "." }
                }
                form method="post" action="/tasks/done" .actions {
                    input type="hidden" name="which" value=(name(task));
                    button type="submit" aria-label=(format!("Done: {title}")) { "Done" }
                }
            }
        }
    }

    pub(super) fn render_reminders(&self, reminders: &[ListedReminder]) -> Markup {
        let (first, more) = reminders.split_at(reminders.len().min(SHOWN_REMINDERS));
        html! {
            h2 { "Reminders" }
            @if reminders.is_empty() {
                p { "No reminders are set. New ones appear here, and I'll send each on time." }
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

    fn render_reminder(&self, reminder: &ListedReminder) -> Markup {
        let text = self.desk.clean_text(&reminder.text);
        let is_late = reminder.next_at + TimeDelta::minutes(1) < self.desk.now;
        html! {
            li {
                div {
                    (text)
                    @if is_late { " " span .badge .warn { "I'll send it when I next wake" } }
                    @if !reminder.chat.is_terminal() { " " span .badge { "for chat " (reminder.chat) } }
                }
                div .meta {
                    (self.render_time(reminder.next_at))
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

/// Renders the days since a task was last worked on.
fn render_age(touched: NaiveDate, days: i64) -> Markup {
    html! {
        // A task of today may be new, without any work yet.
        @if days > 0 {
            "Worked on "
            time datetime=(touched) {
                @match days {
                    1 => "yesterday",
                    days => { (days) " days ago, on " (touched.format("%a %-d %b")) }
                }
            }
            "."
        }
    }
}

/// Renders today's cost in a line.
pub(super) fn render_cost(budget: &Budget) -> Markup {
    let left = (budget.daily_usd - budget.today_usd).max(0.0);
    html! {
        p .meta {
            "Today: " (format_usd(budget.today_usd)) " of " (format!("${:.2}", budget.daily_usd)) " spent, "
            (format!("${left:.2}")) " left. "
            a href="/charts" { "Costs" }
        }
    }
}

pub(super) fn task_form(typed: &TaskForm, key: &str) -> Markup {
    html! {
        h2 { "Add a task" }
        form method="post" action="/tasks/add" {
            input type="hidden" name="key" value=(key);
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

pub(super) fn reminder_form(typed: &ReminderForm, key: &str) -> Markup {
    html! {
        h2 { "Set a reminder" }
        form method="post" action="/reminders/add" {
            input type="hidden" name="key" value=(key);
            div .field {
                label for="reminder-text" { "Remind me of" }
                input #reminder-text name="text" required value=(typed.text) autocomplete="off";
            }
            div .field {
                label for="reminder-at" { "When" }
                input #reminder-at name="at" required value=(typed.at) placeholder="tomorrow 9:00" autocomplete="off"
                    aria-describedby="reminder-at-how";
                p #reminder-at-how .meta { "For example “tomorrow 9:00”, “in 20 minutes” or “every weekday at 8”." }
            }
            div .actions { button type="submit" { "Set the reminder" } }
        }
    }
}
