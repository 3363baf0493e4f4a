//! `wake say`: stores a person's statement at a terminal, has it answered by this wake or the running one, and shows
//! the answer.

use std::{
    io::{IsTerminal as _, Read as _},
    time::Duration,
};

use tokio::time::Instant;

use reveille_base::{process::Identity, types::ChatRef};
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Report, WakeError, WakeOutcome},
    stop,
};
use reveille_store::{Awaited, LandedFile, Store, TerminalSession};

use super::{
    out::Working,
    show::{Here, ReportView},
    wake::run_wake,
};
use crate::bot::{AfterPut, MAX_SAID_BYTES, StoredStatement, store_terminal_statement};

/// How long to wait for another wake's answer.
const WAIT_FOR_ANOTHER: Duration = Duration::from_secs(20);
/// How often to check meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The reason why nothing was stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsaid {
    /// There are no words and no standard input to read.
    #[error(
        "Say what? Nothing was queued. Usage: `wake say 'remind me to stretch at 5'`, or from a file: `wake say < note.txt`."
    )]
    NoText,
    #[error("The text is empty. Nothing was queued.")]
    Empty,
    #[error("The text is longer than {MAX_SAID_BYTES} bytes. Nothing was queued.")]
    TooLong,
    #[error("Standard input can't be read: {0}. Nothing was queued.")]
    Unreadable(std::io::Error),
}

/// Joins the words of the arguments. Reads standard input for `-`, or if there are no words and standard input isn't a terminal.
pub(super) fn read_text(words: &[String]) -> Result<String, Unsaid> {
    let text = match words {
        [] if std::io::stdin().is_terminal() => return Err(Unsaid::NoText),
        [] => read_stdin()?,
        [dash] if dash == "-" => read_stdin()?,
        words => words.join(" "),
    };
    match text.trim() {
        "" if words.is_empty() => Err(Unsaid::NoText),
        "" => Err(Unsaid::Empty),
        _ if text.len() as u64 > MAX_SAID_BYTES => Err(Unsaid::TooLong),
        text => Ok(text.to_owned()),
    }
}

/// Reads up to one byte over the limit, so a longer text is refused rather than cut.
fn read_stdin() -> Result<String, Unsaid> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_SAID_BYTES + 1).read_to_end(&mut bytes).map_err(Unsaid::Unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The result of a statement.
pub(super) struct Said {
    pub(super) store: Store,
    pub(super) session: TerminalSession,
    /// The end of the wake. The statement is stored in any case.
    pub(super) report: Result<Report, WakeError>,
}

/// Stores a text and waits for its answer. Commands are answered at once, as on Telegram.
///
/// # Errors
/// If the store fails; nothing was stored.
pub(super) async fn say_and_wait(
    context: Context<'_>,
    trigger: &str,
    text: &str,
    (view, working): (&ReportView, &Working),
) -> Result<Said, WakeError> {
    let mut store = cycle::open_store(context.config)?;
    let (session, now) = (TerminalSession::generate()?, context.clock.now());
    store.terminals_mut().open_session(&session, &Identity::current(), now)?;
    let here = Here { context, session: Some(&session), working: Some(working) };
    let context = Context { terminal: view.terminal_mode(&here), ..context };
    let put = store_statement(context, &mut store, &session, (text, &[]))?;
    let report =
        wake_and_wait(context, &mut store, put, AnswerWait { trigger, working, longest: Some(WAIT_FOR_ANOTHER) }).await;
    Ok(Said { store, session, report })
}

/// Stores a statement of a session.
///
/// # Errors
/// If the store fails; nothing was stored.
pub(super) fn store_statement(
    context: Context<'_>,
    store: &mut Store,
    session: &TerminalSession,
    said: (&str, &[LandedFile]),
) -> Result<StoredStatement, WakeError> {
    Ok(store_terminal_statement((context.config, context.redactor), store, session, said, context.clock.now())?)
}

/// Options for waiting for an answer.
pub(super) struct AnswerWait<'a> {
    /// The reason passed to a wake.
    pub(super) trigger: &'a str,
    /// The line that reports a wait for another wake.
    pub(super) working: &'a Working,
    /// Maximum wait for another wake. `None` waits until it is done.
    pub(super) longest: Option<Duration>,
}

/// Wakes for the stored statement, and waits for the answer.
pub(super) async fn wake_and_wait(
    context: Context<'_>,
    store: &mut Store,
    put: StoredStatement,
    patience: AnswerWait<'_>,
) -> Result<Report, WakeError> {
    match (put.remaining_work(), put) {
        (AfterPut::Wake, StoredStatement::Message(id)) => wait_until_answered(context, store, id, patience).await,
        (AfterPut::Wake, StoredStatement::Command(_) | StoredStatement::Answer { .. }) => {
            run_wake(context, store, patience.trigger).await
        }
        (after, _) => {
            if after == AfterPut::EndPrograms {
                stop::end_children(&context.config.lock_path());
            }
            Ok(Report { outcome: WakeOutcome::Worked, ..Report::default() })
        }
    }
}

/// Wakes. If another wake is working, it may be the one to answer, so waits for it within the limit.
async fn wait_until_answered(
    context: Context<'_>,
    store: &mut Store,
    message: i64,
    patience: AnswerWait<'_>,
) -> Result<Report, WakeError> {
    let AnswerWait { trigger, working, longest } = patience;
    let (begun, mut stop) = (Instant::now(), context.stop.clone());
    let mut has_waited = false;
    loop {
        let report = run_wake(context, store, trigger).await?;
        let is_settled = store.terminals().read_message_state(message)? == Awaited::Settled;
        if is_settled && has_waited && report.outcome != WakeOutcome::Failed {
            // The other wake has answered, and may work on something else by now.
            return Ok(Report { outcome: WakeOutcome::Worked, notes: Vec::new(), ..report });
        }
        if is_settled || report.outcome != WakeOutcome::Locked {
            return Ok(report);
        }
        if longest.is_none() && store.chats().is_work_stopped(Some(ChatRef::TERMINAL))? {
            return Ok(Report { outcome: WakeOutcome::Parked, notes: Vec::new(), ..report });
        }
        if longest.is_some_and(|longest| begun.elapsed() >= longest) {
            return Ok(note_later_answer(context, report));
        }
        working.say("another wake is working; waiting for your answer… (Ctrl-C: read it later)");
        has_waited = true;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(note_later_answer(context, report)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    }
}

/// Tells the person that the message is kept, and where the answer will appear.
fn note_later_answer(context: Context<'_>, mut report: Report) -> Report {
    let has_chat = context.channel.is_some() && context.config.owner_chat != ChatRef::TERMINAL;
    let chat = if has_chat { " or comes to your chat on Telegram" } else { "" };
    report.notes.push(format!("Your message is stored. The answer appears with the next `wake say`{chat}."));
    report
}
