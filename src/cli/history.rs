//! `wake log`: lists the actions of wakes and people.

use std::process::ExitCode;

use chrono::{DateTime, Utc};

use reveille_account::{
    log::{self, LogQuery},
    provenance::hand,
};
use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_git::{Commit, CommitInFull, Created, Repo};
use reveille_memory::outside;
use reveille_store::database;

use super::{EXIT_FAILED, OutputFormat, complain, print, print_json, provenance, report_failure, values};

/// Default number of lines of `wake log`.
const LOG_LINES: usize = 20;

/// A commit as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct Line {
    commit: String,
    at: DateTime<Utc>,
    wake_id: Option<String>,
    author: String,
    subject: String,
}

impl From<Commit> for Line {
    fn from(commit: Commit) -> Self {
        let Commit { id, author, subject, wake_id, at, .. } = commit;
        Self { commit: id.to_string(), at, wake_id, author, subject }
    }
}

/// A commit with its changes as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
pub(super) struct WholeCommit {
    #[serde(flatten)]
    line: Line,
    message: String,
    stat: String,
    diff: String,
}

impl From<CommitInFull> for WholeCommit {
    fn from(shown: CommitInFull) -> Self {
        let CommitInFull { commit, message, stat, diff, .. } = shown;
        Self { line: commit.into(), message, stat, diff }
    }
}

/// The options of `wake log`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LogArguments {
    /// Number of lines.
    #[arg(short = 'n', long, default_value_t = LOG_LINES, value_parser = values::parse_count)]
    lines: usize,
    /// Only actions whose description or request contains this text.
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Only since then: today, yesterday, 2026-11-20, or how long ago: 90min, 12h, 7d.
    #[arg(long, value_name = "DAY|SPAN")]
    since: Option<String>,
    /// Only wakes for this chat; 0 is the terminal.
    #[arg(long, value_name = "ID", value_parser = values::parse_chat, allow_hyphen_values = true)]
    chat: Option<ChatRef>,
    /// Print one JSON object per line: commit, at, wake_id, author, subject, state, chat_id, undone, asked.
    #[arg(long)]
    pub(super) json: bool,
}

/// Lists the actions, newest first.
pub(super) fn list_actions(config: &Config, arguments: &LogArguments, format: OutputFormat) -> ExitCode {
    let (now, tz) = (config.clock().now(), config.timezone);
    let since = match super::parse_since(config, arguments.since.as_deref()) {
        Ok(since) => since,
        Err(code) => return code,
    };
    let repo = match open_repo(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let store = match database::open_read_only(config) {
        Ok(store) => store,
        Err(error) => return report_failure(&error),
    };
    let redactor = super::build_redactor(config);
    let shown = |text: &str| redactor.redact(&outside::strip_marks(text));
    let grep = arguments.grep.as_deref();
    let query = LogQuery { lines: arguments.lines, skip: 0, chat: arguments.chat, since, grep };
    let lines = match log::list_wakes_and_commits(store.as_ref(), &repo, query, &shown) {
        Ok(lines) => lines,
        Err(error) => return report_failure(&error),
    };
    for line in lines {
        match format {
            OutputFormat::Json => print_json(&line),
            OutputFormat::Text => print(&format!("{}\n", line.render_for_terminal(now, tz))),
        }
    }
    ExitCode::SUCCESS
}

/// Returns `true` if the memory exists; otherwise tells the person.
pub(super) fn has_memory(config: &Config) -> bool {
    let is_there = config.repo_dir().join(".git").exists();
    if !is_there {
        complain(&format!("There is no memory at {} yet. `wake --once` creates it.", config.repo_dir().display()));
    }
    is_there
}

/// Opens the memory. Creates it if needed, for commands that also make sense in a new workspace.
pub(super) fn open_or_create(config: &Config) -> Result<Repo, ExitCode> {
    match hand::make_memory(config, config.clock().now()) {
        Ok(None) => {}
        Ok(Some(created)) => {
            let how = match created {
                Created::Cloned => "cloned from REPO_URL",
                _ => "created from the templates",
            };
            complain(&format!("The memory at {} was {how}.", config.repo_dir().display()));
        }
        Err(error) => return Err(provenance::report_refusal(&error)),
    }
    open_repo(config)
}

pub(super) fn open_repo(config: &Config) -> Result<Repo, ExitCode> {
    if !has_memory(config) {
        return Err(ExitCode::from(EXIT_FAILED));
    }
    Repo::open(&config.repo_dir()).map_err(|error| report_failure(&error))
}
