//! `wake jobs`: lists the standing jobs and their runs, runs one now, pauses and resumes them.

use std::process::ExitCode;

use clap::Subcommand;

use reveille_account::provenance::hand::{Hand, HandTools};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::database;
use reveille_tools::Documents;

use super::{complain, failed, print_json, show, task::refused};
use crate::orders::{OrderError, jobs};

/// Maximum number of listed runs.
const MAX_RUNS: u32 = 50;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the jobs with their next times, and those whose files aren't understood.
    List {
        /// Print a JSON object a line: name, state, when, next_at, gate, has_model, failures, problem.
        #[arg(long)]
        json: bool,
    },
    /// Have one run with the next wake, whatever is planned.
    Run {
        /// Its name.
        name: String,
    },
    /// Let one rest. That is a commit of your own.
    Pause {
        /// Its name.
        name: String,
    },
    /// Take one up again that rests.
    Resume {
        /// Its name.
        name: String,
    },
    /// List the last runs, newest first, with what they came to.
    Log {
        /// The job; of all when left out.
        name: Option<String>,
        /// Print a JSON object a line: id, job, started_at, slot, state, wake, output.
        #[arg(long)]
        json: bool,
    },
}

impl JobsCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn json(&self) -> bool {
        matches!(self, Self::List { json: true } | Self::Log { json: true, .. })
    }
}

/// Carries out the command; lists the jobs without one.
pub(super) fn run(config: &Config, command: Option<&JobsCommand>, as_json: bool) -> ExitCode {
    if let Err(code) = super::history::open_or_make(config) {
        return code;
    }
    let done = match command {
        None | Some(JobsCommand::List { .. }) => list(config, as_json),
        Some(JobsCommand::Log { name, .. }) => log(config, name.as_deref(), as_json),
        Some(JobsCommand::Run { name }) => ask(config, name),
        Some(JobsCommand::Pause { name }) => pause(config, name, true),
        Some(JobsCommand::Resume { name }) => pause(config, name, false),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(OrderError::Store(error)) => failed(&error),
        Err(error) => refused(&error),
    }
}

fn list(config: &Config, as_json: bool) -> Result<(), OrderError> {
    let now = config.clock().now().with_timezone(&config.timezone);
    let found = jobs::read(&Documents::new(&config.repo_dir(), Vec::new()), now);
    let rows = match database::look(config)? {
        Some(store) => store.jobs().jobs()?,
        None => Vec::new(),
    };
    let listed = jobs::listed(&found, &rows, now);
    if as_json {
        listed.iter().for_each(print_json);
    } else {
        show::print_page(config, &jobs::text(&listed, config.timezone));
    }
    Ok(())
}

fn log(config: &Config, name: Option<&str>, as_json: bool) -> Result<(), OrderError> {
    let runs = match database::look(config)? {
        Some(store) => jobs::runs(store.jobs().job_runs(name, MAX_RUNS)?, &store.jobs().jobs()?, config.timezone),
        None => Vec::new(),
    };
    if as_json {
        runs.iter().for_each(print_json);
    } else {
        show::print_page(config, &jobs::runs_text(&runs, config.timezone));
    }
    Ok(())
}

fn ask(config: &Config, name: &str) -> Result<(), OrderError> {
    let now = config.clock().now();
    let found = jobs::read(&Documents::new(&config.repo_dir(), Vec::new()), now.with_timezone(&config.timezone));
    let mut store = workspace::open(config)?;
    complain(&jobs::ask(&mut store, &found, name, now)?);
    Ok(())
}

fn pause(config: &Config, name: &str, is_paused: bool) -> Result<(), OrderError> {
    let (clock, redactor) = (config.clock(), super::redactor(config));
    let now = clock.now().with_timezone(&config.timezone);
    let mut hand = Hand::take(HandTools { config, clock: clock.as_ref(), redactor: &redactor })?;
    let done = jobs::pause(&mut hand, now, name, is_paused);
    let ended = hand.put_down();
    complain(&done?);
    Ok(ended?)
}
