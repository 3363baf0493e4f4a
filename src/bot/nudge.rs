//! Decides when to start a wake: a synchronous, total function of events. It knows no store, process or clock. The loop
//! in `run` passes in the events with the time, and carries out the decisions.
//!
//! Times are durations since the start of the bot, on a monotonic clock.

use std::{collections::BTreeSet, time::Duration};

use reveille_cycle::DueItem;

/// Messages with shorter gaps belong to one burst.
const BURST_GAP: Duration = Duration::from_millis(400);
/// Maximum wait of a message for the rest of its burst.
const BURST_MAX: Duration = Duration::from_secs(1);
/// How often to look at the store without another reason. Messages and reminders also come from elsewhere, and the wall
/// clock can jump.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(15);
/// How often to look while a wake of another starter runs.
const LOOK_WHILE_HELD: Duration = Duration::from_secs(3);
/// Minimum time between two looks that find nothing new.
const LOOK_GAP: Duration = Duration::from_millis(20);
/// The wait after a wake that left everything due. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
/// The longest wait after such a wake.
const LONGEST_BACKOFF: Duration = Duration::from_secs(600);
/// How long to wait for a running wake before the bot ends. The wake continues by itself afterwards.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NudgeEvent {
    /// A message was stored, or changed while queued.
    Stored,
    /// The time of [`NudgeAction::Wait`] has come.
    Tick,
    /// The result of [`NudgeAction::Look`].
    Looked(StoreLook),
    /// The look failed.
    LookFailed,
    /// The wake of [`NudgeAction::Start`] couldn't be started.
    StartFailed,
    /// The started wake has ended.
    Ended,
    /// The bot was asked to end.
    Stop,
}

/// The result of a look at the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoreLook {
    /// The due work.
    pub(super) due: BTreeSet<DueItem>,
    /// Time until the next item that is due by time.
    pub(super) next_in: Option<Duration>,
    /// `true` if a wake of another starter runs.
    pub(super) is_held: bool,
}

/// The next action.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NudgeAction {
    /// Look at the store and report the result.
    Look,
    /// Start a wake.
    Start,
    /// Report a tick at that time, unless another event comes first.
    Wait(Duration),
    /// End.
    Finish,
}

/// Decides when wakes start.
#[derive(Debug, Default)]
pub(super) struct Nudger {
    phase: Phase,
    /// Times of the first and the last message of the current burst.
    burst: Option<(Duration, Duration)>,
    /// A message was stored or changed since the last start of a wake. It overrides a back-off.
    has_fresh: bool,
    /// The items due when the last wake began. New items override a back-off too.
    tried: BTreeSet<DueItem>,
    /// Wakes in a row that left everything due.
    fruitless: u32,
    not_before: Duration,
    look_at: Duration,
    stop_by: Option<Duration>,
}

/// State of the wake that this bot started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Running,
    /// The wake has ended; the next look shows its effect.
    Ended,
}

impl Nudger {
    pub(super) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Takes in an event and decides the next action.
    pub(super) fn on_event(&mut self, event: NudgeEvent, now: Duration) -> NudgeAction {
        match event {
            NudgeEvent::Stored => {
                let first = self.burst.map_or(now, |(first, _)| first);
                self.burst = Some((first, now));
                self.next(now)
            }
            NudgeEvent::Tick => self.next(now),
            NudgeEvent::Looked(look) => self.on_look(look, now),
            NudgeEvent::LookFailed => {
                self.phase = Phase::Idle;
                self.look_at = now + LOOK_EVERY;
                self.plan_wait(now)
            }
            NudgeEvent::StartFailed => {
                self.phase = Phase::Idle;
                self.back_off(now);
                self.plan_wait(now)
            }
            NudgeEvent::Ended => {
                self.phase = Phase::Ended;
                self.has_fresh |= self.burst.take().is_some();
                match self.stop_by {
                    Some(_) => NudgeAction::Finish,
                    None => NudgeAction::Look,
                }
            }
            NudgeEvent::Stop => {
                self.stop_by = Some(now + STOP_GRACE);
                self.next(now)
            }
        }
    }

