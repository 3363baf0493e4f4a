//! The local page: what a person sees of their assistant in a browser of the same machine.
//!
//! `guard` decides who is answered, before anything of a request is looked at. Each view is a file with its own routes: it reads
//! values (`account`, `orders`, `memory`, `health`), and makes HTML of them. `frame` is what stands around all views. A `GET`
//! changes nothing. Every page can be read without a script; `live` renews what is open by server-sent events.
//!
//! A store is opened for each request and closed after it, so that an idle page holds none.

mod charts;
mod chat;
mod error;
mod frame;
mod guard;
mod health;
mod live;
mod markdown;
mod memory;
mod questions;
mod settings;
mod site;
mod today;
mod wakes;

use std::sync::Arc;

use axum::Router;

pub use site::PageSite;

/// All views behind the guard.
pub fn router(site: Arc<PageSite>) -> Router {
    let views = Router::new()
        .merge(today::routes())
        .merge(chat::routes())
        .merge(wakes::routes())
        .merge(memory::routes())
        .merge(questions::routes())
        .merge(charts::routes())
        .merge(health::routes())
        .merge(settings::routes())
        .merge(live::routes())
        .merge(frame::routes())
        .fallback(error::not_found);
    guard::before(views, &site).with_state(site)
}
