//! Cost, tokens, latency and wakes as charts, drawn as SVG by the server.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::PageSite,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/charts", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let n = site.at_desk(|desk| Ok(desk.store()?.is_some())).await?;
    Ok(frame(PagePlace::Charts, "Charts", &html! { p { "Not built yet (" (n) ")." } }))
}
