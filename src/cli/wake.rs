//! `wake`: doing what is due once, staying and waking by itself, or looking at what wakes did.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::{
    approvals, complain, failed, history,
    log::Talk,
    mcp,
    out::{self, Working},
    policy::{self, PolicyAction},
    print_json, queue,
    say::{self, Said},
    values, within,
};
use crate::{
    channel::{
        Channel, desktop,
        render::{self, Looks, without_escapes},
    },
    config::{CONSOLE_CHAT_ID, Config},
    cycle::{self, Choice, Context, Report, WakeError, WakeOutcome},
    people,
    queue::{Cap, Order, Session, Store, StoreError, wait_after},
    repo::RepoError,
};

/// Commits that `wake log` lists.
const LOG_LINES: usize = 20;
/// What starts the wake of `wake undo`.
const UNDO: &str = "undo";
/// What stands on the terminal while a wake works.
const WORKING: &str = "working…";
/// Texts that a desktop shows one by one; of further ones it says how many.
const MAX_NOTIFIED: usize = 3;
/// What becomes of the queue when a wake fails.
const KEPT: &str = "What was said stays queued; the next wake goes on from here.";

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
  wake say /tasks                    a command, as on Telegram; /help lists them
  wake say < note.txt                a text from a file, or from a pipe
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
    /// Say this at the terminal first, and show the answer; - reads standard input.
    #[arg(long, value_name = "TEXT", requires = "once", allow_hyphen_values = true)]
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
    /// Print what the wake did as one JSON document, replies to the terminal among it.
    #[arg(long)]
    json: bool,
    /// Tell on standard error what is being done.
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Leave replies to the console for the next wake that somebody watches.
    #[arg(long, hide = true)]
    no_console: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// Take a wake back: its changes to the memory (later edits stay), its reminders, its unsent replies. Its messages are put
    /// aside until they are retried; the log keeps that it happened.
    #[command(after_help = "\
Examples:
  wake undo
  wake undo 20261121T0903")]
    Undo {
        /// The wake's id or its commit's, or the beginning of either; the last one that can be undone when left out.
        id: Option<String>,
        /// Print one JSON document of what the wake did that took it back.
        #[arg(long)]
        json: bool,
    },
    /// End all work now, as /stop does in the chat: no wake works, no reminder fires and nothing is sent until `wake resume`.
    #[command(after_help = "Example: wake stop")]
    Stop,
    /// Go on after `wake stop` or /stop.
    #[command(after_help = "Example: wake resume")]
    Resume,
    /// Look at the messages that wait, were given up or undone, and decide on one.
    #[command(after_help = "\
Examples:
  wake queue list
  wake queue retry 12")]
    Queue {
        #[command(subcommand)]
        action: queue::Action,
    },
    /// Decide on what the assistant may not do without asking.
    #[command(after_help = "\
Examples:
  wake approvals list
  wake approvals approve 1")]
    Approvals {
        #[command(subcommand)]
        action: approvals::Action,
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
    Mcp(mcp::Arguments),
}

impl Command {
    /// Whether JSON is asked for behind its name.
    fn json(&self) -> bool {
        match self {
            Self::Say { json, .. } | Self::Log { json, .. } | Self::Show { json, .. } | Self::Undo { json, .. } => {
                *json
            }
            Self::Queue { action } => action.json(),
            Self::Approvals { action } => action.json(),
            Self::Policy { action } => action.as_ref().is_some_and(PolicyAction::json),
            Self::Stop | Self::Resume | Self::Mcp(_) => false,
        }
    }
}

impl Arguments {
    /// Whether JSON is asked for, before the command's name or behind it.
    fn json(&self) -> bool {
        self.json || self.command.as_ref().is_some_and(Command::json)
    }

    fn talk(&self) -> Talk {
        match &self.command {
            _ if self.verbose => Talk::Verbose,
            None if !self.once => Talk::Usual,
            Some(Command::Mcp(_)) => Talk::Usual,
            _ => Talk::Quiet,
        }
    }
}

