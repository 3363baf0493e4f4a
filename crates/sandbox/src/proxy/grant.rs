//! A network destination granted by a person: a name or an address, and a port. Each has exactly one spelling; any other is refused.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

/// Maximum length of a host name, in bytes (RFC 1035).
const MAX_NAME_BYTES: usize = 253;
/// Maximum length of a part between dots, in bytes.
const MAX_LABEL_BYTES: usize = 63;

/// A host and a port: `api.github.com:443`, `192.168.1.20:8080`, `[fd00::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    pub(super) host: Destination,
    pub(super) port: u16,
}

/// The target host of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Destination {
    /// A name, in lower case.
    Name(String),
    /// A literal address. Granted explicitly, it may be private.
    Address(IpAddr),
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{text}: {what}; expected a host and a port, such as api.github.com:443");
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("there is no port"))?;
        let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
        let port =
            port.parse().ok().filter(|port| is_port && *port != 0).ok_or_else(|| wrong("the port isn't a number"))?;
        let host = Destination::parse(host).ok_or_else(|| wrong("the host is neither a name nor an address"))?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Destination::Name(name) => write!(f, "{name}:{}", self.port),
            Destination::Address(address) => write!(f, "{}", std::net::SocketAddr::new(*address, self.port)),
        }
    }
}

impl Destination {
    fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner.parse::<Ipv6Addr>().ok().map(|address| Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        is_name(text).then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

/// Accepts letters, digits, hyphens, underscores and dots. A last part that begins with a digit spells an address
/// (`127.1`, `0x7f.1`, `2130706433`) and is refused.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(is_allowed)
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= MAX_NAME_BYTES
        && text.split('.').all(is_label)
        && !last.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_shown_as_it_was_written() {
        for text in ["api.github.com:443", "localhost:8080", "192.168.1.20:80", "[fd00::1]:443", "a_b.example:1"] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        assert_eq!("API.GitHub.com:443".parse::<Grant>().unwrap().to_string(), "api.github.com:443");
    }

    #[test]
    fn other_spellings_of_addresses_and_hosts_are_refused() {
        for text in [
            "",
            ":443",
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+443",
            "example.com: 443",
            "example.com.:443",
            ".example.com:443",
            "a..b:443",
            "user@example.com:443",
            "exa mple.com:443",
            "example.com/:443",
            "*.example.com:443",
            "127.1:80",
            "0x7f.0.0.1:80",
            "0x7f000001:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "127.0.0.1.:80",
            "::1:80",
            "[::1:80",
            "[::1%lo]:80",
            "[127.0.0.1]:80",
            "ｅxample.com:443",
            "example.com:443:80",
            "example.com\0:443",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }
}
