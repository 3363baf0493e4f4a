//! The programs as functions: arguments in, wiring, an exit code out. What they do is elsewhere. `wake`, `bot` and `health` are one
//! file: [`main`] runs the one that it is called by.
//!
//! stdout is data, stderr is for people and logs; with `--json` stdout is one document, or one a line where things are listed.

mod approvals;
mod arguments;
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
use out::{complain, print, print_exactly, print_json};

use reveille_account::since;
use reveille_base::{
    process,
    redact::{Redactor, Secret},
};
use reveille_channels::telegram::Telegram;
use reveille_config::{Config, ConfigError, RepoUrl};
use reveille_cycle::context::Context;
use reveille_git as repo;
use reveille_model::{Model, anthropic::login_secrets, configured};
use reveille_store::{Store, StoreError, in_force::in_force};
use reveille_tools::mcp::{client::settings::Settings, server as mcp_server};

/// Done, nothing due, or another wake holds the lock.
pub const EXIT_OK: u8 = 0;
/// It failed and says what was kept, or `health check` still finds something critical.
pub const EXIT_FAILED: u8 = 1;
/// Wrong arguments; clap's own code.
pub const EXIT_USAGE: u8 = 2;
/// A setting is wrong or missing (`EX_CONFIG` of sysexits.h).
pub const EXIT_CONFIG: u8 = 78;

pub(crate) use crate::VERSION;

/// Runs the program that this process is called by: `bot`, `health`, and by any other name `wake`.
pub fn main() -> ExitCode {
    match process::called_name().as_deref() {
        Some("bot") => bot::main(),
        Some("health") => health::main(),
        _ => wake::main(),
    }
}

/// Whether nothing but the version is asked for: known before the help of all commands is built.
fn is_version_asked() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|word| word == "--version" || word == "-V") && words.next().is_none()
}

/// Prints the version.
fn tell_version() -> ExitCode {
    print(&format!("reveille {VERSION}\n"));
    ExitCode::SUCCESS
}

/// Where settings come from besides the environment, for each program and each of its commands.
#[derive(Debug, clap::Args)]
struct SettingsArguments {
    /// Read settings from this file in place of the workspace's .env; the environment still wins.
    #[arg(long, global = true, value_name = "FILE")]
    env_file: Option<PathBuf>,
}

/// Loads the settings and starts the log of `program`; prints every problem and gives the exit code when that fails.
fn set_up(arguments: &SettingsArguments, talk: Talk, program: &'static str) -> Result<Config, ExitCode> {
    match Config::load(arguments.env_file.as_deref()) {
        Ok(config) => {
            log::start(&config, talk, Some(program));
            // The log at a terminal is silent; these are in words already.
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

/// Masks every secret of the settings and of the MCP servers, and the passwords that the repository's own remotes have in their addresses.
pub fn redactor(config: &Config) -> Redactor {
    let config = config.clone();
    Redactor::when_needed(move || secrets(&config))
}

fn secrets(config: &Config) -> Vec<Secret> {
    let urls = repo::remote_urls(&config.repo_dir());
    let passwords: Vec<Secret> = urls.into_iter().flat_map(|url| RepoUrl::new(url).secrets()).collect();
    let servers = Settings::of(config).servers;
    let of_servers = servers.into_iter().flat_map(|server| server.secrets);
    let token = mcp_server::token::existing(&config.mcp_token_path());
    let of_google = config.vertex.login.as_deref().map(login_secrets).unwrap_or_default();
    config.secrets().into_iter().chain(of_google).chain(passwords).chain(of_servers).chain(token).collect()
}

/// What a wake is given anew each time: the settings in force, and the model that they name where that isn't the process's own.
struct WakeSettings {
    config: Config,
    model: Option<Box<dyn Model>>,
}

impl WakeSettings {
    fn look(context: Context<'_>, store: &Store) -> Result<Self, StoreError> {
        let config = in_force(context.config, store)?;
        let model = match config.chosen_model.as_ref().map(|name| configured(name, &config)) {
            Some(Ok(model)) => Some(model),
            Some(Err(why)) => {
                tracing::warn!(%why, "the model that was chosen can't be used; the one that is set answers");
                None
            }
            None => None,
        };
        Ok(Self { config, model })
    }

    fn context<'a>(&'a self, context: Context<'a>) -> Context<'a> {
        let model = self.model.as_deref().unwrap_or(context.model);
        Context { config: &self.config, model, ..context }
    }
}

/// The Telegram door, when there is a token.
fn telegram(config: &Config) -> Result<Option<Telegram>, String> {
    let open = |token: &Secret| Telegram::new(&config.telegram_api_url, token.expose().to_owned());
    config.telegram_token.as_ref().map(open).transpose().map_err(|error| error.to_string())
}

/// One thread is all it takes: the bot and the wake wait for others most of their time.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Becomes `true` when the process is asked to end, by SIGTERM or SIGINT. A thread of its own hears that: whoever waits for git or a
/// sync keeps the other one.
fn stop_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    hear(sender)?;
    Ok(receiver)
}

/// Begins to hear what [`stop_signal`] tells of.
fn hear(sender: watch::Sender<bool>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = runtime()?;
    let within = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    drop(within);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // Nobody listens any more when the work is over.
            sender.send(true).ok();
            // Keeps the channel open: a dropped sender would read as an end, too.
            std::future::pending::<()>().await;
        });
    })?;
    Ok(())
}

/// The moment that `--since` names, if it is given; says what can be typed where it isn't understood.
fn since(config: &Config, text: Option<&str>) -> Result<Option<DateTime<Utc>>, ExitCode> {
    let Some(text) = text else { return Ok(None) };
    match since::since(text, config.clock().now(), config.timezone) {
        Some(at) => Ok(Some(at)),
        None => {
            complain(&format!("--since {text:?} isn't understood: type {}.", since::EXPECTED));
            Err(ExitCode::from(EXIT_USAGE))
        }
    }
}

/// Says what failed and gives the exit code for it.
fn failed(error: &impl std::fmt::Display) -> ExitCode {
    complain(&format!("failed: {error}"));
    ExitCode::from(EXIT_FAILED)
}
