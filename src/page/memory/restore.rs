//! Restores an older version of a document as a commit of the person, after asking.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::{
    ProvenanceError,
    hand::{PersonSession, PersonSessionTools},
    point::WallClock,
    restore::{self, GivingBack, WantedBack},
};
use reveille_git::{Repo, text_id};
use reveille_memory::{changes::list_changed_lines, is_log};

use super::{display_name, file::open_repo, file_address, find_document};
use crate::page::{
    error::PageError,
    frame::{PagePlace, render_frame},
    parts::{build_address, changed_lines},
    site::{PageContext, PageSite},
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/memory/restore", get(ask_restore).post(carry_out))
}

#[derive(Deserialize)]
struct AskedBack {
    path: String,
    /// A commit.
    at: String,
}

/// The confirmation.
#[derive(Deserialize)]
struct SentBack {
    path: String,
    at: String,
    /// The id of the current version when the question was shown.
    version: String,
}

async fn ask_restore(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedBack>) -> Result<Markup, PageError> {
    let content =
        site.run_blocking(move |desk| render_question(desk, &open_repo(desk)?, &asked.path, &asked.at)).await?;
    Ok(render_frame(PagePlace::Memory, "Restore this version?", &content))
}

async fn carry_out(State(site): State<Arc<PageSite>>, Form(sent): Form<SentBack>) -> Result<Response, PageError> {
    site.run_blocking(move |desk| {
        let path = find_restorable(&open_repo(desk)?, &sent.path)?;
        let clock = desk.config.clock();
        let mut hand = PersonSession::take(PersonSessionTools { config: desk.config, clock: clock.as_ref(), redactor: desk.redactor })?;
        let given = restore_document(desk, &mut hand, &path, &sent);
        // The restore stands, whatever happens here: dropping the hand releases the lock in any case.
        if let Err(error) = hand.release() {
            tracing::warn!(%error, "the lease was not given back after a restore");
        }
        let to = |done: &str| Redirect::to(&build_address("/memory/file", &[("path", &path), ("done", done)]));
        Ok(match given? {
            None => {
                let page = html! {
                    p .note.warn role="alert" { "Somebody changed it after you were asked. Nothing was done; please look again." }
                    (render_question(desk, &open_repo(desk)?, &path, &sent.at)?)
                };
                (StatusCode::CONFLICT, render_frame(PagePlace::Memory, "Restore this version?", &page)).into_response()
            }
            Some(giving) if giving.changes.is_empty() => to("restored-same").into_response(),
            Some(_) => to("restored").into_response(),
        })
    })
    .await
}

/// Finds a document that may be restored.
fn find_restorable(repo: &Repo, path: &str) -> Result<String, PageError> {
    let path = find_document(repo, path)?;
    if is_log(&path) {
        return Err(PageError::Refused("The log can only be added to. Nothing was changed.".to_owned()));
    }
    Ok(path)
}

/// Restores the document. `None` if its current version differs from the one in the question.
fn restore_document(
    desk: &PageContext<'_>,
    hand: &mut PersonSession<'_>,
    path: &str,
    sent: &SentBack,
) -> Result<Option<GivingBack>, ProvenanceError> {
    let now = hand.repo.read_work_tree(path)?.unwrap_or_default();
    if text_id(&now)?.to_string() != sent.version {
        return Ok(None);
    }
    plan_restore(desk, &hand.repo, path, &sent.at)?;
    restore::carry_out(hand, to_wanted(path, &sent.at), wall_clock(desk)).map(|(giving, _)| Some(giving))
}

/// Plans the restore of a version; a version without the document is refused.
fn plan_restore(desk: &PageContext<'_>, repo: &Repo, path: &str, at: &str) -> Result<GivingBack, ProvenanceError> {
    let giving = restore::plan(repo, to_wanted(path, at), wall_clock(desk))?;
    if giving.changes.iter().any(|change| change.content.is_none()) {
        return Err(ProvenanceError::Refused(format!(
            "{path} didn't exist at {}. Nothing was changed.",
            giving.point.name
        )));
    }
    Ok(giving)
}

fn to_wanted<'a>(path: &'a str, at: &'a str) -> WantedBack<'a> {
    WantedBack::Document { path, at: Some(at), lines: None }
}

fn wall_clock(desk: &PageContext<'_>) -> WallClock {
    WallClock { tz: desk.config.timezone, now: desk.now }
}

fn render_question(desk: &PageContext<'_>, repo: &Repo, path: &str, at: &str) -> Result<Markup, PageError> {
    let path = find_restorable(repo, path)?;
    let giving = plan_restore(desk, repo, &path, at)?;
    let now = repo.read_work_tree(&path)?.unwrap_or_default();
    let Some(change) = giving.changes.first() else {
        return Ok(html! {
            p { (display_name(&path)) " is already as it was then: there is nothing to restore." }
            p .actions { a href=(file_address(&path)) { "Back to it" } }
        });
    };
    let then = change.content.as_deref().unwrap_or_default();
    Ok(html! {
        p {
            (display_name(&path)) " would be as it was at " (desk.clean_text(&giving.point.name))
            ". The current text stays in the history."
        }
        h2 { "What would change" }
        (changed_lines(desk, &list_changed_lines(&now, then)))
        form action="/memory/restore" method="post" {
            input type="hidden" name="path" value=(path);
            input type="hidden" name="at" value=(giving.point.commit.id.to_string());
            input type="hidden" name="version" value=(text_id(&now)?.to_string());
            p .actions {
                button type="submit" { "Restore it" }
                a href=(file_address(&path)) { "Leave it as it is" }
            }
        }
    })
}
