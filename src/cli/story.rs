//! `wake show`: shows one wake turn by turn, with its commit.

use std::process::ExitCode;

use reveille_account::{
    find::{self, FoundWake},
    story::WakeStory,
    tell::{self, StoryOptions},
    whole::{KeptRequests, WakeSources},
};
use reveille_config::Config;
use reveille_git::CommitInFull;
use reveille_store::{CycleRow, database};

use super::{EXIT_FAILED, complain, history::WholeCommit, out, print, print_json, report_failure};

/// The form in which a wake is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShowAs {
    /// Text for people, shortened or whole.
    Text {
        /// `true` to show long texts whole.
        is_whole: bool,
    },
    /// One JSON document.
    Json,
    /// The journalled requests.
    Raw,
}

/// A wake as JSON, with its commit and its story. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct WakeDocument {
    #[serde(flatten)]
    commit: Option<WholeCommit>,
    story: Option<WakeStory>,
}

/// Shows a wake, by default the last one.
pub(super) fn show(config: &Config, name: Option<&str>, show_as: ShowAs) -> ExitCode {
    let store = match database::open_read_only(config) {
        Ok(store) => store,
        Err(error) => return report_failure(&error),
    };
    let repo = match super::history::open_repo(config) {
        Ok(repo) => Some(repo),
        // A wake without a commit yet can still be shown.
        Err(_) if store.is_some() && config.repo_dir().join(".git").exists() => None,
        Err(code) => return code,
    };
    let redactor = super::build_redactor(config);
    let sources = WakeSources { store: store.as_ref(), repo: repo.as_ref(), redactor: &redactor };
    match find::find_wake(sources.store, sources.repo, name) {
        Ok(FoundWake::Cycle(row)) => show_found_wake(config, sources, Some(&row), row.commit_id.as_deref(), show_as),
        Ok(FoundWake::Commit(commit)) => show_found_wake(config, sources, None, Some(&commit), show_as),
        Ok(FoundWake::Nothing(why)) => {
            complain(&why);
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => report_failure(&error),
    }
}

fn show_found_wake(
    config: &Config,
    sources: WakeSources<'_>,
    row: Option<&CycleRow>,
    commit: Option<&str>,
    show_as: ShowAs,
) -> ExitCode {
    match show_as {
        ShowAs::Raw => print_requests(sources, row),
        _ => match sources.read_wake(row, commit) {
            Ok((story, commit)) => {
                print_wake(config, story, commit, show_as);
                ExitCode::SUCCESS
            }
            Err(error) => report_failure(&error),
        },
    }
}

fn print_requests(sources: WakeSources<'_>, row: Option<&CycleRow>) -> ExitCode {
    match sources.read_requests(row) {
        Ok(KeptRequests::Lines(lines)) => {
            for line in lines {
                out::print_exactly(&format!("{line}\n"));
            }
            ExitCode::SUCCESS
        }
        Ok(KeptRequests::None(why)) => {
            complain(why);
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => report_failure(&error),
    }
}

fn print_wake(config: &Config, story: Option<WakeStory>, commit: Option<CommitInFull>, show_as: ShowAs) {
    let ShowAs::Text { is_whole } = show_as else {
        print_json(&WakeDocument { commit: commit.map(Into::into), story });
        return;
    };
    if let Some(story) = &story {
        print(&format!("{}\n", tell::render_story(story, StoryOptions { tz: config.timezone, is_whole })));
    }
    match (commit, story.and_then(|story| story.commit)) {
        (Some(CommitInFull { commit, message, stat, diff, .. }), _) => {
            print(&format!("commit {}\n\n{}\n{stat}\n{diff}", commit.id, message.trim_end()));
        }
        (None, Some(commit)) => print(&format!("Its commit {commit} is no longer in the memory.\n")),
        (None, None) => print("It has no commit.\n"),
    }
}
