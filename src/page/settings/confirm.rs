//! Asks for the code of a change, or for a decision after a failed check; and takes the last change back.

use std::sync::Arc;

use axum::{
    Extension, Form, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_base::clock;

use super::{
    CurrentSettings, SettingsPlace,
    change::{self, Checking, PageChange, ProposedChange},
    codes::{MAX_WRONG, ShownPending, TypedCode},
    lock, render_place,
};
use crate::page::{entrance::SessionMark, error::PageError, notes::NoteQuery, site::PageSite};

/// The path of this view.
pub(super) const PATH: &str = "/settings/confirm";

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(PATH, get(show_pending).post(receive_code))
        .route("/settings/retry", post(try_again))
        .route("/settings/drop", post(drop_change))
        .route("/settings/undo", post(take_back))
}

#[derive(Deserialize)]
struct AskedChange {
    change: String,
}

#[derive(Deserialize)]
struct CodeForm {
    change: String,
    #[serde(default)]
    code: String,
}

#[derive(Deserialize)]
struct RetryForm {
    change: String,
    /// Not empty: save it although the check failed.
    #[serde(default)]
    anyway: String,
}

/// The error for a change that waits no longer.
pub(super) fn gone() -> PageError {
    PageError::Missing(
        "This change no longer waits: it was made or dropped, its ten minutes are over, or there were too many wrong codes. \
         Nothing else was changed. Start again in Settings."
            .to_owned(),
    )
}

async fn show_pending(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Query(asked): Query<AskedChange>,
) -> Result<Response, PageError> {
    let shown = lock(&site.settings.pending).show(&asked.change, session, clock::read_awake_time()).ok_or_else(gone)?;
    Ok(match shown.needs_code {
        true => render_place("A code, please", &render_question(&asked.change, &shown, None)).into_response(),
        false => render_place("Not saved yet", &render_failure(&asked.change, &shown)).into_response(),
    })
}

async fn receive_code(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<CodeForm>,
) -> Result<Response, PageError> {
    let now = clock::read_awake_time();
    let typed = lock(&site.settings.pending).try_code(&form.change, session, &form.code, now);
    match typed {
        TypedCode::Right => change::finish(&site, session, &form.change, Checking::Required).await,
        TypedCode::Unknown => Err(gone()),
        TypedCode::Wrong { left: 0 } => Err(PageError::Refused(format!(
            "That was the wrong code for the {MAX_WRONG}th time, so this change is dropped. Nothing was changed."
        ))),
        TypedCode::Wrong { left } => {
            let shown = lock(&site.settings.pending).show(&form.change, session, now).ok_or_else(gone)?;
            let page = render_question(&form.change, &shown, Some(left));
            Ok((StatusCode::UNPROCESSABLE_ENTITY, render_place("A code, please", &page)).into_response())
        }
    }
}

async fn try_again(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<RetryForm>,
) -> Result<Response, PageError> {
    let checking = if form.anyway.is_empty() { Checking::Required } else { Checking::Waived };
    change::finish(&site, session, &form.change, checking).await
}

async fn drop_change(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<AskedChange>,
) -> Result<Redirect, PageError> {
    let mut pending = lock(&site.settings.pending);
    let shown = pending.show(&form.change, session, clock::read_awake_time()).ok_or_else(gone)?;
    pending.forget(&form.change, session);
    drop(pending);
    Ok(site.redirect_with_note(shown.proposal.back.path(), "Dropped. Nothing was changed.".to_owned()))
}

