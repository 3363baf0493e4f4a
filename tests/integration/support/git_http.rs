//! git over http on loopback: git's own CGI program behind a small server that asks for a user name and a password.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::http::{HttpServer, Request, Response};

/// The running server. It serves every repository below a directory.
pub(crate) struct GitHttp {
    server: HttpServer,
    requests: Arc<AtomicUsize>,
}

impl GitHttp {
    pub(crate) fn start(root: &Path, user: &str, password: &str) -> Self {
        let root = root.to_owned();
        let expected = format!("Basic {}", base64(format!("{user}:{password}").as_bytes()));
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let server = HttpServer::start(move |request| {
            if request.header("authorization") != Some(&expected) {
                return Response::new(401, "").header("www-authenticate", "Basic realm=\"memory\"");
            }
            counted.fetch_add(1, Ordering::SeqCst);
            backend(&root, request)
        });
        Self { server, requests }
    }

    /// The server's port.
    pub(crate) fn port(&self) -> u16 {
        self.server.url().rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap()
    }

    /// The address of a repository, with credentials in it.
    pub(crate) fn url(&self, credentials: &str, repository: &str) -> String {
        let url = self.server.url().replace("://", &format!("://{credentials}@"));
        format!("{url}/{repository}")
    }

    /// The number of requests with the right credentials.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Answers a request with `git http-backend`, by the rules of CGI.
fn backend(root: &Path, request: &Request) -> Response {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    #[expect(clippy::disallowed_methods, reason = "a server of the tests is no child of the program")]
    let mut command = Command::new("git");
    let header = |name| request.header(name).unwrap_or_default();
    let mut child = command
        .arg("http-backend")
        .env_clear()
        .env("PATH", super::env::search_path())
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REMOTE_USER", "ann")
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It's no error if the program doesn't read the whole body.
    child.stdin.take().unwrap().write_all(&request.body).ok();
    response(&child.wait_with_output().unwrap().stdout)
}

/// Converts the program's output (headers, an empty line, a body) to an HTTP response.
fn response(output: &[u8]) -> Response {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let headers = String::from_utf8_lossy(&output[..end]).into_owned();
    let headers: Vec<_> = headers.lines().filter_map(|line| line.split_once(": ")).collect();
    let status = headers.iter().find(|(name, _)| *name == "Status");
    let status = status.and_then(|(_, value)| value.get(..3)?.parse().ok()).unwrap_or(200);
    let response = Response::new(status, &output[end + 4..]);
    headers
        .iter()
        .filter(|(name, _)| *name != "Status")
        .fold(response, |response, (name, value)| response.header(name, value))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quads = bytes.chunks(3).map(|three| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        let digit = |at: usize| char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
        let quad: String = (0..4).map(|at| if at <= three.len() { digit(at) } else { '=' }).collect();
        quad
    });
    quads.collect()
}