/// Runs the binary.
pub fn main() -> ExitCode {
    match within::main() {
        Some(code) => code,
        None => out::end(run(&Arguments::parse())),
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    let config = match super::set_up(arguments.talk()) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let json = arguments.json();
    let view = |asked| View { json, asked, is_hidden: arguments.no_console };
    match &arguments.command {
        Some(Command::Say { text, .. }) => said(&config, &view(Asked::Here), "say", text),
        Some(Command::Undo { id, .. }) => undo(&config, &view(Asked::Here), id.as_deref()),
        Some(Command::Stop) => stop(&config),
        Some(Command::Resume) => resume(&config),
        Some(Command::Queue { action }) => queue::run(&config, action, json),
        Some(Command::Approvals { action }) => match approvals::run(&config, action, json) {
            Some(code) => code,
            None => once(&config, &view(Asked::Here), "approval"),
        },
        Some(Command::Policy { action }) => policy::run(&config, action.as_ref(), json),
        Some(Command::Mcp(mcp)) => match mcp::asked(&config, mcp) {
            mcp::Asked::Done(code) => code,
            mcp::Asked::Look(look) => with_context(&config, true, async |context| look.run(context).await),
            mcp::Asked::Serve(address) => {
                with_context(&config, true, async |context| mcp::serve(context, address).await)
            }
        },
        Some(Command::Log { lines, .. }) => history::log(&config, *lines, json),
        Some(Command::Show { id, .. }) => history::show(&config, id, json),
        None => match &arguments.say {
            Some(text) => said(&config, &view(Asked::Here), &arguments.reason, std::slice::from_ref(text)),
            None if arguments.once => once(&config, &view(Asked::Nowhere), &arguments.reason),
            None => stay(&config, &view(Asked::Nowhere)),
        },
    }
}

/// Whether somebody at this terminal waits for what a wake says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// They asked for it by this very command.
    Here,
    /// Nobody did: it is cron's, or the bot's, or a person looks on.
    Nowhere,
}

/// How a wake's words are shown, and whether they are.
struct View {
    json: bool,
    asked: Asked,
    is_hidden: bool,
}

impl View {
    /// Whether what is meant for the terminal counts as shown when it is printed. What goes into cron's mail doesn't.
    fn is_watched(&self) -> bool {
        !self.is_hidden && (self.json || self.asked == Asked::Here || out::is_terminal())
    }
}

/// Says something at the terminal, and shows the answer.
fn said(config: &Config, view: &View, reason: &str, words: &[String]) -> ExitCode {
    let text = match say::text_of(words) {
        Ok(text) => text,
        Err(why) => {
            complain(&why.to_string());
            return ExitCode::from(super::EXIT_USAGE);
        }
    };
    let trigger = trigger(reason);
    with_context(config, view.is_watched(), async |context| {
        let working = Working::on(WORKING);
        let said = match say::say(context, &trigger, &text, &working).await {
            Ok(said) => said,
            Err(error) => return fail(context, view, &error, "Nothing was stored: say it again once that is mended."),
        };
        drop(working);
        let Said { mut store, session, report, .. } = said;
        let code = match report {
            Ok(mut report) => {
                if report.outcome == WakeOutcome::Idle {
                    report.notes.splice(0..0, why_it_waits(context, &store));
                }
                show_report(context, &mut store, &report, view, Some(&session))
            }
            Err(error) => fail(context, view, &error, KEPT),
        };
        // Should this fail it is forgotten with this process.
        store.close_session(&session).ok();
        code
    })
}

/// A wake that does what is due.
fn once(config: &Config, view: &View, reason: &str) -> ExitCode {
    let trigger = trigger(reason);
    with_context(config, view.is_watched(), async |context| {
        let working = (view.asked == Asked::Here || out::is_terminal()).then(|| Working::on(WORKING));
        let looked = async {
            let mut store = cycle::open_store(context.config)?;
            let report = look(context, &mut store, &trigger).await?;
            Ok::<_, WakeError>((report, store))
        };
        let looked = looked.await;
        drop(working);
        match looked {
            Ok((mut report, mut store)) => {
                if trigger == UNDO && report.outcome == WakeOutcome::Locked {
                    report
                        .notes
                        .push("It takes the other one back as soon as it is done with what it is at.".to_owned());
                }
                show_report(context, &mut store, &report, view, None)
            }
            Err(error) => fail(context, view, &error, KEPT),
        }
    })
}

