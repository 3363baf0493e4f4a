//! TLS in front of a server on loopback: a small Python program with a certificate made for the test.

use std::path::PathBuf;

use super::env::{Running, TestEnv, eventually};

/// Takes TLS connections on a port of its own and passes their bytes on to a plain port; writes its own port into a file.
const PROXY: &str = r#"
import socket, ssl, sys, threading
plain, cert, key, told = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def serve(client):
    try:
        secured = context.wrap_socket(client, server_side=True)
        server = socket.create_connection(("127.0.0.1", plain))
    except OSError:
        return client.close()
    threading.Thread(target=pump, args=(secured, server), daemon=True).start()
    threading.Thread(target=pump, args=(server, secured), daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
with open(told, "w") as file:
    file.write(str(listener.getsockname()[1]))
while True:
    serve(listener.accept()[0])
"#;

/// A TLS server on loopback, for the name `localhost`.
pub(crate) struct Tls {
    pub(crate) port: u16,
    /// Its certificate, which a client has to be told to trust.
    pub(crate) certificate: PathBuf,
    _proxy: Running,
}

impl Tls {
    /// Starts it in front of a plain port; `None` where the programs for it are missing.
    pub(crate) fn start(env: &TestEnv, plain: u16) -> Option<Self> {
        let at = |name: &str| env.path(name).display().to_string();
        let (cert, key, told) = (at("tls.crt"), at("tls.key"), at("tls.port"));
        let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
        let make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", &key, "-out", &cert];
        for program in ["openssl", "python3"] {
            if env.command(program, &["--version"]).output().is_err() {
                eprintln!("not run: {program} is missing");
                return None;
            }
        }
        env.run("openssl", &[&make[..], &subject[..]].concat()).ok();
        let proxy = env.start("python3", &["-c", PROXY, &plain.to_string(), &cert, &key, &told]);
        let port = || std::fs::read_to_string(&told).ok()?.parse().ok();
        eventually("the TLS server", || port().is_some());
        Some(Self { port: port()?, certificate: cert.into(), _proxy: proxy })
    }
}
