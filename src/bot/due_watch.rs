//! Starts wakes for due work while a page or a chat is open, by the bot's rules, so reminders work without a bot.

use std::{
    fs::File,
    process::Child,
    time::{Duration, Instant},
};

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{StoreError, database, in_force::load_effective_config, wake_lock, wake_lock::waker::Starting};

use super::{
    nudge::{NudgeAction, NudgeEvent, Nudger, StoreLook},
    wake,
};

/// Decides when to look for due work, and tracks the wake it has started.
#[derive(Debug)]
pub struct DueWatch {
    /// The reason passed to its wakes.
    reason: &'static str,
    /// The program to announce while watching.
    shown_as: Option<Starting>,
    /// The lock that announces it.
    shown: Option<File>,
    nudger: Nudger,
    began: Instant,
    /// Time of the next look, on the nudger's clock.
    tick_at: Duration,
    child: Option<Child>,
    /// Wakes that show no life. The next wake replaces them; their exit status is still collected.
    stopped: Vec<Child>,
}

impl DueWatch {
    /// Creates a watch that hasn't looked yet. `shown_as` is the program to announce; of several such watches, only one
    /// is active.
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

    /// Looks if the time has come, and starts a wake if something is due. Meant to be called about once a second.
    pub fn tick(&mut self, config: &Config) {
        if let (Some(program), None) = (self.shown_as, &self.shown) {
            self.shown = program.mark_process(config);
            if self.shown.is_none() {
                return;
            }
        }
        let mut event = if self.has_ended(config) { NudgeEvent::Ended } else { NudgeEvent::Tick };
        if event == NudgeEvent::Tick && self.began.elapsed() < self.tick_at {
            return;
        }
        loop {
            event = match self.nudger.on_event(event, self.began.elapsed()) {
                NudgeAction::Look => read_due_work(config).map_or_else(
                    |error| {
                        tracing::debug!(%error, "what is due can't be read; it is looked at again");
                        NudgeEvent::LookFailed
                    },
                    NudgeEvent::Looked,
                ),
                NudgeAction::Start => self.start_wake(config),
                NudgeAction::Wait(until) => {
                    self.tick_at = until;
                    return;
                }
                NudgeAction::Finish => return,
            };
        }
    }

    fn start_wake(&mut self, config: &Config) -> NudgeEvent {
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

    /// Returns `true` if the started wake has ended or shows no life.
    fn has_ended(&mut self, config: &Config) -> bool {
        self.stopped.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let Some(mut child) = self.child.take() else { return false };
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        let holder = wake_lock::read_holder(&config.lock_path());
        if holder.is_some_and(|holder| holder.pid == child.id() && !holder.is_at_work(config.stale_lock)) {
            self.stopped.push(child);
            return true;
        }
        self.child = Some(child);
        false
    }
}

fn read_due_work(config: &Config) -> Result<StoreLook, StoreError> {
    let Some(store) = database::open_read_only(config)? else { return Ok(StoreLook::default()) };
    let now = config.clock().now();
    let waiting = cycle::read_waiting_work(&store, &load_effective_config(config, &store)?, now)?;
    Ok(StoreLook {
        due: waiting.due,
        next_in: waiting.next_at.map(|at| (at - now).to_std().unwrap_or_default()),
        is_held: wake_lock::read_holder(&config.lock_path()).is_some_and(|holder| holder.is_at_work(config.stale_lock)),
    })
}
