//! `wake eval`: cases in a folder as a test of prompts and models, and recorded wakes as such cases.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;

use super::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, complain, failed, out::Working, print, print_json, replay};
use crate::{
    cycle::{context::Context, workspace},
    database,
    model::Conversation,
    repo::Repo,
    trial::{
        booked::{Booked, is_free},
        eval::{self, CaseScore, TrialPlace},
    },
    types::Usage,
    words::count,
};

/// What `wake eval --help` says below the options.
pub(super) const HELP: &str = "\
A case is a small TOML file; docs/EVAL.md tells what stands in it. Each runs in a temporary workspace with the real memory
tools; what acts outside is answered by the case. Without --model a case's own script takes the turns, else the offline model:
that costs nothing. A model that costs something is paid from the same budget as all else.

Exit codes: 0 all cases passed · 1 one failed.

Examples:
  wake eval evals
  wake eval evals --model claude-haiku-4-5
  wake eval evals --json | jq -r 'select(.passed == false) | .case'
  wake eval add 20261121T0903 my-evals";

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
    /// Print a JSON object a line: case, about, passed, why, model, rounds, tokens, cost_usd; the last one: cases, passed, …
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum EvalCommand {
    /// Write a recorded wake as a case, without secrets: it outlives its journal.
    #[command(after_help = "\
The file is readable by you alone. It holds your memory as it was then: read it before you share it.

Example: wake eval add 20261121T0903 my-evals")]
    Add {
        /// The wake's id or commit, the beginning of either, or a message's number.
        id: String,
        /// The folder; it is made if need be.
        dir: PathBuf,
        /// Print one JSON document: path, masked, left_out.
        #[arg(long)]
        json: bool,
    },
}

impl EvalArguments {
    /// Whether JSON is asked for.
    pub(super) fn json(&self) -> bool {
        self.json || matches!(self.action, Some(EvalCommand::Add { json: true, .. }))
    }
}

/// The scorecard's last line. The names are relied on.
#[derive(Default, serde::Serialize)]
struct Total {
    cases: usize,
    passed: usize,
    rounds: u32,
    tokens: Usage,
    cost_usd: f64,
}

/// Runs the cases, or adds one.
pub(super) async fn run(context: Context<'_>, arguments: &EvalArguments, as_json: bool) -> ExitCode {
    match (&arguments.action, &arguments.dir) {
        (Some(EvalCommand::Add { id, dir, .. }), _) => add(context, id, dir, as_json),
        (None, Some(dir)) => Box::pin(run_all(context, dir, arguments.model.as_deref(), as_json)).await,
        (None, None) => ExitCode::from(EXIT_USAGE),
    }
}

async fn run_all(context: Context<'_>, dir: &Path, model: Option<&str>, as_json: bool) -> ExitCode {
    let cases = match eval::cases_in(dir) {
        Ok(cases) if cases.is_empty() => {
            complain(&format!(
                "{} has no cases: no file there ends in .toml. docs/EVAL.md tells how one looks.",
                dir.display()
            ));
            return ExitCode::from(EXIT_FAILED);
        }
        Ok(cases) => cases,
        Err(error) => return failed(&format!("{} can't be read: {error}", dir.display())),
    };
    if let Some(code) = model.and_then(|name| cannot_pay(context, name, cases.len())) {
        return code;
    }
    let place = match TrialPlace::make() {
        Ok(place) => place,
        Err(error) => return failed(&format!("no temporary folder could be made: {error}")),
    };
    (context.at_work)();
    let mut total = Total::default();
    for path in cases {
        if *context.stop.borrow() {
            complain("Ended as asked; the other cases weren't run.");
            break;
        }
        let working = Working::on(&format!("{}…", path.display()));
        let score = Box::pin(eval::run(context, &path, model, &place)).await;
        drop(working);
        total.cases += 1;
        total.passed += usize::from(score.passed);
        total.rounds += score.rounds;
        total.tokens += score.tokens;
        total.cost_usd += score.cost_usd;
        if as_json { print_json(&score) } else { print(&line(&score)) }
    }
    if as_json {
        print_json(&total);
    } else {
        let Total { cases, passed, rounds, tokens, cost_usd } = total;
        let cost = figures(rounds, tokens, cost_usd);
        print(&format!("\n{passed} of {} passed: {cost}\n", count(cases, "case")));
    }
    ExitCode::from(if total.passed == total.cases && !*context.stop.borrow() { EXIT_OK } else { EXIT_FAILED })
}

/// Says what a model may cost. An exit code: it can't be tried.
fn cannot_pay(context: Context<'_>, name: &str, cases: usize) -> Option<ExitCode> {
    if is_free(name) {
        return None;
    }
    let model = match Booked::named(name, "eval", context.config, (context.config, context.clock)) {
        Ok(model) => model,
        Err(error) => return Some(replay::no_model(&error)),
    };
    let least = crate::model::Model::most_usd(&model, &Conversation::default());
    match model.left_usd() {
        Ok(Some(left)) => {
            complain(&format!(
                "{} with {name}, each of one request at least, which may cost ${least:.4} and what its prompt costs. \
                 ${left:.2} is left of the budget; no more is spent.",
                count(cases, "case")
            ));
            None
        }
        Ok(None) => None,
        Err(error) => Some(failed(&error)),
    }
}

fn line(score: &CaseScore) -> String {
    let word = if score.passed { "pass" } else { "FAIL" };
    let cost = figures(score.rounds, score.tokens, score.cost_usd);
    let mut text = format!("{word}  {}: {}  ({}, {cost})\n", score.case, score.about, score.model);
    for why in &score.why {
        text.push_str(&format!("      {why}\n"));
    }
    text
}

fn figures(rounds: u32, tokens: Usage, cost_usd: f64) -> String {
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    format!("{}, {input} tokens in, {} out, ${cost_usd:.4}", count(rounds as usize, "round"), tokens.output)
}

fn add(context: Context<'_>, id: &str, dir: &Path, as_json: bool) -> ExitCode {
    let config = context.config;
    if let Err(error) = workspace::check(config) {
        return failed(&error);
    }
    let store = match database::look(config) {
        Ok(Some(store)) => store,
        Ok(None) => {
            complain("Nothing can be added: no wake has worked here yet.");
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => return failed(&error),
    };
    let repo = match Repo::open(&config.repo_dir()) {
        Ok(repo) => repo,
        Err(error) => return failed(&error),
    };
    let row = match replay::found(&store, Some(&repo), id) {
        Ok(row) => row,
        Err(code) => return code,
    };
    match replay::is_kept_local(&store, context, &row) {
        Ok(false) => {}
        Ok(true) => {
            complain(
                "This chat is kept on this machine (/local), and a case is given to any model. No case was written; /local off \
                 lifts it.",
            );
            return ExitCode::from(EXIT_FAILED);
        }
        Err(code) => return code,
    }
    match eval::add((&store, &repo), config, context.redactor, &row, dir) {
        Ok(added) if as_json => print_json(&added),
        Ok(added) => {
            let masked = count(added.masked, "place");
            print(&format!("{} is written, for your eyes alone. Masked: {masked}.\n", added.path.display()));
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
