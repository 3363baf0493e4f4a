//! `/stop` and `/resume`, as a wake and the process that gives the order handle them.
//!
//! The order first becomes a row in the database. A wake looks for it before each step, and several times a second while it waits for the
//! model. It then drops the request and puts its cycle into a state from which it is resumed after `/resume`. Work committed by then stays
//! committed, but its messages aren't sent yet. No process is signalled, so a `wake` that runs permanently keeps running. A wake can't end
//! its children while it waits for them, so the process that gave the order ends them.

use std::{path::Path, time::Duration};

use reveille_base::{process, zone::Tz};
use reveille_store::{Stopped, StoreError, wake_lock};

use crate::{
    context::WakeError,
    decide::interrupt::Interrupt,
    session::{Halt, Session},
};

/// How often a waiting wake looks for the order.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The pause between two searches for children of a stopped wake.
const CHILDREN_EVERY: Duration = Duration::from_millis(100);
/// How long to search, since another child may start after one has ended.
const CHILDREN_FOR: Duration = Duration::from_millis(2_500);

/// Renders the notice that all work is stopped, and how to continue.
pub fn render_notice(stopped: Stopped, tz: Tz) -> String {
    let since = stopped.at.map(|at| format!(" since {}", at.with_timezone(&tz).format("%a %-d %b %Y, %H:%M")));
    format!(
        "Stopped{}. New messages will wait. To continue, run `wake resume` or send /resume in the chat.",
        since.unwrap_or_default()
    )
}

/// Ends the children of the working wake after the order, such as a slow fetch, until the wake ends. Blocks for some seconds at most.
pub fn end_children(lock_path: &Path) {
    let Some(holder) = wake_lock::read_holder(lock_path).map(|holder| holder.identity()) else { return };
    let start = std::time::Instant::now();
    while start.elapsed() < CHILDREN_FOR && holder.is_alive() && is_holding(lock_path, &holder) {
        // fault: stopped-wake-started-lives
        match process::end_children(&holder) {
            0 => {}
            n => tracing::info!(n, "programs that a stopped wake had started were ended"),
        }
        std::thread::sleep(CHILDREN_EVERY);
    }
}

/// Returns `true` while this process holds the lock. A `wake` that runs permanently lives on after releasing it.
fn is_holding(lock_path: &Path, who: &process::Identity) -> bool {
    wake_lock::read_holder(lock_path).is_some_and(|holder| holder.identity() == *who)
}

impl Session<'_> {
    /// Returns the reason to end this wake now, if there is one.
    pub(crate) fn find_interrupt(&self) -> Result<Option<Interrupt>, StoreError> {
        if *self.context.stop.borrow() {
            return Ok(Some(Interrupt::Stopped));
        }
        if self.sharing.is_lost() {
            return Ok(Some(Interrupt::LeaseLost));
        }
        Ok(self.store.chats().is_work_stopped(self.chat)?.then_some(Interrupt::Halted))
    }

    /// Returns `true` if the chat's data must stay on this machine and the model runs elsewhere. A background job has no chat and counts
    /// as the owner's.
    fn is_kept_from_model(&self) -> Result<bool, StoreError> {
        let config = self.context.config;
        let is_elsewhere = !config.is_local(self.context.model.name());
        Ok(is_elsewhere && self.store.chats().is_local_chat(self.chat.unwrap_or(config.owner_chat))?)
    }

    /// Completes once the chat is kept from the model, at once if it already is. A database error also completes, since without the
    /// database no request may continue.
    async fn wait_until_kept_from_model(&self) -> Halt {
        loop {
            match self.is_kept_from_model() {
                Ok(false) => tokio::time::sleep(LOOK_EVERY).await,
                Ok(true) => return Interrupt::KeptLocal.into(),
                Err(error) => return error.into(),
            }
        }
    }

    /// Completes when another machine may have taken over.
    async fn wait_for_lease_loss(&self) {
        while !self.sharing.is_lost() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Completes when a person stops all work, or the work for the wake's chat.
    pub(crate) async fn wait_for_halt(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // A failed read is repeated.
            if matches!(self.store.chats().is_work_stopped(self.chat), Ok(true)) {
                return;
            }
        }
    }

    /// Returns `true` if all work is stopped.
    pub(crate) fn is_stopped(&self) -> Result<bool, WakeError> {
        Ok(self.store.chats().find_stop_order()?.is_some())
    }
}

/// Awaits a request to the model. Gives up, before or during the request, if its chat is kept local and the model isn't.
pub(crate) async fn run_unless_kept_local<T>(
    session: &Session<'_>,
    request: impl Future<Output = T>,
) -> Result<T, Halt> {
    tokio::select! {
        biased;
        halt = session.wait_until_kept_from_model() => Err(halt),
        done = run_unless_interrupted(session, request) => Ok(done?),
    }
}

/// Awaits slow work. Gives up if the process must end, if all work is stopped, or if the wake's time is over.
pub(crate) async fn run_unless_interrupted<T>(
    session: &Session<'_>,
    work: impl Future<Output = T>,
) -> Result<T, Interrupt> {
    let mut stop = session.context.stop.clone();
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => Err(Interrupt::Stopped),
        () = tokio::time::sleep_until(session.deadline) => Err(Interrupt::OutOfTime),
        () = session.wait_for_lease_loss() => Err(Interrupt::LeaseLost),
        // fault: waits-mind-isnt-stopped
        () = session.wait_for_halt() => Err(Interrupt::Halted),
        done = work => Ok(done),
    }
}
