//! `wake eval`: runs a folder of cases to test prompts and models, and turns recorded wakes into cases.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;

use reveille_base::{types::Usage, words::format_count};
use reveille_cycle::{context::Context, workspace};
use reveille_git::Repo;
use reveille_model::Conversation;
use reveille_store::database;
use reveille_trial::{
    booked::{Booked, is_free},
    eval::{self, CaseScore, Comparison, KeptRun, TrialPlace, TurnTaker},
};

use super::{
    EXIT_CONFIG, EXIT_FAILED, EXIT_OK, EXIT_USAGE, OutputFormat, complain, out::Working, print, print_json, replay,
    report_failure,
};

/// Help text below the options.
pub(super) const HELP: &str = "\
A case is a small TOML file, described in docs/EVAL.md. Each runs in a temporary workspace with the real memory tools; for tools that
act outside, the case holds the answers. Without --model, the case's own script takes the turns, or else the offline model:
that costs nothing. A paid model uses the same budget as everything else.

--live runs the configured model on the cases as it works for you. It spends at most --cap, keeps the result under
evals/ in the workspace, and says what got better or worse since the same model's last run.

Exit codes: 0 all cases passed · 1 one failed.

Examples:
  wake eval evals
  wake eval evals --model claude-haiku-4-5
  wake eval evals/live --live --cap 2
  wake eval evals --json | jq -r 'select(.passed == false) | .case'
  wake eval add 20261121T0903 my-evals";

/// The folder for live runs, below the workspace.
const EVALS_DIR: &str = "evals";
/// Default cost limit of a live run, in US dollars.
const CAP_USD: f64 = 2.0;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct EvalArguments {
    #[command(subcommand)]
    action: Option<EvalCommand>,
    /// The folder with the cases.
    #[arg(required = true)]
    dir: Option<PathBuf>,
    /// The model that takes the turns of all cases.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Test the model as it works for you: the configured one, or --model. The result is kept and compared with the last one.
    #[arg(long)]
    live: bool,
    /// The most that a live run may cost, in US dollars.
    #[arg(long, value_name = "USD", requires = "live", default_value_t = CAP_USD)]
    cap: f64,
    /// Print one JSON object per line: case, about, passed, why, model, rounds, tokens, cost_usd; the last one: cases, passed, …
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum EvalCommand {
    /// Write a recorded wake as a case, without secrets. The case stays when the journal is deleted.
    #[command(after_help = "\
Only you can read the file. It holds your memory as it was then: read it before you share it.

Example: wake eval add 20261121T0903 my-evals")]
    Add {
        /// A wake's id or commit, the beginning of either, or a message's number.
        id: String,
        /// The folder; created if it doesn't exist.
        dir: PathBuf,
        /// Print one JSON document: path, masked, left_out.
        #[arg(long)]
        json: bool,
    },
}

impl EvalArguments {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        self.json || matches!(self.action, Some(EvalCommand::Add { json: true, .. }))
    }
}

/// The last line of the scorecard. Scripts rely on the field names.
#[derive(Default, serde::Serialize)]
struct Total {
    cases: usize,
    passed: usize,
    rounds: u32,
    tokens: Usage,
    cost_usd: f64,
    /// Number of cases that weren't run, because the cap was reached or the process was asked to end.
    left_out: usize,
    /// Comparison with the last live run.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Comparison>,
}

/// Runs the cases, or adds one.
pub(super) async fn run(context: Context<'_>, arguments: &EvalArguments, format: OutputFormat) -> ExitCode {
    match (&arguments.action, &arguments.dir) {
        (Some(EvalCommand::Add { id, dir, .. }), _) => add_case(context, id, dir, format),
        (None, Some(dir)) => {
            let model = arguments.model.as_deref();
            let cap = arguments.live.then_some(arguments.cap);
            let name = match (model, cap) {
                (None, Some(_)) => Some(context.config.effective_model()),
                (model, _) => model,
            };
            if cap.is_some() && name.is_none_or(is_free) {
                complain("A live run needs an AI model, and none is set. Set MODEL, or name one with --model.");
                return ExitCode::from(EXIT_CONFIG);
            }
            Box::pin(run_all(context, dir, (name, cap), format)).await
        }
        (None, None) => ExitCode::from(EXIT_USAGE),
    }
}

