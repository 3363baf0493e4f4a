//! Decides who gets an answer. Any web site that a person visits can reach a loopback port, even under the site's own host name (DNS
//! rebinding). So a request must name this server as its host, come from no other site, and carry the cookie. Nothing else in a request is
//! read before that is checked.

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
    chat,
    entrance::SessionMark,
    error::{PageError, render_status},
    frame::{ICON_PATH, STYLE_PATH, outside_frame},
    site::PageSite,
};

/// The cookie's name.
const COOKIE_NAME: &str = "reveille";
/// Path prefix of an entry address.
pub(super) const ENTER: &str = "/enter/";
/// Maximum bytes of a form, enough for a document of the memory.
const MAX_BODY_BYTES: usize = 4 << 20;
/// Longest time for receiving a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The content security policy: no foreign content, no inline code, no framing.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' blob:; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The header in which a browser tells what kind of site a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Headers of every answer.
const HEADERS: [(HeaderName, HeaderValue); 8] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // With `no-referrer`, browsers would send `null` as the origin of our own forms.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    // The microphone is for our own pages alone, and nothing else is for anybody.
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("microphone=(self), camera=(), geolocation=(), display-capture=(), usb=(), serial=()"),
    ),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Puts the guard in front of all views.
pub(super) fn guard_views(views: Router<Arc<PageSite>>, site: &Arc<PageSite>) -> Router<Arc<PageSite>> {
    views.layer(from_fn_with_state(Arc::clone(site), guard_request))
}

async fn guard_request(State(site): State<Arc<PageSite>>, request: Request, next: Next) -> Response {
    let mut response = match admit_request(&site, &request) {
        Ok(session) => match read_body(request).await {
            Ok(mut request) => {
                if let Some(session) = session {
                    request.extensions_mut().insert(session);
                }
                replace_bare_error(next.run(request).await)
            }
            Err(error) => error.into_response(),
        },
        Err(refused) => *refused,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Checks a request, and returns its session. Style sheet and icon need none. The refusal tells how to sign in.
fn admit_request(site: &PageSite, request: &Request) -> Result<Option<SessionMark>, Box<Response>> {
    let headers = request.headers();
    let (method, path) = (request.method(), request.uri().path());
    if find_header(headers, &HOST) != Some(site.host()) {
        return Err(Box::new(render_unknown(StatusCode::MISDIRECTED_REQUEST)));
    }
    let is_reading = *method == Method::GET || *method == Method::HEAD;
    if !is_reading && *method != Method::POST {
        return Err(Box::new(render_status(StatusCode::METHOD_NOT_ALLOWED)));
    }
    let is_from_here = find_header(headers, &ORIGIN).map(|origin| origin.strip_prefix("http://") == Some(site.host()));
    let comes_from = find_header(headers, &FETCH_SITE);
    if *method == Method::GET
        && let Some(ticket) = path.strip_prefix(ENTER)
    {
        return Err(Box::new(exchange_address(site, ticket, comes_from)));
    }
    let is_foreign =
        is_from_here == Some(false) || comes_from.is_some_and(|from| !["same-origin", "none"].contains(&from));
    if is_foreign {
        return Err(Box::new(render_unknown(StatusCode::FORBIDDEN)));
    }
    if path == STYLE_PATH || path == ICON_PATH {
        return Ok(None);
    }
    let Some(cookie) = list_cookies(headers).find(|cookie| site.renew_session(cookie)) else {
        return Err(Box::new(render_unknown(StatusCode::UNAUTHORIZED)));
    };
    if is_reading || is_from_here == Some(true) || comes_from == Some("same-origin") {
        return Ok(Some(SessionMark::from_cookie(cookie)));
    }
    Err(Box::new(render_unknown(StatusCode::FORBIDDEN)))
}

/// Returns a header that occurs once, as text. A repeated or unreadable header becomes an empty text, which matches nothing.
fn find_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().unwrap_or_default()),
        Some(_) => Some(""),
    }
}

/// Lists the values of our cookie, which may occur several times.
fn list_cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    })
}

/// Exchanges a single-use address for the cookie.
fn exchange_address(site: &PageSite, ticket: &str, comes_from: Option<&str>) -> Response {
    let cookie = match site.redeem_ticket(ticket) {
        Ok(Some(cookie)) => cookie,
        Ok(None) => return render_used(),
        Err(_) => return PageError::Broken.into_response(),
    };
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", cookie.expose());
    let Ok(cookie) = HeaderValue::from_str(&cookie) else { return PageError::Broken.into_response() };
    match comes_from {
        None | Some("none" | "same-origin") => {
            let to = [(LOCATION, HeaderValue::from_static("/")), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, to).into_response()
        }
        // If a link on another site led here, the browser sends a strict cookie only with a request from one of our own pages.
        Some(_) => {
            let page = outside_frame("You're in", Some("/"), &html! { p { a href="/" { "Continue" } } });
            ([(SET_COOKIE, cookie)], page).into_response()
        }
    }
}

fn render_used() -> Response {
    let why = html! {
        p { "This link was already used or has expired: each works once, within ten minutes." }
        p { "Run " code { "wake page" } " in a terminal for a new one. If you are already signed in, " a href="/" { "continue here" } "." }
    };
    (StatusCode::GONE, outside_frame("This link no longer works", None, &why)).into_response()
}

fn render_unknown(status: StatusCode) -> Response {
    let how = html! {
        p { "Run " code { "wake page" } " in a terminal for a link." }
        p { "If you were here before and followed a link from another page, " a href="/" { "continue here" } "." }
    };
    (status, outside_frame("I don't know this browser yet", None, &how)).into_response()
}

/// Reads a request's whole body, up to the limit. An upload is left to its view, which writes it to the disk piece by piece.
async fn read_body(request: Request) -> Result<Request, PageError> {
    if chat::is_upload(&request) {
        return Ok(request);
    }
    let (head, body) = request.into_parts();
    let refused = || PageError::Refused("That was too long or didn't arrive in full. Nothing was changed.".to_owned());
    // A body that is declared as too long is refused at once.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(refused());
    }
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES));
    let body = body.await.map_err(|_| refused())?.map_err(|_| refused())?;
    Ok(Request::from_parts(head, Body::from(body)))
}

/// Replaces a bare error code of the router with a page.
fn replace_bare_error(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if is_error && !kind.starts_with("text/html") { render_status(status) } else { response }
}
