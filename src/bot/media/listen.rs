//! Runs the listening child: starts one at a time when a recording is due, and watches its end. The child dies with the
//! bot, and when all work is stopped; such an end doesn't count as a try of the recording. Without a speech model, no
//! message waits for its recording.

use std::{
    cell::RefCell, ffi::OsString, os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus,
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use reveille_base::process::{self, Leashed, ProcessError, Spec};
use reveille_store::StoreError;

use super::{LOOK_EVERY, Shared, words};

/// Maximum run time of a child. The next child takes the remaining recordings.
const CHILD_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Minimum time between the end of a child and the start of the next.
const CHILD_GAP: Duration = Duration::from_secs(1);
/// The same after a child that failed as a whole. Failures of single recordings are in the store.
const CHILD_GAP_FAILED: Duration = Duration::from_secs(60);
/// How often to check for a stop of all work while a child listens: a terminal rings no bell.
const LOOK_WHILE_LISTENING: Duration = Duration::from_secs(1);

/// The state of the listening child.
#[derive(Debug, Default)]
pub(super) struct Listener {
    working: Option<Working>,
    /// Earliest start of the next child.
    from: Option<Instant>,
    /// The last child, if someone else asked it to end. Probably the bot is asked as well, a moment later.
    asked_to_end: Option<u32>,
}

#[derive(Debug)]
struct Working {
    child: Leashed,
    until: Instant,
}

pub(super) async fn run(shared: Shared<'_>, listener: &RefCell<Listener>, transcriber: Option<PathBuf>) {
    let mut children = match signal(SignalKind::child()) {
        Ok(children) => children,
        Err(error) => {
            tracing::error!(%error, "signals can't be received; recordings aren't listened to");
            return std::future::pending().await;
        }
    };
    let can_listen = transcriber.is_some() || shared.outside.config.whisper_model.is_some();
    if can_listen
        && let Err(error) =
            shared.store.borrow_mut().attachments_mut().retry_unheard_recordings(shared.outside.clock.now())
    {
        tracing::warn!(%error, "recordings from before there was a speech model wait for the next start");
    }
    let mut has_complained = false;
    loop {
        let stepped = listener.borrow_mut().run_step(shared, transcriber.as_ref(), can_listen);
        let wait = match stepped {
            Ok(wait) => {
                has_complained = false;
                wait
            }
            Err(error) => {
                if !std::mem::replace(&mut has_complained, true) {
                    tracing::warn!(%error, "recordings can't be looked after now; it is tried again until they can");
                }
                LOOK_EVERY
            }
        };
        tokio::select! {
            () = shared.bells.kept.notified() => {}
            () = shared.bells.ordered.notified() => {}
            _ = children.recv() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

impl Listener {
    /// Starts a child if a recording is due, and ends it if all work is stopped. Returns the wait until the next step.
    fn run_step(
        &mut self,
        shared: Shared<'_>,
        transcriber: Option<&PathBuf>,
        can_listen: bool,
    ) -> Result<Duration, StoreError> {
        self.reap(shared);
        if shared.store.borrow().chats().find_stop_order()?.is_some() {
            if let Some(working) = self.working.take() {
                tracing::info!("all work is stopped: listening ends, and is taken up again afterwards");
                end(shared, working);
            }
            return Ok(LOOK_EVERY);
        }
        if let Some(working) = &self.working {
            return Ok(working.until.saturating_duration_since(Instant::now()).min(LOOK_WHILE_LISTENING));
        }
        let now = shared.outside.clock.now();
        let due = shared.store.borrow().attachments().find_next_recording(now)?;
        let Some(file) = due else { return Ok(shared.compute_wait()) };
        if !can_listen {
            shared.store.borrow_mut().attachments_mut().give_up_without_speech_model(
                &file,
                None,
                &words::no_model(&file, None),
                now,
            )?;
            shared.bells.settled.notify_one();
            return Ok(Duration::ZERO);
        }
        let gap = self.from.map_or(Duration::ZERO, |from| from.saturating_duration_since(Instant::now()));
        if !gap.is_zero() {
            return Ok(gap);
        }
        self.start_child(transcriber, &shared.outside.config.settings_arguments());
        Ok(LOOK_WHILE_LISTENING)
    }

    fn start_child(&mut self, transcriber: Option<&PathBuf>, settings: &[OsString]) {
        self.asked_to_end = None;
        match start_listener(transcriber, settings) {
            Ok(child) => {
                tracing::info!(pid = child.id(), "recordings are being listened to");
                self.working = Some(Working { child, until: Instant::now() + CHILD_TIMEOUT });
            }
            Err(error) => {
                tracing::error!(%error, "recordings can't be listened to; it is tried again");
                self.from = Some(Instant::now() + CHILD_GAP_FAILED);
            }
        }
    }

    /// Collects a child that has ended, and ends one that has worked for too long.
    fn reap(&mut self, shared: Shared<'_>) {
        let Some(mut working) = self.working.take() else { return };
        let gap = match working.child.try_wait() {
            Ok(None) if Instant::now() < working.until => {
                self.working = Some(working);
                return;
            }
            Ok(None) => {
                tracing::warn!("listening took over {} s and was ended; it is tried again", CHILD_TIMEOUT.as_secs());
                CHILD_GAP_FAILED
            }
            Ok(Some(status)) if status.success() => CHILD_GAP,
            Ok(Some(status)) => {
                tracing::warn!("listening ended with {}; it is tried again", process::describe_exit(status));
                self.asked_to_end = was_asked_to_end(status).then(|| working.child.id());
                CHILD_GAP_FAILED
            }
            Err(error) => {
                tracing::warn!(%error, "the process that listens can't be waited for");
                CHILD_GAP_FAILED
            }
        };
        shared.bells.settled.notify_one();
        self.from = Some(Instant::now() + gap);
    }

    /// Ends the child in order with the bot.
    pub(super) fn end_child(mut self, shared: Shared<'_>) {
        self.reap(shared);
        if let Some(working) = self.working.take() {
            end(shared, working);
        } else if let Some(pid) = self.asked_to_end {
            take_back(shared, pid);
        }
    }
}

/// Ends a child and takes back its try in progress. The bot writes this once the child is gone.
fn end(shared: Shared<'_>, working: Working) {
    let pid = working.child.id();
    drop(working);
    take_back(shared, pid);
}

fn take_back(shared: Shared<'_>, listener: u32) {
    if let Err(error) =
        shared.store.borrow_mut().attachments_mut().undo_listener_attempt(listener, shared.outside.clock.now())
    {
        tracing::warn!(%error, "a recording was cut off, which counts as one of its tries");
    }
}

/// Returns `true` for SIGTERM. A service manager or a shutdown signals the bot and its children at the same moment.
fn was_asked_to_end(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::TERM.as_raw())
}

/// Starts `bot listen`, which works through the due recordings.
pub(crate) fn start_listener(transcriber: Option<&PathBuf>, settings: &[OsString]) -> Result<Leashed, ProcessError> {
    let spec = Spec::new(process::resolve_sibling_program("bot")).args(["listen"]).args(settings);
    let with = transcriber.map(|transcriber| spec.clone().args(["--with".as_ref(), transcriber.as_os_str()]));
    Leashed::start(&with.unwrap_or(spec))
}
