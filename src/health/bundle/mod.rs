//! `health bundle`: an archive that a person can send with a bug report. It describes the program's build, settings and
//! state, and contains nobody's texts.
//!
//! It holds everything readable, and names a damaged database or a missing workspace. Only the archive is written, no
//! lock is taken, and the only network access is to a database named by `DATABASE_URL`. The redactor masks every text.
//! Texts from elsewhere, such as the log and the checks' details, also lose the words of messages, answers and the
//! memory.

mod phrases;
mod settings;
mod sizes;
mod wakes;

use std::{
    fs,
    io::{self, Cursor, Write as _},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

use reveille_base::{
    clock::format_rfc3339,
    file::write_private,
    logs::{self, LOGGED, LogFilter},
    redact::Redactor,
};
use reveille_config::{Config, GivenSettings, SettingProblem};
use reveille_index::embed;
use reveille_media::speech;
use reveille_store::{Store, database};

use self::phrases::Phrases;
use super::check;
use crate::{RunMode, VERSION, setup::CheckReach};

/// Maximum lines of a program's log.
const MAX_LOG_LINES: usize = 20_000;
/// Maximum bytes of a program's log.
const MAX_LOG_BYTES: usize = 4 << 20;
/// Maximum texts per database column whose words are masked.
const MAX_TEXTS: usize = 5_000;
/// Maximum number of memory files whose words are masked, and their maximum size in bytes.
const MAX_DOCUMENTS: usize = 5_000;
const MAX_DOCUMENT_BYTES: u64 = 1 << 20;
/// Maximum bytes of a displayed name.
const MAX_NAME_BYTES: usize = 100;

/// The contents of every bundle, for people.
pub const IN_BUNDLE: [&str; 7] = [
    "version, build and system",
    "which settings are set, and the values of those that aren't personal",
    "the health report",
    "the logs, redacted once more",
    "the database's tables and their row counts",
    "file sizes",
    "the last 50 wakes: rounds, tools by name, outcomes, tokens and durations",
];
/// The data in no bundle, for people.
pub const NOT_IN_BUNDLE: [&str; 4] = [
    "keys, tokens and passwords",
    "messages, answers, and the arguments and results of calls",
    "the memory: its documents, facts, tasks and jobs",
    "files, pictures and recordings",
];

/// The settings and tools for a bundle.
pub struct BundleSource<'a> {
    /// The settings as said.
    pub said: &'a GivenSettings,
    /// Problems of the settings.
    pub problems: &'a [SettingProblem],
    /// The valid settings. `None` if too much is wrong.
    pub config: Option<&'a Config>,
    /// Masks all known secrets, including those of invalid settings.
    pub redactor: &'a Redactor,
    /// Time of the bundle.
    pub now: DateTime<Utc>,
}

/// The files of a bundle.
#[derive(Debug)]
pub struct Bundle {
    /// Names and contents, in order.
    files: Vec<(String, String)>,
    /// Unreadable parts with the reasons, a line each.
    pub unread: Vec<String>,
}

impl Bundle {
    /// Gathers everything, and names the parts that can't be read.
    pub fn gather(source: &BundleSource<'_>) -> Self {
        let mut gathering = Gathering { source, files: Vec::new(), unread: Vec::new() };
        gathering.add_all();
        let Gathering { mut files, unread, .. } = gathering;
        let unread: Vec<String> = unread.iter().map(|line| source.mask_text(line)).collect();
        files.insert(0, ("README.txt".to_owned(), read_me(source.now, &unread)));
        Self { files, unread }
    }

    /// Writes the bundle to a new file, readable by its owner only.
    ///
    /// # Errors
    /// If the file exists or can't be written; no partial file is left.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let archive = self.to_zip().map_err(io::Error::other)?;
        write_private(file, &archive)
    }

    fn to_zip(&self) -> zip::result::ZipResult<Vec<u8>> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().unix_permissions(0o600);
        for (name, text) in &self.files {
            writer.start_file(name.as_str(), options)?;
            writer.write_all(text.as_bytes())?;
        }
        Ok(writer.finish()?.into_inner())
    }
}

