//! Shows "typing" in the chat that waits for an answer, as long as the wake is alive.

use std::{path::Path, time::Duration};

use tokio::{sync::watch, time::Instant};

use reveille_base::types::ChatRef;
use reveille_channels::{Presence, SendError};
use reveille_store::wake_lock;

/// Telegram shows the indicator for up to five seconds.
const SHOW_EVERY: Duration = Duration::from_secs(4);
/// How often the lock file is read while a wake runs. The wake names the chat in it some time after its start, and again
/// with each cycle.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Shows the indicator until the sender of `is_running` is dropped.
pub(super) async fn show(channel: &dyn Presence, lock_path: &Path, mut is_running: watch::Receiver<bool>) {
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        // The end of the wake cancels a request in progress.
        let ended = tokio::select! {
            () = show_while_running(channel, lock_path) => Ok(()),
            ended = is_running.wait_for(|is_running| !*is_running) => ended.map(drop),
        };
        // The sender is gone, so nothing would report the end of a wake that still runs.
        if ended.is_err() {
            return;
        }
    }
}

async fn show_while_running(channel: &dyn Presence, lock_path: &Path) {
    let mut shown = None;
    let mut show_at = Instant::now();
    let mut not_before = Instant::now();
    loop {
        let (place, now) =
            (read_running_cycle(lock_path).map(|at_work| (at_work.chat, at_work.thread_id)), Instant::now());
        if let Some((chat, thread_id)) = place
            && not_before <= now
            && (place != shown || show_at <= now)
        {
            if let Err(SendError::Later { after, .. }) = channel.show_typing(chat, thread_id).await {
                not_before = Instant::now() + after;
            }
            show_at = Instant::now() + SHOW_EVERY;
            shown = place;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A running cycle, and the place where its answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AtWork {
    pub(super) cycle_id: String,
    pub(super) chat: ChatRef,
    pub(super) thread_id: Option<i64>,
}

/// Reads the cycle that a living wake runs for a chat. `None` without one, or at the terminal, which shows no indicator.
pub(super) fn read_running_cycle(lock_path: &Path) -> Option<AtWork> {
    let holder = wake_lock::read_holder(lock_path)?;
    let chat = holder.chat.filter(|chat| *chat != ChatRef::TERMINAL)?;
    let is_alive = holder.identity().is_alive();
    Some(AtWork { cycle_id: holder.cycle_id?, chat, thread_id: holder.thread_id }).filter(|_| is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_channels::{Channel, DoneFuture, Outgoing, SendFuture};

    struct Door;

    impl Channel for Door {
        fn send<'a>(&'a self, _: &'a Outgoing) -> SendFuture<'a> {
            panic!("nothing is sent here")
        }
    }

    impl Presence for Door {
        fn show_typing<'a>(&'a self, _: ChatRef, _: Option<i64>) -> DoneFuture<'a> {
            panic!("no chat is named here")
        }

        fn acknowledge<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            panic!("no message has arrived here")
        }

        fn edit_message<'a>(&'a self, _: ChatRef, _: i64, _: &'a str) -> DoneFuture<'a> {
            panic!("no message was sent here")
        }

        fn show_draft<'a>(&'a self, _: &'a reveille_channels::DraftMessage) -> DoneFuture<'a> {
            panic!("nothing is shown here")
        }

        fn delete_message<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            panic!("no message was sent here")
        }
    }

    #[test]
    fn the_indicator_ends_with_the_bot_whether_a_wake_runs_or_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for is_running in [false, true] {
            let (bot, running) = watch::channel(is_running);
            drop(bot);
            let shown = async { tokio::time::timeout(SHOW_EVERY, show(&Door, Path::new("/nowhere"), running)).await };
            assert!(runtime.block_on(shown).is_ok(), "a wake runs: {is_running}");
        }
    }
}
