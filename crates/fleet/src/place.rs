//! The holders of a worker's places: turns that begin, and turns that compute.
//!
//! A turn's own reports don't count, since its model may control them: the worker measures how long the turn's processes have computed.
//! Waiting is therefore the same for a model, a download or a sleeping program.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

/// The time that each turn holds its place at least. Most are over by then.
const FIRST: Duration = Duration::from_secs(1);
/// The time that a turn holds its place at most, so that a turn that computes for hours doesn't block the others.
const LONGEST: Duration = Duration::from_secs(30);
/// The divisor of a stretch of time: a turn that has computed less than this part of it was waiting.
const COMPUTING_PART: u32 = 10;
/// The most turns beside those that hold a place. Each needs the memory of a wake and its tools' programs.
const MAX_BESIDE: usize = 64;

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

    /// Returns `true` if another turn has to wait for it.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Records the computing time of the turn's processes so far.
    pub(super) fn measure(&mut self, now: Instant, computed: Duration) {
        let age = now.saturating_duration_since(self.began);
        let stretch = now.saturating_duration_since(self.measured);
        let computes = computed.saturating_sub(self.computed) * COMPUTING_PART >= stretch;
        // fault: turn-holds-place-waits
        self.is_held = age < FIRST || computes && age < LONGEST;
        (self.measured, self.computed) = (now, computed);
    }
}

/// Returns `true` if one more turn may begin, with `held` of the `running` turns holding a place.
pub(super) fn has_room(slots: NonZeroU32, held: usize, running: usize) -> bool {
    let slots = usize::try_from(slots.get()).unwrap_or(usize::MAX);
    held < slots && running < slots.saturating_add(MAX_BESIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells after each measurement whether a turn holds its place. A measurement is a time and the time computed so far, in
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
    fn a_turn_that_waits_gives_its_place_away_and_takes_it_again_when_it_computes() {
        assert_eq!(held(&[(500, 400), (1_000, 410), (1_500, 420), (2_000, 900)]), [true, false, false, true]);
        assert_eq!(held(&[(500, 0), (999, 0), (1_500, 30)]), [true, true, false]);
    }

    #[test]
    fn nobody_holds_a_place_for_ever() {
        assert_eq!(
            held(&[(20_000, 20_000), (29_900, 29_900), (30_000, 30_000), (60_000, 90_000)]),
            [true, true, false, false]
        );
    }

    #[test]
    fn turns_that_wait_are_bounded_too() {
        let two = NonZeroU32::new(2).unwrap();
        assert!(has_room(two, 1, 1) && !has_room(two, 2, 2) && has_room(two, 0, 65) && !has_room(two, 0, 66));
    }
}
