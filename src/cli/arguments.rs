//! The arguments of `wake` and their help texts.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{
    SettingsArguments, approvals, backup::BackupCommand, cost::CostArguments, history::LogArguments, jobs::JobsCommand,
    log::Talk, mcp, memory::MemoryCommand, page::PageArguments, policy::PolicyAction, queue,
    recordings::RecordingsCommand, remind::RemindArguments, shell::Program, task::TaskCommand,
};

/// Wakes, does what is due, writes down what it did, and goes back to sleep.
///
/// Without a command and without --once it stays and wakes whenever something is due, until SIGTERM.
#[derive(Debug, Parser)]
#[command(
    name = "wake",
    version = super::VERSION,
    after_help = "\
Exit codes: 0 done, nothing due, or another wake runs · 1 it failed, and says what was kept · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace (or --env-file FILE); see .env.example.

Examples:
  wake init                          set it up, or see what is set and what fails
  wake install                       have it wake by itself
  wake --once                        do what is due and end: what cron calls
  wake --once --say 'remember that the wifi code is 1234'
  wake say 'remind me to stretch tomorrow at 9'
  wake say /tasks                    a command, as on Telegram; /help lists them
  wake chat                          a conversation in this terminal
  wake page                          the same and more in a browser of this machine
  wake say < note.txt                a text from a file, or from a pipe
  wake log                           what the wakes did, newest first
  wake show                          the last one, turn by turn
  wake logs -f                       the programs' own logs, as they come
  wake cost --by day                 what the models cost, and where the month is heading
  wake replay 20261121T0903          the same wake once more, with another --model if you like: nothing happens
  wake eval evals                    cases for prompts and models, with a scorecard
  wake today                         tasks, reminders, and what waits
  wake task add 'Write the report'   tasks and reminders without a model
  wake memory search 'wifi code'     what it remembers, and what was said
  wake jobs list                     what runs by itself, and when next
  wake approvals list                what waits for your word
  wake undo                          take back what it did last
  wake stop                          end all work, until wake resume
  wake backup create reveille.tar    all of it in one file, for another day or another machine
  wake import chatgpt-export.zip     what another assistant holds; a folder of notes
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
    /// One cycle at most, and what waits then as JSON: for the workers of a fleet.
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
    /// Set it up: asks for what it needs, checks each answer, and writes the settings once at the end.
    #[command(after_help = super::init::HELP)]
    Init(super::init::InitArguments),
    /// Have it wake by itself: by systemd, launchd or cron; or take that out again.
    #[command(after_help = super::install::HELP)]
    Install(super::install::InstallArguments),
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
    /// Talk with the assistant in this terminal: its plan and steps as they happen, questions answered with y or n.
    #[command(after_help = "\
A text that begins with / is a command, as on Telegram. The path of a picture or another file in a message attaches it. \
A \\ at the end of a line continues it. Ctrl-C pauses the work until you say `go on`; a second one, Ctrl-D and /quit leave.
From a pipe each line is a message: nothing is attached, and questions wait (`wake approvals list`).

Examples:
  wake chat
  printf '%s\\n' 'what is due today' /tasks | wake chat")]
    Chat,
    /// Show the assistant in a browser of this machine: a chat, today, what it did, the memory, questions, cost, health.
    ///
    /// It prints a link that works once, and serves until Ctrl-C. While it runs, `wake page` elsewhere prints another link.
    #[command(after_help = super::page::HELP)]
    Page(PageArguments),
    /// List what the last wakes did, each with what was asked, and what people committed to the memory.
    #[command(after_help = "\
Examples:
  wake log -n 5
  wake log --since yesterday --grep invoice
  wake log --chat 0                  what was done for the terminal
  wake log --json | jq -r .subject")]
    Log(LogArguments),
    /// Show the programs' own logs, merged by time: what to look at when something went wrong.
    #[command(after_help = super::logs::HELP)]
    Logs(super::logs::LogsArguments),
    /// Tell what one wake did, turn by turn: why it woke, its plan, each call, what it said and cost, and its commit.
    #[command(after_help = "\
With --verbose nothing is cut. --raw prints JSON a line: first the model, the system text and the tools, then each message
of the conversation. A request was the first line and all messages before its answer.

Examples:
  wake show                          the last one
  wake show 20261121T0903
  wake show '#12'                    the one that took up message 12
  wake show --raw | jq -c .role")]
    Show {
        /// The wake's id or commit, the beginning of either, or a message's number; the last wake when left out.
        id: Option<String>,
        /// Print one JSON document: the commit with its message, stat and diff, and the story.
        #[arg(long)]
        json: bool,
        /// Print the requests to the model exactly as they were journalled, without secrets.
        #[arg(long, conflicts_with = "json")]
        raw: bool,
    },
    #[cfg(feature = "trial")]
    /// Run a recorded wake again, with its journal in the place of tools, and compare calls, receipts and files.
    #[command(after_help = super::replay::HELP)]
    Replay(super::replay::ReplayArguments),
    #[cfg(feature = "trial")]
    /// Try cases: what is said to a memory, and what must come of it; with a scorecard.
    #[command(after_help = super::eval::HELP)]
    Eval(super::eval::EvalArguments),
    /// Show what the assistant is called, or call it otherwise, as a commit of yours to claude.md.
    #[command(after_help = "\
