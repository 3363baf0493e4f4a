//! The only module that writes to standard output and standard error. So a temporary line never gets between other
//! lines, and write errors are reported once, at the end.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write},
    process::ExitCode,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use reveille_base::approval_text::remove_hidden;
use reveille_memory::{outside, render::without_escapes};

use super::{EXIT_FAILED, EXIT_OK};

/// The first error of writing to standard output.
static FAILED: OnceLock<io::Error> = OnceLock::new();
/// The last text on standard output.
static PRINTED: Mutex<String> = Mutex::new(String::new());
/// The temporary text on the terminal's last lines.
static LINE: Mutex<Option<String>> = Mutex::new(None);

/// The form of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// For people.
    Text,
    /// One document, or one per line for lists.
    Json,
}

impl OutputFormat {
    /// Converts the flag `--json`.
    pub(super) fn from_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    pub(super) fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// Prints text for people on standard output, without terminal control sequences.
pub(super) fn print(text: &str) {
    print_exactly(&without_escapes(text));
}

/// Prints data unchanged on standard output. Returns `true` if it was written.
pub(super) fn print_exactly(text: &str) -> bool {
    let written = write_without_line(|| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    });
    match written {
        Ok(()) => {
            text.clone_into(&mut PRINTED.lock().unwrap_or_else(PoisonError::into_inner));
            true
        }
        Err(error) => {
            // Later errors add nothing.
            FAILED.set(error).ok();
            false
        }
    }
}

/// Prints a value as one line of JSON on standard output, without the hidden marks of texts.
pub(super) fn print_json(value: &impl serde::Serialize) {
    print_json_checked(value);
}

/// The same as [`print_json`], and returns `true` if it was written.
pub(super) fn print_json_checked(value: &impl serde::Serialize) -> bool {
    let document = serde_json::to_string(value).unwrap_or_default();
    print_exactly(&format!("{}\n", outside::strip_marks(&document)))
}

/// Prints a line for people on standard error, without control sequences and invisible characters.
pub(super) fn complain(text: &str) {
    let text = without_escapes(text.trim_end());
    write_without_line(|| writeln!(io::stderr().lock(), "{}", remove_hidden(&text))).ok();
}

/// Prints a question on standard error without a line end, since the answer follows it.
pub(super) fn prompt(text: &str) {
    let text = without_escapes(text);
    write_without_line(|| {
        let mut err = io::stderr().lock();
        write!(err, "{text}").and_then(|()| err.flush())
    })
    .ok();
}

/// Returns the final exit code, which reports output that couldn't be written. A closed pipe is no error.
pub(super) fn final_exit_code(code: ExitCode) -> ExitCode {
    match FAILED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("The output is incomplete: standard output can't be written ({error})."));
            if code == ExitCode::from(EXIT_OK) { ExitCode::from(EXIT_FAILED) } else { code }
        }
        _ => code,
    }
}

/// Returns `true` if standard output can't be written, so nobody reads on.
pub(super) fn has_failed() -> bool {
    FAILED.get().is_some()
}

/// Returns `true` if a person at this terminal has just read this text in the last output, so repeating it makes no
/// sense.
pub(super) fn has_just_said(text: &str) -> bool {
    is_terminal() && PRINTED.lock().unwrap_or_else(PoisonError::into_inner).contains(text)
}

/// Returns `true` if standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Returns the size of the terminal on standard error. `None` if it is none.
pub(super) fn terminal_size() -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    let known = |size: u16, usual| if size == 0 { usual } else { usize::from(size) };
    Some(TerminalSize { columns: known(size.ws_col, 80), rows: known(size.ws_row, 24) })
}

/// Returns the number of the terminal's columns; 0 if unknown.
pub(super) fn columns() -> usize {
    rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col))
}

/// A temporary progress line on a terminal's standard error, removed on drop. Elsewhere nothing is shown.
#[derive(Debug)]
pub(super) struct Working(());

impl Working {
    pub(super) fn start(text: &str) -> Self {
        let working = Self(());
        working.say(text);
        working
    }

    /// Replaces the text.
    pub(super) fn say(&self, text: &str) {
        if io::stderr().is_terminal() {
            replace_line(&mut lock_line(), text);
        }
    }
}

/// Replaces the temporary text if there is one, for threads that don't own the line.
pub(super) fn say_instead(text: &str) {
    let mut line = lock_line();
    if line.is_some() {
        replace_line(&mut line, text);
    }
}

fn replace_line(line: &mut Option<String>, text: &str) {
    if line.as_deref() != Some(text) {
        clear_line(line);
        *line = Some(text.to_owned());
        draw_line(line);
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        clear_line(&lock_line().take());
    }
}

/// Standard error for the log, which writes whole events.
#[derive(Debug)]
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_without_line(|| io::stderr().lock().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes something while the temporary line is removed.
fn write_without_line<T>(write: impl FnOnce() -> T) -> T {
    let line = lock_line();
    clear_line(&line);
    let written = write();
    draw_line(&line);
    written
}

fn draw_line(line: &Option<String>) {
    if let Some(text) = line {
        write!(io::stderr().lock(), "{text}").ok();
    }
}

/// Overwrites a line with blanks: a terminal without colours may not support control sequences. Several lines are shown only where it
/// does.
fn clear_line(line: &Option<String>) {
    let Some(text) = line else { return };
    let clear = match text.matches('\n').count() {
        0 => format!("\r{}\r", " ".repeat(text.chars().count())),
        above => format!("\r\x1b[{above}A\x1b[J"),
    };
    io::stderr().lock().write_all(clear.as_bytes()).ok();
}

fn lock_line() -> MutexGuard<'static, Option<String>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
