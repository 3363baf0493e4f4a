//! `bot`: runs the connection to Telegram, and sends messages by hand.

use std::{io::Read as _, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};

use reveille_base::{process, types::ChatRef, words::format_local_time};
use reveille_channels::{Channel, telegram::Telegram};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{StoreError, access, database};

use super::{
    EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE, SettingsArguments, complain, config_failure, listen,
    log::{self, Talk},
    out,
    pair::{self, FoundWebhook},
    print, report_failure,
    transcribe::{TranscribeArguments, transcribe},
    turn, values,
};
use crate::bot::{self, BotContext, BotEnd, BotError, BotMode, Sending};

/// Maximum bytes of a text to send, about thirty Telegram messages.
const MAX_TEXT_BYTES: u64 = 100_000;

/// Connects to Telegram: stores what allowed chats write, and starts a wake for it.
/// A message is on disk before Telegram is told that it arrived. The bot answers commands itself (/help lists them);
/// everything else goes to the next wake. Strangers, who are neither listed in ALLOWED_CHAT_IDS nor paired, get no
/// answer.
#[derive(Debug, Parser)]
#[command(
    name = "bot",
    version = super::VERSION,
    after_help = "\
Without a command, it runs until SIGTERM or Ctrl-C, and lets a running wake finish.
It needs TELEGRAM_BOT_TOKEN (ask @BotFather on Telegram). It listens to ALLOWED_CHAT_IDS (numeric, comma separated) and to people who
paired. If nobody is listed or paired, it shows a one-time code in its terminal and pairs with whoever sends it. Settings come from
the environment and from .env in the workspace (or --env-file FILE); see .env.example. One bot per workspace, and one program per token.
Exit codes: 0 asked to end, paired, or the message is delivered or safely queued · 1 failed; the message says what was kept ·
2 usage · 78 configuration, or Telegram doesn't know the token and never did.

Examples:
  bot                                        run
  bot pair                                   a code to pair one more person
  bot send --chat 123456789 'backup done'    send a message to an allowed chat
  df -h | bot send --chat 123456789 -        the text from standard input
  bot transcribe note.ogg                    write down what is said in a recording"
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
    /// If a bot is running already, exit at once with 0, silently. For cron.
    #[arg(long)]
    unless_running: bool,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: super::fleet::FleetReceiver,
    /// The program to start when something is due.
    #[arg(long, value_name = "PATH", hide = true, global = true)]
    wake: Option<PathBuf>,
    /// The program that transcribes recordings in place of the speech model.
    #[arg(long, value_name = "PATH", hide = true, global = true)]
    transcriber: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run until SIGTERM, as without a command.
    Run,
    /// Take in what a webhook has left in the inbox, do what is due, and exit: for the workers of a fleet.
    #[command(hide = true)]
    Turn,
    /// Send a message (Markdown) to an allowed chat; works while a bot and a wake run.
    /// It enters the outbox first and is then sent at once. If that fails, a later wake sends it.
    #[command(after_help = "\
Examples:
  bot send --chat 123456789 'backup **done**'
  df -h | bot send --chat 123456789 -")]
    Send {
        /// The chat's numeric id, one of ALLOWED_CHAT_IDS or paired; 0 is the terminal.
        #[arg(long, value_name = "ID", allow_negative_numbers = true, value_parser = values::parse_chat)]
        chat: ChatRef,
        /// The text; - reads it from standard input. Put -- before a text that begins with a dash.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Print what is said in recordings, with the speech model that WHISPER_MODEL names.
    #[command(after_help = "Example: bot transcribe --json note.ogg")]
    Transcribe(TranscribeArguments),
    /// Transcribe the recordings that are due, and exit: the bot starts this.
    #[command(hide = true)]
    Listen {
        /// A program that transcribes: it gets a path and prints a transcript as JSON.
        #[arg(long, value_name = "PATH")]
        with: Option<PathBuf>,
    },
    /// Show a one-time code: whoever sends it to the running bot within ten minutes may talk to it from then on.
    #[command(after_help = "\
Examples:
  bot pair
  bot pair --list")]
    Pair {
        /// List who has paired, and show no code.
        #[arg(long)]
        list: bool,
    },
    /// Stop listening to somebody who has paired.
    #[command(after_help = "Example: bot unpair 123456789")]
    Unpair {
        /// Their numeric id, from `bot pair --list`.
        #[arg(value_name = "ID", value_parser = values::parse_person)]
        user: i64,
    },
    /// Show whether a webhook takes the bot's messages.
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
    /// Remove the webhook, so that the bot can fetch its messages; those that wait are kept.
    Delete,
    /// Set a webhook and the menu of commands, and print the secret that Telegram will send: for `wake fleet connect`.
    #[command(hide = true)]
    Set {
        /// The address for updates.
        #[arg(value_name = "URL")]
        url: reqwest::Url,
    },
}

