//! `wake replay`: runs a recorded cycle again, with tool results from its journal.

use std::process::ExitCode;

use reveille_account::find::{self, FoundWake};
use reveille_base::words::format_count;
use reveille_cycle as cycle;
use reveille_cycle::{context::Context, workspace};
use reveille_git::Repo;
use reveille_memory::outside;
use reveille_model::Model as _;
use reveille_store::{CycleRow, Store, database};
use reveille_trial::{
    booked::{Booked, TrialModelError},
    replay::{self, Replay, ReplayError, ReplayReport},
};

use super::{EXIT_CONFIG, EXIT_FAILED, OutputFormat, complain, out::Working, print, print_exactly, report_failure};

/// Prefix of the model's name in the ledger.
const WHAT: &str = "replay";

/// Help text below the options.
pub(super) const HELP: &str = "\
A replay has no effects: no tool runs, nothing is sent, and no file is written. A call gets the answer of the first recorded call
with the same tool and arguments; plans, answers and notes may be worded differently. A call that isn't recorded ends the replay.
A paid model uses the same budget; the possible cost is shown first.

Exit codes: 0 calls, receipts and files are the same · 1 they differ, or the wake couldn't be replayed.

Examples:
  wake replay 20261121T0903
  wake replay '#12' --model claude-haiku-4-5
  wake replay 20261121T0903 --json | jq '.calls[] | select(.fate != \"same\")'";

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// A wake's id or commit, the beginning of either, or a message's number.
    id: String,
    /// The model that takes the turns; default: the recorded one.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print one JSON document: same, ended, calls, receipts_missing, receipts_new, files, recorded, replayed, …
    #[arg(long)]
    pub(super) json: bool,
}

/// Replays the cycle, and compares it with the recording.
pub(super) async fn run(context: Context<'_>, arguments: &ReplayArguments, format: OutputFormat) -> ExitCode {
    let report = match replay_cycle(context, arguments).await {
        Ok(report) => report,
        Err(code) => return code,
    };
    if format.is_json() {
        // Texts masked in the journal stay masked. This masks secrets that were set later.
        let text = serde_json::to_string(&report).unwrap_or_default();
        print_exactly(&format!("{}\n", context.redactor.redact_json(&outside::strip_marks(&text))));
    } else {
        print(&replay::render_report(&report, context.redactor));
    }
    ExitCode::from(if report.same { super::EXIT_OK } else { EXIT_FAILED })
}

async fn replay_cycle(context: Context<'_>, arguments: &ReplayArguments) -> Result<ReplayReport, ExitCode> {
    let config = context.config;
    workspace::check_database(config).map_err(|error| report_failure(&error))?;
    let store = database::open_read_only(config).map_err(|error| report_failure(&error))?;
    let Some(store) = store else {
        complain("There is nothing to replay: no wake has run here yet.");
        return Err(ExitCode::from(EXIT_FAILED));
    };
    let repo = Repo::open(&config.repo_dir()).ok();
    let row = find_cycle(&store, repo.as_ref(), &arguments.id)?;
    let replay = Replay::load(&store, &row).map_err(|error| why_not(&error))?;
    let name = arguments.model.as_deref().unwrap_or(&row.cycle.model);
    if !config.is_local(name) && is_kept_local(&store, context, &row)? {
        complain(
            "This chat stays on this machine (/local), so no model elsewhere may see it. Name a model on this machine with --model, \
             or lift this with /local off.",
        );
        return Err(ExitCode::from(EXIT_FAILED));
    }
    let model = Booked::for_model(name, WHAT, config, (config, context.clock)).map_err(|error| no_model(&error))?;
    if let Some(left) = model.left_usd().map_err(|error| report_failure(&error))? {
        let each = model.most_usd(&replay.first_conversation());
        complain(&format!(
            "Replaying {} with {name}: each request may cost ${each:.4} or somewhat more, and the recording took {}. ${left:.2} of \
             the budget is left.",
            row.cycle.id,
            format_count(replay.turns() as usize, "round"),
        ));
    }
    (context.at_work)();
    let working = Working::start("replaying…");
    let context = Context { model: &model, ..context };
    let report = replay.run(context, (&store, repo.as_ref()), &model).await;
    drop(working);
    report.map_err(|error| why_not(&error))
}

/// Returns `true` if the cycle's content must not go to models elsewhere.
pub(super) fn is_kept_local(store: &Store, context: Context<'_>, row: &CycleRow) -> Result<bool, ExitCode> {
    let lineup =
        cycle::read_model_state(store, context.config, context.clock.now()).map_err(|error| report_failure(&error))?;
    Ok(lineup.is_local(row.cycle.chat))
}

/// Finds the cycle of this name, with all columns.
pub(super) fn find_cycle(store: &Store, repo: Option<&Repo>, name: &str) -> Result<CycleRow, ExitCode> {
    let why = match find::find_wake(Some(store), repo, Some(name)) {
        Ok(FoundWake::Cycle(row)) => match store.cycles().find_cycle(&row.cycle.id) {
            Ok(Some(row)) => return Ok(row),
            Ok(None) => "That wake is no longer stored.".to_owned(),
            Err(error) => return Err(report_failure(&error)),
        },
        Ok(FoundWake::Commit(commit)) => {
            format!("{commit} isn't the commit of a wake in this workspace, so there is nothing to replay.")
        }
        Ok(FoundWake::Nothing(why)) => why,
        Err(error) => return Err(report_failure(&error)),
    };
    complain(&why);
    Err(ExitCode::from(EXIT_FAILED))
}

fn why_not(error: &ReplayError) -> ExitCode {
    match error {
        ReplayError::Unfit(why) => {
            complain(why);
            ExitCode::from(EXIT_FAILED)
        }
        error => report_failure(error),
    }
}

/// Reports why a model can't be used.
pub(super) fn no_model(error: &TrialModelError) -> ExitCode {
    match error {
        TrialModelError::Unset(why) => {
            complain(why);
            ExitCode::from(EXIT_CONFIG)
        }
        TrialModelError::Store(error) => report_failure(error),
    }
}
