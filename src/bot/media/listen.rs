//! Has recordings written down: starts the child that listens when there is one to listen to, one child at a time, and sees to
//! its end. It dies with the bot. Where there is nothing to listen with, no recording holds its message up.

use std::{path::PathBuf, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use super::{Desk, LOOK_EVERY, words};
use crate::{
    process::{self, Leashed, ProcessError, Spec},
    queue::StoreError,
};

/// How long a child may work; what it hasn't listened to by then is the next one's.
const CHILD_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// The shortest time between the end of a child and the start of the next.
const CHILD_GAP: Duration = Duration::from_secs(1);
/// The same after one that failed as a whole: each recording's own failures are in the store.
const CHILD_GAP_FAILED: Duration = Duration::from_secs(60);

/// A child at work, or when the next one may be.
enum Child {
    None { from: Instant },
    Working { child: Leashed, until: Instant },
}

pub(super) async fn run(desk: Desk<'_>, ear: Option<PathBuf>) {
    let mut children = match signal(SignalKind::child()) {
        Ok(children) => children,
        Err(error) => {
            tracing::error!(%error, "signals can't be received; recordings aren't listened to");
            return std::future::pending().await;
        }
    };
    let can_listen = ear.is_some() || desk.outside.config.whisper_model.is_some();
    if can_listen && let Err(error) = desk.store.borrow_mut().can_listen(desk.outside.clock.now()) {
        tracing::warn!(%error, "recordings from before there was a speech model wait for the next start");
    }
    let mut child = Child::None { from: Instant::now() };
    let mut has_complained = false;
    loop {
        child = reap(desk, child);
        let wait = match step(desk, ear.as_ref(), can_listen, &mut child) {
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
            () = desk.bells.kept.notified() => {}
            _ = children.recv() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Takes note of a child's end, and ends one that has worked for too long.
fn reap(desk: Desk<'_>, child: Child) -> Child {
    let Child::Working { child: mut working, until } = child else { return child };
    let gap = match working.try_wait() {
        Ok(None) if Instant::now() < until => return Child::Working { child: working, until },
        Ok(None) => {
            tracing::warn!("listening took over {} s and was ended; it is tried again", CHILD_TIMEOUT.as_secs());
            CHILD_GAP_FAILED
        }
        Ok(Some(status)) if status.success() => CHILD_GAP,
        Ok(Some(status)) => {
            tracing::warn!("listening ended with {}; it is tried again", process::describe(status));
            CHILD_GAP_FAILED
        }
        Err(error) => {
            tracing::warn!(%error, "the process that listens can't be waited for");
            CHILD_GAP_FAILED
        }
    };
    desk.bells.settled.notify_one();
    Child::None { from: Instant::now() + gap }
}

/// Starts a child if there is something to listen to. Says how long to wait for the next look.
fn step(desk: Desk<'_>, ear: Option<&PathBuf>, can_listen: bool, child: &mut Child) -> Result<Duration, StoreError> {
    let from = match child {
        Child::Working { until, .. } => return Ok(until.saturating_duration_since(Instant::now()).min(LOOK_EVERY)),
        Child::None { from } => *from,
    };
    let now = desk.outside.clock.now();
    let due = desk.store.borrow().next_unheard(now)?;
    let Some(file) = due else { return Ok(desk.wait()) };
    if !can_listen {
        desk.store.borrow_mut().cannot_listen(&file, None, &words::no_model(&file, None), now)?;
        desk.bells.settled.notify_one();
        return Ok(Duration::ZERO);
    }
    if Instant::now() < from {
        return Ok(from - Instant::now());
    }
    match start(ear) {
        Ok(started) => {
            tracing::info!(pid = started.id(), "recordings are being listened to");
            *child = Child::Working { child: started, until: Instant::now() + CHILD_TIMEOUT };
            Ok(LOOK_EVERY)
        }
        Err(error) => {
            tracing::error!(%error, "recordings can't be listened to; it is tried again");
            *child = Child::None { from: Instant::now() + CHILD_GAP_FAILED };
            Ok(LOOK_EVERY)
        }
    }
}

/// This program as the one that listens.
fn start(ear: Option<&PathBuf>) -> Result<Leashed, ProcessError> {
    let program =
        std::env::current_exe().map_err(|source| ProcessError::Start { program: "this program".to_owned(), source })?;
    let spec = Spec::new(program).args(["listen"]);
    let with = ear.map(|ear| spec.clone().args(["--with".as_ref(), ear.as_os_str()]));
    Leashed::start(&with.unwrap_or(spec))
}
