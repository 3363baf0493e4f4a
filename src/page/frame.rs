//! What stands around each view: the head, the ways to the other views, the style and the one script.

use std::sync::Arc;

use axum::{
    Router,
    http::header::{CONTENT_TYPE, HeaderValue},
    response::{IntoResponse as _, Response},
    routing::get,
};
use maud::{DOCTYPE, Markup, html};

use super::site::PageSite;

/// Where the style and the icon are: whoever isn't known may have them.
pub(super) const STYLE_PATH: &str = "/style.css";
const STYLE: &str = concat!(include_str!("style.css"), include_str!("views.css"));
pub(super) const ICON_PATH: &str = "/icon.svg";
const ICON: &str = include_str!("icon.svg");
const SCRIPT: &str = include_str!("script.js");

/// Which view is open.
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
    /// None of them.
    Elsewhere,
}

/// The views that can be gone to from everywhere: where, by which path, under which name.
const PLACES: [(PagePlace, &str, &str); 8] = [
    (PagePlace::Today, "/", "Today"),
    (PagePlace::Chat, "/chat", "Chat"),
    (PagePlace::Wakes, "/wakes", "What I did"),
    (PagePlace::Memory, "/memory", "Memory"),
    (PagePlace::Questions, "/questions", "Questions"),
    (PagePlace::Charts, "/charts", "Charts"),
    (PagePlace::Health, "/health", "Health"),
    (PagePlace::Settings, "/settings", "Settings"),
];

/// A whole page.
pub(super) fn frame(place: PagePlace, title: &str, content: &Markup) -> Markup {
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
            body {
                a .skip href="#content" { "Skip to the content" }
                header {
                    p .brand { "Reveille" }
                    nav aria-label="Views" {
                        ul {
                            @for (at, path, name) in PLACES {
                                li { a href=(path) aria-current=[(at == place).then_some("page")] { (name) } }
                            }
                        }
                    }
                }
                main #content tabindex="-1" {
                    p #connection .note .bad role="status" hidden {
                        "Not connected, trying again. If this stays, run " code { "wake page" } " in a terminal."
                    }
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// A page for whoever isn't known: without ways to anywhere. `to` is where it goes by itself.
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

/// The style, the script and the icon.
pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new()
        .route(STYLE_PATH, get(async || file("text/css; charset=utf-8", STYLE)))
        .route(ICON_PATH, get(async || file("image/svg+xml", ICON)))
        .route("/script.js", get(async || file("text/javascript; charset=utf-8", SCRIPT)))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}
