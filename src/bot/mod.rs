//! The bot: keeps the door to Telegram, and starts wakes. It has no model and no memory of its own.
//!
//! [`run()`] gathers events in one small loop on one thread. Pure parts decide what they mean:
//! - `batch`: what an update is kept as;
//! - `nudge`: when a wake starts;
//! - `trouble`: how long to wait, what to say;
//! - `pairing`: whose code lets them in;
//! - `commands`: what each of them answers and orders.
//!
//! A batch is stored, with the next offset, before Telegram is told that it arrived.

mod answered;
mod answers;
mod batch;
mod commands;
mod door;
mod due_watch;
mod gap;
pub mod media;
mod menu;
mod nudge;
mod pair;
pub mod pairing;
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

pub use commands::terminal::{AtTerminal, at_terminal};
pub use due_watch::DueWatch;
pub use pair::{Pairing, pair};
use poll_turn::PollTurn;
pub use progress::line as progress_line;
use run::{Aides, Bot};
pub use said::{AfterPut, MAX_SAID_BYTES, Put, put_said};
pub use send::{Sending, send};
use trouble::FailureStretch;
pub use wake::{start_fleet, start_wake};

/// What the bot is given from outside.
#[derive(Clone, Copy)]
pub struct BotContext<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The door.
    pub telegram: &'a Telegram,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Masks the live secrets in what is stored.
    pub redactor: &'a Redactor,
}

/// Why the bot ended, by what should be done. What came before is stored.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// One poller is enough.
    #[error(
        "another bot runs on this workspace{}. Nothing was changed; end that one first if this one is to take its place",
        .0.as_ref().map(|holder| format!(" (pid {}, since {})", holder.pid, holder.started_at)).unwrap_or_default()
    )]
    Taken(Option<Box<Holder>>),
    /// The token never was valid, as far as is known here: a person must set another.
    #[error("{0}")]
    Unauthorized(TelegramError),
    /// The lock's file.
    #[error(transparent)]
    Lock(LockError),
    /// The workspace can't be made.
    #[error(transparent)]
    Workspace(#[from] WakeError),
    /// The database can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is written to the database goes where nobody reads it: a person looks what became of the file.
    #[error(
        "{how} while I was running, so I've stopped fetching messages.{}",
        saved.as_ref().map(|path| format!(" What I had is saved in {}.", path.display())).unwrap_or_default()
    )]
    Displaced {
        /// What became of it.
        how: Displaced,
        /// The copy that was saved of what is still open.
        saved: Option<PathBuf>,
    },
    /// No pairing code can be made.
    #[error("no pairing code can be made: {0}")]
    Code(String),
    /// The system doesn't tell of signals.
    #[error("signals can't be received: {0}")]
    Signals(std::io::Error),
}

impl BotError {
    /// Whether it is gone as soon as there is room on the disk.
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

/// Where updates come from, and how long the bot runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotMode {
    /// It fetches them, until it is asked to end.
    Polling,
    /// One turn: what a webhook has left in the inbox, then one wake if anything is due.
    Turn,
}

/// How the bot ended in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotEnd {
    /// It was asked to end.
    Asked,
    /// It is to be started anew.
    Restart,
}