Examples:
  wake name
  wake name Robin")]
    Name(super::name::NameArguments),
    /// Tell what the models cost: today and this month, of which budget, where the month is heading, and by what.
    #[command(after_help = "\
Examples:
  wake cost
  wake cost --by day --since 7d
  wake cost --by tool --json | jq '.rows[0]'")]
    Cost(CostArguments),
    /// Look at the tasks and change them, at once and without a model. What changes is your own commit.
    #[command(after_help = "\
Examples:
  wake task list
  wake task add 'Write the report' --due friday
  wake task done 2")]
    Task {
        #[command(subcommand)]
        command: TaskCommand,
    },
    /// Set, list, end and put off reminders, at once and without a model.
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
    /// Look at the standing jobs, which are files in memory/jobs; run one now, or let it rest.
    #[command(after_help = "\
Examples:
  wake jobs list
  wake jobs run water-plants
  wake jobs pause water-plants
  wake jobs log water-plants")]
    Jobs {
        #[command(subcommand)]
        command: Option<JobsCommand>,
        /// Print a JSON object a line: name, state, when, next_at, gate, has_model, failures, problem.
        #[arg(long)]
        json: bool,
    },
    /// Tell what today holds: tasks with their age, what is still to come, and what waits.
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
    #[cfg(feature = "fleet")]
    /// Look after many assistants on one machine, each out of the others' reach.
    #[command(after_help = super::fleet::HELP)]
    Fleet {
        #[command(subcommand)]
        command: super::fleet::FleetCommand,
    },
    /// Move the database into one that machines share, or back.
    #[cfg(feature = "postgres")]
    #[command(after_help = "Example: wake store move --to postgres://reveille@db.example.org/reveille")]
    Store {
        #[command(subcommand)]
        command: super::store_move::StoreCommand,
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
    /// Keep all of it in one file, and restore it, on this machine or another.
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
    /// Take in what another assistant or a folder of notes holds. It counts as others' words until you confirm it.
    #[command(after_help = super::import::HELP)]
    Import(super::import::ImportArguments),
    /// Print what a shell needs to complete commands and options.
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
    /// Print a page of the manual: of wake, or of one of its commands.
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
    /// Returns `true` if JSON is asked for after the command's name.
    fn json(&self) -> bool {
        match self {
            Self::Say { json, .. } | Self::Show { json, .. } | Self::Undo { json, .. } => *json,
            Self::Log(log) => log.json,
            Self::Cost(cost) => cost.json,
            #[cfg(feature = "trial")]
            Self::Replay(replay) => replay.json,
            #[cfg(feature = "trial")]
            Self::Eval(eval) => eval.json(),
            Self::Task { command } => command.json(),
            Self::Remind(remind) => remind.json(),
            Self::Today { json } | Self::Status { json } => *json,
            Self::Init(init) => init.json,
            Self::Queue { action } => action.json(),
            Self::Memory { command } => command.json(),
            Self::Jobs { command, json } => *json || command.as_ref().is_some_and(JobsCommand::json),
            Self::Recordings { action, json } => *json || action.as_ref().is_some_and(RecordingsCommand::json),
            Self::Approvals { action } => action.json(),
            Self::Backup { command } => command.json(),
            #[cfg(feature = "import")]
            Self::Import(import) => import.json,
            #[cfg(feature = "fleet")]
            Self::Fleet { command } => command.json(),
            Self::Policy { action } => action.as_ref().is_some_and(PolicyAction::json),
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
    pub(super) fn of_this_process() -> Self {
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        Self::of_a_timer(&words).unwrap_or_else(Self::parse)
    }

    /// Parses the frequent calls of cron and the bot without building the help of all commands. `None` for other arguments.
    fn of_a_timer(words: &[OsString]) -> Option<Self> {
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

    /// Returns `true` if JSON is asked for, before or after the command's name.
    pub(super) fn json(&self) -> bool {
        self.json || self.command.as_ref().is_some_and(WakeCommand::json)
    }

    /// Returns the log volume for the command.
    pub(super) fn talk(&self) -> Talk {
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
    fn what_a_timer_calls_is_read_as_anything_else_is() {
        for line in ["--once", "--once --no-console", "--reason cron --once", "--once --reason nudge --no-console"] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let all = Arguments::try_parse_from(["wake"].into_iter().chain(line.split(' '))).unwrap();
            assert_eq!(format!("{:?}", Arguments::of_a_timer(&words).unwrap()), format!("{all:?}"), "{line}");
        }
        for line in
            ["", "--no-console", "--once --once", "--once --reason", "--once --reason --json", "--once --say hi"]
        {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert!(Arguments::of_a_timer(&words).is_none(), "{line}");
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
            assert!(Arguments::try_parse_from(line.split(' ')).unwrap().json(), "{line}");
        }
        assert!(!Arguments::try_parse_from(["wake", "log"]).unwrap().json());
    }
}
