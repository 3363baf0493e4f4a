//! Entry points of the programs: parse arguments, connect the parts, return an exit code. The work is done elsewhere.
//! `wake`, `bot` and `health` are one file: [`main`] runs the program whose name it was called by.
//!
//! stdout is for data, stderr for people and logs. With `--json`, stdout is one document, or one per line for lists.

mod approvals;
mod arguments;
mod background;
mod backup;
mod bot;
mod chat;
mod cost;
#[cfg(feature = "trial")]
mod eval;
#[cfg(feature = "fleet")]
mod fleet;
mod health;
mod health_fix;
mod history;
#[cfg(feature = "import")]
mod import;
mod init;
mod install;
mod jobs;
mod listen;
mod log;
mod logs;
mod mcp;
mod memory;
mod memory_embed;
mod name;
mod out;
mod page;
mod pair;
mod policy;
mod preview;
mod prompt;
mod provenance;
mod queue;
mod recordings;
mod remind;
#[cfg(feature = "trial")]
mod replay;
mod say;
mod shell;
mod show;
#[cfg(feature = "postgres")]
mod store_move;
mod story;
mod task;
mod transcribe;
mod turn;
mod values;
mod wake;
mod within;

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use log::Talk;
use out::{OutputFormat, complain, print, print_exactly, print_json};

use reveille_account::since;
use reveille_base::{
    process,
    redact::{Redactor, Secret},
};
use reveille_channels::telegram::Telegram;
use reveille_config::{Config, ConfigError, RepoUrl};
use reveille_cycle::context::Context;
use reveille_git as repo;
use reveille_model::{Model, anthropic::login_secrets, create_model};
use reveille_store::{Store, StoreError, in_force::load_effective_config};
use reveille_tools::mcp::{client::settings::Settings, server as mcp_server};

/// Done, nothing due, or another wake holds the lock.
pub const EXIT_OK: u8 = 0;
/// The command failed and explains what was kept, or `health check` still finds something critical.
pub const EXIT_FAILED: u8 = 1;
/// Wrong arguments (clap's own code).
pub const EXIT_USAGE: u8 = 2;
/// A setting is wrong or missing (`EX_CONFIG` of sysexits.h).
pub const EXIT_CONFIG: u8 = 78;

pub(crate) use crate::VERSION;

/// Runs the program whose name this process was called by: `bot`, `health`, or `wake` for any other name.
pub fn main() -> ExitCode {
    match process::called_name().as_deref() {
        Some("bot") => bot::main(),
        Some("health") => health::main(),
        _ => wake::main(),
    }
}

/// Returns `true` if only the version is asked for, without building the help of all commands.
fn is_version_asked() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|word| word == "--version" || word == "-V") && words.next().is_none()
}

fn tell_version() -> ExitCode {
    print(&format!("reveille {VERSION}\n"));
    ExitCode::SUCCESS
}

/// Where settings come from besides the environment, for each program and each of its commands.
#[derive(Debug, clap::Args)]
struct SettingsArguments {
    /// Read settings from this file instead of the workspace's .env; the environment still takes precedence.
    #[arg(long, global = true, value_name = "FILE")]
    env_file: Option<PathBuf>,
}

/// Loads the settings and starts the log of `program`. On failure, prints all problems and returns the exit code.
fn set_up(arguments: &SettingsArguments, talk: Talk, program: &'static str) -> Result<Config, ExitCode> {
    match Config::load(arguments.env_file.as_deref()) {
        Ok(config) => {
            log::start(&config, talk, Some(program));
            // On a terminal the log is silent, and these notes are written for people already.
            let is_said = talk == Talk::Quiet && std::io::stderr().is_terminal();
            for note in &config.notes {
                if is_said { complain(note) } else { tracing::warn!(target: log::NOTE, "{note}") }
            }
            Ok(config)
        }
        Err(error) => Err(config_failure(&error)),
    }
}

