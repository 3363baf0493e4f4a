//! Has recordings transcribed by the child process that the bot uses too; one listens at a time, whoever started it. While a recording
//! waits, its message isn't answered, so a wake is asked for after it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chrono::TimeDelta;

use reveille_base::process::Leashed;
use reveille_store::wake_lock;

use super::super::site::PageSite;
use crate::bot::media::{remove_uploads, start_listener};

/// Interval between checks while a recording waits.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks for the end of the child.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Time after which an upload that is no longer written was left behind.
const UPLOAD_LEFT: TimeDelta = TimeDelta::hours(1);

/// Listens to what was recorded, now and before this server started.
pub(in crate::page) async fn run(site: &Arc<PageSite>) -> Infallible {
    let before = site.config().clock().now() - UPLOAD_LEFT;
    if let Err(error) = remove_uploads(&site.config().files_dir(), before.into()) {
        tracing::warn!(%error, "unfinished uploads can't be removed");
    }
    loop {
        match look(site).await {
            Waiting::Due => {
                // A child that can't start, or ends at once, isn't started again and again.
                let next = tokio::time::Instant::now() + LOOK_EVERY;
                match start_listener(None, &site.config().settings_arguments()) {
                    Ok(child) => wait_for_end(child).await,
                    Err(error) => tracing::warn!(%error, "a recording can't be listened to now; it is tried again"),
                }
                site.nudge.notify_one();
                tokio::time::sleep_until(next).await;
            }
            Waiting::Later => tokio::time::sleep(LOOK_EVERY).await,
            Waiting::Nothing => site.chat.recorded.notified().await,
        }
    }
}

/// The recordings of the terminals' messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    /// A child can listen to one now.
    Due,
    /// All work is stopped, another child listens, or a failure is to be retried later.
    Later,
}

async fn look(site: &Arc<PageSite>) -> Waiting {
    let looked = site.run_blocking(|desk| {
        let Some(store) = desk.open_store()? else { return Ok(Waiting::Nothing) };
        let messages = store.inbox().list_queued_messages()?;
        if !messages.iter().any(|message| message.chat.is_terminal() && message.awaits_files) {
            return Ok(Waiting::Nothing);
        }
        let is_free = !wake_lock::is_held(&desk.config.voice_lock_path()) && store.chats().find_stop_order()?.is_none();
        let is_due = is_free && store.attachments().find_next_recording(desk.now)?.is_some();
        Ok(if is_due { Waiting::Due } else { Waiting::Later })
    });
    looked.await.unwrap_or(Waiting::Later)
}

async fn wait_for_end(mut child: Leashed) {
    while matches!(child.try_wait(), Ok(None)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
