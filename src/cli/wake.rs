//! `wake`: does the due work once, stays running to do it whenever it is due, or shows what wakes did.

use std::{cell::Cell, process::ExitCode};

use tokio::sync::watch;

use reveille_base::{types::ChatRef, words::format_count};
use reveille_channels::Channel;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Report, Terminal, WakeError, WakeOutcome},
    decide::budget::Budget,
};
use reveille_git::RepoError;
use reveille_model::create_model;
use reveille_store::{
    Order, Store, compute_retry_wait, database,
    in_force::load_effective_config,
    wake_lock::waker::{self, Starting},
};

use super::{
    OutputFormat, WakeSettings, approvals,
    arguments::{Arguments, WakeCommand},
    backup, chat, complain, cost, history, jobs, log, logs, mcp, memory, name,
    out::{self, Working},
    page, policy,
    preview::TerminalPreview,
    queue, recordings, remind, report_failure,
    say::{self, Said},
    shell,
    show::{AskedWhere, Here, KEPT, ReportView, describe_next_step, exit_code, report_failed_wake, show_report},
    story::{self, ShowAs},
    task, turn, within,
};
use crate::orders::{self, undo::UndoAnswer};

/// The reason passed to the wake of `wake undo`.
const UNDO: &str = "undo";
/// The terminal's temporary line while a wake works.
const WORKING: &str = "working…";

