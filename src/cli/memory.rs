//! `wake memory`: searches the memory, and maintains the index.

use std::{io::IsTerminal as _, process::ExitCode};

use chrono::NaiveDate;
use clap::Subcommand;
use serde_json::{Map, Value};

use reveille_base::{disk::format_size, words::truncate_text};
use reveille_config::Config;
use reveille_index::{ChunkOrigin, Index, IndexError, IndexPlace, Refreshed, SearchHit, embed::BackfillError};

use super::{
    EXIT_CONFIG, EXIT_FAILED, OutputFormat, complain, history,
    memory_embed::{self, EmbedAction},
    print, print_json, provenance, report_failure, values,
};
use crate::orders::search::{self, IndexWait, MemoryFound, MemoryQuestion, MemorySearchError};

/// Default number of hits.
const HITS: usize = 10;
/// Maximum displayed characters of a hit.
const MAX_TEXT_CHARS: usize = 240;

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
        /// Print one JSON object per line: path, line, text, date, score, origin.
        #[arg(long)]
        json: bool,
        /// Maximum number of hits.
        #[arg(short = 'n', long, default_value_t = HITS, value_parser = values::parse_count)]
        limit: usize,
        /// Search the knowledge of that day, up to its end.
        #[arg(long, value_name = "DATE", value_parser = values::parse_day)]
        as_of: Option<NaiveDate>,
        /// Only in this file or folder of the memory; `messages` for what was said to the assistant, `answers` for what it said.
        #[arg(long = "in", value_name = "PATH")]
        within: Option<String>,
        /// Explain the rank of each hit.
        #[arg(long)]
        why: bool,
    },
    /// Rebuild the index from the memory and the conversations.
    Reindex {
        /// Keep the index, and embed everything in it that isn't embedded yet (EMBED_MODEL).
        #[arg(long)]
        embed: bool,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Show which embedder is used, and decide whether it may get texts from this machine.
    Embed {
        /// What to do.
        #[command(subcommand)]
        action: Option<EmbedAction>,
    },
    /// Show what the index holds.
    Stats {
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Show where a fact comes from: who wrote the line, the wake, and the message that said it.
    #[command(after_help = "Example: wake memory why 'the wifi code'")]
    Why(provenance::WhyArguments),
    /// Show what changed in the memory.
    #[command(after_help = "\
Examples:
  wake memory diff                   since the last wake
  wake memory diff yesterday
  wake memory diff 20261121T0903     since that wake")]
    Diff(provenance::DiffArguments),
    /// Restore a document, some of its lines, or the whole memory as it was, with a commit of yours. The present content stays
    /// in the history.
    #[command(after_help = "\
Examples:
  wake memory restore semantic-memory                        as it was before its last change
  wake memory restore active.md --at 2026-11-20
  wake memory restore semantic-memory --lines 'wifi' --at yesterday
  wake memory restore 20261121T0903                          everything, as that wake left it")]
    Restore(provenance::RestoreArguments),
    /// Remove words from everything that is searched: the memory's lines, the conversations, the records of wakes. Shows first
    /// what that affects, and afterwards what git's history still holds.
    #[command(after_help = "\
Examples:
  wake memory forget --dry-run 'wifi code'
  wake memory forget 'the wifi code is 1234'
  wake memory forget --yes 'the wifi code is 1234'")]
    Forget(provenance::ForgetArguments),
}

impl MemoryCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Search { json, .. } | Self::Reindex { json, .. } | Self::Stats { json } => *json,
            Self::Why(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Embed { .. } | Self::Restore(_) | Self::Forget(_) => false,
        }
    }
}

pub(super) fn run(config: &Config, command: &MemoryCommand, format: OutputFormat) -> ExitCode {
    let asks_index =
        matches!(command, MemoryCommand::Search { .. } | MemoryCommand::Reindex { .. } | MemoryCommand::Stats { .. });
    if matches!(command, MemoryCommand::Search { .. })
        && let Err(code) = history::open_or_create(config)
    {
        return code;
    }
    if asks_index && !history::has_memory(config) {
        return ExitCode::from(EXIT_FAILED);
    }
    let done = match command {
        MemoryCommand::Search { query, limit, as_of, within, why, .. } => {
            let text = &query.join(" ");
            let within = within.as_deref();
            let question =
                MemoryQuestion { text, limit: *limit, as_of: *as_of, within, tells_of_keywords: !format.is_json() };
            let detail = if *why { HitDetail::Score } else { HitDetail::Text };
            search_memory(config, &question, detail, format)
        }
        MemoryCommand::Reindex { embed: true, .. } => embed_all(config, format),
        MemoryCommand::Reindex { embed: false, .. } => rebuild_index(config, format),
        MemoryCommand::Embed { action } => Ok(memory_embed::run(config, action.as_ref())),
        MemoryCommand::Stats { .. } => show_stats(config, format),
        MemoryCommand::Why(arguments) => return provenance::print_stories(config, arguments, format),
        MemoryCommand::Diff(arguments) => return provenance::print_changes(config, arguments, format),
        MemoryCommand::Restore(arguments) => return provenance::restore(config, arguments),
        MemoryCommand::Forget(arguments) => return provenance::forget(config, arguments),
    };
    done.unwrap_or_else(|error| report_failure(&error))
}

/// The parts of a hit that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HitDetail {
    /// Its text and place.
    Text,
    /// Its score too, by parts.
    Score,
}

