//! The fake's files. As on the real server, `getFile` returns a file's path, and a GET of that path returns its bytes. A bot can't fetch
//! files over 20 MB, and a path is valid only after `getFile` has returned it.

use std::{collections::BTreeMap, io::Write as _, net::TcpStream};

use serde_json::{Value, json};

use super::{
    telegram::{Fault, TOKEN},
    telegram_server::{Answer, Shared, State, refusal},
};

const MAX_BYTES: usize = 20 * 1024 * 1024;

/// The content of the files that people sent, by file id.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Answers `getFile`.
pub(super) fn get_file(state: &State, request: &Value) -> Result<Value, &'static str> {
    let file_id = request["file_id"].as_str().unwrap_or_default();
    match state.files.get(file_id) {
        None => Err("invalid file_id"),
        Some(bytes) if bytes.len() > MAX_BYTES => Err("file is too big"),
        Some(bytes) => Ok(json!({"file_id": file_id, "file_unique_id": format!("u-{file_id}"),
            "file_size": bytes.len(), "file_path": format!("files/{file_id}")})),
    }
}

impl Shared {
    /// Serves `GET /file/<path>`. Returns whether the connection stays open.
    pub(super) fn download(&self, verb: &str, path: &str, mut stream: &TcpStream) -> bool {
        let Some(path) = path.strip_prefix(&format!("bot{TOKEN}/")) else {
            return write(stream, refusal(401, "Unauthorized", &Value::Null));
        };
        let mut state = self.lock();
        if verb != "GET" {
            state.violations.push(format!("{verb} of a file"));
        }
        let given_out = |file_id: &&str| {
            state.calls.iter().any(|(method, asked)| method == "getFile" && asked["file_id"] == **file_id)
        };
        let found = path.strip_prefix("files/").filter(given_out).and_then(|file_id| state.files.get(file_id));
        let Some(bytes) = found.cloned() else {
            state.violations.push(format!("no file was given out at {path}"));
            return write(stream, refusal(404, "Not Found", &Value::Null));
        };
        state.calls.push(("download".to_owned(), json!({"file_path": path})));
        let fault = state.faults.iter().position(|(at, _)| at == "download").map(|at| state.faults.remove(at).1);
        self.changed.notify_all();
        drop(state);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        let half = &bytes[..bytes.len() / 2];
        match fault {
            None => stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes)).is_ok(),
            Some(Fault::Status(code, wait)) => {
                write(stream, refusal(code, "as ordered", &json!({ "retry_after": wait })))
            }
            Some(Fault::Refuse(code, description, parameters)) => {
                write(stream, refusal(code, description, &parameters))
            }
            Some(Fault::Foreign(status)) => {
                let body = "<html>not Telegram</html>";
                let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
            }
            Some(Fault::CloseBefore) => false,
            Some(Fault::CloseAfterTaking) => {
                let _closed_already = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(half));
                false
            }
            Some(Fault::Stall) => {
                let _closed_already = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(half));
                drop(self.changed.wait_while(self.lock(), |state| !state.stopping).unwrap());
                false
            }
            Some(fault) => panic!("a download has no {fault:?}"),
        }
    }
}

fn write(mut stream: &TcpStream, answer: Answer) -> bool {
    let (status, answer) = answer.unwrap();
    let body = answer.to_string();
    let head =
        format!("HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
}
