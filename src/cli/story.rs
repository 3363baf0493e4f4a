//! `wake show`: what one wake did, turn by turn, and its commit.

use std::process::ExitCode;

use super::{EXIT_FAILED, complain, failed, history::WholeCommit, out, print, print_json};
use crate::{
    account::{
        find::{self, FindError, FoundWake},
        raw, read,
        story::WakeStory,
        tell::{self, StoryTelling},
    },
    config::Config,
    redact::Redactor,
    repo::{Commit, CommitInFull, Repo},
    store::{CycleRow, Store},
};

/// How a wake is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShowAs {
    /// For people, with long texts cut, or whole.
    Text {
        /// Whole.
        is_whole: bool,
    },
    /// One JSON document.
    Json,
    /// The requests, as they were journalled.
    Raw,
}

/// A wake as JSON: its commit's names, and its story. The names are relied on.
#[derive(serde::Serialize)]
struct WakeDocument {
    #[serde(flatten)]
    commit: Option<WholeCommit>,
    story: Option<WakeStory>,
}

/// Shows a wake; the last one without a name.
pub(super) fn show(config: &Config, name: Option<&str>, show_as: ShowAs) -> ExitCode {
    let store = match Store::open_read_only(&config.db_path()) {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    let repo = match super::history::open_repo(config) {
        Ok(repo) => Some(repo),
        // A wake whose commit is still to come can be shown all the same.
        Err(_) if store.is_some() && config.repo_dir().join(".git").exists() => None,
        Err(code) => return code,
    };
    let redactor = super::redactor(config);
    let stores = Stores { store: store.as_ref(), repo: repo.as_ref(), redactor: &redactor };
    match find::find(stores.store, stores.repo, name) {
        Ok(FoundWake::Cycle(row)) => stores.show(config, Some(&row), row.commit_id.as_deref(), show_as),
        Ok(FoundWake::Commit(commit)) => stores.show(config, None, Some(&commit), show_as),
        Ok(FoundWake::Nothing(why)) => {
            complain(&why);
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => failed(&error),
    }
}

struct Stores<'a> {
    store: Option<&'a Store>,
    repo: Option<&'a Repo>,
    redactor: &'a Redactor,
}

impl Stores<'_> {
    fn show(&self, config: &Config, row: Option<&CycleRow>, commit: Option<&str>, show_as: ShowAs) -> ExitCode {
        match show_as {
            ShowAs::Raw => self.raw(row),
            _ => match self.read(row, commit) {
                Ok((story, commit)) => {
                    print_wake(config, story, commit, show_as);
                    ExitCode::SUCCESS
                }
                Err(error) => failed(&error),
            },
        }
    }

    fn read(
        &self,
        row: Option<&CycleRow>,
        commit: Option<&str>,
    ) -> Result<(Option<WakeStory>, Option<CommitInFull>), FindError> {
        let story = match (self.store, row) {
            (Some(store), Some(row)) => Some(read::story(store, self.redactor, row)?),
            _ => None,
        };
        let commit = match (self.repo, commit) {
            (Some(repo), Some(commit)) => repo.show(commit, |_| false)?,
            _ => None,
        };
        let masked = |text: String| self.redactor.redact(&text);
        let commit = commit.map(|shown| CommitInFull {
            commit: Commit {
                author: masked(shown.commit.author),
                subject: masked(shown.commit.subject),
                ..shown.commit
            },
            message: masked(shown.message),
            stat: masked(shown.stat),
            diff: masked(shown.diff),
            ..shown
        });
        Ok((story, commit))
    }

    fn raw(&self, row: Option<&CycleRow>) -> ExitCode {
        let (Some(store), Some(row)) = (self.store, row) else {
            complain("A person's commit has no requests.");
            return ExitCode::from(EXIT_FAILED);
        };
        let lines = match store.dated_journal(&row.cycle.id) {
            Ok(journal) => raw::requests(row, &journal, self.redactor),
            Err(error) => return failed(&error),
        };
        if lines.is_empty() {
            let why = match store.has_journal(&row.cycle.id) {
                Ok(false) => "Its requests are older than KEEP_DAYS and were let go.",
                _ => "It asked no model.",
            };
            complain(why);
            return ExitCode::from(EXIT_FAILED);
        }
        for line in lines {
            out::print_exactly(&format!("{line}\n"));
        }
        ExitCode::SUCCESS
    }
}

fn print_wake(config: &Config, story: Option<WakeStory>, commit: Option<CommitInFull>, show_as: ShowAs) {
    let ShowAs::Text { is_whole } = show_as else {
        print_json(&WakeDocument { commit: commit.map(Into::into), story });
        return;
    };
    if let Some(story) = &story {
        print(&format!("{}\n", tell::text(story, StoryTelling { tz: config.timezone, is_whole })));
    }
    match (commit, story.and_then(|story| story.commit)) {
        (Some(CommitInFull { commit, message, stat, diff, .. }), _) => {
            print(&format!("commit {}\n\n{}\n{stat}\n{diff}", commit.id, message.trim_end()));
        }
        (None, Some(commit)) => print(&format!("Its commit {commit} isn't in the memory any more.\n")),
        (None, None) => print("It has no commit.\n"),
    }
}
