//! `wake`: does due work once, stays and wakes by itself, or shows the work of wakes.

use std::{cell::Cell, process::ExitCode};

use tokio::sync::watch;

use reveille_base::{types::ChatRef, words::count};
use reveille_channels::Channel;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Report, Terminal, WakeError, WakeOutcome},
    decide::budget::Budget,
};
use reveille_git::RepoError;
use reveille_model::configured;
use reveille_store::{
    Order, Store, database,
    in_force::in_force,
    wait_after,
    wake_lock::waker::{self, Starting},
};

use super::{
    WakeSettings, approvals,
    arguments::{Arguments, WakeCommand},
    backup, chat, complain, cost, failed, history, jobs, log, logs, mcp, memory, name,
    out::{self, Working},
    page, policy, queue, recordings, remind,
    say::{self, Said},
    shell,
    show::{AskedWhere, Here, KEPT, ReportView, exit_code, fail, show_report, what_to_do},
    story::{self, ShowAs},
    task, turn, within,
};
use crate::orders::{self, undo::UndoAsked};

/// The reason passed to the wake of `wake undo`.
const UNDO: &str = "undo";
/// The terminal's temporary line while a wake works.
const WORKING: &str = "working…";

pub(super) fn main() -> ExitCode {
    reveille_base::process::forbid_core_files();
    match within::main() {
        Some(code) => code,
        None if super::is_version_asked() => out::end(super::tell_version()),
        None => out::end(run(&Arguments::of_this_process())),
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    // These commands need no settings, so wrong ones don't prevent them.
    match &arguments.command {
        Some(WakeCommand::Completions { shell, program }) => return shell::completions(*shell, *program),
        Some(WakeCommand::Man { command, program }) => return shell::man(*program, command),
        // This command must work even if the settings can't be loaded.
        Some(WakeCommand::Init(init)) => return super::init::run(&arguments.settings, init, arguments.json()),
        Some(WakeCommand::Install(install)) => return super::install::run(&arguments.settings, install),
        // A fleet has its own settings.
        #[cfg(feature = "fleet")]
        Some(WakeCommand::Fleet { command }) => return super::fleet::run(command),
        #[cfg(feature = "fleet")]
        None if let Some(dir) = &arguments.fleet.fleet => {
            return super::fleet::work(dir, arguments.once, arguments.fleet.workers);
        }
        _ => {}
    }
    let logs_as = if matches!(arguments.command, Some(WakeCommand::Page(_))) { "page" } else { "wake" };
    let config = match super::set_up(&arguments.settings, arguments.talk(), logs_as) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let json = arguments.json();
    let view = |asked| ReportView { json, asked, is_hidden: arguments.no_console };
    match &arguments.command {
        Some(WakeCommand::Say { text, .. }) => said(&config, &view(AskedWhere::Here), "say", text),
        Some(WakeCommand::Chat) => chat::run(&config),
        Some(WakeCommand::Init(init)) => super::init::run(&arguments.settings, init, json),
        Some(WakeCommand::Install(install)) => super::install::run(&arguments.settings, install),
        Some(WakeCommand::Undo { id, .. }) => undo(&config, &view(AskedWhere::Here), id.as_deref()),
        Some(WakeCommand::Stop) => stop(&config),
        Some(WakeCommand::Resume) => resume(&config),
        Some(WakeCommand::Queue { action }) => queue::run(&config, action, json),
        Some(WakeCommand::Jobs { command, .. }) => jobs::run(&config, command.as_ref(), json),
        Some(WakeCommand::Recordings { action, .. }) => recordings::run(&config, action.as_ref(), json),
        Some(WakeCommand::Memory { command }) => memory::run(&config, command, json),
        Some(WakeCommand::Approvals { action }) => match approvals::run(&config, action, json) {
            Some(code) => code,
            None => once(&config, &view(AskedWhere::Here), "approval"),
        },
        Some(WakeCommand::Policy { action }) => policy::run(&config, action.as_ref(), json),
        Some(WakeCommand::Mcp(mcp)) => match mcp::asked(&config, mcp) {
            mcp::McpTask::Done(code) => code,
            mcp::McpTask::Look(look) => with_context(&config, async |context| {
                (context.at_work)();
                look.run(context).await
            }),
            mcp::McpTask::Serve(address) => with_context(&config, async |context| {
                (context.at_work)();
                mcp::serve(context, address).await
            }),
        },
        #[cfg(feature = "postgres")]
        Some(WakeCommand::Store { command }) => super::store_move::run(&config, command),
        Some(WakeCommand::Backup { command }) => backup::run(&config, command, json),
        #[cfg(feature = "import")]
        Some(WakeCommand::Import(import)) => super::import::run(&config, import, json),
        Some(WakeCommand::Task { command }) => task::run(&config, command, json),
        Some(WakeCommand::Remind(remind)) => remind::run(&config, remind, json),
        Some(WakeCommand::Status { .. }) => super::health::status(&config, json),
        Some(WakeCommand::Today { .. }) => remind::today(&config, json),
        Some(WakeCommand::Name(arguments)) => name::run(&config, arguments),
        Some(WakeCommand::Page(arguments)) => page::run(&config, arguments),
        Some(WakeCommand::Cost(cost)) => cost::run(&config, cost, json),
        Some(WakeCommand::Log(log)) => history::log(&config, log, json),
        Some(WakeCommand::Logs(arguments)) => logs::run(&config, arguments),
        Some(WakeCommand::Show { id, raw, .. }) => {
            let show_as = match (raw, json) {
                (true, _) => ShowAs::Raw,
                (false, true) => ShowAs::Json,
                (false, false) => ShowAs::Text { is_whole: arguments.verbose },
            };
            story::show(&config, id.as_deref(), show_as)
        }
        #[cfg(feature = "trial")]
        Some(WakeCommand::Replay(arguments)) => {
            with_context(&config, async |context| super::replay::run(context, arguments, json).await)
        }
        #[cfg(feature = "trial")]
        Some(WakeCommand::Eval(arguments)) => {
            with_context(&config, async |context| Box::pin(super::eval::run(context, arguments, json)).await)
        }
        Some(WakeCommand::Completions { .. } | WakeCommand::Man { .. }) => ExitCode::SUCCESS,
        #[cfg(feature = "fleet")]
        Some(WakeCommand::Fleet { .. }) => ExitCode::SUCCESS,
        None => match &arguments.say {
            Some(text) => said(&config, &view(AskedWhere::Here), &arguments.reason, std::slice::from_ref(text)),
            None if arguments.turn => turn(&config, &arguments.reason),
            None if arguments.once => once(&config, &view(AskedWhere::Nowhere), &arguments.reason),
            None => stay(&config, &view(AskedWhere::Nowhere)),
        },
    }
}

/// Sends the first message after the set-up.
pub(super) fn first_words(config: &Config, text: &str) -> ExitCode {
    let view = ReportView { json: false, asked: AskedWhere::Here, is_hidden: false };
    said(config, &view, "say", &[text.to_owned()])
}

/// Sends a statement from the terminal, and shows the answer.
fn said(config: &Config, view: &ReportView, reason: &str, words: &[String]) -> ExitCode {
    let text = match say::text_of(words) {
        Ok(text) => text,
        Err(why) => {
            complain(&why.to_string());
            return ExitCode::from(super::EXIT_USAGE);
        }
    };
    let trigger = trigger(reason);
    with_context(config, async |context| {
        (context.at_work)();
        let working = Working::on(WORKING);
        let said = match say::say(context, &trigger, &text, (view, &working)).await {
            Ok(said) => said,
            Err(error) => {
                let kept = format!("Your message was NOT stored. {} Then say it again.", what_to_do(&error));
                return fail(context, view, &error, &kept);
            }
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
            Err(error) => {
                let kept = "Your message is stored: the next wake continues from here.";
                fail(context, view, &error, kept)
            }
        };
        // If this fails, the session is forgotten with the process.
        store.terminals_mut().close_session(&session).ok();
        code
    })
}

/// Runs a wake for all due work.
fn once(config: &Config, view: &ReportView, reason: &str) -> ExitCode {
    let trigger = trigger(reason);
    with_context(config, async |context| {
        let working = (view.asked == AskedWhere::Here || out::is_terminal()).then(|| Working::on(WORKING));
        let mut store = match cycle::open_store(context.config) {
            Ok(store) => store,
            Err(error) => return fail(context, view, &error, what_to_do(&error)),
        };
        let here = Here { context, session: None, working: working.as_ref() };
        let looked = look(Context { terminal: view.terminal(&here), ..context }, &mut store, &trigger).await;
        drop(working);
        match looked {
            Ok(mut report) => {
                if trigger == UNDO && report.outcome == WakeOutcome::Locked {
                    report.notes.push("Another wake runs: the undo is done right after it.".to_owned());
                }
                show_report(context, &mut store, &report, view, None)
            }
            Err(error) => fail(context, view, &error, KEPT),
        }
    })
}

/// Runs a wake for someone at this terminal.
pub(super) fn once_here(config: &Config) -> ExitCode {
    once(config, &ReportView { json: false, asked: AskedWhere::Here, is_hidden: false }, "fix")
}

/// Runs one turn of a fleet's assistant: one cycle at most, then the report of the waiting work.
fn turn(config: &Config, reason: &str) -> ExitCode {
    let trigger = trigger(reason);
    with_context(config, async |context| {
        let worked = async {
            let mut store = cycle::open_store(context.config)?;
            look(Context { is_turn: true, ..context }, &mut store, &trigger).await
        };
        let ended = worked.await.map(|report| report.error);
        let due = turn::print_due(config, context.clock.now());
        match (ended, due) {
            (Ok(None), Ok(())) => ExitCode::SUCCESS,
            (Ok(Some(error)), _) => failed(&context.redactor.redact(&error)),
            (Err(error), _) => failed(&context.redactor.redact(&error.to_string())),
            (_, Err(error)) => failed(&error),
        }
    })
}

/// Cleans a reason so that it fits a commit trailer.
fn trigger(reason: &str) -> String {
    reason.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

/// Orders an undo, and runs the wake that does it. If another wake runs, the undo follows it.
fn undo(config: &Config, view: &ReportView, id: Option<&str>) -> ExitCode {
    let asked = cycle::open_store(config)
        .and_then(|mut store| Ok(orders::undo::ask(&mut store, config, config.clock().now(), id)?));
    match asked {
        Ok(UndoAsked::Ordered(what)) => {
            complain(&format!("Undoing {what}."));
            once(config, view, UNDO)
        }
        Ok(UndoAsked::Refused(why)) => {
            complain(&format!("{why} `wake log` lists what was done."));
            ExitCode::from(super::EXIT_FAILED)
        }
        Err(error) => failed(&error),
    }
}

fn stop(config: &Config) -> ExitCode {
    let ordered = cycle::open_store(config).and_then(|mut store| {
        Ok((store.inbox_mut().order(&Order::Stop { is_owners: true }, config.clock().now())?, store.chats().stopped()?))
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
    let ordered = cycle::open_store(config).and_then(|mut store| {
        Ok((
            store.chats().is_stopped_for(Some(ChatRef::TERMINAL))?,
            store.inbox_mut().order(&Order::Resume { is_owners: true }, config.clock().now())?,
        ))
    });
    match ordered {
        Ok((is_stopped, ())) => {
            complain(match is_stopped {
                true => "Resuming, oldest work first.",
                false => "Nothing was stopped.",
            });
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// Explains why a new message started no cycle: a stop, the model's back-off, or a spent budget.
pub(super) fn why_it_waits(context: Context<'_>, store: &Store) -> Option<String> {
    if store.chats().stopped().ok()?.is_some() {
        return Some("Your message is safe, and will be answered after `wake resume`.".to_owned());
    }
    if store.chats().is_stopped_for(Some(ChatRef::TERMINAL)).ok()? {
        let why =
            "You have paused my work for the terminal: your message is safe, and will be answered after `wake resume`.";
        return Some(why.to_owned());
    }
    let config = in_force(context.config, store).ok()?;
    let model = cycle::model_state(store, &config, context.clock.now()).ok()?;
    let cap = model.out_of_budget(Some(ChatRef::TERMINAL));
    if model.asked(ChatRef::TERMINAL).is_some() {
        return None;
    }
    let until = match cycle::model_again_at(store, &config, context.clock.now()).ok().flatten() {
        Some(at) if cap.is_none() => {
            let at = at.with_timezone(&context.config.timezone);
            format!("the AI model couldn't be reached; I'll try again at {}", at.format("%H:%M:%S"))
        }
        _ => Budget::look(store, context.config, context.clock.now()).ok()?.in_the_way(Some(ChatRef::TERMINAL))?,
    };
    Some(format!("Your message is safe: {until}."))
}

/// Runs one wake.
pub(super) async fn look(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    if waker::is_by_itself(trigger) {
        waker::leave_sign(context.config, context.clock.now());
    }
    store.people_mut().readmit(&context.config.allowed_chats)?;
    let settings = WakeSettings::look(context, store)?;
    cycle::once(settings.context(context), store, trigger).await
}

/// Renders the text at the start of a staying wake: its state, and other commands.
fn staying(context: Context<'_>) -> String {
    let waiting = match database::look(context.config) {
        Ok(Some(store)) => store.inbox().queue_depth().map_or(0, |(depth, _)| usize::try_from(depth).unwrap_or(0)),
        _ => 0,
    };
    let model = match context.model.name() {
        OFFLINE_MODEL => "without an AI model (offline)".to_owned(),
        name => format!("with {name}"),
    };
    format!(
        "I'm awake {model}, {} waiting, and work whenever something is due; Ctrl-C ends that. Also: `wake chat`, `wake today`, `wake \
         page`, `wake status`, `wake init`; `wake --help` lists all.",
        count(waiting, "message")
    )
}

/// Wakes whenever something is due, until asked to end.
fn stay(config: &Config, view: &ReportView) -> ExitCode {
    with_context(config, async |context| {
        let mut stop = context.stop.clone();
        let mut failures = 0;
        (context.at_work)();
        let _shown = Starting::Stay.show(config);
        tracing::info!("staying; SIGTERM ends it");
        if out::is_terminal() {
            complain(&staying(context));
        }
        loop {
            // Secrets may have been added meanwhile, for example in mcp.toml.
            let redactor = super::redactor(config);
            let context = Context { redactor: &redactor, ..context };
            let looked = async {
                let mut store = cycle::open_store(config)?;
                let here = Here { context, session: None, working: None };
                let context = Context { terminal: view.terminal(&here), ..context };
                let report = look(context, &mut store, "stay").await?;
                Ok::<_, WakeError>((report, store))
            };
            let looked = looked.await;
            failures = if looked.is_err() { failures + 1 } else { 0 };
            match looked {
                // Another wake does the due work.
                Ok((report, _)) if matches!(report.outcome, WakeOutcome::Idle | WakeOutcome::Locked) => {}
                Ok((report, mut store)) => {
                    show_report(context, &mut store, &report, view, None);
                }
                Err(error) => {
                    let why = context.redactor.redact(&error.to_string());
                    complain(&format!("failed: {why}"));
                    tracing::error!(target: log::TOLD, %why, "the wake failed");
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

/// Connects the parts and runs `work` on one thread. A signal ends it.
fn with_context(config: &Config, work: impl AsyncFnOnce(Context<'_>) -> ExitCode) -> ExitCode {
    with_signals(config, super::hear, work)
}

/// The same with another signal handler: `hear` gets the sender that ends the work.
pub(super) fn with_signals(
    config: &Config,
    hear: impl FnOnce(watch::Sender<bool>) -> std::io::Result<()>,
    work: impl AsyncFnOnce(Context<'_>) -> ExitCode,
) -> ExitCode {
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let (model, telegram) = match (configured(config.effective_model(), config), super::telegram(config)) {
        (Ok(model), Ok(telegram)) => (model, telegram),
        (Err(error), _) | (_, Err(error)) => {
            complain(&error);
            return ExitCode::from(super::EXIT_CONFIG);
        }
    };
    let (clock, redactor) = (config.clock(), super::log::redactor(config));
    runtime.block_on(async {
        let (sender, stop) = tokio::sync::watch::channel(false);
        // One sender stays here, since a closed channel would look like a signal.
        let unheard = Cell::new(Some((hear, sender.clone())));
        let at_work = || {
            if let Some(Err(error)) = unheard.take().map(|(hear, sender)| hear(sender)) {
                tracing::warn!("signals can't be heard ({error}): one ends this wake at once, and the next continues");
            }
        };
        work(Context {
            config,
            version: crate::VERSION,
            clock: clock.as_ref(),
            model: model.as_ref(),
            channel: telegram.as_ref().map(|telegram| telegram as &dyn Channel),
            redactor: &redactor,
            stop: &stop,
            at_work: &at_work,
            terminal: Terminal::Unwatched,
            is_turn: false,
            stand_in: None,
        })
        .await
    })
}
