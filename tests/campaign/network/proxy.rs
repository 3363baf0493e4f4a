//! The network between a program and a server: a proxy on loopback that passes whole requests on, one after the other, until the one
//! that it was ordered to fail.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader},
    net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{
    fault::{Fault, Knowledge, Target},
    wire::{chunks, events_of, framed, garble, head_of, kept, label, send},
};
use crate::support::http::{Message, Request, lock, read_message, read_request};

/// The time a server is gone for a moment.
const GONE: Duration = Duration::from_millis(300);
/// The maximum of pieces in a slow answer, with a pause between them.
const SLOW_PIECES: usize = 40;
const SLOW_PAUSE: Duration = Duration::from_millis(5);

/// The label for the time before the first request.
pub(super) const START: &str = "start";

/// The request that fails, and its fault.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) fault: Fault,
    /// The request's name, as [`label`] returns it.
    pub(super) label: String,
    /// The request's number among those of the same name, from 0.
    pub(super) nth: usize,
    /// All later ones fail too, until [`Proxy::mend`].
    pub(super) lasts: bool,
}

/// A received request and its fate.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) label: String,
    pub(super) nth: usize,
    pub(super) body: Vec<u8>,
    pub(super) at: Instant,
    /// `None` while the request is in progress.
    pub(super) known: Option<Knowledge>,
    /// The request's fault.
    pub(super) fault: Option<Fault>,
    /// The number of events in the answer's stream.
    pub(super) events: usize,
}

/// Checks each request before it is passed on; an error fails the trial.
pub(super) type Guard = Box<dyn Fn(&str, &Request) -> Result<(), String> + Send + Sync>;

/// The running proxy.
pub(super) struct Proxy {
    shared: Arc<Shared>,
    /// Reserves the port while no listener is open.
    _holder: OwnedFd,
    opener: Option<JoinHandle<()>>,
}

struct Shared {
    address: SocketAddr,
    upstream: SocketAddr,
    target: Target,
    guard: Option<Guard>,
    state: Mutex<State>,
    /// A state other threads wait for has changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    order: Option<Order>,
    /// The first time the order was met.
    met: Option<Instant>,
    exchanges: Vec<Exchange>,
    counts: HashMap<String, usize>,
    /// Telegram's last non-empty batch.
    last_batch: Option<Vec<u8>>,
    problems: Vec<String>,
    door: Door,
    listener: Option<JoinHandle<()>>,
    connections: Vec<Weak<TcpStream>>,
    /// The source addresses of connections closed unserved when the server went away.
    turned_away: Vec<SocketAddr>,
    is_over: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Door {
    #[default]
    Open,
    /// Closed until that time.
    ClosedUntil(Option<Instant>),
}

impl Proxy {
    /// Starts before `upstream`, an address such as `http://127.0.0.1:8080`.
    pub(super) fn start(target: Target, upstream: &str, guard: Option<Guard>) -> Self {
        let upstream = upstream.trim_start_matches("http://").parse().expect("the server's address");
        let holder = bound(0).expect("a free port");
        let address = rustix::net::getsockname(&holder).expect("its address");
        let address = SocketAddr::try_from(address).expect("an IPv4 address");
        let shared = Shared { address, upstream, target, guard, state: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        shared.open();
        let opening = Arc::clone(&shared);
        let opener = Some(std::thread::spawn(move || opening.reopen_in_time()));
        Self { shared, _holder: holder, opener }
    }

    /// `http://127.0.0.1:port`.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Orders a fault.
    pub(super) fn order(&self, order: Order) {
        let is_at_start = order.label == START;
        let until = (!order.lasts).then(|| Instant::now() + GONE);
        {
            let mut state = self.shared.lock();
            state.met = is_at_start.then(Instant::now);
            state.order = Some(order);
        }
        if is_at_start {
            self.shared.close(until);
        }
    }

    /// Ends all faults. Returns whether the ordered request ever came.
    pub(super) fn mend(&self) -> bool {
        let mut state = self.shared.lock();
        let met = state.met.is_some() || state.order.is_none();
        state.order = None;
        if state.door != Door::Open {
            state.door = Door::ClosedUntil(Some(Instant::now()));
        }
        self.shared.changed.notify_all();
        while state.door != Door::Open {
            state = self.shared.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        met
    }

    /// Tells whether a request is still to fail.
    pub(super) fn is_ordered(&self) -> bool {
        self.shared.lock().order.is_some()
    }

    /// The time since the ordered fault was first met.
    pub(super) fn met_for(&self) -> Option<Duration> {
        self.shared.lock().met.map(|at| at.elapsed())
    }

    /// All requests so far, in order of arrival.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.lock().exchanges.clone()
    }

    /// Returns a function that waits until a request of that name has come, with a time limit.
    pub(super) fn watch(&self) -> impl Fn(&str, Duration) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |label, at_most| {
            let has_come = |state: &State| state.is_over || state.counts.contains_key(label);
            let state = shared.lock();
            drop(shared.changed.wait_timeout_while(state, at_most, |state| !has_come(state)));
        }
    }

