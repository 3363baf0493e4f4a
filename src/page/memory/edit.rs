//! Edits a document; saving makes a commit of the person's, under the wake lock.
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
    hand::{Hand, HandTools},
};
use reveille_base::disk::size;
use reveille_git::{FileChange, HOLDS_SECRET, Repo, text_id};
use reveille_memory::{changes::changes, is_log, typed};

use super::{called, document, file::repo, file_address};
use crate::page::{
    error::PageError,
    frame::{PagePlace, frame},
    parts::{address, changed_lines},
    site::{PageDesk, PageSite},
};

/// Maximum bytes of a document edited here.
const MAX_EDITED_BYTES: usize = 500_000;
/// Maximum bytes of a form, in which a byte of text may become three.
const MAX_FORM_BYTES: usize = 4 << 20;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    let edit = get(show).post(save).layer(DefaultBodyLimit::max(MAX_FORM_BYTES));
    Router::new().route("/memory/edit", edit)
}

#[derive(Deserialize)]
struct AskedEdit {
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
enum Saving {
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

async fn show(State(site): State<Arc<PageSite>>, Query(asked): Query<AskedEdit>) -> Result<Markup, PageError> {
    let (title, content) = site
        .at_desk(move |desk| {
            let repo = repo(desk)?;
            let path = document(&repo, &asked.path)?;
            let text = repo.read_work_tree(&path)?.unwrap_or_default();
            let content = match why_not(desk, &repo, &path, &text) {
                Some(why) => not_editable(&repo, &path, &why),
                None => form(&path, &text, &text_id(&text)?.to_string(), "Save"),
            };
            Ok((format!("Edit: {}", called(&path)), content))
        })
        .await?;
    Ok(frame(PagePlace::Memory, &title, &content))
}

async fn save(State(site): State<Arc<PageSite>>, Form(sent): Form<SentEdit>) -> Result<Response, PageError> {
    site.at_desk(move |desk| {
        let path = document(&repo(desk)?, &sent.path)?;
        let saving = keep(desk, &path, &sent).unwrap_or_else(|error| Saving::NotTaken(format!("{error}.")));
        let to = |done: &str| Redirect::to(&address("/memory/file", &[("path", &path), ("done", done)]));
        Ok(match saving {
            Saving::Saved => to("saved").into_response(),
            Saving::Uncommitted => to("uncommitted").into_response(),
            Saving::Same => to("same").into_response(),
            Saving::Changed { now } => {
                let page = both(desk, &path, &now, &sent.text)?;
                (StatusCode::CONFLICT, frame(PagePlace::Memory, "It changed while you wrote", &page)).into_response()
            }
            Saving::NotTaken(why) => {
                let why = desk.shown(&why);
                let page = html! {
                    p .note.warn role="alert" { (why) " Nothing was saved; what you wrote is below." }
                    (form(&path, &sent.text, &sent.version, "Save"))
                };
                (StatusCode::UNPROCESSABLE_ENTITY, frame(PagePlace::Memory, "Not saved", &page)).into_response()
            }
        })
    })
    .await
}

/// Returns the reason against editing a document here. `None` if it can be edited.
fn why_not(desk: &PageDesk<'_>, repo: &Repo, path: &str, text: &str) -> Option<String> {
    if is_log(path) {
        return Some("The log is only ever added to: what happened, happened.".to_owned());
    }
    if text.len() > MAX_EDITED_BYTES {
        return Some(format!("It is larger than {}.", size(MAX_EDITED_BYTES as u64)));
    }
    if let Err(error) = repo.check_writable(path) {
        return Some(format!("{error}."));
    }
    if desk.shown(text) != text {
        return Some(
            "It holds something like a key or token, or unseen signs, which this page doesn't show.".to_owned(),
        );
    }
    if !typed::survives_a_form(text) {
        return Some("It holds signs that a browser would change.".to_owned());
    }
    None
}

fn keep(desk: &PageDesk<'_>, path: &str, sent: &SentEdit) -> Result<Saving, ProvenanceError> {
    if sent.text.len() > MAX_EDITED_BYTES {
        let most = size(MAX_EDITED_BYTES as u64);
        return Ok(Saving::NotTaken(format!("That is longer than {most}. An editor saves it in the memory's folder.")));
    }
    let clock = desk.config.clock();
    let mut hand = Hand::take(HandTools { config: desk.config, clock: clock.as_ref(), redactor: desk.redactor })?;
    let saving = write(desk, &mut hand, path, sent);
    // The edit stands, whatever happens here: dropping the hand releases the lock in any case.
    if let Err(error) = hand.put_down() {
        tracing::warn!(%error, "the lease was not given back after an edit");
    }
    saving
}

fn write(desk: &PageDesk<'_>, hand: &mut Hand<'_>, path: &str, sent: &SentEdit) -> Result<Saving, ProvenanceError> {
    // Edits made elsewhere are committed first, so that they are never overwritten.
    let edits = hand.commit_edits()?;
    let Some(now) = hand.repo.read_work_tree(path)? else {
        return Ok(Saving::NotTaken("The document is gone.".to_owned()));
    };
    let text = typed::with_endings_of(&now, &sent.text);
    if text == now {
        return Ok(Saving::Same);
    }
    if text_id(&now)?.to_string() != sent.version {
        return Ok(Saving::Changed { now });
    }
    if let Some(why) = why_not(desk, &hand.repo, path, &now) {
        return Ok(Saving::NotTaken(why));
    }
    if let Some(left) = edits.left_alone.iter().find(|left| left.path == path) {
        return Ok(Saving::NotTaken(format!("It has changes that I can't commit, because it {}.", left.why)));
    }
    if desk.redactor.contains_secret(&text) {
        return Ok(Saving::NotTaken(format!("It {HOLDS_SECRET}, which is not written down.")));
    }
    let changes = [FileChange { path: path.to_owned(), base: Some(now), content: Some(text) }];
    let made = hand.commit_step(&changes, &format!("Edit {path}"), &format!("edited {path}"))?;
    Ok(if made.left_alone.is_empty() { Saving::Saved } else { Saving::Uncommitted })
}

fn not_editable(repo: &Repo, path: &str, why: &str) -> Markup {
    html! {
        p { "This document can't be edited on this page. " (why) }
        @if !is_log(path) { p { "Any editor can: " code { (repo.root().join(path).display()) } } }
        p .actions { a href=(file_address(path)) { "Back to it" } }
    }
}

/// Renders the form with the text as typed.
fn form(path: &str, text: &str, version: &str, save: &str) -> Markup {
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
            p .meta { "Saving makes a commit of yours. It wakes nobody, and the history keeps what stood here." }
        }
    }
}

/// Shows both versions with the possible next steps.
fn both(desk: &PageDesk<'_>, path: &str, now: &str, typed: &str) -> Result<Markup, PageError> {
    let ours = typed::with_endings_of(now, typed);
    Ok(html! {
        p .note.warn role="alert" {
            "Somebody else changed this document after you opened it: a wake, or an editor. Nothing was saved, and nothing is lost."
        }
        p {
            "Below is what saving yours would change in what stands there now. Take over what you want to keep of it, then save; or leave it as it is."
        }
        h2 { "What yours would change" }
        (changed_lines(desk, &changes(now, &ours)))
        details {
            summary { "What stands there now" }
            div .scroll tabindex="0" role="region" aria-label="What stands there now" { pre { (desk.shown(now)) } }
        }
        h2 { "What you wrote" }
        (form(path, typed, &text_id(now)?.to_string(), "Save mine over what stands there now"))
    })
}
