//! Standing jobs: when each runs next, and a switch. Switching makes a commit, which can be undone.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{Query, State},
    response::Redirect,
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools};
use reveille_base::words::one_line;
use reveille_memory::job::job_path;
use reveille_tools::Documents;

use super::{SettingsPlace, fields::capitalize, render_place};
use crate::{
    orders::{
        OrderError,
        jobs::{self, JobSwitch, ListedJob},
    },
    page::{
        error::PageError,
        notes::NoteQuery,
        parts::{build_address, escape_and_clean, render_time},
        site::{PageContext, PageSite},
        undo::newest_step,
    },
};

const PLACE: SettingsPlace = SettingsPlace::Jobs;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route(PLACE.path(), get(show_jobs)).route("/settings/jobs/switch", post(switch_job))
}

#[derive(Deserialize)]
struct SwitchForm {
    name: String,
    /// `on` or `off`.
    to: String,
}

async fn show_jobs(State(site): State<Arc<PageSite>>, Query(said): Query<NoteQuery>) -> Result<Markup, PageError> {
    let of_site = Arc::clone(&site);
    site.run_blocking(move |desk| {
        let listed = list_jobs(desk)?;
        let newest = match desk.open_store()? {
            Some(store) => newest_step(desk, &store, "jobs")?,
            None => Markup::default(),
        };
        let content = html! {
            (of_site.render_note(&said))
            p { "A job does something at fixed times, or watches for something. Each is a document of the memory; ask me in the chat for a new one." }
            section #live-jobs data-live {
                @if listed.is_empty() { p .set-empty { "No jobs yet." } }
                ul .list.set-rows { @for job in &listed { (render_job(desk, job)) } }
                (newest)
            }
        };
        Ok(render_place(PLACE.title(), &content))
    })
    .await
}

async fn switch_job(State(site): State<Arc<PageSite>>, Form(form): Form<SwitchForm>) -> Result<Redirect, PageError> {
    let told = site
        .run_blocking(move |desk| {
            let switch = if form.to == "on" { JobSwitch::Resume } else { JobSwitch::Pause };
            let clock = desk.config.clock();
            let now = clock.now().with_timezone(&desk.config.timezone);
            let tools = PersonSessionTools { config: desk.config, clock: clock.as_ref(), redactor: desk.redactor };
            let mut session = PersonSession::take(tools)?;
            let done = jobs::switch_job(&mut session, now, &form.name, switch);
            if let Err(error) = session.release() {
                tracing::warn!(%error, "the lease was not given back after a job was switched");
            }
            match done {
                Ok(_) if switch == JobSwitch::Pause => Ok(format!("The job {} is paused.", form.name)),
                Ok(_) => Ok(format!("The job {} is back on its schedule.", form.name)),
                Err(OrderError::Refused(why)) => Err(PageError::Refused(why)),
                Err(error) => Err(PageError::Refused(format!("{error}. Nothing was done."))),
            }
        })
        .await?;
    Ok(site.redirect_with_note(PLACE.path(), told))
}

/// Lists the jobs. Before the first wake there are none.
pub(super) fn list_jobs(desk: &PageContext<'_>) -> Result<Vec<ListedJob>, PageError> {
    let now = desk.now.with_timezone(&desk.config.timezone);
    let rows = match desk.open_store()? {
        Some(store) => store.jobs().list_jobs()?,
        None => return Ok(Vec::new()),
    };
    Ok(jobs::list_jobs(&jobs::read_jobs(&Documents::new(&desk.config.repo_dir(), Vec::new()), now), &rows, now))
}

fn render_job(desk: &PageContext<'_>, job: &ListedJob) -> Markup {
    let is_paused = job.state == "paused";
    let path = if job.state == "damaged" { job.name.clone() } else { job_path(&job.name) };
    html! {
        li {
            div {
                a href=(build_address("/memory/file", &[("path", &path)])) { (escape_and_clean(desk, &job.name)) } " "
                @match job.state {
                    "active" => { span .badge.ok { "on" } },
                    "damaged" => { span .badge.bad { "can't be read" } },
                    "over" => { span .badge { "over" } },
                    _ => { span .badge { "off" } },
                }
                p .meta {
                    @if let Some(when) = &job.when { (capitalize(&escape_and_clean(desk, when))) }
                    @if let Some(at) = job.next_at { " · next " (render_time(desk, at)) }
                }
                @if let Some(problem) = &job.problem { p .set-problem { (escape_and_clean(desk, &one_line(problem))) } }
            }
            @if job.state != "damaged" {
                form action="/settings/jobs/switch" method="post" {
                    input type="hidden" name="name" value=(job.name);
                    input type="hidden" name="to" value=(if is_paused { "on" } else { "off" });
                    @let word = if is_paused { "Switch on" } else { "Switch off" };
                    button type="submit" aria-label={ (word) ": " (job.name) } { (word) }
                }
            }
        }
    }
}