/// Builds the arguments, for completions and the manual.
pub(super) fn build_command() -> clap::Command {
    Arguments::command()
}

/// Runs the program.
pub(super) fn main() -> ExitCode {
    reveille_base::process::forbid_core_files();
    if super::is_version_asked() {
        return out::final_exit_code(super::tell_version());
    }
    out::final_exit_code(run_arguments(Arguments::parse()))
}

fn run_arguments(arguments: Arguments) -> ExitCode {
    // A fleet has its own settings.
    #[cfg(feature = "fleet")]
    if let (None, super::fleet::FleetReceiver { webhook: Some(port), fleet: Some(dir), workers }) =
        (&arguments.command, &arguments.run.fleet)
    {
        return super::fleet::receive_updates(dir, *port, *workers, arguments.run.wake.as_deref());
    }
    let config = match super::set_up(&arguments.settings, Talk::Usual, "bot") {
        Ok(config) => config,
        Err(code) => return code,
    };
    match arguments.command {
        None | Some(Command::Run) => run(&config, &arguments.run),
        Some(Command::Turn) => one_turn(&config, &arguments.run),
        Some(Command::Send { chat, text }) => send_text(&config, chat, &text.join(" ")),
        Some(Command::Transcribe(recordings)) => transcribe(&config, &recordings),
        Some(Command::Listen { with }) => listen::transcribe_recordings(&config, with),
        Some(Command::Pair { list: true }) => pair::list_people(&config),
        Some(Command::Pair { list: false }) => pair::pair(&config),
        Some(Command::Unpair { user }) => pair::unpair(&config, user),
        Some(Command::Webhook { action: Some(WebhookAction::Set { url }) }) => pair::set_webhook(&config, url),
        Some(Command::Webhook { action: Some(WebhookAction::Delete) }) => {
            pair::report_webhook(&config, FoundWebhook::Remove)
        }
        Some(Command::Webhook { action: None }) => pair::report_webhook(&config, FoundWebhook::Keep),
    }
}

fn run(config: &Config, arguments: &RunArguments) -> ExitCode {
    loop {
        if let Some(code) = run_once(config, arguments, BotMode::Polling) {
            return code;
        }
        // This returns only on failure.
        let error = process::start_anew();
        complain(&format!("The bot couldn't be restarted: {error}. The old one keeps running."));
        bot::cannot_restart(config, config.clock().as_ref(), &error.to_string());
    }
}

/// Runs a single turn, and prints the work for the next.
fn one_turn(config: &Config, arguments: &RunArguments) -> ExitCode {
    // A restart needs nothing more here, since each turn is a new process.
    let code = run_once(config, arguments, BotMode::Turn).unwrap_or(ExitCode::SUCCESS);
    if code != ExitCode::SUCCESS {
        return code;
    }
    turn::print_due_work(config, config.clock().now()).map_or_else(|error| report_failure(&error), |()| code)
}

