//! Who is answered. Any web site that a person visits can reach a loopback port, by a name of its own too; so whoever asks has to
//! name this very server, to come from no other site, and to know the cookie. Nothing of a request is looked at before.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY,
            SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use hyper::body::Body as _;
use maud::html;

use super::{
    error::{PageError, stand_in},
    frame::{ICON_PATH, STYLE_PATH, outside_frame},
    site::PageSite,
};

/// What the cookie is called.
const COOKIE_NAME: &str = "reveille";
/// How the path of an address begins.
pub(super) const ENTER: &str = "/enter/";
/// The longest form that is taken, in bytes: a document of the memory fits in.
const MAX_BODY_BYTES: usize = 4 << 20;
/// How long a form may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Nothing from elsewhere, nothing inline, in nobody's frame.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What a browser says about where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// On every answer.
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // Not `no-referrer`: browsers would call the origin of our own forms `null` then.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Puts the guard before all views.
pub(super) fn before(views: Router<Arc<PageSite>>, site: &Arc<PageSite>) -> Router<Arc<PageSite>> {
    views.layer(from_fn_with_state(Arc::clone(site), guard))
}

async fn guard(State(site): State<Arc<PageSite>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&site, &request) {
        Ok(()) => match received(request).await {
            Ok(request) => readable(next.run(request).await),
            Err(error) => error.into_response(),
        },
        Err(refused) => *refused,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Looks at who asks. Whoever isn't admitted is told why, and how to enter.
fn admit(site: &PageSite, request: &Request) -> Result<(), Box<Response>> {
    let headers = request.headers();
    let (method, path) = (request.method(), request.uri().path());
    if text(headers, &HOST) != Some(site.host()) {
        return Err(Box::new(unknown(StatusCode::MISDIRECTED_REQUEST)));
    }
    let is_reading = *method == Method::GET || *method == Method::HEAD;
    if !is_reading && *method != Method::POST {
        return Err(Box::new(stand_in(StatusCode::METHOD_NOT_ALLOWED)));
    }
    let is_from_here = text(headers, &ORIGIN).map(|origin| origin.strip_prefix("http://") == Some(site.host()));
    let comes_from = text(headers, &FETCH_SITE);
    if *method == Method::GET
        && let Some(ticket) = path.strip_prefix(ENTER)
    {
        return Err(Box::new(enter(site, ticket, comes_from)));
    }
    let is_foreign =
        is_from_here == Some(false) || comes_from.is_some_and(|from| !["same-origin", "none"].contains(&from));
    if is_foreign {
        return Err(Box::new(unknown(StatusCode::FORBIDDEN)));
    }
    if path == STYLE_PATH || path == ICON_PATH {
        return Ok(());
    }
    if !cookies(headers).any(|cookie| site.knows(cookie)) {
        return Err(Box::new(unknown(StatusCode::UNAUTHORIZED)));
    }
    if is_reading || is_from_here == Some(true) || comes_from == Some("same-origin") {
        return Ok(());
    }
    Err(Box::new(unknown(StatusCode::FORBIDDEN)))
}

/// A header that stands there once, as text; what can't be read as text matches nothing.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().unwrap_or_default()),
        Some(_) => Some(""),
    }
}

/// What our cookie holds; more than one may stand there.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    })
}

/// Takes an address that works once, and gives the cookie for it.
fn enter(site: &PageSite, ticket: &str, comes_from: Option<&str>) -> Response {
    let cookie = match site.enter(ticket) {
        Ok(Some(cookie)) => cookie,
        Ok(None) => return used(),
        Err(_) => return PageError::Broken.into_response(),
    };
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", cookie.expose());
    let Ok(cookie) = HeaderValue::from_str(&cookie) else { return PageError::Broken.into_response() };
    match comes_from {
        None | Some("none" | "same-origin") => {
            let to = [(LOCATION, HeaderValue::from_static("/")), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, to).into_response()
        }
        // A browser that came here by another site's link sends a strict cookie only from a page of ours on.
        Some(_) => {
            let page = outside_frame("You're in", Some("/"), &html! { p { a href="/" { "Go on" } } });
            ([(SET_COOKIE, cookie)], page).into_response()
        }
    }
}

fn used() -> Response {
    let why = html! {
        p { "This link was used already, or is too old: each works once, for ten minutes." }
        p { "Run " code { "wake page" } " in a terminal for another. If you are in already, " a href="/" { "go on here" } "." }
    };
    (StatusCode::GONE, outside_frame("This link is used up", None, &why)).into_response()
}

fn unknown(status: StatusCode) -> Response {
    let how = html! {
        p { "Run " code { "wake page" } " in a terminal for a link." }
        p { "If you were here before and came by a link of another page, " a href="/" { "go on here" } "." }
    };
    (status, outside_frame("I don't know this browser yet", None, &how)).into_response()
}

/// A request with all of its body, which is bounded.
async fn received(request: Request) -> Result<Request, PageError> {
    let (head, body) = request.into_parts();
    let refused = || PageError::Refused("That is too long, or didn't come through. Nothing was changed.".to_owned());
    // What says at once that it is too long needn't be waited for.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(refused());
    }
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES));
    let body = body.await.map_err(|_| refused())?.map_err(|_| refused())?;
    Ok(Request::from_parts(head, Body::from(body)))
}

/// What the router refuses by a bare code gets a page.
fn readable(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if is_error && !kind.starts_with("text/html") { stand_in(status) } else { response }
}
