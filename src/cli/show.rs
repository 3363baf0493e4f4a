//! Shows the results of a wake: rendered on a terminal, unchanged elsewhere, or as JSON. Unseen texts wait, and a
//! desktop notification hints at them.

use std::process::ExitCode;

use reveille_base::{approval_text::remove_hidden, types::ChatRef};
use reveille_channels::desktop;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::context::{Context, Report, Screen, Terminal, WakeError, WakeOutcome};
use reveille_git::RepoError;
use reveille_memory::{
    outside,
    render::{self, Looks, without_escapes},
};
use reveille_store::{Store, StoreError, TerminalSession, in_force::load_effective_config};

use super::{
    EXIT_CONFIG, EXIT_FAILED, OutputFormat, complain, log,
    out::{self, Working},
    print_json, report_failure,
};

/// Maximum number of separate desktop notifications; one more summarises the rest.
const MAX_NOTIFIED: usize = 3;
/// The terminal's temporary line while a wake pushes after its answer.
const SAVING: &str = "saving…";
/// The fate of the queue if a wake fails.
pub(super) const KEPT: &str = "Queued messages are safe; the next wake continues from here.";

/// Tells if someone at this terminal waits for a wake's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedWhere {
    /// The person asked for it by this very command.
    Here,
    /// Nobody at this terminal asked: the wake belongs to cron or the bot, or a person only watches.
    Nowhere,
}

/// The form in which a wake's results are shown.
pub(super) struct ReportView {
    pub(super) format: OutputFormat,
    pub(super) asked: AskedWhere,
    /// `true` to show nothing at all.
    pub(super) is_hidden: bool,
}

impl ReportView {
    /// Returns `true` if printed texts for the terminal count as shown. Texts in cron's mail don't.
    pub(super) fn is_watched(&self) -> bool {
        !self.is_hidden && (self.format.is_json() || self.asked == AskedWhere::Here || out::is_terminal())
    }

    /// Returns the terminal's mode for a wake. Someone who waits sees texts on `screen` at once, or gets one document
    /// at the end.
    pub(super) fn terminal_mode<'a>(&self, screen: &'a dyn Screen) -> Terminal<'a> {
        match (self.format, self.asked) {
            _ if !self.is_watched() => Terminal::Unwatched,
            (OutputFormat::Json, AskedWhere::Here) => Terminal::AtEnd,
            (OutputFormat::Json, AskedWhere::Nowhere) => Terminal::Later,
            (OutputFormat::Text, _) => Terminal::AtOnce(screen),
        }
    }
}

/// This terminal while a wake works.
pub(super) struct Here<'a> {
    pub(super) context: Context<'a>,
    pub(super) session: Option<&'a TerminalSession>,
    pub(super) working: Option<&'a Working>,
}

impl Screen for Here<'_> {
    fn show(&self, store: &mut Store) -> Result<(), StoreError> {
        show_console(self.context, store, self.session)
    }

    fn announce_saving(&self) {
        if let Some(working) = self.working {
            working.say(SAVING);
        }
    }
}

/// Prints a wake's report, and the texts for the terminal that weren't shown yet.
pub(super) fn show_report(
    context: Context<'_>,
    store: &mut Store,
    report: &Report,
    view: &ReportView,
    session: Option<&TerminalSession>,
) -> ExitCode {
    for note in &report.notes {
        complain(note);
    }
    let shown = match (view.is_watched(), view.format) {
        (true, OutputFormat::Json) => print_document(context, store, report, session),
        (true, OutputFormat::Text) => show_console(context, store, session),
        (false, OutputFormat::Json) => {
            print_json(&for_print(report));
            Ok(())
        }
        (false, OutputFormat::Text) => Ok(()),
    };
    // Texts shown here need no notification.
    if let Err(error) = shown.and_then(|()| notify(context, store)) {
        return report_failure(&error);
    }
    match (&report.error, report.outcome) {
        (Some(error), _) => {
            explain_failure(error);
            ExitCode::from(EXIT_FAILED)
        }
        (None, WakeOutcome::Failed) => ExitCode::from(EXIT_FAILED),
        (None, _) => ExitCode::SUCCESS,
    }
}

/// Explains the failure of a wake, unless this terminal has just shown it.
pub(super) fn explain_failure(error: &str) {
    if !out::has_just_said(&remove_hidden(error)) {
        complain(&format!("failed: {error}\n{KEPT}"));
        tracing::error!(target: log::TOLD, why = error, "the wake failed");
    }
}

/// Prepares the report for printing: removes hidden marks from answers and all hidden characters from the rest.
fn for_print(report: &Report) -> Report {
    let mut report = report.clone();
    let ours = report.notes.iter_mut().chain(&mut report.error);
    ours.for_each(|text| *text = remove_hidden(text).into_owned());
    report.replies.iter_mut().for_each(|reply| reply.text = outside::strip_marks(&reply.text).into_owned());
    report
}

