//! `bot listen`: transcribes the due recordings and ends. The bot starts this process, so the bot itself never waits
//! for speech.

use std::{path::PathBuf, process::ExitCode};

use reveille_config::Config;

use super::report_failure;
use crate::bot::media;

/// Transcribes the due recordings. `with` is a program that replaces the speech model.
pub(super) fn transcribe_recordings(config: &Config, with: Option<PathBuf>) -> ExitCode {
    let open = || match with {
        Some(program) => Ok(media::build_program_transcriber(program)),
        None => media::start_engine(config.whisper_model.as_deref()),
    };
    let redactor = super::build_redactor(config);
    match media::transcribe_all(config, config.clock().as_ref(), &redactor, open) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_failure(&redactor.redact(&error.to_string())),
    }
}
