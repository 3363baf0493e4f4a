//! A server by streamable HTTP. Each message is posted; the answer comes as JSON or at the end of an event stream,
//! which is resumed after a break.
//!
//! The address was written by a person, so it may name this machine or its network literally (`localhost`, a literal
//! address). A name that resolves to such an address is refused, because the resolution isn't the person's word.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
    redirect,
};
use serde_json::Value;

use reveille_base::{net_guard, redact::Secret, sse::Events};

use super::{ClientError, MAX_MESSAGE_BYTES, pin::clean_text, refusal, talk::ServerTalk};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of times an interrupted stream is resumed.
const MAX_RECONNECTS: usize = 5;
/// Default and maximum delay before resuming a stream.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(10);
/// Maximum number of redirects to another address of the same server.
const MAX_REDIRECTS: usize = 3;
/// Maximum length of a session id, in bytes.
const MAX_SESSION_BYTES: usize = 512;

/// The media type of an event stream.
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// The state of a connection to a server.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    url: Url,
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

impl Http {
    /// Prepares the client.
    pub(super) fn new<'a>(
        url: &Url,
        headers: impl Iterator<Item = (&'a String, &'a Secret)>,
    ) -> Result<Self, ClientError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value.expose()).ok());
            let (header, mut value) =
                header.ok_or_else(|| ClientError::Unreachable(format!("the header {name:?} can't be sent")))?;
            value.set_sensitive(true);
            map.insert(header, value);
        }
        let client = Client::builder()
            .default_headers(map)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            // Dials only addresses checked here.
            .no_proxy()
            .dns_resolver(Arc::new(Public))
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| explain_unreachable(&error))?;
        Ok(Self { client, url: url.clone(), session: None, revision: None })
    }

    /// Sets the revision sent with all later requests, if valid in a header.
    pub(super) fn set_revision(&mut self, revision: &str) {
        let is_date = revision.len() == 10 && revision.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        self.revision = HeaderValue::from_str(revision).ok().filter(|_| is_date);
    }

    /// Sends a message that expects no answer. A refusal is ignored, since the next request shows whether it matters.
    pub(super) async fn notify(&mut self, text: String) -> Result<(), ClientError> {
        self.post(&text).await.map(drop)
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn send_request(&mut self, text: String, talk: &mut ServerTalk) -> Result<Value, ClientError> {
        let response = self.post(&text).await?;
        if !response.status().is_success() {
            return Err(refusal::read_refusal(response).await.into_error(self.session.is_some()));
        }
        if let Some(session) = response.headers().get(SESSION).filter(|session| session.len() <= MAX_SESSION_BYTES) {
            self.session = Some(session.clone());
        }
        if is_stream(&response) { self.read_events(response, talk).await } else { read_answer(response, talk).await }
    }

    /// Reads events until the answer arrives.
    async fn read_events(&mut self, mut response: Response, talk: &mut ServerTalk) -> Result<Value, ClientError> {
        let mut events = Events::default();
        // A plain message declared as a stream.
        let mut whole: Option<Vec<u8>> = None;
        let mut is_first = true;
        for _ in 0..=MAX_RECONNECTS {
            while let Ok(Some(piece)) = response.chunk().await {
                if std::mem::take(&mut is_first) && piece.trim_ascii_start().starts_with(b"{") {
                    whole = Some(Vec::new());
                }
                if let Some(whole) = &mut whole {
                    whole.extend_from_slice(&piece);
                    if whole.len() > MAX_MESSAGE_BYTES {
                        return Err(too_long());
                    }
                    continue;
                }
                for data in events.parse_bytes(&piece, MAX_MESSAGE_BYTES).map_err(|_| too_long())? {
                    let heard = talk.process_text(&data);
                    for reply in heard.replies {
                        self.notify(reply).await?;
                    }
                    if let Some(answer) = heard.answer {
                        return answer;
                    }
                }
            }
            if let Some(answer) = whole.and_then(|whole| talk.process_text(&String::from_utf8_lossy(&whole)).answer) {
                return answer;
            }
            whole = None;
            // Some servers omit the blank line after the last event. A readable message is complete.
            let rest = events.parse_bytes(b"\n\n", MAX_MESSAGE_BYTES).map_err(|_| too_long())?;
            if let Some(answer) = rest.iter().find_map(|data| talk.process_text(data).answer).filter(Result::is_ok) {
                return answer;
            }
            let Some(last) = events.last_id.as_deref().and_then(|last| HeaderValue::from_str(last).ok()) else { break };
            tokio::time::sleep(events.retry.unwrap_or(RETRY).min(MAX_RETRY)).await;
            let request =
                self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream").header(LAST_EVENT, last);
            response = self.add_session_headers(request).send().await.map_err(|error| explain_unreachable(&error))?;
            if !response.status().is_success() || !is_stream(&response) {
                break;
            }
        }
        Err(ClientError::Protocol(format!("its stream ended before the answer{}", super::format_hint(talk.hint()))))
    }

    /// Posts a message, following redirects of the same server.
    async fn post(&mut self, text: &str) -> Result<Response, ClientError> {
        for _ in 0..=MAX_REDIRECTS {
            let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
            let request = request.header(ACCEPT, "application/json, text/event-stream").body(text.to_owned());
            let response =
                self.add_session_headers(request).send().await.map_err(|error| explain_unreachable(&error))?;
            let Some(to) = find_redirect(&self.url, &response) else { return Ok(response) };
            if !is_same_server(&self.url, &to) {
                let to = clean_text(&format!("{}{}", to.origin().ascii_serialization(), to.path()), 300);
                return Err(ClientError::Unreachable(format!(
                    "it has moved to {to}; if you trust that address, write it into mcp.toml"
                )));
            }
            self.url = to;
        }
        Err(ClientError::Unreachable("it redirects again and again".to_owned()))
    }

    fn add_session_headers(&self, request: RequestBuilder) -> RequestBuilder {
        let headers = [(SESSION, &self.session), (REVISION, &self.revision)];
        headers.into_iter().fold(request, |request, (name, value)| match value {
            Some(value) => request.header(name, value),
            None => request,
        })
    }
}

