//! The one way from a sandbox to the network: a small HTTP proxy in our own process, which knows the granted hosts.
//!
//! It takes `CONNECT` and `GET`/`HEAD` with a whole address, for exactly the granted names and ports. It resolves the name
//! itself, refuses what isn't on the public internet (unless that very address was granted), and dials the address that it checked:
//! a name that leads elsewhere a moment later leads nowhere. Everything is bounded; nothing of what passes is logged.

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

/// At most so many connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection to a host may take to come about.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How much is still taken from a client that is told no more, in bytes, and how long the next of it is waited for.
const MAX_UNHEARD_BYTES: usize = 256 << 10;
const HANG_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to pause when no connection can be accepted (no descriptors are left, say).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Resolves a name.
pub type Resolve = dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync;
/// Dials an address.
pub type Dial = dyn Fn(SocketAddr, Duration) -> io::Result<TcpStream> + Send + Sync;

/// The world as the proxy meets it.
#[derive(Clone)]
pub struct ProxyWorld {
    /// Names to addresses.
    pub resolve: Arc<Resolve>,
    /// Addresses to connections.
    pub dial: Arc<Dial>,
}

impl ProxyWorld {
    /// The machine's own resolver and network.
    pub fn real() -> Self {
        Self {
            resolve: Arc::new(|name, port| Ok((name, port).to_socket_addrs()?.map(|found| found.ip()).collect())),
            dial: Arc::new(|address, timeout| TcpStream::connect_timeout(&address, timeout)),
        }
    }
}

impl fmt::Debug for ProxyWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

/// What all threads of a proxy share.
struct Shared {
    grants: Vec<Grant>,
    outside: ProxyWorld,
    limits: RelayLimits,
    open: AtomicUsize,
}

/// A proxy at work. Dropped, it takes no more and ends what is open.
pub struct Proxy {
    stop: Arc<AtomicBool>,
    /// Connects to it, so that the thread that accepts wakes up and sees that it is over.
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
    /// Listens on a Unix socket in a new directory of ours alone, to be shown to the sandbox.
    ///
    /// # Errors
    /// The directory or the socket couldn't be made.
    pub fn on_socket(grants: Vec<Grant>, outside: ProxyWorld) -> io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("reveille-{:016x}", fastrand::u64(..)));
        create_private_dir(&dir)?;
        let path = dir.join(SOCKET_NAME);
        let listener = UnixListener::bind(&path)?;
        let wake = Box::new(move || drop(std::os::unix::net::UnixStream::connect(&path)));
        let stop = start(grants, outside, move || Ok(listener.accept()?.0));
        Ok(Self { stop, wake, dir: Some(dir), port: None })
    }

    /// Listens on a loopback port, for sandboxes that share this machine's network.
    ///
    /// # Errors
    /// No port could be had.
    pub fn on_loopback(grants: Vec<Grant>, outside: ProxyWorld) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let wake = Box::new(move || drop(TcpStream::connect(address)));
        let stop = start(grants, outside, move || Ok(listener.accept()?.0));
        Ok(Self { stop, wake, dir: None, port: Some(address.port()) })
    }

    /// Where its socket is, if it listens on one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(SOCKET_NAME))
    }

    /// Its port, if it listens on loopback.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

/// The socket's name in its directory.
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

/// Accepts connections on a thread of its own, each of which is served on another, until it is told to stop.
fn start<S: Stream>(
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
        serve::serve(&shared, client);
        shared.open.fetch_sub(1, Ordering::SeqCst);
    });
}

/// The variables by which programs find a proxy on a loopback port; none without one.
pub(super) fn variables(port: Option<u16>) -> Vec<(&'static str, String)> {
    const NAMES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    // A program's own servers on the sandbox's loopback are reached directly. Node asks whether to look at all.
    const BESIDE: [(&str, &str); 3] =
        [("NO_PROXY", "localhost,127.0.0.1,::1"), ("no_proxy", "localhost,127.0.0.1,::1"), ("NODE_USE_ENV_PROXY", "1")];
    let Some(port) = port else { return Vec::new() };
    let proxies = NAMES.map(|name| (name, format!("http://127.0.0.1:{port}")));
    proxies.into_iter().chain(BESIDE.map(|(name, value)| (name, value.to_owned()))).collect()
}

/// Reads up to and with the empty line that ends a head, byte by byte of what is there: nothing beyond it is taken.
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

/// Answers in words; whoever is gone doesn't hear it.
fn answer(stream: &mut impl Write, status: &str, why: &str) {
    let length = why.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    );
    stream.write_all(text.as_bytes()).ok();
}

/// Ends a connection whose other side may still be writing: closed at once, what it was told would be lost with what it says.
fn hang_up(mut stream: impl Stream) {
    stream.end(Shutdown::Write);
    let (mut buffer, mut left) = ([0; 4096], MAX_UNHEARD_BYTES);
    if stream.bound(HANG_UP_TIMEOUT, HANG_UP_TIMEOUT).is_ok() {
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            left = left.saturating_sub(count);
            if left == 0 {
                break;
            }
        }
    }
    stream.end(Shutdown::Both);
}

#[cfg(test)]
mod tests;
