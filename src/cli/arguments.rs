//! The arguments of `wake` and their help texts.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{
    OutputFormat, SettingsArguments, approvals, backup::BackupCommand, cost::CostArguments, history::LogArguments,
    jobs::JobsCommand, log::Talk, mcp, memory::MemoryCommand, page::PageArguments, policy::PolicyAction, queue,
    recordings::RecordingsCommand, remind::RemindArguments, shell::Program, task::TaskCommand,
};

/// Wakes, does what is due, records what it did, and goes back to sleep.
/// Without a command or --once, it keeps running and wakes whenever something is due, until SIGTERM.
#[derive(Debug, Parser)]
#[command(
    name = "wake",
    version = super::VERSION,
    after_help = "\
Exit codes: 0 done, nothing due, or another wake is running · 1 failed; the message says what was kept · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace (or --env-file FILE); see .env.example.

Examples:
  wake init                          set it up, or see what is set and what fails
  wake install                       start it automatically
  wake --once                        do what is due, then exit: for cron
  wake --once --say 'remember that the wifi code is 1234'
  wake say 'remind me to stretch tomorrow at 9'
  wake say /tasks                    a command, as on Telegram; /help lists them
  wake chat                          a conversation in this terminal
  wake page                          the same and more, in a browser on this machine
  wake say < note.txt                text from a file or a pipe
  wake log                           what the wakes did, newest first
  wake show                          the last wake, turn by turn
  wake logs -f                       follow the programs' own logs
  wake cost --by day                 what the models cost, and where the month is heading
  wake replay 20261121T0903          run a wake again, with another --model if you like; it changes nothing
  wake eval evals                    test cases for prompts and models, with a scorecard
  wake today                         tasks, reminders, and what waits
  wake task add 'Write the report'   tasks and reminders without a model
  wake memory search 'wifi code'     what it remembers, and what was said
  wake jobs list                     standing jobs, and when each runs next
  wake approvals list                questions that wait for your answer
  wake undo                          undo the last thing it did
  wake stop                          stop all work, until wake resume
  wake backup create reveille.tar    back everything up into one file
  wake import chatgpt-export.zip     import from another assistant, or a folder of notes
  wake mcp                           let models in other programs use its memory and tasks
  wake policy test 'rm -rf ~'        how a shell command would be judged, and why"
)]
pub(super) struct Arguments {
    /// Run once: do what is due, then exit.
    #[arg(long)]
    pub(super) once: bool,
    /// First say this at the terminal, and show the answer; - reads standard input.
    #[arg(long, value_name = "TEXT", requires = "once", allow_hyphen_values = true)]
    pub(super) say: Option<String>,
    /// What started this wake, for the commit's trailer: cron, nudge, …
    #[arg(
        long,
        value_name = "REASON",
        default_value = "cli",
        default_value_if("say", clap::builder::ArgPredicate::IsPresent, "say"),
        requires = "once"
    )]
    pub(super) reason: String,
    /// Print what the wake did as one JSON document, including replies to the terminal.
    #[arg(long)]
    pub(super) json: bool,
    /// Show progress on standard error.
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Keep replies to the terminal for the next wake that somebody watches.
    #[arg(long, hide = true)]
    pub(super) no_console: bool,
    /// Run at most one cycle, and print what still waits as JSON: for the workers of a fleet.
    #[arg(long, hide = true, requires = "once")]
    pub(super) turn: bool,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub(super) fleet: super::fleet::FleetWork,
    #[command(flatten)]
    pub(super) settings: SettingsArguments,
    #[command(subcommand)]
    pub(super) command: Option<WakeCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum WakeCommand {
    /// Set up Reveille: asks for what it needs, checks each answer, and writes the settings once at the end.
    #[command(after_help = super::init::HELP)]
    Init(super::init::InitArguments),
    /// Start it automatically through systemd, launchd or cron, or remove that again.
    #[command(after_help = super::install::HELP)]
    Install(super::install::InstallArguments),
    /// Say something at the terminal, and show the answer. While another wake works, this waits some seconds for the answer.
    #[command(after_help = "\
Text that begins with / is a command, as on Telegram: `wake say /help` lists them.

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
    /// Talk with the assistant in this terminal: it shows its plan and steps as they happen, and takes y or n as answers.
    #[command(after_help = "\
Text that begins with / is a command, as on Telegram. To attach a picture or another file, put its path in the message. A \\ at the \
end of a line continues it. Ctrl-C pauses the work until you say `go on`; a second Ctrl-C, Ctrl-D or /quit leaves.
From a pipe, each line is a message, nothing is attached, and questions wait (`wake approvals list`).

Examples:
  wake chat
  printf '%s\\n' 'what is due today' /tasks | wake chat")]
    Chat,
    /// Show the assistant in a browser on this machine: a chat, today, what it did, the memory, questions, cost, health.
    /// It prints a link that works once, and serves until Ctrl-C. While it runs, a second `wake page` prints another link.
    #[command(after_help = super::page::HELP)]
    Page(PageArguments),
    /// List what the last wakes did and what was asked of them, and what people committed to the memory.
    #[command(after_help = "\
Examples:
  wake log -n 5
  wake log --since yesterday --grep invoice
  wake log --chat 0                  what was done for the terminal
  wake log --json | jq -r .subject")]
    Log(LogArguments),
    /// Show the programs' own logs, merged by time: look here when something went wrong.
    #[command(after_help = super::logs::HELP)]
    Logs(super::logs::LogsArguments),
    /// Show what one wake did, turn by turn: why it woke, its plan, each call, what it said and cost, and its commit.
    #[command(after_help = "\
With --verbose, nothing is cut. --raw prints JSON lines: first the model, the system text and the tools, then each message of the
conversation. Each request held the first line and all messages before its answer.

Examples:
  wake show                          the last wake
  wake show 20261121T0903
  wake show '#12'                    the one that handled message 12
  wake show --raw | jq -c .role")]
    Show {
        /// A wake's id or commit, the beginning of either, or a message's number; default: the last wake.
        id: Option<String>,
        /// Print one JSON document: the commit with its message, stat and diff, and the story.
        #[arg(long)]
        json: bool,
        /// Print the requests to the model exactly as they were journalled, without secrets.
        #[arg(long, conflicts_with = "json")]
        raw: bool,
    },
    #[cfg(feature = "trial")]
    /// Run a recorded wake again, with its journal in place of the tools, and compare calls, receipts and files.
    #[command(after_help = super::replay::HELP)]
    Replay(super::replay::ReplayArguments),
    #[cfg(feature = "trial")]
    /// Run test cases, each with messages to a memory and the required results, and print a scorecard.
    #[command(after_help = super::eval::HELP)]
    Eval(super::eval::EvalArguments),
    /// Show the assistant's name, or change it with a commit of yours to claude.md.
    #[command(after_help = "\
Examples:
  wake name
  wake name Robin")]
    Name(super::name::NameArguments),
    /// Show what the models cost today and this month, the budget, the month's forecast, and what the money went to.
    #[command(after_help = "\
Examples:
  wake cost
  wake cost --by day --since 7d
  wake cost --by tool --json | jq '.rows[0]'")]
    Cost(CostArguments),
    /// List and change tasks, at once and without an AI model. Each change is a commit of yours.
    #[command(after_help = "\
Examples:
  wake task list
  wake task add 'Write the report' --due friday
  wake task done 2")]
    Task {
        #[command(subcommand)]
        command: TaskCommand,
    },
    /// Set, list, end and put off reminders, at once and without an AI model.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  wake remind 'call Anna' --at 'tomorrow 9'
  wake remind 'stretch every weekday at 8'
  wake remind list
  wake remind snooze 3 20min
  wake remind done 3"
    )]
    Remind(RemindArguments),
    /// List the standing jobs, which are files in memory/jobs; run one now, or pause it.
    #[command(after_help = "\
