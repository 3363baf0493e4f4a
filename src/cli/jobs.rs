//! `wake jobs`: lists the standing jobs and their runs, runs one now, pauses and resumes them.

use std::process::ExitCode;

use clap::Subcommand;

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::database;
use reveille_tools::Documents;

use super::{OutputFormat, complain, print_json, report_failure, show, task::report_refusal};
use crate::orders::{
    OrderError,
    jobs::{self, JobSwitch},
};

/// Maximum number of listed runs.
const MAX_RUNS: u32 = 50;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the jobs with their next times, and those whose files can't be read.
    List {
        /// Print one JSON object per line: name, state, when, next_at, gate, has_model, failures, problem.
        #[arg(long)]
        json: bool,
    },
    /// Run a job with the next wake, whatever its schedule.
    Run {
        /// Its name.
        name: String,
    },
    /// Pause a job, with a commit of yours.
    Pause {
        /// Its name.
        name: String,
    },
    /// Resume a paused job.
    Resume {
        /// Its name.
        name: String,
    },
    /// List the last runs and their results, newest first.
    Log {
        /// The job; default: all.
        name: Option<String>,
        /// Print one JSON object per line: id, job, started_at, slot, state, wake, output.
        #[arg(long)]
        json: bool,
    },
}

impl JobsCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::List { json: true } | Self::Log { json: true, .. })
    }
}

/// Carries out the command; lists the jobs without one.
pub(super) fn run(config: &Config, command: Option<&JobsCommand>, format: OutputFormat) -> ExitCode {
    if let Err(code) = super::history::open_or_create(config) {
        return code;
    }
    let done = match command {
        None | Some(JobsCommand::List { .. }) => list_jobs(config, format),
        Some(JobsCommand::Log { name, .. }) => list_runs(config, name.as_deref(), format),
        Some(JobsCommand::Run { name }) => request_run(config, name),
        Some(JobsCommand::Pause { name }) => switch_job(config, name, JobSwitch::Pause),
        Some(JobsCommand::Resume { name }) => switch_job(config, name, JobSwitch::Resume),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(OrderError::Store(error)) => report_failure(&error),
        Err(error) => report_refusal(&error),
    }
}

fn list_jobs(config: &Config, format: OutputFormat) -> Result<(), OrderError> {
    let now = config.clock().now().with_timezone(&config.timezone);
    let found = jobs::read_jobs(&Documents::new(&config.repo_dir(), Vec::new()), now);
    let rows = match database::open_read_only(config)? {
        Some(store) => store.jobs().list_jobs()?,
        None => Vec::new(),
    };
    let listed = jobs::list_jobs(&found, &rows, now);
    if format.is_json() {
        listed.iter().for_each(print_json);
    } else {
        show::print_page(config, &jobs::render_jobs(&listed, config.timezone));
    }
    Ok(())
}

fn list_runs(config: &Config, name: Option<&str>, format: OutputFormat) -> Result<(), OrderError> {
    let runs = match database::open_read_only(config)? {
        Some(store) => {
            jobs::list_runs(store.jobs().job_runs(name, MAX_RUNS)?, &store.jobs().list_jobs()?, config.timezone)
        }
        None => Vec::new(),
    };
    if format.is_json() {
        runs.iter().for_each(print_json);
    } else {
        show::print_page(config, &jobs::render_runs(&runs, config.timezone));
    }
    Ok(())
}

fn request_run(config: &Config, name: &str) -> Result<(), OrderError> {
    let now = config.clock().now();
    let found = jobs::read_jobs(&Documents::new(&config.repo_dir(), Vec::new()), now.with_timezone(&config.timezone));
    let mut store = workspace::open_database(config)?;
    complain(&jobs::order_run(&mut store, &found, name, now)?);
    Ok(())
}

fn switch_job(config: &Config, name: &str, switch: JobSwitch) -> Result<(), OrderError> {
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let now = clock.now().with_timezone(&config.timezone);
    let mut hand = PersonSession::take(PersonSessionTools { config, clock: clock.as_ref(), redactor: &redactor })?;
    let done = jobs::switch_job(&mut hand, now, name, switch);
    let ended = hand.release();
    complain(&done?);
    Ok(ended?)
}