/// The reason for a failure.
#[derive(Debug, thiserror::Error)]
enum MemoryFailure {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Embed(#[from] BackfillError),
    #[error(transparent)]
    Search(#[from] MemorySearchError),
}

/// A hit as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct Line<'a> {
    path: &'a str,
    line: usize,
    last_line: usize,
    text: &'a str,
    heading: &'a str,
    speaker: &'a str,
    date: Option<NaiveDate>,
    score: f32,
    origin: &'a ChunkOrigin,
    taint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a [f32]>,
}

impl<'a> Line<'a> {
    fn from_hit(hit: &'a SearchHit, detail: HitDetail) -> Self {
        let tells_score = detail == HitDetail::Score;
        let why = || hit.explain_score().into_iter().map(|(name, part)| (name.to_owned(), Value::from(part))).collect();
        Self {
            path: &hit.path,
            line: hit.line,
            last_line: hit.last_line,
            text: &hit.text,
            heading: &hit.heading,
            speaker: &hit.speaker,
            date: hit.date,
            score: hit.score,
            origin: &hit.origin,
            taint: hit.taint.as_deref(),
            why: tells_score.then(why),
            features: tells_score.then_some(hit.features.as_slice()),
        }
    }
}

fn search_memory(
    config: &Config,
    question: &MemoryQuestion<'_>,
    detail: HitDetail,
    format: OutputFormat,
) -> Result<ExitCode, MemoryFailure> {
    let mut tell = build_progress_reporter();
    let MemoryFound { hits, notes } =
        search::search_memory(config, &super::build_redactor(config), question, IndexWait::UntilComplete(&mut tell))?;
    // People see only hits that make sense alone. Programs, which may rank the hits again, also get the lines around them.
    let shown: Vec<&SearchHit> = hits.iter().filter(|hit| format.is_json() || hit.speaks_for_itself()).collect();
    for note in &notes {
        complain(note);
    }
    for hit in &shown {
        if format.is_json() {
            print_json(&Line::from_hit(hit, detail));
        } else {
            print(&render_hit(hit, detail));
        }
    }
    if shown.is_empty() && !format.is_json() {
        complain("Nothing was found.");
    }
    Ok(ExitCode::SUCCESS)
}

fn render_hit(hit: &SearchHit, detail: HitDetail) -> String {
    let place = [hit.date.map(|day| day.to_string()).unwrap_or_default(), hit.heading.clone()];
    let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
    let place = if place.is_empty() { String::new() } else { format!("  ({})", truncate_text(&place.join(", "), 60)) };
    // An empty speaker counts as named in the text.
    let speaker = match (&hit.speaker, hit.text.starts_with(&hit.speaker)) {
        (speaker, false) => format!("{speaker}: "),
        _ => String::new(),
    };
    let taint = hit.taint.as_deref().map(|taint| format!("  [{taint}]")).unwrap_or_default();
    let parts = hit.explain_score().into_iter().map(|(name, part)| format!("{name} {part:.2}"));
    let why = match detail {
        HitDetail::Score => format!("    {:.2}: {}\n", hit.score, parts.collect::<Vec<_>>().join(", ")),
        HitDetail::Text => String::new(),
    };
    format!("{}:{}: {speaker}{}{place}{taint}\n{why}", hit.path, hit.line, truncate_text(&hit.text, MAX_TEXT_CHARS))
}

fn rebuild_index(config: &Config, format: OutputFormat) -> Result<ExitCode, MemoryFailure> {
    Index::open(&config.index_path())?.clear()?;
    show_stats(config, format)
}

/// Embeds everything that isn't embedded yet.
fn embed_all(config: &Config, format: OutputFormat) -> Result<ExitCode, MemoryFailure> {
    ask_index(config, |_| Ok(()))?;
    let mut index = Index::open(&config.index_path())?;
    let Some(done) = memory_embed::embed_missing(config, &mut index)? else {
        complain(
            "Nothing was embedded: EMBED_MODEL isn't set. `scripts/fetch-model embed` downloads a sentence encoder.",
        );
        return Ok(ExitCode::from(EXIT_CONFIG));
    };
    if done.refused > 0 {
        complain(&format!("The embedder refused {} parts; they can still be found by keywords.", done.refused));
    }
    complain(&format!("{} parts were embedded.", done.embedded));
    drop(index);
    show_stats(config, format)
}

fn show_stats(config: &Config, format: OutputFormat) -> Result<ExitCode, MemoryFailure> {
    let stats = ask_index(config, |index| index.stats())?;
    if format.is_json() {
        print_json(&stats);
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{} files in {} parts, {} messages, {} answers; {} words, {}\n",
        stats.documents,
        stats.chunks,
        stats.messages,
        stats.answers,
        stats.words,
        format_size(u64::try_from(stats.bytes).unwrap_or(0)),
    ));
    if config.embed_model.is_none() {
        complain("Search uses keywords only: EMBED_MODEL isn't set.");
    }
    for model in &stats.models {
        print(&format!("embedded by {}: {}, {} to come\n", model.model, model.embedded, model.missing));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the refreshed index.
fn ask_index<T>(config: &Config, ask: impl FnMut(&mut Index) -> Result<T, IndexError>) -> Result<T, MemoryFailure> {
    let (answer, note) = IndexPlace::from_config(config).ask_all(
        &config.repo_dir(),
        config.timezone,
        &mut build_progress_reporter(),
        ask,
    )?;
    if let Some(note) = note {
        complain(&note);
    }
    Ok(answer)
}

/// Reports the progress of indexing to a person at a terminal.
fn build_progress_reporter() -> impl FnMut(&Refreshed) {
    let mut parts = 0;
    move |refreshed| {
        parts += refreshed.added;
        if std::io::stderr().is_terminal() {
            complain(&format!("Indexing: {parts} parts so far"));
        }
    }
}