Examples:
  wake jobs list
  wake jobs run water-plants
  wake jobs pause water-plants
  wake jobs log water-plants")]
    Jobs {
        #[command(subcommand)]
        command: Option<JobsCommand>,
        /// Print one JSON object per line: name, state, when, next_at, gate, has_model, failures, problem.
        #[arg(long)]
        json: bool,
    },
    /// Show today: tasks with their age, what is still to come, and what waits.
    #[command(after_help = "\
Examples:
  wake today
  wake today --json | jq -r '.tasks[].title'")]
    Today {
        /// Print one JSON document: day, tasks, waiting_tasks, reminders, messages, questions, stopped.
        #[arg(long)]
        json: bool,
    },
    /// Show how it is going, on one screen: last wake, queue, memory, cost. The same as `health status`.
    Status {
        /// Print it as one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Undo a wake: its changes to the memory (later edits stay), its reminders and its unsent replies. Its messages are on
    /// hold until you retry them. The log still shows the wake.
    #[command(after_help = "\
Examples:
  wake undo
  wake undo 20261121T0903")]
    Undo {
        /// A wake's id or commit, or the beginning of either; default: the last wake that did more than answer.
        id: Option<String>,
        /// Print one JSON document: what the wake that undid it did.
        #[arg(long)]
        json: bool,
    },
    /// Stop all work now, as /stop does in the chat: no wake works, no reminder fires and nothing is sent until `wake resume`.
    #[command(after_help = "Example: wake stop")]
    Stop,
    /// Continue after `wake stop` or /stop.
    #[command(after_help = "Example: wake resume")]
    Resume,
    /// List the messages that wait, were given up or undone; retry or drop one.
    #[command(after_help = "\
Examples:
  wake queue list
  wake queue retry 12")]
    Queue {
        #[command(subcommand)]
        action: queue::QueueCommand,
    },
    #[cfg(feature = "fleet")]
    /// Run many assistants on one machine, each isolated from the others.
    #[command(after_help = super::fleet::HELP)]
    Fleet {
        #[command(subcommand)]
        command: super::fleet::FleetCommand,
    },
    /// Move the database into one that several machines share, or back.
    #[cfg(feature = "postgres")]
    #[command(after_help = "Example: wake store move --to postgres://reveille@db.example.org/reveille")]
    Store {
        #[command(subcommand)]
        command: super::store_move::StoreCommand,
    },
    /// Search the memory and the conversations, restore or forget what is in them, and maintain the search index.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// List the recordings: finished cycles kept as examples for similar requests.
    #[command(after_help = "\
Examples:
  wake recordings
  wake recordings show 12
  wake recordings drop 12")]
    Recordings {
        #[command(subcommand)]
        action: Option<RecordingsCommand>,
        /// Print one JSON object per line: id, at, chat_id, wake, request, calls, narrative, taint, rounds.
        #[arg(long)]
        json: bool,
    },
    /// Answer the assistant's questions, in which it asks for your approval of an action.
    #[command(after_help = "\
Examples:
  wake approvals list
  wake approvals approve 1")]
    Approvals {
        #[command(subcommand)]
        action: approvals::ApprovalsCommand,
    },
    /// Show what the assistant may do without asking, and how a shell command would be judged.
    #[command(after_help = "\
Examples:
  wake policy show
  wake policy test 'git push'")]
    Policy {
        #[command(subcommand)]
        action: Option<PolicyAction>,
    },
    /// Back everything up into one file, and restore it on this machine or another.
    #[command(after_help = "\
Examples:
  wake backup create reveille.tar
  wake backup verify reveille.tar
  wake backup restore reveille.tar")]
    Backup {
        #[command(subcommand)]
        command: BackupCommand,
    },
    #[cfg(feature = "import")]
    /// Import what another assistant or a folder of notes holds. It counts as untrusted text until you confirm it.
    #[command(after_help = super::import::HELP)]
    Import(super::import::ImportArguments),
    /// Print the shell's completion script for commands and options.
    #[command(after_help = "\
Examples:
  wake completions bash > ~/.local/share/bash-completion/completions/wake
  wake completions zsh > ~/.zfunc/_wake
  wake completions fish > ~/.config/fish/completions/wake.fish
  wake completions bash bot > ~/.local/share/bash-completion/completions/bot")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
        /// The program.
        #[arg(value_enum, default_value_t = Program::Wake)]
        program: Program,
    },
    /// Print the manual page of wake, or of one of its commands.
    #[command(after_help = "\
