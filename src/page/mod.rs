//! The local page: the assistant in a browser on the same machine.
//!
//! `guard` decides who gets an answer, before anything else in a request is read. Each view is a file with its own routes, which reads
//! values (`account`, `orders`, `memory`, `health`) and renders HTML from them. `frame` surrounds every view. A `GET` never changes the
//! person's data. Every page works without a script; `live` refreshes open pages by server-sent events.
//!
//! A store is opened for each request and closed after it, so that an idle page holds none open.

mod changes;
mod charts;
mod chat;
mod code;
mod entrance;
mod error;
mod frame;
mod guard;
mod health;
mod known_settings;
mod live;
mod markdown;
mod memory;
mod nav;
mod notes;
mod parts;
mod preview;
mod questions;
mod settings;
mod site;
pub mod socket;
mod today;
mod undo;
mod waker;
mod wakes;

use std::{convert::Infallible, sync::Arc};

use axum::{Router, body::Body, middleware::from_fn_with_state};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use reveille_tools::loopback;

pub use entrance::TICKET_LASTS;
pub use settings::{CODE_LASTS, next_code};
pub use site::{MakeRedactor, PageSite};

/// Serves the page until the future is dropped.
pub async fn serve(listeners: &[TcpListener], site: &Arc<PageSite>) -> Infallible {
    let views = TowerToHyperService::new(build_router(Arc::clone(site)));
    let served = loopback::serve(listeners, move |request| {
        let answer = views.call(request.map(Body::new));
        async move {
            match answer.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    });
    tokio::select! {
        never = served => never,
        never = waker::run(site) => never,
        never = waker::start_due_wakes(site) => never,
        never = chat::close_when_abandoned(site) => never,
        never = chat::hear_recordings(site) => never,
    }
}

/// Closes the chat's session after serving.
pub async fn close_session(site: &Arc<PageSite>) {
    chat::close_session(site).await;
}

/// Builds the router of all views behind the guard.
fn build_router(site: Arc<PageSite>) -> Router {
    let counted = Router::new()
        .merge(chat::routes())
        .merge(wakes::routes())
        .merge(memory::routes())
        .merge(questions::routes())
        .merge(changes::routes())
        .merge(undo::routes())
        .merge(charts::routes())
        .merge(health::routes())
        .merge(settings::routes())
        .merge(nav::routes())
        .fallback(error::answer_unknown_path)
        .layer(from_fn_with_state(Arc::clone(&site), nav::count_waiting));
    // Today counts what it reads anyway.
    let views = counted.merge(today::routes()).merge(live::routes()).merge(frame::routes());
    guard::guard_views(views, &site).with_state(site)
}
