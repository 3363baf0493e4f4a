//! The bot: listens on Telegram and starts wakes. It has no model and no memory.
//!
//! [`run()`] gathers events in one small loop on one thread. Pure modules decide how to react:
//! - `batch`: turns updates into rows;
//! - `nudge`: decides when a wake starts;
//! - `trouble`: decides how long to wait after a failure and how to report it;
//! - `pairing`: decides who a pairing code lets in;
//! - `commands`: answers each command and gives its order.
//!
//! A batch is stored, with the next offset, before Telegram is told that it arrived.

mod answered;
mod answers;
mod batch;
mod commands;
mod door;
mod draft;
mod due_watch;
mod gap;
pub mod media;
mod menu;
mod nudge;
mod pair;
pub mod pairing;
mod plain_stop;
mod poll_turn;
mod progress;
mod questions;
mod receipt;
mod report;
mod restart;
mod room;
mod rules;
mod run;
mod said;
mod sample;
mod send;
mod stopped;
mod trouble;
mod typing;
mod wake;

use std::{cell::RefCell, path::PathBuf, rc::Rc};

use tokio::sync::{mpsc, watch};

use reveille_base::{clock::Clock, process::Identity, redact::Redactor};
use reveille_channels::telegram::{Inbox, Telegram, TelegramError};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::context::WakeError;
use reveille_store::{
    Displaced, Store, StoreError, Tap,
    wake_lock::{Holder, LockError, WakeLock},
};

pub use commands::terminal::{AtTerminal, answer_at_terminal};
pub use due_watch::DueWatch;
pub use pair::{OfferedCode, Pairing, is_bot_running, offer as offer_code, pair};
use poll_turn::PollTurn;
pub use progress::render_line as progress_line;
use run::{Aides, Bot};
pub use said::{AfterPut, MAX_SAID_BYTES, StoredStatement, store_terminal_statement};
pub use send::{Sending, send};
use trouble::FailureStretch;
pub use wake::{start_fleet, start_wake};

/// The bot's dependencies.
#[derive(Clone, Copy)]
pub struct BotContext<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The connection to Telegram.
    pub telegram: &'a Telegram,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Masks secrets in everything that is stored.
    pub redactor: &'a Redactor,
}

/// The reason the bot ended early, by the reaction that it needs. Everything received before is stored.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// Another bot already polls for this workspace.
    #[error(
        "another bot is already running on this workspace{}. Nothing was changed; to run this one instead, stop that one first",
        .0.as_ref().map(|holder| format!(" (pid {}, since {})", holder.pid, holder.started_at)).unwrap_or_default()
    )]
    Taken(Option<Box<Holder>>),
    /// Telegram has never accepted the token, as far as this workspace knows. A person must set another.
    #[error("{0}")]
    Unauthorized(TelegramError),
    /// The lock file can't be used.
    #[error(transparent)]
    Lock(LockError),
    /// The workspace can't be created.
    #[error(transparent)]
    Workspace(#[from] WakeError),
    /// The database can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database file was moved, deleted or replaced, so writes are lost. A person has to look.
    #[error(
        "{how} while I was running, so I've stopped fetching messages.{}",
        saved.as_ref().map(|path| format!(" What I had is saved in {}.", path.display())).unwrap_or_default()
    )]
    Displaced {
        /// The file's fate.
        how: Displaced,
        /// The copy that was saved from the open file.
        saved: Option<PathBuf>,
    },
    /// No pairing code can be generated.
    #[error("couldn't make a pairing code: {0}")]
    Code(String),
    /// The system doesn't deliver signals.
    #[error("couldn't listen for signals: {0}")]
    Signals(std::io::Error),
}

impl BotError {
    /// Returns `true` if the error goes away once the disk has room.
    fn is_for_want_of_room(&self) -> bool {
        use std::io::ErrorKind;
        match self {
            Self::Store(StoreError::Full) => true,
            Self::Lock(LockError::Io { source, .. }) | Self::Workspace(WakeError::Workspace { source, .. }) => {
                matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }
}

/// The source of updates, and the lifetime of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotMode {
    /// Fetches updates until the bot is asked to end.
    Polling,
    /// Reads once what a webhook has left in the inbox, starts one wake if anything is due, and ends.
    Turn,
}

/// The orderly end of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotEnd {
    /// A person or the system asked it to end.
    Asked,
    /// The owner wants it restarted.
    Restart,
}