fn config_failure(error: &ConfigError) -> ExitCode {
    complain(&error.to_string());
    ExitCode::from(EXIT_CONFIG)
}

/// Masks all secrets of the settings and the MCP servers, and passwords in the addresses of the repository's remotes.
pub fn build_redactor(config: &Config) -> Redactor {
    let config = config.clone();
    Redactor::new_lazy(move || list_secrets(&config))
}

/// Masks the secrets of several settings, such as older and newer ones.
fn build_joint_redactor(configs: Vec<Config>) -> Redactor {
    Redactor::new_lazy(move || configs.iter().flat_map(list_secrets).collect())
}

fn list_secrets(config: &Config) -> Vec<Secret> {
    let urls = repo::remote_urls(&config.repo_dir());
    let passwords: Vec<Secret> = urls.into_iter().flat_map(|url| RepoUrl::new(url).secrets()).collect();
    let Settings { servers, off, .. } = Settings::for_workspace(config);
    let of_servers = servers.into_iter().chain(off).flat_map(|server| server.secrets);
    let token = mcp_server::token::load(&config.mcp_token_path());
    let of_google = config.vertex.login.as_deref().map(login_secrets).unwrap_or_default();
    config.secrets().into_iter().chain(of_google).chain(passwords).chain(of_servers).chain(token).collect()
}

/// Settings and model for one wake: the settings in force, and the chosen model if it differs from the process's own.
struct WakeSettings {
    config: Config,
    model: Option<Box<dyn Model>>,
}

impl WakeSettings {
    fn load(context: Context<'_>, store: &Store) -> Result<Self, StoreError> {
        let config = load_effective_config(context.config, store)?;
        let model = match config.chosen_model.as_ref().map(|name| create_model(name, &config)) {
            Some(Ok(model)) => Some(model),
            Some(Err(why)) => {
                tracing::warn!(%why, "the model that was chosen can't be used; the one that is set answers");
                None
            }
            None => None,
        };
        Ok(Self { config, model })
    }

    fn apply_to<'a>(&'a self, context: Context<'a>) -> Context<'a> {
        let model = self.model.as_deref().unwrap_or(context.model);
        Context { config: &self.config, model, ..context }
    }
}

/// Connects to Telegram. `None` without a token.
fn connect_telegram(config: &Config) -> Result<Option<Telegram>, String> {
    let open = |token: &Secret| Telegram::new(&config.telegram_api_url, token.expose().to_owned());
    config.telegram_token.as_ref().map(open).transpose().map_err(|error| error.to_string())
}

/// A single-threaded runtime: the bot and the wake mostly wait.
fn build_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Becomes `true` when SIGTERM or SIGINT asks the process to end. A separate thread listens, because the main thread
/// may be blocked by git or a sync.
fn stop_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    listen_for_signals(sender)?;
    Ok(receiver)
}

/// Starts the thread that listens for [`stop_signal`].
fn listen_for_signals(sender: watch::Sender<bool>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = build_runtime()?;
    let within = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    drop(within);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // The receiver is gone once the work is over.
            sender.send(true).ok();
            // Keeps the channel open, since a dropped sender would look like a signal.
            std::future::pending::<()>().await;
        });
    })?;
    Ok(())
}

/// Parses `--since`. If it isn't understood, prints the accepted forms and returns the exit code.
fn parse_since(config: &Config, text: Option<&str>) -> Result<Option<DateTime<Utc>>, ExitCode> {
    let Some(text) = text else { return Ok(None) };
    match since::parse_moment(text, config.clock().now(), config.timezone) {
        Some(at) => Ok(Some(at)),
        None => {
            complain(&format!("I don't understand --since {text:?}. Type {}.", since::EXPECTED));
            Err(ExitCode::from(EXIT_USAGE))
        }
    }
}

/// Prints the failure and returns its exit code.
fn report_failure(error: &impl std::fmt::Display) -> ExitCode {
    complain(&format!("failed: {error}"));
    ExitCode::from(EXIT_FAILED)
}
