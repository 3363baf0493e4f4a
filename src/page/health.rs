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
    frame::{PagePlace, render_frame},
    parts::{build_address, render_outcome, render_time},
    site::{PageContext, PageSite},
};
use crate::{
    RunMode,
    health::{self, ABOUT, CheckReport, HealthReport, IDS, LEFT_OUT_OF_A_GLANCE, Status},
    setup::CheckReach,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/health", get(show_health)).route("/health/repair", post(repair_problems))
}

#[derive(Deserialize)]
struct AskedHealth {
    /// Include slow checks.
    #[serde(default)]
    all: bool,
    /// Names of repaired checks, separated by commas, after a repair; possibly empty.
    repaired: Option<String>,
}

async fn show_health(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedHealth>) -> Result<Markup, PageError> {
    let content = site
        .run_blocking(move |desk| {
            let report = match asked.all {
                true => health::check(desk.config, desk.redactor, desk.now, RunMode::Dry, CheckReach::Local),
                false => health::glance(desk.config, desk.redactor, desk.now),
            };
            Ok(render_report(desk, &report, &asked))
        })
        .await?;
    Ok(render_frame(PagePlace::Health, "Health", &content))
}

async fn repair_problems(State(site): State<Arc<PageSite>>) -> Result<Redirect, PageError> {
    site.run_blocking(|desk| {
        let report = health::repair(desk.config, desk.redactor, desk.now);
        Ok(Redirect::to(&build_address("/health", &[("repaired", &report.repaired.join(","))])))
    })
    .await
}

fn render_report(desk: &PageContext<'_>, report: &HealthReport, asked: &AskedHealth) -> Markup {
    let (fine, wrong): (Vec<_>, Vec<_>) = report.checks.iter().partition(|check| check.status == Status::Ok);
    let can_repair = wrong.iter().any(|check| check.repair.is_some());
    html! {
        @if let Some(repaired) = &asked.repaired { (render_outcome(&render_repaired(repaired))) }
        // The slow full check isn't repeated on changes.
        section #live-health data-live[!asked.all] {
            p {
                @match report.status {
                    Status::Ok => { span .badge.ok { "All is well" } }
                    Status::Warn => { span .badge.warn { "Something needs attention" } }
                    Status::Critical => { span .badge.bad { "Something isn't working" } }
                }
                span .meta { " Checked " (render_time(desk, desk.now)) "." }
            }
            @if !wrong.is_empty() {
                h2 { "Needs your attention" }
                @for check in &wrong { (render_finding(desk, check)) }
            }
            @if can_repair {
                form action="/health/repair" method="post" {
                    p .actions { button type="submit" { "Repair what can be repaired" } }
                    p .meta { "This does the same as " code { "health check" } ", and nothing while I am at work." }
                }
            }
            @if !desk.config.notes.is_empty() {
                h2 { "About the settings" }
                ul .list { @for note in &desk.config.notes { li { (desk.clean_text(note)) } } }
            }
            h2 { "In order" }
            @if fine.is_empty() { p { "Nothing yet." } }
            dl {
                @for check in &fine {
                    dt { (find_about(check.id).0) }
                    dd .meta { (desk.clean_text(&check.detail)) }
                }
            }
        }
        @if asked.all {
            p .meta { "This was the full check, the same as " code { "health check --dry-run" } ". " a href="/health" { "Check quickly" } }
        } @else {
            p .meta {
                "Left out here because they take seconds: " (LEFT_OUT_OF_A_GLANCE) ". "
                a href="/health?all=true" { "Check everything" } " (up to a minute), or run " code { "health check" } "."
            }
        }
    }
}

fn render_repaired(repaired: &str) -> Markup {
    let names: Vec<&str> = repaired.split(',').filter(|id| IDS.contains(id)).map(|id| find_about(id).0).collect();
    html! {
        @if names.is_empty() {
            "Nothing was repaired: the problem was already gone, or a running wake is fixing it."
        } @else {
            "Repaired: " (names.join(", ")) ". I'll note it in the memory when I next wake."
        }
    }
}

/// Returns a check's name and importance.
fn find_about(id: &str) -> (&str, &'static str) {
    ABOUT.iter().find(|(known, ..)| *known == id).map_or((id, ""), |(_, name, why)| (*name, *why))
}

fn render_finding(desk: &PageContext<'_>, check: &CheckReport) -> Markup {
    let (name, why) = find_about(check.id);
    html! {
        article .card {
            h3 {
                (name) " "
                @if check.status == Status::Critical {
                    span .badge.bad { "isn't working" }
                } @else {
                    span .badge.warn { "needs attention" }
                }
            }
            p { (desk.clean_text(&check.detail)) }
            p .meta { (why) }
            @if let Some(repair) = &check.repair {
                p { "It can be repaired here: " (desk.clean_text(repair)) "." }
            } @else if let Some(fix) = &check.fix {
                p { strong { "What to do: " } (render_code(&desk.clean_text(fix))) }
            }
        }
    }
}

/// Renders text between backticks as code.
fn render_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
