//! A small HTTP/1.1 server on loopback. The test decides every answer and every misbehaviour.
//!
//! Each connection has a thread, and is kept alive between requests as real servers do. Dropping the server releases stalled answers,
//! closes all connections and waits for its threads.

use std::{
    io::{self, BufRead, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::JoinHandle,
    time::Duration,
};

/// The longest request head and body that are read, in bytes.
const MAX_HEAD_BYTES: u64 = 64 * 1024;
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The first header of that name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body as text; invalid bytes are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The server's response to a request.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    /// If set, the response is held back until this gate opens.
    gate: Option<Gate>,
}

#[derive(Debug, Clone)]
enum Body {
    /// The whole body with its length.
    Fixed(Vec<u8>),
    /// The whole length is announced, but the connection closes after `sent_bytes`.
    Cut { body: Vec<u8>, sent_bytes: usize },
    /// A chunked body, sent step by step.
    Steps(Vec<Step>),
    /// The connection closes without an answer.
    Nothing,
}

/// One step of a streamed body.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Send these bytes as a chunk.
    Send(Vec<u8>),
    /// Send nothing until the gate opens.
    Wait(Gate),
    /// Send nothing for this time, like a slow server.
    Pause(Duration),
    /// Close the connection before the body is complete.
    Close,
}

impl Response {
    /// A complete response.
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: Body::Fixed(body.into()), gate: None }
    }

    /// A complete JSON response.
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, body.to_string()).header("content-type", "application/json")
    }

    /// A chunked response.
    pub(crate) fn stream(status: u16, steps: Vec<Step>) -> Self {
        Self { body: Body::Steps(steps), ..Self::new(status, "") }
    }

    /// No response: the connection closes after the request was read.
    pub(crate) fn hang_up() -> Self {
        Self { body: Body::Nothing, ..Self::new(0, "") }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Cuts off a complete body after `sent_bytes`.
    pub(crate) fn cut_after(mut self, sent_bytes: usize) -> Self {
        if let Body::Fixed(body) = self.body {
            self.body = Body::Cut { body, sent_bytes };
        }
        self
    }

    /// Holds the response back until the gate opens.
    pub(crate) fn stalled_at(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

/// Stalls a response until the test opens the gate, or the server ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets everything through from now on.
    pub(crate) fn open(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut is_open = lock(&self.0.0);
        while !*is_open {
            is_open = self.0.1.wait(is_open).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

/// A port on loopback that nobody listens on, for a program that needs a port number.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Locks a mutex even if another thread panicked: that panic is reported anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// The running server.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener_thread: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<Handler>,
    /// Everything that has to be released at the end.
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    is_stopping: bool,
    connections: Vec<(TcpStream, JoinHandle<()>)>,
    gates: Vec<Gate>,
}

impl HttpServer {
    /// Starts a server on a free port of loopback; `handler` answers every request.
    pub(crate) fn start(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback"), handler)
    }

    /// Starts a server on the test's own listener.
    pub(crate) fn on(listener: TcpListener, handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("the listener's address");
        let shared = Arc::new(Shared { handler: Box::new(handler), live: Mutex::default() });
        let accepting = Arc::clone(&shared);
        let listener_thread = Some(std::thread::spawn(move || accepting.accept(&listener)));
        Self { address, shared, listener_thread }
    }

    /// `http://127.0.0.1:port`, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.shared.live).connections.len()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let (connections, gates) = {
            let mut live = lock(&self.shared.live);
            live.is_stopping = true;
            (std::mem::take(&mut live.connections), std::mem::take(&mut live.gates))
        };
        gates.iter().for_each(Gate::open);
        // Unblocks the listener, so that it notices the end.
        drop(TcpStream::connect(self.address));
        let connection_threads = connections.into_iter().map(|(stream, thread)| {
            drop(stream.shutdown(Shutdown::Both));
            thread
        });
        for thread in connection_threads.chain(self.listener_thread.take()).collect::<Vec<_>>() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let mut live = lock(&self.live);
            if live.is_stopping {
                return;
            }
            let Ok(stream) = stream else { continue };
            let Ok(ours) = stream.try_clone() else { continue };
            let shared = Arc::clone(self);
            let thread = std::thread::spawn(move || {
                // A client may disconnect at any time.
                drop(shared.serve(&stream));
                drop(stream.shutdown(Shutdown::Both));
            });
            live.connections.push((ours, thread));
        }
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read_request(&mut reader)? {
            let response = (self.handler)(&request);
            if !self.answer(stream, &response)? {
                break;
            }
        }
        Ok(())
    }

    /// Writes the response. Returns `false` if the connection has to be closed afterwards.
    fn answer(&self, mut stream: &TcpStream, response: &Response) -> io::Result<bool> {
        if let Some(gate) = &response.gate {
            self.wait_at(gate);
        }
        let length = match &response.body {
            Body::Nothing => return Ok(false),
            Body::Fixed(body) | Body::Cut { body, .. } => format!("content-length: {}\r\n", body.len()),
            Body::Steps(_) => "transfer-encoding: chunked\r\n".to_owned(),
        };
        let headers: String = response.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        stream.write_all(format!("HTTP/1.1 {} Fake\r\n{length}{headers}\r\n", response.status).as_bytes())?;
        match &response.body {
            Body::Fixed(body) => stream.write_all(body).map(|()| true),
            Body::Cut { body, sent_bytes } => stream.write_all(&body[..*sent_bytes.min(&body.len())]).map(|()| false),
            Body::Steps(steps) => self.walk(stream, steps),
            Body::Nothing => Ok(false),
        }
    }

    fn walk(&self, mut stream: &TcpStream, steps: &[Step]) -> io::Result<bool> {
        for step in steps {
            match step {
                Step::Send(bytes) if bytes.is_empty() => {}
                Step::Send(bytes) => {
                    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                    chunk.extend_from_slice(bytes);
                    chunk.extend_from_slice(b"\r\n");
                    stream.write_all(&chunk)?;
                    stream.flush()?;
                }
                Step::Wait(gate) => self.wait_at(gate),
                Step::Pause(time) => std::thread::sleep(*time),
                Step::Close => return Ok(false),
            }
        }
        stream.write_all(b"0\r\n\r\n").map(|()| true)
    }

    fn wait_at(&self, gate: &Gate) {
        {
            let mut live = lock(&self.live);
            if live.is_stopping {
                return;
            }
            live.gates.push(gate.clone());
        }
        gate.wait();
    }
}

