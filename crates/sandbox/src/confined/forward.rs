//! The forwarder from the sandbox's loopback to our proxy. Programs speak to proxies by TCP, but the only way out is a Unix socket.
//!
//! The forwarder runs beside the program, inside the same namespaces, and only copies bytes.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    thread,
};

use reveille_base::process;

use crate::proxy::relay;

/// Listens on a loopback port of this sandbox and starts a helper that forwards connections. Returns the port.
pub(super) fn start_forwarder(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let socket = socket.to_str().ok_or_else(|| io::Error::other("the socket's path isn't UTF-8"))?;
    process::start_helper(&std::env::current_exe()?, &["forward", "--to", socket], OwnedFd::from(listener))?;
    Ok(port)
}

/// The helper: forwards each connection to the listening socket on its standard input. Ends with the sandbox.
///
/// # Errors
/// Standard input isn't a listening socket.
pub fn forward_connections(to: &Path) -> io::Result<()> {
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    for client in listener.incoming() {
        let client = client?;
        let to = to.to_owned();
        thread::spawn(move || relay_connection(&client, &to));
    }
    Ok(())
}

/// Relays one connection to the proxy, or closes the connection if the proxy refuses.
fn relay_connection(client: &TcpStream, to: &Path) {
    if let Ok(proxy) = UnixStream::connect(to) {
        relay::copy_both_ways(client, &proxy, &relay::RelayLimits::default());
    }
}
