//! `wake memory embed`, and embedding of all remaining texts. Only a person, and only here, can decide that texts may
//! leave this machine.

use std::process::ExitCode;

use clap::Subcommand;

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::decide::budget::Budget;
use reveille_index::{
    Index,
    embed::{self, BackfillError, Backfilled, EmbedContext, EmbedError, Embedder, price},
};
use reveille_store::{Store, StoreError, database};

use super::{EXIT_CONFIG, build_runtime, complain, print, report_failure};

/// How many texts between two progress reports.
const TELL_EVERY: usize = 256;

#[derive(Debug, Subcommand)]
pub(super) enum EmbedAction {
    /// Allow the cloud embedder that EMBED_MODEL names to get everything that is searched.
    Allow,
    /// Stop sending it anything.
    Deny,
    /// Show which embedder is used, and whether it is allowed (the default).
    Status,
}

pub(super) fn run(config: &Config, action: Option<&EmbedAction>) -> ExitCode {
    let embedder = match embed::create_embedder(config) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => {
            print("There is no embedder: EMBED_MODEL isn't set. The memory is searched by keywords.\n");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            complain(&format!("The memory is searched by keywords: {error}."));
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    let done = cycle::open_store(config).map_err(|error| error.to_string()).and_then(|mut store| {
        let done = run_action(config, embedder.as_ref(), &mut store, action);
        done.map_err(|error| error.to_string())
    });
    match done {
        Ok(said) => {
            print(&format!("{said}\n"));
            ExitCode::SUCCESS
        }
        Err(error) => report_failure(&error),
    }
}

fn run_action(
    config: &Config,
    embedder: &dyn Embedder,
    store: &mut Store,
    action: Option<&EmbedAction>,
) -> Result<String, StoreError> {
    let (id, now) = (embedder.id(), config.clock().now());
    let Some(to) = embedder.destination() else {
        return Ok(format!("{id} runs on this machine. No text leaves it, so there is nothing to allow."));
    };
    Ok(match action {
        Some(EmbedAction::Allow) => {
            store.maintenance_mut().allow_embedder(Some(id), now)?;
            format!(
                "Allowed: {to} gets everything that is searched, with secrets masked. To stop that: wake memory embed deny"
            )
        }
        Some(EmbedAction::Deny) => {
            store.maintenance_mut().allow_embedder(None, now)?;
            format!("Denied: I send nothing more to {to}. I can't take back what it has already received.")
        }
        None | Some(EmbedAction::Status) => {
            let may = store.maintenance().allowed_embedder()?.as_deref() == Some(id);
            let allowed = if may { "allowed" } else { "not allowed: wake memory embed allow" };
            format!(
                "Embedder: {id}, at ${} for a million tokens{}; {allowed}",
                embedder.usd_per_million(),
                describe_price_certainty(embedder)
            )
        }
    })
}

/// Describes how certain the price is.
fn describe_price_certainty(embedder: &dyn Embedder) -> String {
    if embedder.usd_per_million() < price::UNKNOWN_USD_PER_MILLION {
        format!(" (price of {})", price::PRICES_READ_ON)
    } else {
        " (price unknown, so a high one is assumed)".to_owned()
    }
}

/// Embeds all texts without a vector, and reports progress. Finished embeddings are kept if it ends early.
pub(super) fn embed_missing(config: &Config, index: &mut Index) -> Result<Option<Backfilled>, BackfillError> {
    let Some(embedder) = embed::create_embedder(config)? else { return Ok(None) };
    let mut store = database::open(config).map_err(EmbedError::Store)?;
    let caps = Budget::read(&store, config, config.clock().now()).map_err(EmbedError::Store)?.caps();
    let redactor = super::build_redactor(config);
    let mut told = 0;
    let mut report_progress = |done: &Backfilled| {
        if done.embedded >= told + TELL_EVERY {
            told = done.embedded;
            complain(&format!("{told} parts are embedded"));
        }
        true
    };
    let now = config.clock().now();
    let mut desk = EmbedContext { store: Some(&mut store), redactor: &redactor, caps: &caps, now };
    let runtime = build_runtime().map_err(|error| EmbedError::SetUp(error.to_string()))?;
    runtime.block_on(embed::backfill_vectors(index, embedder.as_ref(), &mut desk, &mut report_progress)).map(Some)
}
