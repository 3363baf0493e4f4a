//! `wake recordings`: manages recordings of finished wakes, which serve as examples for similar requests.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use clap::Subcommand;

use reveille_base::{
    types::ChatRef,
    words::{format_count, format_local_time, one_line, truncate_text},
};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::{RecordedCall, Recording, database};

use super::{EXIT_FAILED, OutputFormat, complain, print, print_json, report_failure, values};

/// Maximum number of characters shown of a request.
const MAX_TEXT_CHARS: usize = 80;

#[derive(Debug, Subcommand)]
pub(super) enum RecordingsCommand {
    /// List the recordings, newest first.
    List {
        /// Print one JSON object per line: id, at, chat_id, wake, request, calls, narrative, taint, rounds.
        #[arg(long)]
        json: bool,
    },
    /// Show a recording in full.
    #[command(after_help = "Example: wake recordings show 12")]
    Show {
        /// Its number, from the list.
        #[arg(value_parser = values::parse_number)]
        id: i64,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Delete a recording, so that it no longer serves as an example.
    #[command(after_help = "Example: wake recordings drop 12")]
    Drop {
        /// Its number, from the list.
        #[arg(value_parser = values::parse_number)]
        id: i64,
    },
}

impl RecordingsCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::List { json: true } | Self::Show { json: true, .. })
    }
}

/// A recording as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct Line {
    id: i64,
    at: Option<DateTime<Utc>>,
    #[serde(rename = "chat_id")]
    chat: Option<ChatRef>,
    wake: String,
    request: String,
    calls: Vec<RecordedCall>,
    narrative: String,
    taint: Option<String>,
    rounds: u32,
}

impl From<Recording> for Line {
    fn from(Recording { id, at, kept }: Recording) -> Self {
        let (chat, wake, request, calls) = (kept.chat, kept.cycle_id, kept.request, kept.calls);
        Self { id, at, chat, wake, request, calls, narrative: kept.narrative, taint: kept.taint, rounds: kept.rounds }
    }
}

/// Carries out the command. Without one, lists the recordings.
pub(super) fn run(config: &Config, action: Option<&RecordingsCommand>, format: OutputFormat) -> ExitCode {
    if let Err(error) = workspace::check_database(config) {
        return report_failure(&error);
    }
    let mut store = match database::open_existing(config) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let place = database::name(config);
            complain(&format!("No recordings: no wake has run at {place} yet."));
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => return report_failure(&error),
    };
    let done = match action {
        None | Some(RecordingsCommand::List { .. }) => store.recordings().list_recordings().map(|recordings| {
            if recordings.is_empty() && !format.is_json() {
                complain("No recordings yet: a wake that does something leaves one.");
            }
            recordings.into_iter().for_each(|recording| show_recording(config, recording, format, render_line));
            true
        }),
        Some(RecordingsCommand::Show { id, .. }) => store.recordings().find_recording(*id).map(|found| {
            let is_there = found.is_some();
            found.into_iter().for_each(|recording| show_recording(config, recording, format, render_details));
            is_there
        }),
        Some(RecordingsCommand::Drop { id }) => store.recordings_mut().drop_recording(*id).inspect(|is_gone| {
            if *is_gone {
                complain(&format!("Recording {id} is deleted."));
            }
        }),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            complain("There is no recording with that number. `wake recordings` lists them.");
            ExitCode::from(EXIT_FAILED)
        }
        Err(error) => report_failure(&error),
    }
}

fn show_recording(
    config: &Config,
    recording: Recording,
    format: OutputFormat,
    render: fn(&Config, &Recording) -> String,
) {
    if format.is_json() {
        print_json(&Line::from(recording));
    } else {
        print(&render(config, &recording));
    }
}

fn format_time(config: &Config, recording: &Recording) -> String {
    recording.at.map_or_else(|| "?".to_owned(), |at| format_local_time(at, config.timezone))
}

fn render_line(config: &Config, recording: &Recording) -> String {
    let request = truncate_text(&one_line(&recording.kept.request), MAX_TEXT_CHARS);
    let calls = format_count(recording.kept.calls.len(), "call");
    format!("{}  {}  {calls}  {request}\n", recording.id, format_time(config, recording))
}

fn render_details(config: &Config, recording: &Recording) -> String {
    let kept = &recording.kept;
    let chat = match kept.chat {
        None => "no chat asked".to_owned(),
        Some(chat) if chat.is_terminal() => "the terminal".to_owned(),
        Some(chat) => format!("chat {chat}"),
    };
    let mut text =
        format!("recording {}, {}, {chat}, wake {}\n", recording.id, format_time(config, recording), kept.cycle_id);
    if let Some(taint) = &kept.taint {
        text.push_str(&format!("it had read untrusted text: {taint}\n"));
    }
    text.push_str(&format!("\n{}\n\n{}\n", kept.request, kept.narrative));
    for call in &kept.calls {
        text.push_str(&format!("\n{}\n  {} {}\n", call.did, call.tool, call.input));
    }
    text
}
