//! `reveille-transcriber`: what understands speech, for the bot and by hand. It is a program of its own so that nothing of a speech engine is
//! in the bot that stays: it is started for what there is to listen to, and gives its memory back by ending.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use reveille_base::process;
use reveille_config::Config;

use super::{
    SettingsArguments, complain, failed,
    log::Talk,
    out,
    transcribe::{TranscribeArguments, transcribe},
};
use crate::bot::media;

/// Understands speech, for `bot`; `bot transcribe` is the same by hand.
#[derive(Debug, Parser)]
#[command(name = media::TRANSCRIBER, version = super::VERSION)]
struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write down the recordings that are due, and end: what the bot starts.
    Listen {
        /// A program to listen with: it is given a path and prints a transcript as JSON.
        #[arg(long, value_name = "PATH")]
        with: Option<PathBuf>,
    },
    /// Print what is said in recordings, by the speech model that WHISPER_MODEL names.
    Transcribe(TranscribeArguments),
}

/// Runs the binary.
pub fn main() -> ExitCode {
    out::end(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> ExitCode {
    let config = match super::set_up(&arguments.settings, Talk::Usual, "transcriber") {
        Ok(config) => config,
        Err(code) => return code,
    };
    match &arguments.command {
        Command::Listen { with } => listen(&config, with.clone()),
        Command::Transcribe(arguments) => transcribe(&config, arguments),
    }
}

/// Turns this process into the transcriber, with the arguments that it was given.
pub(super) fn become_transcriber() -> ExitCode {
    let program = process::beside(media::TRANSCRIBER);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let error = process::become_program(program.as_os_str(), &arguments, &[]);
    complain(&format!("{} can't be started: {error}. Nothing was written down.", program.display()));
    ExitCode::from(super::EXIT_FAILED)
}

fn listen(config: &Config, with: Option<PathBuf>) -> ExitCode {
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
