//! Resampling from any rate to 16 kHz: a polyphase filter of windowed sincs, fed in pieces.
//!
//! Speech recognition needs no studio quality, but frequencies above 8 kHz mustn't alias into its range: the filter ends just below, and
//! attenuates by more than 60 dB.

use super::RATE_HZ;

/// The accepted rates in Hz. The most awkward of them needs a table of 26 MB.
pub(super) const RATES_HZ: std::ops::RangeInclusive<u32> = 4_000..=192_000;

/// The number of the sinc's zero crossings on each side of the filter.
const ZEROS: f64 = 16.0;
/// The start of the filter's slope, as a share of the lower rate's range.
const ROLL_OFF: f64 = 0.94;

/// A resampler between two rates in the ratio `up` to `down`, in lowest terms.
pub(super) struct Resampler {
    up: usize,
    down: usize,
    /// One filter for each position of an output sample between two input samples.
    filters: Vec<Vec<f32>>,
    /// Input still needed.
    pending: Vec<f32>,
    /// The start of the next output sample's filter in `pending`, in units of 1/`up` sample.
    at: usize,
    taken: u64,
    given: u64,
}

impl Resampler {
    /// Builds a resampler for a rate in [`RATES_HZ`]; `None` for another.
    pub(super) fn new(from_hz: u32) -> Option<Self> {
        if !RATES_HZ.contains(&from_hz) {
            return None;
        }
        let common = gcd(from_hz, RATE_HZ);
        let (up, down) = ((RATE_HZ / common) as usize, (from_hz / common) as usize);
        let cutoff = (up as f64 / down as f64).min(1.0) * ROLL_OFF;
        let half = (ZEROS / cutoff).ceil() as usize;
        let filters = (0..up).map(|phase| build_filter(phase as f64 / up as f64, half, cutoff)).collect();
        // The first output sample coincides with the first input sample, after half a filter of silence.
        Some(Self { up, down, filters, pending: vec![0.0; half - 1], at: 0, taken: 0, given: 0 })
    }

    /// Takes more input and adds the resulting samples to `out`.
    pub(super) fn push(&mut self, input: &[f32], out: &mut Vec<f32>) {
        self.taken += input.len() as u64;
        self.pending.extend_from_slice(input);
        self.filter_pending(u64::MAX, out);
    }

    /// Adds the last samples, so that the output lasts as long as the input.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        let whole = (self.taken * self.up as u64).div_ceil(self.down as u64);
        let width = self.filters.first().map_or(0, Vec::len);
        self.pending.extend(std::iter::repeat_n(0.0, width));
        self.filter_pending(whole, out);
    }

    /// Adds all samples for which there is enough pending input, up to `most` samples in total.
    fn filter_pending(&mut self, most: u64, out: &mut Vec<f32>) {
        while self.given < most {
            let (base, phase) = (self.at / self.up, self.at % self.up);
            let Some(filter) = self.filters.get(phase) else { break };
            let Some(window) = self.pending.get(base..base + filter.len()) else { break };
            out.push(window.iter().zip(filter).map(|(sample, weight)| sample * weight).sum());
            self.at += self.down;
            self.given += 1;
        }
        let used = (self.at / self.up).min(self.pending.len());
        self.pending.drain(..used);
        self.at -= used * self.up;
    }
}

/// Returns the weights of `2 * half` samples. The filter's centre lies `offset` samples after the sample at index `half - 1`.
fn build_filter(offset: f64, half: usize, cutoff: f64) -> Vec<f32> {
    let weight = |n: usize| {
        let x = n as f64 - (half as f64 - 1.0) - offset;
        let place = x / half as f64;
        if place.abs() >= 1.0 { 0.0 } else { sinc(x * cutoff) * blackman_window(place) }
    };
    let weights: Vec<f64> = (0..2 * half).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| (weight / sum) as f32).collect()
}

fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
}

/// Returns Blackman's window over -1 to 1.
fn blackman_window(x: f64) -> f64 {
    let angle = x * std::f64::consts::PI;
    0.42 + 0.5 * angle.cos() + 0.08 * (2.0 * angle).cos()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate_hz: u32, seconds: f64) -> Vec<f32> {
        let count = (seconds * f64::from(rate_hz)) as usize;
        (0..count).map(|n| (std::f64::consts::TAU * hz * n as f64 / f64::from(rate_hz)).sin() as f32).collect()
    }

    fn resample(input: &[f32], from_hz: u32, piece: usize) -> Vec<f32> {
        let (mut resampler, mut out) = (Resampler::new(from_hz).unwrap(), Vec::new());
        input.chunks(piece).for_each(|piece| resampler.push(piece, &mut out));
        resampler.finish(&mut out);
        out
    }

    fn rms(samples: &[f32]) -> f32 {
        (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).sqrt()
    }

    #[test]
    fn a_tone_keeps_its_pitch_phase_loudness_and_length() {
        for rate in [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000] {
            let out = resample(&tone(440.0, rate, 0.5), rate, 1024);
            assert!(out.len().abs_diff(8_000) <= 1, "{rate} Hz: {}", out.len());
            let ideal = tone(440.0, RATE_HZ, 0.5);
            let middle = 200..7_800;
            let errors: Vec<f32> = middle.map(|n| out[n] - ideal[n]).collect();
            assert!(rms(&errors) < 2e-3, "{rate} Hz: {}", rms(&errors));
        }
    }

    #[test]
    fn frequencies_above_the_range_of_speech_models_do_not_alias() {
        for rate in [44_100, 48_000] {
            let out = resample(&tone(9_500.0, rate, 0.5), rate, 1024);
            let loudness = rms(&out[200..7_800]);
            assert!(loudness < 1e-3, "{rate} Hz: {loudness}");
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let input = tone(1_234.0, 44_100, 0.2);
        let whole = resample(&input, 44_100, input.len());
        for piece in [1, 7, 441, 4_096] {
            assert_eq!(resample(&input, 44_100, piece), whole, "{piece}");
        }
    }

    #[test]
    fn odd_rates_and_short_input_are_handled() {
        assert!(Resampler::new(0).is_none() && Resampler::new(3_999).is_none() && Resampler::new(192_001).is_none());
        assert_eq!(resample(&[], 48_000, 1), Vec::<f32>::new());
        assert_eq!(resample(&[1.0], 48_000, 1).len(), 1);
        assert_eq!(resample(&[0.5; 47], 15_999, 1).len(), 48);
    }
}
