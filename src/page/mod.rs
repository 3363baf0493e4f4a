//! The local page: what a person sees of their assistant in a browser of the same machine.
//!
//! `guard` decides who is answered, before anything of a request is looked at. Each view is a file with its own routes: it reads
//! values (`account`, `orders`, `memory`, `health`), and makes HTML of them. `frame` is what stands around all views. A `GET`
//! changes nothing of the person's. Every page can be read without a script; `live` renews what is open by server-sent events.
//!
//! A store is opened for each request and closed after it, so that an idle page holds none.

mod changes;
mod charts;
mod chat;
mod entrance;
mod error;
mod frame;
mod guard;
mod health;
mod live;
mod markdown;
mod memory;
mod notes;
mod parts;
mod questions;
mod settings;
mod site;
pub mod socket;
mod today;
mod undo;
mod waker;
mod wakes;

use std::{convert::Infallible, sync::Arc};

use axum::{Router, body::Body};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use reveille_tools::loopback;

pub use entrance::TICKET_LASTS;
pub use site::{MakeRedactor, PageSite};

/// Serves the page until it is dropped.
pub async fn serve(listeners: &[TcpListener], site: &Arc<PageSite>) -> Infallible {
    let views = TowerToHyperService::new(router(Arc::clone(site)));
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
        never = waker::watch(site) => never,
        never = chat::attend(site) => never,
    }
}

/// Tidies up once nothing is served any more.
pub async fn end(site: &Arc<PageSite>) {
    chat::leave(site).await;
}

/// All views behind the guard.
fn router(site: Arc<PageSite>) -> Router {
    let views = Router::new()
        .merge(today::routes())
        .merge(chat::routes())
        .merge(wakes::routes())
        .merge(memory::routes())
        .merge(questions::routes())
        .merge(changes::routes())
        .merge(undo::routes())
        .merge(charts::routes())
        .merge(health::routes())
        .merge(settings::routes())
        .merge(live::routes())
        .merge(frame::routes())
        .fallback(error::not_found);
    guard::before(views, &site).with_state(site)
}
