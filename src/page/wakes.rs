//! What was done: the list of wakes, and each with its turns, calls, cost and diff.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::PageSite,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/wakes", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let n = site.at_desk(|desk| Ok(desk.store()?.is_some())).await?;
    Ok(frame(PagePlace::Wakes, "What I did", &html! { p { "Not built yet (" (n) ")." } }))
}