async fn take_back(
    State(site): State<Arc<PageSite>>,
    Extension(session): Extension<SessionMark>,
    Form(form): Form<AskedChange>,
) -> Result<Response, PageError> {
    let found = {
        let last = lock(&site.settings.last);
        let last = last.as_ref().filter(|last| last.number == form.change);
        last.and_then(|last| Some((last.reverse.clone()?, last.words.clone(), last.place)))
    };
    let Some((reverse, words, place)) = found else {
        return Err(PageError::Missing("There was a later change, so this one can't be taken back here.".to_owned()));
    };
    let proposal = match reverse {
        PageChange::Settings(changes) => {
            let given = site.run_blocking(|desk| Ok(CurrentSettings::read(desk)?.given)).await?;
            ProposedChange::from_changes(&given, changes, place)
        }
        PageChange::RestoreServer { name, block } => {
            let lines = block.clone();
            let told =
                site.run_blocking(move |desk| Ok(change::describe_block(&lines, desk.config.home.as_deref()))).await?;
            let words = format!("The MCP server {name} comes back: {told}");
            Some(ProposedChange::new(&words, PageChange::RestoreServer { name, block }, place))
        }
        other => Some(ProposedChange::new(&format!("Taken back: {}", words.join(", ")), other, place)),
    };
    match proposal {
        Some(proposal) => change::submit(&site, session, proposal).await,
        None => Ok(Redirect::to(place.path()).into_response()),
    }
}

/// Renders the outcome of the last form, and the last change with a button that takes it back, where that is possible.
pub(super) fn render_last_change(site: &PageSite, said: &NoteQuery, place: Option<SettingsPlace>) -> Markup {
    let last = lock(&site.settings.last);
    let last = last.as_ref().filter(|last| place.is_none_or(|place| place == last.place));
    html! {
        (site.render_note(said))
        @if let Some(last) = last.filter(|last| last.reverse.is_some()) {
            form .set-last action="/settings/undo" method="post" {
                input type="hidden" name="change" value=(last.number);
                p .meta { "Last change: " (last.words.join(" · ")) }
                button type="submit" { "Undo" }
            }
        }
    }
}

fn render_words(proposal: &ProposedChange) -> Markup {
    html! { ul .set-words { @for line in &proposal.words { li { (line) } } } }
}

fn render_question(number: &str, shown: &ShownPending, left: Option<u32>) -> Markup {
    html! {
        p { "This changes what I may do or reach, so I ask at the terminal. Nothing is changed yet." }
        (render_words(&shown.proposal))
        form .card action=(PATH) method="post" autocomplete="off" {
            input type="hidden" name="change" value=(number);
            @if let Some(left) = left {
                p .note.bad role="alert" {
                    "That isn't the code for this change. Nothing was changed. "
                    @if left == 1 { "You can try once more." } @else { "You can try " (left) " more times." }
                }
            }
            div .field {
                label for="code" { "Type the code that the terminal shows" }
                p #code-hint .meta {
                    "It is in the terminal where " code { "wake page" } " runs. If that is a service, run "
                    code { "wake page --code" } " in a terminal. It works for ten minutes, once, for this change alone."
                }
                input #code .set-code name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="16" required
                    autofocus aria-describedby="code-hint";
            }
            p .actions { button type="submit" { "Make this change" } }
        }
        (render_drop(number, "Don't change anything"))
    }
}

fn render_failure(number: &str, shown: &ShownPending) -> Markup {
    let why = shown.failure.as_deref().unwrap_or("It hasn't been tried.");
    html! {
        div .note.bad role="alert" { p { (why) } p { "Nothing was changed. What you typed is kept here for ten minutes." } }
        (render_words(&shown.proposal))
        div .actions {
            form action="/settings/retry" method="post" {
                input type="hidden" name="change" value=(number);
                button .first type="submit" { "Try again" }
            }
            form action="/settings/retry" method="post" {
                input type="hidden" name="change" value=(number);
                input type="hidden" name="anyway" value="yes";
                button type="submit" { "Save it anyway" }
            }
            (render_drop(number, "Drop it"))
        }
    }
}

fn render_drop(number: &str, words: &str) -> Markup {
    html! {
        form action="/settings/drop" method="post" {
            input type="hidden" name="change" value=(number);
            p .actions { button type="submit" { (words) } }
        }
    }
}
