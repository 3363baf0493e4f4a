//! `health`: what is wrong, what was repaired, and how it is going.

use std::{io::IsTerminal as _, process::ExitCode};

use clap::{Parser, Subcommand};

use super::{EXIT_FAILED, complain, config_failure, log, print, print_json, redactor};
use crate::{
    config::Config,
    cycle::present,
    health::{self, Report, Status},
};

/// Finds what is wrong with Reveille on this machine, and repairs what can be repaired safely.
#[derive(Debug, Parser)]
#[command(
    name = "health",
    version,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 nothing critical (warnings included) · 1 something critical remains after repairs · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace; see .env.example.

Examples:
  health check                       look at everything, repair what a crash left: what cron calls
  health check --dry-run             only tell; nothing is locked or written
  health check --json | jq .status   for monitors: \"ok\", \"warn\" or \"critical\"
  health status                      one screen: last wake, queue, memory, cost"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every check, and repair what can be repaired while no wake runs.
    ///
    /// A wake that is alive is never taken for stale, however long it takes. Each repair is noted, and the next wake
    /// writes it into the memory.
    Check {
        /// Print one JSON document: {"status", "checks": [{"id", "status", "detail", "fix"}], "repaired": [id]}.
        #[arg(long)]
        json: bool,
        /// Tell what would be repaired, and touch nothing.
        #[arg(long, conflicts_with = "new_database")]
        dry_run: bool,
        /// Begin a new messages.db where the old one is gone: what was queued, set and spent in that isn't known any more.
        #[arg(long)]
        new_database: bool,
    },
    /// Show how it is going, on one screen.
    Status {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the binary.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load() {
        Ok(config) => config,
        Err(error) => {
            if matches!(arguments.command, Command::Check { json: true, .. }) {
                print_json(&Report::of_configuration(&error.to_string()));
            }
            return config_failure(&error);
        }
    };
    log::start(&config);
    for note in &config.notes {
        tracing::warn!("{note}");
    }
    match arguments.command {
        Command::Check { new_database: true, .. } if !begin_anew(&config) => ExitCode::from(EXIT_FAILED),
        Command::Check { json, dry_run, .. } => check(&config, json, dry_run),
        Command::Status { json } => status(&config, json),
    }
}

/// Says whether there is a new database now.
fn begin_anew(config: &Config) -> bool {
    let path = config.db_path();
    if present::check(config).is_ok() {
        complain(&format!("{} isn't missing. Nothing was changed.", path.display()));
        return false;
    }
    match present::begin_anew(config, config.clock().now()) {
        Ok(kept) => {
            let kept = kept.iter().map(|path| format!(" What was left of the old one is kept: {}.", path.display()));
            complain(&format!("{} is new and empty now.{}", path.display(), kept.collect::<String>()));
            true
        }
        Err(error) => {
            complain(&format!("failed: {error}"));
            false
        }
    }
}

fn check(config: &Config, json: bool, dry_run: bool) -> ExitCode {
    let report = health::check(config, &redactor(config), config.clock().now(), dry_run);
    if json {
        print_json(&report);
    } else {
        print(&report.render(config.no_color || !std::io::stdout().is_terminal()));
    }
    match report.status {
        Status::Critical => ExitCode::from(EXIT_FAILED),
        Status::Ok | Status::Warn => ExitCode::SUCCESS,
    }
}

fn status(config: &Config, json: bool) -> ExitCode {
    let overview = health::status::overview(config, &redactor(config), config.clock().now());
    if json {
        print_json(&overview);
    } else {
        print(&overview.render(config.timezone));
    }
    ExitCode::SUCCESS
}
