//! A TLS proxy in front of a server on loopback: a small Python program with a certificate created for the test.

use std::path::{Path, PathBuf};

use super::env::{Running, TestEnv, eventually};

/// A program that accepts TLS connections on its own port and forwards their bytes to a plain port. It writes its own port to a file.
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
    /// The server's certificate, which a client has to be configured to trust.
    pub(crate) certificate: PathBuf,
    _proxy: Running,
}

impl Tls {
    /// Starts the proxy in front of a plain port; `None` if python3 or openssl is missing.
    pub(crate) fn start(env: &TestEnv, plain: u16) -> Option<Self> {
        if env.command("python3", &["--version"]).output().is_err() {
            eprintln!("NOT RUN: python3 is missing");
            return None;
        }
        let (certificate, key) = certificate(env)?;
        let at = |path: &Path| path.display().to_string();
        let (cert, key, told) = (at(&certificate), at(&key), at(&env.path("tls.port")));
        let proxy = env.start("python3", &["-c", PROXY, &plain.to_string(), &cert, &key, &told]);
        let port = || std::fs::read_to_string(&told).ok()?.parse().ok();
        eventually("the TLS server", || port().is_some());
        Some(Self { port: port()?, certificate, _proxy: proxy })
    }
}

/// Creates a self-signed certificate for `localhost`, and its key; `None` if openssl is missing.
pub(crate) fn certificate(env: &TestEnv) -> Option<(PathBuf, PathBuf)> {
    if env.command("openssl", &["version"]).output().is_err() {
        eprintln!("NOT RUN: openssl is missing");
        return None;
    }
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    Some(made(env, "tls", &subject))
}

/// Creates a certificate for `localhost`, signed by this authority, and its key.
pub(crate) fn certificate_by(env: &TestEnv, (authority, key): &(PathBuf, PathBuf)) -> (PathBuf, PathBuf) {
    let settings = env.path("server.cnf");
    let text = "[req]\ndistinguished_name = name\nx509_extensions = server\nprompt = no\n[name]\nCN = server\n\
                [server]\nbasicConstraints = CA:FALSE\nsubjectAltName = DNS:localhost\n";
    std::fs::write(&settings, text).unwrap();
    let [authority, key, settings] = [authority, key, &settings].map(|path| path.display().to_string());
    made(env, "server", &["-CA", &authority, "-CAkey", &key, "-config", &settings])
}

fn made(env: &TestEnv, name: &str, how: &[&str]) -> (PathBuf, PathBuf) {
    let made = [env.path(&format!("{name}.crt")), env.path(&format!("{name}.key"))];
    let [out, key_out] = made.each_ref().map(|path| path.display().to_string());
    let make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", &key_out, "-out", &out];
    env.run("openssl", &[&make[..], how].concat()).ok();
    let [certificate, key] = made;
    (certificate, key)
}