/// Runs the bot until it ends. `None` if it should restart.
fn run_once(config: &Config, arguments: &RunArguments, mode: BotMode) -> Option<ExitCode> {
    let RunArguments { unless_running, wake, transcriber, .. } = arguments;
    let (telegram, runtime) = match (open_telegram(config), super::build_runtime()) {
        (Ok(telegram), Ok(runtime)) => (telegram, runtime),
        (Err(code), _) => return Some(code),
        (_, Err(error)) => return Some(report_failure(&error)),
    };
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let outside = BotContext { config, telegram: &telegram, clock: clock.as_ref(), redactor: &redactor };
    let ended = runtime.block_on(async {
        let stop = super::stop_signal().map_err(BotError::Signals)?;
        Box::pin(bot::run(outside, stop, (wake.clone(), transcriber.clone()), mode)).await
    });
    Some(match ended {
        Ok(BotEnd::Restart) => return None,
        Ok(BotEnd::Asked) => ExitCode::SUCCESS,
        Err(BotError::Taken(_)) if *unless_running => ExitCode::SUCCESS,
        Err(error) => {
            let kept = match &error {
                BotError::Displaced { .. } => "Telegram keeps new messages for a day. `health check` says what to do.",
                BotError::Store(StoreError::Gone { .. }) => "Telegram keeps new messages for a day.",
                _ => "Stored messages stay queued; Telegram keeps the others for a day.",
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

fn send_text(config: &Config, chat: ChatRef, text: &str) -> ExitCode {
    let text = match if text == "-" { read_stdin() } else { Ok(text.to_owned()) } {
        Ok(text) => text,
        Err(error) => return report_failure(&error),
    };
    let config = &match with_people(config) {
        Ok(config) => config,
        Err(error) => return report_not_stored(&error.to_string()),
    };
    if let Err(why) = check_message(config, chat, &text) {
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
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    let channel = telegram.as_ref().map(|telegram| telegram as &dyn Channel);
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let sending = bot::send(config, channel, clock.as_ref(), &redactor, chat, &text);
    match runtime.block_on(sending) {
        Ok(sending) => show_sending(&sending, config),
        Err(error) => report_not_stored(&redactor.redact(&error.to_string())),
    }
}

fn report_not_stored(why: &str) -> ExitCode {
    complain(&format!(
        "failed: {why}\nYour message was NOT stored, so it won't be sent. Check that the disk has room and the workspace is \
         writable (`health check` tells more), then send it again."
    ));
    ExitCode::from(EXIT_FAILED)
}

/// Returns the settings together with the paired people. If there is no store yet, none is created.
fn with_people(config: &Config) -> Result<Config, StoreError> {
    cycle::workspace::check_database(config)?;
    match database::open_existing(config)? {
        Some(store) => access::admit_paired_people(config, &store),
        None => Ok(config.clone()),
    }
}

fn check_message(config: &Config, chat: ChatRef, text: &str) -> Result<(), String> {
    if chat != ChatRef::TERMINAL && !config.allowed_chats.contains(&chat) {
        return Err(format!("Chat {chat} isn't one of ALLOWED_CHAT_IDS, and hasn't paired."));
    }
    if text.trim().is_empty() {
        return Err("Nothing to send: the text is empty.".to_owned());
    }
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!("The text is longer than {MAX_TEXT_BYTES} bytes."));
    }
    Ok(())
}

/// Reads at most one byte over the limit, so that a longer text is noticed and refused rather than cut.
fn read_stdin() -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn show_sending(sending: &Sending, config: &Config) -> ExitCode {
    let (text, code) = match sending {
        Sending::Delivered => ("delivered".to_owned(), super::EXIT_OK),
        Sending::Shown => ("queued: the next wake in a terminal shows it".to_owned(), super::EXIT_OK),
        Sending::Waits { until, why } => {
            let until =
                until.map(|at| format!(", not before {}", format_local_time(at, config.timezone))).unwrap_or_default();
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            (format!("queued: a later wake delivers it{until}{why}"), super::EXIT_OK)
        }
        Sending::Stopped(stopped) => {
            complain(&cycle::stop::render_notice(*stopped, config.timezone));
            ("queued: it will be sent after `wake resume`".to_owned(), super::EXIT_OK)
        }
        Sending::InDoubt { why } => (
            format!("queued: it may have arrived ({why}); the next wake sends it again, marked as a repeat"),
            super::EXIT_OK,
        ),
        Sending::Failed { why } => {
            complain(&format!("failed: {why}\nIt stays in the outbox as failed and won't be tried again."));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    print(&format!("{text}\n"));
    ExitCode::from(code)
}

/// Connects to Telegram, or returns the exit code if the settings don't allow it.
pub(super) fn open_telegram(config: &Config) -> Result<Telegram, ExitCode> {
    config.require_telegram().map_err(|error| config_failure(&error))?;
    match super::connect_telegram(config) {
        Ok(Some(telegram)) => Ok(telegram),
        Ok(None) => Err(ExitCode::from(EXIT_CONFIG)),
        Err(error) => {
            complain(&error);
            Err(ExitCode::from(EXIT_CONFIG))
        }
    }
}
