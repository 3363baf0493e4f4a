//! The network between a program and a server: a proxy on loopback that passes requests on, one after the other and whole,
//! until the one for which it was ordered to fail.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, MutexGuard, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::net::{AddressFamily, SocketType, sockopt};
use serde_json::json;

use super::fault::{By, Fault, Knowledge, Said, Target};
use crate::support::http::{Message, Request, lock, read_message, read_request};

/// How long a server that was gone for a moment is gone.
const GONE: Duration = Duration::from_millis(300);
/// A slow answer comes in at most so many pieces, with a pause between them.
const SLOW_PIECES: usize = 40;
const SLOW_PAUSE: Duration = Duration::from_millis(5);

/// Stands for the time before the first request.
pub(super) const START: &str = "start";

/// Which request fails and how.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) fault: Fault,
    /// What the request is, as [`label`] says.
    pub(super) label: String,
    /// The how many of that kind, from 0.
    pub(super) nth: usize,
    /// Whether all that come after it fail too, until [`Proxy::mend`].
    pub(super) lasts: bool,
}

/// A request that came, and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) label: String,
    pub(super) nth: usize,
    pub(super) body: Vec<u8>,
    pub(super) at: Instant,
    /// None while it is under way.
    pub(super) known: Option<Knowledge>,
    /// How many events its answer streamed.
    pub(super) events: usize,
}

/// Looks at each request before it is passed on; what it says is wrong fails the trial.
pub(super) type Guard = Box<dyn Fn(&str, &Request) -> Result<(), String> + Send + Sync>;

/// The running proxy.
pub(super) struct Proxy {
    shared: Arc<Shared>,
    /// Keeps the port while nothing listens on it.
    _holder: OwnedFd,
    opener: Option<JoinHandle<()>>,
}

struct Shared {
    address: SocketAddr,
    upstream: SocketAddr,
    target: Target,
    guard: Option<Guard>,
    state: Mutex<State>,
    /// Something that others wait for has changed.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    order: Option<Order>,
    /// When the order was met for the first time.
    met: Option<Instant>,
    exchanges: Vec<Exchange>,
    counts: HashMap<String, usize>,
    /// Telegram's last batch that held something.
    last_batch: Option<Vec<u8>>,
    problems: Vec<String>,
    door: Door,
    listener: Option<JoinHandle<()>>,
    connections: Vec<Weak<TcpStream>>,
    is_over: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Door {
    #[default]
    Open,
    /// Nobody listens until that time.
    ClosedUntil(Option<Instant>),
}

/// What a request is called: for Telegram its method, else method and path with the query.
fn label(target: Target, request: &Request) -> String {
    let path = request.target.as_str();
    match target {
        Target::Telegram => path.rsplit('/').next().unwrap_or_default().to_owned(),
        Target::Claude => "turn".to_owned(),
        Target::Git => {
            let kind = if path.contains("git-receive-pack") { "push" } else { "fetch" };
            let step = match (request.header("authorization").is_some(), request.method.as_str()) {
                (false, _) => "knock",
                (true, "GET") => "refs",
                (true, _) => "pack",
            };
            format!("{kind}-{step}")
        }
    }
}

impl Proxy {
    /// Stands before `upstream`, an address such as `http://127.0.0.1:8080`.
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

    /// From now on nothing fails. Says whether the ordered request ever came.
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

    /// How long ago the ordered fault was met first.
    pub(super) fn met_for(&self) -> Option<Duration> {
        self.shared.lock().met.map(|at| at.elapsed())
    }

    /// All requests so far, in the order they came.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.lock().exchanges.clone()
    }

    /// What the guard found wrong.
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

    /// Begins to listen.
    fn open(self: &Arc<Self>) {
        let listener = TcpListener::bind(self.address).expect("a port that is held for us");
        let accepting = Arc::clone(self);
        let thread = std::thread::spawn(move || accepting.accept(&listener));
        let mut state = self.lock();
        state.door = Door::Open;
        state.listener = Some(thread);
        self.changed.notify_all();
    }

    /// Stops listening: returns when the system refuses connections.
    fn close(&self, until: Option<Instant>) {
        let thread = {
            let mut state = self.lock();
            if state.door != Door::Open || state.is_over {
                return;
            }
            state.door = Door::ClosedUntil(until);
            state.listener.take()
        };
        drop(TcpStream::connect(self.address));
        drop(thread.map(JoinHandle::join));
        self.changed.notify_all();
    }

