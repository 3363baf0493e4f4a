//! One connection to the proxy: read the request, check the target, connect and copy.

use std::{
    io::{self, Read, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use reveille_base::net_guard;

use super::{
    DIAL_TIMEOUT, Shared,
    grant::{Destination, Grant},
    hang_up, read_head,
    relay::{self, Stream},
    request::{self, Request},
    send_answer,
};

/// Maximum length of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of a name's addresses that are tried.
const MAX_ADDRESSES: usize = 4;

/// A refusal by the proxy: a status line and the reason.
type Refusal = (&'static str, String);

pub(super) fn serve_client<S: Stream>(shared: &Shared, mut client: S) {
    match open_request(shared, &mut client) {
        Ok((Request::Tunnel { .. }, target)) => {
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").is_ok() {
                relay::copy_both_ways(&client, &target, &shared.limits);
            }
        }
        Ok((Request::Plain { head, .. }, mut target)) => {
            // One request, one answer: further bytes of the client are dropped.
            if target.write_all(&head).is_ok() {
                client = relay::copy_one_way(target, client, &shared.limits);
            }
            hang_up(client);
        }
        Err((status, why)) => {
            send_answer(&mut client, status, &why);
            hang_up(client);
        }
    }
}

/// Reads the request and connects to its target.
fn open_request<S: Stream>(shared: &Shared, client: &mut S) -> Result<(Request, TcpStream), Refusal> {
    let bad = |why: String| ("400 Bad Request", why);
    client.set_timeouts(shared.limits.head, shared.limits.head).map_err(|error| bad(error.to_string()))?;
    let mut bounded = Until { stream: client, end: Instant::now() + shared.limits.head };
    let head =
        read_head(&mut bounded, MAX_HEAD_BYTES).map_err(|error| bad(format!("the request can't be read: {error}")))?;
    let request = request::parse(&head).map_err(|why| bad(why.to_owned()))?;
    let to = request.target();
    // fault: granted-host-reached-port
    // fault: confined-program-reaches-hosts
    if !shared.grants.contains(to) {
        // The host is chosen by the model and may contain anything, so the info level leaves it out.
        tracing::info!("a confined program asked for a host that isn't granted");
        tracing::debug!(%to, "that host was refused");
        return Err((
            "403 Forbidden",
            format!("{to} isn't granted; policy.toml says which hosts are ([network] hosts)"),
        ));
    }
    let target = dial_target(shared, to).map_err(|why| ("502 Bad Gateway", why))?;
    tracing::debug!(%to, "a confined program is connected");
    Ok((request, target))
}

/// Connects only to a checked address.
fn dial_target(shared: &Shared, to: &Grant) -> Result<TcpStream, String> {
    let addresses = match &to.host {
        Destination::Address(address) => vec![*address],
        Destination::Name(name) => {
            let found =
                (shared.outside.resolve)(name, to.port).map_err(|error| format!("{to} can't be found: {error}"))?;
            // fault: granted-name-leads-inside
            check_addresses(to, &found)?;
            found
        }
    };
    let mut failure = format!("{to} has no address");
    for address in addresses.into_iter().take(MAX_ADDRESSES) {
        match (shared.outside.dial)(SocketAddr::new(address, to.port), DIAL_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = format!("{to} can't be reached: {error}"),
        }
    }
    Err(failure)
}

/// Refuses a name if any of its addresses isn't public, since that suggests an attack.
fn check_addresses(to: &Grant, addresses: &[IpAddr]) -> Result<(), String> {
    let inner = addresses.iter().find_map(|address| Some((address, net_guard::why_not_public(*address)?)));
    match inner {
        Some((address, what)) => {
            Err(format!("{to} leads to {address}, which isn't on the public internet: it is {what}"))
        }
        None => Ok(()),
    }
}

/// A reader with a deadline: a slow client can't keep the connection open byte by byte.
struct Until<'a, S> {
    stream: &'a mut S,
    end: Instant,
}

impl<S: Stream> Read for Until<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_timeouts(left.max(Duration::from_millis(1)), left.max(Duration::from_millis(1)))?;
        self.stream.read(buffer)
    }
}