pub(super) fn main() -> ExitCode {
    reveille_base::process::forbid_core_files();
    match within::main() {
        Some(code) => code,
        None if super::is_version_asked() => out::final_exit_code(super::tell_version()),
        None => out::final_exit_code(run(&Arguments::from_process())),
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    // These commands need no settings, so invalid ones don't stop them.
    match &arguments.command {
        Some(WakeCommand::Completions { shell, program }) => return shell::print_completions(*shell, *program),
        Some(WakeCommand::Man { command, program }) => return shell::print_manual(*program, command),
        // This command must work even if the settings can't be loaded.
        Some(WakeCommand::Init(init)) => return super::init::run(&arguments.settings, init, arguments.output_format()),
        Some(WakeCommand::Install(install)) => return super::install::run(&arguments.settings, install),
        // A fleet has its own settings.
        #[cfg(feature = "fleet")]
        Some(WakeCommand::Fleet { command }) => return super::fleet::run(command),
        #[cfg(feature = "fleet")]
        None if let Some(dir) = &arguments.fleet.fleet => {
            return super::fleet::run_due_turns(dir, arguments);
        }
        _ => {}
    }
    let logs_as = if matches!(arguments.command, Some(WakeCommand::Page(_))) { "page" } else { "wake" };
    let config = match super::set_up(&arguments.settings, arguments.log_volume(), logs_as) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let format = arguments.output_format();
    let view = |asked| ReportView { format, asked, is_hidden: arguments.no_console };
    match &arguments.command {
        Some(WakeCommand::Say { text, .. }) => send_statement(&config, &view(AskedWhere::Here), "say", text),
        Some(WakeCommand::Chat) => chat::run(&config),
        Some(WakeCommand::Init(init)) => super::init::run(&arguments.settings, init, format),
        Some(WakeCommand::Install(install)) => super::install::run(&arguments.settings, install),
        Some(WakeCommand::Undo { id, .. }) => order_undo(&config, &view(AskedWhere::Here), id.as_deref()),
        Some(WakeCommand::Stop) => order_stop(&config),
        Some(WakeCommand::Resume) => order_resume(&config),
        Some(WakeCommand::Queue { action }) => queue::run(&config, action, format),
        Some(WakeCommand::Jobs { command, .. }) => jobs::run(&config, command.as_ref(), format),
        Some(WakeCommand::Recordings { action, .. }) => recordings::run(&config, action.as_ref(), format),
        Some(WakeCommand::Memory { command }) => memory::run(&config, command, format),
        Some(WakeCommand::Approvals { action }) => match approvals::run(&config, action, format) {
            Some(code) => code,
            None => wake_once(&config, &view(AskedWhere::Here), "approval"),
        },
        Some(WakeCommand::Policy { action }) => policy::run(&config, action.as_ref(), format),
        Some(WakeCommand::Mcp(mcp)) => match mcp::begin_task(&config, mcp) {
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
        Some(WakeCommand::Backup { command }) => backup::run(&config, command, format),
        #[cfg(feature = "import")]
        Some(WakeCommand::Import(import)) => super::import::run(&config, import, format),
        Some(WakeCommand::Task { command }) => task::run(&config, command, format),
        Some(WakeCommand::Remind(remind)) => remind::run(&config, remind, format),
        Some(WakeCommand::Status { .. }) => super::health::show_status(&config, format),
        Some(WakeCommand::Today { .. }) => remind::show_today(&config, format),
        Some(WakeCommand::Name(arguments)) => name::run(&config, arguments),
        Some(WakeCommand::Page(arguments)) => page::run(&config, arguments),
        Some(WakeCommand::Cost(cost)) => cost::run(&config, cost, format),
        Some(WakeCommand::Log(log)) => history::list_actions(&config, log, format),
        Some(WakeCommand::Logs(arguments)) => logs::run(&config, arguments),
        Some(WakeCommand::Show { id, raw, .. }) => {
            let show_as = match (raw, format) {
                (true, _) => ShowAs::Raw,
                (false, OutputFormat::Json) => ShowAs::Json,
                (false, OutputFormat::Text) => ShowAs::Text { is_whole: arguments.verbose },
            };
            story::show(&config, id.as_deref(), show_as)
        }
        #[cfg(feature = "trial")]
        Some(WakeCommand::Replay(arguments)) => {
            with_context(&config, async |context| super::replay::run(context, arguments, format).await)
        }
        #[cfg(feature = "trial")]
        Some(WakeCommand::Eval(arguments)) => {
            with_context(&config, async |context| Box::pin(super::eval::run(context, arguments, format)).await)
        }
        Some(WakeCommand::Completions { .. } | WakeCommand::Man { .. }) => ExitCode::SUCCESS,
        #[cfg(feature = "fleet")]
        Some(WakeCommand::Fleet { .. }) => ExitCode::SUCCESS,
        None => match &arguments.say {
            Some(text) => {
                send_statement(&config, &view(AskedWhere::Here), &arguments.reason, std::slice::from_ref(text))
            }
            None if arguments.turn => run_turn(&config, &arguments.reason),
            None if arguments.once => wake_once(&config, &view(AskedWhere::Nowhere), &arguments.reason),
            None => stay_awake(&config, &view(AskedWhere::Nowhere)),
        },
    }
}

/// Sends the first message after the set-up.
pub(super) fn send_first_message(config: &Config, text: &str) -> ExitCode {
    let view = ReportView { format: OutputFormat::Text, asked: AskedWhere::Here, is_hidden: false };
    send_statement(config, &view, "say", &[text.to_owned()])
}

/// Sends a statement from the terminal, and shows the answer.
fn send_statement(config: &Config, view: &ReportView, reason: &str, words: &[String]) -> ExitCode {
    let text = match say::read_text(words) {
        Ok(text) => text,
        Err(why) => {
            complain(&why.to_string());
            return ExitCode::from(super::EXIT_USAGE);
        }
    };
    let trigger = clean_reason(reason);
    with_context(config, async |context| {
        (context.at_work)();
        let working = Working::start(WORKING);
        let preview = TerminalPreview::show_until_dropped(config, WORKING);
        let said = match say::say_and_wait(context, &trigger, &text, (view, &working)).await {
            Ok(said) => said,
            Err(error) => {
                let kept = format!("Your message was NOT stored. {} Then send it again.", describe_next_step(&error));
                return report_failed_wake(context, view, &error, &kept);
            }
        };
        drop(preview);
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
                report_failed_wake(context, view, &error, kept)
            }
        };
        // If this fails, the session is forgotten with the process.
        store.terminals_mut().close_session(&session).ok();
        code
    })
}

