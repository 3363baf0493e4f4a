use std::{
    io::{BufRead as _, BufReader},
    net::Ipv6Addr,
    os::unix::net::UnixStream,
    sync::Mutex,
};

use super::*;

/// A world with name lookups under the test's control. Every dialled address is recorded and leads to one server.
struct World {
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
    outside: ProxyWorld,
}

fn world(answers: Vec<Vec<IpAddr>>) -> World {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|count| count > 0) && !line.ends_with("\r\n\r\n") {}
                let mut stream = stream;
                stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{line}").as_bytes()).ok();
            });
        }
    });
    let (dialled, answers) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(answers.into_iter()));
    let kept = Arc::clone(&dialled);
    let outside = ProxyWorld {
        resolve: Arc::new(move |_, _| Ok(answers.lock().unwrap().next().unwrap_or_default())),
        dial: Arc::new(move |address, timeout| {
            kept.lock().unwrap().push(address);
            TcpStream::connect_timeout(&server, timeout)
        }),
    };
    World { dialled, outside }
}

fn ask(proxy: &Proxy, request: &str) -> String {
    let mut stream = UnixStream::connect(proxy.socket_path().unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn grants(list: &[&str]) -> Vec<Grant> {
    list.iter().map(|grant| grant.parse().unwrap()).collect()
}

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(140, 82, 121, 5));
const TUNNEL: &str = "CONNECT api.example:443 HTTP/1.1\r\n\r\nhello\r\n\r\n";

#[test]
fn a_granted_name_is_resolved_once_and_that_very_address_is_dialled() {
    let world = world(vec![vec![PUBLIC], vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]]);
    let proxy = Proxy::listen_on_socket(grants(&["api.example:443"]), world.outside).unwrap();
    assert!(ask(&proxy, TUNNEL).ends_with("hello\r\n\r\n"));
    assert_eq!(*world.dialled.lock().unwrap(), [SocketAddr::new(PUBLIC, 443)]);
    // The name now leads elsewhere, so nothing is dialled.
    assert!(ask(&proxy, TUNNEL).starts_with("HTTP/1.1 502 "));
    assert_eq!(world.dialled.lock().unwrap().len(), 1);
}

#[test]
fn a_name_that_leads_inside_is_refused_and_never_dialled() {
    let inner: Vec<IpAddr> =
        ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1", "64:ff9b::7f00:1", "0.0.0.0"]
            .map(|text| text.parse().unwrap())
            .to_vec();
    let mut answers: Vec<Vec<IpAddr>> = inner.iter().map(|address| vec![*address]).collect();
    // One public address doesn't excuse a private one.
    answers.push(vec![PUBLIC, IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    let count = answers.len();
    let world = world(answers);
    let proxy = Proxy::listen_on_socket(grants(&["api.example:443"]), world.outside).unwrap();
    for _ in 0..count {
        let answer = ask(&proxy, TUNNEL);
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("isn't on the public internet"), "{answer}");
    }
    assert!(world.dialled.lock().unwrap().is_empty());
}

#[test]
fn what_isnt_granted_is_neither_resolved_nor_dialled() {
    let world = world(vec![vec![PUBLIC]]);
    let outside = ProxyWorld { resolve: Arc::new(|name, _| panic!("{name} was looked up")), ..world.outside };
    let proxy = Proxy::listen_on_socket(grants(&["api.example:443", "10.0.0.1:80"]), outside).unwrap();
    for to in [
        "api.example:80",
        "evil.example:443",
        "xapi.example:443",
        "api.example.evil.example:443",
        "10.0.0.1:443",
        "10.0.0.2:80",
    ] {
        let answer = ask(&proxy, &format!("CONNECT {to} HTTP/1.1\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n"));
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("policy.toml") && !answer.contains("c2VjcmV0"),
            "{answer}"
        );
    }
    assert!(world.dialled.lock().unwrap().is_empty());
    // A literal address that was granted needs no lookup and may be private.
    assert!(ask(&proxy, "GET http://10.0.0.1/ HTTP/1.1\r\n\r\n").contains("Host: 10.0.0.1:80\r\n"));
    assert_eq!(world.dialled.lock().unwrap().len(), 1);
}

#[test]
fn a_head_without_an_end_is_cut_off() {
    let world = world(Vec::new());
    let proxy = Proxy::listen_on_socket(grants(&["api.example:443"]), world.outside).unwrap();
    let answer = ask(&proxy, &format!("CONNECT api.example:443 HTTP/1.1\r\nX: {}", "a".repeat(16 << 10)));
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("too long"), "{answer}");
}

#[test]
fn a_proxy_that_is_dropped_leaves_no_socket_and_ends_what_is_open() {
    let world = world(vec![vec![PUBLIC]]);
    let proxy = Proxy::listen_on_socket(grants(&["api.example:443"]), world.outside).unwrap();
    let socket = proxy.socket_path().unwrap();
    let mut open = UnixStream::connect(&socket).unwrap();
    open.write_all(b"CONNECT api.example:443 HTTP/1.1\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(open.try_clone().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 200 Connection established\r\n");
    drop(proxy);
    assert!(!socket.parent().unwrap().exists());
    open.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn on_loopback_it_has_a_port_that_programs_are_told() {
    let world = world(Vec::new());
    let proxy = Proxy::listen_on_loopback(Vec::new(), world.outside).unwrap();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port().unwrap())).unwrap();
    stream.write_all(TUNNEL.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(build_variables(None).is_empty());
    assert!(build_variables(Some(42)).contains(&("HTTPS_PROXY", "http://127.0.0.1:42".to_owned())));
}