/// Prints the report with all texts for the terminal, and then marks them as [`show_console`] does.
fn print_document(
    context: Context<'_>,
    store: &mut Store,
    report: &Report,
    session: Option<&TerminalSession>,
) -> Result<(), StoreError> {
    let mut report = for_print(report);
    let unshown = store.terminals().console_unshown(session)?;
    for (_, text) in &unshown {
        // Unseen replies of earlier wakes are shown now.
        let reply = cycle::Reply { chat: ChatRef::TERMINAL, text: text.clone() };
        if !report.replies.contains(&reply) {
            report.replies.push(reply);
        }
    }
    if out::print_json_checked(&report) {
        unshown.iter().try_for_each(|(id, _)| store.terminals_mut().record_shown_text(*id, context.clock.now()))?;
    }
    Ok(())
}

/// Shows texts for the terminal: prints first, then marks, so a text is rather shown twice than never. An unprinted
/// text waits.
fn show_console(context: Context<'_>, store: &mut Store, session: Option<&TerminalSession>) -> Result<(), StoreError> {
    for (id, text) in store.terminals().console_unshown(session)? {
        if !out::print_exactly(&format!("{}\n", render_for_terminal(context.config, text.trim_end()))) {
            break;
        }
        store.terminals_mut().record_shown_text(id, context.clock.now())?;
    }
    Ok(())
}

/// Renders Markdown on a terminal, and leaves it unchanged elsewhere.
pub(super) fn render_for_terminal(config: &Config, text: &str) -> String {
    match (out::is_terminal(), config.no_color) {
        (false, _) => without_escapes(text),
        (true, true) => render::wrap_text(&render::render_terminal(text, Looks::Plain), out::columns()),
        (true, false) => render::wrap_text(&render::render_terminal(text, Looks::Ansi), out::columns()),
    }
}

/// Prints Markdown for people, rendered on a terminal and unchanged elsewhere.
pub(super) fn print_page(config: &Config, text: &str) {
    out::print_exactly(&format!("{}\n", render_for_terminal(config, text.trim_end())));
}

/// Sends desktop notifications about texts that wait in the terminal, and about reminders and questions in the owner's
/// chat. Failures are ignored; the texts still wait.
pub(super) fn notify(context: Context<'_>, store: &mut Store) -> Result<(), StoreError> {
    if !context.config.has_desktop {
        return Ok(());
    }
    let owner = load_effective_config(context.config, store)?.owner_chat;
    let waiting = store.terminals().to_notify(owner, context.clock.now())?;
    let (told, more) = waiting.split_at(waiting.len().min(MAX_NOTIFIED));
    for (_, text) in told {
        desktop::notify(&context.redactor.redact(text));
    }
    if !more.is_empty() {
        desktop::notify(&format!("{} more wait: `wake today` and `wake --once` show them.", more.len()));
    }
    if waiting.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = waiting.iter().map(|(id, _)| *id).collect();
    store.terminals_mut().record_notified_texts(&ids, context.clock.now())
}

/// Explains the failure of a wake and what was kept.
pub(super) fn report_failed_wake(context: Context<'_>, view: &ReportView, error: &WakeError, kept: &str) -> ExitCode {
    let why = context.redactor.redact(&error.to_string());
    if view.format.is_json() {
        let report = Report { outcome: WakeOutcome::Failed, error: Some(why.clone()), ..Report::default() };
        print_json(&for_print(&report));
    }
    complain(&format!("failed: {why}\n{kept}"));
    tracing::error!(target: log::TOLD, %why, "the wake failed");
    exit_code(error)
}

/// Returns advice for a failure to store.
pub(super) fn describe_next_step(error: &WakeError) -> &'static str {
    match error {
        WakeError::Store(StoreError::Damaged(_)) => "`health check` says how to save what is in the database.",
        WakeError::Store(StoreError::Newer { .. }) => "Please update this program.",
        WakeError::Store(StoreError::Gone { .. }) => "Put the file back, or start a new one, as described above.",
        WakeError::Store(StoreError::Busy) => "Wait until the other program is done.",
        WakeError::Store(StoreError::Server(_)) => {
            "Check that the server of DATABASE_URL is running and accepts this machine; what is stored there is kept."
        }
        _ => "Check that the disk has room and the workspace is writable; `health check` tells more.",
    }
}

/// Returns the exit code for a failed wake.
pub(super) fn exit_code(error: &WakeError) -> ExitCode {
    match error {
        WakeError::Repo(RepoError::Configuration(_)) => ExitCode::from(EXIT_CONFIG),
        _ => ExitCode::from(EXIT_FAILED),
    }
}