Examples:
  wake man | man -l -
  wake man memory search | man -l -
  wake man --program health > ~/.local/share/man/man1/health.1")]
    Man {
        /// The command, such as: memory search.
        command: Vec<String>,
        /// The program.
        #[arg(long, value_enum, default_value_t = Program::Wake)]
        program: Program,
    },
    /// Offer memory, tasks, reminders and the queue to other programs (Model Context Protocol), over standard input and output
    /// or HTTP; or manage the servers whose tools the assistant may use.
    #[command(after_help = "\
Examples:
  wake mcp                           serve on standard input and output
  wake mcp --http 127.0.0.1:8931
  wake mcp list")]
    Mcp(mcp::McpArguments),
}

impl WakeCommand {
    /// Returns `true` if JSON is asked for after the command's name.
    fn is_json(&self) -> bool {
        match self {
            Self::Say { json, .. } | Self::Show { json, .. } | Self::Undo { json, .. } => *json,
            Self::Log(log) => log.json,
            Self::Cost(cost) => cost.json,
            #[cfg(feature = "trial")]
            Self::Replay(replay) => replay.json,
            #[cfg(feature = "trial")]
            Self::Eval(eval) => eval.is_json(),
            Self::Task { command } => command.is_json(),
            Self::Remind(remind) => remind.is_json(),
            Self::Today { json } | Self::Status { json } => *json,
            Self::Init(init) => init.json,
            Self::Queue { action } => action.is_json(),
            Self::Memory { command } => command.is_json(),
            Self::Jobs { command, json } => *json || command.as_ref().is_some_and(JobsCommand::is_json),
            Self::Recordings { action, json } => *json || action.as_ref().is_some_and(RecordingsCommand::is_json),
            Self::Approvals { action } => action.is_json(),
            Self::Backup { command } => command.is_json(),
            #[cfg(feature = "import")]
            Self::Import(import) => import.json,
            #[cfg(feature = "fleet")]
            Self::Fleet { command } => command.is_json(),
            Self::Policy { action } => action.as_ref().is_some_and(PolicyAction::is_json),
            Self::Chat
            | Self::Install(_)
            | Self::Logs(_)
            | Self::Stop
            | Self::Resume
            | Self::Completions { .. }
            | Self::Man { .. }
            | Self::Mcp(_)
            | Self::Name(_)
            | Self::Page(_) => false,
            #[cfg(feature = "postgres")]
            Self::Store { .. } => false,
        }
    }
}

