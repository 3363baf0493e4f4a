//! Renders what waits today: a stop of all work, questions, messages; and the day's cost.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use reveille_account::units::format_usd;
use reveille_base::words::{one_line, truncate_text};
use reveille_cycle::decide::budget::Budget;
use reveille_store::{Approval, Incoming};

use super::order::TodayTrouble;
use crate::{
    overview::Overview,
    page::{
        parts::{render_moment, render_taint_badge},
        questions::{render_card, render_card_again},
        site::PageContext,
    },
};

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

    pub(super) fn render_stopped(&self, overview: &Overview) -> Markup {
        html! {
            @if let Some(stopped) = &overview.stopped {
                div .card {
                    p {
                        strong { "All work is stopped" }
                        @if let Some(at) = stopped.at { " since " (self.render_time(at)) }
                        ". New messages wait."
                    }
                    form method="post" action="/resume" .actions { button .first type="submit" { "Resume" } }
                }
            }
        }
    }

    /// Renders the open questions with their buttons. `sure`: the dangerous one that is shown once more, before it can be allowed.
    pub(super) fn render_questions(&self, questions: &[Approval], sure: Option<i64>) -> Markup {
        html! {
            @if !questions.is_empty() {
                h2 { "Waiting for your answer " span .meta { (questions.len()) } }
                @for question in questions {
                    @if sure == Some(question.id) {
                        (render_card_again(self.desk, question, "today"))
                    } @else {
                        (render_card(self.desk, question, "today"))
                    }
                }
            }
        }
    }

    pub(super) fn render_messages(&self, messages: &[Incoming]) -> Markup {
        html! {
            @if !messages.is_empty() {
                h2 { "Messages I haven't answered " span .meta { (messages.len()) } }
                ul .list {
                    @for message in messages.iter().take(SHOWN_MESSAGES) { li { (self.render_message(message)) } }
                }
                @if messages.len() > SHOWN_MESSAGES {
                    p .meta { "and " (messages.len() - SHOWN_MESSAGES) " more" }
                }
            }
        }
    }

    fn render_message(&self, message: &Incoming) -> Markup {
        html! {
            div { (truncate_text(&one_line(&self.desk.clean_text(&message.text)), MESSAGE_CHARS)) }
            div .meta {
                @if let Some(at) = message.received_at { (self.render_time(at)) ", " }
                @if message.chat.is_terminal() { "from this machine" } @else { "from chat " (message.chat) }
                " " (render_taint_badge(message.words_of_others().as_deref()))
            }
        }
    }
}

/// Renders why an order wasn't carried out, or what it asks.
pub(super) fn render_trouble(trouble: &TodayTrouble, key: &str) -> Markup {
    html! {
        @if let Some(why) = &trouble.why {
            p .note .bad role="alert" { strong { "That didn't work. " } (why) }
        }
        @if let Some(choice) = &trouble.choice {
            div .note .warn role="alert" {
                p { (choice.question) }
                div .actions {
                    @for way in &choice.ways {
                        form method="post" action=(way.action) {
                            input type="hidden" name="key" value=(key);
                            @for (name, value) in &way.fields { input type="hidden" name=(name) value=(value); }
                            button type="submit" { (way.name) }
                        }
                    }
                }
            }
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
