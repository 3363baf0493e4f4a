//! The local page: the real `wake page`, asked over real sockets, and by a real browser.

mod attacks;
mod axe;
mod browser;
mod charts;
mod chat;
mod chat_browser;
mod chat_files;
mod health;
mod in_place;
mod lived;
mod memory;
mod questions;
mod settings;
mod settings_story;
mod today;
mod together;
mod wakes;

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use super::support::env::{Running, TestEnv, eventually};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");

/// A page that is being served, and a browser's cookie for it.
pub(crate) struct ServedPage<'a> {
    env: &'a TestEnv,
    running: Option<Running>,
    port: u16,
    /// The name and port that it is asked by.
    pub(crate) host: String,
    /// The cookie's line.
    pub(crate) cookie: String,
}

/// The boundary between the parts of a form with files.
pub(crate) const BOUNDARY: &str = "----a-boundary-of-tests";

/// A part of a form with files.
pub(crate) struct Part<'a> {
    pub(crate) field: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) bytes: &'a [u8],
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answered {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// Checks that it is a page, and gives its HTML.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.status, 200, "{self:#?}");
        self.body
    }

    /// Checks that it leads elsewhere after something was done, and says where to.
    #[track_caller]
    pub(crate) fn see_other(&self) -> String {
        assert_eq!(self.status, 303, "{self:#?}");
        self.header("location").unwrap().to_owned()
    }
}

impl<'a> ServedPage<'a> {
    /// Serves the page of a world, and enters it.
    pub(crate) fn open(env: &'a TestEnv) -> Self {
        let mut page = Self::serve(env);
        let entered = page.send(&format!("GET {}", page.ticket()), &[], "");
        assert_eq!(entered.see_other(), "/");
        page.cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        page
    }

    /// Serves it, and leaves it at that.
    pub(crate) fn serve(env: &'a TestEnv) -> Self {
        let log = env.path("page.log");
        let running = env.start_logged(WAKE, &["page"], &log);
        eventually("the page is served", || std::fs::read_to_string(&log).unwrap().contains("Serving on"));
        let mut page = Self { env, running: Some(running), port: 0, host: String::new(), cookie: String::new() };
        let address = page.address();
        page.host = address.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        page.port = page.host.split_once(':').unwrap().1.parse().unwrap();
        page
    }

    /// An address that works once.
    pub(crate) fn address(&self) -> String {
        self.env.wake(&["page", "--address"]).ok().stdout.trim_end().to_owned()
    }

    /// The path of one.
    pub(crate) fn ticket(&self) -> String {
        self.address().split_once(&self.host).unwrap().1.to_owned()
    }

    /// What the server has said so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.env.path("page.log")).unwrap()
    }

    /// Ends it by a signal; it must end well.
    pub(crate) fn end(mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal(rustix::process::Signal::TERM);
        let ran = running.end().ok();
        ran.stdout + &self.log()
    }

    /// Asks as the known browser does when its person goes somewhere.
    pub(crate) fn get(&self, path: &str) -> Answered {
        self.send(&format!("GET {path}"), &[("Cookie", &self.cookie), ("Sec-Fetch-Site", "same-origin")], "")
    }

    /// Sends a form as the known browser does.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let origin = format!("http://{}", self.host);
        let headers = [
            ("Cookie", self.cookie.as_str()),
            ("Origin", &origin),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.send(&format!("POST {path}"), &headers, &form(fields))
    }

    /// Sends a request with these headers; `Host` is right, unless it is among them.
    pub(crate) fn send(&self, what: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut request = format!("{what} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            write!(request, "Host: {}\r\n", self.host).unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        if !body.is_empty() {
            write!(request, "Content-Length: {}\r\n", body.len()).unwrap();
        }
        self.raw(&format!("{request}\r\n{body}"))
    }

    /// Sends a form with files as the known browser does. A part with a file's name is a file.
    pub(crate) fn upload(&self, path: &str, parts: &[Part<'_>]) -> Answered {
        let mut body = Vec::new();
        for Part { field, file, bytes } in parts {
            let name = file.map(|name| format!("; filename=\"{name}\"\r\nContent-Type: application/octet-stream"));
            let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"");
            body.extend_from_slice(format!("{head}{}\r\n\r\n", name.unwrap_or_default()).as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        let mut request = self.upload_head(path, body.len()).into_bytes();
        request.append(&mut body);
        self.raw_bytes(&request)
    }

    /// The head of such a form of this length.
    pub(crate) fn upload_head(&self, path: &str, length: usize) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {0}\r\nCookie: {1}\r\nOrigin: http://{0}\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {length}\r\n\r\n",
            self.host, self.cookie
        )
    }

    /// Sends bytes as they are, and reads to the end.
    pub(crate) fn raw(&self, request: &str) -> Answered {
        self.raw_bytes(request.as_bytes())
    }

    fn raw_bytes(&self, request: &[u8]) -> Answered {
        let mut stream = self.connect();
        // What is refused early may be answered before all was sent.
        stream.write_all(request).ok();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answered { status, head: head.replace("\r\n", "\n"), body: body.to_owned() }
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

/// Fields as a form sends them.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}
