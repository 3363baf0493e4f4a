//! `wake cost`: shows the costs of models.

use std::process::ExitCode;

use reveille_account::cost::{self, CostBy, CostQuery};
use reveille_config::Config;
use reveille_store::database;

use super::{EXIT_FAILED, OutputFormat, complain, print, print_json, report_failure};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct CostArguments {
    /// How to group costs. By tool, a turn's cost is shared among its calls.
    #[arg(long, value_enum, default_value_t = CostBy::Model)]
    by: CostBy,
    /// Since when: today, yesterday, 2026-11-20, or how long ago: 12h, 7d; default: since the month began.
    #[arg(long, value_name = "DAY|SPAN")]
    since: Option<String>,
    /// Print one JSON document: today_usd, month_usd, budget, since, by, rows, total, forecast, prompts, unpriced, questions.
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints the report.
pub(super) fn run(config: &Config, arguments: &CostArguments, format: OutputFormat) -> ExitCode {
    let since = match super::parse_since(config, arguments.since.as_deref()) {
        Ok(since) => since,
        Err(code) => return code,
    };
    let store = match database::open_read_only(config) {
        Ok(Some(store)) => store,
        Ok(None) => {
            complain("Nothing has been spent: no wake has run here yet.");
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => return report_failure(&error),
    };
    let query = CostQuery { since, by: arguments.by, chat: None, with_parts: true };
    match cost::compute_report(&store, config, config.clock().now(), query) {
        Ok(report) if format.is_json() => print_json(&report),
        Ok(report) => print(&format!("{}\n", report.render_for_terminal(config.timezone))),
        Err(error) => return report_failure(&error),
    }
    ExitCode::SUCCESS
}
