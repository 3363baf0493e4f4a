//! HTTP on a loopback port: one request per connection, with limits for unknown programs that find the port.
//!
//! A client is unknown until its request's head arrives. Pending heads therefore have a limit of their own, so that
//! idle connections don't use up the places of requests.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

/// Maximum number of concurrent requests; more have to wait.
const MAX_REQUESTS: usize = 32;
/// Maximum number of connections with a pending head; a further one ends the oldest.
const MAX_HEADS: usize = 64;
/// Timeout of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of attempts to find a port that is free in both families.
const MAX_PORT_TRIES: usize = 16;

/// Listens on a loopback port for IPv4 and IPv6, because a browser tries `[::1]` first for a `localhost` name. Another
/// program listening there would get our requests. Without IPv6 only IPv4 is used. Port 0 means any free port.
///
/// # Errors
/// The port can't be used, or another program has it in one of the families.
pub async fn listen(port: u16) -> io::Result<Vec<TcpListener>> {
    let mut tries = 1;
    loop {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let first =
            first.await.map_err(|error| explain_error(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &error))?;
        let chosen = first.local_addr()?.port();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, chosen)).await {
            Ok(second) => return Ok(vec![first, second]),
            Err(error) if is_family_missing(&error) => return Ok(vec![first]),
            Err(error) if port == 0 && error.kind() == io::ErrorKind::AddrInUse && tries < MAX_PORT_TRIES => tries += 1,
            Err(error) => return Err(explain_error(SocketAddr::from((Ipv6Addr::LOCALHOST, chosen)), &error)),
        }
    }
}

/// Returns true if this machine has no usable IPv6.
fn is_family_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn explain_error(address: SocketAddr, error: &io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program has it".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("{address} can't be listened on: {why}"))
}

/// Refuses a listener reachable from other machines.
///
/// # Errors
/// The address isn't a loopback address.
pub fn is_loopback_only(listener: &TcpListener) -> io::Result<()> {
    let address = listener.local_addr()?;
    match address.ip().is_loopback() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{address} isn't a loopback address"))),
    }
}

/// Answers requests until dropped; all connections end then.
pub async fn serve<B, A>(
    listeners: &[TcpListener],
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) -> Infallible
where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let mut heads: VecDeque<Head> = VecDeque::new();
    let mut turn = 0_usize;
    loop {
        heads.retain(Head::is_awaited);
        tokio::select! {
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept_connection(listeners, turn), if connections.len() < MAX_REQUESTS + heads.len() => match accepted {
                Ok(stream) => {
                    turn = turn.wrapping_add(1);
                    while heads.len() >= MAX_HEADS && let Some(oldest) = heads.pop_front() {
                        oldest.connection.abort();
                    }
                    let has_come = Arc::new(AtomicBool::new(false));
                    let connection = connections.spawn(serve_connection(stream, answer.clone(), has_come.clone()));
                    heads.push_back(Head { has_come, connection });
                    // Lets the new connection read its head before the next accept.
                    tokio::task::yield_now().await;
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// Accepts a connection of any listener, in turn, so that a busy listener doesn't starve the others.
async fn accept_connection(listeners: &[TcpListener], turn: usize) -> io::Result<TcpStream> {
    poll_fn(|context| {
        let from = turn.checked_rem(listeners.len()).unwrap_or_default();
        for listener in listeners.iter().cycle().skip(from).take(listeners.len()) {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted.map(|(stream, _)| stream));
            }
        }
        Poll::Pending
    })
    .await
}

/// A connection with a pending head.
struct Head {
    has_come: Arc<AtomicBool>,
    connection: AbortHandle,
}

impl Head {
    fn is_awaited(&self) -> bool {
        !self.has_come.load(Ordering::Relaxed) && !self.connection.is_finished()
    }
}

/// Serves one request. A kept-alive connection would wait for another head.
async fn serve_connection<B, A>(
    stream: TcpStream,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    has_come: Arc<AtomicBool>,
) where
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
{
    let service = service_fn(move |request| {
        has_come.store(true, Ordering::Relaxed);
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a loopback connection broke");
    }
}
