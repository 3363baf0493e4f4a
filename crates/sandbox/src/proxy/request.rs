//! Strict parsing of the head of a proxy request: ambiguous requests are refused. Values in, values out.

use super::grant::{Destination, Grant};

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel of bytes to the target.
    Tunnel {
        /// The target.
        to: Grant,
    },
    /// One plain request, sent to the target in these bytes.
    Plain {
        /// The target.
        to: Grant,
        /// The request as sent to the target.
        head: Vec<u8>,
    },
}

impl Request {
    /// Returns the target.
    pub(super) fn target(&self) -> &Grant {
        match self {
            Self::Tunnel { to } | Self::Plain { to, .. } => to,
        }
    }
}

/// Headers about the connection to the proxy. They aren't forwarded, and `Host` is rewritten from the checked target.
const OURS: [&str; 9] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// Maximum number of headers.
const MAX_HEADERS: usize = 100;

/// Parses a request's head.
///
/// # Errors
/// The reason for the client.
pub(super) fn parse(head: &[u8]) -> Result<Request, &'static str> {
    use httparse::{Error, Status::Complete};
    let text = std::str::from_utf8(head).ok().filter(|text| text.is_ascii()).ok_or("the request isn't plain ASCII")?;
    // The parser also accepts a bare line feed as the end of a line.
    if text.split("\r\n").any(|line| line.contains(['\r', '\n'])) {
        return Err("a line doesn't end as HTTP's lines do");
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let status = request.parse(head).map_err(|error| match error {
        Error::HeaderName | Error::HeaderValue => "a header is malformed",
        Error::TooManyHeaders => "there are too many headers",
        _ => "the request line is malformed",
    })?;
    let line = request.method.zip(request.path).filter(|_| status == Complete(head.len()));
    let (method, target) = line.ok_or("the request isn't whole")?;
    match method {
        "CONNECT" => Ok(Request::Tunnel { to: target.parse().map_err(|_| "CONNECT wants a host and a port")? }),
        "GET" | "HEAD" => parse_plain(method, target, request.headers),
        _ => Err("only CONNECT, GET and HEAD are taken"),
    }
}

fn parse_plain(method: &str, target: &str, headers: &[httparse::Header<'_>]) -> Result<Request, &'static str> {
    let rest = target.strip_prefix("http://").ok_or("a whole address is wanted, such as http://example.com/")?;
    let cut = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = (rest.get(..cut).unwrap_or_default(), rest.get(cut..).unwrap_or_default());
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let to: Grant = if has_port { authority.parse() } else { format!("{authority}:80").parse() }
        .map_err(|_| "the address names no host that could be granted")?;
    let is = |header: &httparse::Header<'_>, name: &str| header.name.eq_ignore_ascii_case(name);
    let has_body = |header: &httparse::Header<'_>| {
        is(header, "transfer-encoding") || (is(header, "content-length") && header.value != b"0")
    };
    if headers.iter().any(has_body) {
        return Err("a request with a body isn't taken");
    }
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", host_header(&to)).into_bytes();
    for header in headers.iter().filter(|header| !OURS.iter().any(|ours| is(header, ours))) {
        head.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
    }
    head.extend(b"Connection: close\r\n\r\n");
    Ok(Request::Plain { to, head })
}

fn host_header(to: &Grant) -> String {
    match (&to.host, to.port) {
        (Destination::Name(name), 80) => name.clone(),
        _ => to.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(head: &str) -> Result<String, &'static str> {
        parse(head.as_bytes()).map(|request| request.target().to_string())
    }

    #[test]
    fn a_tunnel_goes_where_its_line_says_whatever_the_headers_say() {
        let head = "CONNECT evil.example:443 HTTP/1.1\r\nHost: api.github.com:443\r\n\r\n";
        assert_eq!(target(head).unwrap(), "evil.example:443");
        assert!(target("CONNECT user@api.github.com:443 HTTP/1.1\r\n\r\n").is_err());
        assert!(target("CONNECT http://api.github.com/ HTTP/1.1\r\n\r\n").is_err());
    }

    #[test]
    fn a_plain_request_is_written_anew_with_its_own_host() {
        let head = "GET http://Example.com/a?b#c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\nAccept: */*\r\n\r\n";
        let Ok(Request::Plain { to, head }) = parse(head.as_bytes()) else { panic!("not taken") };
        assert_eq!(to.to_string(), "example.com:80");
        let expected = "GET /a?b HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), expected);
        assert_eq!(target("GET http://[::1]/ HTTP/1.1\r\n\r\n").unwrap(), "[::1]:80");
        assert_eq!(target("GET http://a.example:8080?x HTTP/1.1\r\n\r\n").unwrap(), "a.example:8080");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://user:pw@a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\n Host: b.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nHost : b.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\nHost: b.example\r\n\r\n",
            "GET http://a.example/\tHTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/2\r\n\r\n",
            "GET  http://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1 x\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "connect a.example:443 HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX: a\rb\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX: a\n\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX: a\u{0}b\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
            "GET http://a.example/ä HTTP/1.1\r\n\r\n",
            "GET http://a.example/\u{7f} HTTP/1.1\r\n\r\n",
            "\nGET http://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\n\r\nGET http://b.example/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(parse(head.as_bytes()).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_hand_on_a_second_request(mut bytes: Vec<u8>, host in "[a-z]{1,8}", path in "[ -~\r\n]{0,40}") {
            bytes.extend(b"\r\n\r\n");
            let made = format!("GET http://{host}/{path} HTTP/1.1\r\n\r\n").into_bytes();
            for head in [bytes, made] {
                if let Ok(Request::Plain { head, .. }) = parse(&head) {
                    let text = String::from_utf8(head).unwrap();
                    prop_assert_eq!(text.matches("\r\n\r\n").count(), 1);
                    prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
                }
            }
        }
    }
}
