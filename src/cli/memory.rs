//! `wake memory`: searching what is remembered, and looking after the index that answers.

use std::process::ExitCode;

use chrono::NaiveDate;
use clap::Subcommand;

use super::{EXIT_FAILED, complain, provenance, values};
use crate::config::Config;

/// Hits that are shown where nothing else is asked for.
const HITS: usize = 10;

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Search the memory, the skills and all conversations.
    #[command(after_help = "\
Examples:
  wake memory search 'wifi code'
  wake memory search --in memory/project-memory 'tax report'
  wake memory search --as-of 2026-11-01 'where did Anna move' --json | jq -r .text")]
    Search {
        /// What to look for, in any words.
        #[arg(required = true)]
        query: Vec<String>,
        /// Print a JSON object a line: path, line, text, date, score, origin.
        #[arg(long)]
        json: bool,
        /// How many hits at most.
        #[arg(short = 'n', long, default_value_t = HITS, value_parser = values::how_many)]
        limit: usize,
        /// As it was known on that day, its evening included.
        #[arg(long, value_name = "DATE", value_parser = values::day)]
        as_of: Option<NaiveDate>,
        /// Only in this file or folder of the memory; `messages` for what was said to the assistant, `answers` for what it said.
        #[arg(long = "in", value_name = "PATH")]
        within: Option<String>,
        /// With each hit, what it was ranked by.
        #[arg(long)]
        why: bool,
    },
    /// Build the index anew from the memory and the conversations.
    Reindex {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Say what the index holds.
    Stats {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Say where a fact comes from: who wrote the line, the wake, and the message that said it.
    #[command(after_help = "Example: wake memory why 'the wifi code'")]
    Why(provenance::WhyArguments),
    /// Show what changed in the memory.
    #[command(after_help = "\
Examples:
  wake memory diff                   since the last wake
  wake memory diff yesterday
  wake memory diff 20261121T0903     since that wake")]
    Diff(provenance::DiffArguments),
    /// Give a document, some of its lines, or the whole memory back as it was, as a commit of yours. What stands there now stays in the
    /// history.
    #[command(after_help = "\
Examples:
  wake memory restore semantic-memory                        as it was before its last change
  wake memory restore active.md --at 2026-11-20
  wake memory restore semantic-memory --lines 'wifi' --at yesterday
  wake memory restore 20261121T0903                          everything, as that wake left it")]
    Restore(provenance::RestoreArguments),
    /// Take words out of everything that is searched: the memory's lines, what was said, the records of wakes. Says first what that
    /// is, and afterwards what git's history still holds.
    #[command(after_help = "\
Examples:
  wake memory forget --dry-run 'wifi code'
  wake memory forget 'the wifi code is 1234'
  wake memory forget --yes 'the wifi code is 1234'")]
    Forget(provenance::ForgetArguments),
}

impl MemoryCommand {
    /// Whether JSON is asked for.
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Search { json, .. } | Self::Reindex { json } | Self::Stats { json } => *json,
            Self::Why(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Restore(_) | Self::Forget(_) => false,
        }
    }
}

/// Carries out `wake memory`.
pub(super) fn run(config: &Config, command: &MemoryCommand, as_json: bool) -> ExitCode {
    match command {
        MemoryCommand::Why(arguments) => provenance::why(config, arguments, as_json),
        MemoryCommand::Diff(arguments) => provenance::diff(config, arguments, as_json),
        MemoryCommand::Restore(arguments) => provenance::restore(config, arguments),
        MemoryCommand::Forget(arguments) => provenance::forget(config, arguments),
        MemoryCommand::Search { .. } | MemoryCommand::Reindex { .. } | MemoryCommand::Stats { .. } => {
            complain("The memory's index isn't built yet.");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
