//! Logging: files in the workspace ([`reveille_base::logs`]) and standard error for whoever watches. Each line is
//! masked on output.
//!
//! Known secrets are redacted where they are logged. This mask covers the rest, such as library errors and output of
//! child processes. Files are opened only for a first line, so an idle wake pays nothing.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write},
    sync::{Arc, OnceLock},
};

use tracing::Level;
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt::{
        FormatFields,
        format::{DefaultFields, FmtSpan, Writer},
        time::FormatTime,
    },
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use reveille_base::{
    approval_text::remove_hidden,
    clock::{Clock, format_rfc3339},
    logs::{LogFile, MAX_LINE_BYTES},
    redact::Redactor,
};
use reveille_config::{Config, LogFormat};

use super::out::LogWriter;

/// Target of lines whose content is on standard error already. They go to the files only.
pub(super) const TOLD: &str = "reveille::told";
/// Target of notes about settings, which every start would repeat. They go to standard error only.
pub(super) const NOTE: &str = "reveille::note";

/// The default log volume if `REVEILLE_LOG` is unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// For programs that keep running or run unwatched.
    Usual,
    /// Errors only, for a person at a terminal who gets explanations with the answer.
    Quiet,
    /// For `--verbose`.
    Verbose,
}

/// Who reads standard error.
#[derive(Debug, Clone, Copy)]
struct LogReaders {
    is_terminal: bool,
    /// `true` if a file keeps the rest.
    has_file: bool,
}

/// Returns the level on standard error, from the settings and the program.
fn choose_level(said: Option<Level>, talk: Talk, readers: LogReaders) -> Level {
    match (said, talk) {
        (said, Talk::Verbose) => said.unwrap_or(Level::INFO).max(Level::INFO),
        (Some(said), _) => said,
        (None, Talk::Quiet) if readers.is_terminal => Level::ERROR,
        // cron mails everything on standard error.
        (None, _) if readers.has_file && !readers.is_terminal => Level::WARN,
        (None, _) => Level::INFO,
    }
}

/// The log's redactor. A wake uses it for everything, since building another costs a twelfth of the CPU instructions
/// of a wake for one message.
static MASK: OnceLock<Redactor> = OnceLock::new();

/// Returns the log's redactor, for programs with constant settings.
pub(super) fn redactor(config: &Config) -> Redactor {
    MASK.get_or_init(|| super::build_redactor(config)).clone()
}

/// Starts logging. `program` names the log file, one of [`reveille_base::logs::LOGGED`]. `None` writes no file.
pub(super) fn start(config: &Config, talk: Talk, program: Option<&'static str>) {
    let program = program.filter(|_| config.log_format != LogFormat::Off);
    let is_terminal = io::stderr().is_terminal();
    let level = choose_level(config.log_level, talk, LogReaders { is_terminal, has_file: program.is_some() });
    let redactor = Arc::new(redactor(config));
    let clock: Arc<dyn Clock> = Arc::from(config.clock());

    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    if let Some(program) = program {
        layers.push(build_file_layer(config, program, &redactor, &clock));
    }
    let stderr_layer = tracing_subscriber::fmt::layer()
        .with_timer(At { clock, who: String::new() })
        .with_writer(move || Masked { redactor: Arc::clone(&redactor), inner: LogWriter })
        .with_ansi(is_terminal && !config.no_color)
        .with_target(false)
        .with_filter(build_targets(config, level).with_target(TOLD, LevelFilter::OFF));
    layers.push(stderr_layer.boxed());
    tracing_subscriber::registry().with(layers).init();
}

/// Builds the layer that writes a program's log file.
fn build_file_layer(
    config: &Config,
    program: &'static str,
    redactor: &Arc<Redactor>,
    clock: &Arc<dyn Clock>,
) -> Box<dyn Layer<Registry> + Send + Sync> {
    let file = Arc::new(LogFile::new(&config.logs_dir(), program));
    let form = config.log_format;
    let redactor = Arc::clone(redactor);
    let writer = move || Kept { redactor: Arc::clone(&redactor), file: Arc::clone(&file), form, program };
    let who = if form == LogFormat::Json { String::new() } else { format!(" {program}[{}]", std::process::id()) };
    // The end of each cycle and each call logs its duration.
    let layer = tracing_subscriber::fmt::layer()
        .with_timer(At { clock: Arc::clone(clock), who })
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(writer)
        .with_ansi(false);
    let filter = build_targets(config, config.log_level.unwrap_or(Level::INFO)).with_target(NOTE, LevelFilter::OFF);
    match form {
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(true).with_filter(filter).boxed(),
        _ => layer.with_target(false).fmt_fields(Plainly(DefaultFields::new())).with_filter(filter).boxed(),
    }
}

fn build_targets(config: &Config, level: Level) -> Targets {
    // whisper.cpp logs every detail at the info level.
    let library_level = if level < LevelFilter::DEBUG { LevelFilter::WARN } else { LevelFilter::DEBUG };
    let by_level = || Targets::new().with_default(level).with_target("whisper_rs", library_level);
    config.log_targets.clone().unwrap_or_else(by_level)
}

/// Prefixes lines with the time of our clock and the writer.
struct At {
    clock: Arc<dyn Clock>,
    who: String,
}

