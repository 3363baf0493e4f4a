//! Open questions, each with the exact bytes that would run, and the answers to them.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::PageSite,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/questions", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let n = site.at_desk(|desk| Ok(desk.store()?.is_some())).await?;
    Ok(frame(PagePlace::Questions, "Questions", &html! { p { "Not built yet (" (n) ")." } }))
}
