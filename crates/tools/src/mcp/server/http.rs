//! Streamable HTTP on a loopback port: one `POST` per message, each with the bearer token.
//!
//! A web page can reach a loopback port, and read the answers through a DNS name that leads there. Clients must
//! therefore name this machine in `Host` (and in `Origin`, if present) and know the token. Nothing is sent unasked, so
//! `GET` opens no stream. A session id is issued because clients expect one, but has no meaning.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE},
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

use reveille_base::redact::Secret;

use super::{Handler, Job, MAX_REQUEST_BYTES, MAX_WAITING, Offer, handle_message, run_jobs, token};
use crate::{
    loopback,
    mcp::{
        RpcError,
        message::{self, Message, Received, is_known, render_response},
    },
};

/// The path of the server.
pub const PATH: &str = "/mcp";
/// Timeout of a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";

/// State shared by all connections.
struct Door {
    offer: Offer,
    token: Secret,
    jobs: mpsc::Sender<Job>,
}

type Answered = Response<Full<Bytes>>;

/// Serves until dropped. The listener must be on a loopback address.
///
/// # Errors
/// The address isn't a loopback address.
pub async fn serve(
    listener: TcpListener,
    token: &Secret,
    offer: Offer,
    handler: &mut dyn Handler,
) -> io::Result<Infallible> {
    loopback::is_loopback_only(&listener)?;
    let (jobs, waiting) = mpsc::channel(MAX_WAITING);
    let door = Arc::new(Door { offer, token: token.clone(), jobs });
    tokio::select! {
        never = loopback::serve(std::slice::from_ref(&listener), move |request| answer_request(door.clone(), request)) => match never {},
        // The gateway holds a sender as long as it accepts requests.
        () = run_jobs(handler, waiting) => Err(io::Error::other("nobody can ask any more")),
    }
}

async fn answer_request(door: Arc<Door>, request: Request<Incoming>) -> Answered {
    door.answer(request).await
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Answered {
        if let Err(refused) = self.admit(request.uri().path(), request.headers()) {
            return *refused;
        }
        match *request.method() {
            Method::POST => self.handle_post(request).await,
            Method::DELETE => build_text_response(StatusCode::OK, ""),
            _ => with_header(
                build_text_response(StatusCode::METHOD_NOT_ALLOWED, "POST a message"),
                ALLOW.as_str(),
                "POST, DELETE",
            ),
        }
    }

    /// Checks the client before any part of the request's body is read.
    fn admit(&self, path: &str, headers: &HeaderMap) -> Result<(), Box<Answered>> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        let is_from_here = |origin: &str| origin.split_once("://").is_some_and(|(_, host)| is_this_machine(host));
        // fault: wake-mcp-answers-pages
        // fault: wake-mcp-answers-name
        if !is_this_machine(host) || !origin.is_none_or(is_from_here) {
            return Err(Box::new(build_text_response(StatusCode::FORBIDDEN, "Only this machine, by its own name.")));
        }
        if !self.has_valid_token(headers) {
            let refused = build_text_response(StatusCode::UNAUTHORIZED, "The bearer token is missing or wrong.");
            return Err(Box::new(with_header(refused, WWW_AUTHENTICATE.as_str(), "Bearer")));
        }
        if path.trim_end_matches('/') != PATH {
            return Err(Box::new(build_text_response(StatusCode::NOT_FOUND, "The server is at /mcp.")));
        }
        let revision = headers.get(REVISION).map(|revision| revision.to_str().unwrap_or_default());
        if !revision.is_none_or(is_known) {
            return Err(Box::new(build_text_response(
                StatusCode::BAD_REQUEST,
                "This revision of the protocol isn't known here.",
            )));
        }
        Ok(())
    }

    /// Compares digests, so that the timing reveals nothing about the token.
    fn has_valid_token(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(AUTHORIZATION).and_then(|said| said.to_str().ok()).and_then(|said| said.split_once(' '));
        let digest = |token: &str| ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        said.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer")
                // fault: token-opens-wake-mcp
                && digest(token.trim()).as_ref() == digest(self.token.expose()).as_ref()
        })
    }

    async fn handle_post(&self, request: Request<Incoming>) -> Answered {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().to_ascii_lowercase().starts_with("application/json") {
            return build_text_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "A message is application/json.");
        }
        let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return build_text_response(StatusCode::PAYLOAD_TOO_LARGE, "The message is too long.");
            }
            Ok(Err(_)) | Err(_) => {
                return build_text_response(StatusCode::BAD_REQUEST, "The message didn't come through.");
            }
        };
        match message::parse(&String::from_utf8_lossy(&body)) {
            Received::One(Ok(message)) => self.handle_message(message).await,
            Received::One(Err(error)) => {
                build_json_response(StatusCode::BAD_REQUEST, render_response(None, &Err(error)))
            }
            Received::Batch(messages) => self.handle_messages(messages).await,
        }
    }

    async fn handle_message(&self, message: Message) -> Answered {
        let is_introduction = matches!(&message, Message::Request { method, .. } if method == "initialize");
        let Some(answer) = self.answer_message(message).await else {
            return build_text_response(StatusCode::ACCEPTED, "");
        };
        match token::generate() {
            Ok(session) if is_introduction => {
                with_header(build_json_response(StatusCode::OK, answer), SESSION, session.expose())
            }
            _ => build_json_response(StatusCode::OK, answer),
        }
    }

    async fn handle_messages(&self, messages: Vec<Result<Message, RpcError>>) -> Answered {
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(message) => answers.extend(self.answer_message(message).await),
                Err(error) => answers.push(render_response(None, &Err(error))),
            }
        }
        match answers.as_slice() {
            [] => build_text_response(StatusCode::ACCEPTED, ""),
            answers => build_json_response(StatusCode::OK, format!("[{}]", answers.join(","))),
        }
    }

    /// Returns the answer's text; `None` if the message expects no answer.
    async fn answer_message(&self, message: Message) -> Option<String> {
        let id = match &message {
            Message::Request { id, .. } | Message::Refused { id, .. } => Some(id.clone()),
            _ => None,
        };
        let (done, answered) = oneshot::channel();
        if !handle_message(&self.offer, message, &self.jobs, move |answer| drop(done.send(answer))) {
            return None;
        }
        let lost = || Err(RpcError::new(RpcError::INTERNAL, "the server is ending"));
        Some(render_response(id.as_ref(), &answered.await.unwrap_or_else(|_| lost())))
    }
}

/// Returns true if a `Host`, or an origin's part after `://`, names this machine, with any port.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|here| name.eq_ignore_ascii_case(here))
}

fn build_text_response(status: StatusCode, text: &'static str) -> Answered {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

fn build_json_response(status: StatusCode, text: String) -> Answered {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    with_header(response, CONTENT_TYPE.as_str(), "application/json")
}

fn with_header(mut response: Answered, name: &'static str, value: &str) -> Answered {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_own_names_are_taken_for_it() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8931", "[::1]", "[::1]:1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "127.0.0.2",
            "localhost:80@evil",
            "::1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
