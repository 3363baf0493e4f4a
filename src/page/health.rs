//! Shows the findings of `health check` with their importance and fix. The view changes nothing, and skips slow checks unless requested.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    response::Redirect,
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    parts::{address, done, time},
    site::{PageDesk, PageSite},
};
use crate::health::{self, ABOUT, CheckReport, HealthReport, IDS, LEFT_OUT_OF_A_GLANCE, Status};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/health", get(show)).route("/health/repair", post(repair))
}

#[derive(Deserialize)]
struct AskedHealth {
    /// Include slow checks.
    #[serde(default)]
    all: bool,
    /// Names of repaired checks, separated by commas, after a repair; possibly empty.
    repaired: Option<String>,
}

async fn show(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedHealth>) -> Result<Markup, PageError> {
    let content = site
        .at_desk(move |desk| {
            let report = match asked.all {
                true => health::check(desk.config, desk.redactor, desk.now, true),
                false => health::glance(desk.config, desk.redactor, desk.now),
            };
            Ok(told(desk, &report, &asked))
        })
        .await?;
    Ok(frame(PagePlace::Health, "Health", &content))
}

async fn repair(State(site): State<Arc<PageSite>>) -> Result<Redirect, PageError> {
    site.at_desk(|desk| {
        let report = health::repair(desk.config, desk.redactor, desk.now);
        Ok(Redirect::to(&address("/health", &[("repaired", &report.repaired.join(","))])))
    })
    .await
}

fn told(desk: &PageDesk<'_>, report: &HealthReport, asked: &AskedHealth) -> Markup {
    let (fine, wrong): (Vec<_>, Vec<_>) = report.checks.iter().partition(|check| check.status == Status::Ok);
    let can_repair = wrong.iter().any(|check| check.repair.is_some());
    html! {
        @if let Some(repaired) = &asked.repaired { (done(&repaired_told(repaired))) }
        // The slow full check isn't repeated on changes.
        section #live-health data-live[!asked.all] {
            p {
                @match report.status {
                    Status::Ok => { span .badge.ok { "All is well" } }
                    Status::Warn => { span .badge.warn { "Something needs a look" } }
                    Status::Critical => { span .badge.bad { "Something doesn't work" } }
                }
                span .meta { " Looked at " (time(desk, desk.now)) "." }
            }
            @if !wrong.is_empty() {
                h2 { "What needs you" }
                @for check in &wrong { (finding(desk, check)) }
            }
            @if can_repair {
                form action="/health/repair" method="post" {
                    p .actions { button type="submit" { "Repair what can be repaired" } }
                    p .meta { "This is what " code { "health check" } " does by itself. It does nothing while I am at work." }
                }
            }
            @if !desk.config.notes.is_empty() {
                h2 { "About the settings" }
                ul .list { @for note in &desk.config.notes { li { (desk.shown(note)) } } }
            }
            h2 { "What is fine" }
            @if fine.is_empty() { p { "Nothing yet." } }
            dl {
                @for check in &fine {
                    dt { (about(check.id).0) }
                    dd .meta { (desk.shown(&check.detail)) }
                }
            }
        }
        @if asked.all {
            p .meta { "This was everything, as " code { "health check --dry-run" } " does it. " a href="/health" { "Look shortly" } }
        } @else {
            p .meta {
                "Left out here, since it takes seconds: " (LEFT_OUT_OF_A_GLANCE) ". "
                a href="/health?all=true" { "Look at everything" } " (up to a minute), or run " code { "health check" } "."
            }
        }
    }
}

fn repaired_told(repaired: &str) -> Markup {
    let names: Vec<&str> = repaired.split(',').filter(|id| IDS.contains(id)).map(|id| about(id).0).collect();
    html! {
        @if names.is_empty() {
            "Nothing was repaired: it was over already, or a wake is at work and mends it itself."
        } @else {
            "Repaired: " (names.join(", ")) ". I'll note it in the memory when I'm next awake."
        }
    }
}

/// Returns a check's name and importance.
fn about(id: &str) -> (&str, &'static str) {
    ABOUT.iter().find(|(known, ..)| *known == id).map_or((id, ""), |(_, name, why)| (*name, *why))
}

fn finding(desk: &PageDesk<'_>, check: &CheckReport) -> Markup {
    let (name, why) = about(check.id);
    html! {
        article .card {
            h3 {
                (name) " "
                @if check.status == Status::Critical {
                    span .badge.bad { "doesn't work" }
                } @else {
                    span .badge.warn { "needs a look" }
                }
            }
            p { (desk.shown(&check.detail)) }
            p .meta { (why) }
            @if let Some(repair) = &check.repair {
                p { "It can be repaired here: " (desk.shown(repair)) "." }
            } @else if let Some(fix) = &check.fix {
                p { strong { "What to do: " } (in_code(&desk.shown(fix))) }
            }
        }
    }
}

/// Renders text between backticks as code.
fn in_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