    /// The number of connections closed when the server went away, without an answer to any request sent on them. A client may
    /// open one beside the connection it uses and send on it unaware, and such a request is rightly in doubt.
    pub(super) fn turned_away(&self) -> usize {
        self.shared.lock().turned_away.len()
    }

    /// The guard's complaints.
    pub(super) fn problems(&self) -> Vec<String> {
        self.shared.lock().problems.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let listener = {
            let mut state = self.shared.lock();
            state.is_over = true;
            for stream in state.connections.iter().filter_map(Weak::upgrade) {
                drop(stream.shutdown(Shutdown::Both));
            }
            state.listener.take()
        };
        self.shared.changed.notify_all();
        drop(TcpStream::connect(self.shared.address));
        for thread in listener.into_iter().chain(self.opener.take()) {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Starts to listen.
    fn open(self: &Arc<Self>) {
        // The lock makes connections that are accepted at once find the door open.
        let mut state = self.lock();
        let listener = TcpListener::bind(self.address).expect("a port that is held for us");
        let accepting = Arc::clone(self);
        let thread = std::thread::spawn(move || accepting.accept(&listener));
        state.door = Door::Open;
        state.listener = Some(thread);
        self.changed.notify_all();
    }

    /// Stops listening; returns when the system refuses connections.
    fn close(&self, until: Option<Instant>) {
        let thread = {
            let mut state = self.lock();
            if state.door != Door::Open || state.is_over {
                return;
            }
            state.door = Door::ClosedUntil(until);
            state.listener.take()
        };
        let rouser = TcpStream::connect(self.address).and_then(|stream| stream.local_addr());
        drop(thread.map(JoinHandle::join));
        self.lock().turned_away.retain(|from| rouser.as_ref().ok() != Some(from));
        self.changed.notify_all();
    }

    /// Opens a closed door when its time has come.
    fn reopen_in_time(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return;
            }
            // A remaining listener is about to end.
            let wait = match state.door {
                Door::ClosedUntil(Some(until)) => match until.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => left,
                    _ => {
                        drop(state);
                        self.open();
                        state = self.lock();
                        continue;
                    }
                },
                _ => Duration::from_secs(3600),
            };
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            let stream = listener.accept();
            let mut state = self.lock();
            if state.is_over || state.door != Door::Open {
                // The system would close the waiting connections too, without a trace.
                listener.set_nonblocking(true).expect("a listener");
                let others = std::iter::from_fn(|| listener.accept().ok());
                state.turned_away.extend(stream.into_iter().chain(others).map(|(_, from)| from));
                return;
            }
            let Ok((stream, _)) = stream else { continue };
            let stream = Arc::new(stream);
            state.connections.push(Arc::downgrade(&stream));
            let shared = Arc::clone(self);
            std::thread::spawn(move || {
                // A disconnecting program is no fault of the network.
                drop(shared.serve(&stream));
            });
        }
    }

    /// Serves the requests of one connection.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while !reader.fill_buf()?.is_empty() {
            let Some(request) = read_request(&mut reader)? else { break };
            let (at, fault) = self.note(&request);
            let goes_on = self.exchange(stream, &request, at, fault)?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Records a request and returns its fault.
    fn note(&self, request: &Request) -> (usize, Option<Fault>) {
        let label = label(self.target, request);
        let problem = self.guard.as_ref().and_then(|guard| guard(&label, request).err());
        let mut state = self.lock();
        state.problems.extend(problem);
        let count = state.counts.entry(label.clone()).or_default();
        let nth = *count;
        *count += 1;
        let has_met = state.met.is_some();
        let is_its = |order: &Order| {
            let is_first = order.label == label && order.nth == nth && !has_met;
            is_first || has_met && order.lasts && order.label == label
        };
        let fault = state.order.as_ref().filter(|order| is_its(order)).map(|order| order.fault);
        if fault.is_some() {
            state.met.get_or_insert_with(Instant::now);
        }
        let body = request.body.clone();
        state.exchanges.push(Exchange { label, nth, body, at: Instant::now(), known: None, fault, events: 0 });
        self.changed.notify_all();
        (state.exchanges.len() - 1, fault)
    }

