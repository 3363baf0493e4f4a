//! A server as a child: a message a line on its input and output. It is leashed: it ends when this value goes, and with us.

use std::{
    io::{BufRead as _, BufReader, Read, Write as _},
    process::ChildStdin,
    sync::{Arc, Mutex, PoisonError, mpsc as blocking},
    thread,
};

use serde_json::Value;
use tokio::sync::mpsc;

use super::{ClientError, MAX_MESSAGE_BYTES, Reaction, react};
use crate::{
    process::{Leashed, Pipes, Spec},
    sandbox::proxy::Proxy,
};

/// Messages of a server that wait to be read; then it waits.
const MAX_WAITING: usize = 16;
/// How much is kept of what it complains of last, in bytes.
const MAX_COMPLAINT_BYTES: usize = 2_048;

/// A server at work.
#[derive(Debug)]
pub(super) struct Child {
    lines: mpsc::Receiver<Result<String, ClientError>>,
    input: blocking::Sender<String>,
    complaint: Arc<Mutex<Vec<u8>>>,
    _leashed: Leashed,
    _proxy: Option<Proxy>,
}

impl Child {
    /// Starts it.
    pub(super) fn start(spec: &Spec, proxy: Option<Proxy>) -> Result<Self, ClientError> {
        let (leashed, Pipes { stdin, stdout, stderr }) =
            Leashed::start_piped(spec).map_err(|error| ClientError::Unreachable(error.to_string()))?;
        let (said, lines) = mpsc::channel(MAX_WAITING);
        let (input, to_write) = blocking::channel();
        let complaint = Arc::default();
        let kept = Arc::clone(&complaint);
        // Pipes block: each has a thread, which ends with the child.
        thread::spawn(move || read(stdout, &said));
        thread::spawn(move || write(stdin, &to_write));
        thread::spawn(move || keep_last(stderr, &kept));
        Ok(Self { lines, input, complaint, _leashed: leashed, _proxy: proxy })
    }

    /// Says something. What a dead one can't take is noticed by whoever waits for its answer.
    pub(super) fn say(&self, text: String) {
        self.input.send(text).ok();
    }

    /// Waits for the answer to a request, and answers what the server asks meanwhile.
    pub(super) async fn answer_to(&mut self, id: u64, has_news: &mut bool) -> Result<Value, ClientError> {
        loop {
            let line = self.lines.recv().await.ok_or_else(|| self.ended())??;
            match react(&line, id, has_news) {
                Reaction::Answered(answer) => return answer,
                Reaction::Reply(reply) => self.say(reply),
                Reaction::Nothing => {}
            }
        }
    }

    fn ended(&self) -> ClientError {
        let kept = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        ClientError::Unreachable(format!("it ended ({})", super::pin::clean(last.trim(), 300)))
    }
}

fn read(output: impl Read, said: &mpsc::Sender<Result<String, ClientError>>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let line = match (&mut output).take(MAX_MESSAGE_BYTES as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(n) if n > MAX_MESSAGE_BYTES => {
                Err(ClientError::Protocol(format!("it sent a message of more than {MAX_MESSAGE_BYTES} bytes")))
            }
            Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
        };
        let is_over = line.is_err();
        if said.blocking_send(line).is_err() || is_over {
            return;
        }
    }
}

fn write(mut input: ChildStdin, to_write: &blocking::Receiver<String>) {
    while let Ok(text) = to_write.recv() {
        if writeln!(input, "{text}").and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

fn keep_last(mut stream: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(count));
        let excess = kept.len().saturating_sub(MAX_COMPLAINT_BYTES);
        kept.drain(..excess);
    }
}
