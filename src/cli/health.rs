//! `health`: problems, repairs and the current state.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

use reveille_base::{
    clock::{Clock as _, SystemClock},
    redact::{Redactor, Secret},
};
use reveille_config::{Config, GivenSettings, SettingChanges, VARIABLES, is_secret};
use reveille_cycle::workspace;
use reveille_memory::render::Looks;
use reveille_store::database;

use super::{
    EXIT_FAILED, OutputFormat, SettingsArguments, build_redactor, complain, config_failure, health_fix, log, out,
    print, print_exactly, print_json, report_failure,
};
use crate::{
    RunMode,
    health::{
        self, HealthReport, Status,
        bundle::{self, Bundle, BundleSource},
        told::{self, HealthNews},
    },
    setup::CheckReach,
};

/// Finds what is wrong with Reveille on this machine, and repairs what can be repaired safely.
#[derive(Debug, Parser)]
#[command(
    name = "health",
    version = super::VERSION,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 nothing critical (warnings included) · 1 something critical remains after the repairs · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace (or --env-file FILE); see .env.example.

Examples:
  health check                       look at everything, repair what a crash left
  health check --quiet               the same, but print only new problems: for cron
  health check --fix                 the same, and repair what else it can; it asks before what you may not want
  health check --dry-run             only report; nothing is locked or written
  health check --json | jq .status   for monitors: \"ok\", \"warn\" or \"critical\"
  health status                      one screen: last wake, queue, memory, cost
  health bundle                      one redacted archive to send with a bug report"
)]
struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every check, and repair what can be repaired while no wake runs.
    /// A wake that is alive never counts as stale, however long it takes. Each repair is noted, and the next wake writes it
    /// into the memory. It asks Telegram and the model's server what only they know, for five seconds at most.
    #[command(after_help = "\
Examples:
  health check
  health check --dry-run
  health check --json | jq -r '.checks[] | select(.status != \"ok\") | .id'")]
    Check {
        /// Print one JSON document: {"status", "checks": [{"id", "status", "detail", "fix"}], "repaired": [id]}.
        #[arg(long)]
        json: bool,
        /// Report what would be repaired, and change nothing.
        #[arg(long, conflicts_with = "new_database")]
        dry_run: bool,
        /// Print only problems that are new since the last quiet check. For cron.
        #[arg(long, conflicts_with_all = ["json", "dry_run"])]
        quiet: bool,
        /// Make further repairs: safe ones at once, others after you confirm them. Without a terminal, only safe ones.
        #[arg(long, conflicts_with_all = ["json", "dry_run", "quiet"])]
        fix: bool,
        /// Don't use the network.
        #[arg(long)]
        offline: bool,
        /// Create a new messages.db where the old one is gone. What was queued, set and spent in the old one is lost.
        #[arg(long)]
        new_database: bool,
    },
    /// Show the state of things on one screen.
    #[command(after_help = "\
Examples:
  health status
  health status --json | jq .queue")]
    Status {
        /// Print it as one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Write one redacted archive to send with a bug report.
    /// It contains version and build, which settings are set, the health report, the logs, the database's tables and their
    /// sizes, and the last wakes without their words. It doesn't contain keys, messages, answers or the memory. It works with
    /// wrong settings, and on a damaged or missing workspace; it names what couldn't be read. It writes and locks nothing
    /// else, and uses the network only for a database that DATABASE_URL names. Look through it before you send it.
    #[command(after_help = "\
Examples:
  health bundle
  health bundle /tmp/report.zip")]
    Bundle {
        /// The new file, a zip archive that only you can read (0600); default: in the current directory, named by the date.
        file: Option<PathBuf>,
    },
}

/// Builds the arguments, for completions and the manual.
pub(super) fn build_command() -> clap::Command {
    Arguments::command()
}

/// Runs the program.
pub(super) fn main() -> ExitCode {
    reveille_base::process::forbid_core_files();
    out::final_exit_code(if super::is_version_asked() { super::tell_version() } else { run() })
}

fn run() -> ExitCode {
    let arguments = Arguments::parse();
    if let Command::Bundle { file } = &arguments.command {
        return write_bundle(arguments.settings.env_file.as_deref(), file.as_deref());
    }
    let config = match Config::load(arguments.settings.env_file.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            if matches!(arguments.command, Command::Check { json: true, .. }) {
                print_json(&HealthReport::for_configuration(&error.to_string()));
            }
            return config_failure(&error);
        }
    };
    // A dry run writes nothing, not even a log.
    let keeps_log = matches!(arguments.command, Command::Check { dry_run: false, .. });
    log::start(&config, log::Talk::Usual, keeps_log.then_some("health"));
    if !matches!(arguments.command, Command::Check { quiet: true, .. }) {
        log_notes(&config.notes);
    }
    match arguments.command {
        Command::Check { new_database: true, .. } if !begin_anew(&config) => ExitCode::from(EXIT_FAILED),
        Command::Check { quiet: true, offline, .. } => check_quietly(&config, choose_reach(offline)),
        Command::Check { fix: true, offline, .. } => health_fix::run(&config, choose_reach(offline)),
        Command::Check { json, dry_run, offline, .. } => {
            let report = run_checks(&config, RunMode::from_flag(dry_run), choose_reach(offline));
            if json {
                print_json(&report);
            } else {
                show_report(&config, &report);
            }
            exit_code(report.status)
        }
        Command::Status { json } => show_status(&config, OutputFormat::from_flag(json)),
        Command::Bundle { file } => write_bundle(arguments.settings.env_file.as_deref(), file.as_deref()),
    }
}

