//! `bot`: runs the connection to Telegram, and sends messages by hand.

use std::{io::Read as _, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};

use reveille_base::{process, types::ChatRef, words::local};
use reveille_channels::{Channel, telegram::Telegram};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{StoreError, access, database};

use super::{
    EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE, SettingsArguments, complain, config_failure, failed, listen,
    log::{self, Talk},
    out, pair, print,
    transcribe::{TranscribeArguments, transcribe},
    turn, values,
};
use crate::bot::{self, BotContext, BotEnd, BotError, BotMode, Sending};

/// Maximum bytes of a text to send, about thirty Telegram messages.
const MAX_TEXT_BYTES: u64 = 100_000;

/// Connects to Telegram: stores what allowed chats write, and starts a wake for it.
///
/// A message is on disk before Telegram is told that it arrived. Commands (/help lists them) are answered by the bot itself;
/// everything else is the next wake's. Whoever isn't listed in ALLOWED_CHAT_IDS and hasn't paired gets silence.
#[derive(Debug, Parser)]
#[command(
    name = "bot",
    version = super::VERSION,
    after_help = "\
Without a command it runs until SIGTERM or Ctrl-C; a wake that is running then is let finish.
It needs TELEGRAM_BOT_TOKEN (ask @BotFather on Telegram). It listens to ALLOWED_CHAT_IDS (numeric, comma separated) and to who
paired; while that is nobody, a one-time code stands in its terminal that pairs with who sends it. Settings come from the
environment and from .env in the workspace (or --env-file FILE); see .env.example. One bot per workspace, and one program per token.
Exit codes: 0 asked to end, paired, or the message is delivered or safely queued · 1 it failed, and says what was kept · 2 usage ·
78 configuration, or Telegram doesn't know the token and never did.