    /// Handles one request and its answer. Returns whether the connection continues.
    fn exchange(&self, stream: &TcpStream, request: &Request, at: usize, fault: Option<Fault>) -> io::Result<bool> {
        let answer = if fault.is_none_or(Fault::is_taken) { Some(self.pass_on(request)?) } else { None };
        let events = answer.as_ref().map_or(0, |answer| events_of(answer).len());
        let mut known = fault.map_or(Knowledge::Done, |fault| fault.knowledge(self.target));
        if let (Some(Fault::CutEvents(n) | Fault::EndEvents(n) | Fault::GarbledEvent(n)), true) = (fault, events > 0)
            && n >= events
        {
            known = Knowledge::Done;
        }
        {
            let mut state = self.lock();
            if let Some(exchange) = state.exchanges.get_mut(at) {
                (exchange.known, exchange.events) = (Some(known), events);
            }
        }
        self.silence(fault.map_or(Duration::ZERO, Fault::silence));
        let lasts = self.lock().order.as_ref().is_some_and(|order| order.lasts);
        let Some(fault) = fault else {
            let answer =
                answer.unwrap_or_else(|| Message { first: String::new(), headers: Vec::new(), body: Vec::new() });
            self.remember_batch(&answer);
            return send(stream, &framed(&answer, None)).map(|()| true);
        };
        match (fault, answer) {
            (Fault::Closed, Some(answer)) => {
                self.close((!lasts).then(|| Instant::now() + GONE));
                send(stream, &framed(&answer, Some("connection: close\r\n")))?;
                Ok(false)
            }
            (Fault::Says(said) | Fault::SaysAfter(said), _) => {
                send(stream, &framed(&said.answer(self.target, request), None)).map(|()| true)
            }
            (Fault::Again, Some(answer)) => {
                let body = self.lock().last_batch.clone().unwrap_or_else(|| answer.body.clone());
                send(stream, &framed(&Message { body, ..answer }, None)).map(|()| true)
            }
            (Fault::Twice, Some(answer)) => {
                let once = framed(&answer, None);
                send(stream, &[once.clone(), once].concat()).map(|()| true)
            }
            (Fault::Slow, Some(answer)) => {
                let bytes = framed(&answer, None);
                for piece in bytes.chunks(bytes.len().div_ceil(SLOW_PIECES).max(1)) {
                    send(stream, piece)?;
                    std::thread::sleep(SLOW_PAUSE);
                }
                Ok(true)
            }
            (Fault::Garbled, Some(mut answer)) => {
                garble(&mut answer.body);
                send(stream, &framed(&answer, None)).map(|()| true)
            }
            (Fault::Cut(percent), Some(answer)) => {
                let bytes = framed(&answer, None);
                // At least the last byte of the body is dropped.
                let head = bytes.len() - answer.body.len().min(bytes.len());
                let kept = (head + answer.body.len() * percent / 100).min(bytes.len() - 1);
                send(stream, &bytes[..kept]).map(|()| false)
            }
            (Fault::CutEvents(n), Some(answer)) => {
                let kept = [head_of(&answer, "transfer-encoding: chunked\r\n"), chunks(&events_of(&answer)[..n])];
                send(stream, &kept.concat()).map(|()| false)
            }
            (Fault::EndEvents(n), Some(answer)) => {
                let whole = events_of(&answer)[..n].concat();
                send(stream, &framed(&Message { body: whole, ..answer }, None)).map(|()| true)
            }
            (Fault::GarbledEvent(n), Some(answer)) => {
                let mut events = events_of(&answer);
                garble(&mut events[n]);
                send(stream, &framed(&Message { body: events.concat(), ..answer }, None)).map(|()| true)
            }
            (Fault::EndAfter, _) => Ok(false),
            // Reset: with a linger time of zero, closing resets the connection.
            _ => sockopt::set_socket_linger(stream, Some(Duration::ZERO)).map(|()| false).map_err(io::Error::from),
        }
    }

    /// Waits, but not beyond the proxy's end.
    fn silence(&self, time: Duration) {
        let state = self.lock();
        drop(self.changed.wait_timeout_while(state, time, |state| !state.is_over));
    }

    /// Passes the request on to the server.
    fn pass_on(&self, request: &Request) -> io::Result<Message> {
        let stream = Arc::new(TcpStream::connect(self.upstream)?);
        self.lock().connections.push(Arc::downgrade(&stream));
        let Request { method, target, headers, body } = request;
        let headers: String = kept(headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{method} {target} HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n", body.len());
        send(&stream, &[head.as_bytes(), body].concat())?;
        read_message(&mut BufReader::new(&*stream))?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn remember_batch(&self, answer: &Message) {
        if self.target == Target::Telegram && answer.body.windows(11).any(|window| window == b"\"update_id\"") {
            self.lock().last_batch = Some(answer.body.clone());
        }
    }
}

/// A bound socket on loopback that doesn't listen.
fn bound(port: u16) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    Ok(socket)
}
