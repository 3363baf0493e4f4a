//! Charts of cost, tokens, latency and wakes, drawn as SVG by the server.

mod svg;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Query, State},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::{
    days::{self, DayFigures, DaysReport},
    units::{format_duration, format_large_number, format_usd},
};
use reveille_base::words::format_count;

use self::svg::{Chart, ChartSeries, Shape};
use super::{
    error::PageError,
    frame::{PagePlace, render_frame},
    site::{PageContext, PageSite},
};

/// The selectable periods in days; the second is the default.
const STRETCHES: [u64; 3] = [7, 30, 90];
const USUAL_STRETCH: u64 = 30;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/charts", get(show_charts))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChartsQuery {
    days: String,
}

async fn show_charts(State(site): State<Arc<PageSite>>, Query(query): Query<ChartsQuery>) -> Result<Markup, PageError> {
    // An unknown period means the default.
    let n = query.days.parse().ok().filter(|days| STRETCHES.contains(days)).unwrap_or(USUAL_STRETCH);
    site.run_blocking(move |desk| {
        let report = match desk.open_store()? {
            Some(store) => Some(days::compute_report(&store, desk.config, desk.now, n)?),
            None => None,
        };
        Ok(render_frame(PagePlace::Charts, "Charts", &render_content(desk, report.as_ref(), n)))
    })
    .await
}

fn render_content(desk: &PageContext<'_>, report: Option<&DaysReport>, n: u64) -> Markup {
    html! {
        nav .actions aria-label="Period" {
            @for days in STRETCHES {
                a href={ "/charts?days=" (days) } aria-current=[(days == n).then_some("true")] { (days) " days" }
            }
        }
        @match report {
            Some(report) => {
                (render_budgets(report))
                @if report.is_empty() { (render_empty(n)) } @else { div .charts { (render_charts(desk, report)) } }
            }
            None => (render_empty(n)),
        }
    }
}

fn render_empty(n: u64) -> Markup {
    html! {
        p { "I did nothing in the last " (n) " days. Charts of what my work costs, how long it takes and how it ends appear here, day by day." }
    }
}

/// Renders the budgets and the month's forecast.
fn render_budgets(report: &DaysReport) -> Markup {
    let of = |budget: f64, spent: f64| format!(" of ${budget:.2}, ${:.2} left", (budget - spent).max(0.0));
    html! {
        ul .list {
            li { "Today: " (format_usd(report.today_usd)) (of(report.daily_budget_usd, report.today_usd)) "." }
            li {
                (report.month) ": " (format_usd(report.month_usd))
                @if let Some(budget) = report.monthly_budget_usd { (of(budget, report.month_usd)) }
                "."
            }
            @if report.month_usd > 0.0 { li { (report.forecast.describe(&report.month)) } }
        }
    }
}

fn render_charts(desk: &PageContext<'_>, report: &DaysReport) -> Markup {
    let days: Vec<String> = report.days.iter().map(|day| day.day.format("%-d %b").to_string()).collect();
    let chart = |id, title, unit| Chart {
        id,
        title,
        summary: String::new(),
        days: days.clone(),
        series: Vec::new(),
        shape: Shape::Stacked,
        limit: None,
        unit,
    };
    let cost = Chart {
        summary: cost_summary(report),
        series: cost_series(desk, report),
        limit: Some(("daily budget", report.daily_budget_usd)),
        ..chart("cost", "Cost per day", format_usd)
    };
    let tokens = Chart {
        summary: "Tokens of the prompts (those read from the cache separately) and of the answers.".to_owned(),
        series: vec![
            build_series(report, "in", |day| Some((day.tokens.input + day.tokens.cache_write) as f64)),
            build_series(report, "in, from the cache", |day| Some(day.tokens.cache_read as f64)),
            build_series(report, "out", |day| Some(day.tokens.output as f64)),
        ],
        ..chart("tokens", "Tokens per day", |n| format_large_number(n as u64))
    };
    let latency = Chart {
        summary: latency_summary(report),
        series: vec![
            build_series(report, "half took at most", |day| day.turns.map(|turns| turns.median_ms as f64)),
            build_series(report, "19 of 20 took at most", |day| day.turns.map(|turns| turns.p95_ms as f64)),
        ],
        shape: Shape::Lines,
        ..chart("latency", "How long a turn of the AI model took", |ms| format_duration(ms as i64))
    };
    let wakes = Chart {
        summary: wakes_summary(report),
        series: vec![
            build_series(report, "done", |day| Some(f64::from(day.wakes.done))),
            build_series(report, "failed", |day| Some(f64::from(day.wakes.failed))),
            build_series(report, "given up", |day| Some(f64::from(day.wakes.given_up))),
            build_series(report, "not ended yet", |day| Some(f64::from(day.wakes.open))),
        ],
        ..chart("wakes", "Wakes per day", format_whole)
    };
    html! { (cost.draw()) (tokens.draw()) (latency.draw()) (wakes.draw()) }
}

fn build_series(report: &DaysReport, name: &str, value: impl Fn(&DayFigures) -> Option<f64>) -> ChartSeries {
    ChartSeries { name: name.to_owned(), values: report.days.iter().map(value).collect() }
}

fn cost_series(desk: &PageContext<'_>, report: &DaysReport) -> Vec<ChartSeries> {
    let models = report.models.iter().enumerate();
    models
        .map(|(at, model)| build_series(report, &desk.clean_text(model), |day| day.cost_usd.get(at).copied()))
        .collect()
}

fn cost_summary(report: &DaysReport) -> String {
    let all: f64 = report.days.iter().flat_map(|day| &day.cost_usd).sum();
    let days = report.days.len();
    format!(
        "{} in {}, {} a day on average. The daily budget is ${:.2}.",
        format_usd(all),
        format_count(days, "day"),
        format_usd(all / days.max(1) as f64),
        report.daily_budget_usd
    )
}

fn latency_summary(report: &DaysReport) -> String {
    let turns: u32 = report.days.iter().filter_map(|day| day.turns).map(|turns| turns.turns).sum();
    match turns {
        0 => "No turns are stored for these days. Turns are kept for KEEP_DAYS.".to_owned(),
        turns => {
            format!("{}, from the request to the complete answer.", format_count(turns as usize, "turn"))
        }
    }
}

fn wakes_summary(report: &DaysReport) -> String {
    let of = |value: fn(&DayFigures) -> u32| report.days.iter().map(value).sum::<u32>();
    let ended_badly = of(|day| day.wakes.failed) + of(|day| day.wakes.given_up);
    let all = ended_badly + of(|day| day.wakes.done) + of(|day| day.wakes.open);
    format!("{}, {ended_badly} of them failed or given up.", format_count(all as usize, "wake"))
}

/// Renders a count; the axis between two counts has no label.
fn format_whole(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { String::new() }
}
