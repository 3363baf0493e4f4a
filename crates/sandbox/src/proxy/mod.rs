//! The only way from a sandbox to the network: a small HTTP proxy in our own process, which knows the granted hosts.
//!
//! The proxy accepts `CONNECT` and `GET`/`HEAD` with an absolute address, for exactly the granted names and ports. The
//! proxy resolves the name, refuses private addresses (unless granted literally), and dials the checked address, so a
//! later DNS change has no effect. Everything is bounded, and the traffic is never logged.

mod grant;
pub(super) mod relay;
mod request;
mod serve;

use std::{
    fmt,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _},
    os::unix::net::UnixListener,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use reveille_base::file::create_private_dir;

pub use self::grant::Grant;
use self::relay::{RelayLimits, Stream};

/// Maximum number of open connections; further ones are closed at once.
const MAX_CONNECTIONS: usize = 64;
/// Timeout for connecting to a host.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes still read from a refused client before closing.
const MAX_DRAINED_BYTES: usize = 256 << 10;
/// Timeout of each of these reads.
const HANG_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Resolves a name.
pub type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync;
/// Dials an address.
pub type Dial = dyn Fn(SocketAddr, Duration) -> io::Result<TcpStream> + Send + Sync;

/// The proxy's access to the outside world, replaceable in tests.
#[derive(Clone)]
pub struct ProxyWorld {
    /// Resolves names to addresses.
    pub resolve: Arc<Resolve>,
    /// Connects to an address.
    pub dial: Arc<Dial>,
}

impl ProxyWorld {
    /// Returns the machine's own resolver and network.
    pub fn from_system() -> Self {
        Self {
            resolve: Arc::new(|name, port| Ok((name, port).to_socket_addrs()?.map(|found| found.ip()).collect())),
            dial: Arc::new(|address, timeout| TcpStream::connect_timeout(&address, timeout)),
        }
    }
}

impl fmt::Debug for ProxyWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyWorld")
    }
}

/// State shared by all threads of a proxy.
struct Shared {
    grants: Vec<Grant>,
    outside: ProxyWorld,
    limits: RelayLimits,
    open: AtomicUsize,
}

/// A running proxy. Dropping it stops accepting and closes open connections.
pub struct Proxy {
    stop: Arc<AtomicBool>,
    /// Connects to the proxy, to wake the accepting thread after `stop` is set.
    wake: Box<dyn Fn() + Send + Sync>,
    dir: Option<PathBuf>,
    port: Option<u16>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("dir", &self.dir).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Listens on a Unix socket in a new private directory, to be mounted into the sandbox.
    ///
    /// # Errors
    /// The directory or the socket couldn't be created.
    pub fn listen_on_socket(grants: Vec<Grant>, outside: ProxyWorld) -> io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("reveille-{:016x}", fastrand::u64(..)));
        create_private_dir(&dir)?;
        let path = dir.join(SOCKET_NAME);
        let listener = UnixListener::bind(&path)?;
        let wake = Box::new(move || drop(std::os::unix::net::UnixStream::connect(&path)));
        let stop = start_accepting(grants, outside, move || Ok(listener.accept()?.0));
        Ok(Self { stop, wake, dir: Some(dir), port: None })
    }

    /// Listens on a loopback port, for sandboxes that share this machine's network.
    ///
    /// # Errors
    /// No port is available.
    pub fn listen_on_loopback(grants: Vec<Grant>, outside: ProxyWorld) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let wake = Box::new(move || drop(TcpStream::connect(address)));
        let stop = start_accepting(grants, outside, move || Ok(listener.accept()?.0));
        Ok(Self { stop, wake, dir: None, port: Some(address.port()) })
    }

    /// Returns the socket's path; `None` when listening on loopback.
    pub fn socket_path(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(SOCKET_NAME))
    }

    /// Returns the port; `None` when listening on a socket.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

/// File name of the socket.
const SOCKET_NAME: &str = "proxy.sock";

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        (self.wake)();
        if let Some(dir) = &self.dir {
            std::fs::remove_dir_all(dir).ok();
        }
    }
}

/// Accepts connections on one thread, and serves each on a thread of its own, until stopped.
fn start_accepting<S: Stream>(
    grants: Vec<Grant>,
    outside: ProxyWorld,
    accept: impl Fn() -> io::Result<S> + Send + 'static,
) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let limits = RelayLimits { stop: Arc::clone(&stop), ..RelayLimits::default() };
    let shared = Arc::new(Shared { grants, outside, limits, open: AtomicUsize::new(0) });
    thread::spawn(move || {
        while !shared.limits.stop.load(Ordering::SeqCst) {
            match accept() {
                Ok(client) => serve_on_thread(&shared, client),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    });
    stop
}

fn serve_on_thread<S: Stream>(shared: &Arc<Shared>, client: S) {
    if shared.open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
        shared.open.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        serve::serve_client(&shared, client);
        shared.open.fetch_sub(1, Ordering::SeqCst);
    });
}

/// Returns the variables that point programs to a proxy on a loopback port; empty without a port.
pub(super) fn build_variables(port: Option<u16>) -> Vec<(&'static str, String)> {
    const NAMES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    // Programs reach their own servers on the sandbox's loopback directly. Node ignores proxies without the last variable.
    const RELATED: [(&str, &str); 3] =
        [("NO_PROXY", "localhost,127.0.0.1,::1"), ("no_proxy", "localhost,127.0.0.1,::1"), ("NODE_USE_ENV_PROXY", "1")];
    let Some(port) = port else { return Vec::new() };
    let proxies = NAMES.map(|name| (name, format!("http://127.0.0.1:{port}")));
    proxies.into_iter().chain(RELATED.map(|(name, value)| (name, value.to_owned()))).collect()
}

/// Reads byte by byte up to and including the empty line that ends a head. Later bytes stay in the stream.
fn read_head(stream: &mut impl Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while head.len() < max_bytes {
        if stream.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend(byte);
        if head.ends_with(b"\r\n\r\n") {
            return Ok(head);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the head is too long"))
}

/// Sends a short plain-text answer. Write errors are ignored because the client may be gone.
fn send_answer(stream: &mut impl Write, status: &str, body: &str) {
    let length = body.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}\n"
    );
    stream.write_all(text.as_bytes()).ok();
}

/// Closes a connection gracefully. An immediate close would discard the answer while the client is still writing.
fn hang_up(mut stream: impl Stream) {
    stream.shut_down(Shutdown::Write);
    let (mut buffer, mut left) = ([0; 4096], MAX_DRAINED_BYTES);
    if stream.set_timeouts(HANG_UP_TIMEOUT, HANG_UP_TIMEOUT).is_ok() {
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            left = left.saturating_sub(count);
            if left == 0 {
                break;
            }
        }
    }
    stream.shut_down(Shutdown::Both);
}

#[cfg(test)]
mod tests;
