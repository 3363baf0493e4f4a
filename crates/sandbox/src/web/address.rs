//! The target of a URL, as far as its text tells. Values in, values out.
//!
//! One parser (WHATWG's, in the `url` crate) normalizes every spelling: decimal, octal, hexadecimal and short IPv4
//! addresses, percent-encoding, full-width digits and dots become the address they mean. Names are looked up and
//! checked in [`super::dial`].

use std::{collections::BTreeSet, net::IpAddr};

use reqwest::Url;

use reveille_base::net_guard;

use super::WebError;

/// Maximum length of a URL, in bytes.
pub(super) const MAX_URL_BYTES: usize = 2_000;
/// Allowed ports. Other ports serve protocols that a crafted request could speak.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Granted hosts outside the public internet, each with one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(BTreeSet<(String, u16)>);

impl Grants {
    /// Parses `host:port` texts such as `nas.local:8080` or `[::1]:3000`. Invalid texts grant nothing.
    pub fn new<'a>(granted: impl IntoIterator<Item = &'a str>) -> Self {
        Self(granted.into_iter().filter_map(parse_grant).collect())
    }

    fn contains(&self, host: &str, port: u16) -> bool {
        self.0.contains(&(host.to_owned(), port))
    }
}

/// Parses a grant into the host in URL spelling, and the port.
fn parse_grant(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let url = Url::parse(&format!("http://{host}/")).ok()?;
    let is_host_alone = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.port().is_none();
    let host = url.host_str().filter(|_| is_host_alone && url.username().is_empty() && url.password().is_none())?;
    Some((without_last_dot(host).to_owned(), port.parse().ok().filter(|port| *port != 0)?))
}

/// A checked URL; its addresses are checked later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DialTarget {
    pub(super) url: Url,
    /// The host as in the URL, including brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The literal address, if the host isn't a name.
    pub(super) literal: Option<IpAddr>,
    /// True if a person granted this host and port, and no server redirected here.
    pub(super) is_granted: bool,
    /// True if a server redirected here.
    pub(super) is_redirect: bool,
}

impl DialTarget {
    /// Checks a URL requested by the model.
    pub(super) fn parse_url(text: &str, grants: &Grants) -> Result<Self, WebError> {
        if text.len() > MAX_URL_BYTES {
            return Err(WebError::Url("The URL is longer than 2,000 bytes."));
        }
        // The parser would drop some of these characters, and the person must have seen the same URL.
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(WebError::Url("The URL has spaces or control characters: write them as %20 and the like."));
        }
        let url = Url::parse(text).map_err(|_| {
            WebError::Url("This isn't a valid URL: it has to begin with https:// or http:// and name a host.")
        })?;
        Self::from_url(url, grants, None)
    }

    /// Checks a redirect from this target.
    pub(super) fn resolve_redirect(&self, location: &str, grants: &Grants) -> Result<Self, WebError> {
        let url = self.url.join(location).ok().filter(|url| url.as_str().len() <= MAX_URL_BYTES);
        let url = url.ok_or(WebError::Redirect("The server redirects to something that isn't a URL."))?;
        Self::from_url(url, grants, Some(self)).map_err(|error| match error {
            WebError::Url(_) => WebError::Redirect("The server redirects to a URL that I don't open."),
            error => error,
        })
    }

    fn from_url(url: Url, grants: &Grants, from: Option<&Self>) -> Result<Self, WebError> {
        match (url.scheme(), from.map(|from| from.url.scheme())) {
            ("http", Some("https")) => {
                return Err(WebError::Redirect("The server redirects from https to http, where others could listen."));
            }
            ("http" | "https", _) => {}
            _ => return Err(WebError::Url("Only http and https are supported.")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebError::Url("The URL holds a name or a password before its host; leave them out."));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).map(str::to_owned);
        let (Some(host), Some(port)) = (host, url.port_or_known_default()) else {
            return Err(WebError::Url("The URL names no host."));
        };
        // A grant covers only the requested URL. A page on the internet can't use the grant by a redirect.
        let is_granted = from.is_none_or(|from| from.is_granted) && grants.contains(without_last_dot(&host), port);
        if !is_granted && !PORTS.contains(&port) {
            return Err(WebError::Url("Pages are only read on the ports 80, 443, 8080 and 8443."));
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        Ok(Self { url, host, port, literal, is_granted, is_redirect: from.is_some() })
    }
}

