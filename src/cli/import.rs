//! `wake import`: imports data of another program as untrusted text.

use std::{path::PathBuf, process::ExitCode};

use reveille_account::provenance::{
    ProvenanceError,
    hand::{PersonSession, PersonSessionTools, PersonsCommit},
};
use reveille_base::words::{format_count, format_list, quote_for_shell};
use reveille_config::{Config, OldSetting};
use reveille_import as import;
use reveille_import::{
    ImportError, ImportKind, ImportTools,
    account::{ImportAccount, ImportCounts, LeftOutFor, SetReminder},
    found::FoundContent,
    plan::ImportPlan,
};

use super::{OutputFormat, print, print_json, provenance::report_refusal, report_failure};
use crate::RunMode;

/// Additional help text.
pub(super) const HELP: &str = "\
It recognises ChatGPT's and Claude's exports (the zip, or unpacked), folders of Markdown notes, and the memories of two older
assistants: in Markdown (memory/*.md, .env) and in JSON (knowledge.json, reminders.json, conversation_log.jsonl).
Documents go to memory/imported/, facts under “Unconfirmed”, tasks and reminders into the backlog. Importing something again adds only
what is new. See docs/IMPORT.md.

Examples:
  wake import chatgpt-export.zip --dry-run    what it would import, and what it would leave out
  wake import chatgpt-export.zip
  wake import ~/notes --as notes";

#[derive(Debug, clap::Args)]
pub(super) struct ImportArguments {
    /// A folder, an archive (zip), or one file.
    path: PathBuf,
    /// The kind of source; by default Reveille recognises it, and says so.
    #[arg(long = "as", value_name = "KIND", value_enum)]
    kind: Option<ImportKind>,
    /// Show what would be imported, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document: kind, new, updated, known, masked, documents, reminders, settings, left_out, commit.
    #[arg(long)]
    pub(super) json: bool,
}

/// The result as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct ImportAsJson<'a> {
    kind: ImportKind,
    dry_run: bool,
    new: ImportCounts,
    updated: usize,
    known: usize,
    masked: usize,
    documents: &'a [String],
    reminders: &'a [SetReminder],
    settings: Vec<SettingAsJson<'a>>,
    left_out: &'a [LeftOutFor],
    commit: Option<String>,
}

/// An old setting as JSON. Its value is left out if it must not be shown.
#[derive(serde::Serialize)]
struct SettingAsJson<'a> {
    name: &'a str,
    value: Option<String>,
    is_known: bool,
    is_secret: bool,
}

/// Imports, or reports what would be imported.
pub(super) fn run(config: &Config, arguments: &ImportArguments, format: OutputFormat) -> ExitCode {
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let tools = ImportTools { redactor: &redactor, tz: config.timezone, now: clock.now() };
    // The errors may quote the imported source.
    let report_error = |error: &ImportError| match error {
        ImportError::Memory(error) => report_refusal(error),
        error => report_failure(&redactor.redact(&error.to_string())),
    };
    let (kind, found) = match import::read_source(&arguments.path, arguments.kind, tools) {
        Ok(read) => read,
        Err(error) => return report_error(&error),
    };
    let repo = match super::history::open_repo(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let mode = RunMode::from_flag(arguments.dry_run);
    let done = match mode {
        RunMode::Dry => import::plan_import(&repo, kind, &found, tools).map(|plan| (plan, None)),
        RunMode::Real => {
            import_all(PersonSessionTools { config, clock: clock.as_ref(), redactor: &redactor }, kind, &found, tools)
        }
    };
    match done {
        Ok((ImportPlan { account, .. }, made)) if format.is_json() => {
            print_document(kind, mode, &account, made.as_ref());
            ExitCode::SUCCESS
        }
        Ok((ImportPlan { account, .. }, made)) => {
            print(&describe_import(kind, config, &account, made.as_ref(), mode));
            if let Some(made) = &made {
                super::provenance::report_commit(made);
            }
            ExitCode::SUCCESS
        }
        Err(error) => report_error(&error),
    }
}

fn import_all(
    hand_tools: PersonSessionTools<'_>,
    kind: ImportKind,
    found: &FoundContent,
    tools: ImportTools<'_>,
) -> Result<(ImportPlan, Option<PersonsCommit>), ImportError> {
    let mut hand = PersonSession::take(hand_tools)?;
    let done = import::carry_out(&mut hand, kind, found, tools);
    let ended: Result<(), ProvenanceError> = hand.release();
    let done = done?;
    ended?;
    Ok(done)
}

fn print_document(kind: ImportKind, mode: RunMode, account: &ImportAccount, made: Option<&PersonsCommit>) {
    let setting = |old: &OldSetting| (old.visible_value(), old.is_known(), old.is_secret());
    let settings = account.settings.iter().map(|old| {
        let (value, is_known, is_secret) = setting(old);
        SettingAsJson { name: &old.name, value, is_known, is_secret }
    });
    print_json(&ImportAsJson {
        kind,
        dry_run: mode.is_dry(),
        new: account.new,
        updated: account.updated,
        known: account.known,
        masked: account.masked,
        documents: &account.documents,
        reminders: &account.reminders,
        settings: settings.collect(),
        left_out: &account.left_out,
        commit: made.map(|made| made.commit.to_string()),
    });
}

fn describe_import(
    kind: ImportKind,
    config: &Config,
    account: &ImportAccount,
    made: Option<&PersonsCommit>,
    mode: RunMode,
) -> String {
    let mut text = format!("This is {} (--as {}).\n", kind.describe(), kind.name());
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    let would = if mode.is_dry() { "Would import" } else { "Imported" };
    match account.describe_counts() {
        counted if counted.is_empty() => line("Nothing in it is new.".to_owned()),
        counted => line(format!("{would}: {counted}.")),
    }
    if account.updated > 0 {
        let continued = if mode.is_dry() { "Would continue" } else { "Continued" };
        line(format!("{continued}: {} from an earlier import.", format_count(account.updated, "document")));
    }
    if account.known > 0 {
        line(format!("Already known: {}.", account.known));
    }
    if account.masked > 0 {
        line(format!("Keys and tokens were masked (***) in {}.", format_count(account.masked, "text")));
    }
    for LeftOutFor { why, count, named } in &account.left_out {
        let named = if named.is_empty() { String::new() } else { format!(": {}", named.join("; ")) };
        let more = if *count > named.len() && *count > 3 { ", …" } else { "" };
        line(format!("Left out, {count} ({why}){named}{more}"));
    }
    describe_settings(account, &mut line);
    if !account.reminders.is_empty() {
        line("\nFuture reminders weren't set. To set them:".to_owned());
        account.reminders.iter().for_each(|reminder| line(format!("  {}", reminder.command)));
    }
    if !account.is_empty() {
        describe_confirmation(account, &mut line);
    }
    if let Some(made) = made {
        let id: String = made.commit.to_string().chars().take(8).collect();
        let repo = quote_for_shell(&config.repo_dir());
        line(format!("\nEverything is in commit {id}, which is yours."));
        line(format!("To undo it, unless a later import followed: git -C {repo} revert {id}"));
    } else if mode.is_dry() {
        line("\nNothing was changed; to do it, leave out --dry-run.".to_owned());
    }
    text
}

/// Lists the old settings. An import never applies them.
fn describe_settings(account: &ImportAccount, line: &mut impl FnMut(String)) {
    let (known, others): (Vec<_>, Vec<_>) = account.settings.iter().partition(|old| old.is_known());
    if !known.is_empty() {
        line("\nIts settings weren't imported. `wake init` asks for these:".to_owned());
        for old in known {
            line(format!("  {}: {}", old.name, old.visible_value().unwrap_or_else(|| "set, not shown".to_owned())));
        }
    }
    if !others.is_empty() {
        line(format!("Settings that Reveille doesn't have: {}.", format_list(others.iter().map(|old| &old.name))));
    }
}

fn describe_confirmation(account: &ImportAccount, line: &mut impl FnMut(String)) {
    let ImportCounts { notes, conversations, facts, tasks, reminders, orders, skills } = account.new;
    line(
        "\nAll of it counts as untrusted text until you confirm it: I can find it, but I won't follow instructions in it.".to_owned(),
    );
    if notes + conversations > 0 {
        line("  A document: move it out of memory/imported/ yourself.".to_owned());
    }
    if facts > 0 {
        line("  A fact: say it (wake say 'remember that …'), or move its line out of “Unconfirmed”.".to_owned());
    }
    if tasks + reminders > 0 {
        line("  A task: wake task set 'TITLE' unconfirmed    removes that mark.".to_owned());
    }
    if orders > 0 {
        line("  Orders: write those that should apply here into claude.md; none of theirs is in force.".to_owned());
    }
    if skills > 0 {
        line(
            "  A skill: read it first, because the assistant will follow it; then move it to skills/NAME/SKILL.md."
                .to_owned(),
        );
    }
}
