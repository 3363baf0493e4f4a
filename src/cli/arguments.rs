//! The arguments of `wake`, and the help that goes with them.

use clap::{Parser, Subcommand};

use super::{
    SettingsArguments, approvals, log::Talk, mcp, memory::MemoryCommand, policy::PolicyAction, queue,
    recordings::RecordingsCommand, values,
};

/// Commits that `wake log` lists.
const LOG_LINES: usize = 20;

/// Wakes, does what is due, writes down what it did, and goes back to sleep.
///
/// Without a command and without --once it stays and wakes whenever something is due, until SIGTERM.
#[derive(Debug, Parser)]
#[command(
    name = "wake",
    version,
    after_help = "\
Exit codes: 0 done, nothing due, or another wake runs · 1 it failed, and says what was kept · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace (or --env-file FILE); see .env.example.

Examples:
  wake init                          set it up, or see what is set and what fails
  wake --once                        do what is due and end: what cron calls
  wake --once --say 'remember that the wifi code is 1234'
  wake say 'remind me to stretch tomorrow at 9'
  wake say /tasks                    a command, as on Telegram; /help lists them
  wake say < note.txt                a text from a file, or from a pipe
  wake log                           what the wakes did, newest first
  wake show 20261121T0903            one of them in full
  wake memory search 'wifi code'     what it remembers, and what was said
  wake approvals list                what waits for your word
  wake undo                          take back what it did last
  wake stop                          end all work, until wake resume
  wake mcp                           let other programs' models use its memory and tasks
  wake policy test 'rm -rf ~'        how a shell command would be judged, and why"
)]
pub(super) struct Arguments {
    /// Run once: do what is due, or find that nothing is, and end.
    #[arg(long)]
    pub(super) once: bool,
    /// Say this at the terminal first, and show the answer; - reads standard input.
    #[arg(long, value_name = "TEXT", requires = "once", allow_hyphen_values = true)]
    pub(super) say: Option<String>,
    /// What starts this wake, for the commit's trailer: cron, nudge, …
    #[arg(
        long,
        value_name = "REASON",
        default_value = "cli",
        default_value_if("say", clap::builder::ArgPredicate::IsPresent, "say"),
        requires = "once"
    )]
    pub(super) reason: String,
    /// Print what the wake did as one JSON document, replies to the terminal among it.
    #[arg(long)]
    pub(super) json: bool,
    /// Tell on standard error what is being done.
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Leave replies to the terminal for the next wake that somebody watches.
    #[arg(long, hide = true)]
    pub(super) no_console: bool,
    #[command(flatten)]
    pub(super) settings: SettingsArguments,
    #[command(subcommand)]
    pub(super) command: Option<WakeCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum WakeCommand {
    /// Set it up: asks for what it needs, checks each answer, and writes the settings once at the end.
    #[command(after_help = super::init::HELP)]
    Init(super::init::InitArguments),
    /// Say something at the terminal, and show the answer. While another wake works its answer is waited for, some seconds.
    #[command(after_help = "\
A text that begins with / is a command, as on Telegram: `wake say /help` lists them.

Examples:
  wake say 'remind me to stretch tomorrow at 9'
  wake say what is due today
  wake say /tasks
  git diff | wake say
  wake say - < note.txt")]
    Say {
        /// The message; - or none reads standard input. Put -- before one that begins with a dash.
        text: Vec<String>,
        /// Print one JSON document: outcome, replies, commit, cost_usd.
        #[arg(long)]
        json: bool,
    },
    /// List what the last wakes and people committed to the memory.
    #[command(after_help = "\
Examples:
  wake log -n 5
  wake log --json | jq -r .subject")]
    Log {
        /// How many commits.
        #[arg(short = 'n', long, default_value_t = LOG_LINES, value_parser = values::how_many)]
        lines: usize,
        /// Print a JSON object a line: commit, at, wake_id, author, subject.
        #[arg(long)]
        json: bool,
    },
    /// Show one wake in full: message, trailers, changes.
    #[command(after_help = "Example: wake show 20261121T0903")]
    Show {
        /// The wake's id or commit, or the beginning of either.
        id: String,
        /// Print one JSON document, with the message, the stat and the diff.
        #[arg(long)]
        json: bool,
    },
    /// Take a wake back: its changes to the memory (later edits stay), its reminders, its unsent replies. Its messages are
    /// on hold until they are retried; the log keeps that it happened.
    #[command(after_help = "\
Examples:
  wake undo
  wake undo 20261121T0903")]
    Undo {
        /// The wake's id or its commit's, or the beginning of either; the last one that did more than answer when left out.
        id: Option<String>,
        /// Print one JSON document of what the wake did that took it back.
        #[arg(long)]
        json: bool,
    },
    /// End all work now, as /stop does in the chat: no wake works, no reminder fires and nothing is sent until `wake resume`.
    #[command(after_help = "Example: wake stop")]
    Stop,
    /// Continue after `wake stop` or /stop.
    #[command(after_help = "Example: wake resume")]
    Resume,
    /// Look at the messages that wait, were given up or undone, and decide on one.
    #[command(after_help = "\
Examples:
  wake queue list
  wake queue retry 12")]
    Queue {
        #[command(subcommand)]
        action: queue::QueueCommand,
    },
    /// Search what is remembered and what was said, and look after the index that answers.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Look at what is kept of finished wakes as examples for similar requests.
    #[command(after_help = "\
Examples:
  wake recordings
  wake recordings show 12
  wake recordings drop 12")]
    Recordings {
        #[command(subcommand)]
        action: Option<RecordingsCommand>,
        /// Print a JSON object a line: id, at, chat_id, wake, request, calls, narrative, taint, rounds.
        #[arg(long)]
        json: bool,
    },
    /// Decide on what the assistant may not do without asking.
    #[command(after_help = "\
Examples:
  wake approvals list
  wake approvals approve 1")]
    Approvals {
        #[command(subcommand)]
        action: approvals::ApprovalsCommand,
    },
    /// Say what may be done without asking, and how a shell command would be judged.
    #[command(after_help = "\
Examples:
  wake policy show
  wake policy test 'git push'")]
    Policy {
        #[command(subcommand)]
        action: Option<PolicyAction>,
    },
    /// Offer memory, tasks, reminders and the queue to other programs (Model Context Protocol), by standard input and output or by
    /// HTTP; or look at the servers whose tools the assistant may use.
    #[command(after_help = "\
Examples:
  wake mcp                           serve on standard input and output
  wake mcp --http 127.0.0.1:8931
  wake mcp list")]
    Mcp(mcp::McpArguments),
}

