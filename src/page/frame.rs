//! The frame around every view: the head, the navigation, the style sheet and the one script.

use std::sync::Arc;

use axum::{
    Router,
    http::header::{CONTENT_TYPE, HeaderValue},
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{DOCTYPE, Markup, html};

use super::{nav, site::PageSite};

/// Paths of the style sheet and the icon, which are served to unknown browsers too.
pub(super) const STYLE_PATH: &str = "/style.css";
const STYLE: &str = concat!(
    include_str!("style.css"),
    include_str!("views.css"),
    include_str!("settings.css"),
    include_str!("chat/chat.css")
);
pub(super) const ICON_PATH: &str = "/icon.svg";
const ICON: &str = include_str!("icon.svg");
const SCRIPT: &str = concat!(include_str!("script.js"), include_str!("settings.js"), include_str!("chat/chat.js"));

/// The open view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagePlace {
    Today,
    Chat,
    Wakes,
    Memory,
    Questions,
    Charts,
    Health,
    Settings,
    /// The places that don't stand in a phone's bar.
    More,
    /// Any page outside the navigation.
    Elsewhere,
}

/// Renders a page with the navigation.
pub(super) fn render_frame(place: PagePlace, title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Reveille" }
                link rel="icon" href=(ICON_PATH) type="image/svg+xml";
                link rel="stylesheet" href=(STYLE_PATH);
                script src="/script.js" defer {}
            }
            body .framed {
                a .skip href="#content" { "Skip to content" }
                header .views {
                    p .brand { "Reveille" }
                    (nav::render_navigation(place))
                }
                main #content tabindex="-1" {
                    p #connection .note .bad role="status" hidden {
                        "Not connected; retrying. If this persists, run " code { "wake page" } " in a terminal."
                    }
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// Renders a page without navigation, for unknown browsers. `to` is the address of an automatic redirect.
pub(super) fn outside_frame(title: &str, to: Option<&str>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(to) = to {
                    meta http-equiv="refresh" content={ "0; url=" (to) };
                }
                title { (title) " · Reveille" }
                link rel="icon" href=(ICON_PATH) type="image/svg+xml";
                link rel="stylesheet" href=(STYLE_PATH);
            }
            body {
                main #content {
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// The routes of the style sheet, the script and the icon.
pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(STYLE_PATH, get(async || serve_file("text/css; charset=utf-8", STYLE)))
        .route(ICON_PATH, get(async || serve_file("image/svg+xml", ICON)))
        .route("/script.js", get(async || serve_file("text/javascript; charset=utf-8", SCRIPT)))
}

fn serve_file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}
