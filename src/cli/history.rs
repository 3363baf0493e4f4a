//! `wake log` and `wake show`: what wakes and people committed to the memory.

use std::process::ExitCode;

use chrono::{DateTime, Utc};

use super::{EXIT_FAILED, complain, failed, print, print_json};
use crate::{
    config::Config,
    repo::{Commit, CommitInFull, Repo},
    words::local,
};

/// A commit as JSON. The names are relied on.
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

/// A commit with its changes as JSON. The names are relied on.
#[derive(serde::Serialize)]
struct Whole {
    #[serde(flatten)]
    line: Line,
    message: String,
    stat: String,
    diff: String,
}

impl From<CommitInFull> for Whole {
    fn from(shown: CommitInFull) -> Self {
        let CommitInFull { commit, message, stat, diff, .. } = shown;
        Self { line: commit.into(), message, stat, diff }
    }
}

/// Lists the last commits, newest first.
pub(super) fn log(config: &Config, lines: usize, as_json: bool) -> ExitCode {
    let commits = match open_repo(config).map(|repo| repo.log(lines)) {
        Ok(Ok(commits)) => commits,
        Ok(Err(error)) => return failed(&error),
        Err(code) => return code,
    };
    for line in commits.into_iter().map(Line::from) {
        if as_json {
            print_json(&line);
            continue;
        }
        let Line { commit, at, wake_id, author, subject } = line;
        let id: String = commit.chars().take(8).collect();
        print(&format!("{id}  {}  {}  {subject}\n", local(at, config.timezone), wake_id.unwrap_or(author)));
    }
    ExitCode::SUCCESS
}

/// Shows one commit in full.
pub(super) fn show(config: &Config, id: &str, as_json: bool) -> ExitCode {
    match open_repo(config).map(|repo| repo.show(id, |_| false)) {
        Ok(Ok(Some(shown))) if as_json => print_json(&Whole::from(shown)),
        Ok(Ok(Some(CommitInFull { commit, message, stat, diff, .. }))) => {
            print(&format!("commit {}\n\n{}\n{stat}\n{diff}", commit.id, message.trim_end()));
        }
        Ok(Ok(None)) => {
            complain(&format!("There is no wake or commit {id:?}. `wake log` lists them."));
            return ExitCode::from(EXIT_FAILED);
        }
        Ok(Err(error)) => return failed(&error),
        Err(code) => return code,
    }
    ExitCode::SUCCESS
}

/// Whether there is a memory; says so where there is none yet.
pub(super) fn has_memory(config: &Config) -> bool {
    let is_there = config.repo_dir().join(".git").exists();
    if !is_there {
        complain(&format!("There is no memory at {} yet. `wake --once` makes it.", config.repo_dir().display()));
    }
    is_there
}

pub(super) fn open_repo(config: &Config) -> Result<Repo, ExitCode> {
    if !has_memory(config) {
        return Err(ExitCode::from(EXIT_FAILED));
    }
    Repo::open(&config.repo_dir()).map_err(|error| failed(&error))
}
