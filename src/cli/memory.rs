//! `wake memory`: searching what is remembered, and looking after the index that answers.

use std::process::ExitCode;

use chrono::NaiveDate;
use clap::Subcommand;

use super::{EXIT_FAILED, complain, values};
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
}

impl MemoryCommand {
    /// Whether JSON is asked for.
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Search { json, .. } | Self::Reindex { json } | Self::Stats { json } => *json,
        }
    }
}

/// Carries out `wake memory`.
pub(super) fn run(_config: &Config, _command: &MemoryCommand, _as_json: bool) -> ExitCode {
    complain("The memory's index isn't built yet.");
    ExitCode::from(EXIT_FAILED)
}
