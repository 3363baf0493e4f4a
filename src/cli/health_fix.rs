//! `health check --fix`: applies the remedies that the checks propose. Safe ones run at once. The others need a yes
//! from someone at a terminal; elsewhere they are only listed with their commands.

use std::{
    fs::{self, Permissions},
    io::{self, IsTerminal as _},
    os::unix::fs::PermissionsExt as _,
    process::ExitCode,
    time::Duration,
};

use reveille_base::{
    process::{self, Spec},
    words::one_line,
};
use reveille_config::Config;
use reveille_index::Index;
use reveille_memory::outside;

use super::{
    OutputFormat, build_redactor, build_runtime, complain, connect_telegram, health, install,
    memory::{self, MemoryCommand},
    out, print,
    queue::{self, QueueCommand},
    wake,
};
use crate::{
    RunMode,
    health::{HealthReport, Remedy, TIDY_UP},
    setup::CheckReach,
};

/// Time limit for git commands that repair the memory.
const GIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Checks, repairs, and checks again.
pub(super) fn run(config: &Config, reach: CheckReach) -> ExitCode {
    let report = health::run_checks(config, RunMode::Real, reach);
    let remedies = list_remedies(&report);
    health::show_report(config, &report);
    if remedies.is_empty() {
        if report.status != crate::health::Status::Ok {
            print("None of this can be repaired automatically. Please follow the steps after the arrows.\n");
        }
        return health::exit_code(report.status);
    }
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    print("\n");
    let (mut is_mended, mut is_broken) = (false, false);
    for remedy in &remedies {
        // A wake would meet the problem that is still there.
        if *remedy == Remedy::Wake && is_broken {
            print(&format!("Skipped until the memory is repaired: {}\n", remedy.command()));
            continue;
        }
        let is_of_memory = matches!(remedy, Remedy::InMemory { command, .. } if command != TIDY_UP);
        let what = outside::strip_marks(&remedy.describe()).into_owned();
        if !remedy.is_safe() && !is_watched {
            print(&format!("For you to do: {what}: {}\n", remedy.command()));
            is_broken |= is_of_memory;
            continue;
        }
        if !remedy.is_safe() && !confirm_remedy(&what) {
            print(&format!("Left as it is. To do it yourself: {}\n", remedy.command()));
            is_broken |= is_of_memory;
            continue;
        }
        match apply_remedy(config, remedy) {
            Ok(()) => {
                is_mended = true;
                print(&format!("Done: {what}.\n"));
            }
            Err(why) => {
                is_broken |= is_of_memory;
                let why = build_redactor(config).redact(&why);
                print(&format!("Failed: {what}: {why}\nTo do it yourself: {}\n", remedy.command()));
            }
        }
    }
    if !is_mended {
        return health::exit_code(report.status);
    }
    print("\n");
    let report = health::run_checks(config, RunMode::Real, reach);
    health::show_report(config, &report);
    health::exit_code(report.status)
}

/// Returns each remedy once, in order of execution: safe ones first.
fn list_remedies(report: &HealthReport) -> Vec<Remedy> {
    let mut all: Vec<Remedy> = Vec::new();
    for remedy in report.checks.iter().flat_map(|check| &check.remedies) {
        if !all.contains(remedy) {
            all.push(remedy.clone());
        }
    }
    // The wake comes last, since it needs the other repairs.
    all.sort_by_key(|remedy| (!remedy.is_safe(), *remedy == Remedy::Wake));
    all
}

/// Asks for a yes. Any other answer is a no.
fn confirm_remedy(what: &str) -> bool {
    out::prompt(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn apply_remedy(config: &Config, remedy: &Remedy) -> Result<(), String> {
    match remedy {
        Remedy::CloseToOthers { path, mode } => {
            fs::set_permissions(path, Permissions::from_mode(*mode)).map_err(|error| error.to_string())
        }
        Remedy::RebuildIndex => {
            let cleared = Index::open(&config.index_path()).and_then(Index::clear);
            cleared.map(drop).map_err(|error| error.to_string())
        }
        Remedy::RemoveWebhook { .. } => {
            let telegram = connect_telegram(config)?.ok_or("TELEGRAM_BOT_TOKEN is no longer set")?;
            let deleted = build_runtime().map_err(|error| error.to_string())?.block_on(telegram.delete_webhook());
            deleted.map_err(|error| error.to_string())
        }
        Remedy::WakeByItself => match install::install_with_defaults(config) {
            Ok(code) if code == ExitCode::SUCCESS => Ok(()),
            Ok(_) => {
                complain("It is installed, but the problem above keeps it from working.");
                Err("it doesn't work yet".to_owned())
            }
            Err(why) => Err(why),
        },
        Remedy::RetryMessage { id } => {
            check_exit_code(queue::run(config, &QueueCommand::Retry { id: *id }, OutputFormat::Text))
        }
        Remedy::Embed => check_exit_code(memory::run(
            config,
            &MemoryCommand::Reindex { embed: true, json: false },
            OutputFormat::Text,
        )),
        Remedy::InMemory { place, command } => {
            let spec = Spec::new("/bin/sh").args(["-c", command]).current_dir(place).timeout(GIT_TIMEOUT);
            let output = process::run(&spec).map_err(|error| error.to_string())?;
            if output.status.success() { Ok(()) } else { Err(one_line(&String::from_utf8_lossy(&output.stderr))) }
        }
        Remedy::Wake => check_exit_code(wake::once_here(config)),
    }
}

/// Turns the exit code of a command that explains its failures itself into a result.
fn check_exit_code(code: ExitCode) -> Result<(), String> {
    if code == ExitCode::SUCCESS { Ok(()) } else { Err("the reason is above".to_owned()) }
}
