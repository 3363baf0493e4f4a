//! The one place that writes to standard output and standard error. So a line that is only there for the moment never stands
//! between two others, and what couldn't be written is told once, at the end.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write},
    process::ExitCode,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use reveille_base::approval_text::without_hidden;
use reveille_memory::{outside, render::without_escapes};

use super::{EXIT_FAILED, EXIT_OK};

/// Why standard output couldn't be written; the first reason counts.
static FAILED: OnceLock<io::Error> = OnceLock::new();
/// What was printed last on standard output.
static PRINTED: Mutex<String> = Mutex::new(String::new());
/// What stands on the terminal's last line for the moment.
static LINE: Mutex<Option<String>> = Mutex::new(None);

/// Writes text for people to standard output, without what a terminal would act on.
pub(super) fn print(text: &str) {
    print_exactly(&without_escapes(text));
}

/// Writes data to standard output as it is. Says whether it was written.
pub(super) fn print_exactly(text: &str) -> bool {
    let written = aside(|| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    });
    match written {
        Ok(()) => {
            text.clone_into(&mut PRINTED.lock().unwrap_or_else(PoisonError::into_inner));
            true
        }
        Err(error) => {
            // Later ones say nothing new.
            FAILED.set(error).ok();
            false
        }
    }
}

/// Writes a value as one line of JSON to standard output, without the unseen marks that texts carry.
pub(super) fn print_json(value: &impl serde::Serialize) {
    print_json_checked(value);
}

/// As [`print_json`], and says whether it was written.
pub(super) fn print_json_checked(value: &impl serde::Serialize) -> bool {
    let document = serde_json::to_string(value).unwrap_or_default();
    print_exactly(&format!("{}\n", outside::unmarked(&document)))
}

/// Writes a line for people to standard error, without what a terminal would act on or not show.
pub(super) fn complain(text: &str) {
    let text = without_escapes(text.trim_end());
    aside(|| writeln!(io::stderr().lock(), "{}", without_hidden(&text))).ok();
}

/// Writes a question to standard error, without an end of line: the answer comes behind it.
pub(super) fn prompt(text: &str) {
    let text = without_escapes(text);
    aside(|| {
        let mut err = io::stderr().lock();
        write!(err, "{text}").and_then(|()| err.flush())
    })
    .ok();
}

/// The exit code of a program that is done, if what it printed has arrived. Whoever closed the pipe wanted no more.
pub(super) fn end(code: ExitCode) -> ExitCode {
    match FAILED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("The output is incomplete: standard output can't be written ({error})."));
            if code == ExitCode::from(EXIT_OK) { ExitCode::from(EXIT_FAILED) } else { code }
        }
        _ => code,
    }
}

/// Whether standard output couldn't be written: nobody reads on.
pub(super) fn has_failed() -> bool {
    FAILED.get().is_some()
}

/// Whether a person at this terminal has just read this, within what was printed last. What else is printed repeats it.
pub(super) fn has_just_said(text: &str) -> bool {
    is_terminal() && PRINTED.lock().unwrap_or_else(PoisonError::into_inner).contains(text)
}

/// Whether standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// How many columns the terminal has; none if that isn't known.
pub(super) fn columns() -> usize {
    rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col))
}

/// A line that says on a terminal's standard error what goes on, until it is dropped. Elsewhere it is nothing.
#[derive(Debug)]
pub(super) struct Working(());

impl Working {
    pub(super) fn on(text: &str) -> Self {
        let working = Self(());
        working.say(text);
        working
    }

    /// Puts another text in its place.
    pub(super) fn say(&self, text: &str) {
        if io::stderr().is_terminal() {
            put(&mut line(), text);
        }
    }
}

/// Puts another text in the place of the one that stands there, if one does: for another thread than whose line it is.
pub(super) fn say_instead(text: &str) {
    let mut line = line();
    if line.is_some() {
        put(&mut line, text);
    }
}

fn put(line: &mut Option<String>, text: &str) {
    if line.as_deref() != Some(text) {
        clear(line);
        *line = Some(text.to_owned());
        draw(line);
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        clear(&line().take());
    }
}

/// Standard error for the log, which writes a whole event at a time.
#[derive(Debug)]
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        aside(|| io::stderr().lock().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes something while the line of the moment is out of the way.
fn aside<T>(write: impl FnOnce() -> T) -> T {
    let line = line();
    clear(&line);
    let written = write();
    draw(&line);
    written
}

fn draw(line: &Option<String>) {
    if let Some(text) = line {
        write!(io::stderr().lock(), "{text}").ok();
    }
}

/// By blanks: whoever wants no colours may have no sequences either.
fn clear(line: &Option<String>) {
    if let Some(text) = line {
        write!(io::stderr().lock(), "\r{}\r", " ".repeat(text.chars().count())).ok();
    }
}

fn line() -> MutexGuard<'static, Option<String>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
