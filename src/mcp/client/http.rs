//! A server by streamable HTTP: each message is posted, and its answer comes as JSON or at the end of a stream of events, which
//! is gone on with where it broke.
//!
//! A person wrote the address down, so it may lead to this machine or their network when it says so itself (`localhost`, a literal
//! address). A name that turns out to lead there is refused: what is looked up isn't theirs.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use serde_json::Value;

use super::{ClientError, MAX_MESSAGE_BYTES, Reaction, react};
use crate::{net_guard, redact::Secret, sse::Events};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a stream that ended before its answer is gone on with.
const MAX_RECONNECTS: usize = 5;
/// How long is waited before that, when the server says nothing, and at most.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(10);
/// The longest session number, in bytes.
const MAX_SESSION_BYTES: usize = 512;

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// A server that is spoken with.
#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    url: Url,
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

impl Http {
    /// Prepares to speak with it.
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
            // Whatever is dialled was looked at here.
            .no_proxy()
            .dns_resolver(Arc::new(Public))
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unreachable(&error))?;
        Ok(Self { client, url: url.clone(), session: None, revision: None })
    }

    /// What both sides speak from now on.
    pub(super) fn agree_on(&mut self, revision: &str) {
        self.revision = HeaderValue::from_str(revision).ok();
    }

    /// Says something that wants no answer.
    pub(super) async fn say(&self, text: String) -> Result<(), ClientError> {
        let response = self.post(text).await?;
        if response.status().is_success() { Ok(()) } else { Err(refused(response.status())) }
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(&mut self, id: u64, text: String, has_news: &mut bool) -> Result<Value, ClientError> {
        let response = self.post(text).await?;
        if !response.status().is_success() {
            return Err(refused(response.status()));
        }
        if let Some(session) = response.headers().get(SESSION).filter(|session| session.len() <= MAX_SESSION_BYTES) {
            self.session = Some(session.clone());
        }
        if is_stream(&response) {
            return self.listen(id, response, has_news).await;
        }
        match react(&read(response).await?, id, has_news) {
            Reaction::Answered(answer) => answer,
            Reaction::Reply(_) | Reaction::Nothing => {
                Err(ClientError::Protocol("it answered with something else".to_owned()))
            }
        }
    }

    /// Reads events until the answer is there.
    async fn listen(&self, id: u64, mut response: Response, has_news: &mut bool) -> Result<Value, ClientError> {
        let mut events = Events::default();
        for _ in 0..=MAX_RECONNECTS {
            while let Ok(Some(piece)) = response.chunk().await {
                let too_long =
                    |_| ClientError::Protocol(format!("it sent an event of more than {MAX_MESSAGE_BYTES} bytes"));
                for data in events.take(&piece, MAX_MESSAGE_BYTES).map_err(too_long)? {
                    match react(&data, id, has_news) {
                        Reaction::Answered(answer) => return answer,
                        Reaction::Reply(reply) => self.say(reply).await?,
                        Reaction::Nothing => {}
                    }
                }
            }
            let Some(last) = events.last_id.as_deref().and_then(|last| HeaderValue::from_str(last).ok()) else { break };
            tokio::time::sleep(events.retry.unwrap_or(RETRY).min(MAX_RETRY)).await;
            let request =
                self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream").header(LAST_EVENT, last);
            response = self.known(request).send().await.map_err(|error| unreachable(&error))?;
            if !response.status().is_success() || !is_stream(&response) {
                break;
            }
        }
        Err(ClientError::Protocol("its stream ended before the answer".to_owned()))
    }

    async fn post(&self, text: String) -> Result<Response, ClientError> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").body(text);
        self.known(request).send().await.map_err(|error| unreachable(&error))
    }

    fn known(&self, request: RequestBuilder) -> RequestBuilder {
        let headers = [(SESSION, &self.session), (REVISION, &self.revision)];
        headers.into_iter().fold(request, |request, (name, value)| match value {
            Some(value) => request.header(name, value),
            None => request,
        })
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

async fn read(mut response: Response) -> Result<String, ClientError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| unreachable(&error))? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(ClientError::Protocol(format!("it sent a message of more than {MAX_MESSAGE_BYTES} bytes")));
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn refused(status: StatusCode) -> ClientError {
    let what = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "it doesn't let us in; see headers in mcp.toml",
        StatusCode::NOT_FOUND => "there is no MCP server at its url, or the session is over",
        _ => "it answered with an error",
    };
    ClientError::Unreachable(format!("{what} (HTTP {})", status.as_u16()))
}

/// The deepest cause. The error itself would print its URL.
fn unreachable(error: &reqwest::Error) -> ClientError {
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

/// Looks names up, and gives only addresses that are public; `localhost` is the one name that may lead here.
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
                let why =
                    format!("{name} leads to no public address; write the address itself into mcp.toml if it is yours");
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
