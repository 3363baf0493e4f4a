//! Undoes a wake: a page shows the changes to be undone and asks, then the order is placed. The next wake executes the order.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use maud::{Markup, html};

use reveille_base::words::format_count;
use reveille_cycle as cycle;
use reveille_cycle::{Choice, find_undoable};
use reveille_store::{CycleRow, Store};

use super::{Found, find_wake, format_files, list_changed_files};
use crate::{
    orders::undo::{self, UndoAnswer},
    page::{
        error::PageError,
        frame::{PagePlace, render_frame},
        site::{PageContext, PageSite},
    },
};

/// True if the wake can be undone.
pub(super) fn is_possible(store: &Store, row: &CycleRow) -> bool {
    row.commit_id.is_some() && matches!(find_undoable(store, &[], Some(&row.cycle.id), &[]), Ok(Choice::Wake(_)))
}

/// Shows the changes that an undo would revert.
pub(super) async fn show_undo(State(site): State<Arc<PageSite>>, Path(id): Path<String>) -> Result<Markup, PageError> {
    site.run_blocking(move |desk| {
        let (store, repo) = (desk.open_store()?, desk.open_repo()?);
        let Found::Cycle(row) = find_wake(store.as_ref(), repo.as_ref(), &id)? else {
            return Err(PageError::Refused(
                "Only what I did can be undone here. To undo a commit of yours, use git.".to_owned(),
            ));
        };
        let Some(store) = store else { return Err(PageError::Broken) };
        if let Choice::Refused(why) = find_undoable(&store, &[], Some(&row.cycle.id), &[])? {
            return Err(PageError::Refused(why));
        }
        let files = list_changed_files(repo.as_ref(), row.commit_id.as_deref(), &|text| desk.clean_text(text));
        let said = store.history().list_cycle_texts(&row.cycle.id)?;
        let sent = said.iter().filter(|text| text.sent_at.is_some()).count();
        Ok(render_question(desk, &row, &files, (said.len() - sent, sent)))
    })
    .await
}

fn render_question(desk: &PageContext<'_>, row: &CycleRow, files: &[String], (unsent, sent): (usize, usize)) -> Markup {
    let what = desk.clean_text(&undo::describe_wake(desk.config, desk.now, row));
    let id = &row.cycle.id;
    let content = html! {
        p { "Undo " (what) "?" }
        ul {
            @if files.is_empty() {
                li { "It changed nothing in the memory." }
            } @else {
                li { "Its changes to the memory are undone (" (format_files(files)) "). Your later changes there stay." }
            }
            li { "Reminders it set are cancelled, and those it ended are set again." }
            @if unsent > 0 { li { "What wasn't sent yet won't be sent (" (format_count(unsent, "message")) ")." } }
            @if sent > 0 { li { "What was already sent can't be unsent (" (format_count(sent, "message")) ")." } }
            li { "Your message is on hold; you can have it run again." }
        }
        p { "The undo is a commit of its own, so nothing is lost. An undo can't be undone." }
        form method="post" action={ "/wakes/" (id) "/undo" } .actions {
            button .first type="submit" { "Undo it" }
            a href={ "/wakes/" (id) } { "Leave it as it is" }
        }
    };
    render_frame(PagePlace::Wakes, "Undo", &content)
}

/// Orders the undo.
pub(super) async fn order_undo(
    State(site): State<Arc<PageSite>>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let asked = site.run_blocking(move |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| PageError::Refused(error.to_string()))?;
        let Found::Cycle(row) = find_wake(Some(&store), None, &id)? else {
            return Err(PageError::Refused("Only what I did can be undone here.".to_owned()));
        };
        match undo::order_undo(&mut store, desk.config, desk.now, Some(&row.cycle.id))? {
            UndoAnswer::Ordered(what) => Ok((row.cycle.id, desk.clean_text(&what))),
            UndoAnswer::Refused(why) => Err(PageError::Refused(why)),
        }
    });
    let (id, what) = asked.await?;
    site.nudge.notify_one();
    let said = format!("Undoing {what}. This page will show when it is done.");
    Ok(site.redirect_with_note(&format!("/wakes/{id}"), said).into_response())
}