/// Returns the target of a redirect; `None` for other responses.
fn find_redirect(from: &Url, response: &Response) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
    let to = response.headers().get(LOCATION).filter(|_| is_redirect)?.to_str().ok()?;
    from.join(to).ok()
}

/// Returns true if an address belongs to the server chosen by the person: the same origin, or the same host with
/// encryption. Our headers, including secrets, go nowhere else.
fn is_same_server(from: &Url, to: &Url) -> bool {
    let is_encrypted = from.scheme() == "http" && to.scheme() == "https" && from.host() == to.host();
    from.origin() == to.origin() || (is_encrypted && to.port().is_none())
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().get(..EVENTS.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}

/// Reads the answer from a whole body: a message, or events under a wrong content type.
async fn read_answer(response: Response, talk: &mut ServerTalk) -> Result<Value, ClientError> {
    let status = response.status();
    let body = read_body(response, MAX_MESSAGE_BYTES).await?.ok_or_else(too_long)?;
    let is_events = ["event:", "data:", "id:", ":"].iter().any(|field| body.starts_with(field));
    let texts = match is_events {
        true => Events::default()
            .parse_bytes(format!("{body}\n\n").as_bytes(), MAX_MESSAGE_BYTES)
            .map_err(|_| too_long())?,
        false => vec![body],
    };
    if let Some(answer) = texts.iter().find_map(|text| talk.process_text(text).answer) {
        return answer;
    }
    let what = match texts.first().map(|text| text.trim()) {
        None | Some("") => "with nothing",
        Some(page) if page.starts_with('<') => "with a web page: its url may be another one, or it wants a sign-in",
        Some(_) => "with something other than a message",
    };
    let hint = if what.ends_with("message") { super::format_hint(talk.hint()) } else { String::new() };
    Err(ClientError::Protocol(format!("it answered {what} (HTTP {}){hint}", status.as_u16())))
}

/// Reads a body; `None` if longer than the limit.
pub(super) async fn read_body(mut response: Response, max_bytes: usize) -> Result<Option<String>, ClientError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| explain_unreachable(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > max_bytes {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&body).into_owned()))
}

fn too_long() -> ClientError {
    ClientError::Protocol(format!("it sent a message of more than {MAX_MESSAGE_BYTES} bytes"))
}

/// Describes the deepest cause. The error itself would print the URL.
fn explain_unreachable(error: &reqwest::Error) -> ClientError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = if std::ptr::addr_eq(cause, std::ptr::from_ref(error)) {
        "the request failed".to_owned()
    } else {
        cause.to_string()
    };
    ClientError::Unreachable(cause)
}

/// Resolves names to public addresses only; `localhost` is the only exception.
#[derive(Debug)]
struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| is_allowed(&name, address.ip())).collect();
            if allowed.is_empty() {
                let why = format!(
                    "{name} has no public address; if the server is yours, write the address itself into mcp.toml"
                );
                return Err(io::Error::other(why).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn is_allowed(name: &str, address: IpAddr) -> bool {
    if name.eq_ignore_ascii_case("localhost") { address.is_loopback() } else { net_guard::is_public(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_public_addresses_alone_and_localhost_to_this_machine() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(is_allowed("a.example", ip("1.1.1.1")) && is_allowed("localhost", ip("127.0.0.1")));
        for (name, address) in [
            ("a.example", "127.0.0.1"),
            ("a.example", "10.0.0.1"),
            ("a.example", "::ffff:169.254.169.254"),
            ("localhost", "10.0.0.1"),
        ] {
            assert!(!is_allowed(name, ip(address)), "{name} {address}");
        }
    }
}