    fn next(&mut self, now: Duration) -> NudgeAction {
        if let Some(by) = self.stop_by {
            return if self.is_running() && now < by { NudgeAction::Wait(by) } else { NudgeAction::Finish };
        }
        if self.burst_end().is_some_and(|end| end <= now) {
            self.burst = None;
            self.has_fresh = true;
            self.look_at = now;
        }
        if self.look_at <= now && !self.is_running() { NudgeAction::Look } else { self.plan_wait(now) }
    }

    fn on_look(&mut self, look: StoreLook, now: Duration) -> NudgeAction {
        if std::mem::take(&mut self.phase) == Phase::Ended {
            if self.tried.is_subset(&look.due) {
                self.back_off(now);
            } else {
                self.fruitless = 0;
                self.not_before = now;
            }
        }
        let is_new = self.has_fresh || !look.due.is_subset(&self.tried);
        let next_look = now + look.next_in.unwrap_or(LOOK_EVERY).clamp(LOOK_GAP, LOOK_EVERY);
        if look.due.is_empty() {
            self.has_fresh = false;
            self.look_at = next_look;
        } else if look.is_held {
            self.look_at = now + LOOK_WHILE_HELD;
        } else if is_new || self.not_before <= now {
            self.has_fresh = false;
            self.look_at = now;
            self.phase = Phase::Running;
            self.tried = look.due;
            return NudgeAction::Start;
        } else {
            self.look_at = self.not_before.min(next_look);
        }
        self.plan_wait(now)
    }

    fn back_off(&mut self, now: Duration) {
        let doublings = self.fruitless.min(16);
        self.fruitless = self.fruitless.saturating_add(1);
        self.not_before = now + (FIRST_BACKOFF * (1 << doublings)).min(LONGEST_BACKOFF);
        self.look_at = self.not_before.min(now + LOOK_EVERY);
    }

    /// Waits for the next look or the end of the burst. While a wake runs only its end matters; the tick is a heartbeat.
    fn plan_wait(&self, now: Duration) -> NudgeAction {
        let look_at = if self.is_running() { now + LOOK_EVERY } else { self.look_at };
        let burst_end = if self.is_running() { None } else { self.burst_end() };
        NudgeAction::Wait(burst_end.map_or(look_at, |end| end.min(look_at)))
    }

    fn burst_end(&self) -> Option<Duration> {
        self.burst.map(|(first, last)| (last + BURST_GAP).min(first + BURST_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn due(names: &[&str]) -> NudgeEvent {
        NudgeEvent::Looked(StoreLook {
            due: names.iter().map(|name| DueItem::Other((*name).to_owned())).collect(),
            ..StoreLook::default()
        })
    }

    /// A bot that has looked once at time 0 and found nothing.
    fn idle() -> Nudger {
        let mut nudger = Nudger::default();
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(0)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&[]), ms(0)), NudgeAction::Wait(LOOK_EVERY));
        nudger
    }

