//! Starts a wake for what was said on the page. While another wake works nothing is started: it looks again at its end, and so do
//! we once it has ended.

use std::{convert::Infallible, process::Child, sync::Arc, time::Duration};

use super::site::PageSite;
use crate::{bot::start_wake, wake_lock};

/// What starts its wakes.
const REASON: &str = "page";
/// How often is looked whether a wake has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Wakes whenever it is asked to, one wake at a time.
pub(super) async fn run(site: &Arc<PageSite>) -> Infallible {
    loop {
        site.nudge.notified().await;
        loop {
            while wake_lock::is_held(&site.config().lock_path()) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            match start_wake(REASON, &site.config().settings_arguments()) {
                Ok(child) => ended(child).await,
                Err(error) => {
                    tracing::warn!(%error, "a wake couldn't be started; what was said waits for the next one");
                    break;
                }
            }
            // Whoever holds the lock now may have been the one that was met; it may have looked before the text was stored.
            if !wake_lock::is_held(&site.config().lock_path()) {
                break;
            }
        }
    }
}

/// Waits for a wake, without holding a thread: it outlives us.
async fn ended(mut child: Child) {
    while matches!(child.try_wait(), Ok(None)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
