//! The log: lines on standard error for people and for whoever keeps them, each masked on its way out.
//!
//! What is logged is redacted where it is known to need it; this is for the rest: an error of a library's, a line of a child's.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::Arc,
};

use tracing::Level;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::out::LogWriter;
use crate::{config::Config, outside, redact::Redactor};

/// How much is told where `REVEILLE_LOG` says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// What a program does that stays, or that nobody watches.
    Usual,
    /// At a terminal next to nothing: its person waits for an answer, which says what went wrong in words.
    Quiet,
    /// As `--verbose` asks.
    Verbose,
}

/// The level, as the settings say and as fits the program.
fn level(said: Option<Level>, talk: Talk, is_terminal: bool) -> Level {
    match (said, talk) {
        (said, Talk::Verbose) => said.unwrap_or(Level::INFO).max(Level::INFO),
        (Some(said), _) => said,
        (None, Talk::Quiet) if is_terminal => Level::ERROR,
        (None, _) => Level::INFO,
    }
}

/// Begins to log.
pub(super) fn start(config: &Config, talk: Talk) {
    let level = level(config.log_level, talk, io::stderr().is_terminal());
    let is_plain = config.no_color || !io::stderr().is_terminal();
    // whisper.cpp tells its whole life at the level of information.
    let library_level = if level < LevelFilter::DEBUG { LevelFilter::WARN } else { LevelFilter::DEBUG };
    let redactor = Arc::new(super::redactor(config));
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(move || Masked { redactor: Arc::clone(&redactor), inner: LogWriter })
        .with_ansi(!is_plain)
        .with_target(false)
        .finish()
        .with(Targets::new().with_default(LevelFilter::TRACE).with_target("whisper_rs", library_level))
        .init();
}

/// Writes each event, which comes in one piece, without its secrets.
struct Masked<W> {
    redactor: Arc<Redactor>,
    inner: W,
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.inner.write_all(outside::unmarked(&self.redactor.redact(&String::from_utf8_lossy(event))).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Secret;

    #[test]
    fn a_terminal_is_told_more_only_when_asked() {
        assert_eq!(level(None, Talk::Quiet, true), Level::ERROR);
        assert_eq!(level(None, Talk::Quiet, false), Level::INFO);
        assert_eq!(level(None, Talk::Usual, true), Level::INFO);
        assert_eq!(level(Some(Level::WARN), Talk::Quiet, true), Level::WARN);
        assert_eq!(level(Some(Level::ERROR), Talk::Verbose, true), Level::INFO);
        assert_eq!(level(Some(Level::DEBUG), Talk::Verbose, true), Level::DEBUG);
    }

    #[test]
    fn no_event_shows_a_secret() {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        struct Into(Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Into {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let redactor = Arc::new(Redactor::new([&Secret::new("open sesame")]));
        let inner = Arc::clone(&seen);
        let writer = move || Masked { redactor: Arc::clone(&redactor), inner: Into(Arc::clone(&inner)) };
        let log = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).without_time().finish();
        tracing::subscriber::with_default(log, || {
            let error = "GET https://host/open%20sesame: refused";
            tracing::warn!(%error, key = "open sesame", "no luck with open sesame");
        });
        let seen = String::from_utf8(seen.lock().unwrap().clone()).unwrap();
        assert_eq!(
            seen,
            " WARN reveille::cli::log::tests: no luck with *** error=GET https://host/***: refused key=\"***\"\n"
        );
    }
}
