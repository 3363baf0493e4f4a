//! Requests as lines on standard input, answers as lines on standard output.

use std::io::{self, BufRead, Read as _, Write};

use tokio::sync::mpsc;

use super::{Handler, MAX_REQUEST_BYTES, MAX_WAITING, Offer, handle_message, run_jobs};
use crate::mcp::{
    RpcError,
    message::{self, Message, Received, render_response},
};

/// Serves this process's standard streams until the input ends.
pub async fn serve(offer: Offer, handler: &mut dyn Handler) {
    let (lines, incoming) = mpsc::channel(MAX_WAITING);
    // A blocking read of standard input can't be cancelled, so it gets its own thread.
    std::thread::spawn(move || forward_lines(io::stdin().lock(), &lines));
    let (jobs, waiting) = mpsc::channel(MAX_WAITING);
    tokio::join!(handle_lines(&offer, incoming, jobs), run_jobs(handler, waiting));
}

/// Forwards lines until the input ends or a line is too long.
fn forward_lines(mut input: impl BufRead, lines: &mpsc::Sender<Result<String, RpcError>>) {
    loop {
        let mut line = Vec::new();
        match (&mut input).take(MAX_REQUEST_BYTES as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(n) if n > MAX_REQUEST_BYTES => {
                let why = format!("a message is longer than {MAX_REQUEST_BYTES} bytes; the connection ends here");
                lines.blocking_send(Err(RpcError::new(RpcError::INVALID, why))).ok();
                return;
            }
            Ok(_) => {}
        }
        let line = String::from_utf8(line).map_err(|_| RpcError::new(RpcError::PARSE, "not UTF-8"));
        if matches!(&line, Ok(line) if line.trim().is_empty()) {
            continue;
        }
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

async fn handle_lines(
    offer: &Offer,
    mut lines: mpsc::Receiver<Result<String, RpcError>>,
    jobs: mpsc::Sender<super::Job>,
) {
    while let Some(line) = lines.recv().await {
        // Each message of a batch is answered on a line of its own.
        let received = match line {
            Ok(line) => message::parse(&line),
            Err(error) => Received::One(Err(error)),
        };
        let messages = match received {
            Received::One(message) => vec![message],
            Received::Batch(messages) => messages,
        };
        for message in messages {
            match message {
                Ok(message) => {
                    let id = match &message {
                        Message::Request { id, .. } | Message::Refused { id, .. } => Some(id.clone()),
                        _ => None,
                    };
                    handle_message(offer, message, &jobs, move |answer| {
                        write_line(&render_response(id.as_ref(), &answer));
                    });
                }
                Err(error) => write_line(&render_response(None, &Err(error))),
            }
        }
    }
}

/// A closed pipe also ends the input, and thereby the server.
fn write_line(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}
