//! `wake`: doing what is due once, staying and waking by itself, or looking at what wakes did.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use clap::{Parser, Subcommand};

use super::{
    approvals, complain, failed, history,
    mcp::{self, Asked},
    policy::{self, PolicyAction},
    print, print_json, queue, within,
};
use crate::{
    channel::Channel,
    config::{CONSOLE_CHAT_ID, Config},
    cycle::{self, Choice, Context, Report, WakeError, WakeOutcome, budget::Budget},
    people,
    queue::{Order, Store, StoreError, wait_after},
    repo::RepoError,
};

/// Commits that `wake log` lists.
const LOG_LINES: usize = 20;
/// What starts the wake of `wake undo`.
const UNDO: &str = "undo";

/// Wakes, does what is due, writes down what it did, and goes back to sleep.
///
/// Without a command and without --once it stays and wakes whenever something is due, until SIGTERM.
#[derive(Debug, Parser)]
#[command(
    name = "wake",
    version,
    after_help = "\
Exit codes: 0 done, nothing due, or another wake runs · 1 it failed, and says what was kept · 2 usage · 78 configuration.
Settings come from the environment and from .env in the workspace; see .env.example.

Examples:
  wake --once                        do what is due and end: what cron calls
  wake --once --say 'remember that the wifi code is 1234'
  wake say 'remind me to stretch tomorrow at 9'
  wake log                           what the wakes did, newest first
  wake show 20261121T0903            one of them in full
  wake approvals list                what waits for your word
  wake undo                          take back what the last one did
  wake stop                          end all work, until wake resume
  wake mcp                           let other programs' models use its memory and tasks
  wake policy test 'rm -rf ~'        how a shell command would be judged, and why"
)]
struct Arguments {
    /// Run once: do what is due, or find that nothing is, and end.
    #[arg(long)]
    once: bool,
    /// Queue this text from the console first.
    #[arg(long, value_name = "TEXT", requires = "once")]
    say: Option<String>,
    /// What starts this wake, for the commit's trailer: cron, nudge, …
    #[arg(
        long,
        value_name = "REASON",
        default_value = "cli",
        default_value_if("say", clap::builder::ArgPredicate::IsPresent, "say"),
        requires = "once"
    )]
    reason: String,
    /// Print JSON instead of text: a document of what each wake did, of `show`'s wake and of `approvals list`; an object a line from
    /// `log`, `queue list` and `policy test`. The others have nothing to print so.
    #[arg(long, global = true)]
    json: bool,
    /// Leave replies to the console for the next wake that somebody watches.
    #[arg(long, hide = true)]
    no_console: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Queue a message from the console and run a wake for it.
    Say {
        /// The message.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// List what the last wakes and people committed to the memory.
    Log {
        /// How many commits.
        #[arg(short = 'n', long, default_value_t = LOG_LINES)]
        lines: usize,
    },
    /// Show one wake in full: message, trailers, changes.
    Show {
        /// The wake's id or commit, or the beginning of either.
        id: String,
    },
    /// Take a wake back: its changes to the memory (later edits stay), its reminders, its unsent replies. Its messages are put
    /// aside until they are retried; the log keeps that it happened.
    Undo {
        /// The wake's id or its commit's, or the beginning of either; the last one that can be undone when left out.
        id: Option<String>,
    },
    /// End all work now, as /stop does in the chat: no wake works, no reminder fires and nothing is sent until `wake resume`.
    Stop,
    /// Go on after `wake stop` or /stop.
    Resume,
    /// Look at the messages that wait, were given up or undone, and decide on one.
    Queue {
        #[command(subcommand)]
        action: queue::Action,
    },
    /// Decide on what the assistant may not do without asking.
    Approvals {
        #[command(subcommand)]
        action: approvals::Action,
    },
    /// Say what may be done without asking, and how a shell command would be judged.
    Policy {
        #[command(subcommand)]
        action: Option<PolicyAction>,
    },
    /// Offer memory, tasks, reminders and the queue to other programs (Model Context Protocol), by standard input and output or by
    /// HTTP; or look at the servers whose tools the assistant may use.
    Mcp(mcp::Arguments),
}

