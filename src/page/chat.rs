//! The chat with the terminal's assistant (`chat_id` 0), with the answer and the progress live.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::PageSite,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/chat", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let n = site.at_desk(|desk| Ok(desk.store()?.is_some())).await?;
    Ok(frame(PagePlace::Chat, "Chat", &html! { p { "Not built yet (" (n) ")." } }))
}
