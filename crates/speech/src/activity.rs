//! Detects possible speech by energy alone, before a model runs.
//!
//! Whisper writes "Thank you." under silence and hum. A recording that is silent, or steadier than any voice, never reaches it, which also
//! saves time. In doubt the answer is yes: the model's own signs are checked later (`sift`).

use super::RATE_HZ;

/// A frame of 20 ms: shorter than a syllable, longer than a pitch period.
const FRAME_SAMPLES: usize = RATE_HZ as usize / 50;
/// The level below which a recording's loudest moments are silence, in dB of full scale: a voice across a room has -45.
const SILENT_DB: f32 = -60.0;
/// The minimum difference between loud and quiet frames in speech, in dB. Speech usually has 20 or more, and 6 in a moving car. Hum, hiss
/// and tones have less than 2.
const MIN_RANGE_DB: f32 = 3.0;
/// The number of louder frames ignored as clicks. A word takes more than these 80 ms, however long the silence around it.
const CLICK_FRAMES: usize = 4;
/// The maximum distance of speech below the loudest moments, in dB. An "f" or "s" at a word's end is 30 dB quieter.
const FAINTEST_SPEECH_DB: f32 = 40.0;
/// The same limit for sound within [`NOISE_DB`] of the quietest moments, which is probably the room's own noise.
const FAINT_SPEECH_DB: f32 = 30.0;
/// The maximum distance of a room's noise above its quietest moments, in dB.
const NOISE_DB: f32 = 9.0;
/// The frames of silence kept before speech, and after it, where a word fades: 120 and 280 ms. With 200 ms after it, the base model heard
/// "America" for "Americans" in one of the recordings here.
const BEFORE_FRAMES: usize = 6;
const AFTER_FRAMES: usize = 14;
/// The share of frames ignored at the quiet end, as drop-outs.
const DROP_OUTS: f32 = 0.05;

/// The loudness of a recording's frames, in dB of full scale.
struct Levels {
    frames: Vec<f32>,
    /// The quietest moments, except drop-outs.
    quiet: f32,
    /// The loudest moments, except clicks.
    loud: f32,
}

impl Levels {
    /// Measures a recording; `None` if it is too short.
    fn measure(samples: &[f32]) -> Option<Self> {
        let frames: Vec<f32> = samples.chunks(FRAME_SAMPLES).map(level_db).collect();
        let mut sorted = frames.clone();
        sorted.sort_by(f32::total_cmp);
        let drop_outs = (sorted.len() as f32 * DROP_OUTS) as usize;
        let (quiet, loud) = (*sorted.get(drop_outs)?, *sorted.iter().rev().nth(CLICK_FRAMES)?);
        Some(Self { frames, quiet, loud })
    }

    /// Returns the level below which sound counts as silence.
    fn silence_threshold(&self) -> f32 {
        let noise_limit = (self.quiet + NOISE_DB).min(self.loud - FAINT_SPEECH_DB);
        noise_limit.max(self.loud - FAINTEST_SPEECH_DB).max(SILENT_DB)
    }
}

/// Returns `true` if the samples (16 kHz mono) may hold speech.
pub(super) fn may_be_speech(samples: &[f32]) -> bool {
    Levels::measure(samples)
        .is_some_and(|levels| levels.loud >= SILENT_DB && levels.loud - levels.quiet >= MIN_RANGE_DB)
}

/// Removes silence before and after speech, and shortens pauses to at most 0.4 s: a second of silence costs as much computation as one of
/// speech.
pub(super) fn trim_silence(samples: &[f32]) -> Vec<f32> {
    let Some(levels) = Levels::measure(samples) else { return samples.to_vec() };
    let threshold = levels.silence_threshold();
    let mut is_kept = vec![false; levels.frames.len()];
    for at in (0..).zip(&levels.frames).filter(|(_, level)| **level >= threshold).map(|(at, _): (usize, _)| at) {
        let around = at.saturating_sub(BEFORE_FRAMES)..(at + AFTER_FRAMES + 1).min(is_kept.len());
        is_kept.get_mut(around).unwrap_or_default().fill(true);
    }
    if !is_kept.contains(&true) {
        return samples.to_vec();
    }
    let kept = samples.chunks(FRAME_SAMPLES).zip(is_kept).filter(|(_, is_kept)| *is_kept);
    kept.flat_map(|(frame, _)| frame).copied().collect()
}