impl Arguments {
    /// Parses the arguments of this process; wrong ones end it with a help text.
    pub(super) fn from_process() -> Self {
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        Self::parse_timer_call(&words).unwrap_or_else(Self::parse)
    }

    /// Parses the frequent calls of cron and the bot without building the help of all commands. `None` for other arguments.
    fn parse_timer_call(words: &[OsString]) -> Option<Self> {
        let (mut once, mut no_console, mut reason) = (false, false, "cli");
        let mut words = words.iter().map(|word| word.to_str());
        while let Some(word) = words.next() {
            match word? {
                "--once" if !once => once = true,
                "--no-console" if !no_console => no_console = true,
                "--reason" if reason == "cli" => reason = words.next()?.filter(|reason| !reason.starts_with('-'))?,
                _ => return None,
            }
        }
        once.then(|| Self {
            once,
            say: None,
            reason: reason.to_owned(),
            json: false,
            verbose: false,
            no_console,
            turn: false,
            #[cfg(feature = "fleet")]
            fleet: super::fleet::FleetWork::default(),
            settings: SettingsArguments { env_file: None },
            command: None,
        })
    }

    /// Returns the form of the output. `--json` may stand before or after the command's name.
    pub(super) fn output_format(&self) -> OutputFormat {
        OutputFormat::from_flag(self.json || self.command.as_ref().is_some_and(WakeCommand::is_json))
    }

    /// Returns the log volume for the command.
    pub(super) fn log_volume(&self) -> Talk {
        match &self.command {
            _ if self.verbose => Talk::Verbose,
            None if !self.once => Talk::Usual,
            Some(WakeCommand::Mcp(_) | WakeCommand::Page(_)) => Talk::Usual,
            _ => Talk::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_timer_are_parsed_like_any_others() {
        for line in ["--once", "--once --no-console", "--reason cron --once", "--once --reason nudge --no-console"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let all = Arguments::try_parse_from(["wake"].into_iter().chain(line.split(' '))).unwrap();
            assert_eq!(format!("{:?}", Arguments::parse_timer_call(&words).unwrap()), format!("{all:?}"), "{line}");
        }
        for line in
            ["", "--no-console", "--once --once", "--once --reason", "--once --reason --json", "--once --say hi"]
        {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert!(Arguments::parse_timer_call(&words).is_none(), "{line}");
        }
    }

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
            let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(arguments.output_format(), OutputFormat::Json, "{line}");
        }
        let arguments = Arguments::try_parse_from(["wake", "log"]).unwrap();
        assert_eq!(arguments.output_format(), OutputFormat::Text);
    }
}
