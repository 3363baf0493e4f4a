//! Runs a thing and its yardstick in turns, and computes their figures.

use std::time::{Duration, Instant};

/// The rounds' values, sorted; at least one.
#[derive(Debug, Clone)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "nothing was measured");
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn min(&self) -> f64 {
        self.0[0]
    }

    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { f64::midpoint(self.0[middle - 1], self.0[middle]) }
    }

    /// The value below which this share of all lies.
    pub(crate) fn at(&self, share: f64) -> f64 {
        self.0[((self.0.len() - 1) as f64 * share).round() as usize]
    }

    pub(crate) fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

/// The times of a thing and its yardstick in milliseconds, and the ratio of each round.
pub(crate) struct Pair {
    pub(crate) ours: Spread,
    pub(crate) theirs: Spread,
    pub(crate) ratios: Spread,
}

impl Pair {
    /// Runs both in turns; each returns its own time. The order changes every round, so neither always profits from the caches of
    /// the other.
    pub(crate) fn by_turns(
        rounds: usize,
        mut ours: impl FnMut() -> Duration,
        mut theirs: impl FnMut() -> Duration,
    ) -> Self {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            if round % 2 == 0 {
                a.push(milliseconds(ours()));
                b.push(milliseconds(theirs()));
            } else {
                b.push(milliseconds(theirs()));
                a.push(milliseconds(ours()));
            }
        }
        Self::of(a, b)
    }

    /// Pairs values that were measured in turns already.
    pub(crate) fn of(ours: Vec<f64>, theirs: Vec<f64>) -> Self {
        let ratios = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        Self { ours: Spread::new(ours), theirs: Spread::new(theirs), ratios: Spread::new(ratios) }
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The duration of `work`.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}