/// Reads the next request of a connection; `None` once the client has closed it.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(Message { first, headers, body }) = read_message(reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = words.next().zip(words.next()).ok_or_else(|| damaged("request line"))?;
    Ok(Some(Request { method, target, headers, body }))
}

/// A request or response as received.
pub(crate) struct Message {
    /// The first line.
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads the next message of a connection; `None` once the other side has closed it.
pub(crate) fn read_message(reader: &mut impl BufRead) -> io::Result<Option<Message>> {
    let Some(first) = read_line(reader)?.filter(|line| !line.is_empty()) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| damaged("header"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let body = read_body(reader, &headers)?;
    Ok(Some(Message { first, headers, body }))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    if header(headers, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        let mut body = Vec::new();
        loop {
            let size = read_line(reader)?.ok_or_else(|| damaged("chunk"))?;
            let size = size.split(';').next().unwrap_or_default().trim().to_owned();
            let size = usize::from_str_radix(&size, 16).map_err(|_| damaged("chunk size"))?;
            body.extend(read_exact(reader, size)?);
            read_line(reader)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = header(headers, "content-length").map_or(Ok(0), str::parse).map_err(|_| damaged("content-length"))?;
    read_exact(reader, length)
}

fn read_exact(reader: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY_BYTES {
        return Err(damaged("length"));
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = reader.by_ref().take(MAX_HEAD_BYTES).read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged {what}"))
}

/// Sends raw bytes and reads until the server closes the connection: for tests of the fake servers themselves.
pub(crate) fn exchange(url: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).expect("a connection to the fake server");
    stream.write_all(request).expect("a sent request");
    stream.shutdown(Shutdown::Write).expect("a finished request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo() -> HttpServer {
        HttpServer::start(|request| {
            Response::new(200, format!("{} {} {}", request.method, request.target, request.text()))
        })
    }

    #[test]
    fn bodies_with_a_length_and_chunked_ones_are_read_on_one_connection() {
        let server = echo();
        let answer = exchange(
            &server.url(),
            b"POST /a?b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
        assert!(answer.contains("POST /a?b hi") && answer.contains("PUT /c abcde"), "{answer}");
    }

    #[test]
    fn the_server_misbehaves_as_told() {
        let server = HttpServer::start(|request| match request.target.as_str() {
            "/nothing" => Response::hang_up(),
            "/cut" => Response::new(200, "0123456789").cut_after(4),
            "/close" => Response::stream(200, vec![Step::Send(b"abc".to_vec()), Step::Close]),
            _ => Response::stream(
                200,
                vec![Step::Send(b"abc".to_vec()), Step::Pause(Duration::from_millis(1)), Step::Send(b"d".to_vec())],
            ),
        });
        let get = |path: &str| exchange(&server.url(), format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        assert_eq!(get("/nothing"), "");
        assert!(get("/cut").ends_with("content-length: 10\r\n\r\n0123"));
        assert!(get("/close").ends_with("\r\n\r\n3\r\nabc\r\n"));
        assert!(get("/slow").ends_with("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"));
    }

    #[test]
    fn a_stall_ends_when_its_gate_opens_or_the_server_ends() {
        let gate = Gate::default();
        let stalling = gate.clone();
        let server = HttpServer::start(move |_| Response::new(200, "late").stalled_at(&stalling));
        let url = server.url();
        let client = std::thread::spawn(move || exchange(&url, b"GET / HTTP/1.1\r\n\r\n"));
        gate.open();
        assert!(client.join().unwrap().ends_with("late"));

        let server = HttpServer::start(|_| Response::stream(200, vec![Step::Wait(Gate::default())]));
        let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        drop(server); // Returns although the gate was never opened.
    }
}
