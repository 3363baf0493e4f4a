//! Starts a wake when the nudger asks for one, and notices when it ends.

use std::process::Child;

use reveille_base::process;
use reveille_cycle as cycle;
use reveille_store::wake_lock;

use super::Bot;
use crate::bot::{
    nudge::{NudgeAction, NudgeEvent, StoreLook},
    wake,
};

impl Bot<'_> {
    /// Passes an event to the nudger and carries out its actions until it wants to wait. Breaks when the bot should end.
    pub(super) fn run_nudger(&mut self, mut event: NudgeEvent) -> std::ops::ControlFlow<()> {
        loop {
            let action = self.nudger.on_event(event, self.began.elapsed());
            event = match action {
                NudgeAction::Look => self.read_due_work(),
                NudgeAction::Start => self.start_wake(),
                NudgeAction::Wait(until) => {
                    self.tick_at = until;
                    return std::ops::ControlFlow::Continue(());
                }
                NudgeAction::Finish => {
                    if self.child.is_some() {
                        tracing::info!("a wake still runs; it goes on by itself");
                    }
                    return std::ops::ControlFlow::Break(());
                }
            };
        }
    }

    fn read_due_work(&mut self) -> NudgeEvent {
        let now = self.outside.clock.now();
        let looked = self.door.refresh(self.outside.config, &self.store);
        let config = &self.door.config;
        let waiting = match looked.and_then(|()| cycle::read_waiting_work(&self.store, config, now)) {
            Ok(waiting) => waiting,
            Err(error) => {
                // Polling continues: messages are stored as soon as possible.
                if self.look_trouble.with_store(&error, 1.0).say.is_some() {
                    tracing::warn!(%error, "the queue could not be read; it is tried again until it can");
                }
                return NudgeEvent::LookFailed;
            }
        };
        self.look_trouble.end();
        // A stalled wake is no reason to wait: the new wake replaces it.
        let is_held =
            wake_lock::read_holder(&config.lock_path()).is_some_and(|holder| holder.is_at_work(config.stale_lock));
        self.told.is_running.send_replace(is_held);
        NudgeEvent::Looked(StoreLook {
            due: waiting.due,
            next_in: waiting.next_at.map(|at| (at - now).to_std().unwrap_or_default()),
            is_held,
        })
    }

    /// Starts a wake. SIGCHLD reports its end.
    fn start_wake(&mut self) -> NudgeEvent {
        let start = if self.is_turn() { wake::start_turn } else { wake::start };
        match start(&self.wake, &self.outside.config.settings_arguments()) {
            Ok(child) => {
                tracing::info!(pid = child.id(), "a wake was started");
                self.child = Some(child);
                self.told.is_running.send_replace(true);
                NudgeEvent::Tick
            }
            Err(error) => {
                let program = self.wake.display();
                tracing::error!(%error, "{program} could not be started; messages stay queued, it is tried again later");
                NudgeEvent::StartFailed
            }
        }
    }

    /// Gives up a stalled wake, so that another may replace it. Returns `true` if there was one.
    pub(super) fn give_up_stalled_wake(&mut self) -> bool {
        let config = self.outside.config;
        let holder = wake_lock::read_holder(&config.lock_path());
        let has_stopped = |child: &mut Child| {
            holder.as_ref().is_some_and(|holder| holder.pid == child.id() && !holder.is_at_work(config.stale_lock))
        };
        let stopped = self.child.take_if(has_stopped);
        let Some(child) = stopped else { return false };
        tracing::warn!(pid = child.id(), "the wake has stopped and isn't waited for any more");
        self.stopped.push(child);
        true
    }

    /// Reaps the wake's process, and those of wakes given up before. Returns `true` if the wake has ended.
    pub(super) fn reap_wake(&mut self) -> bool {
        self.stopped.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.adopted.retain(|child| !process::has_ended(*child));
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => return false,
            Ok(Some(status)) if status.success() => tracing::info!("the wake has ended"),
            Ok(Some(status)) => {
                tracing::warn!(
                    "the wake ended with {}; what it was about stays queued",
                    process::describe_exit(status)
                );
            }
            Err(error) => tracing::warn!(%error, "the wake can't be waited for"),
        }
        self.child = None;
        self.told.is_running.send_replace(false);
        true
    }
}
