//! Edits a document; saving makes a commit in the person's name, under the wake lock.
//!
//! The form carries the id of the version shown. If the document has another version by then, nothing is written and both are shown. After
//! any failure, the typed text is shown again.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{DefaultBodyLimit, Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_account::provenance::{
    ProvenanceError,
    hand::{PersonSession, PersonSessionTools},
};
use reveille_base::disk::format_size;
use reveille_git::{FileChange, HOLDS_SECRET, Repo, text_id};
use reveille_memory::{changes::list_changed_lines, is_log, typed};

use super::{display_name, file::open_repo, file_address, find_document};
use crate::page::{
    error::PageError,
    frame::{PagePlace, render_frame},
    parts::{build_address, changed_lines},
    site::{PageContext, PageSite},
};

/// Maximum bytes of a document edited here.
const MAX_EDITED_BYTES: usize = 500_000;
/// Maximum bytes of a form, in which a byte of text may become three.
const MAX_FORM_BYTES: usize = 4 << 20;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    let edit = get(show_editor).post(save_edit).layer(DefaultBodyLimit::max(MAX_FORM_BYTES));
    Router::new().route("/memory/edit", edit)
}

#[derive(Deserialize)]
struct EditQuery {
    path: String,
}

/// The submitted edit.
#[derive(Deserialize)]
struct SentEdit {
    path: String,
    /// The id of the version that was edited.
    version: String,
    text: String,
}

/// The outcome of saving.
enum SaveOutcome {
    Saved,
    Uncommitted,
    Same,
    /// The document has another version now.
    Changed {
        now: String,
    },
    /// The reason for refusing the edit.
    NotTaken(String),
}

async fn show_editor(State(site): State<Arc<PageSite>>, Query(asked): Query<EditQuery>) -> Result<Markup, PageError> {
    let (title, content) = site
        .run_blocking(move |desk| {
            let repo = open_repo(desk)?;
            let path = find_document(&repo, &asked.path)?;
            let text = repo.read_work_tree(&path)?.unwrap_or_default();
            let content = match find_obstacle(desk, &repo, &path, &text) {
                Some(why) => render_not_editable(&repo, &path, &why),
                None => render_form(&path, &text, &text_id(&text)?.to_string(), "Save"),
            };
            Ok((format!("Edit: {}", display_name(&path)), content))
        })
        .await?;
    Ok(render_frame(PagePlace::Memory, &title, &content))
}

async fn save_edit(State(site): State<Arc<PageSite>>, Form(sent): Form<SentEdit>) -> Result<Response, PageError> {
    site.run_blocking(move |desk| {
        let path = find_document(&open_repo(desk)?, &sent.path)?;
        let saving =
            save_document(desk, &path, &sent).unwrap_or_else(|error| SaveOutcome::NotTaken(format!("{error}.")));
        let redirect = |done: &str| Redirect::to(&build_address("/memory/file", &[("path", &path), ("done", done)]));
        Ok(match saving {
            SaveOutcome::Saved => redirect("saved").into_response(),
            SaveOutcome::Uncommitted => redirect("uncommitted").into_response(),
            SaveOutcome::Same => redirect("same").into_response(),
            SaveOutcome::Changed { now } => {
                let page = render_both(desk, &path, &now, &sent.text)?;
                (StatusCode::CONFLICT, render_frame(PagePlace::Memory, "It changed while you were editing", &page))
                    .into_response()
            }
            SaveOutcome::NotTaken(why) => {
                let why = desk.clean_text(&why);
                let page = html! {
                    p .note.warn role="alert" { (why) " Nothing was saved; your text is below." }
                    (render_form(&path, &sent.text, &sent.version, "Save"))
                };
                (StatusCode::UNPROCESSABLE_ENTITY, render_frame(PagePlace::Memory, "Not saved", &page)).into_response()
            }
        })
    })
    .await
}

/// Returns the reason against editing a document here. `None` if it can be edited.
fn find_obstacle(desk: &PageContext<'_>, repo: &Repo, path: &str, text: &str) -> Option<String> {
    if is_log(path) {
        return Some("The log can only be added to.".to_owned());
    }
    if text.len() > MAX_EDITED_BYTES {
        return Some(format!("It is larger than {}.", format_size(MAX_EDITED_BYTES as u64)));
    }
    if let Err(error) = repo.check_writable(path) {
        return Some(format!("{error}."));
    }
    if desk.clean_text(text) != text {
        return Some(
            "It contains invisible characters, or something like a key or token. This page doesn't show those."
                .to_owned(),
        );
    }
    if !typed::survives_a_form(text) {
        return Some("It contains characters that a browser would change.".to_owned());
    }
    None
}

