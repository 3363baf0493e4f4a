//! Lists the changes of the standing orders that the person agreed to, and undoes them.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
    routing::post,
};
use maud::{Markup, html};

use reveille_base::words::{format_figure, format_stated_effect};
use reveille_cycle as cycle;
use reveille_store::{NewProposal, Proposal, Store};

use super::{
    error::PageError,
    parts::{escape_and_clean, render_time, wake_link},
    site::{PageContext, PageSite},
};
use crate::orders::undo::{self, UndoAnswer};

/// Maximum agreed changes shown.
const MAX_AGREED: u32 = 20;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/changes/{id}/undo", post(undo_change))
}

/// Orders the undo of a change.
async fn undo_change(State(site): State<Arc<PageSite>>, Path(id): Path<i64>) -> Result<Response, PageError> {
    let ordered = site.run_blocking(move |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|_| PageError::Broken)?;
        match undo::order_undo(&mut store, desk.config, desk.now, Some(&Proposal::undone_as(id)))? {
            UndoAnswer::Ordered(what) => Ok(desk.clean_text(&what)),
            UndoAnswer::Refused(why) => Err(PageError::Refused(why)),
        }
    });
    let what = ordered.await?;
    site.nudge.notify_one();
    Ok(site
        .redirect_with_note("/questions", format!("Undoing {what}. This page will show when it is done."))
        .into_response())
}

/// Renders the changes that the person agreed to, with their purpose.
pub(super) fn render_agreed(desk: &PageContext<'_>, store: &Store) -> Result<Markup, PageError> {
    let agreed = store.proposals().agreed_proposals(MAX_AGREED)?;
    let mut lines = Vec::new();
    for proposal in &agreed {
        // An undo of the wake that made the change undoes the change as well.
        let undone = match store.undos().find_undo_state(&Proposal::undone_as(proposal.id))? {
            None => store.undos().find_undo_state(&proposal.cycle_id)?,
            known => known,
        };
        lines.push(render_agreed_change(desk, proposal, undone));
    }
    Ok(html! {
        @if !lines.is_empty() {
            h2 { "Changes to my orders that you agreed to" }
            ul .list { @for line in &lines { li { (line) } } }
        }
    })
}

fn render_agreed_change(desk: &PageContext<'_>, proposal: &Proposal, undone: Option<bool>) -> Markup {
    let Proposal { id, cycle_id, new: NewProposal { title, effect, job, before, .. }, agreed_at, .. } = proposal;
    html! {
        p {
            (escape_and_clean(desk, title)) " "
            @match undone {
                Some(true) => span .badge { "undone" },
                Some(false) => span class="badge warn" { "about to be undone" },
                None => {}
            }
        }
        p .meta {
            @if let Some(at) = agreed_at { (render_time(desk, *at)) " · " }
            "expected to bring " (format_stated_effect(*effect)) " · the week before: " (format_figure(effect.figure, job.as_deref(), *before)) " · "
            (wake_link(cycle_id, "the wake"))
        }
        @if undone.is_none() {
            form method="post" action={ "/changes/" (id) "/undo" } .actions {
                button type="submit" aria-label={ "Undo " (escape_and_clean(desk, title)) } { "Undo it" }
            }
        }
    }
}