/// Runs until `stop` becomes `true`, or until the owner wants it started anew. `wake` is the program to start when something is due; by default the one beside this
/// one. `transcriber`: a program that listens in place of the speech model. In a turn it ends by itself.
///
/// # Errors
/// What retrying doesn't mend. Everything else is retried for ever, and told once.
pub async fn run(
    outside: BotContext<'_>,
    mut stop: watch::Receiver<bool>,
    (wake, transcriber): (Option<PathBuf>, Option<PathBuf>),
    mode: BotMode,
) -> Result<BotEnd, BotError> {
    let Some((_one_poller, store, outbox)) = open_patiently(outside, &mut stop, mode).await? else {
        return Ok(BotEnd::Asked);
    };
    let (answers, to_send) = mpsc::channel(answers::MAX_WAITING);
    let (receipts, to_acknowledge) = mpsc::channel(receipt::MAX_WAITING);
    let (is_running, running) = watch::channel(false);
    let (is_known, known) = watch::channel(false);
    let wake = wake.unwrap_or_else(wake::program);
    // What is shown beside the loop shares one: a connection keeps some hundred KiB. Each borrows it between two waits only.
    let aside = RefCell::new(cycle::workspace::open(outside.config)?);
    let bells = Rc::new(media::Bells::default());
    let (taps, tapped) = mpsc::channel(questions::MAX_WAITING);
    let told = Aides { answers, receipts, taps, is_known, is_running, bells: Rc::clone(&bells) };
    let (turn, keeper) = PollTurn::begin(outside.config, outside.redactor)?;
    let inbox = (mode == BotMode::Turn).then(|| Inbox::at(outside.config.inbox_dir()));
    let mut bot = Bot::new(outside, store, wake, told, (turn.clone(), inbox))?;
    let lock_path = outside.config.lock_path();
    let asked = stop.clone();

    let work = async {
        let ended = bot.run(stop).await;
        // Ends the others.
        drop(bot);
        ended
    };
    let (ended, ..) = tokio::join!(
        work,
        answers::send(outside, outbox, to_send, turn, running.clone()),
        menu::register(outside.telegram, known),
        media::tend(outside, &aside, &bells, transcriber, running.clone()),
        receipt::acknowledge(outside.telegram, to_acknowledge),
        answer_presses(outside, &aside, tapped, running.clone()),
        typing::show(outside.telegram, &lock_path, running.clone()),
        progress::show(outside.telegram, &aside, &lock_path, outside.redactor, running),
    );
    // Given back before the lock of this machine.
    drop(keeper);
    // Who wants it to end may say so while the others are waited for.
    ended.map(|end| if *asked.borrow() { BotEnd::Asked } else { end })
}

/// Shows what became of questions, and not for much longer than the bot lives.
async fn answer_presses(
    outside: BotContext<'_>,
    aside: &RefCell<Store>,
    tapped: mpsc::Receiver<(Tap, bool)>,
    running: watch::Receiver<bool>,
) {
    let timezone = outside.config.timezone;
    tokio::select! {
        () = questions::show(outside.telegram, aside, outside.clock, timezone, tapped, running.clone()) => {}
        () = progress::overdue(running) => {}
    }
}

/// Tells who wanted a restart that it failed; the bot runs on.
pub fn cannot_restart(config: &Config, clock: &dyn Clock, why: &str) {
    let told =
        cycle::open_store(config).and_then(|mut store| Ok(store.end_restarts(&restart::refusal(why), clock.now())?));
    if let Err(error) = told {
        tracing::warn!(%error, "that the restart failed couldn't be told");
    }
}

/// Takes the lock and opens the store. A bot that polls waits for a database that can't be used as long as it takes, and tells the
/// owner past it: one that ended would be started again a few times, and then be gone without a word. `None` when asked to end before.
async fn open_patiently(
    outside: BotContext<'_>,
    stop: &mut watch::Receiver<bool>,
    mode: BotMode,
) -> Result<Option<(WakeLock, Store, Store)>, BotError> {
    let mut trouble = FailureStretch::default();
    let mut has_complained = false;
    let mut untold = None;
    loop {
        let wait = match open(outside) {
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

fn open(outside: BotContext<'_>) -> Result<(WakeLock, Store, Store), BotError> {
    cycle::prepare_workspace(outside.config)?;
    let one_poller = lock(outside)?;
    let store = cycle::workspace::open(outside.config)?;
    Ok((one_poller, store, cycle::workspace::open(outside.config)?))
}

fn lock(outside: BotContext<'_>) -> Result<WakeLock, BotError> {
    let path = outside.config.bot_lock_path();
    WakeLock::try_acquire(&path, &Identity::current(), outside.clock.now()).map_err(|error| match error {
        LockError::Held(holder) => BotError::Taken(holder),
        error => BotError::Lock(error),
    })
}
