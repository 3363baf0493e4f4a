//! Requests and answers on the wire: the name of a request, an answer as bytes (whole or damaged), and the answers of other servers.

use std::{
    io::{self, Write as _},
    net::TcpStream,
};

use serde_json::json;

use super::fault::{By, Said, Target};
use crate::support::http::{Message, Request};

/// The name for fetching a file's bytes.
pub(super) const DOWNLOAD: &str = "download";
/// The name for sending the progress line of a long cycle, and the first character of each line.
pub(super) const LINE: &str = "sendMessage, a line";
pub(super) const LINE_BEGINS: char = '⏳';

/// The name of a request: for Telegram its method, [`DOWNLOAD`] or [`LINE`], for Claude `turn`, for git the operation and its step.
pub(super) fn label(target: Target, request: &Request) -> String {
    let path = request.target.as_str();
    match target {
        Target::Telegram if path.starts_with("/file/") => DOWNLOAD.to_owned(),
        Target::Telegram => match path.rsplit('/').next().unwrap_or_default() {
            "sendMessage" if request.text().contains(LINE_BEGINS) => LINE.to_owned(),
            method => method.to_owned(),
        },
        Target::Claude => "turn".to_owned(),
        Target::Git => {
            let kind = if path.contains("git-receive-pack") { "push" } else { "fetch" };
            let step = match (request.header("authorization").is_some(), request.method.as_str()) {
                (false, _) => "knock",
                (true, "GET") => "refs",
                (true, _) => "pack",
            };
            format!("{kind}-{step}")
        }
    }
}

pub(super) fn send(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).and_then(|()| stream.flush())
}

/// The headers, without those for the transfer of the body.
pub(super) fn kept(headers: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    const OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "expect"];
    headers.iter().filter(|(name, _)| !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)))
}

pub(super) fn head_of(answer: &Message, how: &str) -> Vec<u8> {
    let headers: String = kept(&answer.headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{}\r\n{headers}{how}\r\n", answer.first).into_bytes()
}

/// The answer as bytes: an event stream in a chunk for each event, anything else with its length.
pub(super) fn framed(answer: &Message, more: Option<&str>) -> Vec<u8> {
    let more = more.unwrap_or_default();
    let events = events_of(answer);
    if events.is_empty() {
        let head = head_of(answer, &format!("content-length: {}\r\n{more}", answer.body.len()));
        return [head, answer.body.clone()].concat();
    }
    let head = head_of(answer, &format!("transfer-encoding: chunked\r\n{more}"));
    [head, chunks(&events), b"0\r\n\r\n".to_vec()].concat()
}

pub(super) fn chunks(events: &[Vec<u8>]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| [format!("{:x}\r\n", event.len()).into_bytes(), event.clone(), b"\r\n".to_vec()].concat())
        .collect()
}

/// The events of a stream; empty for other answers.
pub(super) fn events_of(answer: &Message) -> Vec<Vec<u8>> {
    let is_stream = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("content-type") && value.starts_with("text/event-stream")
    };
    if !answer.headers.iter().any(is_stream) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&answer.body);
    text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect()
}

/// Damages the middle so that every format detects it.
pub(super) fn garble(body: &mut [u8]) {
    let middle = body.len() / 2;
    for byte in body.iter_mut().skip(middle).take(6) {
        *byte = 0;
    }
}

impl Said {
    pub(super) fn answer(self, target: Target, request: &Request) -> Message {
        let Self { status, retry_after, by } = self;
        let keys = ["authorization", "x-api-key"].iter().filter_map(|name| request.header(name)).collect::<Vec<_>>();
        let echo = format!("{} {}", request.target, keys.join(" "));
        let (kind, body) = match (by, target) {
            (By::Foreign, _) => ("text/html", format!("<html><h1>{status}</h1><p>{echo}</p></html>")),
            (By::Nobody, _) => ("text/plain", String::new()),
            (By::Hollow, _) => ("application/json", json!({"ok": true, "result": {}}).to_string()),
            (By::Server, Target::Telegram) => {
                let mut body = json!({"ok": false, "error_code": status, "description": format!("As ordered: {echo}")});
                if let Some(seconds) = retry_after {
                    body["parameters"] = json!({"retry_after": seconds});
                }
                ("application/json", body.to_string())
            }
            (By::Server, Target::Claude) => {
                let kind = match status {
                    401 => "authentication_error",
                    402 => "billing_error",
                    429 => "rate_limit_error",
                    _ => "api_error",
                };
                let error = json!({"type": kind, "message": format!("As ordered: {echo}")});
                ("application/json", json!({"type": "error", "error": error}).to_string())
            }
            (By::Server, Target::Git) => ("text/plain", format!("As ordered: {echo}\n")),
        };
        let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
        headers.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
        headers.extend((status == 302).then(|| ("location".to_owned(), "http://127.0.0.1:9/elsewhere".to_owned())));
        let asks = target == Target::Git && status == 401;
        headers.extend(asks.then(|| ("www-authenticate".to_owned(), "Basic realm=\"memory\"".to_owned())));
        Message { first: format!("HTTP/1.1 {status} As-Ordered"), headers, body: body.into_bytes() }
    }
}
