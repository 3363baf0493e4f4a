//! Starts a wake for what was said on the page, and for whatever is due while it is served. While another wake works nothing is started: it looks again at its end, and so do
//! we once it has ended. One that shows no life any more isn't waited for: the wake that is started replaces it.

use std::{
    convert::Infallible,
    process::Child,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reveille_store::wake_lock::{self, Holder};

use super::site::PageSite;
use crate::bot::{DueWatch, start_wake};

/// What starts its wakes.
const REASON: &str = "page";
/// How often is looked whether a wake has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How often is looked whether it is time for something.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Wakes whenever it is asked to, one wake at a time.
pub(super) async fn run(site: &Arc<PageSite>) -> Infallible {
    if is_left(site).await {
        site.nudge.notify_one();
    }
    loop {
        site.nudge.notified().await;
        loop {
            while is_held(site) && holder(site).is_some_and(|holder| is_at_work(site, &holder)) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            match start_wake(REASON, &site.config().settings_arguments()) {
                Ok(child) => {
                    if has_stopped(site, child).await {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a wake couldn't be started; what was said waits for the next one");
                    break;
                }
            }
            // Whoever holds the lock now may have been the one that was met; it may have looked before the text was stored. One
            // that has stopped, and couldn't be replaced, needs a person.
            let is_stuck = holder(site).is_some_and(|holder| !is_at_work(site, &holder));
            if is_stuck || !is_held(site) {
                break;
            }
        }
    }
}

/// Wakes for what is due by the clock.
pub(super) async fn watch(site: &Arc<PageSite>) -> Infallible {
    let watch = Arc::new(Mutex::new(DueWatch::new(REASON, None)));
    loop {
        let watch = Arc::clone(&watch);
        let ticked = site.at_desk(move |desk| {
            watch.lock().unwrap_or_else(PoisonError::into_inner).tick(desk.config);
            Ok(())
        });
        if let Err(error) = ticked.await {
            tracing::debug!(%error, "what is due is looked at again");
        }
        tokio::time::sleep(WATCH_EVERY).await;
    }
}

/// Whether something that was said here waits since before: whoever served then was ended before a wake was started.
async fn is_left(site: &Arc<PageSite>) -> bool {
    let looked = site.at_desk(|desk| {
        let Some(store) = desk.store()? else { return Ok(false) };
        Ok(store.queued()?.iter().any(|message| message.chat.is_terminal()))
    });
    looked.await.unwrap_or_default()
}

fn is_held(site: &PageSite) -> bool {
    wake_lock::is_held(&site.config().lock_path())
}

fn holder(site: &PageSite) -> Option<Holder> {
    wake_lock::read(&site.config().lock_path())
}

fn is_at_work(site: &PageSite, holder: &Holder) -> bool {
    holder.is_at_work(site.config().stale_lock)
}

/// Waits for a wake, without holding a thread: it outlives us. Says whether it has stopped instead of ending.
async fn has_stopped(site: &PageSite, mut child: Child) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        if holder(site).is_some_and(|holder| holder.pid == child.id() && !is_at_work(site, &holder)) {
            tracing::warn!(pid = child.id(), "the wake has stopped and isn't waited for any more");
            // Its end is still taken in, so that nothing of it stays.
            tokio::spawn(ended(child));
            return true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    false
}

async fn ended(mut child: Child) {
    while matches!(child.try_wait(), Ok(None)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