/// Runs a wake for all due work.
fn wake_once(config: &Config, view: &ReportView, reason: &str) -> ExitCode {
    let trigger = clean_reason(reason);
    with_context(config, async |context| {
        let working = (view.asked == AskedWhere::Here || out::is_terminal()).then(|| Working::start(WORKING));
        let mut store = match cycle::open_store(context.config) {
            Ok(store) => store,
            Err(error) => return report_failed_wake(context, view, &error, describe_next_step(&error)),
        };
        let here = Here { context, session: None, working: working.as_ref() };
        let result = run_wake(Context { terminal: view.terminal_mode(&here), ..context }, &mut store, &trigger).await;
        drop(working);
        match result {
            Ok(mut report) => {
                if trigger == UNDO && report.outcome == WakeOutcome::Locked {
                    report.notes.push("Another wake is running: I'll undo this right after it.".to_owned());
                }
                show_report(context, &mut store, &report, view, None)
            }
            Err(error) => report_failed_wake(context, view, &error, KEPT),
        }
    })
}

/// Runs a wake for someone at this terminal.
pub(super) fn once_here(config: &Config) -> ExitCode {
    wake_once(config, &ReportView { format: OutputFormat::Text, asked: AskedWhere::Here, is_hidden: false }, "fix")
}

/// Runs one turn of a fleet's assistant: one cycle at most, then the report of the waiting work.
fn run_turn(config: &Config, reason: &str) -> ExitCode {
    let trigger = clean_reason(reason);
    with_context(config, async |context| {
        let worked = async {
            let mut store = cycle::open_store(context.config)?;
            run_wake(Context { is_turn: true, ..context }, &mut store, &trigger).await
        };
        let ended = worked.await.map(|report| report.error);
        let due = turn::print_due_work(config, context.clock.now());
        match (ended, due) {
            (Ok(None), Ok(())) => ExitCode::SUCCESS,
            (Ok(Some(error)), _) => report_failure(&context.redactor.redact(&error)),
            (Err(error), _) => report_failure(&context.redactor.redact(&error.to_string())),
            (_, Err(error)) => report_failure(&error),
        }
    })
}

/// Cleans a reason so that it fits a commit trailer.
fn clean_reason(reason: &str) -> String {
    reason.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect()
}

/// Orders an undo, and runs the wake that does it. If another wake runs, the undo follows it.
fn order_undo(config: &Config, view: &ReportView, id: Option<&str>) -> ExitCode {
    let asked = cycle::open_store(config)
        .and_then(|mut store| Ok(orders::undo::order_undo(&mut store, config, config.clock().now(), id)?));
    match asked {
        Ok(UndoAnswer::Ordered(what)) => {
            complain(&format!("Undoing {what}."));
            wake_once(config, view, UNDO)
        }
        Ok(UndoAnswer::Refused(why)) => {
            complain(&format!("{why} `wake log` lists what I did."));
            ExitCode::from(super::EXIT_FAILED)
        }
        Err(error) => report_failure(&error),
    }
}

