//! From the sandbox's own loopback to our proxy: programs speak to proxies by TCP, and the only way out is a Unix socket.
//!
//! It runs beside the program, inside the same namespaces, and copies bytes; it decides nothing.

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

/// Listens on a port of this sandbox's loopback and has a helper forward what comes. Returns the port.
pub(super) fn start(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let socket = socket.to_str().ok_or_else(|| io::Error::other("the socket's path isn't UTF-8"))?;
    process::start_beside(&std::env::current_exe()?, &["forward", "--to", socket], OwnedFd::from(listener))?;
    Ok(port)
}

/// The helper: forwards each connection to the listening socket that is its standard input. Ends with the sandbox.
///
/// # Errors
/// Its standard input is no listening socket.
pub fn forward(to: &Path) -> io::Result<()> {
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    for client in listener.incoming() {
        let client = client?;
        let to = to.to_owned();
        thread::spawn(move || pass_on(&client, &to));
    }
    Ok(())
}

/// A connection that the proxy doesn't take is closed.
fn pass_on(client: &TcpStream, to: &Path) {
    if let Ok(proxy) = UnixStream::connect(to) {
        relay::both_ways(client, &proxy, &relay::RelayLimits::default());
    }
}
