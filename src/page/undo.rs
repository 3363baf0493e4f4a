//! Offers to undo the newest step, by name, wherever the page changes something, and places the order.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::post,
};
use maud::{Markup, html};
use serde::Deserialize;

use reveille_cycle as cycle;
use reveille_store::Store;

use super::{
    error::PageError,
    site::{PageContext, PageSite},
};
use crate::orders::undo::{self, UndoAnswer};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/undo", post(order_undo))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UndoForm {
    /// The step shown in the form; never undo a newer one.
    step: String,
    /// The page to return to: `chat`, `settings`, `jobs`, or else Today.
    from: String,
}

/// Renders the newest step with an undo button, or nothing. `from`: the page that shows it.
pub(super) fn newest_step(desk: &PageContext<'_>, store: &Store, from: &str) -> Result<Markup, PageError> {
    let newest = undo::find_newest(store, desk.config, desk.now)?;
    Ok(html! {
        @if let Some((step, what)) = newest {
            form method="post" action="/undo" .newest {
                input type="hidden" name="step" value=(step);
                input type="hidden" name="from" value=(from);
                span .meta { "Last: " (desk.clean_text(&what)) " " }
                button type="submit" { "Undo" }
            }
        }
    })
}

async fn order_undo(State(site): State<Arc<PageSite>>, Form(form): Form<UndoForm>) -> Result<Response, PageError> {
    let asked = site.run_blocking(move |desk| {
        let mut store = cycle::open_store(desk.config).map_err(|error| PageError::Refused(error.to_string()))?;
        match undo::order_undo(&mut store, desk.config, desk.now, Some(&form.step))? {
            UndoAnswer::Ordered(what) => Ok((form.from, desk.clean_text(&what))),
            UndoAnswer::Refused(why) => Err(PageError::Refused(why)),
        }
    });
    let (from, what) = asked.await?;
    site.nudge.notify_one();
    let to = match from.as_str() {
        "chat" => "/chat",
        "settings" => "/settings/assistant",
        "jobs" => "/settings/jobs",
        _ => "/",
    };
    Ok(site.redirect_with_note(to, format!("Undoing {what}. The chat will say when it is done.")).into_response())
}
