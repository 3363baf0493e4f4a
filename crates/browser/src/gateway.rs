//! The browser's only way to the network: a small proxy in our own process.
//!
//! It looks up each name once, refuses a name with any address outside the public internet, and dials the checked
//! address. So redirects, sub-resources, WebSockets and names that change their address are all checked, whatever the
//! page does. Only hosts that a person granted may lie inside.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use reveille_base::net_guard;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional},
    net::{TcpListener, TcpStream, lookup_host},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use url::Url;

/// Allowed ports outside. Other ports serve protocols that a crafted request could speak.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];
/// Maximum number of open connections; further ones wait.
const MAX_CONNECTIONS: usize = 256;
/// Maximum length of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 128;
/// Maximum wait for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum wait for a connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of a name's addresses that are tried.
const MAX_ADDRESSES: usize = 4;

/// Hosts outside the public internet that a person granted, each with one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostGrants(BTreeSet<HostAndPort>);

/// A host in the spelling of URLs, and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct HostAndPort {
    host: String,
    port: u16,
}

impl HostGrants {
    /// Parses texts such as `nas.local:8080` or `[::1]:3000`. Invalid texts grant nothing.
    pub fn parse<'a>(granted: impl IntoIterator<Item = &'a str>) -> Self {
        Self(granted.into_iter().filter_map(HostAndPort::parse).collect())
    }

    fn contains(&self, place: &HostAndPort) -> bool {
        self.0.contains(place)
    }

    /// The reason against opening an address, as far as its text tells; the proxy checks the rest. `None` if it is fine.
    pub(crate) fn find_objection(&self, url: &Url) -> Option<String> {
        if url.as_str() == "about:blank" {
            return None;
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Some("Only http and https addresses are opened.".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some("The address holds a name or a password before its host; leave them out.".to_owned());
        }
        let Some(place) = HostAndPort::from_url(url) else { return Some("The address names no host.".to_owned()) };
        if self.contains(&place) {
            return None;
        }
        if !PORTS.contains(&place.port) {
            return Some("Pages are only opened on the ports 80, 443, 8080 and 8443.".to_owned());
        }
        let is_inside = place.literal().map_or_else(
            || place.host.rsplit('.').next() == Some("localhost"),
            |address| !net_guard::is_public(address),
        );
        is_inside.then(|| {
            "This address isn't on the public internet. Only addresses there that a person has granted are opened."
                .to_owned()
        })
    }
}

