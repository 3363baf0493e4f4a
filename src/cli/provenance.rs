//! `wake memory why`, `diff`, `restore` and `forget`: shows the origin of remembered facts, and lets a person change them.

mod forget;
mod why;

use std::process::ExitCode;

use reveille_account::provenance::{
    ProvenanceError,
    changed::{self, DocumentFate, MemoryChanges},
    hand::{PersonSession, PersonSessionTools, PersonsCommit},
    point::WallClock,
    restore::{self, GivingBack, WantedBack},
};
use reveille_base::words::format_count;
use reveille_config::Config;
use reveille_git::Repo;
use reveille_memory::forgetting::{MIN_CHARS, SoughtWords};
use reveille_store::{Store, database};

pub(super) use self::{
    forget::{ForgetArguments, forget},
    why::{WhyArguments, print_stories},
};
use super::{EXIT_FAILED, EXIT_USAGE, OutputFormat, complain, print, print_json, report_failure};

/// Maximum displayed characters of a message.
const MAX_SHOWN_CHARS: usize = 300;

#[derive(Debug, clap::Args)]
pub(super) struct DiffArguments {
    /// Since when: today, yesterday, 2026-11-20, or a wake's id or a commit; default: since the last wake.
    since: Option<String>,
    /// Print one JSON object per line: path, is, section, is_added, line, text.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArguments {
    /// A document (its path, or the end of it); or, for the whole memory, a day, a wake's id or a commit.
    what: String,
    /// The time or version to restore: yesterday, 2026-11-20 (in the evening), or after a wake or commit; default: before its last change.
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    /// Only the lines with these words; everything else stays as it is.
    #[arg(long, value_name = "TEXT")]
    lines: Option<String>,
    /// Show what would be done, without doing it.
    #[arg(long)]
    dry_run: bool,
}

/// A changed line as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct DiffLine<'a> {
    path: &'a str,
    is: DocumentFate,
    #[serde(flatten)]
    line: &'a reveille_memory::changes::ChangedLine,
}

fn wall_clock(config: &Config) -> WallClock {
    WallClock { tz: config.timezone, now: config.clock().now() }
}

fn open_memory(config: &Config) -> Result<Repo, ExitCode> {
    super::history::open_repo(config)
}

/// Opens the database for reading. `None` if it is missing or unreadable.
fn open_database(config: &Config) -> Option<Store> {
    database::open_read_only(config).ok().flatten()
}

pub(super) fn report_refusal(error: &ProvenanceError) -> ExitCode {
    match error {
        ProvenanceError::Busy(why) | ProvenanceError::Refused(why) => {
            complain(why);
            ExitCode::from(EXIT_FAILED)
        }
        ProvenanceError::Point(error) => {
            complain(&format!("{error}."));
            ExitCode::from(EXIT_USAGE)
        }
        error => report_failure(error),
    }
}

/// Prints the changes for `wake memory diff`.
pub(super) fn print_changes(config: &Config, arguments: &DiffArguments, format: OutputFormat) -> ExitCode {
    let found =
        open_memory(config).map(|repo| changed::list_changes(&repo, arguments.since.as_deref(), wall_clock(config)));
    let MemoryChanges { since, commits, has_edits, documents } = match found {
        Ok(Ok(changes)) => changes,
        Ok(Err(error)) => return report_refusal(&error),
        Err(code) => return code,
    };
    if format.is_json() {
        for document in &documents {
            for line in &document.lines {
                print_json(&DiffLine { path: &document.path, is: document.is, line });
            }
        }
        return ExitCode::SUCCESS;
    }
    let edits = if has_edits { ", and edits that aren't committed yet" } else { "" };
    if documents.is_empty() {
        complain(&format!("Nothing has changed since {}. `wake show` shows what a wake itself changed.", since.name));
        return ExitCode::SUCCESS;
    }
    print(&format!("Since {}: {}{edits}.\n", since.name, format_count(commits.len(), "commit")));
    for document in &documents {
        let is = match document.is {
            DocumentFate::New => " (new)",
            DocumentFate::Gone => " (gone)",
            DocumentFate::Changed => "",
        };
        print(&format!("\n{}{is}\n", document.path));
        let mut section = None;
        for line in &document.lines {
            if section != Some(&line.section) {
                section = Some(&line.section);
                if !line.section.is_empty() {
                    print(&format!("  {}\n", line.section));
                }
            }
            print(&format!("  {} {}\n", if line.is_added { '+' } else { '-' }, line.text));
        }
    }
    ExitCode::SUCCESS
}