fn order_stop(config: &Config) -> ExitCode {
    let ordered = cycle::open_store(config).and_then(|mut store| {
        Ok((
            store.inbox_mut().carry_out_order(&Order::Stop { is_owners: true }, config.clock().now())?,
            store.chats().find_stop_order()?,
        ))
    });
    match ordered {
        Ok(((), stopped)) => {
            cycle::stop::end_children(&config.lock_path());
            complain(&stopped.map(|stopped| cycle::stop::render_notice(stopped, config.timezone)).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => report_failure(&error),
    }
}

fn order_resume(config: &Config) -> ExitCode {
    let ordered = cycle::open_store(config).and_then(|mut store| {
        Ok((
            store.chats().is_work_stopped(Some(ChatRef::TERMINAL))?,
            store.inbox_mut().carry_out_order(&Order::Resume { is_owners: true }, config.clock().now())?,
        ))
    });
    match ordered {
        Ok((is_stopped, ())) => {
            complain(match is_stopped {
                true => "Resuming, oldest work first.",
                false => "Nothing was stopped, so there is nothing to resume.",
            });
            ExitCode::SUCCESS
        }
        Err(error) => report_failure(&error),
    }
}

/// Explains why a new message started no cycle: a stop, the model's back-off, or a spent budget.
pub(super) fn why_it_waits(context: Context<'_>, store: &Store) -> Option<String> {
    if store.chats().find_stop_order().ok()?.is_some() {
        return Some("Your message is safe; I'll answer it after `wake resume`.".to_owned());
    }
    if store.chats().is_work_stopped(Some(ChatRef::TERMINAL)).ok()? {
        let why = "You have paused my work for the terminal. Your message is safe; I'll answer it after `wake resume`.";
        return Some(why.to_owned());
    }
    let config = load_effective_config(context.config, store).ok()?;
    let model = cycle::read_model_state(store, &config, context.clock.now()).ok()?;
    let cap = model.out_of_budget(Some(ChatRef::TERMINAL));
    if model.find_model(ChatRef::TERMINAL).is_some() {
        return None;
    }
    let until = match cycle::find_retry_time(store, &config, context.clock.now()).ok().flatten() {
        Some(at) if cap.is_none() => {
            let at = at.with_timezone(&context.config.timezone);
            format!("the AI model couldn't be reached; I'll try again at {}", at.format("%H:%M:%S"))
        }
        _ => Budget::read(store, context.config, context.clock.now()).ok()?.find_obstacle(Some(ChatRef::TERMINAL))?,
    };
    Some(format!("Your message is safe: {until}."))
}

/// Runs one wake.
pub(super) async fn run_wake(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    if waker::is_by_itself(trigger) {
        waker::leave_sign(context.config, context.clock.now());
    }
    store.people_mut().readmit_people(&context.config.allowed_chats)?;
    let settings = WakeSettings::load(context, store)?;
    cycle::run_wake(settings.apply_to(context), store, trigger).await
}

/// Renders the greeting of a wake that stays running: its state, and other commands.
fn render_greeting(context: Context<'_>) -> String {
    let waiting = match database::open_read_only(context.config) {
        Ok(Some(store)) => store.inbox().queue_depth().map_or(0, |(depth, _)| usize::try_from(depth).unwrap_or(0)),
        _ => 0,
    };
    let model = match context.model.name() {
        OFFLINE_MODEL => "without an AI model (offline)".to_owned(),
        name => format!("with {name}"),
    };
    format!(
        "I'm awake {model}, {} waiting. I'll work whenever something is due; Ctrl-C stops me. Also: `wake chat`, `wake today`, \
         `wake page`, `wake status`, `wake init`; `wake --help` lists all.",
        format_count(waiting, "message")
    )
}

/// Runs a wake whenever something is due, until asked to end.
fn stay_awake(config: &Config, view: &ReportView) -> ExitCode {
    with_context(config, async |context| {
        let mut stop = context.stop.clone();
        let mut failures = 0;
        (context.at_work)();
        let _shown = Starting::Stay.mark_process(config);
        tracing::info!("staying; SIGTERM ends it");
        if out::is_terminal() {
            complain(&render_greeting(context));
        }
        loop {
            // Secrets may have been added meanwhile, for example in mcp.toml.
            let redactor = super::build_redactor(config);
            let context = Context { redactor: &redactor, ..context };
            let result = async {
                let mut store = cycle::open_store(config)?;
                let here = Here { context, session: None, working: None };
                let context = Context { terminal: view.terminal_mode(&here), ..context };
                let report = run_wake(context, &mut store, "stay").await?;
                Ok::<_, WakeError>((report, store))
            };
            let result = result.await;
            failures = if result.is_err() { failures + 1 } else { 0 };
            match result {
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
                failures => compute_retry_wait(failures).to_std().unwrap_or(cycle::LOOK_EVERY),
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return ExitCode::SUCCESS,
                () = tokio::time::sleep(wait) => {}
            }
        }
    })
}

/// Builds the context and runs `work` on one thread. A signal ends the work.
fn with_context(config: &Config, work: impl AsyncFnOnce(Context<'_>) -> ExitCode) -> ExitCode {
    with_signals(config, super::listen_for_signals, work)
}

/// Does the same as [`with_context`] with another signal handler: `hear` gets the sender that ends the work.
pub(super) fn with_signals(
    config: &Config,
    hear: impl FnOnce(watch::Sender<bool>) -> std::io::Result<()>,
    work: impl AsyncFnOnce(Context<'_>) -> ExitCode,
) -> ExitCode {
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    let (model, telegram) = match (create_model(config.effective_model(), config), super::connect_telegram(config)) {
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
        let pending_handler = Cell::new(Some((hear, sender.clone())));
        let at_work = || {
            if let Some(Err(error)) = pending_handler.take().map(|(hear, sender)| hear(sender)) {
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
