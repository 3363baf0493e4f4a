//! `/stop` and `/resume`, as a wake and whoever orders it see them.
//!
//! The order is a row in the database before anything else happens. A wake looks for it before each step, and several times
//! a second while it waits for the model: it drops the request and leaves its cycle as one that ended in order, to be gone on
//! with after `/resume`. What it had committed stays committed and isn't sent; nobody is signalled, so that a `wake` that
//! stays, stays. Its children it can't end while it waits for them: whoever gave the order does.

use std::{path::Path, time::Duration};

use reveille_base::{process, zone::Tz};
use reveille_store::{Stopped, StoreError, wake_lock};

use crate::{
    context::WakeError,
    decide::interrupt::Interrupt,
    session::{Halt, Session},
};

/// How often a wake that waits looks for the order.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The pause between two looks for children of a stopped wake.
const CHILDREN_EVERY: Duration = Duration::from_millis(100);
/// So long they are looked for: one that ends may be followed by another.
const CHILDREN_FOR: Duration = Duration::from_millis(2_500);

/// Says that all is stopped, and how to go on.
pub fn notice(stopped: Stopped, tz: Tz) -> String {
    let since = stopped.at.map(|at| format!(" since {}", at.with_timezone(&tz).format("%a %-d %b %Y, %H:%M")));
    format!(
        "Stopped{}. New messages will wait; `wake resume`, or /resume in the chat, continues.",
        since.unwrap_or_default()
    )
}

/// After the order: ends what a wake that is at work has started, such as a slow fetch, until the wake is over. Blocks for
/// some seconds at most.
pub fn end_children(lock_path: &Path) {
    let Some(holder) = wake_lock::read(lock_path).map(|holder| holder.identity()) else { return };
    let begun = std::time::Instant::now();
    while begun.elapsed() < CHILDREN_FOR && holder.is_alive() && is_holding(lock_path, &holder) {
        // fault: stopped-wake-started-lives
        match process::end_children(&holder) {
            0 => {}
            n => tracing::info!(n, "programs that a stopped wake had started were ended"),
        }
        std::thread::sleep(CHILDREN_EVERY);
    }
}

/// A `wake` that stays goes on living after it has let go of the lock.
fn is_holding(lock_path: &Path, who: &process::Identity) -> bool {
    wake_lock::read(lock_path).is_some_and(|holder| holder.identity() == *who)
}

impl Session<'_> {
    /// Whether this wake is to end now, and why.
    pub(crate) fn is_to_end(&self) -> Result<Option<Interrupt>, StoreError> {
        if *self.context.stop.borrow() {
            return Ok(Some(Interrupt::Stopped));
        }
        if self.sharing.is_lost() {
            return Ok(Some(Interrupt::LeaseLost));
        }
        Ok(self.store.is_stopped_for(self.chat)?.then_some(Interrupt::Halted))
    }

    /// Whether what the wake is at work for is kept on this machine, and the model isn't on it. What nobody asked for is the owner's.
    fn is_kept_from_model(&self) -> Result<bool, StoreError> {
        let config = self.context.config;
        let is_elsewhere = !config.is_local(self.context.model.name());
        Ok(is_elsewhere && self.store.is_local_chat(self.chat.unwrap_or(config.owner_chat))?)
    }

    /// Ends when that is so: at once, where it is so already. Where it can't be read no request goes on either, and the reason is the
    /// database.
    async fn kept_from_model(&self) -> Halt {
        loop {
            match self.is_kept_from_model() {
                Ok(false) => tokio::time::sleep(LOOK_EVERY).await,
                Ok(true) => return Interrupt::KeptLocal.into(),
                Err(error) => return error.into(),
            }
        }
    }

    /// Ends when another machine may have taken over.
    async fn lease_lost(&self) {
        while !self.sharing.is_lost() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends when all work is ordered to stop, or what is done for the chat that the wake is at work for.
    pub(crate) async fn halted(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // What can't be read now is read again.
            if matches!(self.store.is_stopped_for(self.chat), Ok(true)) {
                return;
            }
        }
    }

    /// Whether all work is stopped.
    pub(crate) fn is_stopped(&self) -> Result<bool, WakeError> {
        Ok(self.store.stopped()?.is_some())
    }
}

/// A request to the model is given up, too, when the chat that it is for is kept local and the model isn't: before it is begun, or while
/// it is waited for.
pub(crate) async fn unless_kept_local<T>(session: &Session<'_>, request: impl Future<Output = T>) -> Result<T, Halt> {
    tokio::select! {
        biased;
        halt = session.kept_from_model() => Err(halt),
        done = unless_interrupted(session, request) => Ok(done?),
    }
}

/// Whatever takes a while is given up when the process is asked to end, when all work is stopped and when the wake's time is over.
pub(crate) async fn unless_interrupted<T>(
    session: &Session<'_>,
    work: impl Future<Output = T>,
) -> Result<T, Interrupt> {
    let mut stop = session.context.stop.clone();
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(Interrupt::Stopped),
        () = tokio::time::sleep_until(session.deadline) => Err(Interrupt::OutOfTime),
        () = session.lease_lost() => Err(Interrupt::LeaseLost),
        // fault: waits-mind-isnt-stopped
        () = session.halted() => Err(Interrupt::Halted),
        done = work => Ok(done),
    }
}
