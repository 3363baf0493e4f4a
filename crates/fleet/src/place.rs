//! Decides which turns hold one of a worker's places: those that have just begun, and those that compute.
//!
//! A turn's own reports don't count, since its model may control them: the worker measures how long the turn's processes have computed. It
//! therefore makes no difference whether a turn waits for a model, a download or a sleeping program.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

/// The minimum time that a turn holds its place. Most turns are over by then.
const FIRST: Duration = Duration::from_secs(1);
/// The maximum time that a turn holds its place, so that one that computes for hours doesn't block the others.
const MAX_HELD: Duration = Duration::from_secs(30);
/// A turn was waiting if it computed for less than the time since the last measurement, divided by this.
const COMPUTING_DIVISOR: u32 = 10;
/// How many more turns than places may run. Each needs memory for a wake and for its tools' programs.
const MAX_EXTRA: usize = 64;

/// The place of a turn.
#[derive(Debug, Clone)]
pub(super) struct HeldPlace {
    began: Instant,
    measured: Instant,
    /// The processes' total computing time at the last measurement.
    computed: Duration,
    is_held: bool,
}

impl HeldPlace {
    /// Takes the place for a turn that begins now.
    pub(super) fn take(now: Instant) -> Self {
        Self { began: now, measured: now, computed: Duration::ZERO, is_held: true }
    }

    /// Returns `true` if the turn holds its place, so that another has to wait for it.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Records the computing time of the turn's processes so far.
    pub(super) fn measure(&mut self, now: Instant, computed: Duration) {
        let age = now.saturating_duration_since(self.began);
        let stretch = now.saturating_duration_since(self.measured);
        let computes = computed.saturating_sub(self.computed) * COMPUTING_DIVISOR >= stretch;
        // fault: turn-holds-place-waits
        self.is_held = age < FIRST || computes && age < MAX_HELD;
        (self.measured, self.computed) = (now, computed);
    }
}

/// Returns `true` if one more turn may begin. `slots` is the number of places, and `held` of the `running` turns hold one.
pub(super) fn has_room(slots: NonZeroU32, held: usize, running: usize) -> bool {
    let slots = usize::try_from(slots.get()).unwrap_or(usize::MAX);
    held < slots && running < slots.saturating_add(MAX_EXTRA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a turn holds its place after each measurement. A measurement is a time and the time computed so far, in
    /// milliseconds.
    fn held(measured: &[(u64, u64)]) -> Vec<bool> {
        let began = Instant::now();
        let mut place = HeldPlace::take(began);
        let measure = |(at, computed): &(u64, u64)| {
            place.measure(began + Duration::from_millis(*at), Duration::from_millis(*computed));
            place.is_held()
        };
        measured.iter().map(measure).collect()
    }

    #[test]
    fn a_turn_gives_up_its_place_while_it_waits_and_takes_it_back_to_compute() {
        assert_eq!(held(&[(500, 400), (1_000, 410), (1_500, 420), (2_000, 900)]), [true, false, false, true]);
        assert_eq!(held(&[(500, 0), (999, 0), (1_500, 30)]), [true, true, false]);
    }

    #[test]
    fn no_turn_holds_its_place_forever() {
        assert_eq!(
            held(&[(20_000, 20_000), (29_900, 29_900), (30_000, 30_000), (60_000, 90_000)]),
            [true, true, false, false]
        );
    }

    #[test]
    fn waiting_turns_are_limited_too() {
        let two = NonZeroU32::new(2).unwrap();
        assert!(has_room(two, 1, 1) && !has_room(two, 2, 2) && has_room(two, 0, 65) && !has_room(two, 0, 66));
    }
}
