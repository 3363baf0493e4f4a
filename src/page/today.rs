//! Today: tasks with their age, reminders, messages and questions that wait.

use std::sync::Arc;

use axum::{Router, extract::State, routing::get};
use maud::{Markup, html};

use super::{
    error::PageError,
    frame::{PagePlace, frame},
    site::PageSite,
};

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/", get(show))
}

async fn show(State(site): State<Arc<PageSite>>) -> Result<Markup, PageError> {
    let n = site.at_desk(|desk| Ok(desk.store()?.is_some())).await?;
    Ok(frame(PagePlace::Today, "Today", &html! { p { "Not built yet (" (n) ")." } }))
}