/// Runs the binary.
pub fn main() -> ExitCode {
    if let Some(code) = within::main() {
        return code;
    }
    let arguments = Arguments::parse();
    let config = match super::set_up() {
        Ok(config) => config,
        Err(code) => return code,
    };
    match &arguments.command {
        Some(Command::Say { text }) => once(&config, &arguments, "say", Some(&text.join(" "))),
        Some(Command::Undo { id }) => undo(&config, &arguments, id.as_deref()),
        Some(Command::Stop) => stop(&config),
        Some(Command::Resume) => resume(&config),
        Some(Command::Queue { action }) => queue::run(&config, action, arguments.json),
        Some(Command::Approvals { action }) => match approvals::run(&config, action, arguments.json) {
            Some(code) => code,
            None => once(&config, &arguments, "approval", None),
        },
        Some(Command::Policy { action }) => policy::run(&config, action.as_ref(), arguments.json),
        Some(Command::Mcp(mcp)) => match mcp::asked(&config, mcp) {
            Asked::Done(code) => code,
            Asked::Look(look) => with_context(&config, async |context| look.run(context).await),
            Asked::Serve(address) => with_context(&config, async |context| mcp::serve(context, address).await),
        },
        Some(Command::Log { lines }) => history::log(&config, *lines, arguments.json),
        Some(Command::Show { id }) => history::show(&config, id, arguments.json),
        None if arguments.once => once(&config, &arguments, &arguments.reason, arguments.say.as_deref()),
        None => stay(&config, &arguments),
    }
}

fn once(config: &Config, arguments: &Arguments, reason: &str, say: Option<&str>) -> ExitCode {
    if say.is_some_and(|text| text.trim().is_empty()) {
        complain("There is nothing to say: the text is empty. Nothing was queued.");
        return ExitCode::from(super::EXIT_USAGE);
    }
    let trigger: String = reason.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect();
    with_context(config, async |context| match look(context, &trigger, say).await {
        Ok((mut report, mut store)) => {
            if say.is_some() && report.outcome == WakeOutcome::Idle {
                report.notes.splice(0..0, why_it_waits(context, &store));
            }
            if trigger == UNDO && report.outcome == WakeOutcome::Locked {
                report.notes.push("It takes the other one back as soon as it is done with what it is at.".to_owned());
            }
            show_report(context, &mut store, &report, arguments)
        }
        Err(Failure { error, kept }) => {
            let why = context.redactor.redact(&error.to_string());
            if arguments.json {
                let report = Report { outcome: WakeOutcome::Failed, error: Some(why.clone()), ..Report::default() };
                print_json(&report);
            }
            complain(&format!("failed: {why}\n{}", kept.in_words(&error)));
            exit_code(&error)
        }
    })
}

/// A wake that failed.
struct Failure {
    error: WakeError,
    kept: Kept,
}

/// What is known to be in the queue when a wake fails: only what was committed there is said to be kept.
#[derive(Debug, Clone, Copy)]
enum Kept {
    /// The database couldn't be used, and nothing was said.
    Unknown,
    /// Something was said, and it isn't in the queue.
    NotStored,
    /// What was in the queue before.
    Queue,
    /// What was just said, too.
    Message,
}

impl Kept {
    fn in_words(self, error: &WakeError) -> String {
        match self {
            Self::Unknown if matches!(error, WakeError::Store(StoreError::Gone { .. })) => String::new(),
            Self::Unknown => what_to_do(error).to_owned(),
            Self::NotStored => {
                format!("Your message was NOT stored. {} Then say it again.", what_to_do(error))
            }
            Self::Queue => "What is queued stays queued; the next wake goes on from here.".to_owned(),
            Self::Message => "Your message is stored: it stays queued, and the next wake goes on from here.".to_owned(),
        }
    }
}

/// What helps where nothing can be stored.
pub(super) fn what_to_do(error: &WakeError) -> &'static str {
    match error {
        WakeError::Store(StoreError::Damaged(_)) => "`health check` tells how to save what is in the database.",
        WakeError::Store(StoreError::Newer { .. }) => "Please update this program.",
        WakeError::Store(StoreError::Gone { .. }) => "Put the file back, or begin a new one, as said above.",
        WakeError::Store(StoreError::Busy) => "Wait until the other program is done.",
        _ => "See that the disk has room and that the workspace can be written; `health check` tells more.",
    }
}

