//! Starts wakes for what is due while a page or a chat is open, by the bot's own rules: whoever has only that open is reminded, too.

use std::{
    fs::File,
    process::Child,
    time::{Duration, Instant},
};

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{StoreError, database, in_force::in_force, wake_lock, wake_lock::waker::Starting};

use super::{
    nudge::{NudgeAction, NudgeEvent, Nudger, StoreLook},
    wake,
};

/// Knows when to look, and the wake that it has started.
#[derive(Debug)]
pub struct DueWatch {
    /// What starts its wakes.
    reason: &'static str,
    /// What it has to be shown as.
    shown_as: Option<Starting>,
    /// The lock by which it is.
    shown: Option<File>,
    nudger: Nudger,
    began: Instant,
    /// When to look next, on the nudger's clock.
    tick_at: Duration,
    child: Option<Child>,
    /// Wakes that show no life any more: the next one replaces them, and their end is taken in.
    stopped: Vec<Child>,
}

impl DueWatch {
    /// Has looked at nothing yet. `shown_as`: what it is to be known as while it watches; of several one watches.
    pub fn new(reason: &'static str, shown_as: Option<Starting>) -> Self {
        Self {
            reason,
            shown_as,
            shown: None,
            nudger: Nudger::default(),
            began: Instant::now(),
            tick_at: Duration::ZERO,
            child: None,
            stopped: Vec::new(),
        }
    }

    /// Looks if it is time to, and starts a wake if something is due. To be called about once a second.
    pub fn tick(&mut self, config: &Config) {
        if let (Some(program), None) = (self.shown_as, &self.shown) {
            self.shown = program.show(config);
            if self.shown.is_none() {
                return;
            }
        }
        let mut event = if self.has_ended(config) { NudgeEvent::Ended } else { NudgeEvent::Tick };
        if event == NudgeEvent::Tick && self.began.elapsed() < self.tick_at {
            return;
        }
        loop {
            event = match self.nudger.on(event, self.began.elapsed()) {
                NudgeAction::Look => look(config).map_or_else(
                    |error| {
                        tracing::debug!(%error, "what is due can't be read; it is looked at again");
                        NudgeEvent::LookFailed
                    },
                    NudgeEvent::Looked,
                ),
                NudgeAction::Start => self.start(config),
                NudgeAction::Wait(until) => {
                    self.tick_at = until;
                    return;
                }
                NudgeAction::Finish => return,
            };
        }
    }

    fn start(&mut self, config: &Config) -> NudgeEvent {
        match wake::start_unseen(self.reason, &config.settings_arguments()) {
            Ok(child) => {
                self.child = Some(child);
                NudgeEvent::Tick
            }
            Err(error) => {
                tracing::warn!(%error, "a wake couldn't be started; it is tried again later");
                NudgeEvent::StartFailed
            }
        }
    }

    /// Whether the wake that was started has ended, or shows no life any more.
    fn has_ended(&mut self, config: &Config) -> bool {
        self.stopped.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let Some(mut child) = self.child.take() else { return false };
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        let holder = wake_lock::read(&config.lock_path());
        if holder.is_some_and(|holder| holder.pid == child.id() && !holder.is_at_work(config.stale_lock)) {
            self.stopped.push(child);
            return true;
        }
        self.child = Some(child);
        false
    }
}

fn look(config: &Config) -> Result<StoreLook, StoreError> {
    let Some(store) = database::look(config)? else { return Ok(StoreLook::default()) };
    let now = config.clock().now();
    let waiting = cycle::waiting(&store, &in_force(config, &store)?, now)?;
    Ok(StoreLook {
        due: waiting.due,
        next_in: waiting.next_at.map(|at| (at - now).to_std().unwrap_or_default()),
        is_held: wake_lock::read(&config.lock_path()).is_some_and(|holder| holder.is_at_work(config.stale_lock)),
    })
}
