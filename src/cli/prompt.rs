//! Questions at a terminal, a line at a time. The terminal stays as it is and does its own editing, so that any terminal will do, a dumb
//! one or a screen reader's too. Only a secret's echo is off while it is typed, and back on whatever happens.
//!
//! A thread of its own waits for lines, so that Ctrl-C is heard meanwhile.

use std::{io, sync::mpsc as requests, thread};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::{mpsc, watch};

use reveille_base::redact::is_like_a_key;

use super::out;

/// The longest line that is taken, in bytes.
const MAX_LINE_BYTES: usize = 4096;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Ctrl-C, or a request to end.
    BrokenOff,
    /// Ctrl-D, or the terminal is gone.
    NoMoreInput,
}

/// Who asks.
pub(super) struct Prompter {
    wanted: requests::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
    /// A line was asked for and hasn't come.
    is_waiting: bool,
    stop: watch::Receiver<bool>,
    /// Whether the terminal can take back what it shows.
    wipes: bool,
}

impl Prompter {
    /// Reads standard input from now on, a line whenever one is asked for.
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

    /// The same on a terminal that can take back what it shows, or one that can't.
    #[must_use]
    pub(super) fn wiping(self, wipes: bool) -> Self {
        Self { wipes, ..self }
    }

    /// Whether it is asked to end.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Becomes `true` when it is asked to end.
    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Asks for a line; without the blanks around it.
    pub(super) async fn line(&mut self, question: &str) -> Result<String, Unanswered> {
        out::prompt(question);
        let line = self.next().await?;
        if self.wipes && is_like_a_key(&line) {
            hide_typed(question, &line);
        }
        Ok(line)
    }

    /// Asks for a line that isn't shown.
    pub(super) async fn secret(&mut self, question: &str) -> Result<String, Unanswered> {
        let unechoed = Unechoed::begin();
        out::prompt(question);
        let line = self.next().await;
        drop(unechoed);
        // What ended the line wasn't shown either.
        out::prompt("\n");
        line
    }

    /// The next line. What is given up here is given to the next who asks.
    pub(super) async fn next(&mut self) -> Result<String, Unanswered> {
        if !self.is_waiting {
            self.wanted.send(()).map_err(|_| Unanswered::NoMoreInput)?;
            self.is_waiting = true;
        }
        let mut stop = self.stop.clone();
        let line = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Err(Unanswered::BrokenOff),
            line = self.lines.recv() => line,
        };
        self.is_waiting = false;
        let line = line.flatten().filter(|line| line.len() <= MAX_LINE_BYTES).ok_or(Unanswered::NoMoreInput)?;
        Ok(line.trim().to_owned())
    }
}

/// Wipes a line off the terminal that shows a key which was pasted where none was asked for.
fn hide_typed(question: &str, line: &str) {
    const USUAL_COLUMNS: usize = 80;
    let columns = tcgetwinsize(io::stdin()).map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { USUAL_COLUMNS } else { columns };
    let asked = question.rsplit('\n').next().unwrap_or(question);
    let rows = (asked.chars().count() + line.chars().count()).div_ceil(columns).max(1);
    let wiped = "\x1b[1A\x1b[2K".repeat(rows);
    out::prompt(&format!("{wiped}\r{asked}***\n"));
}

/// The terminal as it was, to be given back.
struct Unechoed(Option<Termios>);

impl Unechoed {
    fn begin() -> Self {
        let Ok(before) = tcgetattr(io::stdin()) else { return Self(None) };
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // What was typed ahead stays.
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
