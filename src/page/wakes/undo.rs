//! Undoes a wake: a page shows the changes to be undone and asks, then the order is placed. The next wake executes the order.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use maud::{Markup, html};

use reveille_base::words::count;
use reveille_cycle as cycle;
use reveille_cycle::{Choice, undoable};
use reveille_store::{CycleRow, Store};

use super::{Found, changed, files_named, find_wake};
use crate::{
    orders::undo::{self, UndoAsked},
    page::{
        error::PageError,
        frame::{PagePlace, frame},
        site::{PageDesk, PageSite},
    },
};

/// True if the wake can be undone.
pub(super) fn is_possible(store: &Store, row: &CycleRow) -> bool {
    row.commit_id.is_some() && matches!(undoable(store, &[], Some(&row.cycle.id), &[]), Ok(Choice::Wake(_)))
}

/// Shows the changes that an undo would revert.
pub(super) async fn ask(State(site): State<Arc<PageSite>>, Path(id): Path<String>) -> Result<Markup, PageError> {
    site.at_desk(move |desk| {
        let (store, repo) = (desk.store()?, desk.repo()?);
        let Found::Cycle(row) = find_wake(store.as_ref(), repo.as_ref(), &id)? else {
            return Err(PageError::Refused(
                "Only what I did can be undone here. A commit of yours is git's to take back.".to_owned(),
            ));
        };
        let Some(store) = store else { return Err(PageError::Broken) };
        if let Choice::Refused(why) = undoable(&store, &[], Some(&row.cycle.id), &[])? {
            return Err(PageError::Refused(why));
        }
        let files = changed(repo.as_ref(), row.commit_id.as_deref(), &|text| desk.shown(text));
        let said = store.history().written_by(&row.cycle.id)?;
        let sent = said.iter().filter(|text| text.sent_at.is_some()).count();
        Ok(question(desk, &row, &files, (said.len() - sent, sent)))
    })
    .await
}

fn question(desk: &PageDesk<'_>, row: &CycleRow, files: &[String], (unsent, sent): (usize, usize)) -> Markup {
    let what = desk.shown(&undo::what(desk.config, desk.now, row));
    let id = &row.cycle.id;
    let content = html! {
        p { "Undo " (what) "?" }
        ul {
            @if files.is_empty() {
                li { "It changed nothing in the memory." }
            } @else {
                li { "Its changes to the memory are taken back (" (files_named(files)) "). What you changed there since stays." }
            }
            li { "Reminders that it set are cancelled, and those that it ended are set again." }
            @if unsent > 0 { li { "What wasn't sent yet never will be (" (count(unsent, "message")) ")." } }
            @if sent > 0 { li { "What was sent already can't be unsent (" (count(sent, "message")) ")." } }
            li { "Your message is on hold; you can have it run again." }
        }
        p { "It is done by a commit of its own, so nothing is lost. An undo can't be undone." }
        form method="post" action={ "/wakes/" (id) "/undo" } .actions {
            button .first type="submit" { "Undo it" }
            a href={ "/wakes/" (id) } { "Leave it as it is" }
        }
    };
    frame(PagePlace::Wakes, "Undo", &content)
}

/// Orders the undo.
pub(super) async fn order(State(site): State<Arc<PageSite>>, Path(id): Path<String>) -> Result<Response, PageError> {
    let asked = site.at_desk(move |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| PageError::Refused(error.to_string()))?;
        let Found::Cycle(row) = find_wake(Some(&store), None, &id)? else {
            return Err(PageError::Refused("Only what I did can be undone here.".to_owned()));
        };
        match undo::ask(&mut store, desk.config, desk.now, Some(&row.cycle.id))? {
            UndoAsked::Ordered(what) => Ok((row.cycle.id, desk.shown(&what))),
            UndoAsked::Refused(why) => Err(PageError::Refused(why)),
        }
    });
    let (id, what) = asked.await?;
    site.nudge.notify_one();
    let said = format!("Undoing {what}. This page shows when it is done.");
    Ok(site.said(&format!("/wakes/{id}"), said).into_response())
}
