//! Asks questions at a terminal, line by line. The terminal does its own editing, so even a dumb one or a screen reader
//! works. Only the echo of a secret is switched off while it is typed, and always restored.
//!
//! A separate thread reads lines, so Ctrl-C is noticed meanwhile.

use std::{io, sync::mpsc as requests, thread};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::{mpsc, watch};

use reveille_base::redact::is_like_a_key;

use super::out;

/// Maximum bytes of a line.
const MAX_LINE_BYTES: usize = 4096;

/// The reason for a missing answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Ctrl-C, or a request to end.
    Cancelled,
    /// Ctrl-D, or the terminal is gone.
    NoMoreInput,
}

/// Asks questions.
pub(super) struct Prompter {
    wanted: requests::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
    /// `true` if a line was requested and hasn't arrived.
    is_waiting: bool,
    stop: watch::Receiver<bool>,
    /// `true` if the terminal can erase text.
    wipes: bool,
}

impl Prompter {
    /// Starts the thread that reads standard input, one line per request.
    pub(super) fn start(stop: watch::Receiver<bool>) -> io::Result<Self> {
        let (wanted, requests) = requests::channel::<()>();
        let (sender, lines) = mpsc::channel(1);
        thread::Builder::new().name("prompt".to_owned()).spawn(move || {
            while requests.recv().is_ok() {
                let mut line = String::new();
                let read = io::stdin().read_line(&mut line);
                let line = read.ok().filter(|bytes| *bytes > 0).map(|_| line);
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { wanted, lines, is_waiting: false, stop, wipes: false })
    }

    /// Sets if the terminal can erase text.
    #[must_use]
    pub(super) fn with_wiping(self, wipes: bool) -> Self {
        Self { wipes, ..self }
    }

    /// Returns `true` if the process was asked to end.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Becomes `true` when the process is asked to end.
    pub(super) fn stop_receiver(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Asks for a line, and returns it without surrounding blanks.
    pub(super) async fn read_line(&mut self, question: &str) -> Result<String, Unanswered> {
        out::prompt(question);
        let line = self.next().await?;
        if self.wipes && is_like_a_key(&line) {
            hide_typed_line(question, &line);
        }
        Ok(line)
    }

    /// Asks for a line without echo.
    pub(super) async fn read_secret(&mut self, question: &str) -> Result<String, Unanswered> {
        let unechoed = Unechoed::begin();
        out::prompt(question);
        let line = self.next().await;
        drop(unechoed);
        // The line end wasn't echoed either.
        out::prompt("\n");
        line
    }

    /// Reads the next line. A line abandoned here goes to the next caller.
    pub(super) async fn next(&mut self) -> Result<String, Unanswered> {
        if !self.is_waiting {
            self.wanted.send(()).map_err(|_| Unanswered::NoMoreInput)?;
            self.is_waiting = true;
        }
        let mut stop = self.stop.clone();
        let line = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Err(Unanswered::Cancelled),
            line = self.lines.recv() => line,
        };
        self.is_waiting = false;
        let line = line.flatten().filter(|line| line.len() <= MAX_LINE_BYTES).ok_or(Unanswered::NoMoreInput)?;
        Ok(line.trim().to_owned())
    }
}

/// Erases a line from the terminal that shows a key pasted in the wrong place.
fn hide_typed_line(question: &str, line: &str) {
    const USUAL_COLUMNS: usize = 80;
    let columns = tcgetwinsize(io::stdin()).map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
    let asked = question.rsplit('\n').next().unwrap_or(question);
    let rows = (asked.chars().count() + line.chars().count()).div_ceil(columns).max(1);
    let wiped = "\x1b[1A\x1b[2K".repeat(rows);
    out::prompt(&format!("{wiped}\r{asked}***\n"));
}

/// The original state of the terminal, restored on drop.
struct Unechoed(Option<Termios>);

impl Unechoed {
    fn begin() -> Self {
        let Ok(before) = tcgetattr(io::stdin()) else { return Self(None) };
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // Text typed ahead is kept.
        tcsetattr(io::stdin(), OptionalActions::Now, &silent).ok();
        Self(Some(before))
    }
}

impl Drop for Unechoed {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        }
    }
}