impl HostAndPort {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.trim().rsplit_once(':')?;
        let url = Url::parse(&format!("http://{host}/")).ok()?;
        let is_host_alone =
            url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let host = url.host_str().filter(|_| is_host_alone && url.port().is_none())?.trim_end_matches('.').to_owned();
        Some(Self { host, port: port.parse().ok().filter(|port| *port != 0)? })
    }

    fn from_url(url: &Url) -> Option<Self> {
        let host = url.host_str().filter(|host| !host.is_empty())?.trim_end_matches('.').to_owned();
        Some(Self { host, port: url.port_or_known_default()? })
    }

    fn literal(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

/// The running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Gateway {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Gateway {
    /// Listens on a free loopback port.
    pub(crate) async fn listen(grants: HostGrants) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { port, accepting: tokio::spawn(accept_connections(listener, Arc::new(grants))) })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_connections(listener: TcpListener, grants: Arc<HostGrants>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&places).acquire_owned().await else { return };
        if let Ok((client, _)) = listener.accept().await {
            let grants = Arc::clone(&grants);
            connections.spawn(async move {
                serve_client(client, &grants).await;
                drop(permit);
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

/// A refusal: a status line's rest, and the reason.
struct ProxyRefusal {
    status: &'static str,
    reason: String,
}

/// A request, as far as the proxy reads it.
struct ProxyRequest {
    place: HostAndPort,
    kind: RequestKind,
}

enum RequestKind {
    /// `CONNECT`: bytes in both directions.
    Tunnel,
    /// One request and its answer: the head to send, and the length of the body.
    Plain { head: String, body_bytes: u64 },
}

async fn serve_client(mut client: TcpStream, grants: &HostGrants) {
    if let Err(ProxyRefusal { status, reason }) = relay_request(&mut client, grants).await {
        let length = reason.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{reason}"
        );
        client.write_all(answer.as_bytes()).await.ok();
    }
    client.shutdown().await.ok();
}

async fn relay_request(client: &mut TcpStream, grants: &HostGrants) -> Result<(), ProxyRefusal> {
    let bad = |reason: &str| ProxyRefusal { status: "400 Bad Request", reason: reason.to_owned() };
    let head = match timeout(HEAD_TIMEOUT, read_head(client)).await {
        Ok(Ok(head)) if !head.is_empty() => head,
        // A connection that was opened ahead and never used.
        _ => return Ok(()),
    };
    let request = parse_request(&head).ok_or_else(|| bad("The request isn't understood."))?;
    let mut target = dial_place(&request.place, grants).await?;
    match request.kind {
        RequestKind::Tunnel => {
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_ok() {
                copy_bidirectional(client, &mut target).await.ok();
            }
        }
        RequestKind::Plain { head, body_bytes } => {
            // Further bytes of the client could belong to a request for another host, and are dropped.
            let (from_client, to_client) = client.split();
            let (mut from_target, mut to_target) = target.split();
            let mut body = from_client.take(body_bytes);
            let send = async {
                to_target.write_all(head.as_bytes()).await?;
                copy(&mut body, &mut to_target).await
            };
            let mut to_client = to_client;
            let answer = copy(&mut from_target, &mut to_client);
            let (_, _) = tokio::join!(send, answer);
        }
    }
    Ok(())
}

/// Reads byte by byte up to the empty line, so that a body stays in the stream.
async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while head.len() < MAX_HEAD_BYTES {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        if head.ends_with(b"\r\n\r\n") {
            return Ok(head);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn parse_request(head: &[u8]) -> Option<ProxyRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok().filter(httparse::Status::is_complete)?;
    let (method, path) = (request.method?, request.path?);
    if method == "CONNECT" {
        return Some(ProxyRequest { place: HostAndPort::parse(path)?, kind: RequestKind::Tunnel });
    }
    let url = Url::parse(path).ok().filter(|url| url.scheme() == "http")?;
    let place = HostAndPort::from_url(&url)?;
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut head = format!("{method} {}{query} HTTP/1.1\r\n", url.path());
    let mut body_bytes = 0;
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).ok()?;
        match header.name.to_ascii_lowercase().as_str() {
            // The length of such a body isn't known ahead.
            "transfer-encoding" => return None,
            "connection" | "proxy-connection" | "keep-alive" | "proxy-authorization" | "upgrade" => {}
            name => {
                if name == "content-length" {
                    body_bytes = value.trim().parse().ok()?;
                }
                head.push_str(&format!("{}: {value}\r\n", header.name));
            }
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    Some(ProxyRequest { place, kind: RequestKind::Plain { head, body_bytes } })
}

/// Connects to a place after checking all its addresses.
async fn dial_place(place: &HostAndPort, grants: &HostGrants) -> Result<TcpStream, ProxyRefusal> {
    let closed = |reason: String| ProxyRefusal { status: "403 Forbidden", reason };
    let lost = |reason: String| ProxyRefusal { status: "502 Bad Gateway", reason };
    let is_granted = grants.contains(place);
    if !is_granted && !PORTS.contains(&place.port) {
        return Err(closed(format!("Port {} isn't opened by this browser.", place.port)));
    }
    let addresses: Vec<IpAddr> = match place.literal() {
        Some(address) => vec![address],
        None => match lookup_host((place.host.as_str(), place.port)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => return Err(lost(format!("No address was found for {}.", place.host))),
        },
    };
    // One private address refuses the whole name, because a mixed name suggests an attack.
    let refused = addresses.iter().copied().find_map(net_guard::why_not_public).filter(|_| !is_granted);
    if let Some(what) = refused {
        return Err(closed(format!("{} isn't on the public internet: it is {what}.", place.host)));
    }
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        let address = SocketAddr::new(address, place.port);
        if let Ok(Ok(stream)) = timeout(DIAL_TIMEOUT, TcpStream::connect(address)).await {
            return Ok(stream);
        }
    }
    Err(lost(format!("{} can't be reached.", place.host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(url: &str) -> Option<String> {
        let grants = HostGrants::parse(["127.0.0.1:3000", "nas.local:5000", "a/b:1", "u@c:80"]);
        grants.find_objection(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_public_pages_and_granted_places_are_opened() {
        for fine in [
            "https://example.org/a",
            "http://example.org:8080/",
            "http://127.0.0.1:3000/x",
            "http://2130706433:3000/",
            "http://nas.local.:5000/",
            "about:blank",
        ] {
            assert_eq!(objection(fine), None, "{fine}");
        }
        for refused in [
            "file:///etc/passwd",
            "chrome://settings/",
            "javascript:alert(1)",
            "data:text/html,x",
            "view-source:https://example.org/",
            "https://me:pw@example.org/",
            "http://127.0.0.1/",
            "http://127.0.0.1:3001/",
            "http://x.localhost/",
            "http://[::1]/",
            "http://169.254.169.254/latest",
            "https://example.org:22/",
        ] {
            assert!(objection(refused).is_some(), "{refused}");
        }
    }

    #[test]
    fn requests_are_rewritten_for_their_host() {
        let head = b"POST http://example.org/a?b=c HTTP/1.1\r\nHost: example.org\r\nProxy-Connection: keep-alive\r\nContent-Length: 3\r\n\r\n";
        let request = parse_request(head).unwrap();
        assert_eq!(request.place, HostAndPort { host: "example.org".to_owned(), port: 80 });
        let RequestKind::Plain { head, body_bytes } = request.kind else { panic!("it is plain") };
        assert_eq!(head, "POST /a?b=c HTTP/1.1\r\nHost: example.org\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
        assert_eq!(body_bytes, 3);
        let tunnel = parse_request(b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(tunnel.place, HostAndPort { host: "[::1]".to_owned(), port: 443 });
        for bad in ["GET / HTTP/1.1\r\n\r\n", "GET ftp://a/ HTTP/1.1\r\n\r\n", "CONNECT a HTTP/1.1\r\n\r\n"] {
            assert!(parse_request(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused() {
        let place = HostAndPort { host: "localhost".to_owned(), port: 80 };
        let refusal = dial_place(&place, &HostGrants::default()).await.unwrap_err();
        assert_eq!(refusal.status, "403 Forbidden");
    }
}