/// Asks for an undo, and runs the wake that does it. While another wake runs it is done right after.
fn undo(config: &Config, arguments: &Arguments, id: Option<&str>) -> ExitCode {
    let asked = cycle::open_store(config).and_then(|mut store| match cycle::undoable(&store, &[], id, &[])? {
        Choice::Wake(row) => Ok(Ok(store.order(&Order::Undo { wake: row.cycle.id }, config.clock().now())?)),
        Choice::Refused(why) => Ok(Err(why)),
    });
    match asked {
        Ok(Ok(())) => once(config, arguments, UNDO, None),
        Ok(Err(why)) => {
            complain(&format!("{why} `wake log` lists what was done."));
            ExitCode::from(super::EXIT_FAILED)
        }
        Err(error) => failed(&error),
    }
}

fn stop(config: &Config) -> ExitCode {
    let ordered = cycle::open_store(config).and_then(|mut store| {
        Ok((store.order(&Order::Stop { is_owners: true }, config.clock().now())?, store.stopped()?))
    });
    match ordered {
        Ok(((), stopped)) => {
            cycle::stop::end_children(&config.lock_path());
            complain(&stopped.map(|stopped| cycle::stop::notice(stopped, config.timezone)).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn resume(config: &Config) -> ExitCode {
    let ordered = cycle::open_store(config)
        .and_then(|mut store| Ok((store.stopped()?, store.order(&Order::Resume, config.clock().now())?)));
    match ordered {
        Ok((stopped, ())) => {
            complain(match stopped {
                Some(_) => "Work goes on: the next wake begins with what was interrupted.",
                None => "Nothing was stopped.",
            });
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// The exit code of a wake that failed.
fn exit_code(error: &WakeError) -> ExitCode {
    match error {
        WakeError::Repo(RepoError::Configuration(_)) => ExitCode::from(super::EXIT_CONFIG),
        _ => ExitCode::from(super::EXIT_FAILED),
    }
}

/// What was just said is no reason to wake: the mind was asked before and its back-off hasn't ended, or its budget is spent.
fn why_it_waits(context: Context<'_>, store: &Store) -> Option<String> {
    if store.stopped().ok()?.is_some() {
        return Some("Your message is kept, and answered when work goes on.".to_owned());
    }
    let mind = cycle::mind_of(store, context).ok()?;
    let cap = mind.out_of_budget(Some(CONSOLE_CHAT_ID));
    if mind.is_available && cap.is_none() {
        return None;
    }
    let until = match cycle::mind_again_at(store).ok().flatten() {
        Some(at) if cap.is_none() => {
            let at = at.with_timezone(&context.config.timezone);
            format!("the mind couldn't be reached; it is asked again from {} on", at.format("%H:%M:%S"))
        }
        _ => Budget::look(store, context.config, context.clock.now()).ok()?.in_the_way(Some(CONSOLE_CHAT_ID))?,
    };
    Some(format!("Your message is kept: {until}."))
}

/// One wake, and the store that it used, for what is shown of it. What is said is stored first, whatever then fails.
async fn look(context: Context<'_>, trigger: &str, say: Option<&str>) -> Result<(Report, Store), Failure> {
    let not_kept = if say.is_some() { Kept::NotStored } else { Kept::Unknown };
    let failed = |kept| move |error| Failure { error, kept };
    let mut store = cycle::open_store(context.config).map_err(failed(not_kept))?;
    if let Some(text) = say {
        let said = store.say(CONSOLE_CHAT_ID, &context.redactor.redact(text), context.clock.now());
        said.map_err(WakeError::Store).map_err(failed(not_kept))?;
    }
    let kept = if say.is_some() { Kept::Message } else { Kept::Queue };
    match wake(context, &mut store, trigger).await {
        Ok(report) => Ok((report, store)),
        Err(error) => Err(Failure { error, kept }),
    }
}

async fn wake(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    store.readmit(&context.config.allowed_chat_ids)?;
    let config = people::admitted(context.config, store)?;
    cycle::once(Context { config: &config, ..context }, store, trigger).await
}

/// Wakes whenever something is due, until it is asked to end.
fn stay(config: &Config, arguments: &Arguments) -> ExitCode {
    with_context(config, async |context| {
        let mut stop = context.stop.clone();
        let mut failures = 0;
        tracing::info!("staying; SIGTERM ends it");
        loop {
            // Secrets may have been added meanwhile, in mcp.toml for one.
            let redactor = super::redactor(config);
            let context = Context { redactor: &redactor, ..context };
            let looked = look(context, "stay", None).await;
            failures = if looked.is_err() { failures + 1 } else { 0 };
            match looked {
                // Another wake does what is due.
                Ok((report, _)) if matches!(report.outcome, WakeOutcome::Idle | WakeOutcome::Locked) => {}
                Ok((report, mut store)) => {
                    show_report(context, &mut store, &report, arguments);
                }
                Err(Failure { error, .. }) => {
                    complain(&format!("failed: {}", context.redactor.redact(&error.to_string())));
                    if matches!(error, WakeError::Repo(RepoError::Configuration(_))) {
                        return exit_code(&error);
                    }
                }
            }
            let wait = match failures {
                0 => cycle::LOOK_EVERY,
                failures => wait_after(failures).to_std().unwrap_or(cycle::LOOK_EVERY),
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return ExitCode::SUCCESS,
                () = tokio::time::sleep(wait) => {}
            }
        }
    })
}

/// Wires the parts together and runs `work` on one thread.
fn with_context(config: &Config, work: impl AsyncFnOnce(Context<'_>) -> ExitCode) -> ExitCode {
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let (model, telegram) = match (super::model(config), super::telegram(config)) {
        (Ok(model), Ok(telegram)) => (model, telegram),
        (Err(error), _) | (_, Err(error)) => {
            complain(&error);
            return ExitCode::from(super::EXIT_CONFIG);
        }
    };
    let (clock, redactor) = (config.clock(), super::redactor(config));
    runtime.block_on(async {
        let stop = match super::stop_signal() {
            Ok(stop) => stop,
            Err(error) => return failed(&error),
        };
        work(Context {
            config,
            clock: clock.as_ref(),
            model: model.as_ref(),
            channel: telegram.as_ref().map(|telegram| telegram as &dyn Channel),
            redactor: &redactor,
            stop: &stop,
        })
        .await
    })
}

/// Prints what a wake did, and the replies to the console that weren't shown yet.
fn show_report(context: Context<'_>, store: &mut Store, report: &Report, arguments: &Arguments) -> ExitCode {
    for note in &report.notes {
        complain(note);
    }
    let shown =
        if arguments.no_console { Ok(Vec::new()) } else { show_console(store, context.clock.now(), arguments.json) };
    if arguments.json {
        let mut report = report.clone();
        if let Ok(shown) = &shown {
            // Replies of earlier wakes that nobody saw belong to what is shown now.
            let is_new = |text: &String| {
                !report.replies.iter().any(|reply| reply.chat_id == CONSOLE_CHAT_ID && reply.text == *text)
            };
            let earlier: Vec<_> = shown
                .iter()
                .filter(|text| is_new(text))
                .map(|text| cycle::Reply { chat_id: CONSOLE_CHAT_ID, text: text.clone() })
                .collect();
            report.replies.extend(earlier);
        }
        print_json(&report);
    }
    if let Err(error) = shown {
        return failed(&error);
    }
    match (&report.error, report.outcome) {
        (Some(error), _) => {
            complain(&format!("failed: {error}\nWhat is queued stays queued; the next wake goes on from here."));
            ExitCode::from(super::EXIT_FAILED)
        }
        (None, WakeOutcome::Failed) => ExitCode::from(super::EXIT_FAILED),
        (None, _) => ExitCode::SUCCESS,
    }
}

/// Shows console replies: printed first, then marked, so that one is rather shown twice than never.
fn show_console(store: &mut Store, now: DateTime<Utc>, as_json: bool) -> Result<Vec<String>, StoreError> {
    let mut shown = Vec::new();
    for (id, text) in store.console_unshown()? {
        if !as_json {
            print(&format!("{}\n", text.trim_end()));
        }
        store.mark_shown(id, now)?;
        shown.push(text);
    }
    Ok(shown)
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
            "wake policy test --json ls",
            "wake --once --json",
            "wake say hello --json",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).unwrap().json, "{line}");
        }
        assert!(!Arguments::try_parse_from(["wake", "log"]).unwrap().json);
    }
}
