//! The way to granted hosts: what is granted works from inside, and no trick makes it lead elsewhere.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use reveille_sandbox::Network;

use super::world::World;
use crate::support::env::ProgramOutput;

/// A server that says its name, and keeps the first lines of what it was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || Self::serve(stream, name, &kept));
            }
        });
        Self { port, asked }
    }

    fn serve(mut stream: TcpStream, name: &str, asked: &Mutex<Vec<String>>) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).ok();
        asked.lock().unwrap().push(first.trim().to_owned());
        let mut line = first;
        while !line.trim().is_empty() {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                break;
            }
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}", name.len()).ok();
    }
}

/// What is written to the proxy so that it reaches VICTIM although only OPEN is granted. `\r\n` are real ones, and an empty line ends it.
pub(super) const TRICKS: &[(&str, &str)] = &[
    ("a tunnel to another port", "CONNECT 127.0.0.1:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a tunnel by name", "CONNECT localhost:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    (
        "a tunnel with a granted host as its header",
        "CONNECT 127.0.0.1:VICTIM HTTP/1.1\r\nHost: 127.0.0.1:OPEN\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ),
    (
        "a tunnel to a granted host with another header",
        "CONNECT 127.0.0.1:OPEN HTTP/1.1\r\nHost: 127.0.0.1:VICTIM\r\n\r\nGET http://127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n",
    ),
    ("a tunnel with a user's name", "CONNECT 127.0.0.1:OPEN@127.0.0.1:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a short address", "CONNECT 127.1:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("an address as one number", "CONNECT 2130706433:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("an address in hexadecimal", "CONNECT 0x7f000001:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("an address in octal", "CONNECT 0177.0.0.1:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("an address mapped into IPv6", "CONNECT [::ffff:127.0.0.1]:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("no address", "CONNECT 0.0.0.0:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a dot at the end", "CONNECT localhost.:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a port with zeros", "CONNECT 127.0.0.1:0VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("two ports", "CONNECT 127.0.0.1:OPEN:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a whole address", "GET http://127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n"),
    ("a whole address with a granted header", "GET http://127.0.0.1:VICTIM/ HTTP/1.1\r\nHost: 127.0.0.1:OPEN\r\n\r\n"),
    ("a path with a host's header", "GET / HTTP/1.1\r\nHost: 127.0.0.1:VICTIM\r\n\r\n"),
    ("a whole address with a user's name", "GET http://127.0.0.1:OPEN@127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n"),
    ("a whole address with a backslash", "GET http://127.0.0.1:VICTIM\\@127.0.0.1:OPEN/ HTTP/1.1\r\n\r\n"),
    ("a whole address with a fragment", "GET http://127.0.0.1:VICTIM#@127.0.0.1:OPEN/ HTTP/1.1\r\n\r\n"),
    (
        "a second request behind the first",
        "GET http://127.0.0.1:OPEN/ HTTP/1.1\r\n\r\nGET http://127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n",
    ),
    (
        "a second request in a body",
        "GET http://127.0.0.1:OPEN/ HTTP/1.1\r\nContent-Length: 60\r\n\r\nGET http://127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n",
    ),
    (
        "a second request in a chunk",
        "GET http://127.0.0.1:OPEN/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://127.0.0.1:VICTIM/ HTTP/1.1\r\n\r\n",
    ),
    ("lines without returns", "CONNECT 127.0.0.1:VICTIM HTTP/1.1\n\nGET / HTTP/1.1\n\n\r\n\r\n"),
    ("small letters", "connect 127.0.0.1:VICTIM HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("another method", "POST http://127.0.0.1:VICTIM/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
    ("a tunnel within a tunnel", "CONNECT 127.0.0.1:OPEN HTTP/1.1\r\n\r\nCONNECT 127.0.0.1:VICTIM HTTP/1.1\r\n\r\n"),
    ("a granted name that leads inside", "CONNECT localhost:NAMED HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
    ("a granted name that leads inside, plain", "GET http://localhost:NAMED/ HTTP/1.1\r\n\r\n"),
];

struct Scene {
    world: World,
    open: Server,
    victim: Server,
    named: Server,
}

impl Scene {
    fn new() -> Self {
        let (open, victim, named) = (Server::start("welcome"), Server::start("VICTIM"), Server::start("VICTIM"));
        let mut world = World::new();
        let grants = [format!("127.0.0.1:{}", open.port), format!("localhost:{}", named.port)];
        world.confinement.network = Network::Hosts(grants.iter().map(|grant| grant.parse().unwrap()).collect());
        Self { world, open, victim, named }
    }

    fn filled(&self, text: &str) -> String {
        let text = text.replace("OPEN", &self.open.port.to_string()).replace("NAMED", &self.named.port.to_string());
        text.replace("VICTIM", &self.victim.port.to_string())
    }

    /// Says it to the proxy, from inside.
    fn say(&self, text: &str) -> ProgramOutput {
        let text = self.filled(text).replace('\\', "\\\\").replace('\r', "\\r").replace('\n', "\\n").replace('%', "%%");
        self.world.inside(&format!("printf '{text}' | \"$P\" http \"${{HTTP_PROXY##*:}}\""))
    }
}

#[test]
fn what_is_granted_is_reached_through_the_proxy_and_nothing_else_is() {
    let scene = Scene::new();
    let tunnel = scene.say("CONNECT 127.0.0.1:OPEN HTTP/1.1\r\n\r\nGET /tunnel HTTP/1.1\r\n\r\n");
    assert!(tunnel.stdout.contains("200 Connection established") && tunnel.stdout.ends_with("welcome"), "{tunnel:?}");
    let plain = scene.say("GET http://127.0.0.1:OPEN/plain HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert!(plain.stdout.ends_with("welcome"), "{plain:?}");
    assert_eq!(*scene.open.asked.lock().unwrap(), ["GET /tunnel HTTP/1.1", "GET /plain HTTP/1.1"]);

    // The controls: outside both are reached, by the same probe.
    for server in [&scene.victim, &scene.named] {
        let control =
            scene.world.outside(&format!("printf 'GET / HTTP/1.1\\r\\n\\r\\n' | \"$P\" http {}", server.port));
        assert!(control.stdout.ends_with("VICTIM"), "{control:?}");
        assert_eq!(std::mem::take(&mut *server.asked.lock().unwrap()).len(), 1);
    }
    for (name, text) in TRICKS {
        let ran = scene.say(text);
        assert!(!ran.stdout.ends_with("VICTIM"), "{name}: {ran:?}");
        assert!(!ran.stdout.is_empty(), "{name}: the proxy said nothing: {ran:?}");
    }
    for port in [scene.open.port, scene.victim.port] {
        let direct = scene.world.inside(&format!("printf 'GET / HTTP/1.1\\r\\n\\r\\n' | \"$P\" http {port}"));
        assert_ne!(direct.code, 0, "past the proxy: {direct:?}");
    }
    let socket = scene.world.inside("cd /run/reveille && test -S proxy.sock && ! \"$P\" unix proxy.sock");
    assert_eq!(socket.code, 0, "the proxy's own socket: {socket:?}");
    for server in [&scene.victim, &scene.named] {
        assert!(server.asked.lock().unwrap().is_empty(), "{:?}", server.asked);
    }
}

#[test]
fn without_grants_there_is_no_proxy_and_no_variable_that_names_one() {
    let mut world = World::new();
    world.confinement.network = Network::Hosts(Vec::new());
    let ran = world.inside("env; ls /run/reveille");
    assert!(!ran.stdout.to_lowercase().contains("proxy"), "{ran:?}");
}