async fn run_all(
    context: Context<'_>,
    dir: &Path,
    (model, cap_usd): (Option<&str>, Option<f64>),
    format: OutputFormat,
) -> ExitCode {
    let cases = match eval::list_cases(dir) {
        Ok(cases) if cases.is_empty() => {
            complain(&format!(
                "{} has no cases: no file there ends in .toml. docs/EVAL.md shows what a case looks like.",
                dir.display()
            ));
            return ExitCode::from(EXIT_FAILED);
        }
        Ok(cases) => cases,
        Err(error) => return report_failure(&format!("{} can't be read: {error}", dir.display())),
    };
    // The result of a live run is kept in the workspace.
    if cap_usd.is_some()
        && let Err(error) = workspace::prepare_workspace(context.config)
    {
        return report_failure(&error);
    }
    let least_usd = match model.map_or(Ok(0.0), |name| least_usd(context, name, cases.len())) {
        Ok(usd) => usd,
        Err(code) => return code,
    };
    let place = match TrialPlace::make() {
        Ok(place) => place,
        Err(error) => return report_failure(&format!("can't create a temporary folder: {error}")),
    };
    (context.at_work)();
    let mut total = Total::default();
    let mut kept =
        cap_usd.and(model).map(|name| KeptRun::begin(context.clock.now(), crate::VERSION, name, &format_folder(dir)));
    let all = cases.len();
    for path in cases {
        if *context.stop.borrow() {
            complain("Stopped; the other cases weren't run.");
            break;
        }
        let turns = match (model, cap_usd) {
            (None, _) => TurnTaker::Scripted,
            (Some(name), None) => TurnTaker::Model(name),
            (Some(name), Some(cap)) if total.cost_usd + least_usd < cap => TurnTaker::Live(name, cap - total.cost_usd),
            (Some(_), Some(cap)) => {
                complain(&format!(
                    "${:.2} of the ${cap:.2} (--cap) are spent, and the next request may cost more than the rest; the other cases \
                     weren't run.",
                    total.cost_usd
                ));
                break;
            }
        };
        let working = Working::start(&format!("{}…", path.display()));
        let score = Box::pin(eval::run(context, &path, turns, &place)).await;
        drop(working);
        total.cases += 1;
        total.passed += usize::from(score.passed);
        total.rounds += score.rounds;
        total.tokens += score.tokens;
        total.cost_usd += score.cost_usd;
        if format.is_json() {
            print_json(&score);
        } else {
            print(&render_score(&score));
        }
        kept.iter_mut().for_each(|run| run.scores.push(score.clone()));
    }
    total.left_out = all - total.cases;
    let is_kept = kept.is_none_or(|run| keep_run(context, &run, &mut total));
    if format.is_json() {
        print_json(&total);
    } else {
        let Total { cases, passed, rounds, tokens, cost_usd, .. } = total;
        let cost = format_figures(rounds, tokens, cost_usd);
        print(&format!("\n{passed} of {} passed: {cost}\n", format_count(cases, "case")));
        total.compared.iter().for_each(|compared| print(&compared.describe()));
    }
    ExitCode::from(if is_kept && total.passed == all { EXIT_OK } else { EXIT_FAILED })
}

/// Names a folder of cases in a kept run, independent of the current directory.
fn format_folder(dir: &Path) -> String {
    dir.canonicalize().unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

/// Keeps a live run, and compares it with the last. Returns `true` if it was kept.
fn keep_run(context: Context<'_>, run: &KeptRun, total: &mut Total) -> bool {
    let dir = context.config.workspace_dir.join(EVALS_DIR);
    total.compared = KeptRun::load_last(&dir, &run.model, &run.cases).map(|before| run.compare(&before));
    match run.save(&dir, context.clock.now()) {
        Ok(path) => {
            complain(&format!("The result is kept in {}.", path.display()));
            true
        }
        Err(error) => {
            complain(&format!("The result couldn't be kept in {}: {error}.", dir.display()));
            false
        }
    }
}

/// Reports a model's possible cost, and returns the maximum cost of one request without its prompt, in US dollars.
/// Returns an exit code if the model can't be used.
fn least_usd(context: Context<'_>, name: &str, cases: usize) -> Result<f64, ExitCode> {
    if is_free(name) {
        return Ok(0.0);
    }
    let model = match Booked::for_model(name, "eval", context.config, (context.config, context.clock)) {
        Ok(model) => model,
        Err(error) => return Err(replay::no_model(&error)),
    };
    let least = reveille_model::Model::most_usd(&model, &Conversation::default());
    match model.left_usd() {
        Ok(Some(left)) => {
            complain(&format!(
                "{} with {name}, each with at least one request, which may cost ${least:.4} plus its prompt. ${left:.2} of the \
                 budget is left; it spends no more.",
                format_count(cases, "case")
            ));
            Ok(least)
        }
        Ok(None) => Ok(0.0),
        Err(error) => Err(report_failure(&error)),
    }
}

fn render_score(score: &CaseScore) -> String {
    let word = if score.passed { "pass" } else { "FAIL" };
    let cost = format_figures(score.rounds, score.tokens, score.cost_usd);
    let mut text = format!("{word}  {}: {}  ({}, {cost})\n", score.case, score.about, score.model);
    for why in &score.why {
        text.push_str(&format!("      {why}\n"));
    }
    text
}

fn format_figures(rounds: u32, tokens: Usage, cost_usd: f64) -> String {
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    format!("{}, {input} tokens in, {} out, ${cost_usd:.4}", format_count(rounds as usize, "round"), tokens.output)
}

fn add_case(context: Context<'_>, id: &str, dir: &Path, format: OutputFormat) -> ExitCode {
    let config = context.config;
    if let Err(error) = workspace::check_database(config) {
        return report_failure(&error);
    }
    let store = match database::open_read_only(config) {
        Ok(Some(store)) => store,
        Ok(None) => {
            complain("There is nothing to add: no wake has run here yet.");
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => return report_failure(&error),
    };
    let repo = match Repo::open(&config.repo_dir()) {
        Ok(repo) => repo,
        Err(error) => return report_failure(&error),
    };
    let row = match replay::find_cycle(&store, Some(&repo), id) {
        Ok(row) => row,
        Err(code) => return code,
    };
    match replay::is_kept_local(&store, context, &row) {
        Ok(false) => {}
        Ok(true) => {
            complain(
                "This chat stays on this machine (/local), but a case may go to any model, so no case was written. To lift this: \
                 /local off.",
            );
            return ExitCode::from(EXIT_FAILED);
        }
        Err(code) => return code,
    }
    match eval::add_case((&store, &repo), config, context.redactor, &row, dir) {
        Ok(added) if format.is_json() => print_json(&added),
        Ok(added) => {
            let masked = format_count(added.masked, "place");
            print(&format!("Wrote {}, which only you can read. Masked: {masked}.\n", added.path.display()));
            added.left_out.iter().for_each(|what| print(&format!("{what}\n")));
            complain("It holds your memory as it was then: read it before you share it.");
        }
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(EXIT_FAILED);
        }
    }
    ExitCode::SUCCESS
}