    /// Opens a closed door when its time has come.
    fn reopen_in_time(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return;
            }
            // A listener that is still there is about to go.
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
        for stream in listener.incoming() {
            let mut state = self.lock();
            if state.is_over || state.door != Door::Open {
                return;
            }
            let Ok(stream) = stream.map(Arc::new) else { continue };
            state.connections.push(Arc::downgrade(&stream));
            let shared = Arc::clone(self);
            std::thread::spawn(move || {
                // A program that goes away is no fault of the network.
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

    /// Writes a request down, and says what goes wrong with it.
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
        state.exchanges.push(Exchange { label, nth, body, at: Instant::now(), known: None, events: 0 });
        (state.exchanges.len() - 1, fault)
    }

    /// One request and its answer. Says whether the connection goes on.
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
                // Of the body, but for its last bytes at the most.
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
            // Reset: lingering for no time, the close that follows is one.
            _ => sockopt::set_socket_linger(stream, Some(Duration::ZERO)).map(|()| false).map_err(io::Error::from),
        }
    }

    /// Waits, but not beyond the end.
    fn silence(&self, time: Duration) {
        let state = self.lock();
        drop(self.changed.wait_timeout_while(state, time, |state| !state.is_over));
    }

    /// Has the server do it.
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

/// A socket on loopback that listens to nobody.
fn bound(port: u16) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    Ok(socket)
}

fn send(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).and_then(|()| stream.flush())
}

/// Headers but for those that say how the body is sent.
fn kept(headers: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    const OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "expect"];
    headers.iter().filter(|(name, _)| !OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)))
}

fn head_of(answer: &Message, how: &str) -> Vec<u8> {
    let headers: String = kept(&answer.headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{}\r\n{headers}{how}\r\n", answer.first).into_bytes()
}

/// The answer as bytes: an event stream in a chunk for each event, anything else with its length.
fn framed(answer: &Message, more: Option<&str>) -> Vec<u8> {
    let more = more.unwrap_or_default();
    let events = events_of(answer);
    if events.is_empty() {
        let head = head_of(answer, &format!("content-length: {}\r\n{more}", answer.body.len()));
        return [head, answer.body.clone()].concat();
    }
    let head = head_of(answer, &format!("transfer-encoding: chunked\r\n{more}"));
    [head, chunks(&events), b"0\r\n\r\n".to_vec()].concat()
}

fn chunks(events: &[Vec<u8>]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| [format!("{:x}\r\n", event.len()).into_bytes(), event.clone(), b"\r\n".to_vec()].concat())
        .collect()
}

/// The events of a stream; none if the answer is another.
fn events_of(answer: &Message) -> Vec<Vec<u8>> {
    let is_stream = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("content-type") && value.starts_with("text/event-stream")
    };
    if !answer.headers.iter().any(is_stream) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&answer.body);
    text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect()
}

/// Damages the middle so that no format can overlook it.
fn garble(body: &mut [u8]) {
    let middle = body.len() / 2;
    for byte in body.iter_mut().skip(middle).take(6) {
        *byte = 0;
    }
}

impl Said {
    fn answer(self, target: Target, request: &Request) -> Message {
        let Self { status, retry_after, by } = self;
        let keys = ["authorization", "x-api-key"].iter().filter_map(|name| request.header(name)).collect::<Vec<_>>();
        let echo = format!("{} {}", request.target, keys.join(" "));
        let (kind, body) = match (by, target) {
            (By::Foreign, _) => ("text/html", format!("<html><h1>{status}</h1><p>{echo}</p></html>")),
            (By::Nobody, _) => ("text/plain", String::new()),
            (By::Hollow, _) => ("application/json", json!({"ok": true, "result": {}}).to_string()),
            (By::Server, Target::Telegram) => {
                let mut body = json!({"ok": false, "error_code": status, "description": format!("As ordered: {echo}")});
                if let Some(seconds) = retry_after {
                    body["parameters"] = json!({"retry_after": seconds});
                }
                ("application/json", body.to_string())
            }
            (By::Server, Target::Claude) => {
                let kind = match status {
                    401 => "authentication_error",
                    402 => "billing_error",
                    429 => "rate_limit_error",
                    _ => "api_error",
                };
                let error = json!({"type": kind, "message": format!("As ordered: {echo}")});
                ("application/json", json!({"type": "error", "error": error}).to_string())
            }
            (By::Server, Target::Git) => ("text/plain", format!("As ordered: {echo}\n")),
        };
        let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
        headers.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
        headers.extend((status == 302).then(|| ("location".to_owned(), "http://127.0.0.1:9/elsewhere".to_owned())));
        let asks = target == Target::Git && status == 401;
        headers.extend(asks.then(|| ("www-authenticate".to_owned(), "Basic realm=\"memory\"".to_owned())));
        Message { first: format!("HTTP/1.1 {status} As-Ordered"), headers, body: body.into_bytes() }
    }
}
