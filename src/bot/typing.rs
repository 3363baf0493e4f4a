//! Shows in the right chat that an answer is being worked on: only while a wake lives, and never after.

use std::{path::Path, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::{
    channel::{Channel, SendError},
    cycle::lock,
};

/// Telegram shows it for up to five seconds.
const SHOW_EVERY: Duration = Duration::from_secs(4);
/// How often the lock file is read while a wake runs: it begins to name a chat some time after it started, and another
/// chat with its next cycle.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Shows it for as long as the other end of `is_running` lives.
pub(super) async fn show(channel: &dyn Channel, lock_path: &Path, mut is_running: watch::Receiver<bool>) {
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        tokio::select! {
            () = show_while_running(channel, lock_path) => {}
            // Whatever is under way is dropped.
            _ = is_running.wait_for(|is_running| !*is_running) => {}
        }
    }
}

async fn show_while_running(channel: &dyn Channel, lock_path: &Path) {
    let mut shown = None;
    let mut show_at = Instant::now();
    let mut not_before = Instant::now();
    loop {
        let (chat, now) = (named_chat(lock_path), Instant::now());
        if let Some((chat_id, thread_id)) = chat
            && not_before <= now
            && (chat != shown || show_at <= now)
        {
            if let Err(SendError::Later { after, .. }) = channel.typing(chat_id, thread_id).await {
                not_before = Instant::now() + after;
            }
            show_at = Instant::now() + SHOW_EVERY;
            shown = chat;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The chat that a living wake answers now; the console has nobody to show it to.
fn named_chat(lock_path: &Path) -> Option<(i64, Option<i64>)> {
    let holder = lock::read(lock_path)?;
    let chat_id = holder.chat_id.filter(|chat_id| *chat_id != crate::config::CONSOLE_CHAT_ID)?;
    holder.identity().is_alive().then_some((chat_id, holder.thread_id))
}