fn save_document(desk: &PageContext<'_>, path: &str, sent: &SentEdit) -> Result<SaveOutcome, ProvenanceError> {
    if sent.text.len() > MAX_EDITED_BYTES {
        let most = format_size(MAX_EDITED_BYTES as u64);
        return Ok(SaveOutcome::NotTaken(format!(
            "That is longer than {most}. Use a text editor in the memory's folder instead."
        )));
    }
    let clock = desk.config.clock();
    let mut session = PersonSession::take(PersonSessionTools {
        config: desk.config,
        clock: clock.as_ref(),
        redactor: desk.redactor,
    })?;
    let saving = write_document(desk, &mut session, path, sent);
    // A failure here doesn't undo the edit, and dropping the session releases the lock in any case.
    if let Err(error) = session.release() {
        tracing::warn!(%error, "the lease was not given back after an edit");
    }
    saving
}

fn write_document(
    desk: &PageContext<'_>,
    session: &mut PersonSession<'_>,
    path: &str,
    sent: &SentEdit,
) -> Result<SaveOutcome, ProvenanceError> {
    // Edits made elsewhere are committed first, so that they are never overwritten.
    let edits = session.commit_edits()?;
    let Some(now) = session.repo.read_work_tree(path)? else {
        return Ok(SaveOutcome::NotTaken("The document is gone.".to_owned()));
    };
    let text = typed::restore_line_endings(&now, &sent.text);
    if text == now {
        return Ok(SaveOutcome::Same);
    }
    if text_id(&now)?.to_string() != sent.version {
        return Ok(SaveOutcome::Changed { now });
    }
    if let Some(why) = find_obstacle(desk, &session.repo, path, &now) {
        return Ok(SaveOutcome::NotTaken(why));
    }
    if let Some(left) = edits.left_alone.iter().find(|left| left.path == path) {
        return Ok(SaveOutcome::NotTaken(format!("It has changes that I can't commit, because it {}.", left.why)));
    }
    if desk.redactor.contains_secret(&text) {
        return Ok(SaveOutcome::NotTaken(format!("It {HOLDS_SECRET}, and I don't save secrets.")));
    }
    let changes = [FileChange { path: path.to_owned(), base: Some(now), content: Some(text) }];
    let made = session.commit_step(&changes, &format!("Edit {path}"), &format!("edited {path}"))?;
    Ok(if made.left_alone.is_empty() { SaveOutcome::Saved } else { SaveOutcome::Uncommitted })
}

fn render_not_editable(repo: &Repo, path: &str, why: &str) -> Markup {
    html! {
        p { "This document can't be edited on this page. " (why) }
        @if !is_log(path) { p { "Use a text editor instead: " code { (repo.root().join(path).display()) } } }
        p .actions { a href=(file_address(path)) { "Back to it" } }
    }
}

/// Renders the form with the text as typed.
fn render_form(path: &str, text: &str, version: &str, save: &str) -> Markup {
    html! {
        form action="/memory/edit" method="post" {
            input type="hidden" name="path" value=(path);
            input type="hidden" name="version" value=(version);
            p .field {
                label for="text" { "The text of " code { (path) } }
                // An HTML parser drops the first line break.
                textarea #text .file name="text" rows="24" spellcheck="true" { "\n" (text) }
            }
            p .actions {
                button type="submit" { (save) }
                a href=(file_address(path)) { "Leave it as it is" }
            }
            p .meta { "Saving makes a commit in your name. It starts no wake, and the history keeps the old text." }
        }
    }
}

/// Shows both versions with the possible next steps.
fn render_both(desk: &PageContext<'_>, path: &str, now: &str, typed: &str) -> Result<Markup, PageError> {
    let typed_text = typed::restore_line_endings(now, typed);
    Ok(html! {
        p .note.warn role="alert" {
            "A wake or an editor changed this document after you opened it. Nothing was saved, and nothing is lost."
        }
        p {
            "Below is what your version would change in the current text. Copy what you want to keep into your version, then save; or leave it as it is."
        }
        h2 { "What your version would change" }
        (changed_lines(desk, &list_changed_lines(now, &typed_text)))
        details {
            summary { "The current text" }
            div .scroll tabindex="0" role="region" aria-label="The current text" { pre { (desk.clean_text(now)) } }
        }
        h2 { "Your version" }
        (render_form(path, typed, &text_id(now)?.to_string(), "Replace the current text with mine"))
    })
}