/// Checks a URL as far as its text tells.
///
/// # Errors
/// The defect of the URL.
pub fn check_url(text: &str, grants: &Grants) -> Result<(), WebError> {
    let target = DialTarget::parse_url(text, grants)?;
    let is_inside = target.literal.map_or_else(
        || without_last_dot(&target.host).rsplit('.').next() == Some("localhost"),
        |address| !net_guard::is_public(address),
    );
    if is_inside && !target.is_granted {
        return Err(WebError::NotPublic { what: "an address of this machine or its network", is_redirect: false });
    }
    Ok(())
}

fn without_last_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<DialTarget, WebError> {
        DialTarget::parse_url(text, &Grants::new(["nas.local:5000", "127.0.0.1:8080", "[::1]:3000"]))
    }

    #[test]
    fn what_is_asked_for_is_http_without_a_password_and_on_a_port_for_pages() {
        for fine in ["https://example.org", "http://example.org:8080/a?b#c", "HTTPS://EXAMPLE.org:8443/"] {
            assert!(asked(fine).is_ok(), "{fine}");
        }
        for refused in [
            "",
            "example.org",
            "//example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "gopher://example.org/",
            "data:text/html,x",
            "javascript:alert(1)",
            "http://",
            "http:///",
            "https://me@example.org/",
            "https://me:word@example.org/",
            "https://:word@example.org/",
            "https://example.org:22/",
            "https://example.org:0/",
            "https://example.org:70000/",
            "https://exa mple.org/",
            "https://example.org/\n",
            "ht\ttps://example.org/",
            "https://[fe80::1%25eth0]/",
        ] {
            assert!(matches!(asked(refused), Err(WebError::Url(_))), "{refused}: {:?}", asked(refused));
        }
        assert!(asked(&format!("https://example.org/{}", "a".repeat(2_000))).is_err());
    }

    #[test]
    fn a_grant_is_one_host_on_one_port_in_every_spelling_and_nothing_more() {
        for granted in [
            "http://nas.local:5000/",
            "http://NAS.local.:5000/x",
            "http://127.0.0.1:8080/",
            "http://2130706433:8080/",
            "http://[::1]:3000/",
        ] {
            assert!(asked(granted).unwrap().is_granted, "{granted}");
        }
        for not in ["http://nas.local/", "http://127.0.0.1/", "http://127.0.0.2:8080/", "https://[::1]:8443/"] {
            assert!(!asked(not).unwrap().is_granted, "{not}");
        }
        for nothing in
            ["", "host", "host:", ":80", "host:0", "host:99999", "host/path:80", "user@host:80", "a b:80", "*:80"]
        {
            let granted = Grants::new([nothing]).0;
            assert!(granted.iter().all(|(host, _)| host == "*"), "{nothing}: {granted:?}");
        }
    }

    #[test]
    fn a_redirect_loses_no_encryption_and_borrows_no_grant() {
        let grants = Grants::new(["127.0.0.1:8080", "nas.local:5000"]);
        let outside = DialTarget::parse_url("https://example.org/a/b", &grants).unwrap();
        assert_eq!(outside.resolve_redirect("../c?d", &grants).unwrap().url.as_str(), "https://example.org/c?d");
        assert!(matches!(outside.resolve_redirect("http://example.org/", &grants), Err(WebError::Redirect(_))));
        assert!(!outside.resolve_redirect("https://127.0.0.1:8080/", &grants).unwrap().is_granted);
        assert!(matches!(outside.resolve_redirect("https://nas.local:5000/", &grants), Err(WebError::Redirect(_))));
        assert!(matches!(outside.resolve_redirect("https://me@example.org/", &grants), Err(WebError::Redirect(_))));
        assert!(matches!(outside.resolve_redirect("file:///etc/passwd", &grants), Err(WebError::Redirect(_))));

        let inside = DialTarget::parse_url("http://127.0.0.1:8080/", &grants).unwrap();
        assert!(inside.resolve_redirect("http://nas.local:5000/", &grants).unwrap().is_granted);
        let left = inside.resolve_redirect("http://example.org/", &grants).unwrap();
        assert!(!left.resolve_redirect("http://127.0.0.1:8080/", &grants).unwrap().is_granted);
    }

    #[test]
    fn what_no_look_could_reach_is_known_by_its_text() {
        let grants = Grants::new(["127.0.0.1:8080"]);
        let check = |url: &str| check_url(url, &grants).is_ok();
        for url in ["https://a.example/", "http://1.1.1.1/x", "http://127.0.0.1:8080/"] {
            assert!(check(url), "{url}");
        }
        for url in [
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "http://x.localhost/",
            "https://user@a.example/",
            "ftp://a.example",
        ] {
            assert!(!check(url), "{url}");
        }
    }
}
