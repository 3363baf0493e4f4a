//! The head of a request to the proxy, read strictly: what could be understood in two ways is refused. Values in, values out.

use super::grant::{Grant, Host};

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel of bytes to the target.
    Tunnel {
        /// To whom.
        to: Grant,
    },
    /// One plain request, to be sent to the target in these bytes.
    Plain {
        /// To whom.
        to: Grant,
        /// The request as the target gets it.
        head: Vec<u8>,
    },
}

impl Request {
    /// To whom.
    pub(super) fn to(&self) -> &Grant {
        match self {
            Self::Tunnel { to } | Self::Plain { to, .. } => to,
        }
    }
}

/// Headers that speak of the connection to us; they aren't handed on, nor is the `Host` that the client wrote.
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

/// Reads a head.
///
/// # Errors
/// Why it is refused, for the client.
pub(super) fn parse(head: &[u8]) -> Result<Request, &'static str> {
    let text = std::str::from_utf8(head).ok().filter(|text| text.is_ascii()).ok_or("the request isn't plain ASCII")?;
    let text = text.strip_suffix("\r\n\r\n").ok_or("the request isn't whole")?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let headers = lines.map(header).collect::<Option<Vec<_>>>().ok_or("a header is malformed")?;
    let mut words = first.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_version = matches!(version, Some("HTTP/1.1" | "HTTP/1.0")) && words.next().is_none();
    let target = target.filter(|target| is_version && target.bytes().all(|byte| byte.is_ascii_graphic()));
    let target = target.ok_or("the request line is malformed")?;
    match method {
        Some("CONNECT") => Ok(Request::Tunnel { to: target.parse().map_err(|_| "CONNECT wants a host and a port")? }),
        Some(method @ ("GET" | "HEAD")) => plain(method, target, &headers),
        _ => Err("only CONNECT, GET and HEAD are taken"),
    }
}

/// One header: a name of token characters right before its colon, no continuation lines, no control characters.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_value = |byte: u8| byte == b'\t' || !byte.is_ascii_control();
    (!name.is_empty() && name.bytes().all(is_token) && value.bytes().all(is_value)).then(|| (name, value.trim()))
}

fn plain(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Request, &'static str> {
    let rest = target.strip_prefix("http://").ok_or("a whole address is wanted, such as http://example.com/")?;
    let cut = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = (rest.get(..cut).unwrap_or_default(), rest.get(cut..).unwrap_or_default());
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let to: Grant = if has_port { authority.parse() } else { format!("{authority}:80").parse() }
        .map_err(|_| "the address names no host that could be granted")?;
    let has_body = |(name, value): &(&str, &str)| {
        name.eq_ignore_ascii_case("transfer-encoding") || (name.eq_ignore_ascii_case("content-length") && *value != "0")
    };
    if headers.iter().any(has_body) {
        return Err("a request with a body isn't taken");
    }
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", host_header(&to));
    for (name, value) in headers.iter().filter(|(name, _)| !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours))) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(Request::Plain { to, head: head.into_bytes() })
}

fn host_header(to: &Grant) -> String {
    match (&to.host, to.port) {
        (Host::Name(name), 80) => name.clone(),
        _ => to.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(head: &str) -> Result<String, &'static str> {
        parse(head.as_bytes()).map(|request| request.to().to_string())
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