    #[test]
    fn what_waits_at_the_start_is_taken_up_at_once() {
        let mut nudger = Nudger::default();
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(0)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(0)), NudgeAction::Start);
    }

    #[test]
    fn a_burst_of_messages_starts_one_wake() {
        let mut nudger = idle();
        for at in [2000, 2200, 2400, 2600, 2800] {
            let action = nudger.on_event(NudgeEvent::Stored, ms(at));
            assert!(matches!(action, NudgeAction::Wait(until) if until <= ms(3000)), "{action:?}");
        }
        // The first message waits for a second at most, however long the burst goes on.
        assert_eq!(nudger.on_event(NudgeEvent::Stored, ms(2950)), NudgeAction::Wait(ms(3000)));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(3000)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1", "message 2"]), ms(3000)), NudgeAction::Start);
        // What comes while it runs starts no second one beside it.
        assert_eq!(nudger.on_event(NudgeEvent::Stored, ms(3100)), NudgeAction::Wait(ms(3100) + LOOK_EVERY));
        assert!(nudger.is_running());
    }

    #[test]
    fn a_single_message_waits_for_a_gap_only() {
        let mut nudger = idle();
        assert_eq!(nudger.on_event(NudgeEvent::Stored, ms(5000)), NudgeAction::Wait(ms(5400)));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(5400)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(5400)), NudgeAction::Start);
    }

    #[test]
    fn what_came_during_a_wake_is_taken_up_after_it() {
        let mut nudger = Nudger::default();
        let _look = nudger.on_event(NudgeEvent::Tick, ms(0));
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(0)), NudgeAction::Start);
        let _wait = nudger.on_event(NudgeEvent::Stored, ms(100));
        assert_eq!(nudger.on_event(NudgeEvent::Ended, ms(200)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 2"]), ms(200)), NudgeAction::Start);
    }

    #[test]
    fn a_wake_without_progress_is_not_started_in_a_tight_loop() {
        let mut nudger = Nudger::default();
        let (mut now, mut starts) = (ms(0), Vec::new());
        let mut event = NudgeEvent::Tick;
        while now < Duration::from_secs(3600) {
            event = match nudger.on_event(event, now) {
                NudgeAction::Look => due(&["message 1"]),
                NudgeAction::Start => {
                    starts.push(now);
                    NudgeEvent::Ended
                }
                NudgeAction::Wait(until) => {
                    assert!(until > now, "a wait that doesn't wait");
                    now = until;
                    NudgeEvent::Tick
                }
                NudgeAction::Finish => panic!("nobody asked it to end"),
            };
        }
        let gaps: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert_eq!(gaps[..8], [5, 10, 20, 40, 80, 160, 320, 600]);
        assert!(gaps[8..].iter().all(|gap| *gap == 600));
    }

    #[test]
    fn a_new_message_does_not_wait_for_the_end_of_a_back_off() {
        let mut nudger = Nudger::default();
        let _look = nudger.on_event(NudgeEvent::Tick, ms(0));
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(0)), NudgeAction::Start);
        assert_eq!(nudger.on_event(NudgeEvent::Ended, ms(10)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(10)), NudgeAction::Wait(ms(5010)));
        let _wait = nudger.on_event(NudgeEvent::Stored, ms(1000));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(1400)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1", "message 2"]), ms(1400)), NudgeAction::Start);
        // One of two answered is progress.
        assert_eq!(nudger.on_event(NudgeEvent::Ended, ms(2000)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(2000)), NudgeAction::Start);
    }

    #[test]
    fn a_reminder_is_met_at_its_time() {
        let mut nudger = idle();
        let look = StoreLook { next_in: Some(ms(3000)), ..StoreLook::default() };
        assert_eq!(nudger.on_event(NudgeEvent::Tick, LOOK_EVERY), NudgeAction::Look);
        assert_eq!(nudger.on_event(NudgeEvent::Looked(look), LOOK_EVERY), NudgeAction::Wait(LOOK_EVERY + ms(3000)));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, LOOK_EVERY + ms(3000)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["reminder 1"]), LOOK_EVERY + ms(3000)), NudgeAction::Start);
    }

    #[test]
    fn a_reminder_does_not_wait_for_the_end_of_a_back_off() {
        let mut nudger = Nudger::default();
        let _look = nudger.on_event(NudgeEvent::Tick, ms(0));
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(0)), NudgeAction::Start);
        assert_eq!(nudger.on_event(NudgeEvent::Ended, ms(10)), NudgeAction::Look);
        let look = StoreLook {
            due: BTreeSet::from([DueItem::Other("message 1".to_owned())]),
            next_in: Some(ms(990)),
            is_held: false,
        };
        assert_eq!(nudger.on_event(NudgeEvent::Looked(look), ms(10)), NudgeAction::Wait(ms(1000)));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(1000)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1", "reminder 1"]), ms(1000)), NudgeAction::Start);
    }

    #[test]
    fn a_wake_of_somebody_else_is_waited_for() {
        let mut nudger = idle();
        let _wait = nudger.on_event(NudgeEvent::Stored, ms(1000));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(1400)), NudgeAction::Look);
        let NudgeEvent::Looked(look) = due(&["message 1"]) else { unreachable!() };
        let held = NudgeEvent::Looked(StoreLook { is_held: true, ..look });
        assert_eq!(nudger.on_event(held, ms(1400)), NudgeAction::Wait(ms(1400) + LOOK_WHILE_HELD));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(4400)), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(4400)), NudgeAction::Start);
    }

    #[test]
    fn a_failed_start_or_look_is_tried_again_later() {
        let mut nudger = Nudger::default();
        let _look = nudger.on_event(NudgeEvent::Tick, ms(0));
        assert_eq!(nudger.on_event(NudgeEvent::LookFailed, ms(0)), NudgeAction::Wait(LOOK_EVERY));
        assert_eq!(nudger.on_event(NudgeEvent::Tick, LOOK_EVERY), NudgeAction::Look);
        assert_eq!(nudger.on_event(due(&["message 1"]), LOOK_EVERY), NudgeAction::Start);
        assert_eq!(nudger.on_event(NudgeEvent::StartFailed, LOOK_EVERY), NudgeAction::Wait(LOOK_EVERY + FIRST_BACKOFF));
        assert!(!nudger.is_running());
    }

    #[test]
    fn asked_to_end_it_lets_a_wake_finish_but_not_for_ever() {
        assert_eq!(idle().on_event(NudgeEvent::Stop, ms(100)), NudgeAction::Finish);

        let mut nudger = Nudger::default();
        let _look = nudger.on_event(NudgeEvent::Tick, ms(0));
        assert_eq!(nudger.on_event(due(&["message 1"]), ms(0)), NudgeAction::Start);
        assert_eq!(nudger.on_event(NudgeEvent::Stop, ms(100)), NudgeAction::Wait(ms(100) + STOP_GRACE));
        assert_eq!(nudger.on_event(NudgeEvent::Stored, ms(200)), NudgeAction::Wait(ms(100) + STOP_GRACE));
        assert_eq!(nudger.on_event(NudgeEvent::Ended, ms(300)), NudgeAction::Finish);
        assert_eq!(nudger.on_event(NudgeEvent::Tick, ms(100) + STOP_GRACE), NudgeAction::Finish);
    }

    proptest::proptest! {
        /// Whatever happens in whatever order: one wake at a time, none after it was asked to end, and every wait waits.
        #[test]
        fn it_is_total_and_never_spins(
            happenings in proptest::collection::vec((0_u8..5, 0_u64..20_000, 0_usize..4, proptest::bool::ANY), 1..200),
        ) {
            let mut nudger = Nudger::default();
            let (mut now, mut is_running, mut is_stopping) = (ms(0), false, false);
            for (kind, later, things, is_held) in happenings {
                now += ms(later);
                let mut event = match kind {
                    0 => NudgeEvent::Stored,
                    1 if is_running => {
                        is_running = false;
                        NudgeEvent::Ended
                    }
                    2 if later < 200 => {
                        is_stopping = true;
                        NudgeEvent::Stop
                    }
                    _ => NudgeEvent::Tick,
                };
                let mut looks = 0;
                loop {
                    event = match nudger.on_event(event, now) {
                        NudgeAction::Look => {
                            looks += 1;
                            proptest::prop_assert!(looks <= 2 && !is_running && !is_stopping);
                            let due = (0..things).map(|n| DueItem::Other(n.to_string())).collect();
                            NudgeEvent::Looked(StoreLook { due, next_in: Some(ms(later)), is_held })
                        }
                        NudgeAction::Start => {
                            proptest::prop_assert!(!is_running && !is_held && !is_stopping && things > 0);
                            is_running = later % 3 > 0;
                            if is_running { NudgeEvent::Tick } else { NudgeEvent::StartFailed }
                        }
                        NudgeAction::Wait(until) => {
                            proptest::prop_assert!(until > now, "{until:?} isn't after {now:?}");
                            break;
                        }
                        NudgeAction::Finish => return Ok(()),
                    };
                }
                proptest::prop_assert_eq!(nudger.is_running(), is_running);
            }
        }
    }
}
