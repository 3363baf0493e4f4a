//! A small server of pages on loopback, which notes what it was asked.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// A running server.
pub(super) struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Serves pages by their paths. `PORT` in a page is the server's port. Some paths are special: `/stream` never ends,
    /// `/file/NAME` is an attachment, `/redirect?URL` redirects.
    pub(super) fn serve(pages: &[(&'static str, &str)]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let port = address.port().to_string();
        let pages: HashMap<String, String> =
            pages.iter().map(|(path, page)| ((*path).to_owned(), page.replace("PORT", &port))).collect();
        let (pages, asked) = (Arc::new(pages), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (pages, noted) = (Arc::clone(&pages), Arc::clone(&noted));
                std::thread::spawn(move || answer(client, &pages, &noted));
            }
        });
        Self { address, asked }
    }

    /// Serves the files of a folder. `change` may alter each.
    pub(super) fn serve_folder(folder: std::path::PathBuf, change: fn(&str, Vec<u8>) -> Vec<u8>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let folder = folder.clone();
                std::thread::spawn(move || answer_file(client, &folder, change));
            }
        });
        Self { address, asked: Arc::default() }
    }

    pub(super) fn place(&self, host: &str) -> String {
        format!("{host}:{}", self.address.port())
    }

    pub(super) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{}{path}", self.place(host))
    }

    /// The requests so far: method, path and body.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut client: TcpStream, pages: &HashMap<String, String>, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    asked.lock().unwrap().push(format!("{method} {path} {}", String::from_utf8_lossy(&body)).trim().to_owned());
    let plain = path.split('?').next().unwrap();
    let mut respond = |status: &str, headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        client.write_all(head.as_bytes()).ok();
        client.write_all(body).ok();
    };
    if let Some(name) = plain.strip_prefix("/file/") {
        let headers =
            format!("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n");
        respond("200 OK", &headers, b"%PDF-1.7 an invoice");
    } else if plain == "/stream" {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1073741824\r\n\
                    Content-Disposition: attachment; filename=huge.bin\r\n\r\n";
        client.write_all(head.as_bytes()).ok();
        while client.write_all(&[b'x'; 65_536]).is_ok() {}
    } else if let Some(to) = path.strip_prefix("/redirect?") {
        respond("302 Found", &format!("Location: {to}\r\n"), b"");
    } else if let Some(page) = pages.get(plain) {
        respond("200 OK", "Content-Type: text/html; charset=utf-8\r\n", page.as_bytes());
    } else {
        respond("404 Not Found", "Content-Type: text/html\r\n", b"<h1>Not found</h1>");
    }
}

fn answer_file(mut client: TcpStream, folder: &std::path::Path, change: fn(&str, Vec<u8>) -> Vec<u8>) {
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let (mut first, mut line) = (String::new(), String::new());
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap().split('?').next().unwrap().trim_start_matches('/').to_owned();
    let kind = match path.rsplit('.').next().unwrap() {
        "html" => "text/html",
        "css" => "text/css",
        "js" => "text/javascript",
        "png" => "image/png",
        _ => "application/octet-stream",
    };
    let (status, body) = match std::fs::read(folder.join(&path)) {
        Ok(body) => ("200 OK", change(&path, body)),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).ok();
    client.write_all(&body).ok();
}