Examples:
  bot                                        run
  bot pair                                   a code for one more person
  bot send --chat 123456789 'backup done'    send a message to an allowed chat
  df -h | bot send --chat 123456789 -        the text from standard input
  bot transcribe note.ogg                    what is said in a recording"
)]
struct Arguments {
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(flatten)]
    run: RunArguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct RunArguments {
    /// End at once, in silence and with 0, if a bot runs already: for cron.
    #[arg(long)]
    unless_running: bool,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: super::fleet::FleetReceiver,
    /// The program to start when something is due.
    #[arg(long, value_name = "PATH", hide = true, global = true)]
    wake: Option<PathBuf>,
    /// The program that listens to recordings in place of the speech model.
    #[arg(long, value_name = "PATH", hide = true, global = true)]
    transcriber: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run until SIGTERM; the same as no command.
    Run,
    /// Take in what a webhook has left in the inbox, do what is due, and end: what the workers of a fleet run.
    #[command(hide = true)]
    Turn,
    /// Send a message (Markdown) to an allowed chat; works while a bot and a wake run.
    ///
    /// It enters the outbox first and is then sent at once. What can't be sent now is sent by a later wake.
    #[command(after_help = "\
Examples:
  bot send --chat 123456789 'backup **done**'
  df -h | bot send --chat 123456789 -")]
    Send {
        /// The chat's numeric id, one of ALLOWED_CHAT_IDS or paired; 0 is the terminal.
        #[arg(long, value_name = "ID", allow_negative_numbers = true, value_parser = values::chat)]
        chat: ChatRef,
        /// The text; - reads it from standard input. Put -- before a text that begins with a dash.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Print what is said in recordings, by the speech model that WHISPER_MODEL names.
    #[command(after_help = "Example: bot transcribe --json note.ogg")]
    Transcribe(TranscribeArguments),
    /// Write down the recordings that are due, and end: what the bot starts.
    #[command(hide = true)]
    Listen {
        /// A program to listen with: it is given a path and prints a transcript as JSON.
        #[arg(long, value_name = "PATH")]
        with: Option<PathBuf>,
    },
    /// Offer a one-time code: whoever sends it to the running bot within ten minutes may speak to it from then on.
    #[command(after_help = "\
Examples:
  bot pair
  bot pair --list")]
    Pair {
        /// List who has paired, and offer nothing.
        #[arg(long)]
        list: bool,
    },
    /// Listen no more to somebody who has paired.
    #[command(after_help = "Example: bot unpair 123456789")]
    Unpair {
        /// Their numeric id, from `bot pair --list`.
        #[arg(value_name = "ID", value_parser = values::person)]
        user: i64,
    },
    /// Say whether a webhook takes the bot's messages away.
    #[command(after_help = "\
Examples:
  bot webhook
  bot webhook delete")]
    Webhook {
        #[command(subcommand)]
        action: Option<WebhookAction>,
    },
}

#[derive(Debug, Subcommand)]
enum WebhookAction {
    /// Remove it, so that the bot can fetch; messages that wait are kept.
    Delete,
    /// Set one and the menu of commands, and print the secret that Telegram will show: for `wake fleet connect`.
    #[command(hide = true)]
    Set {
        /// Where updates go.
        #[arg(value_name = "URL")]
        url: reqwest::Url,
    },
}

/// Builds the arguments, for completions and the manual.
pub(super) fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the program.
pub(super) fn main() -> ExitCode {
    reveille_base::process::forbid_core_files();
    if super::is_version_asked() {
        return out::end(super::tell_version());
    }
    out::end(main_of(Arguments::parse()))
}

fn main_of(arguments: Arguments) -> ExitCode {
    // A fleet has its own settings.
    #[cfg(feature = "fleet")]
    if let (None, super::fleet::FleetReceiver { webhook: Some(port), fleet: Some(dir), workers }) =
        (&arguments.command, &arguments.run.fleet)
    {
        return super::fleet::receive(dir, *port, *workers, arguments.run.wake.as_deref());
    }
    let config = match super::set_up(&arguments.settings, Talk::Usual, "bot") {
        Ok(config) => config,
        Err(code) => return code,
    };
    match arguments.command {
        None | Some(Command::Run) => run(&config, &arguments.run),
        Some(Command::Turn) => one_turn(&config, &arguments.run),
        Some(Command::Send { chat, text }) => send(&config, chat, &text.join(" ")),
        Some(Command::Transcribe(recordings)) => transcribe(&config, &recordings),
        Some(Command::Listen { with }) => listen::listen(&config, with),
        Some(Command::Pair { list: true }) => pair::list(&config),
        Some(Command::Pair { list: false }) => pair::pair(&config),
        Some(Command::Unpair { user }) => pair::unpair(&config, user),
        Some(Command::Webhook { action: Some(WebhookAction::Set { url }) }) => pair::set_webhook(&config, url),
        Some(Command::Webhook { action }) => pair::webhook(&config, action.is_some()),
    }
}

fn run(config: &Config, arguments: &RunArguments) -> ExitCode {
    loop {
        if let Some(code) = run_once(config, arguments, BotMode::Polling) {
            return code;
        }
        // This returns only on failure.
        let error = process::start_anew();
        complain(&format!("The bot couldn't be started anew: {error}. It runs on."));
        bot::cannot_restart(config, config.clock().as_ref(), &error.to_string());
    }
}

/// Runs a single turn, and prints the work for the next.
fn one_turn(config: &Config, arguments: &RunArguments) -> ExitCode {
    // The next turn counts as a restart.
    let code = run_once(config, arguments, BotMode::Turn).unwrap_or(ExitCode::SUCCESS);
    if code != ExitCode::SUCCESS {
        return code;
    }
    turn::print_due(config, config.clock().now()).map_or_else(|error| failed(&error), |()| code)
}

/// Runs the bot until it ends. `None` if it should restart.
fn run_once(config: &Config, arguments: &RunArguments, mode: BotMode) -> Option<ExitCode> {
    let RunArguments { unless_running, wake, transcriber, .. } = arguments;
    let (telegram, runtime) = match (open_telegram(config), super::runtime()) {
        (Ok(telegram), Ok(runtime)) => (telegram, runtime),
        (Err(code), _) => return Some(code),
        (_, Err(error)) => return Some(failed(&error)),
    };
    let (clock, redactor) = (config.clock(), super::redactor(config));
    let outside = BotContext { config, telegram: &telegram, clock: clock.as_ref(), redactor: &redactor };
    let ended = runtime.block_on(async {
        let stop = super::stop_signal().map_err(BotError::Signals)?;
        bot::run(outside, stop, (wake.clone(), transcriber.clone()), mode).await
    });
    Some(match ended {
        Ok(BotEnd::Restart) => return None,
        Ok(BotEnd::Asked) => ExitCode::SUCCESS,
        Err(BotError::Taken(_)) if *unless_running => ExitCode::SUCCESS,
        Err(error) => {
            let kept = match &error {
                BotError::Displaced { .. } => "Telegram keeps what comes for a day. `health check` says what to do.",
                BotError::Store(StoreError::Gone { .. }) => "Telegram keeps what comes for a day.",
                _ => "Messages that were stored stay queued; what wasn't is kept by Telegram for a day.",
            };
            let why = redactor.redact(&error.to_string());
            complain(&format!("failed: {why}\n{kept}"));
            tracing::error!(target: log::TOLD, %why, "the bot ended");
            ExitCode::from(match error {
                BotError::Unauthorized(_) => EXIT_CONFIG,
                _ => EXIT_FAILED,
            })
        }
    })
}

fn send(config: &Config, chat: ChatRef, text: &str) -> ExitCode {
    let text = match if text == "-" { read_stdin() } else { Ok(text.to_owned()) } {
        Ok(text) => text,
        Err(error) => return failed(&error),
    };
    let config = &match with_people(config) {
        Ok(config) => config,
        Err(error) => return not_stored(&error.to_string()),
    };
    if let Err(why) = check(config, chat, &text) {
        complain(&format!("{why} Nothing was queued."));
        return ExitCode::from(EXIT_USAGE);
    }
    let telegram = match chat {
        ChatRef::TERMINAL => None,
        _ => match open_telegram(config) {
            Ok(telegram) => Some(telegram),
            Err(code) => return code,
        },
    };
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let channel = telegram.as_ref().map(|telegram| telegram as &dyn Channel);
    let (clock, redactor) = (config.clock(), super::redactor(config));
    let sending = bot::send(config, channel, clock.as_ref(), &redactor, chat, &text);
    match runtime.block_on(sending) {
        Ok(sending) => show(&sending, config),
        Err(error) => not_stored(&redactor.redact(&error.to_string())),
    }
}

fn not_stored(why: &str) -> ExitCode {
    complain(&format!(
        "failed: {why}\nYour message was NOT stored, so it won't be sent. See that the disk has room and that the workspace can be \
         written; `health check` tells more. Then send it again."
    ));
    ExitCode::from(EXIT_FAILED)
}

/// The settings together with paired people. Creates no store.
fn with_people(config: &Config) -> Result<Config, StoreError> {
    cycle::workspace::check(config)?;
    match database::open_if_made(config)? {
        Some(store) => access::admitted(config, &store),
        None => Ok(config.clone()),
    }
}

fn check(config: &Config, chat: ChatRef, text: &str) -> Result<(), String> {
    if chat != ChatRef::TERMINAL && !config.allowed_chats.contains(&chat) {
        return Err(format!("Chat {chat} isn't one of ALLOWED_CHAT_IDS, and hasn't paired."));
    }
    if text.trim().is_empty() {
        return Err("There is nothing to send: the text is empty.".to_owned());
    }
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!("The text is longer than {MAX_TEXT_BYTES} bytes."));
    }
    Ok(())
}

