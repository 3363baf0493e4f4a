//! The navigation: at most five places on a phone, the rest behind “More”, and the counts of what waits.
//!
//! A view doesn't know what waits elsewhere. The counts are read before a view and reach its frame by the task, so that no view has to
//! carry them.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, Request, State},
    middleware::Next,
    response::Response,
    routing::get,
};
use maud::{Markup, PreEscaped, html};

use reveille_base::words::format_count;
use reveille_store::StoreError;
use reveille_tools::Documents;

use super::{
    frame::{PagePlace, render_frame},
    parts::build_address,
    site::{PageContext, PageSite},
};
use crate::orders::{lists, tasks};

/// The path of the other places.
const MORE_PATH: &str = "/more";

tokio::task_local! {
    static COUNTS: WaitingCounts;
}

/// The numbers of what waits for the person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WaitingCounts {
    /// Open questions.
    pub(super) questions: usize,
    /// Tasks that are due today or overdue.
    pub(super) due_tasks: usize,
}

impl WaitingCounts {
    /// Returns the counts of the current request. Zero where none were read.
    pub(super) fn current() -> Self {
        COUNTS.try_with(|counts| *counts).unwrap_or_default()
    }

    /// Runs `work` with these counts as the current ones.
    pub(super) fn scope<T>(self, work: impl FnOnce() -> T) -> T {
        COUNTS.sync_scope(self, work)
    }

    /// Reads the counts. What can't be read counts as zero: the view itself tells of it.
    fn read(desk: &PageContext<'_>) -> Self {
        let count_questions = || -> Result<usize, StoreError> {
            let Some(store) = desk.open_store()? else { return Ok(0) };
            Ok(store.approvals().pending_approvals(desk.now)?.len())
        };
        let [active, backlog] = tasks::read_lists(&Documents::new(&desk.config.repo_dir(), Vec::new()));
        let listed = lists::list_tasks(&active, &backlog, desk.local_date());
        Self {
            questions: count_questions().unwrap_or_default(),
            due_tasks: listed.iter().filter(|task| task.is_due).count(),
        }
    }
}

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(MORE_PATH, get(async |Query(query): Query<MoreQuery>| show_more(&query)))
}

/// The query of “More”.
#[derive(Debug, Default, serde::Deserialize)]
struct MoreQuery {
    /// The path of the place to mark as open, for a view that renews only its navigation.
    #[serde(default)]
    at: String,
}

/// Reads the counts before a view.
pub(super) async fn count_waiting(State(site): State<Arc<PageSite>>, request: Request, next: Next) -> Response {
    let counts = site.run_blocking(|desk| Ok(WaitingCounts::read(desk))).await.unwrap_or_default();
    COUNTS.scope(counts, next.run(request)).await
}

/// A place of the navigation.
struct NavPlace {
    place: PagePlace,
    path: &'static str,
    name: &'static str,
    /// The icon's drawing, 24 by 24.
    icon: &'static str,
    /// What is found there, for “More”.
    about: &'static str,
}

/// The places that stand in the bar on a phone.
const MAIN: [NavPlace; 4] = [
    NavPlace {
        place: PagePlace::Today,
        path: "/",
        name: "Today",
        icon: r#"<rect x="4" y="5" width="16" height="15" rx="3"/><path d="M8 3v4M16 3v4M4 10h16M9 15l2 2 4-4"/>"#,
        about: "Tasks, reminders and what waits for you",
    },
    NavPlace {
        place: PagePlace::Chat,
        path: "/chat",
        name: "Chat",
        icon: r#"<path d="M6 5h12a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-6l-4.5 4v-4H6a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z"/>"#,
        about: "Talk to me",
    },
    NavPlace {
        place: PagePlace::Wakes,
        path: "/wakes",
        name: "What I did",
        icon: r#"<path d="M4.5 8.5A8.5 8.5 0 1 1 3.5 12M4 4v4.5h4.5M12 7.5V12l3 2"/>"#,
        about: "Everything I did, and undo",
    },
    NavPlace {
        place: PagePlace::Memory,
        path: "/memory",
        name: "Memory",
        icon: r#"<path d="M6.5 4H19v16H7a2 2 0 0 1-2-2V5.5A1.5 1.5 0 0 1 6.5 4zM5 18a2 2 0 0 1 2-2h12M9 8h6"/>"#,
        about: "What I know, to read and edit",
    },
];