/// Runs until `stop` becomes `true` or the owner asks for a restart; [`BotMode::Turn`] ends by itself. `wake` is the
/// program to start when something is due, by default the sibling of this executable. `transcriber` is a program that
/// replaces the built-in speech model.
///
/// # Errors
/// Only failures that a retry can't mend. All others are retried for ever and reported once.
pub async fn run(
    outside: BotContext<'_>,
    mut stop: watch::Receiver<bool>,
    (wake, transcriber): (Option<PathBuf>, Option<PathBuf>),
    mode: BotMode,
) -> Result<BotEnd, BotError> {
    let Some(OpenedWorkspace { one_poller: _one_poller, store, outbox }) =
        open_patiently(outside, &mut stop, mode).await?
    else {
        return Ok(BotEnd::Asked);
    };
    let (answers, to_send) = mpsc::channel(answers::MAX_WAITING);
    let (receipts, to_acknowledge) = mpsc::channel(receipt::MAX_WAITING);
    let (is_running, running) = watch::channel(false);
    let (is_known, known) = watch::channel(false);
    let wake = wake.unwrap_or_else(wake::find_program);
    // The tasks beside the loop share one connection, since each costs some hundred KiB. They borrow it only between
    // two waits.
    let aside = RefCell::new(cycle::workspace::open_database(outside.config)?);
    let bells = Rc::new(media::Bells::default());
    let (taps, tapped) = mpsc::channel(questions::MAX_WAITING);
    let told = Aides { answers, receipts, taps, is_known, is_running, bells: Rc::clone(&bells) };
    let (turn, keeper) = PollTurn::begin(outside.config, outside.redactor)?;
    let inbox = (mode == BotMode::Turn).then(|| Inbox::at_path(outside.config.inbox_dir()));
    let mut bot = Bot::new(outside, store, wake, told, (turn.clone(), inbox))?;
    let lock_path = outside.config.lock_path();
    let (live_path, drafts) = (outside.config.live_path(), draft::ShownDrafts::default());
    let asked = stop.clone();

    let work = async {
        let ended = bot.run(stop).await;
        // Ends the other tasks.
        drop(bot);
        ended
    };
    let (ended, ..) = tokio::join!(
        work,
        answers::send(outside, outbox, to_send, turn, running.clone()),
        menu::register(outside.telegram, known),
        media::run(outside, &aside, &bells, transcriber, running.clone()),
        receipt::acknowledge(outside.telegram, to_acknowledge),
        answer_presses(outside, &aside, tapped, running.clone()),
        typing::show(outside.telegram, &lock_path, running.clone()),
        draft::show(outside.telegram, live_path, &drafts, running.clone()),
        progress::show(outside.telegram, &aside, &lock_path, (outside.redactor, &drafts), running),
    );
    // The lease has to be released before this machine's lock.
    drop(keeper);
    // A request to end may arrive while the other tasks are awaited.
    ended.map(|end| if *asked.borrow() { BotEnd::Asked } else { end })
}

/// Shows the outcome of questions. Ends shortly after the bot.
async fn answer_presses(
    outside: BotContext<'_>,
    aside: &RefCell<Store>,
    tapped: mpsc::Receiver<(Tap, bool)>,
    running: watch::Receiver<bool>,
) {
    let timezone = outside.config.timezone;
    tokio::select! {
        () = questions::show(outside.telegram, aside, outside.clock, timezone, tapped, running.clone()) => {}
        () = progress::wait_past_end(running) => {}
    }
}

/// Tells whoever asked for a restart that it failed and that the bot continues.
pub fn cannot_restart(config: &Config, clock: &dyn Clock, why: &str) {
    let told = cycle::open_store(config)
        .and_then(|mut store| Ok(store.maintenance_mut().end_restarts(&restart::render_refusal(why), clock.now())?));
    if let Err(error) = told {
        tracing::warn!(%error, "that the restart failed couldn't be told");
    }
}

/// Takes the lock and opens the store. A polling bot retries for ever if the database can't be used, and tells the
/// owner without the database: a service manager would restart an exiting bot a few times and then give up silently.
/// `None` if asked to end meanwhile.
async fn open_patiently(
    outside: BotContext<'_>,
    stop: &mut watch::Receiver<bool>,
    mode: BotMode,
) -> Result<Option<OpenedWorkspace>, BotError> {
    let mut trouble = FailureStretch::default();
    let mut has_complained = false;
    let mut untold = None;
    loop {
        let wait = match open_workspace(outside) {
            Err(error) if error.is_for_want_of_room() => {
                if !std::mem::replace(&mut has_complained, true) {
                    tracing::error!(%error, "no room on the disk to begin with; it is tried again until there is, Telegram keeps messages for a day");
                }
                room::LOOK_EVERY
            }
            Err(BotError::Store(error) | BotError::Workspace(WakeError::Store(error))) if mode == BotMode::Polling => {
                let advice = trouble.with_opening(&error, fastrand::f64());
                if let Some(text) = advice.say {
                    tracing::error!("{text}");
                }
                untold = trouble.for_chat(&error).or(untold);
                if let Some(text) = untold.take()
                    && !run::tell_owner(outside, &text).await
                {
                    untold = Some(text);
                }
                advice.wait
            }
            opened => return opened.map(Some),
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// What the bot holds of the workspace while it runs.
struct OpenedWorkspace {
    one_poller: WakeLock,
    store: Store,
    /// The connection of the task that sends answers.
    outbox: Store,
}

fn open_workspace(outside: BotContext<'_>) -> Result<OpenedWorkspace, BotError> {
    cycle::prepare_workspace(outside.config)?;
    let one_poller = lock_poller(outside)?;
    let store = cycle::workspace::open_database(outside.config)?;
    Ok(OpenedWorkspace { one_poller, store, outbox: cycle::workspace::open_database(outside.config)? })
}

fn lock_poller(outside: BotContext<'_>) -> Result<WakeLock, BotError> {
    let path = outside.config.bot_lock_path();
    WakeLock::try_acquire(&path, &Identity::current(), outside.clock.now()).map_err(|error| match error {
        LockError::Held(holder) => BotError::Taken(holder),
        error => BotError::Lock(error),
    })
}
