//! A conversation with a leashed child, line by line. Its output is read as it arrives, and the end of its standard error is kept.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write as _},
    process::ChildStdin,
    sync::{Arc, Mutex, PoisonError, mpsc as blocking},
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use super::{DRAIN_GRACE, Leashed, Pipes, ProcessError, Spec};

/// The number of unread output lines after which the child has to wait.
const MAX_WAITING: usize = 16;
/// The number of bytes kept from the end of standard error.
const MAX_COMPLAINT_BYTES: usize = 2_048;

/// A running child. Dropping it kills the child with its group. Until then the child's input stays open.
#[derive(Debug)]
pub struct Lines {
    said: mpsc::Receiver<io::Result<String>>,
    input: blocking::Sender<String>,
    complaint: Arc<Mutex<Vec<u8>>>,
    /// Receives a message when the child has closed its standard error.
    has_complained: oneshot::Receiver<()>,
    leashed: Arc<Mutex<Option<Leashed>>>,
}

/// Ends a child after a time unless dropped earlier; see [`Lines::kill_after`].
#[derive(Debug)]
pub struct Fuse {
    _burning: blocking::Sender<()>,
}

impl Lines {
    /// Starts a child whose output lines may have `max_line_bytes`.
    ///
    /// # Errors
    /// Fails if the program can't be started.
    pub fn start(spec: &Spec, max_line_bytes: usize) -> Result<Self, ProcessError> {
        let (leashed, Pipes { stdin, stdout, stderr }) = Leashed::start_with_pipes(spec)?;
        let (sender, said) = mpsc::channel(MAX_WAITING);
        let (input, lines_to_write) = blocking::channel();
        let complaint = Arc::default();
        let kept = Arc::clone(&complaint);
        // Pipes block, so each has a thread, which ends with the child.
        thread::spawn(move || read_lines(stdout, max_line_bytes, &sender));
        thread::spawn(move || write_lines(stdin, &lines_to_write));
        let (all_kept, has_complained) = oneshot::channel();
        thread::spawn(move || {
            keep_last(stderr, &kept);
            all_kept.send(()).ok();
        });
        Ok(Self { said, input, complaint, has_complained, leashed: Arc::new(Mutex::new(Some(leashed))) })
    }

    /// Sends a line. For a dead child the failure shows in the missing answer.
    pub fn send_line(&self, line: String) {
        self.input.send(line).ok();
    }

    /// The next line; `None` after the child has closed its output.
    ///
    /// # Errors
    /// Fails if the line is too long; no further line follows.
    pub async fn next(&mut self) -> Option<io::Result<String>> {
        self.said.recv().await
    }

    /// Returns the most telling line of standard error. Meant for a child that is ending. Empty if there was no output.
    pub async fn find_error_line(&mut self) -> String {
        // A descendant may hold the pipe for ever.
        if !self.has_complained.is_terminated() {
            drop(tokio::time::timeout(DRAIN_GRACE, &mut self.has_complained).await);
        }
        let kept = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        find_telling_line(&String::from_utf8_lossy(&kept)).to_owned()
    }

    /// Returns true until a fuse has ended the child.
    pub fn is_leashed(&self) -> bool {
        self.leashed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Kills the child with its group after this time, even if this process blocks. Dropping the fuse cancels the kill.
    pub fn kill_after(&self, time: Duration) -> Fuse {
        let (burning, put_out) = blocking::channel();
        let leashed = Arc::clone(&self.leashed);
        thread::spawn(move || {
            if put_out.recv_timeout(time) == Err(blocking::RecvTimeoutError::Timeout) {
                drop(leashed.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        });
        Fuse { _burning: burning }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.leashed.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Finds the last line that a runtime didn't append: stack frames, versions and the path of a log are skipped.
fn find_telling_line(text: &str) -> &str {
    let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let is_appended = |line: &str| {
        let is_brackets = line.chars().all(|c| "{}[](),;".contains(c));
        is_brackets
            || ["at ", "Node.js v", "Bun v"].iter().any(|beginning| line.starts_with(beginning))
            || line.contains("complete log of this run")
    };
    lines().find(|line| !is_appended(line)).or_else(|| lines().next()).unwrap_or_default()
}

fn read_lines(output: impl Read, max_line_bytes: usize, said: &mpsc::Sender<io::Result<String>>) {
    let mut output = BufReader::new(output);
    let limit = u64::try_from(max_line_bytes).unwrap_or(u64::MAX);
    loop {
        let mut line = Vec::new();
        let line = match (&mut output).take(limit.saturating_add(1)).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(n) if n > max_line_bytes => Err(io::Error::other(format!("a line of more than {max_line_bytes} bytes"))),
            Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
        };
        let is_too_long = line.is_err();
        if said.blocking_send(line).is_err() || is_too_long {
            return;
        }
    }
}

fn write_lines(mut input: ChildStdin, to_write: &blocking::Receiver<String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn send_and_receive(lines: &mut Lines, line: &str) -> Option<String> {
        lines.send_line(line.to_owned());
        lines.next().await.map(|line| line.unwrap())
    }

    #[tokio::test]
    async fn a_child_answers_until_its_fuse_ends_it() {
        let mut lines = Lines::start(&Spec::new("cat"), 100).unwrap();
        assert_eq!(send_and_receive(&mut lines, "one").await.unwrap(), "one\n");
        drop(lines.kill_after(Duration::from_secs(3600)));
        assert_eq!(send_and_receive(&mut lines, "two").await.unwrap(), "two\n");
        let _fuse = lines.kill_after(Duration::ZERO);
        assert!(lines.next().await.is_none());
    }

    #[tokio::test]
    async fn an_overlong_line_ends_the_output_and_the_error_text_is_kept() {
        let script = "echo 12345678; echo 'no such thing' >&2; cat >/dev/null";
        let mut lines = Lines::start(&Spec::new("sh").args(["-c", script]), 5).unwrap();
        assert!(lines.next().await.unwrap().is_err());
        assert!(lines.next().await.is_none());
        let mut lines = Lines::start(&Spec::new("sh").args(["-c", "echo 'no such thing' >&2"]), 5).unwrap();
        assert!(lines.next().await.is_none());
        assert_eq!(lines.find_error_line().await, "no such thing");
    }
}