impl WakeCommand {
    /// Whether JSON is asked for behind its name.
    fn json(&self) -> bool {
        match self {
            Self::Say { json, .. } | Self::Log { json, .. } | Self::Show { json, .. } | Self::Undo { json, .. } => {
                *json
            }
            Self::Init(init) => init.json,
            Self::Queue { action } => action.json(),
            Self::Memory { command } => command.json(),
            Self::Recordings { action, json } => *json || action.as_ref().is_some_and(RecordingsCommand::json),
            Self::Approvals { action } => action.json(),
            Self::Policy { action } => action.as_ref().is_some_and(PolicyAction::json),
            Self::Stop | Self::Resume | Self::Mcp(_) => false,
        }
    }
}

impl Arguments {
    /// Whether JSON is asked for, before the command's name or behind it.
    pub(super) fn json(&self) -> bool {
        self.json || self.command.as_ref().is_some_and(WakeCommand::json)
    }

    /// How much is logged.
    pub(super) fn talk(&self) -> Talk {
        match &self.command {
            _ if self.verbose => Talk::Verbose,
            None if !self.once => Talk::Usual,
            Some(WakeCommand::Mcp(_)) => Talk::Usual,
            _ => Talk::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_can_be_asked_for_before_the_command_and_after_it() {
        for line in [
            "wake --json log",
            "wake log --json",
            "wake show --json 20261121",
            "wake queue list --json",
            "wake approvals list --json",
            "wake recordings --json",
            "wake recordings show 1 --json",
            "wake memory why wifi --json",
            "wake memory diff --json",
            "wake policy test --json ls",
            "wake --once --json",
            "wake say hello --json",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).unwrap().json(), "{line}");
        }
        assert!(!Arguments::try_parse_from(["wake", "log"]).unwrap().json());
    }
}