/// Reads up to one byte over the limit, so a longer text is refused rather than cut.
fn read_stdin() -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn show(sending: &Sending, config: &Config) -> ExitCode {
    let (text, code) = match sending {
        Sending::Delivered => ("delivered".to_owned(), super::EXIT_OK),
        Sending::Shown => ("queued: the next wake in a terminal shows it".to_owned(), super::EXIT_OK),
        Sending::Waits { until, why } => {
            let until = until.map(|at| format!(", not before {}", local(at, config.timezone))).unwrap_or_default();
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            (format!("queued: a later wake delivers it{until}{why}"), super::EXIT_OK)
        }
        Sending::Stopped(stopped) => {
            complain(&cycle::stop::notice(*stopped, config.timezone));
            ("queued: it's sent after `wake resume`".to_owned(), super::EXIT_OK)
        }
        Sending::InDoubt { why } => (
            format!("queued: it may have arrived ({why}); the next wake sends it once more, marked as a repeat"),
            super::EXIT_OK,
        ),
        Sending::Failed { why } => {
            complain(&format!("failed: {why}\nIt is kept in the outbox as failed and isn't tried again."));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    print(&format!("{text}\n"));
    ExitCode::from(code)
}

/// Connects to Telegram, or returns the exit code if the settings don't allow it.
pub(super) fn open_telegram(config: &Config) -> Result<Telegram, ExitCode> {
    config.require_telegram().map_err(|error| config_failure(&error))?;
    match super::telegram(config) {
        Ok(Some(telegram)) => Ok(telegram),
        Ok(None) => Err(ExitCode::from(EXIT_CONFIG)),
        Err(error) => {
            complain(&error);
            Err(ExitCode::from(EXIT_CONFIG))
        }
    }
}
