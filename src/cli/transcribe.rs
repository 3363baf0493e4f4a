//! `bot transcribe`: turns recordings into text by hand.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use reveille_base::words::format_count;
use reveille_config::Config;
use reveille_media::Transcript;
use reveille_media::speech::{self, Unheard};

use super::{EXIT_CONFIG, EXIT_FAILED, complain, print};
use crate::bot::media::{self, TranscribeFn};

/// Arguments of `bot transcribe`.
#[derive(Debug, clap::Args)]
pub(super) struct TranscribeArguments {
    /// The recordings: OGG (Opus, Vorbis, FLAC), MP4 and M4A (AAC), MP3, FLAC, WAV; each up to 20 MB and an hour long.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON document: each file's transcript with language, confidence and what was dropped, or its error.
    #[arg(long)]
    json: bool,
}

/// The result for one file.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<Transcript>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// `true` if another try may succeed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_worth_a_retry: bool,
}

pub(super) fn transcribe(config: &Config, arguments: &TranscribeArguments) -> ExitCode {
    let mut transcriber = match start_transcriber(config) {
        Ok(transcriber) => transcriber,
        Err(why) => {
            complain(&format!("{why}\nNothing was written down."));
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    let mut outcomes = Vec::new();
    for file in &arguments.files {
        let outcome = transcriber(file);
        if !arguments.json {
            show_outcome(file, &outcome);
        }
        outcomes.push(Outcome::new(file, outcome));
    }
    if arguments.json {
        match serde_json::to_string_pretty(&outcomes) {
            Ok(text) => print(&format!("{text}\n")),
            Err(error) => return super::report_failure(&error),
        }
    }
    let is_all_well = outcomes.iter().all(|outcome| outcome.error.is_none());
    if is_all_well { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
}

fn start_transcriber(config: &Config) -> Result<TranscribeFn, String> {
    if !speech::IS_BUILT {
        return Err(speech::NOT_BUILT.to_owned());
    }
    let model = config.whisper_model.as_ref().ok_or(
        "WHISPER_MODEL isn't set: it names the file of a speech model. `scripts/fetch-model base` downloads one and prints its path.",
    )?;
    media::start_engine(Some(model)).map_err(|why| why.to_string())
}

/// Prints the text on stdout, one line per file, and remarks for the person on stderr.
fn show_outcome(file: &Path, outcome: &Result<Transcript, Unheard>) {
    let name = file.display();
    match outcome {
        Ok(transcript) => {
            print(&format!("{}\n", transcript.text));
            if transcript.is_damaged {
                complain(&format!("{name}: the file is damaged or cut off; this is the readable part"));
            }
            if transcript.repeats_cut > 0 {
                let repeats = format_count(transcript.repeats_cut, "repeat");
                complain(&format!("{name}: left out {repeats} of the same words: the model seemed stuck in a loop"));
            }
            if transcript.is_empty() {
                complain(&format!("{name}: no speech in it"));
            }
        }
        Err(error) => complain(&format!("{name}: {error}")),
    }
}

impl<'a> Outcome<'a> {
    fn new(file: &'a Path, outcome: Result<Transcript, Unheard>) -> Self {
        match outcome {
            Ok(transcript) => Self { file, transcript: Some(transcript), error: None, is_worth_a_retry: false },
            Err(error) => Self {
                file,
                transcript: None,
                is_worth_a_retry: matches!(error, Unheard::Later(_)),
                error: Some(error.to_string()),
            },
        }
    }
}