impl BundleSource<'_> {
    /// Masks a text that leaves the machine.
    fn mask_text(&self, text: &str) -> String {
        let sealed = self.redactor.redact(text);
        let home = self.said.home().map(|home| home.display().to_string()).filter(|home| home.len() > 4);
        match home {
            Some(home) => sealed.replace(&home, "~"),
            None => sealed,
        }
    }
}

struct Gathering<'a> {
    source: &'a BundleSource<'a>,
    files: Vec<(String, String)>,
    unread: Vec<String>,
}

impl Gathering<'_> {
    fn add_all(&mut self) {
        self.add_json("about.json", &describe_system(self.source.now));
        self.add_json("settings.json", &settings::describe_settings(self.source.said, self.source.problems));
        let Some(config) = self.source.config else {
            self.unread.push("everything in the workspace: the settings don't say where it is".to_owned());
            return;
        };
        let sizes = sizes::measure_workspace(&config.workspace_dir, &config.repo_name, &mut self.unread);
        self.add_json("sizes.json", &sizes);
        let store = self.open_store(config);
        let phrases = self.learn_phrases(config, store.as_ref());
        self.add_report(config, &phrases);
        self.add_logs(config, &phrases);
        if let Some(store) = store {
            self.add_tables(&store);
            match wakes::describe_wakes(config, &store, &mut self.unread) {
                Ok(wakes) => self.add_json("wakes.json", &wakes),
                Err(error) => self.unread.push(format!("the last wakes: {error}")),
            }
        }
    }

    fn add_file(&mut self, name: impl Into<String>, text: &str) {
        self.files.push((name.into(), self.source.mask_text(text)));
    }

    fn add_json(&mut self, name: &str, value: &Value) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.add_file(name, &(text + "\n"));
    }

    /// Opens the database of any version for reading.
    fn open_store(&mut self, config: &Config) -> Option<Store> {
        match database::open_read_only(config) {
            Ok(Some(store)) => Some(store),
            Ok(None) => {
                self.unread.push("the database: there is none".to_owned());
                None
            }
            Err(error) => {
                self.unread.push(format!("the database: {error}"));
                None
            }
        }
    }

    fn learn_phrases(&mut self, config: &Config, store: Option<&Store>) -> Phrases {
        let mut phrases = Phrases::default();
        let (texts, is_whole) = store.map(|store| store.private_texts(MAX_TEXTS)).unwrap_or_default();
        texts.iter().for_each(|text| phrases.learn_text(text));
        let (names, has_all_names) = store.map(|store| store.private_names(MAX_TEXTS)).unwrap_or_default();
        names.iter().for_each(|name| phrases.learn_name(name));
        let is_whole = is_whole && has_all_names;
        each_document(&config.repo_dir(), &mut MAX_DOCUMENTS.clone(), &mut |text| phrases.learn_text(text));
        if store.is_some() && !is_whole {
            self.unread.push(
                "all messages, so words from some may appear in the logs and in the health report: look through them"
                    .to_owned(),
            );
        }
        phrases
    }

    fn add_report(&mut self, config: &Config, phrases: &Phrases) {
        let mut report = check(config, self.source.redactor, self.source.now, RunMode::Dry, CheckReach::Local);
        for found in &mut report.checks {
            found.detail = phrases.mask(&found.detail);
            found.fix = found.fix.as_deref().map(|fix| phrases.mask(fix));
        }
        let json = serde_json::to_value(&report).unwrap_or_default();
        self.add_json("health.json", &json);
    }

    fn add_logs(&mut self, config: &Config, phrases: &Phrases) {
        for program in LOGGED {
            let filter = LogFilter { program: Some(program.to_owned()), ..LogFilter::default() };
            let lines = logs::read_newest(&config.logs_dir(), &filter, MAX_LOG_LINES);
            let (mut kept, mut bytes) = (Vec::new(), 0);
            for line in lines.iter().rev() {
                bytes += line.text.len() + 1;
                if bytes > MAX_LOG_BYTES {
                    break;
                }
                kept.push(line.text.as_str());
            }
            kept.reverse();
            if !kept.is_empty() {
                // Redact the whole first, since a secret may span lines.
                let redacted = self.source.redactor.redact(&kept.join("\n"));
                self.add_file(format!("logs/{program}.log"), &(phrases.mask(&redacted) + "\n"));
            }
        }
        if !config.logs_dir().is_dir() {
            self.unread.push("the logs: there are none".to_owned());
        }
    }

    fn add_tables(&mut self, store: &Store) {
        let schema = match store.read_schema() {
            Ok(schema) => json!({"version": schema.found, "known_version": schema.known}),
            Err(error) => {
                self.unread.push(format!("the database's version: {error}"));
                Value::Null
            }
        };
        match store.table_shapes() {
            Ok(tables) => {
                let uncounted = tables.iter().filter(|table| table.rows.is_none());
                self.unread.extend(uncounted.map(|table| format!("the rows of the table {}", table.name)));
                self.add_json("database.json", &json!({"schema": schema, "tables": tables}));
                let statements: Vec<&str> = tables.iter().filter_map(|table| table.statement.as_deref()).collect();
                self.add_file("schema.sql", &(statements.join(";\n\n") + "\n"));
            }
            Err(error) => self.unread.push(format!("the database's tables: {error}")),
        }
    }
}