/// What starts a wake, as a trailer takes it.
fn trigger(reason: &str) -> String {
    reason.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

/// Says why a wake failed, and what was kept.
fn fail(context: Context<'_>, view: &View, error: &WakeError, kept: &str) -> ExitCode {
    let why = context.redactor.redact(&error.to_string());
    if view.json {
        print_json(&Report { outcome: WakeOutcome::Failed, error: Some(why.clone()), ..Report::default() });
    }
    complain(&format!("failed: {why}\n{kept}"));
    exit_code(error)
}

/// Asks for an undo, and runs the wake that does it. While another wake runs it is done right after.
fn undo(config: &Config, view: &View, id: Option<&str>) -> ExitCode {
    let asked = cycle::open_store(config).and_then(|mut store| match cycle::undoable(&store, &[], id, &[])? {
        Choice::Wake(row) => Ok(Ok(store.order(&Order::Undo { wake: row.cycle.id }, config.clock().now())?)),
        Choice::Refused(why) => Ok(Err(why)),
    });
    match asked {
        Ok(Ok(())) => once(config, view, UNDO),
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
        _ => match cap {
            Some(Cap::Month) => "this month's budget for thinking is spent (MONTHLY_BUDGET_USD)".to_owned(),
            _ => "today's budget for thinking is spent (DAILY_BUDGET_USD)".to_owned(),
        },
    };
    Some(format!("Your message is kept: {until}."))
}

/// One wake.
pub(super) async fn look(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    store.readmit(&context.config.allowed_chat_ids)?;
    let config = people::admitted(context.config, store)?;
    cycle::once(Context { config: &config, ..context }, store, trigger).await
}

/// Wakes whenever something is due, until it is asked to end.
fn stay(config: &Config, view: &View) -> ExitCode {
    with_context(config, view.is_watched(), async |context| {
        let mut stop = context.stop.clone();
        let mut failures = 0;
        tracing::info!("staying; SIGTERM ends it");
        loop {
            // Secrets may have been added meanwhile, in mcp.toml for one.
            let redactor = super::redactor(config);
            let context = Context { redactor: &redactor, ..context };
            let looked = async {
                let mut store = cycle::open_store(config)?;
                let report = look(context, &mut store, "stay").await?;
                Ok::<_, WakeError>((report, store))
            };
            let looked = looked.await;
            failures = if looked.is_err() { failures + 1 } else { 0 };
            match looked {
                // Another wake does what is due.
                Ok((report, _)) if matches!(report.outcome, WakeOutcome::Idle | WakeOutcome::Locked) => {}
                Ok((report, mut store)) => {
                    show_report(context, &mut store, &report, view, None);
                }
                Err(error) => {
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
fn with_context(config: &Config, is_watched: bool, work: impl AsyncFnOnce(Context<'_>) -> ExitCode) -> ExitCode {
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
            is_watched,
        })
        .await
    })
}

/// Prints what a wake did, and what is meant for the terminal and wasn't shown yet.
fn show_report(
    context: Context<'_>,
    store: &mut Store,
    report: &Report,
    view: &View,
    session: Option<&Session>,
) -> ExitCode {
    for note in &report.notes {
        complain(note);
    }
    let shown = if view.is_watched() {
        show_console(context, store, view, session)
    } else {
        notify(context, store).map(|()| Vec::new())
    };
    if view.json {
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
            complain(&format!("failed: {error}\n{KEPT}"));
            ExitCode::from(super::EXIT_FAILED)
        }
        (None, WakeOutcome::Failed) => ExitCode::from(super::EXIT_FAILED),
        (None, _) => ExitCode::SUCCESS,
    }
}

/// Shows texts for the terminal: printed first, then marked, so that one is rather shown twice than never. One that couldn't be
/// printed waits.
fn show_console(
    context: Context<'_>,
    store: &mut Store,
    view: &View,
    session: Option<&Session>,
) -> Result<Vec<String>, StoreError> {
    let mut shown = Vec::new();
    for (id, text) in store.console_unshown(session)? {
        if !view.json && !out::print_exactly(&format!("{}\n", on_page(context.config, text.trim_end()))) {
            break;
        }
        store.mark_shown(id, context.clock.now())?;
        shown.push(text);
    }
    Ok(shown)
}

/// Markdown is laid out on a terminal, and stays as it is elsewhere.
fn on_page(config: &Config, text: &str) -> String {
    match (out::is_terminal(), config.no_color) {
        (false, _) => without_escapes(text),
        (true, true) => render::terminal(text, Looks::Plain),
        (true, false) => render::terminal(text, Looks::Ansi),
    }
}

/// Tells a person at their desktop what waits in the terminal, if they can be told. It waits all the same.
fn notify(context: Context<'_>, store: &mut Store) -> Result<(), StoreError> {
    if !context.config.has_desktop {
        return Ok(());
    }
    let waiting = store.to_notify()?;
    let (told, more) = waiting.split_at(waiting.len().min(MAX_NOTIFIED));
    for (_, text) in told {
        desktop::notify(&context.redactor.redact(text));
    }
    if !more.is_empty() {
        desktop::notify(&format!("{} more in the terminal: `wake --once` shows them.", more.len()));
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = waiting.iter().map(|(id, _)| *id).collect();
    store.mark_notified(&ids, context.clock.now())
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
            assert!(Arguments::try_parse_from(line.split(' ')).unwrap().json(), "{line}");
        }
        assert!(!Arguments::try_parse_from(["wake", "log"]).unwrap().json());
    }
}