/// Restores earlier content for `wake memory restore`.
pub(super) fn restore(config: &Config, arguments: &RestoreArguments) -> ExitCode {
    let sought = match arguments.lines.as_deref().map(SoughtWords::new) {
        None => None,
        Some(Some(sought)) => Some(sought),
        Some(None) => return too_short(),
    };
    let repo = match open_memory(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let RestoreArguments { what, at, dry_run, .. } = arguments;
    let is_document = at.is_some() || sought.is_some() || is_document(&repo, what);
    let wanted = match is_document {
        true => WantedBack::Document { path: what, at: at.as_deref(), lines: sought.as_ref() },
        false => WantedBack::All { at: what },
    };
    if *dry_run {
        return match restore::plan(&repo, wanted, wall_clock(config)) {
            Ok(giving) => report_restored(&giving, None),
            Err(error) => report_refusal(&error),
        };
    }
    drop(repo);
    let done = with_person_session(config, |hand| restore::carry_out(hand, wanted, wall_clock(config)));
    match done {
        Ok((giving, made)) => report_restored(&giving, made.as_ref()),
        Err(error) => report_refusal(&error),
    }
}

/// Returns `true` if a word names a document rather than a time or a commit.
fn is_document(repo: &Repo, what: &str) -> bool {
    let known = repo.history().all_markdown().unwrap_or_default();
    what.contains('/') || what.ends_with(".md") || known.iter().any(|path| path.ends_with(&format!("/{what}.md")))
}

fn report_restored(giving: &GivingBack, made: Option<&PersonsCommit>) -> ExitCode {
    let then = &giving.point.name;
    if giving.changes.is_empty() {
        complain(&format!("Nothing to do: it is as it was at {then}."));
        return ExitCode::SUCCESS;
    }
    for change in &giving.changes {
        let lines = reveille_memory::changes::list_changed_lines(
            change.base.as_deref().unwrap_or_default(),
            change.content.as_deref().unwrap_or_default(),
        );
        let came = lines.iter().filter(|line| line.is_added).count();
        let gone = if change.content.is_none() { "; removed, because it didn't exist then" } else { "" };
        print(&format!("{}: +{came} -{} lines{gone}\n", change.path, lines.len() - came));
    }
    match made {
        None => complain(&format!(
            "This would restore it as of {then}. Nothing was changed; to do it, leave out --dry-run."
        )),
        Some(made) => {
            let id: String = made.commit.to_string().chars().take(8).collect();
            complain(&format!(
                "Restored as of {then}, in commit {id}. The previous content is in the history: `git revert {id}` brings it back."
            ));
            report_commit(made);
        }
    }
    ExitCode::SUCCESS
}

pub(super) fn report_commit(made: &PersonsCommit) {
    if !made.before.is_empty() {
        complain(&format!("Your edits were committed first: {}.", made.before.join(", ")));
    }
    for left in &made.left_alone {
        complain(&format!("{} was written but not committed: it {}.", left.path, left.why));
    }
}

fn too_short() -> ExitCode {
    complain(&format!("That is too short to search for: give at least {MIN_CHARS} characters. Nothing was changed."));
    ExitCode::from(EXIT_USAGE)
}

/// Works with the memory and the database under the wake lock.
pub(super) fn with_person_session<T>(
    config: &Config,
    work: impl FnOnce(&mut PersonSession<'_>) -> Result<T, ProvenanceError>,
) -> Result<T, ProvenanceError> {
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let mut hand = PersonSession::take(PersonSessionTools { config, clock: clock.as_ref(), redactor: &redactor })?;
    let done = work(&mut hand);
    let ended = hand.release();
    let done = done?;
    ended.map(|()| done)
}
