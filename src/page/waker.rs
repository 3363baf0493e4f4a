//! Starts a wake for input from the page and for anything due. While another wake runs, nothing is started: that wake checks again at its
//! end, and we check once it has ended. A wake without signs of life isn't waited for, since the next wake replaces it.

use std::{
    convert::Infallible,
    process::Child,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reveille_store::wake_lock::{self, Holder};

use super::site::PageSite;
use crate::bot::{DueWatch, start_wake};

/// The trigger of the wakes started here.
const REASON: &str = "page";
/// Interval between checks for the end of a wake.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Interval between checks for due work.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Starts wakes on request, one at a time.
pub(super) async fn run(site: &Arc<PageSite>) -> Infallible {
    if has_unanswered_input(site).await {
        site.nudge.notify_one();
    }
    loop {
        site.nudge.notified().await;
        loop {
            while is_held(site) && find_holder(site).is_some_and(|holder| is_at_work(site, &holder)) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            match start_wake(REASON, &site.config().settings_arguments()) {
                Ok(child) => {
                    if wait_for_wake(site, child).await {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a wake couldn't be started; what was said waits for the next one");
                    break;
                }
            }
            // The present holder of the lock may be the wake that we met, which may have checked before the text was stored. A hung wake
            // that couldn't be replaced needs a person.
            let is_stuck = find_holder(site).is_some_and(|holder| !is_at_work(site, &holder));
            if is_stuck || !is_held(site) {
                break;
            }
        }
    }
}

/// Starts wakes for work due by the clock.
pub(super) async fn start_due_wakes(site: &Arc<PageSite>) -> Infallible {
    let watch = Arc::new(Mutex::new(DueWatch::new(REASON, None)));
    loop {
        let watch = Arc::clone(&watch);
        let ticked = site.run_blocking(move |desk| {
            watch.lock().unwrap_or_else(PoisonError::into_inner).tick(desk.config);
            Ok(())
        });
        if let Err(error) = ticked.await {
            tracing::debug!(%error, "what is due is looked at again");
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// True if input from the page is still unanswered, because an earlier server ended before it started a wake.
async fn has_unanswered_input(site: &Arc<PageSite>) -> bool {
    let looked = site.run_blocking(|desk| {
        let Some(store) = desk.open_store()? else { return Ok(false) };
        Ok(store.inbox().list_queued_messages()?.iter().any(|message| message.chat.is_terminal()))
    });
    looked.await.unwrap_or_default()
}

fn is_held(site: &PageSite) -> bool {
    wake_lock::is_held(&site.config().lock_path())
}

fn find_holder(site: &PageSite) -> Option<Holder> {
    wake_lock::read_holder(&site.config().lock_path())
}

fn is_at_work(site: &PageSite, holder: &Holder) -> bool {
    holder.is_at_work(site.config().stale_lock)
}

/// Waits for a wake, which may outlive us, without blocking a thread. Returns true if the wake hangs.
async fn wait_for_wake(site: &PageSite, mut child: Child) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        if find_holder(site).is_some_and(|holder| holder.pid == child.id() && !is_at_work(site, &holder)) {
            tracing::warn!(pid = child.id(), "the wake has stopped and isn't waited for any more");
            // Still reaped at its end, so that no zombie remains.
            tokio::spawn(reap_child(child));
            return true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    false
}

async fn reap_child(mut child: Child) {
    while matches!(child.try_wait(), Ok(None)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