/// The places behind “More” on a phone.
const FURTHER: [NavPlace; 4] = [
    NavPlace {
        place: PagePlace::Questions,
        path: "/questions",
        name: "Questions",
        icon: r#"<circle cx="12" cy="12" r="8.5"/><path d="M9.5 9.7a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.800M12 16.7v.1"/>"#,
        about: "What I may not do without you, and what you decided",
    },
    NavPlace {
        place: PagePlace::Charts,
        path: "/charts",
        name: "Charts",
        icon: r#"<path d="M5 20v-8M12 20V4M19 20v-5"/>"#,
        about: "What I cost and how much I did",
    },
    NavPlace {
        place: PagePlace::Health,
        path: "/health",
        name: "Health",
        icon: r#"<path d="M3 12h4l2.5-6 5 12L17 12h4"/>"#,
        about: "Whether everything works, and repairs",
    },
    NavPlace {
        place: PagePlace::Settings,
        path: "/settings",
        name: "Settings",
        icon: r#"<path d="M4 7h8M18 7h2M4 17h2M12 17h8"/><circle cx="15" cy="7" r="2.5"/><circle cx="9" cy="17" r="2.5"/>"#,
        about: "The AI model, budgets, channels",
    },
];

const MORE_ICON: &str = r#"<path d="M5 7h14M5 12h14M5 17h14"/>"#;

/// A pencil.
pub(super) const CHANGE_ICON: &str = r#"<path d="M4 20l1-4L16 5l3 3L8 19zM14 7l3 3"/>"#;
/// An alarm clock.
pub(super) const SNOOZE_ICON: &str = r#"<circle cx="12" cy="13" r="7"/><path d="M12 9v4l2.5 2M5 4L3 6M19 4l2 2"/>"#;

pub(super) fn render_icon(drawing: &'static str) -> Markup {
    html! { svg .icon viewBox="0 0 24 24" aria-hidden="true" { (PreEscaped(drawing)) } }
}

/// Renders a count with its noun for screen readers. Nothing for zero.
fn render_count(count: usize, noun: &str) -> Markup {
    html! {
        @if count > 0 {
            span .count { (count) span .unseen { (format_count(count, noun).trim_start_matches(|c: char| c.is_ascii_digit())) } }
        }
    }
}

impl NavPlace {
    fn render_count(&self, counts: WaitingCounts) -> Markup {
        match self.place {
            PagePlace::Today => render_count(counts.due_tasks, "task due"),
            PagePlace::Questions => render_count(counts.questions, "question"),
            _ => html! {},
        }
    }

    fn render_link(&self, at: PagePlace, counts: WaitingCounts) -> Markup {
        html! {
            a href=(self.path) aria-current=[(at == self.place).then_some("page")] {
                (render_icon(self.icon)) span { (self.name) } (self.render_count(counts))
            }
        }
    }
}

/// Renders the navigation of a view.
pub(super) fn render_navigation(at: PagePlace) -> Markup {
    let counts = WaitingCounts::current();
    let is_further = at == PagePlace::More || FURTHER.iter().any(|further| further.place == at);
    let path = MAIN.iter().chain(&FURTHER).find(|known| known.place == at).map_or("", |known| known.path);
    html! {
        nav #live-nav aria-label="Views" data-live=(build_address(MORE_PATH, &[("at", path)])) {
            ul {
                @for place in &MAIN { li { (place.render_link(at, counts)) } }
                @for place in &FURTHER { li .further { (place.render_link(at, counts)) } }
                li .more {
                    a href=(MORE_PATH) aria-current=[is_further.then_some(if at == PagePlace::More { "page" } else { "true" })] {
                        (render_icon(MORE_ICON)) span { "More" } (render_count(counts.questions, "question"))
                    }
                }
            }
        }
    }
}

/// The page of the places that don't stand in a phone's bar.
fn show_more(query: &MoreQuery) -> Markup {
    let counts = WaitingCounts::current();
    let marked = MAIN.iter().chain(&FURTHER).find(|known| known.path == query.at);
    let content = html! {
        ul .places {
            @for place in &FURTHER {
                li {
                    a href=(place.path) {
                        (render_icon(place.icon))
                        span { strong { (place.name) " " (place.render_count(counts)) } span .meta { (place.about) } }
                    }
                }
            }
        }
    };
    render_frame(marked.map_or(PagePlace::More, |known| known.place), "More", &content)
}
