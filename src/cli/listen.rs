//! `bot listen`: has the recordings that are due written down, and ends. The bot starts it, so that who waits for speech isn't the bot.

use std::{path::PathBuf, process::ExitCode};

use reveille_config::Config;

use super::failed;
use crate::bot::media;

/// Works through what is due. `with`: a program to listen with.
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