impl FormatTime for At {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        write!(w, "{}{}", format_rfc3339(self.clock.now()), self.who)
    }
}

/// Formats a span's fields for files. A separate type, since the formatted fields of a terminal are cached by type and
/// contain colours.
struct Plainly(DefaultFields);

impl<'w> FormatFields<'w> for Plainly {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        self.0.format_fields(writer, fields)
    }
}

/// Writes each event to a program's file, without secrets. Events arrive in one piece.
struct Kept {
    redactor: Arc<Redactor>,
    file: Arc<LogFile>,
    form: LogFormat,
    program: &'static str,
}

impl Write for Kept {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = remove_hidden(text.trim_end());
        self.file.add(&match (self.form, text.strip_prefix('{')) {
            (LogFormat::Json, Some(rest)) => {
                let who = format!("{{\"program\":\"{}\",\"pid\":{},", self.program, std::process::id());
                let bytes = rest.len();
                if bytes < MAX_LINE_BYTES - who.len() {
                    self.redactor.redact_json(&format!("{who}{rest}"))
                } else {
                    // A shortened event would be invalid JSON.
                    format!(
                        "{who}\"level\":\"WARN\",\"message\":\"an event of {bytes} bytes was too long to be kept\"}}"
                    )
                }
            }
            _ => self.redactor.redact(&text),
        });
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes each event without secrets. Events arrive in one piece.
struct Masked<W> {
    redactor: Arc<Redactor>,
    inner: W,
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = self.redactor.redact(&String::from_utf8_lossy(event));
        // Remaining escapes are colours: those in an event's text were made visible before.
        let pieces: Vec<_> = text.split('\x1b').map(remove_hidden).collect();
        self.inner.write_all(pieces.join("\x1b").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::redact::Secret;

    #[test]
    fn a_terminal_is_told_more_only_when_asked() {
        let watched = LogReaders { is_terminal: true, has_file: true };
        let unwatched = LogReaders { is_terminal: false, has_file: true };
        let mailed = LogReaders { is_terminal: false, has_file: false };
        assert_eq!(choose_level(None, Talk::Quiet, watched), Level::ERROR);
        assert_eq!(choose_level(None, Talk::Quiet, mailed), Level::INFO);
        assert_eq!(choose_level(None, Talk::Usual, watched), Level::INFO);
        assert_eq!(choose_level(Some(Level::WARN), Talk::Quiet, watched), Level::WARN);
        assert_eq!(choose_level(Some(Level::ERROR), Talk::Verbose, watched), Level::INFO);
        assert_eq!(choose_level(Some(Level::DEBUG), Talk::Verbose, watched), Level::DEBUG);
        // Lines that the log files keep needn't be mailed as well.
        assert_eq!(choose_level(None, Talk::Usual, unwatched), Level::WARN);
        assert_eq!(choose_level(Some(Level::INFO), Talk::Quiet, unwatched), Level::INFO);
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

    #[test]
    fn a_file_has_neither_a_secret_nor_a_second_line_of_an_event() {
        let secret = Secret::new("open sesame");
        let redactor = Arc::new(Redactor::new([&secret]));
        let clock: Arc<dyn Clock> = Arc::new(reveille_base::clock::FixedClock(
            reveille_base::clock::parse_time("2026-11-21T12:00:00Z").unwrap(),
        ));
        let lines = |format: &str| {
            let dir = tempfile::tempdir().unwrap();
            let dir_name = dir.path().display().to_string();
            let env = [("WORKSPACE_DIR", dir_name.as_str()), ("HOME", &dir_name), ("LOG_FORMAT", format)];
            let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let config = Config::from_sources(&env, None, Some("UTC")).unwrap();
            let log = tracing_subscriber::registry().with(vec![build_file_layer(&config, "wake", &redactor, &clock)]);
            tracing::subscriber::with_default(log, || {
                let _span = tracing::info_span!("cycle", id = "c1").entered();
                let error = "GET https://host/open%20sesame: refused\n2026-11-21T13:00:00Z forged";
                tracing::warn!(%error, key = secret.expose(), "no luck");
                tracing::debug!("not at info");
                tracing::warn!(target: NOTE, "not in a file");
            });
            std::fs::read_to_string(dir.path().join("logs/wake.log")).unwrap()
        };
        let pid = std::process::id();
        let text = lines("text");
        let (timed, _) = text.split_once("time.busy=").unwrap();
        assert_eq!(
            timed,
            format!(
                "2026-11-21T12:00:00.000Z wake[{pid}]  WARN cycle{{id=\"c1\"}}: no luck error=GET https://host/***: \
                 refused\\n2026-11-21T13:00:00Z forged key=\"***\"\n2026-11-21T12:00:00.000Z wake[{pid}]  INFO \
                 cycle{{id=\"c1\"}}: close "
            )
        );
        let text = lines("json");
        let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&first["program"], &first["message"], &first["key"]),
            (&"wake".into(), &"no luck".into(), &"***".into())
        );
        assert!(first["error"].as_str().unwrap().contains("https://host/***: refused\n2026"), "{first}");
        assert_eq!(first["spans"][0]["id"], "c1");
        assert!(!text.contains("sesame") && text.lines().count() == 2, "{text}");
    }
}