/// Measures a frame's loudness around its mean: a microphone's constant offset isn't sound.
fn level_db(frame: &[f32]) -> f32 {
    let count = frame.len().max(1) as f32;
    let mean = frame.iter().sum::<f32>() / count;
    let power = frame.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f32>() / count;
    10.0 * power.max(1e-12).log10()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::sound, *};

    #[test]
    fn silence_hum_hiss_and_an_offset_are_no_speech() {
        let seconds = 3.0;
        assert!(!may_be_speech(&[]));
        assert!(!may_be_speech(&sound::silence(seconds)));
        assert!(!may_be_speech(&sound::noise(seconds, 0.0003)), "the hiss of a quiet room");
        assert!(!may_be_speech(&sound::noise(seconds, 0.3)), "a waterfall");
        assert!(!may_be_speech(&sound::tone(50.0, seconds, 0.5)), "mains hum");
        assert!(!may_be_speech(&sound::tone(1000.0, seconds, 0.5)));
        assert!(!may_be_speech(&vec![0.2; 16_000]));
    }

    #[test]
    fn silence_around_speech_and_in_long_pauses_is_cut_without_losing_sound() {
        let said = sound::syllables(2.0, 0.3);
        let mut samples = sound::silence(1.0);
        samples.extend(&said);
        samples.extend(sound::silence(3.0));
        let cut = trim_silence(&samples);
        let around = (BEFORE_FRAMES + AFTER_FRAMES) * FRAME_SAMPLES;
        assert!(cut.len() >= said.len() && cut.len() <= said.len() + around + 2 * FRAME_SAMPLES, "{}", cut.len());
        let loud = |samples: &[f32]| samples.iter().map(|sample| f64::from(sample * sample)).sum::<f64>();
        assert!((loud(&cut) - loud(&samples)).abs() < 1e-3, "no sound is lost");
        assert_eq!(trim_silence(&said).len(), said.len());

        let twice = [samples.as_slice(), &said].concat();
        let cut = trim_silence(&twice);
        assert!(cut.len() <= 2 * said.len() + 2 * around, "{}", cut.len());
        assert!((loud(&cut) - 2.0 * loud(&said)).abs() < 1e-3, "no sound is lost");
        // In a noisy room.
        let noisy: Vec<f32> = twice.iter().zip(sound::noise(10.0, 0.003)).map(|(a, b)| a + b).collect();
        assert!(trim_silence(&noisy).len() < 5 * RATE_HZ as usize, "{}", trim_silence(&noisy).len());
        let very_noisy: Vec<f32> = twice.iter().zip(sound::noise(10.0, 0.1)).map(|(a, b)| a + b).collect();
        assert_eq!(trim_silence(&very_noisy).len(), very_noisy.len(), "pauses can't be told from speech there");

        let silence = sound::silence(1.0);
        assert_eq!(trim_silence(&silence).len(), silence.len());
        assert_eq!(trim_silence(&[]).len(), 0);
    }

    #[test]
    fn a_click_in_silence_is_no_speech() {
        let mut samples = sound::silence(3.0);
        samples[20_000..20_100].fill(0.9);
        assert!(!may_be_speech(&samples));
    }

    #[test]
    fn quiet_short_or_noisy_syllables_may_be_speech() {
        let syllables = sound::syllables(2.0, 0.3);
        assert!(may_be_speech(&syllables));
        assert!(may_be_speech(&sound::syllables(2.0, 0.01)), "from across the room");
        assert!(may_be_speech(&sound::syllables(0.4, 0.3)), "a single yes");
        let hiss = sound::noise(2.0, 0.03);
        let mixed: Vec<f32> = syllables.iter().zip(&hiss).map(|(a, b)| a + b).collect();
        assert!(may_be_speech(&mixed));
        let mut late = sound::silence(60.0);
        late.extend(sound::syllables(0.4, 0.3));
        assert!(may_be_speech(&late), "a single yes after a minute of silence");
    }
}
