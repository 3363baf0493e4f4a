//! Sound made here, for the tests of this module.

pub(super) mod sound {
    use super::super::RATE_HZ;

    fn samples(seconds: f64, mut one: impl FnMut(f64) -> f64) -> Vec<f32> {
        let count = (seconds * f64::from(RATE_HZ)) as usize;
        (0..count).map(|n| one(n as f64 / f64::from(RATE_HZ)) as f32).collect()
    }

    pub(in super::super) fn silence(seconds: f64) -> Vec<f32> {
        samples(seconds, |_| 0.0)
    }

    pub(in super::super) fn tone(hz: f64, seconds: f64, loudness: f64) -> Vec<f32> {
        samples(seconds, |t| loudness * (std::f64::consts::TAU * hz * t).sin())
    }

    /// White noise, the same each time.
    pub(in super::super) fn noise(seconds: f64, loudness: f64) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(7);
        samples(seconds, |_| loudness * (random.f64() * 2.0 - 1.0))
    }

    /// A buzz that comes and goes five times a second: loud and quiet as speech is.
    pub(in super::super) fn syllables(seconds: f64, loudness: f64) -> Vec<f32> {
        samples(seconds, |t| {
            let envelope = (std::f64::consts::PI * 5.0 * t).sin().powi(2);
            loudness * envelope * (std::f64::consts::TAU * 150.0 * t).sin()
        })
    }
}