/// Settings that aren't secrets but may identify a person.
const TELLING: [&str; 6] =
    ["ALLOWED_CHAT_IDS", "OWNER_CHAT_ID", "DATABASE_URL", "REPO_URL", "AWS_ACCESS_KEY_ID", "GOOGLE_CLOUD_PROJECT"];

/// Writes a bundle, even with wrong settings.
fn write_bundle(env_file: Option<&Path>, file: Option<&Path>) -> ExitCode {
    let said = GivenSettings::gather(env_file);
    let (config, problems) = said.with_valid_settings(&SettingChanges::new());
    let now = config.as_ref().map_or_else(|| SystemClock.now(), |config| config.clock().now());
    let named = VARIABLES.into_iter().filter(|name| is_secret(name) || TELLING.contains(name));
    let values = named.filter_map(|name| said.get(name)).flat_map(|(value, _)| {
        let parts = value.split(',').map(str::trim).map(Secret::new);
        parts.chain([Secret::new(value)]).collect::<Vec<_>>()
    });
    let secrets: Vec<Secret> = config.iter().flat_map(super::list_secrets).chain(values).collect();
    let redactor = Redactor::new(&secrets);
    let source = BundleSource { said: &said, problems: &problems, config: config.as_ref(), redactor: &redactor, now };
    let file = file.map_or_else(|| bundle::build_dated_name(now), Path::to_owned);
    let file = std::path::absolute(&file).unwrap_or(file);
    let gathered = Bundle::gather(&source);
    if let Err(error) = gathered.write(&file) {
        let why = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "it exists already and stays as it is: choose another name".to_owned(),
            _ => error.to_string(),
        };
        return report_failure(&format!("{}: {why}", file.display()));
    }
    print(&format!("{}\n", file.display()));
    complain(&format!("In it: {}.", bundle::IN_BUNDLE.join("; ")));
    complain(&format!("Not in it: {}.", bundle::NOT_IN_BUNDLE.join("; ")));
    for line in &gathered.unread {
        complain(&format!("Not read: {line}."));
    }
    complain("Please look through it before you send it: the masking can miss things.");
    ExitCode::SUCCESS
}

/// Creates a new database in place of a missing one. Returns `true` if it worked.
fn begin_anew(config: &Config) -> bool {
    let place = database::name(config);
    if workspace::check_database(config).is_ok() {
        complain(&format!("{place} isn't missing. Nothing was changed."));
        return false;
    }
    match workspace::begin_anew(config, config.clock().now()) {
        Ok(kept) => {
            let kept = kept.iter().map(|path| format!(" The remains of the old one are kept: {}.", path.display()));
            complain(&format!("{place} is new and empty now.{}", kept.collect::<String>()));
            true
        }
        Err(error) => {
            complain(&format!("failed: {error}"));
            false
        }
    }
}

/// Converts the flag `--offline`.
fn choose_reach(offline: bool) -> CheckReach {
    if offline { CheckReach::Local } else { CheckReach::Others }
}

/// Runs all checks, and repairs unless it is a dry run.
pub(super) fn run_checks(config: &Config, mode: RunMode, reach: CheckReach) -> HealthReport {
    health::check(config, &build_redactor(config), config.clock().now(), mode, reach)
}

/// Chooses the looks of a report on standard output.
fn choose_looks(config: &Config) -> Looks {
    if config.no_color || !std::io::stdout().is_terminal() { Looks::Plain } else { Looks::Ansi }
}

/// Prints the report for a person.
pub(super) fn show_report(config: &Config, report: &HealthReport) {
    print_exactly(&report.render(choose_looks(config)));
}

/// Prints only problems that weren't reported before, since cron mails the output.
fn check_quietly(config: &Config, reach: CheckReach) -> ExitCode {
    let report = run_checks(config, RunMode::Real, reach);
    let path = config.health_told_path();
    let HealthNews { report: news, notes, told } = report.find_news(&config.notes, &told::read_findings(&path));
    log_notes(&notes);
    if !news.checks.is_empty() {
        print(&news.render(choose_looks(config)));
    }
    // Before the first wake there is no workspace, and this command creates none.
    if config.workspace_dir.is_dir()
        && let Err(error) = told::write_findings(&path, &told)
    {
        tracing::warn!("{} can't be written, so the same problems will be reported again: {error}", path.display());
    }
    exit_code(report.status)
}

fn log_notes(notes: &[String]) {
    for note in notes {
        tracing::warn!(target: log::NOTE, "{note}");
    }
}

pub(super) fn exit_code(status: Status) -> ExitCode {
    match status {
        Status::Critical => ExitCode::from(EXIT_FAILED),
        Status::Ok | Status::Warn => ExitCode::SUCCESS,
    }
}

pub(super) fn show_status(config: &Config, format: OutputFormat) -> ExitCode {
    let overview = health::status::read_status(config, &build_redactor(config), config.clock().now());
    if format.is_json() {
        print_json(&overview);
    } else {
        print(&overview.render(config.timezone));
    }
    ExitCode::SUCCESS
}
