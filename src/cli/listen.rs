//! `bot listen`: transcribes the due recordings and ends. The bot starts this process, so the bot itself never waits
//! for speech.

use std::{path::PathBuf, process::ExitCode};

use reveille_config::Config;

use super::failed;
use crate::bot::media;

/// Transcribes the due recordings. `with` is a program that replaces the speech model.
pub(super) fn listen(config: &Config, with: Option<PathBuf>) -> ExitCode {
    let open = || match with {
        Some(program) => Ok(media::by_program(program)),
        None => media::engine(config.whisper_model.as_deref()),
    };
    let redactor = super::redactor(config);
    match media::work(config, config.clock().as_ref(), &redactor, open) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&redactor.redact(&error.to_string())),
    }
}
