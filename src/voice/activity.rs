//! Whether anybody can be speaking at all: by energy alone, before a model is asked.
//!
//! Whisper writes "Thank you." under silence and hum. A recording that is silent, or as even as no voice is, never reaches it;
//! that also spares its seconds. In doubt the answer is yes: the model's own signs are looked at later (`sift`).

use super::RATE_HZ;

/// Frames of 20 ms: shorter than a syllable, longer than a pitch period.
const FRAME_SAMPLES: usize = RATE_HZ as usize / 50;
/// A recording whose loudest moments are below this is silent, in dB of full scale: a voice across a room has -45.
const SILENT_DB: f32 = -60.0;
/// The least by which the loud frames of speech differ from the quiet ones, in dB. Speech has 20 and more, in a moving car 6;
/// hum, hiss and tones have less than 2.
const EVEN_DB: f32 = 3.0;
/// Frames that may be louder than what counts as loudest: clicks. A word takes more than these 80 ms, however long the silence
/// around it.
const CLICK_FRAMES: usize = 4;
/// What is so much fainter than the loudest moments is no part of a word, in dB: an "f" or an "s" at a word's end has 30 less.
const FAINTEST_DB: f32 = 40.0;
/// Frames of silence that are left around what is said: 200 ms, in which a word fades.
const AROUND_FRAMES: usize = 10;
/// The part of the frames that may be quieter than what counts as quietest: drop-outs.
const DROP_OUTS: f32 = 0.05;

/// Whether the samples (16 kHz mono) can hold speech.
pub(super) fn may_be_speech(samples: &[f32]) -> bool {
    let mut levels: Vec<f32> = samples.chunks(FRAME_SAMPLES).map(level_db).collect();
    levels.sort_by(f32::total_cmp);
    let drop_outs = (levels.len() as f32 * DROP_OUTS) as usize;
    let (Some(&quiet), Some(&loud)) = (levels.get(drop_outs), levels.iter().rev().nth(CLICK_FRAMES)) else {
        return false;
    };
    loud >= SILENT_DB && loud - quiet >= EVEN_DB
}

/// The samples without the silence before and behind what is said: each second of it would be computed like one of speech.
pub(super) fn spoken(samples: &[f32]) -> &[f32] {
    let levels: Vec<f32> = samples.chunks(FRAME_SAMPLES).map(level_db).collect();
    let mut sorted = levels.clone();
    sorted.sort_by(f32::total_cmp);
    let Some(loud) = sorted.iter().rev().nth(CLICK_FRAMES) else { return samples };
    let least = (loud - FAINTEST_DB).max(SILENT_DB);
    let (Some(first), Some(last)) =
        (levels.iter().position(|level| *level >= least), levels.iter().rposition(|level| *level >= least))
    else {
        return samples;
    };
    let begin = first.saturating_sub(AROUND_FRAMES) * FRAME_SAMPLES;
    let end = ((last + 1 + AROUND_FRAMES) * FRAME_SAMPLES).min(samples.len());
    samples.get(begin..end).unwrap_or(samples)
}

/// A frame's loudness around its own mean: a microphone's constant offset is no sound.
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
    fn the_silence_around_what_is_said_is_cut_off_and_nothing_of_it() {
        let said = sound::syllables(2.0, 0.3);
        let mut samples = sound::silence(1.0);
        samples.extend(&said);
        samples.extend(sound::silence(3.0));
        let cut = spoken(&samples);
        let around = 2 * AROUND_FRAMES * FRAME_SAMPLES;
        assert!(cut.len() >= said.len() && cut.len() <= said.len() + around + 2 * FRAME_SAMPLES, "{}", cut.len());
        let loud = |samples: &[f32]| samples.iter().map(|sample| sample * sample).sum::<f32>();
        assert!((loud(cut) - loud(&samples)).abs() < 1e-3, "no sound is lost");
        assert_eq!(spoken(&said).len(), said.len());
        let silence = sound::silence(1.0);
        assert_eq!(spoken(&silence).len(), silence.len());
        assert_eq!(spoken(&[]).len(), 0);
    }

    #[test]
    fn a_click_in_silence_is_no_speech() {
        let mut samples = sound::silence(3.0);
        samples[20_000..20_100].fill(0.9);
        assert!(!may_be_speech(&samples));
    }

    #[test]
    fn syllables_are_even_if_they_are_quiet_short_or_over_noise() {
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
