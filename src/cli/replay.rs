//! `wake replay`: runs a recorded cycle again, with tool results from its journal.

use std::process::ExitCode;

use reveille_account::find::{self, FoundWake};
use reveille_base::words::count;
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

use super::{EXIT_CONFIG, EXIT_FAILED, complain, failed, out::Working, print, print_exactly};

/// Prefix of the model's name in the ledger.
const WHAT: &str = "replay";

/// Help text below the options.
pub(super) const HELP: &str = "\
Nothing happens: no tool runs, nothing is sent, and no file is written. A call is answered by the first recorded one of the
same tool and arguments; plans, answers and notes may be in other words. A call that isn't recorded ends the replay. A model
that costs something is paid from the same budget; what that may be is said first.

Exit codes: 0 calls, receipts and files are the same · 1 they aren't, or it couldn't be replayed.

Examples:
  wake replay 20261121T0903
  wake replay '#12' --model claude-haiku-4-5
  wake replay 20261121T0903 --json | jq '.calls[] | select(.fate != \"same\")'";

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// The wake's id or commit, the beginning of either, or a message's number.
    id: String,
    /// The model that takes the turns; the one that was recorded when left out.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Print one JSON document: same, ended, calls, receipts_missing, receipts_new, files, recorded, replayed, …
    #[arg(long)]
    pub(super) json: bool,
}

/// Replays the cycle, and compares it with the recording.
pub(super) async fn run(context: Context<'_>, arguments: &ReplayArguments, as_json: bool) -> ExitCode {
    let report = match replayed(context, arguments).await {
        Ok(report) => report,
        Err(code) => return code,
    };
    if as_json {
        // Texts masked in the journal stay masked. This masks secrets that were set later.
        let text = serde_json::to_string(&report).unwrap_or_default();
        print_exactly(&format!("{}\n", context.redactor.redact_json(&outside::unmarked(&text))));
    } else {
        print(&replay::on_terminal(&report, context.redactor));
    }
    ExitCode::from(if report.same { super::EXIT_OK } else { EXIT_FAILED })
}

async fn replayed(context: Context<'_>, arguments: &ReplayArguments) -> Result<ReplayReport, ExitCode> {
    let config = context.config;
    workspace::check(config).map_err(|error| failed(&error))?;
    let store = database::look(config).map_err(|error| failed(&error))?;
    let Some(store) = store else {
        complain("Nothing can be replayed: no wake has worked here yet.");
        return Err(ExitCode::from(EXIT_FAILED));
    };
    let repo = Repo::open(&config.repo_dir()).ok();
    let row = found(&store, repo.as_ref(), &arguments.id)?;
    let replay = Replay::of(&store, &row).map_err(|error| why_not(&error))?;
    let name = arguments.model.as_deref().unwrap_or(&row.cycle.model);
    if !config.is_local(name) && is_kept_local(&store, context, &row)? {
        complain(
            "This chat is kept on this machine (/local): none of it is given to a model elsewhere. Name one that works here with \
             --model, or lift it with /local off.",
        );
        return Err(ExitCode::from(EXIT_FAILED));
    }
    let model = Booked::named(name, WHAT, config, (config, context.clock)).map_err(|error| no_model(&error))?;
    if let Some(left) = model.left_usd().map_err(|error| failed(&error))? {
        let each = model.most_usd(&replay.first_conversation());
        complain(&format!(
            "Replaying {} with {name}: each request may cost ${each:.4} or somewhat more, and the recording took {}. \
             ${left:.2} is left of the budget.",
            row.cycle.id,
            count(replay.turns() as usize, "round"),
        ));
    }
    (context.at_work)();
    let working = Working::on("replaying…");
    let context = Context { model: &model, ..context };
    let report = replay.run(context, (&store, repo.as_ref()), &model).await;
    drop(working);
    report.map_err(|error| why_not(&error))
}

/// Returns `true` if the cycle's content must not go to models elsewhere.
pub(super) fn is_kept_local(store: &Store, context: Context<'_>, row: &CycleRow) -> Result<bool, ExitCode> {
    let lineup = cycle::model_state(store, context.config, context.clock.now()).map_err(|error| failed(&error))?;
    Ok(lineup.is_local(row.cycle.chat))
}

/// Finds the cycle of this name, with all columns.
pub(super) fn found(store: &Store, repo: Option<&Repo>, name: &str) -> Result<CycleRow, ExitCode> {
    let why = match find::find(Some(store), repo, Some(name)) {
        Ok(FoundWake::Cycle(row)) => match store.cycles().cycle(&row.cycle.id) {
            Ok(Some(row)) => return Ok(row),
            Ok(None) => "That wake isn't kept any more.".to_owned(),
            Err(error) => return Err(failed(&error)),
        },
        Ok(FoundWake::Commit(commit)) => format!("{commit} is no wake's commit of this workspace: nothing ran for it."),
        Ok(FoundWake::Nothing(why)) => why,
        Err(error) => return Err(failed(&error)),
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
        error => failed(error),
    }
}

/// Reports why a model can't be used.
pub(super) fn no_model(error: &TrialModelError) -> ExitCode {
    match error {
        TrialModelError::Unset(why) => {
            complain(why);
            ExitCode::from(EXIT_CONFIG)
        }
        TrialModelError::Store(error) => failed(error),
    }
}
