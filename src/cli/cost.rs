//! `wake cost`: shows the costs of models.

use std::process::ExitCode;

use reveille_account::cost::{self, CostBy, CostQuery};
use reveille_config::Config;
use reveille_store::database;

use super::{EXIT_FAILED, complain, failed, print, print_json};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct CostArguments {
    /// By what costs are told apart. By tool, a turn's cost is shared among its calls.
    #[arg(long, value_enum, default_value_t = CostBy::Model)]
    by: CostBy,
    /// From when on: today, yesterday, 2026-11-20, or how long ago: 12h, 7d; the month's beginning when left out.
    #[arg(long, value_name = "DAY|SPAN")]
    since: Option<String>,
    /// Print one JSON document: today_usd, month_usd, budget, since, by, rows, total, forecast, prompts, unpriced, questions.
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints the report.
pub(super) fn run(config: &Config, arguments: &CostArguments, as_json: bool) -> ExitCode {
    let since = match super::since(config, arguments.since.as_deref()) {
        Ok(since) => since,
        Err(code) => return code,
    };
    let store = match database::look(config) {
        Ok(Some(store)) => store,
        Ok(None) => {
            complain("Nothing has been spent: no wake has worked here yet.");
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => return failed(&error),
    };
    let query = CostQuery { since, by: arguments.by, chat: None, with_parts: true };
    match cost::report(&store, config, config.clock().now(), query) {
        Ok(report) if as_json => print_json(&report),
        Ok(report) => print(&format!("{}\n", report.on_terminal(config.timezone))),
        Err(error) => return failed(&error),
    }
    ExitCode::SUCCESS
}