/// Returns `true` if the name of a tool, a model or a state looks like a name rather than a text.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/@+".contains(c))
}

fn describe_system(now: DateTime<Utc>) -> Value {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    json!({
        "version": VERSION,
        "made_at": format_rfc3339(now),
        "built_for": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "system": text(system.sysname()),
        "release": text(system.release()),
        "features": {
            "voice": speech::IS_BUILT,
            "embed": embed::IS_BUILT,
            "pdf": cfg!(feature = "pdf"),
            "postgres": cfg!(feature = "postgres"),
        },
    })
}

/// Passes the text of each document in the memory to `learn`.
fn each_document(dir: &Path, left: &mut usize, learn: &mut dyn FnMut(&str)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let is_git = path.file_name().is_some_and(|name| name == ".git");
        if kind.is_dir() && !is_git {
            each_document(&path, left, learn);
        } else if kind.is_file()
            && *left > 0
            && entry.metadata().is_ok_and(|found| found.len() <= MAX_DOCUMENT_BYTES)
            && let Ok(text) = fs::read_to_string(&path)
        {
            *left -= 1;
            learn(&text);
        }
    }
}

fn read_me(now: DateTime<Utc>, unread: &[String]) -> String {
    let list = |items: &[&str]| items.iter().map(|item| format!("- {item}\n")).collect::<String>();
    let unread: Vec<&str> = unread.iter().map(String::as_str).collect();
    let unread = if unread.is_empty() { "- nothing\n".to_owned() } else { list(&unread) };
    format!(
        "A bundle for a bug report about Reveille, made {}.\n\n\
         Included:\n{}\nNot included:\n{}\nCouldn't be read:\n{unread}\n\
         In texts, *** stands for a secret, […] for words from a message or the memory, and ~ for the home directory.\n\
         Masking can miss things: look through the files before you send them.\n",
        format_rfc3339(now),
        list(&IN_BUNDLE),
        list(&NOT_IN_BUNDLE),
    )
}

/// Returns the default name of a bundle, for the current directory.
pub fn build_dated_name(now: DateTime<Utc>) -> PathBuf {
    PathBuf::from(format!("reveille-{}.zip", now.format("%Y%m%dT%H%M%SZ")))
}
