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
        // Whatever is under way is dropped.
        let ended = tokio::select! {
            () = show_while_running(channel, lock_path) => Ok(()),
            ended = is_running.wait_for(|is_running| !*is_running) => ended.map(drop),
        };
        // The other end went while a wake was running: nobody will say any more that it has ended.
        if ended.is_err() {
            return;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Outgoing, SendFuture, TypingFuture};

    struct Door;

    impl Channel for Door {
        fn send<'a>(&'a self, _: &'a Outgoing) -> SendFuture<'a> {
            panic!("nothing is sent here")
        }

        fn typing<'a>(&'a self, _: i64, _: Option<i64>) -> TypingFuture<'a> {
            panic!("no chat is named here")
        }
    }

    #[test]
    fn it_ends_with_the_bot_whether_a_wake_runs_or_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for is_running in [false, true] {
            let (bot, running) = watch::channel(is_running);
            drop(bot);
            let shown = async { tokio::time::timeout(SHOW_EVERY, show(&Door, Path::new("/nowhere"), running)).await };
            assert!(runtime.block_on(shown).is_ok(), "a wake runs: {is_running}");
        }
    }
}
